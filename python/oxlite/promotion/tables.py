"""The tables of a sample, made of what was gathered, with all that SQLite holds them to.

A default or a CHECK is taken over where SQLite understands it as PostgreSQL does; of any other it
is said that it is lost. Nothing is translated by guesses.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from decimal import Decimal
from typing import Final

from oxlite import sqlite3
from oxlite.promotion.forms import form_of
from oxlite.promotion.gathered import GATHERED, NUMBER
from oxlite.promotion.names import identifier, identifiers
from oxlite.promotion.origin import OriginColumn, OriginTable
from oxlite.promotion.plan import Note
from oxlite.promotion.source import ForeignKey
from oxlite.sqlite3 import Connection

__all__ = ["make_tables"]

_LITERAL: Final = re.compile(r"('(?:[^']|'')*')::[a-z ]+(?:\([\d,]+\))?")
_NUMBER: Final = re.compile(r"\(?(-?\d+(?:\.\d+)?)\)?(?:::[a-z ]+(?:\([\d,]+\))?)?")
_NOW: Final = {"now()", "CURRENT_TIMESTAMP"}
_TEXTS: Final = ("TEXT", "VARCHAR", "CHAR", "JSON", "DATE")

_CASTS: Final = re.compile(
    r"(?<=['\d)\w\"])::(?:text|character varying|bpchar|date)(?:\(\d+\))?(?![\w\[ (]*\[)"
    r"|(?<=['\d])::(?:numeric|integer|bigint|smallint|double precision)(?:\([\d,]+\))?"
)
_CONSTANT: Final = re.compile(
    r"(?<![\w\"])[('](-?\d+(?:\.\d+)?)[)']"
    r"::(?:numeric|integer|bigint|double precision)(?:\([\d,]+\))?"
)
_ANY_OF: Final = re.compile(r"(= ANY|<> ALL) \(\(?ARRAY\[([^\[\]]*)\]\)?(?:::[a-z ]+\[\])?\)")
_OTHERWISE: Final = re.compile(
    r"::|[~@#^/{}\[\]]|\b(?:ANY|ALL|ARRAY|LIKE|ILIKE|SIMILAR|POSITION|INTERVAL|AT)\b", re.IGNORECASE
)
_CALLS: Final = re.compile(r"(\w+|\")\s*\(")
_KNOWN: Final = {
    "length", "lower", "upper", "abs", "coalesce", "and", "or", "not", "in", "case", "when",
    "then", "else",
}  # fmt: skip
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")


def make_tables(here: Connection, tables: Mapping[str, OriginTable]) -> list[Note]:
    """Make them and put in what was gathered, in the transaction that is open.

    Returns:
        What they do not have.

    Raises:
        oxlite.sqlite3.Error: The file cannot be written.
    """
    here.create_function("oxlite_exact", 1, _exact, deterministic=True)
    notes: list[Note] = []
    unheld: dict[str, frozenset[ForeignKey]] = {}
    for table in tables.values():
        notes += table.notes
        without = unheld[table.name] = frozenset(
            key for key in table.foreign_keys if not _is_unique(tables[key.table], key.referred)
        )
        for key in without:
            text = f"{_foreign_key(key)}: UNIQUE of that is none in SQLite"
            notes.append(Note("lost", table.name, "", text))
        notes += _make(here, table, without)
    for table in tables.values():
        broken = _broken(here, table)
        if broken:
            here.execute(f"DROP TABLE {identifier(table.name)}")
            _make(here, table, broken | unheld[table.name])
            for key in broken:
                text = f"{_foreign_key(key)}: rows break it"
                notes.append(Note("lost", table.name, "", text))
    for table in tables.values():
        for index in table.indexes:
            if not index.is_constraint:
                unique = "UNIQUE " if index.is_unique else ""
                columns = ", ".join(
                    identifier(name) + (" DESC" if is_descending else "")
                    for name, is_descending in zip(index.columns, index.descending, strict=True)
                )
                here.execute(
                    f"CREATE {unique}INDEX {identifier(index.name)}"
                    f" ON {identifier(table.name)} ({columns})"
                )
    return notes


def _is_unique(table: OriginTable, columns: tuple[str, ...]) -> bool:
    keys = [table.primary_key, *(index.columns for index in table.indexes if index.is_unique)]
    return any(set(key) == set(columns) for key in keys if key)


def _exact(text: str | None) -> int | float | str | None:
    """A number, if it is the same as the text's digits; else the text."""
    if text is None:
        return None
    number = Decimal(text)
    if not number.is_finite():
        return text
    if number == number.to_integral_value() and -(2**63) <= number < 2**63:
        return int(number)
    nearest = float(text)
    return nearest if Decimal(repr(nearest)) == number else text


def _make(here: Connection, table: OriginTable, without: frozenset[ForeignKey]) -> list[Note]:
    name = identifier(table.name)
    place = f"{GATHERED}.{name}"
    notes, parts, values = list[Note](), list[str](), list[str]()
    for column in table.columns:
        quoted = identifier(column.name)
        form = form_of(column.type)
        is_number = _is_row_key(table, column)
        declared = "INTEGER" if is_number else form.declared
        if form.is_integer and not is_number and table.primary_key == (column.name,):
            declared = "BIGINT"  # INTEGER PRIMARY KEY would give numbers by itself
        if form.is_numeric and _is_too_long(here, place, quoted):
            declared = "TEXT"
            text = f"{column.type}: some values have more digits than a number: they are texts"
            notes.append(Note("changed", table.name, column.name, text))
        values.append(
            f"oxlite_exact({quoted})" if form.is_numeric and declared != "TEXT" else quoted
        )
        part = f"{quoted} {declared}"
        if not column.is_nullable:
            part += " NOT NULL"
        if is_number:
            part += " PRIMARY KEY AUTOINCREMENT"
        default, found = _default(table, column, declared)
        notes += found
        parts.append(part + default)
    keys = [key for key in table.foreign_keys if key not in without]
    constraints = [*_keys(table), *map(_foreign_key, keys)]
    checks, found = _checks(table, parts)
    notes += found
    order = identifiers(table.primary_key) if table.primary_key else NUMBER
    insert = (
        f"INSERT INTO main.{name} ({identifiers(column.name for column in table.columns)})"
        f" SELECT {', '.join(values)} FROM {place} ORDER BY {order}"
    )
    while True:
        held = [f"CONSTRAINT {identifier(one)} CHECK ({sql})" for one, sql in checks.items()]
        here.execute(f"CREATE TABLE main.{name} ({', '.join([*parts, *constraints, *held])})")
        try:
            here.execute(insert)
        except sqlite3.IntegrityError as error:
            # A row that PostgreSQL took is one that SQLite understands otherwise.
            broken = str(error).partition("CHECK constraint failed: ")[2]
            if broken not in checks:
                raise
            here.execute(f"DROP TABLE main.{name}")
            text = f"CHECK ({checks.pop(broken)}): SQLite understands it otherwise"
            notes.append(Note("lost", table.name, "", text))
        else:
            return notes


def _is_row_key(table: OriginTable, column: OriginColumn) -> bool:
    return (
        column.is_numbered
        and form_of(column.type).is_integer
        and table.primary_key == (column.name,)
    )


def _is_too_long(here: Connection, place: str, quoted: str) -> bool:
    found = here.execute(
        f"SELECT 1 FROM {place} WHERE typeof(oxlite_exact({quoted})) = 'text' LIMIT 1"
    )
    return found.fetchone() is not None


def _keys(table: OriginTable) -> Iterator[str]:
    key = table.primary_key
    if key and not any(_is_row_key(table, column) for column in table.columns):
        yield f"PRIMARY KEY ({identifiers(key)})"
    for index in table.indexes:
        if index.is_constraint:
            yield f"UNIQUE ({identifiers(index.columns)})"


def _foreign_key(key: ForeignKey) -> str:
    actions = "".join(
        f" ON {event} {action}"
        for event, action in (("UPDATE", key.on_update), ("DELETE", key.on_delete))
        if action != "NO ACTION"
    )
    deferred = " DEFERRABLE INITIALLY DEFERRED" if key.is_deferred else ""
    return (
        f"FOREIGN KEY ({identifiers(key.columns)}) REFERENCES {identifier(key.table)}"
        f" ({identifiers(key.referred)}){actions}{deferred}"
    )


def _broken(here: Connection, table: OriginTable) -> frozenset[ForeignKey]:
    """Foreign keys that rows break: PostgreSQL has some that were never looked at."""
    name = identifier(table.name)
    numbers = {row[3] for row in here.execute(f"PRAGMA main.foreign_key_check({name})")}
    if not numbers:
        return frozenset()
    columns: dict[int, list[str]] = {}
    for number, _, _, column, *_ in here.execute(f"PRAGMA main.foreign_key_list({name})"):
        columns.setdefault(number, []).append(column)
    found = {tuple(columns[number]) for number in numbers}
    return frozenset(key for key in table.foreign_keys if key.columns in found)


def _default(table: OriginTable, column: OriginColumn, declared: str) -> tuple[str, list[Note]]:
    default = column.default
    if column.is_generated:
        text = f"is a plain column: GENERATED ALWAYS AS ({default})"
        return "", [Note("lost", table.name, column.name, text)]
    if _is_row_key(table, column):
        return "", []
    if default is None and column.is_numbered:
        return "", [Note("lost", table.name, column.name, "GENERATED AS IDENTITY: no primary key")]
    if default is None or default.startswith("NULL::"):
        return "", []
    literal, number = _LITERAL.fullmatch(default), _NUMBER.fullmatch(default)
    plain = None
    if default in {"true", "false"}:
        plain = "1" if default == "true" else "0"
    elif number is not None:
        plain = number[1]
    elif default in _NOW and declared in {"DATETIME", "TIMESTAMPTZ"}:
        plain = "CURRENT_TIMESTAMP"
    elif default == "CURRENT_DATE" and declared == "DATE":
        plain = "CURRENT_DATE"
    elif literal is not None and (declared.startswith(_TEXTS) and declared != "DATETIME"):
        plain = literal[1]
    elif literal is not None and re.fullmatch(r"'-?\d+(\.\d+)?'", literal[1]):
        plain = literal[1].strip("'") if declared != "UUID TEXT" else None
    if plain is None:
        return "", [Note("lost", table.name, column.name, f"DEFAULT {default}")]
    return f" DEFAULT {plain}", []


def _checks(table: OriginTable, columns: list[str]) -> tuple[dict[str, str], list[Note]]:
    """Those that SQLite understands, by their names."""
    found, notes = {}, []
    with closing(sqlite3.connect(":memory:")) as scratch:
        for name, expression in table.checks:
            plain = _plain(expression)
            if plain is not None:
                try:
                    scratch.execute(f"CREATE TABLE t ({', '.join(columns)}, CHECK ({plain}))")
                    scratch.execute("DROP TABLE t")
                except sqlite3.Error:
                    plain = None
            if plain is None:
                text = f"CHECK {expression}"
                notes.append(Note("lost", table.name, "", text))
            else:
                found[name] = plain
    return found, notes


def _plain(expression: str) -> str | None:
    """A CHECK without casts that SQLite needs not; ``None`` where it has anything else."""
    if any("::" in one or "[" in one for one in _QUOTED.findall(expression)):
        return None  # it would be changed with the rest
    words = {"= ANY": "IN", "<> ALL": "NOT IN"}
    sql = _ANY_OF.sub(lambda one: f"{words[one[1]]} ({_CASTS.sub('', one[2])})", expression)
    for _ in range(2):  # ('-1'::integer)::numeric
        sql = _CONSTANT.sub(r"\1", sql)
    sql = _CASTS.sub("", sql)
    bare = _QUOTED.sub("q", sql)
    if _OTHERWISE.search(bare) is not None:
        return None
    if any(name.lower() not in _KNOWN for name in _CALLS.findall(bare)):
        return None
    return sql[1:-1] if sql.startswith("(") and sql.endswith(")") and _is_one(sql) else sql


def _is_one(sql: str) -> bool:
    """Whether the first parenthesis closes at the end."""
    depth = 0
    for place, letter in enumerate(_QUOTED.sub(lambda one: "q" * len(one[0]), sql)):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place == len(sql) - 1
    return False
