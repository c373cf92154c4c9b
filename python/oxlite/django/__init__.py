"""Django on Oxlite: ``"ENGINE": "oxlite.django.sqlite3"``.

Django finds the backend in ``base``; this package offers what goes beyond it:

- ``read_only``: a transaction that only reads, as context manager and decorator.
- ``read_only_exempt``: marks a view that writes in answer to a safe method.
- ``retry``: runs a function again whose snapshot had become stale.

In INSTALLED_APPS it adds the command ``manage.py oxlite``. How to use it: ``docs/django.md``.

Invariant: importing this package imports neither Django's models nor its settings, since Django
imports it while it is still reading both.
"""

from oxlite.django.transaction import read_only, read_only_exempt, retry

__all__ = ["read_only", "read_only_exempt", "retry"]
