"""No limit of our SQLite is smaller than that of the SQLites that people have."""

import contextlib
import sqlite3 as standard
from types import ModuleType

import pytest

from oxlite import sqlite3

NAMES = sorted(name for name in dir(standard) if name.startswith("SQLITE_LIMIT_"))

# The largest values that common builds set beyond SQLite's own default, and whose they are. Which
# are not followed, and why: docs/decisions/0003-sqlite-limits.md.
LARGEST = {"SQLITE_LIMIT_VARIABLE_NUMBER": 500_000}
"""Apple's; 250,000 in Debian, Ubuntu, Homebrew and conda-forge."""


def options(module: ModuleType) -> dict[str, int]:
    """The compile-time maxima that a build lists."""
    with contextlib.closing(module.connect(":memory:")) as connection:
        listed = [option for (option,) in connection.execute("PRAGMA compile_options")]
    named = (option.split("=") for option in listed if option.startswith("MAX_"))
    return {name: int(value, 0) for name, value in named}


@pytest.mark.parametrize("name", NAMES)
def test_no_limit_is_smaller_than_the_standard_librarys(name: str) -> None:
    with (
        contextlib.closing(standard.connect(":memory:")) as theirs,
        contextlib.closing(sqlite3.connect(":memory:")) as ours,
    ):
        category = getattr(standard, name)
        assert ours.getlimit(category) >= theirs.getlimit(category)
        assert ours.getlimit(category) >= LARGEST.get(name, 0)


def test_no_maximum_is_smaller_than_the_standard_librarys() -> None:
    ours, theirs = options(sqlite3), options(standard)
    # It bounds what SQLite chooses by itself for a new file, from the disk's sectors.
    theirs.pop("MAX_DEFAULT_PAGE_SIZE", None)
    # How often a statement is compiled anew; listed where it was set, and 50 where it was not.
    assert theirs.pop("MAX_SCHEMA_RETRY", 0) <= 50
    assert theirs
    for name, value in theirs.items():
        assert ours[name] >= value, name


def test_as_many_variables_as_there_are_work() -> None:
    count = LARGEST["SQLITE_LIMIT_VARIABLE_NUMBER"]
    with contextlib.closing(sqlite3.connect(":memory:", cached_statements=0)) as connection:
        sql = f"SELECT count(*) FROM json_each('[1]') WHERE 1 IN ({','.join('?' * count)})"
        assert connection.execute(sql, [0] * (count - 1) + [1]).fetchone() == (1,)
        with pytest.raises(sqlite3.OperationalError, match="too many SQL variables"):
            connection.execute(f"SELECT ({','.join('?' * (count + 1))})", [0] * (count + 1))
