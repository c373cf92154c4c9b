"""Introspection: Django's own, which asks the driver for nothing but rows."""

from django.db.backends.sqlite3.introspection import DatabaseIntrospection

__all__ = ["DatabaseIntrospection"]
