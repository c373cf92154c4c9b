"""What becomes of each table and column, and what does not survive.

Invariant: a plan is made from what is stored, not from what was declared alone; and what it leaves
behind it says.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from oxlite.promotion.choice import candidates, is_by_content, is_lossless
from oxlite.promotion.errors import PromotionError
from oxlite.promotion.names import NAME_BYTES
from oxlite.promotion.overrides import Misfits, Overrides
from oxlite.promotion.source import Column, Source, Table
from oxlite.promotion.survey import (
    Misfit,
    TableSurvey,
    has_other_encoding,
    misfits,
    survey,
)
from oxlite.promotion.values import Type, type_of
from oxlite.sqlite3 import Connection

__all__ = ["ColumnPlan", "Note", "Plan", "TablePlan", "Tell", "make_plan"]

_SHOWN: Final = 5

Tell: TypeAlias = Callable[[str, int, int], object]


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """What becomes of a column.

    Attributes:
        name: Its name.
        type: What it is in PostgreSQL.
        misfits: What is done with values that do not fit.
        is_computed: Whether PostgreSQL computes it by itself.
        is_plain: Whether all of it is in the form that the driver's functions know.
    """

    name: str
    type: Type
    misfits: Misfits
    is_computed: bool = False
    is_plain: bool = False


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What becomes of a table."""

    table: Table
    columns: tuple[ColumnPlan, ...]
    rows: int

    @property
    def carried(self) -> tuple[ColumnPlan, ...]:
        """The columns whose values are carried over."""
        return tuple(column for column in self.columns if not column.is_computed)

    def column(self, name: str) -> ColumnPlan:
        """Of one column."""
        return next(column for column in self.columns if column.name == name)


@dataclass(frozen=True, slots=True)
class Note:
    """Something to know before.

    Attributes:
        kind: ``misfit`` (values that do not fit, and nothing is said about them), ``changed``
            (another type than was meant, values that become NULL, rows set aside), ``lost`` (what
            PostgreSQL does not get), ``otherwise`` (what it does in another way).
        table: Of which table; "" for none.
        column: Of which column; "" for none.
        text: What.
        count: How many rows it concerns.
        examples: Some of them.
    """

    kind: Literal["misfit", "changed", "lost", "otherwise"]
    table: str
    column: str
    text: str
    count: int = 0
    examples: tuple[Misfit, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of a file."""

    tables: tuple[TablePlan, ...]
    notes: tuple[Note, ...]

    @property
    def misfits(self) -> tuple[Note, ...]:
        """What is in the way."""
        return tuple(note for note in self.notes if note.kind == "misfit")


def make_plan(
    connection: Connection,
    source: Source,
    *,
    overrides: Overrides,
    policy: Misfits,
    there: Mapping[str, Mapping[str, str]] | None,
    tell: Tell,
) -> Plan:
    """Look at all that is stored.

    Args:
        connection: One with the functions of ``functions``.
        source: What the file has.
        overrides: What is to be done otherwise.
        policy: What is done about values that do not fit, where the overrides say nothing.
        there: The tables that PostgreSQL has, with the types of their columns; ``None`` where they
            are made.
        tell: Is called with a table's name, how far it was read, and how many rows it has.

    Raises:
        PromotionError: A table or a column has no place.
        oxlite.sqlite3.Error: It cannot be read.
    """
    known = {one.name: tuple(column.name for column in one.columns) for one in source.tables}
    overrides.check({**known, **dict.fromkeys(source.left_out, ())})
    notes: list[Note] = []
    plans = []
    for table in source.tables:
        if there is not None and table.name not in there:
            raise PromotionError(
                f"PostgreSQL has no table {table.name!r}: run the migrations there first, or skip"
                " it in a file of overrides"
            )
        types = None if there is None else there[table.name]
        plans.append(_plan_table(connection, table, types, overrides, policy, tell, notes))
    notes += _lost(source)
    return Plan(tuple(plans), tuple(notes))


def _plan_table(
    connection: Connection,
    table: Table,
    there: Mapping[str, str] | None,
    overrides: Overrides,
    policy: Misfits,
    tell: Tell,
    notes: list[Note],
) -> TablePlan:
    carried = [column for column in table.columns if column.generated is None or there is None]
    if there is not None:
        missing = [column.name for column in carried if column.name not in there]
        if missing:
            raise PromotionError(
                f"PostgreSQL's table {table.name!r} has no column {missing[0]!r}: run the same"
                " migrations there as here"
            )
    for name in (table.name, *(column.name for column in carried)):
        if not name:
            raise PromotionError(
                f"the table {table.name!r} has an empty name, or a column with one, and PostgreSQL"
                " has no such names: rename it first"
            )
        if len(name.encode()) > NAME_BYTES:
            raise PromotionError(
                f"{name!r} is longer than PostgreSQL's names may be ({NAME_BYTES} bytes): rename"
                " it first"
            )
    asked: dict[str, list[Type]] = {}
    for column in carried:
        said = overrides.of(table.name, column.name).type
        if there is not None:
            names: tuple[str, ...] = (there[column.name],)
        elif said is not None:
            names = (said,)
        else:
            names = candidates(table, column)
        asked[column.name] = [type_of(name) for name in names]
    tell(table.name, 0, 0)
    found = survey(connection, table, asked)
    tell(table.name, 0, found.rows)
    columns = tuple(
        _plan_column(
            connection,
            table,
            column,
            asked[column.name],
            found,
            overrides.of(table.name, column.name).misfits or policy,
            notes,
        )
        for column in carried
    )
    if table.is_by_rowid:
        why = "it has no primary key" if not table.primary_key else "its primary key has NULLs"
        notes.append(Note("otherwise", table.name, "", f"{why}: PostgreSQL's has none"))
    return TablePlan(table, columns, found.rows)


def _plan_column(
    connection: Connection,
    table: Table,
    column: Column,
    types: list[Type],
    found: TableSurvey,
    policy: Misfits,
    notes: list[Note],
) -> ColumnPlan:
    unfit = found.columns[column.name].misfits
    meant = types[0]
    if not unfit[meant.name]:
        is_plain = found.columns[column.name].is_plain
        return ColumnPlan(column.name, meant, policy, is_plain=is_plain)
    wider = next((one for one in types if not unfit[one.name]), None)
    asked = [one.name for one in types]
    if wider is not None and (policy == "widen" or is_lossless(asked, wider.name)):
        count = unfit[meant.name]
        text = f"becomes {wider.name}, not {meant.name}, which would not hold all of it"
        examples = misfits(connection, table, column, meant, at_most=_SHOWN)
        if (meant.name, wider.name) != ("bigint", "double precision"):
            notes.append(Note("changed", table.name, column.name, text, count, tuple(examples)))
        return ColumnPlan(column.name, wider, policy)
    chosen = meant
    if policy == "widen" or is_by_content(asked):
        chosen = min(types, key=lambda one: unfit[one.name])
    count = unfit[chosen.name]
    examples = misfits(connection, table, column, chosen, at_most=_SHOWN)
    text = {
        "null": "become NULL",
        "set-aside": "have their rows set aside",
    }.get(policy, f"do not fit in {chosen.name}")
    if policy == "null" and (not column.is_nullable or column.name in table.primary_key):
        policy = "stop"
        text = f"do not fit in {chosen.name}, and may not become NULL"
    elif (
        policy == "set-aside"
        and column.name in table.key
        and has_other_encoding(connection, table, column)
    ):
        policy = "stop"
        text = "are keys, and no UTF-8: mend them first"
    kind: Literal["misfit", "changed"] = "misfit" if policy in {"stop", "widen"} else "changed"
    notes.append(Note(kind, table.name, column.name, text, count, tuple(examples)))
    return ColumnPlan(column.name, chosen, policy)


def _lost(source: Source) -> list[Note]:
    notes = [
        Note("lost", name, "", f"left out: {why}")
        for name, why in source.left_out.items()
        if why not in {"internal", "kept by the module of a virtual table"}
    ]
    notes += [Note("lost", name, "", "a view: make it there") for name in source.views]
    notes += [Note("lost", name, "", "a trigger: make it there") for name in source.triggers]
    for table in source.tables:
        for column in table.columns:
            if column.collation != "BINARY":
                notes.append(
                    Note(
                        "otherwise", table.name, column.name,
                        f"COLLATE {column.collation}: PostgreSQL's compares as its database does",
                    )
                )  # fmt: skip
    return notes
