"""The way back: some of PostgreSQL's rows in a SQLite file, for development.

Invariants:
- All is of one moment there: one transaction, which only reads.
- Every row that a row refers to is in the file as well.
- The file gets its name when it is whole, and takes no other's place.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from oxlite import sqlite3
from oxlite.operations.partial import Partial
from oxlite.operations.restore import refuse_target
from oxlite.promotion.errors import PromotionError
from oxlite.promotion.functions import register
from oxlite.promotion.gathered import GATHERED, gather, within_reach
from oxlite.promotion.names import identifier, literal
from oxlite.promotion.origin import OriginTable, read_origin
from oxlite.promotion.plan import Note
from oxlite.promotion.tables import make_tables
from oxlite.promotion.target import Target, connected, shown

__all__ = ["ROWS", "Sampled", "sample"]

ROWS: Final = 1000
"""How many rows of a table are taken where nothing is said."""
_LEFT_OUT: Final = ("sqlite_", "oxlite_", "_litestream_")
"""What tables are called that ``oxlite promote`` leaves out as well."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """What was done.

    Attributes:
        database: The file.
        rows: How many there are, of each table.
        notes: What the file does not have, or has in another way.
    """

    database: Path
    rows: dict[str, int]
    notes: tuple[Note, ...]


def sample(
    url: str,
    database: str | os.PathLike[str],
    *,
    rows: int = ROWS,
    tables: Sequence[str] = (),
    schema: str = "public",
    tell: Callable[[str, int, int], object] = lambda _name, _done, _total: None,
) -> Sampled:
    """Make a SQLite file of some of PostgreSQL's rows, and of all that those refer to.

    Args:
        url: Where PostgreSQL is: ``postgresql://user:password@host/database``.
        database: The file, which is not there yet.
        rows: How many of each table at most, the latest by its primary key. What they refer to is
            not counted.
        tables: From which; by default from all. Tables that they refer to are made as well.
        schema: Of the tables in PostgreSQL.
        tell: Is called with a table's name, how many of its rows were read, and of how many.

    Raises:
        PromotionError: PostgreSQL cannot be reached, has no such tables, or some that SQLite cannot
            have; there is a file of that name.
        OperationsError: There is no such directory, or the name is too long.
        OSError: The file cannot be written.
    """
    path = Path(database).resolve()
    if rows < 1:
        raise PromotionError(f"a sample has at least one row of a table, not {rows}")
    refuse_target(path)
    _refuse_existing(path)
    with connected(url) as there, Partial(path) as partial:
        import psycopg

        there.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        there.read_only = True
        try:
            with there.transaction():
                taken = _take(there, partial, rows, tables, schema, tell)
        except psycopg.OperationalError as error:
            reason = " ".join(str(error).split())
            raise PromotionError(
                f"{shown(url)} did not answer to the end ({reason}): run it again"
            ) from error
        try:
            partial.finish(path)
        except FileExistsError:
            raise PromotionError(f"{path} exists by now: nothing was changed") from None
    return Sampled(path, *taken)


def _refuse_existing(path: Path) -> None:
    """What lies beside a database would be taken for the new one's."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        other = path.with_name(path.name + suffix)
        if os.path.lexists(other):
            raise PromotionError(f"{other} exists: a sample takes no file's place")


def _take(
    there: Target,
    partial: Partial,
    rows: int,
    chosen: Sequence[str],
    schema: str,
    tell: Callable[[str, int, int], object],
) -> tuple[dict[str, int], tuple[Note, ...]]:
    known = read_origin(there, schema)
    lacking = [name for name in chosen if name not in known]
    if lacking:
        raise PromotionError(f"there is no table {lacking[0]!r} in the schema {schema!r}")
    if not chosen:
        chosen = [name for name in known if not name.lower().startswith(_LEFT_OUT)]
    names = within_reach(known, chosen)
    tables: dict[str, OriginTable] = {name: known[name] for name in sorted(names)}
    for name in tables:
        if name.lower().startswith("sqlite_"):
            raise PromotionError(f"SQLite keeps names such as {name!r} to itself")
    with closing(sqlite3.connect(partial.path, isolation_level=None)) as here:
        here.execute("PRAGMA foreign_keys = OFF")
        # It has no name yet: there is nobody to whom a half of it could be of use.
        here.execute("PRAGMA journal_mode = OFF")
        here.execute("PRAGMA synchronous = OFF")
        here.execute(f"ATTACH {literal(str(partial.beside('rows')))} AS {GATHERED}")
        here.execute(f"PRAGMA {GATHERED}.journal_mode = OFF")
        here.execute(f"PRAGMA {GATHERED}.synchronous = OFF")
        register(here)
        here.execute("BEGIN")
        gather(there, here, schema, tables, list(dict.fromkeys(chosen)), rows, tell)
        notes = make_tables(here, tables)
        here.execute("COMMIT")
        counts = {
            name: here.execute(f"SELECT count(*) FROM main.{identifier(name)}").fetchone()[0]
            for name in tables
        }
    return counts, tuple(notes)
