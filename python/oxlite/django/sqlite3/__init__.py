"""The database backend: ``"ENGINE": "oxlite.django.sqlite3"``.

In modules of the names that Django looks for; it finds all of it by ``base``.

Invariant: importing this package alone imports nothing of Django's.
"""
