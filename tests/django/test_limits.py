"""What needs more variables than SQLite's default works as on the SQLites that sites have."""

import sqlite3
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Site

COUNT = 40_000

QUERIES = f"""
Author.objects.bulk_create([Author(id=i, name=str(i)) for i in range(1, {COUNT} + 1)])
Note.objects.bulk_create(
    [Note(id=i, text=str(i), author_id=i) for i in range(1, {COUNT} + 1)]
)
print(Author.objects.filter(pk__in=range({COUNT})).count())
print(Author.objects.exclude(pk__in=range({COUNT})).count())
authors = list(Author.objects.prefetch_related("note_set"))
print(len(authors), sum(len(author.note_set.all()) for author in authors))
print(len(Author.objects.in_bulk(range(1, {COUNT} + 1))))
print(Note.objects.filter(pk__in=range(10, {COUNT})).update(author=None))
print(Note.objects.filter(pk__in=list(range(1, {COUNT} + 1))).delete()[0])
"""

ANSWER = [
    str(COUNT - 1),
    "1",
    f"{COUNT} {COUNT}",
    str(COUNT),
    str(COUNT - 10),
    str(COUNT),
]


@pytest.mark.parametrize("engine", ["oxlite.django", "django.db.backends.sqlite3"])
def test_forty_thousand_variables(site: "Site", engine: str) -> None:
    if engine != "oxlite.django":
        with sqlite3.connect(":memory:") as stock:
            if stock.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) < COUNT:
                pytest.skip("this Python's own SQLite does not take them")
    site.set(f'DATABASES["default"]["ENGINE"] = "{engine}"')
    assert site.run(QUERIES).splitlines() == ANSWER
