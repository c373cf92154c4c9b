"""The application of Django's that has the tables of ``orm``: Django finds its ``models`` by name.

Invariant: it is imported by Django alone, once that is configured.
"""
