"""Kills of those who notify and those who listen, while nothing may be lost, doubled or disordered.

``python -m tests.notify_kills`` (``make notify-kills``) kills and stops them at random moments
until as many have been killed and as much has been notified as one likes. Half of those who notify
are other programs: they insert with the standard library's SQLite, and wake nobody by themselves.

- ``history``: what was committed, as the table had it, and whether that is what was told.
- ``chain``: what a listener has been given in all of its lives, compared with the history.
- ``publishers`` and ``listeners``: what the processes do that are killed.
- ``family``: processes that are forked, killed, stopped and judged by how they end.
- ``campaign``: the rounds; ``tally``: what was done in them.
"""
