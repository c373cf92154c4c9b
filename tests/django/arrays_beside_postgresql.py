"""Asks random questions of arrays in PostgreSQL and in SQLite, without and with an index.

    python arrays_beside_postgresql.py FOLDER SEED QUESTIONS

It prints what differs, and at the end how many questions were asked. PostgreSQL's server is one of
its own, in the folder.
"""

import random
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import django
from django.conf import settings

from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.bench.harness.scratch import Scratch

ROWS = 150
VALUES: dict[str, list[Any]] = {
    "numbers": [0, 1, 2, 3, 10, -1, None],
    "texts": ["a", "b", "B", "", "é", "a b", None],
    "prices": [Decimal("1.5"), Decimal(-2), Decimal("10.00"), Decimal(0), None],
    "flags": [True, False, None],
    "floats": [0.1, 1.0, 1e10, -0.5, None],
    "grid": [0, 1, 2, 3, None],
}


def one(name: str) -> Any:
    """An element."""
    return random.choice(VALUES[name])


def some(name: str) -> list[Any]:
    """An array."""
    if name != "grid":
        return [one(name) for _ in range(random.choice([0, 1, 1, 2, 3, 4]))]
    width = random.randrange(1, 3)
    return [[one(name) for _ in range(width)] for _ in range(random.randrange(1, 3))]


def question() -> Any:
    """A condition."""
    from django.db.models import F, Q

    name, kind = random.choice(list(VALUES)), random.randrange(12)
    flat = name != "grid"
    asked: dict[str, Any]
    if kind == 0:
        asked = {f"{name}__len{random.choice(['', '__gt', '__lte'])}": random.randrange(4)}
    elif kind == 1 and flat:
        how = "" if name == "flags" else random.choice(["", "__gt", "__lt"])
        values = [value for value in VALUES[name] if value is not None]
        asked = {f"{name}__{random.randrange(3)}{how}": random.choice(values)}
    elif kind == 2 and flat:
        first = random.randrange(3)
        part = f"{name}__{first}_{first + random.randrange(1, 3)}"
        asked = {f"{part}{random.choice(['', '__contains', '__overlap'])}": some(name)}
    elif kind == 3 and name == "numbers":
        how = random.choice(["contains", "overlap", "contained_by"])
        asked = {f"numbers__{how}": [F("number"), random.randrange(3)]}
    elif kind == 4:
        asked = {f"{name}__{random.choice(['contains', 'overlap', 'exact'])}": F(name)}
    elif kind == 5:
        asked = {f"{name}__in": [some(name), some(name)]}
    else:
        lookups = ["contains", "contained_by", "overlap", "exact", "gt", "gte", "lt", "lte"]
        asked = {f"{name}__{random.choice(lookups)}": some(name)}
    condition = Q(**asked)
    return ~condition if random.random() < 0.3 else condition


def model(name: str, array: Any, indexes: list[Any]) -> Any:
    """A model with a field of each kind."""
    from django.db import models

    bases = {
        "numbers": models.IntegerField(null=True),
        "texts": models.CharField(max_length=9, null=True),
        "prices": models.DecimalField(max_digits=6, decimal_places=2, null=True),
        "flags": models.BooleanField(null=True),
        "floats": models.FloatField(null=True),
        "grid": array(models.IntegerField(null=True)),
    }
    fields = {field: array(base, null=True) for field, base in bases.items()}
    meta = type("Meta", (), {"app_label": "arrays", "indexes": indexes})
    own = {"__module__": __name__, "Meta": meta, "number": models.IntegerField()}
    return type(name, (models.Model,), {**fields, **own})


def compare(questions: int) -> None:
    """Ask them."""
    from django.contrib.postgres.fields import ArrayField as Theirs
    from django.db import connections

    from oxlite.django.fields import ArrayField
    from oxlite.django.indexes import ArrayIndex

    indexes = [ArrayIndex(fields=[name], name=f"of_{name}") for name in VALUES]
    there = model("There", Theirs, []).objects.using("postgresql")
    here = [
        model("Here", ArrayField, []).objects.using("default"),
        model("Indexed", ArrayField, indexes).objects.using("default"),
    ]
    rows = [
        {
            **{name: None if random.random() < 0.1 else some(name) for name in VALUES},
            "number": random.randrange(4),
            "pk": number,
        }
        for number in range(1, ROWS + 1)
    ]
    for rows_of in (there, *here):
        with connections[rows_of.db].schema_editor() as editor:
            editor.create_model(rows_of.model)
        rows_of.bulk_create([rows_of.model(**row) for row in rows])
    for _ in range(questions):
        condition = question()
        answers = [
            list(rows_of.filter(condition).order_by("pk").values_list("pk", flat=True))
            for rows_of in (there, *here)
        ]
        if answers[0] != answers[1] or answers[0] != answers[2]:
            print("differs:", condition, answers)
    for name in (each for field in VALUES for each in (field, f"{field}__0_2")):
        found = [repr(list(rows_of.order_by("pk").values(name))) for rows_of in (there, *here)]
        if len(set(found)) > 1:
            print("differs:", name, found)
    connections.close_all()
    print("asked:", questions)


def main() -> None:
    """Start the server, and compare."""
    folder, seed, questions = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    random.seed(seed)
    with PostgresServer(Scratch(folder)) as server:
        place = server.database("arrays")
        settings.configure(
            USE_TZ=False,
            INSTALLED_APPS=[],
            DATABASES={
                "default": {"ENGINE": "oxlite.django.sqlite3", "NAME": folder / "arrays.db"},
                "postgresql": {
                    "ENGINE": "django.db.backends.postgresql",
                    "NAME": place.name,
                    "HOST": str(place.parent),
                    "USER": "postgres",
                },
            },
        )
        django.setup()
        compare(questions)


if __name__ == "__main__":
    main()
