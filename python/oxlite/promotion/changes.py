"""What is written into the file while it is copied: noted by triggers, and carried over.

Triggers see every program that writes, ours or not. They note keys alone; what is there now is read
when it is carried over.

Invariants:
- A row that is not like its copy has its key in the journal. REPLACE deletes rows without a DELETE
  trigger (https://sqlite.org/lang_replace.html), so rows with the same unique values are noted
  before it.
- What was carried over is committed in PostgreSQL before it is forgotten here; to do it twice does
  no harm.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from oxlite.promotion.names import identifier, identifiers, literal, table_name
from oxlite.promotion.noted import SCHEMA, set_aside_count
from oxlite.promotion.plan import Plan, TablePlan
from oxlite.promotion.rows import key_line, key_there, lines
from oxlite.promotion.source import Table
from oxlite.promotion.survey import key_expressions
from oxlite.promotion.target import Target
from oxlite.promotion.transfer import copy_lines, key_text, put_aside
from oxlite.sqlite3 import Connection

__all__ = [
    "STATE",
    "begin_journal",
    "carry_over",
    "end_journal",
    "forget",
    "length",
    "lift_refusal",
    "newest",
    "notes_all",
    "refuse_writes",
]

STATE: Final = "oxlite_promotion"
_KEYS_AT_ONCE: Final = 1000
_REFUSALS: Final = "oxlite_promoted"


@dataclass(frozen=True, slots=True)
class _Journal:
    """Of one table: its name, and columns for a key."""

    name: str
    columns: tuple[str, ...]


def _journal(number: int, table: Table) -> _Journal:
    width = len(key_expressions(table))
    return _Journal(f"{STATE}_{number}", tuple(f"k{place}" for place in range(width)))


def begin_journal(connection: Connection, plan: Plan) -> None:
    """Note from now on what is written, in the transaction that is open."""
    for number, one in enumerate(plan.tables):
        journal = _journal(number, one.table)
        columns = ", ".join(journal.columns)
        connection.execute(
            f"CREATE TABLE {journal.name} (id INTEGER PRIMARY KEY AUTOINCREMENT, {columns})"
        )
        for suffix, event, body in _triggers(journal, one.table):
            connection.execute(
                f"CREATE TRIGGER {journal.name}_{suffix} {event} ON"
                f" {identifier(one.table.name)} BEGIN {body} END"
            )


def notes_all(connection: Connection, plan: Plan) -> bool:
    """Whether all triggers are there: they go with a table that is dropped and made again."""
    names = {
        f"{journal.name}_{suffix}"
        for journal, table in (
            (_journal(number, one.table), one.table) for number, one in enumerate(plan.tables)
        )
        for suffix, _, _ in _triggers(journal, table)
    }
    there = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    return names <= {name for (name,) in there}


def _triggers(journal: _Journal, table: Table) -> Iterator[tuple[str, str, str]]:
    keys = key_expressions(table)
    insert = f"INSERT INTO {journal.name} ({', '.join(journal.columns)})"

    def of(row: str) -> str:
        return ", ".join(f"{row}.{key}" for key in keys)

    # Alike for the key is not alike for PostgreSQL: NOCASE, or 1 and 1.0.
    is_moved = " OR ".join(
        f"OLD.{key} IS NOT NEW.{key} COLLATE BINARY OR typeof(OLD.{key}) <> typeof(NEW.{key})"
        for key in keys
    )
    yield "insert", "AFTER INSERT", f"{insert} VALUES ({of('NEW')});"
    yield "delete", "AFTER DELETE", f"{insert} VALUES ({of('OLD')});"
    yield (
        "update",
        "AFTER UPDATE",
        f"{insert} VALUES ({of('NEW')}); {insert} SELECT {of('OLD')} WHERE {is_moved};",
    )
    uniques = [index for index in table.indexes if index.is_unique and index.columns]
    if table.primary_key and table.row_key is None:
        plain = ("",) * len(table.primary_key)
        yield from _of_conflicts(insert, table, "key", table.primary_key, plain)
    for place, index in enumerate(uniques):
        yield from _of_conflicts(insert, table, str(place), index.columns, index.collations)


def _of_conflicts(
    insert: str,
    table: Table,
    suffix: str,
    columns: tuple[str, ...],
    collations: tuple[str, ...],
) -> Iterator[tuple[str, str, str]]:
    keys = ", ".join(key_expressions(table))
    alike = " AND ".join(
        f"{identifier(name)} = NEW.{identifier(name)}"
        + (f" COLLATE {identifier(collation)}" if collation else "")
        for name, collation in zip(columns, collations, strict=True)
    )
    body = f"{insert} SELECT {keys} FROM {identifier(table.name)} WHERE {alike};"
    yield f"insert_{suffix}", "BEFORE INSERT", body
    yield f"update_{suffix}", f"BEFORE UPDATE OF {identifiers(columns)}", body


def end_journal(connection: Connection) -> None:
    """Note no more, in the transaction that is open."""
    _drop(connection, f"{STATE}\\_%")


def newest(connection: Connection, plan: Plan) -> dict[str, int]:
    """The number of the last note, of each table that has one."""
    found = {}
    for number, one in enumerate(plan.tables):
        row = connection.execute(
            f"SELECT max(id) FROM {_journal(number, one.table).name}"
        ).fetchone()
        if row[0] is not None:
            found[one.table.name] = int(row[0])
    return found


def length(connection: Connection, plan: Plan) -> int:
    """How many notes there are."""
    return sum(
        connection.execute(f"SELECT count(*) FROM {_journal(number, one.table).name}").fetchone()[0]
        for number, one in enumerate(plan.tables)
    )


def carry_over(
    connection: Connection, target: Target, schema: str, plan: Plan, upto: dict[str, int]
) -> int:
    """Have PostgreSQL have what the file has now, of the rows that were noted.

    Args:
        connection: In a transaction, so that all is of one moment.
        target: Where to; in a transaction as well.
        schema: Of the tables there.
        plan: What becomes of them.
        upto: The last note of each table that is carried over.

    Returns:
        How many notes those were.

    Raises:
        DoesNotFit: A value does not.
    """
    todo = [
        (_journal(number, one.table), one)
        for number, one in enumerate(plan.tables)
        if one.table.name in upto
    ]
    # All deletions first: a unique value may have moved from a row to another.
    for journal, one in todo:
        _delete(connection, target, schema, one, journal, upto[one.table.name])
    for journal, one in todo:
        _insert(connection, target, schema, one, journal, upto[one.table.name])
    return sum(upto.values())


def _delete(
    connection: Connection,
    target: Target,
    schema: str,
    plan: TablePlan,
    journal: _Journal,
    upto: int,
) -> None:
    name = table_name(schema, plan.table.name)
    keys = key_there(plan)
    target.execute(
        f"CREATE TEMP TABLE changed_keys AS SELECT {identifiers(keys)} FROM {name} WITH NO DATA"
    )
    noted = connection.execute(
        f"SELECT DISTINCT {key_line(plan, list(journal.columns))} FROM {journal.name}"
        f" WHERE id <= {upto}"
    )
    with target.cursor().copy("COPY changed_keys FROM STDIN") as copy:
        while rows := noted.fetchmany(1000):
            # One that does not fit has no row there.
            copy.write("".join(f"{row[0]}\n" for row in rows if row[0] is not None))
    alike = " AND ".join(f"t.{identifier(key)} = k.{identifier(key)}" for key in keys)
    target.execute(f"DELETE FROM {name} AS t USING changed_keys AS k WHERE {alike}")
    target.execute("DROP TABLE changed_keys")
    if set_aside_count(target, plan.table.name):
        noted = connection.execute(
            f"SELECT DISTINCT {', '.join(journal.columns)} FROM {journal.name} WHERE id <= {upto}"
        )
        while found := noted.fetchmany(_KEYS_AT_ONCE):
            target.execute(
                f"DELETE FROM {SCHEMA}.set_aside WHERE table_name = %s AND key = ANY(%s)",
                (plan.table.name, [key_text(key) for key in found]),
            )


def _insert(
    connection: Connection,
    target: Target,
    schema: str,
    plan: TablePlan,
    journal: _Journal,
    upto: int,
) -> None:
    keys = ", ".join(key_expressions(plan.table))
    rows = connection.execute(
        f"{lines(plan)} WHERE ({keys}) IN (SELECT {', '.join(journal.columns)}"
        f" FROM {journal.name} WHERE id <= {upto})"
    )
    unfit: list[tuple[Any, ...]] = []

    def fitting() -> Iterator[bytes]:
        for *key, line in rows:
            if line is None:
                unfit.append(tuple(key))
            else:
                yield line

    copy_lines(target, schema, plan, fitting())
    if unfit:
        put_aside(connection, target, plan, unfit)


def forget(connection: Connection, plan: Plan, upto: dict[str, int]) -> None:
    """Drop the notes of what was carried over, in the transaction that is open."""
    for number, one in enumerate(plan.tables):
        if one.table.name in upto:
            connection.execute(
                f"DELETE FROM {_journal(number, one.table).name} WHERE id <= ?",
                (upto[one.table.name],),
            )


def refuse_writes(connection: Connection, plan: Plan, where: str) -> None:
    """Have later writes refused, with a message that says where the data is, in the transaction."""
    message = literal(f"this table has moved to {where}: write there")
    for number, one in enumerate(plan.tables):
        for event in ("INSERT", "UPDATE", "DELETE"):
            connection.execute(
                f"CREATE TRIGGER IF NOT EXISTS {_REFUSALS}_{number}_{event.lower()}"
                f" BEFORE {event} ON {identifier(one.table.name)}"
                f" BEGIN SELECT RAISE(ABORT, {message}); END"
            )


def lift_refusal(connection: Connection) -> None:
    """Let writes in again, in the transaction that is open."""
    _drop(connection, f"{_REFUSALS}\\_%")


def _drop(connection: Connection, pattern: str) -> None:
    found = connection.execute(
        "SELECT type, name FROM sqlite_schema WHERE name LIKE ? ESCAPE '\\'"
        " AND type IN ('trigger', 'table') ORDER BY type DESC",
        (pattern,),
    ).fetchall()
    for kind, name in found:
        connection.execute(f"DROP {kind.upper()} {identifier(name)}")
