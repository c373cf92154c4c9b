"""Whether a database that nobody uses is whole, and what is in it.

Invariants:
- Nothing is written into it. It is opened for writing all the same: SQLite forgets the CHECK
  constraints of a file that it opens read-only (``sqlite3AddCheckConstraint``). So files may lie
  beside it for that time, and it is one that is nobody else's yet.
- Nothing in it is trusted: it is opened with the profile ``untrusted``.
"""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

import oxlite
from oxlite import harmless, sqlite3
from oxlite.operations.errors import VerificationFailed
from oxlite.operations.niceness import ended_with_its_work

__all__ = [
    "OF_CONSTRAINT",
    "Contents",
    "Stage",
    "contents",
    "digest",
    "opened_untrusted",
    "quoted",
    "row_counts",
    "silent",
    "verified",
]

Stage = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is, and how much there is: bytes, or 0 and 0."""


def silent(_what: str, _done: int, _of: int) -> None:
    """A ``Stage`` that tells nobody."""


OF_CONSTRAINT: Final = re.compile(
    r"CHECK constraint failed in |(?:non-)?(?:NULL|INT|INTEGER|REAL|TEXT|BLOB|NUMERIC) value in "
)
"""How SQLite begins to say that a row is not what the schema promises; the file is whole then."""

_DAMAGES_AT_MOST: Final = 20
_SHOWN_AT_MOST: Final = 3
_LINES_AT_MOST: Final = 100_000
_AS_COMPILED: Final = 2**31 - 1
"""A limit that SQLite cuts to its own."""

_TABLES: Final = """SELECT name FROM pragma_table_list
WHERE schema = 'main' AND type IN ('table', 'shadow') AND name NOT IN ('sqlite_schema')
ORDER BY name"""


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a database.

    Attributes:
        page_size: In bytes.
        page_count: How many pages it has.
        application_id: See https://sqlite.org/pragma.html#pragma_application_id.
        user_version: The application's number of its schema.
        rows: How many rows each table has; ``None`` where only the program can read it.
        foreign_key_violations: How many rows refer to nothing, as they did where it comes from;
            ``None`` where SQLite cannot tell.
        unchecked: Tables whose constraints or indexes use functions that only a program has: how
            they fit could not be checked.
        violations: How many rows are not what the schema promises (CHECK, NOT NULL, types of a
            STRICT table), as they were where it comes from, by what SQLite says of them; ``None``
            in manifests of the first versions.
    """

    page_size: int
    page_count: int
    application_id: int
    user_version: int
    rows: dict[str, int | None]
    foreign_key_violations: int | None
    unchecked: list[str] = field(default_factory=list)
    violations: dict[str, int] | None = None

    def is_same(self, other: "Contents") -> bool:
        """Whether the same is in both; what a version of SQLite says of it is no difference."""
        return self._plain() == other._plain()

    def _plain(self) -> "Contents":
        return replace(self, unchecked=[], violations=None)


def verified(path: Path) -> Contents:
    """Check all of a database, and say what is in it.

    Args:
        path: A file that is nobody else's yet, without a WAL or journal of its own.

    Raises:
        VerificationFailed: It is no database, or damaged.
    """
    try:
        uri = f"file:{quote(os.fsencode(path.absolute()))}?mode=rw"
        with (
            closing(opened_untrusted(uri)) as connection,
            ended_with_its_work(connection.interrupt),
        ):
            found = _Found()
            try:
                _look(connection, found)
            except sqlite3.OperationalError as error:
                if not _lacks_a_function(error):
                    raise
                found = _found_by_table(connection)
            if found.errors:
                said = "; ".join(harmless(error) for error in found.errors[:_SHOWN_AT_MOST])
                raise VerificationFailed(f"{path} is damaged: {said}")
            return replace(
                contents(connection),
                unchecked=found.unchecked,
                violations=dict(sorted(found.violations.items())),
            )
    except sqlite3.Error as error:
        raise VerificationFailed(f"{path} cannot be read as a database: {error}") from error


def opened_untrusted(uri: str, *, timeout: float = 5.0) -> sqlite3.Connection:
    """A connection to what a stranger may have made, with the profile ``untrusted``.

    It registers nothing of its own: what needs a program's functions fails, and is told so.

    Args:
        uri: Of a file, whose parameters are the caller's own.
        timeout: How long a lock is waited for, in seconds.

    Raises:
        oxlite.sqlite3.Error: It cannot be opened, or is no database.
    """
    connection = sqlite3.connect(
        uri,
        uri=True,
        timeout=timeout,
        isolation_level=None,
        profile="untrusted",
        allow_no_locking=True,
    )
    # The profile's limits are for an application that looks for something. Here any database has to
    # pass that SQLite takes: with a value of a gigabyte, or a table of 2,000 columns.
    for name in oxlite.profiles()["untrusted"]:
        if name.startswith("SQLITE_LIMIT_") and name != "SQLITE_LIMIT_ATTACHED":
            connection.setlimit(getattr(sqlite3, name), _AS_COMPILED)
    return connection


@dataclass(slots=True)
class _Found:
    """What integrity_check says."""

    errors: list[str] = field(default_factory=list)
    violations: Counter[str] = field(default_factory=Counter)
    unchecked: list[str] = field(default_factory=list)


def _look(connection: sqlite3.Connection, found: _Found, table: str | None = None) -> None:
    """Add what integrity_check says, of all or of a table."""
    if _has_told_all(connection, found, table):
        return
    # Behind so many rows that are not what the schema promises there may be damage.
    with _without_checks(connection):
        again = _Found()
        if not _has_told_all(connection, again, table):
            again.errors.append(f"{_LINES_AT_MOST:,} rows are not what the schema promises")
        found.errors += again.errors


def _has_told_all(connection: sqlite3.Connection, found: _Found, table: str | None) -> bool:
    name = "" if table is None else f"({quoted(table)})"
    # With a table's name the pragma takes no number, and ends after a hundred lines.
    most = _LINES_AT_MOST if table is None else 100
    lines = 0
    for (row,) in connection.execute(f"PRAGMA integrity_check{name or f'({most})'}"):
        for line in str(row).split("\n"):
            lines += 1
            if OF_CONSTRAINT.match(line):
                found.violations[line] += 1
            elif line != "ok" and not line.startswith("*** in database"):
                found.errors.append(line)
        if len(found.errors) >= _DAMAGES_AT_MOST:
            break
    return lines < most or bool(found.errors)


def _found_by_table(connection: sqlite3.Connection) -> _Found:
    """The same table by table; what only a program can check is left out."""
    found = _Found()
    for name in _tables(connection):
        try:
            _look(connection, found, name)
        except sqlite3.OperationalError as error:
            if not _lacks_a_function(error):
                raise
            found.unchecked.append(name)
            with suppress(sqlite3.OperationalError), _without_checks(connection):
                _look(connection, found, name)
    return found


@contextmanager
def _without_checks(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("PRAGMA ignore_check_constraints = ON")
    try:
        yield
    finally:
        connection.execute("PRAGMA ignore_check_constraints = OFF")


def _lacks_a_function(error: sqlite3.Error) -> bool:
    """Whether it needs what only a program has."""
    said = str(error)
    return any(
        said.startswith(one)
        for one in (
            "unknown function",
            "no such function",
            "no such collation",
            "no such module",
            "unsafe use of",
        )
    )


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def contents(connection: sqlite3.Connection) -> Contents:
    """What is in the database of a connection, in the transaction that is open."""

    def number(pragma: str) -> int:
        return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])

    try:
        found = connection.execute("SELECT count(*) FROM pragma_foreign_key_check").fetchone()
        violations = int(found[0])
    except sqlite3.OperationalError:  # a key that fits no parent, or what only a program has
        violations = None
    return Contents(
        page_size=number("page_size"),
        page_count=number("page_count"),
        application_id=number("application_id"),
        user_version=number("user_version"),
        rows=row_counts(connection),
        foreign_key_violations=violations,
    )


def row_counts(connection: sqlite3.Connection) -> dict[str, int | None]:
    """How many rows each table has; ``None`` where only a program can read it."""
    return {name: _row_count(connection, name) for name in _tables(connection)}


def _row_count(connection: sqlite3.Connection, name: str) -> int | None:
    try:
        sql = f"SELECT count(*) FROM {quoted(name)} NOT INDEXED"
        return int(connection.execute(sql).fetchone()[0])
    except sqlite3.OperationalError as error:
        if not _lacks_a_function(error):
            raise
        return None


def _tables(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute(_TABLES).fetchall()]


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
