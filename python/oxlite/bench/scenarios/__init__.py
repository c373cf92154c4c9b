"""Scenarios: the conditions under which a workload runs.

``axes`` names the axes and their values, ``scenario`` is one value on each.
"""
