"""What a schema of PostgreSQL's has: tables with their columns, keys, indexes and checks.

Partitions belong to their table, and tables of an extension's to that: neither is listed.

Sources: https://www.postgresql.org/docs/current/catalogs.html
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from oxlite.promotion.errors import PromotionError
from oxlite.promotion.names import identifier
from oxlite.promotion.plan import Note
from oxlite.promotion.source import ForeignKey
from oxlite.promotion.target import Target

__all__ = ["OriginColumn", "OriginIndex", "OriginTable", "read_origin"]

_TABLES: Final = (
    "c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = %s::regnamespace"
    " AND NOT EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = 'pg_class'::regclass"
    " AND e.objid = c.oid AND e.deptype = 'e')"
)
_COLUMNS: Final = (
    "SELECT c.relname, c.relkind = 'p', (SELECT string_agg(pg_get_constraintdef(o.oid), ' ')"
    " FROM pg_constraint o WHERE o.contypid = t.oid AND o.contype = 'c'), a.attname,"
    " format_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END,"
    " CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END),"
    " a.attnotnull OR t.typnotnull, pg_get_expr(d.adbin, d.adrelid), a.attidentity <> '',"
    " a.attgenerated <> '' FROM pg_class c"
    " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
    " JOIN pg_type t ON t.oid = a.atttypid"
    " LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"
    f" WHERE {_TABLES} ORDER BY c.relname, a.attnum"
)
_NAMES: Final = (
    "(SELECT array_agg(a.attname::text ORDER BY k.place) FROM unnest({numbers}::int2[])"
    " WITH ORDINALITY AS k(number, place) JOIN pg_attribute a ON a.attrelid = {table}"
    " AND a.attnum = k.number {more})"
)
_INDEXES: Final = (
    "SELECT c.relname, i.relname, x.indisunique, x.indisprimary,"
    " EXISTS (SELECT 1 FROM pg_constraint o WHERE o.conindid = i.oid AND o.contype = 'u'),"
    f" {_NAMES.format(numbers='x.indkey', table='c.oid', more='WHERE k.place <= x.indnkeyatts')},"
    " (x.indoption::int2[])::int[], m.amname = 'btree' AND x.indexprs IS NULL AND x.indpred IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM unnest(x.indclass::oid[]) AS o(id)"
    " JOIN pg_opclass p ON p.oid = o.id WHERE NOT p.opcdefault), pg_get_indexdef(i.oid)"
    " FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid"
    f" JOIN pg_am m ON m.oid = i.relam WHERE x.indisvalid AND {_TABLES}"
    " ORDER BY c.relname, i.relname"
)
_FOREIGN_KEYS: Final = (
    f"SELECT c.relname, {_NAMES.format(numbers='o.conkey', table='c.oid', more='')},"
    " f.relname, f.relnamespace = c.relnamespace AND NOT f.relispartition,"
    f" {_NAMES.format(numbers='o.confkey', table='f.oid', more='')},"
    " o.confupdtype, o.confdeltype, o.condeferred FROM pg_constraint o"
    " JOIN pg_class c ON c.oid = o.conrelid JOIN pg_class f ON f.oid = o.confrelid"
    f" WHERE o.contype = 'f' AND o.conparentid = 0 AND {_TABLES} ORDER BY c.relname, o.conname"
)
_CHECKS: Final = (
    "SELECT c.relname, o.conname, pg_get_expr(o.conbin, o.conrelid) FROM pg_constraint o"
    f" JOIN pg_class c ON c.oid = o.conrelid WHERE o.contype = 'c' AND {_TABLES}"
    " ORDER BY c.relname, o.conname"
)
_ACTIONS: Final = {
    "a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class OriginColumn:
    """A column.

    Attributes:
        name: Its name.
        type: As PostgreSQL writes it; of a domain the type below it.
        is_nullable: Whether it may be NULL.
        default: PostgreSQL's SQL of its default; ``None`` for none.
        is_numbered: Whether PostgreSQL gives it numbers, as an identity or by a sequence.
        is_generated: Whether it is computed.
    """

    name: str
    type: str
    is_nullable: bool
    default: str | None
    is_numbered: bool
    is_generated: bool


@dataclass(frozen=True, slots=True)
class OriginIndex:
    """An index on plain columns.

    Attributes:
        name: Its name.
        columns: In its order.
        descending: Which of them are.
        is_unique: Whether a value may be there once.
        is_constraint: Whether it was declared as UNIQUE of the table.
    """

    name: str
    columns: tuple[str, ...]
    descending: tuple[bool, ...]
    is_unique: bool
    is_constraint: bool


@dataclass(frozen=True, slots=True)
class OriginTable:
    """A table.

    Attributes:
        name: Its name.
        is_djangos: Whether it is of a site on Django, which migrates the schema.
        is_partitioned: Whether its rows are in partitions.
        columns: In their order.
        primary_key: Its columns; empty for none.
        indexes: Those on plain columns, without that of the primary key.
        foreign_keys: Those to tables that are listed too.
        checks: Names and PostgreSQL's SQL.
        notes: What it has that SQLite does not get.
    """

    name: str
    is_djangos: bool
    is_partitioned: bool
    columns: tuple[OriginColumn, ...]
    primary_key: tuple[str, ...]
    indexes: tuple[OriginIndex, ...]
    foreign_keys: tuple[ForeignKey, ...]
    checks: tuple[tuple[str, str], ...]
    notes: tuple[Note, ...]

    def column(self, name: str) -> OriginColumn:
        """One of its columns."""
        return next(column for column in self.columns if column.name == name)


def read_origin(there: Target, schema: str) -> dict[str, OriginTable]:
    """Look at what a schema has, in the transaction that is open.

    Raises:
        PromotionError: There is no such schema; SQLite would take two names for the same.
    """
    found = there.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,))
    if found.fetchone() is None:
        raise PromotionError(f"there is no schema {schema!r}")
    place = (identifier(schema),)
    columns: dict[str, list[OriginColumn]] = {}
    notes: dict[str, list[Note]] = {}
    partitioned = set()
    for table, is_partitioned, of_domain, *described in there.execute(_COLUMNS, place):
        name, kind, is_required, default, is_identity, is_generated = described
        is_numbered = is_identity or (default or "").startswith("nextval(")
        columns.setdefault(table, []).append(
            OriginColumn(name, kind, not is_required, default, is_numbered, is_generated)
        )
        known = notes.setdefault(table, [])
        if of_domain is not None:
            known.append(Note("lost", table, name, f"{of_domain}, of its domain"))
        if is_partitioned:
            partitioned.add(table)
    _refuse_alike("tables", columns)
    for table, ones in columns.items():
        _refuse_alike(f"columns of {table}", [one.name for one in ones])
    keys, indexes = _indexes(there, place, notes)
    foreign_keys = _foreign_keys(there, place, notes)
    checks: dict[str, list[tuple[str, str]]] = {}
    for table, name, expression in there.execute(_CHECKS, place):
        checks.setdefault(table, []).append((name, expression))
    return {
        table: OriginTable(
            table,
            "django_migrations" in columns,
            table in partitioned,
            tuple(ones),
            keys.get(table, ()),
            tuple(indexes.get(table, ())),
            tuple(foreign_keys.get(table, ())),
            tuple(checks.get(table, ())),
            tuple(notes[table]),
        )
        for table, ones in columns.items()
    }


def _refuse_alike(what: str, names: Iterable[str]) -> None:
    """SQLite takes names for the same that differ in the case of ASCII's letters."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise PromotionError(f"SQLite takes two {what} for the same: {other!r} and {name!r}")


def _indexes(
    there: Target, place: tuple[str], notes: dict[str, list[Note]]
) -> tuple[dict[str, tuple[str, ...]], dict[str, list[OriginIndex]]]:
    keys, indexes = {}, dict[str, list[OriginIndex]]()
    for (
        table,
        name,
        is_unique,
        is_key,
        is_constraint,
        columns,
        options,
        is_plain,
        sql,
    ) in there.execute(_INDEXES, place):
        if is_key:
            keys[table] = tuple(columns)
        elif not is_plain:
            notes[table].append(Note("lost", table, "", sql))
        else:
            descending = tuple(bool(option & 1) for option in options[: len(columns)])
            index = OriginIndex(name, tuple(columns), descending, is_unique, is_constraint)
            indexes.setdefault(table, []).append(index)
            if "NULLS NOT DISTINCT" in sql:
                text = f"{sql}: here NULL may be there several times"
                notes[table].append(Note("changed", table, "", text))
    return keys, indexes


def _foreign_keys(
    there: Target, place: tuple[str], notes: dict[str, list[Note]]
) -> dict[str, list[ForeignKey]]:
    found: dict[str, list[ForeignKey]] = {}
    for table, columns, other, is_here, referred, update, delete, is_deferred in there.execute(
        _FOREIGN_KEYS, place
    ):
        if not is_here or other not in notes:
            text = f"FOREIGN KEY ({', '.join(columns)}) REFERENCES {other}: that is elsewhere"
            notes[table].append(Note("lost", table, "", text))
            continue
        found.setdefault(table, []).append(
            ForeignKey(
                tuple(columns), other, tuple(referred), _ACTIONS[update], _ACTIONS[delete],
                is_deferred,
            )
        )  # fmt: skip
    return found
