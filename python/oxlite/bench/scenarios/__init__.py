"""Scenarios: the conditions under which a workload runs, as named axes.

``scenario`` names the axes and their values, ``pragmas`` applies settings and
reads them back, ``builds`` finds the other builds of the extension,
``mappers`` which object-relational mappers are installed,
``interpreters`` asks other Pythons what is installed there, ``cells``
turns a selection into cells, each possible or listed with the reason why not,
and ``opening`` opens a connection for a scenario.
"""
