"""What PostgreSQL knows of a promotion: what was planned, and how far each table has come.

Invariant: it changes in the transactions in which the data does.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from oxlite.promotion.errors import PromotionError
from oxlite.promotion.plan import ColumnPlan, Plan, TablePlan
from oxlite.promotion.source import Source
from oxlite.promotion.target import Target
from oxlite.promotion.values import type_of

__all__ = [
    "SCHEMA",
    "Noted",
    "Progress",
    "changed",
    "document_there",
    "forget",
    "key_of",
    "note",
    "note_indexed",
    "note_lost",
    "note_part",
    "number_there",
    "read",
    "refuse_what_is_set_aside",
    "set_aside_count",
]

SCHEMA: Final = "oxlite_promotion"

Progress: TypeAlias = tuple[str | None, int, bool, bool]


@dataclass(slots=True)
class Noted:
    """What is noted.

    Attributes:
        number: What the file knows it by.
        schema: Of the tables.
        is_existing: Whether they were there before.
        skipped: Tables that are left out because somebody said so.
        plan: What becomes of each table, without rows' counts that are up to date.
        foreign_keys: Those that were taken away for the time, as SQL that makes them again.
        progress: Of each table: the key of the last row, how many were copied, whether that is
            all, and whether it has its indexes.
        notes: What was lost on the way.
    """

    number: str
    schema: str
    is_existing: bool
    skipped: list[str]
    plan: Plan
    foreign_keys: list[tuple[str, str, str]]
    progress: dict[str, Progress]
    notes: list[list[str]]


_TABLES: Final = (
    f"CREATE SCHEMA {SCHEMA}",
    f"CREATE TABLE {SCHEMA}.promotion (number text, document jsonb)",
    f"CREATE TABLE {SCHEMA}.progress (table_name text PRIMARY KEY, last_key text, rows bigint"
    " NOT NULL, is_copied boolean NOT NULL, is_indexed boolean NOT NULL)",
    f"CREATE TABLE {SCHEMA}.set_aside (table_name text, key text, row text)",
)


def refuse_what_is_set_aside(target: Target) -> None:
    """See that no rows are there that an earlier promotion has set aside.

    Raises:
        PromotionError: There are.
    """
    if target.execute(f"SELECT to_regclass('{SCHEMA}.set_aside')").fetchone() != (None,):
        raise PromotionError(
            f"rows that an earlier promotion has set aside are in {SCHEMA}.set_aside: look at them,"
            f" and then DROP SCHEMA {SCHEMA} CASCADE"
        )


def note(target: Target, noted: Noted) -> None:
    """Begin, in the transaction that is open."""
    for sql in _TABLES:
        target.execute(sql)
    target.execute(
        f"INSERT INTO {SCHEMA}.promotion VALUES (%s, %s)",
        (noted.number, json.dumps(_document(noted))),
    )
    for one in noted.plan.tables:
        target.execute(
            f"INSERT INTO {SCHEMA}.progress VALUES (%s, NULL, 0, false, false)",
            (one.table.name,),
        )


def _document(noted: Noted) -> dict[str, Any]:
    return {
        "schema": noted.schema,
        "is_existing": noted.is_existing,
        "skipped": noted.skipped,
        "foreign_keys": noted.foreign_keys,
        "notes": noted.notes,
        "tables": [
            {
                "name": one.table.name,
                "declaration": one.table.declaration,
                "key": one.table.key,
                "rows": one.rows,
                "columns": [
                    [
                        column.name,
                        column.type.name,
                        column.misfits,
                        column.is_computed,
                        column.is_plain,
                    ]
                    for column in one.columns
                ],
            }
            for one in noted.plan.tables
        ],
    }


def number_there(target: Target) -> str | None:
    """What the promotion is known by that is noted there; ``None`` if none is."""
    found = target.execute(f"SELECT to_regclass('{SCHEMA}.promotion')").fetchone()
    if found is None or found[0] is None:
        return None
    row = target.execute(f"SELECT number FROM {SCHEMA}.promotion").fetchone()
    return None if row is None else str(row[0])


def read(target: Target, number: str, source: Source) -> Noted:
    """What is noted of the promotion of a number.

    Raises:
        PromotionError: The file's tables are no longer what they were.
    """
    document = document_there(target)
    tables = {table.name: table for table in source.tables}
    plans = []
    for one in document["tables"]:
        table = tables.get(one["name"])
        if (
            table is None
            or list(table.declaration) != one["declaration"]
            or list(table.key) != one["key"]
        ):
            raise changed(one["name"])
        columns = tuple(
            ColumnPlan(name, type_of(kind), misfits, is_computed, is_plain)
            for name, kind, misfits, is_computed, is_plain in one["columns"]
        )
        plans.append(TablePlan(table, columns, one["rows"]))
    progress = {
        name: (key, rows, is_copied, is_indexed)
        for name, key, rows, is_copied, is_indexed in target.execute(
            f"SELECT * FROM {SCHEMA}.progress"
        )
    }
    return Noted(
        number,
        document["schema"],
        document["is_existing"],
        document["skipped"],
        Plan(tuple(plans), ()),
        document["foreign_keys"],
        progress,
        document["notes"],
    )


def changed(table: str) -> PromotionError:
    """The error of a table that is no longer what it was."""
    return PromotionError(
        f"the table {table!r} was changed since the promotion began: --abort, and begin anew"
    )


def note_part(target: Target, table: str, key: Sequence[Any], rows: int, is_last: bool) -> None:
    """Note that some more rows were copied, in the transaction that is open."""
    written = [{"hex": one.hex()} if isinstance(one, bytes) else one for one in key]
    target.execute(
        f"UPDATE {SCHEMA}.progress SET last_key = coalesce(%s, last_key), rows = rows + %s,"
        " is_copied = %s WHERE table_name = %s",
        (json.dumps(written) if written else None, rows, is_last, table),
    )


def key_of(noted: str | None) -> tuple[Any, ...] | None:
    """The key that was noted."""
    if noted is None:
        return None
    return tuple(
        bytes.fromhex(one["hex"]) if isinstance(one, dict) else one for one in json.loads(noted)
    )


def note_indexed(target: Target, table: str) -> None:
    """Note that a table has its indexes, in the transaction that is open."""
    target.execute(
        f"UPDATE {SCHEMA}.progress SET is_indexed = true WHERE table_name = %s",
        (table,),
    )


def note_lost(target: Target, noted: Noted) -> None:
    """Note what was lost on the way, in the transaction that is open."""
    target.execute(f"UPDATE {SCHEMA}.promotion SET document = %s", (json.dumps(_document(noted)),))


def set_aside_count(target: Target, table: str | None = None) -> int:
    """How many rows were set aside; of one table, or of all."""
    row = target.execute(
        f"SELECT count(*) FROM {SCHEMA}.set_aside WHERE coalesce(table_name = %s, true)", (table,)
    ).fetchone()
    return 0 if row is None else int(row[0])


def document_there(target: Target) -> dict[str, Any]:
    """What is noted, as it stands there, of the promotion that ``number_there`` has found."""
    row = target.execute(f"SELECT document FROM {SCHEMA}.promotion").fetchone()
    assert row is not None
    document: dict[str, Any] = row[0]
    return document


def forget(target: Target) -> None:
    """Take it away; rows that were set aside stay."""
    if set_aside_count(target):
        target.execute(f"DROP TABLE {SCHEMA}.promotion, {SCHEMA}.progress")
    else:
        target.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
