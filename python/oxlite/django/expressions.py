"""Expressions under the names of ``django.contrib.postgres.expressions``: ``ArraySubquery``.

Invariant: nothing is defined here.

Source: https://docs.djangoproject.com/en/5.2/ref/contrib/postgres/expressions/
"""

from oxlite.django.array_lookups import ArraySubquery

__all__ = ["ArraySubquery"]
