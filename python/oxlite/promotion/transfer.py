"""All rows of a table, part by part, into PostgreSQL.

Invariant: a part and how far it reaches are one transaction there, so whoever is killed goes on
after the last part, and no row is there twice.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from oxlite.promotion.errors import DoesNotFit
from oxlite.promotion.names import identifier, identifiers, literal, table_name
from oxlite.promotion.noted import SCHEMA
from oxlite.promotion.plan import TablePlan
from oxlite.promotion.rows import columns_there, lines
from oxlite.promotion.survey import key_expressions
from oxlite.promotion.target import Target
from oxlite.sqlite3 import Connection

__all__ = ["copy_lines", "copy_table", "key_text", "put_aside"]

_PART_ROWS: Final = 100_000
_PART_BYTES: Final = 32 << 20
_WRITE_BYTES: Final = 1 << 20


def copy_table(
    connection: Connection,
    target: Target,
    schema: str,
    plan: TablePlan,
    after: Sequence[Any] | None,
    note: Callable[[Sequence[Any], int, bool], None],
) -> None:
    """Copy what comes after a key.

    Args:
        connection: One with the functions of ``functions``, and the text factory of ``as_text``.
        target: Where to.
        schema: Of the table there.
        plan: What becomes of it.
        after: The key of the last row that is there; ``None`` for none.
        note: Is called at the end of each part, in its transaction, with the key of its last row,
            how many rows it has, and whether it was the last.

    Raises:
        DoesNotFit: A value does not, and nothing was said about it.
    """
    keys = key_expressions(plan.table)
    order = ", ".join(keys)
    marks = ", ".join("?" for _ in keys)
    name = table_name(schema, plan.table.name)
    into = f"COPY {name} ({identifiers(columns_there(plan))}) FROM STDIN"
    while True:
        where = "" if after is None else f" WHERE ({order}) > ({marks})"
        rows = connection.execute(
            f"{lines(plan)}{where} ORDER BY {order} LIMIT {_PART_ROWS}", tuple(after or ())
        )
        count = written = 0
        unfit: list[tuple[Any, ...]] = []
        is_last = False
        with target.transaction():
            with target.cursor().copy(into) as copy:
                waiting: list[bytes] = []
                size = 0
                for *key, line in rows:  # one may be as long as all of a part
                    after = tuple(key)
                    count += 1
                    if line is None:
                        unfit.append(tuple(key))
                        continue
                    waiting.append(line)
                    size += len(line)
                    if size >= _WRITE_BYTES:
                        copy.write(b"\n".join(waiting) + b"\n")
                        written += size
                        waiting, size = [], 0
                        if written >= _PART_BYTES:
                            break
                if waiting:
                    copy.write(b"\n".join(waiting) + b"\n")
                is_last = written + size < _PART_BYTES and count < _PART_ROWS
            if unfit:
                put_aside(connection, target, plan, unfit)
            rows.close()
            note(after or (), count, is_last)
        if is_last:
            return


def copy_lines(target: Target, schema: str, plan: TablePlan, ready: Iterable[bytes]) -> None:
    """Copy some lines, in the transaction that is open."""
    name = table_name(schema, plan.table.name)
    into = f"COPY {name} ({identifiers(columns_there(plan))}) FROM STDIN"
    with target.cursor().copy(into) as copy:
        for line in ready:
            copy.write(line + b"\n")


def put_aside(
    connection: Connection, target: Target, plan: TablePlan, keys: Sequence[tuple[Any, ...]]
) -> None:
    """Keep rows that do not fit where they can be looked at, in the transaction that is open.

    Raises:
        DoesNotFit: Nothing was said about them.
    """
    order = ", ".join(key_expressions(plan.table))
    marks = ", ".join("?" for _ in plan.table.key)
    names = [column.name for column in plan.columns]
    pairs = ", ".join(f"{literal(name)}, {_as_json(identifier(name))}" for name in names)
    unfit = " + ".join(_unfit(column.type.fits_of(identifier(column.name)), column.name)
                       for column in plan.columns)  # fmt: skip
    where = ", ".join(
        f"CASE WHEN {_unfit(column.type.fits_of(identifier(column.name)), column.name)}"
        f" THEN {literal(column.name)} END"
        for column in plan.columns
        if column.misfits in {"stop", "widen"}
    )
    for key in keys:
        if None in key:
            raise DoesNotFit(f"a key of {plan.table.name!r} is no UTF-8: mend it first")
        row = connection.execute(
            f"SELECT json_object({pairs}), {f'coalesce({where}, NULL)' if where else 'NULL'},"
            f" {unfit} FROM {identifier(plan.table.name)} WHERE ({order}) = ({marks})",
            key,
        ).fetchone()
        if row is None:
            continue  # it is gone by now
        if row[1] is not None or (where and not row[2]):
            column = f"column {row[1]!r}" if row[1] else "a text"
            raise DoesNotFit(
                f"the row {key_text(key)} of {plan.table.name!r} has something in {column} that"
                " does not fit: it was written after the tables were looked at. Mend it, or say"
                " what is to be done (misfits in a file of overrides), after --abort"
            )
        written = row[0]
        if written is None:  # a text that is no UTF-8
            hexadecimal = ", ".join(
                f"{literal(name)}, hex(CAST({identifier(name)} AS BLOB))" for name in names
            )
            (written,) = connection.execute(
                f"SELECT json_object({hexadecimal}) FROM {identifier(plan.table.name)}"
                f" WHERE ({order}) = ({marks})",
                key,
            ).fetchone()
        target.execute(
            f"INSERT INTO {SCHEMA}.set_aside (table_name, key, row) VALUES (%s, %s, %s)",
            (plan.table.name, key_text(key), written),
        )


def _unfit(fits: str, name: str) -> str:
    return f"({identifier(name)} IS NOT NULL AND ({fits}) IS NOT 1)"


def _as_json(column: str) -> str:
    return f"CASE typeof({column}) WHEN 'blob' THEN hex({column}) ELSE {column} END"


def key_text(key: Sequence[Any]) -> str:
    """A key, for a person and for ``set_aside``."""
    return json.dumps(
        [one.hex() if isinstance(one, bytes) else one for one in key],
        separators=(",", ":"),
        ensure_ascii=False,
    )
