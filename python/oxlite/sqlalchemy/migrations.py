"""What a migration could lose because foreign keys are enforced, and what is refused therefore.

SQLite cannot change most of a table in place, so Alembic's batch mode makes ``_alembic_tmp_NAME``,
copies the rows, drops the table and renames the copy. Where foreign keys are enforced, DROP TABLE
first deletes all rows of the table, and ON DELETE CASCADE deletes those of other tables with them.
Without such an action SQLite refuses the DROP itself, or, where the foreign key is deferred, the
COMMIT: that the copy has the name by then does not count. ``PRAGMA foreign_keys = OFF`` would help,
but inside a transaction SQLite ignores it, silently.

Invariant: nothing here changes a database. A statement is refused before it runs, or let through;
what SQLite refuses is explained.

Sources: https://sqlite.org/foreignkeys.html#fk_schemacommands,
    https://sqlite.org/pragma.html#pragma_foreign_keys,
    https://alembic.sqlalchemy.org/en/latest/batch.html
"""

import re
from typing import Final
from weakref import WeakKeyDictionary

from oxlite import sqlite3
from oxlite.sqlalchemy.isolation import BLANK, DriverConnection

__all__ = ["dropped_table", "explain_refused_commit", "explain_refused_drop", "refuse_what_loses"]

_NAME: Final = r'"(?:[^"]|"")*"|\[[^\]]*\]|`(?:[^`]|``)*`|\w+'
_PRAGMA: Final = re.compile(
    rf"{BLANK}PRAGMA\s+(?:(?:{_NAME})\s*\.\s*)?foreign_keys\s*[=(]\s*['\"]?([+-]?\w+)",
    re.IGNORECASE | re.DOTALL,
)
_DROP: Final = re.compile(
    rf"{BLANK}DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?:({_NAME})\s*\.\s*)?({_NAME})",
    re.IGNORECASE | re.DOTALL,
)

# What Alembic calls the copy of a table; a longer name is cut.
_COPY: Final = "_alembic_tmp_{}"
_LONGEST_COPY: Final = 50

_REFERENCES: Final = """
    SELECT child.name, reference.id, reference."from", reference.on_delete
    FROM {schema}.sqlite_schema AS child, pragma_foreign_key_list(child.name, ?) AS reference
    WHERE child.type = 'table' AND lower(child.name) <> lower(?)
        AND lower(reference."table") = lower(?)
    ORDER BY child.name, reference.id, reference.seq
"""

_WAY_OUT: Final = (
    "open the engine of your migrations without enforced foreign keys"
    " (sqlite+oxlite:///app.db?pragma.foreign_keys=off), and look at PRAGMA foreign_key_check"
    " afterwards. What was committed before, by an earlier revision or an autocommit_block(), stays"
)

_LOSE_ROWS: Final = {"CASCADE", "SET NULL", "SET DEFAULT"}

# Of SQLite's own refusals; ON DELETE RESTRICT is done by a trigger inside.
_REFUSALS: Final = {"SQLITE_CONSTRAINT_FOREIGNKEY", "SQLITE_CONSTRAINT_TRIGGER"}

# Which copied table was to be dropped latest by a connection, and what refers to its rows.
_referred: "WeakKeyDictionary[DriverConnection, tuple[str, str]]" = WeakKeyDictionary()


def refuse_what_loses(connection: DriverConnection, statement: str) -> None:
    """Look at a statement that is no SELECT, INSERT, UPDATE or DELETE before it runs.

    Args:
        connection: Where it is to run, in its transaction.
        statement: One statement.

    Raises:
        oxlite.sqlite3.ProgrammingError: It sets ``foreign_keys`` inside a transaction.
        oxlite.sqlite3.IntegrityError: It drops a table that Alembic has copied, and with it rows of
            other tables would be deleted or changed.
    """
    if found := _PRAGMA.match(statement):
        _refuse_ignored_pragma(connection, found[1])
    elif found := _DROP.match(statement):
        _refuse_cascade(connection, *_place(found))


def dropped_table(statement: str) -> tuple[str, str] | None:
    """The schema and the name of the table that a statement drops, if it is such a one."""
    found = _DROP.match(statement)
    return None if found is None else _place(found)


def _place(found: re.Match[str]) -> tuple[str, str]:
    return "main" if found[1] is None else _unquoted(found[1]), _unquoted(found[2])


def explain_refused_drop(
    connection: DriverConnection, statement: str, error: sqlite3.IntegrityError
) -> None:
    """Say with SQLite's refusal to drop a table that Alembic has copied what refers to its rows.

    Args:
        connection: Where the statement has failed, which ``refuse_what_loses`` has let through.
        statement: Any statement.
        error: What the driver has raised; its text is extended, if that is what has happened.
    """
    dropped = _DROP.match(statement)
    if dropped is None or not _is_refusal(error):
        return
    found = _referred.pop(connection, None)
    if found is not None and found[0] == _unquoted(dropped[2]):
        table, held = found
        error.args = (
            f"{error}: DROP TABLE {table} deletes its rows first, and foreign keys are enforced:"
            f" rows of {held} refer to them. Nothing was dropped: {_WAY_OUT}.",
        )


def explain_refused_commit(connection: DriverConnection, error: sqlite3.Error) -> None:
    """Say with a COMMIT that SQLite refuses that a table was dropped and its copy got the name.

    SQLite counts the references that deferred foreign keys have lost, and does not look again.

    Args:
        connection: Whose transaction could not be committed, and is open still.
        error: What the driver has raised; its text is extended, if that is what has happened.
    """
    found = _referred.pop(connection, None)
    if found is None or not _is_refusal(error):
        return
    # All parents are there: it is nothing that the transaction has written.
    if not connection.execute("SELECT 1 FROM pragma_foreign_key_check LIMIT 1").fetchall():
        table, held = found
        error.args = (
            f"{error}: DROP TABLE {table} has deleted its rows first, and deferred foreign keys of"
            f" {held} refer to them; the table that has the name now does not count. Nothing of"
            f" this transaction was committed: {_WAY_OUT}.",
        )


def _is_refusal(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorname", None) in _REFUSALS


def _refuse_ignored_pragma(connection: DriverConnection, value: str) -> None:
    if not connection.in_transaction:
        return
    wanted = _truth(value)
    if wanted == _enforces(connection):
        return
    name = "ON" if wanted else "OFF"
    raise sqlite3.ProgrammingError(
        f"PRAGMA foreign_keys = {name} inside a transaction: SQLite would ignore it. Set it before"
        " the transaction begins (Alembic: in an autocommit_block()), or leave it out and"
        f" {_WAY_OUT}."
    )


def _refuse_cascade(connection: DriverConnection, schema: str, table: str) -> None:
    in_schema = _quoted(schema)
    copy = _COPY.format(table)[:_LONGEST_COPY]
    is_copied = connection.execute(
        f"SELECT 1 FROM {in_schema}.sqlite_schema WHERE lower(name) = lower(?)", (copy,)
    ).fetchall()
    _referred.pop(connection, None)
    if not is_copied or not _enforces(connection):
        return
    references: dict[tuple[str, int, str], list[str]] = {}
    query = _REFERENCES.format(schema=in_schema)
    for child, number, column, action in connection.execute(query, (schema, table, table)):
        references.setdefault((child, number, action), []).append(column)
    lost: list[str] = []
    held: list[str] = []
    for (child, _, action), columns in references.items():
        refers = " AND ".join(f"{_quoted(column)} IS NOT NULL" for column in columns)
        if connection.execute(
            f"SELECT 1 FROM {in_schema}.{_quoted(child)} WHERE {refers} LIMIT 1"
        ).fetchall():
            described = f"{child} ({', '.join(columns)}: ON DELETE {action})"
            (lost if action in _LOSE_ROWS else held).append(described)
    if held:
        _referred[connection] = table, ", ".join(held)
    if lost:
        raise sqlite3.IntegrityError(
            f"DROP TABLE {table} deletes its rows first, and foreign keys are enforced: rows of"
            f" {', '.join(lost)} would be deleted or changed with them. Nothing was dropped:"
            f" {_WAY_OUT}."
        )


def _enforces(connection: DriverConnection) -> bool:
    (is_on,) = connection.execute("PRAGMA foreign_keys").fetchone()
    return bool(is_on)


def _truth(value: str) -> bool:
    """What SQLite takes a word for: what it does not know is false."""
    try:
        return int(value) != 0
    except ValueError:
        return value.lower() in {"on", "yes", "true"}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unquoted(name: str) -> str:
    mark = name[0]
    if mark in '"`':
        return name[1:-1].replace(mark * 2, mark)
    return name[1:-1] if mark == "[" else name
