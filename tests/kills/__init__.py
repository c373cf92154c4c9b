"""Kills: processes that share their syncs are killed, all of them, and others begin anew.

``python -m tests.kills`` (``make kills``) does so until as many have been killed as one likes
(:mod:`tests.kills.campaign`); what they write and what must be left of it is in
:mod:`tests.kills.entries`. While somebody is left, ``oxlite bench shared --kills`` measures how
soon he goes on; here nobody is, and whoever comes next finds a log of which nobody can tell how
much the disk has.
"""
