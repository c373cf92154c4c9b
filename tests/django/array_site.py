"""A small site with arrays in its models."""

import shutil
from pathlib import Path

from tests.django.conftest import Site

MODELS = """
from oxlite.django.fields import ArrayField

class Post(models.Model):
    tags = ArrayField(models.CharField(max_length=20), size=3, default=list, blank=True)

class Row(models.Model):
    numbers = ArrayField(models.IntegerField(), null=True, blank=True)
    number = models.IntegerField(default=0)

class Box(models.Model):
    sides = ArrayField(ArrayField(models.IntegerField()))

class Kinds(models.Model):
    texts = ArrayField(models.TextField(null=True), default=list)
    large = ArrayField(models.BigIntegerField(), default=list)
    floats = ArrayField(models.FloatField(), default=list)
    prices = ArrayField(models.DecimalField(max_digits=20, decimal_places=2), default=list)
    price = models.DecimalField(max_digits=6, decimal_places=2, default=0)
    days = ArrayField(models.DateField(), default=list)
    moments = ArrayField(models.DateTimeField(), default=list)
    times = ArrayField(models.TimeField(), default=list)
    spans = ArrayField(models.DurationField(), default=list)
    keys = ArrayField(models.UUIDField(), default=list)
    flags = ArrayField(models.BooleanField(null=True), default=list)
    blobs = ArrayField(models.BinaryField(), default=list)
    things = ArrayField(models.JSONField(), default=list)
    addresses = ArrayField(models.GenericIPAddressField(), default=list)
    grid = ArrayField(ArrayField(models.DecimalField(max_digits=6, decimal_places=1)), default=list)
"""

FUNCTION = "def one_and_two():\n    return [1, 2]\n"

START = """
import json
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID
from django.core.exceptions import FieldError, ValidationError
from django.db import DataError, IntegrityError, models
from django.db.models import Exists, F, OuterRef, Q, Value
from notes.models import Box, Kinds, Post, Row
from oxlite.django.fields import ArrayField

def refused(kind, function, *arguments):
    try:
        with transaction.atomic():
            function(*arguments)
    except kind as error:
        return str(error)
    raise AssertionError("it was not refused")

def sql(statement, *parameters):
    with connection.cursor() as cursor:
        return cursor.execute(statement, parameters).fetchall()

VALUES = {
    "texts": ["", "a,b", 'a"b', "\\\\", "\\n\\t\\x1f", "é\U0001f600", "[1]", "null", None, "%s %"],
    "large": [0, -1, 2**53 + 1, 2**63 - 1, -(2**63)],
    "floats": [0.1, 1e300, 5e-324, 1.0, -0.0, 0.30000000000000004, 123456789012345.67],
    "prices": [Decimal("123456789012345678.90"), Decimal("-0.01"), Decimal("1.50")],
    "days": [date(1, 1, 1), date(2026, 2, 28)],
    "moments": [
        datetime(2026, 2, 28, 1, 2, 3, 4, timezone.utc), datetime(1999, 1, 1, tzinfo=timezone.utc)
    ],
    "times": [time(0, 0), time(23, 59, 59, 999999)],
    "spans": [timedelta(days=-3, microseconds=1), timedelta()],
    "keys": [UUID("12345678123456781234567812345678"), UUID(int=0)],
    "flags": [True, False, None],
    "blobs": [b"", b"\\x00\\xff"],
    "things": [{"a": [1, None]}, [1], "x", 5],
    "addresses": ["192.168.0.1", "::1"],
    "grid": [[Decimal("1.5"), Decimal("-2.0")], [Decimal("0.0"), Decimal("9.9")]],
}
"""


class ArraySite(Site):
    """A site with arrays in its models, whose scripts begin with names for them."""

    def run(self, script: str) -> str:
        """What a script prints that runs in the site; it must end well."""
        return super().run(START + script)


def copied(folder: Path, to: Path) -> ArraySite:
    """The copy of a site."""
    site = ArraySite(to / "site")
    shutil.copytree(folder, site.folder, dirs_exist_ok=True)
    return site
