"""Arrays as JSON text: how they are written, and in SQL what PostgreSQL's arrays can do.

``oxlite.django.fields`` and ``oxlite.sqlalchemy.arrays`` put their operands into this SQL.

Invariants: each operand stands in what is made once, in the order of the arguments, so that the
parameters in it keep their places; what is made is one expression, and NULL if an operand is NULL;
NULL is no element that anything is equal to, as in PostgreSQL. An array is written in one way (no
spaces, no escapes that need not be), so equal arrays are equal texts.

An index of elements (``IndexTable``) is a table that triggers keep, whoever writes; both mappers
have it as ``ArrayIndex``. Invariants: no row is missing in it. There may be rows in it that have an
element no longer: ``INSERT OR REPLACE`` takes rows away without their triggers (unless ``PRAGMA
recursive_triggers`` is on), so who looks there looks at the rows as well. NULL is no element.

Sources: https://www.postgresql.org/docs/current/functions-array.html,
    https://sqlite.org/json1.html, https://sqlite.org/lang_createtrigger.html,
    https://sqlite.org/lang_replace.html
"""

import json
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Final

__all__ = [
    "IndexTable",
    "array_text",
    "atoms",
    "compared",
    "constraint",
    "contains",
    "contains_values",
    "decimal_text",
    "element",
    "elements",
    "every_element",
    "indexed",
    "indexes_found",
    "length",
    "overlaps",
    "overlaps_values",
    "part",
    "some_element",
    "value_of",
    "written",
]

_LARGEST: Final = 2**63 - 1

# Of arrays in arrays all elements, which is what PostgreSQL looks at.
_ELEMENTS: Final = "FROM json_tree({}) WHERE type <> 'array'"


def array_text(values: Iterable[Any], adapt: Callable[[Any], Any] | None = None) -> str:
    """An array as it is written.

    Args:
        values: Its elements: numbers, texts, truth values, ``None``, bytes (written as hexadecimal
            digits), and lists of them.
        adapt: Called with what is none of these, for what is to be written.

    Raises:
        OverflowError: An integer has more than 64 bits: SQLite would compare it as a float.
        ValueError: A float is infinite or no number, which JSON has no word for.
        TypeError: An element is nothing that JSON has.
    """
    values = list(values)
    _refuse_large(values)

    def plain(value: Any) -> Any:  # noqa: ANN401 - whatever is in the list
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value).hex().upper()
        if adapt is None:
            raise TypeError(f"an array cannot have an element of type {type(value).__name__}")
        adapted = adapt(value)
        if adapted is value:
            raise TypeError(f"an array cannot have an element of type {type(value).__name__}")
        return adapted

    try:
        return json.dumps(
            values, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=plain
        )
    except ValueError as error:
        if "float" not in str(error):  # a list that contains itself
            raise
        raise ValueError("an array has neither infinite floats nor NaN: JSON has none") from error


def _refuse_large(values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, int):
            if not -_LARGEST - 1 <= value <= _LARGEST:
                raise OverflowError("Python int too large for an element of an array: 64 bits")
        elif isinstance(value, list | tuple):
            _refuse_large(value)


def atoms(text: str) -> list[Any]:
    """The elements of an array as SQLite has them, those of arrays in it one after the other."""

    def flat(values: Iterable[Any]) -> Iterable[Any]:
        for value in values:
            if isinstance(value, list):
                yield from flat(value)
            else:
                yield int(value) if isinstance(value, bool) else value

    return list(flat(json.loads(text)))


def decimal_text(value: Decimal, digits: int | None) -> str:
    """A decimal as it is written: equal ones are equal texts.

    Args:
        value: The number.
        digits: How many it has after the point; ``None``: as many as it needs.
    """
    return f"{value.normalize():f}" if digits is None else f"{value:.{digits}f}"


def constraint(column: str, size: int | None = None) -> str:
    """What a CHECK says of a column: an array or NULL, written in the one way, not too long.

    Args:
        column: Its name, quoted.
        size: How many elements it has at most.
    """
    # AND may look at both sides, and json_type() fails for what is no JSON; CASE does not.
    rules = [f"json_type({column}) = 'array'", f"json({column}) = {column}"]
    if size is not None:
        rules.append(f"json_array_length({column}) <= {size:d}")
    return f"CASE WHEN json_valid({column}) THEN {' AND '.join(rules)} ELSE {column} IS NULL END"


def elements(array: str, *, with_null: bool = False) -> str:
    """A SELECT of an array's elements: one column, ``atom``.

    Args:
        array: SQL of it.
        with_null: NULL is among them.
    """
    select = f"SELECT atom {_ELEMENTS.format(array)}"
    return select if with_null else f"{select} AND atom IS NOT NULL"


def contains(array: str, others: str) -> str:
    """Whether an array has each element of another one."""
    return _of_two(array, others, f"NOT EXISTS ({_OTHERS} EXCEPT {_ARRAYS})")


def overlaps(array: str, others: str) -> str:
    """Whether two arrays have an element in common."""
    return _of_two(array, others, f"EXISTS ({_OTHERS} INTERSECT {_ARRAYS})")


def contains_values(array: str, placeholders: Iterable[str]) -> str:
    """Whether an array has each of a few values, which is quicker to ask than with an array.

    Args:
        array: SQL of it; it stands after the values.
        placeholders: SQL of each value; none is NULL.
    """
    found = (f"EXISTS (SELECT 1 {_IN_ARRAY} AND atom = {each})" for each in placeholders)
    return _of_one(array, " AND ".join(found))


def overlaps_values(array: str, placeholders: Iterable[str]) -> str:
    """Whether an array has one of a few values; as ``contains_values``."""
    return _of_one(array, f"EXISTS (SELECT 1 {_IN_ARRAY} AND atom IN ({', '.join(placeholders)}))")


def _of_one(array: str, answer: str) -> str:
    return (
        f"(SELECT CASE WHEN of_array IS NOT NULL THEN {answer} END"
        f" FROM (SELECT {array} AS of_array))"
    )


_IN_ARRAY: Final = _ELEMENTS.format("of_array")
_ARRAYS: Final = elements("of_array")
_OTHERS: Final = elements("of_others", with_null=True)


def _of_two(array: str, others: str, answer: str) -> str:
    return (
        "(SELECT CASE WHEN of_array IS NOT NULL AND of_others IS NOT NULL THEN"
        f" {answer} END FROM (SELECT {array} AS of_array, {others} AS of_others))"
    )


_NUMBERED: Final = (
    "SELECT {side} AS side, row_number() OVER (ORDER BY id) AS place, {value} AS value"
    " FROM json_tree({array}) WHERE type <> 'array'"
)


def compared(array: str, others: str, value: str = "atom") -> str:
    """-1, 0 or 1: how an array compares with another one, by the first elements that differ.

    NULL is greater than any other element, and an array greater than one that it begins with.
    Arrays in arrays are compared element by element, and by their number where all are equal.

    Args:
        array: SQL of the one.
        others: SQL of the other one.
        value: What is compared of an element, ``atom``.
    """
    mine = _NUMBERED.format(side=1, array="of_array", value=value)
    theirs = _NUMBERED.format(side=-1, array="of_others", value=value)
    # Of arrays in arrays that have the same elements, the one with fewer arrays comes first.
    lengths = length("of_array"), length("of_others")
    longer, shorter = " > ".join(lengths), " < ".join(lengths)
    # By GROUP BY, since SQLite joins two lists by looking at each pair.
    return _of_two(
        array,
        others,
        "coalesce((SELECT CASE WHEN sum(side) <> 0 THEN sum(side)"
        " WHEN max(value) FILTER (WHERE side = 1) IS NULL THEN 1"
        " WHEN max(value) FILTER (WHERE side = -1) IS NULL THEN -1"
        " WHEN max(value) FILTER (WHERE side = 1) > max(value) FILTER (WHERE side = -1) THEN 1"
        f" ELSE -1 END FROM ({mine} UNION ALL {theirs}) GROUP BY place"
        " HAVING sum(side) <> 0 OR max(value) FILTER (WHERE side = 1)"
        " IS NOT max(value) FILTER (WHERE side = -1) ORDER BY place LIMIT 1),"
        f" ({longer}) - ({shorter}))",
    )


def length(array: str) -> str:
    """How many elements an array has; of arrays in an array, how many arrays."""
    return f"json_array_length({array})"


def element(array: str, index: str) -> str:
    """One element, by its place: 0 is the first. NULL where there is none.

    Args:
        array: SQL of the array.
        index: SQL of the place; digits, or an expression.
    """
    if index.isdigit():
        return f"json_extract({array}, '$[{index}]')"
    # A place before the first is no path of SQLite's; without a path the answer is NULL.
    place = f"(SELECT place FROM (SELECT {index} AS place) WHERE place >= 0)"
    return f"json_extract({array}, '$[' || {place} || ']')"


def part(array: str, first: str | None, end: str | None) -> str:
    """An array of the elements from a place on, up to another one that does not belong to it.

    Args:
        array: SQL of the array.
        first: SQL of the first place, 0 being that of the first element; ``None``: the beginning.
        end: SQL of the place at which it ends; ``None``: that of the array.
    """
    bounds = []
    if first is not None:
        bounds.append(f"key >= {first}")
    if end is not None:
        bounds.append(f"key < {end}")
    where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
    # As they are written, by ->: a value that is made JSON again may be a float of other digits.
    return (
        "(SELECT CASE WHEN of_array IS NOT NULL THEN (SELECT"
        " '[' || coalesce(group_concat(of_array -> fullkey, ',' ORDER BY key), '') || ']'"
        f" FROM json_each(of_array){where}) END FROM (SELECT {array} AS of_array))"
    )


def some_element(value: str, operator: str, array: str, kind: str = "") -> str:
    """Whether a value compares so with an element of an array: ``value = ANY(array)``.

    Args:
        value: SQL of it.
        operator: That of the comparison.
        array: SQL of the array.
        kind: That of its elements, as for ``written``.
    """
    condition = f"of_value {operator} {value_of('atom', kind)}"
    return _of_each(value, array, f"EXISTS (SELECT 1 {_IN_ARRAY} AND {condition})")


def every_element(value: str, operator: str, array: str, kind: str = "") -> str:
    """Whether a value compares so with each element of an array: ``value = ALL(array)``.

    The arguments are those of ``some_element``.
    """
    condition = f"(of_value {operator} {value_of('atom', kind)}) IS NOT TRUE"
    return _of_each(value, array, f"NOT EXISTS (SELECT 1 {_IN_ARRAY} AND {condition})")


def _of_each(value: str, array: str, answer: str) -> str:
    return (
        f"(SELECT CASE WHEN of_array IS NOT NULL THEN {answer} END"
        f" FROM (SELECT {value} AS of_value, {array} AS of_array))"
    )


def written(value: str, kind: str, digits: int | None = None) -> str:
    """What is written of a value in a column, as an element of ``json_array()``.

    Args:
        value: SQL of it.
        kind: ``"decimal"``, ``"truth"``, ``"bytes"``, ``"array"``, or what JSON has as SQLite has.
        digits: How many a decimal has after the point; ``None``: as many as it needs.
    """
    # A subtype does not come out of a SELECT for certain; a text does.
    if kind == "array":
        return f"json({value})"
    if kind == "truth":
        return f"json(CASE {value} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END)"
    texts = {
        # Without a percent sign, which some who pass SQL on take for a parameter.
        "decimal": "CAST(n AS TEXT)" if digits is None else f"printf(char(37) || '.{digits}f', n)",
        "bytes": "hex(n)",
    }
    if kind not in texts:
        return value
    return f"(SELECT {texts[kind]} FROM (SELECT {value} AS n) WHERE n IS NOT NULL)"


def value_of(element: str, kind: str) -> str:
    """The value of an element, as it is in a column of its own.

    Args:
        element: SQL of it.
        kind: As for ``written``.
    """
    if kind == "decimal":
        return f"CAST({element} AS NUMERIC)"
    return f"unhex({element})" if kind == "bytes" else element


_EVENTS: Final = ("insert", "update", "delete")
_COLUMNS: Final = '(value NOT NULL, "row" NOT NULL, PRIMARY KEY (value, "row")) WITHOUT ROWID'

_FORGET: Final = 'DELETE FROM {index} WHERE "row" = OLD.{key} AND value IN ({elements});'
_NOTE: Final = (
    'INSERT INTO {index} (value, "row") SELECT atom, NEW.{key} FROM ({elements}) WHERE true'
    " ON CONFLICT DO NOTHING;"
)
_COUNTED: Final = 1000
"""How many rows are counted to find out which element fewer have."""


class IndexTable:
    """The table of an index: elements, and the rows that have them.

    Args:
        name: Its name, and what those of its triggers begin with.
        quote: What quotes a name. It does so always: ``indexes_found`` looks for that form.
        schema: SQL of the database that it is in with the table, if that is to be said.
    """

    def __init__(self, name: str, quote: Callable[[str], str], schema: str | None = None) -> None:
        self.name = name
        self._quote = quote
        self._schema = "" if schema is None else f"{schema}."

    @property
    def definition(self) -> str:
        """What SQLite has of it; a table of its name that has another one is another table."""
        return f"CREATE TABLE {self._quote(self.name)} {_COLUMNS}"

    def making(
        self, table: str, column: str, key: str, *, if_not_exists: bool = False
    ) -> list[str]:
        """The statements that make and fill it.

        Args:
            table: SQL of the table whose column it is of, without a schema.
            column: SQL of the column.
            key: SQL of the column that identifies rows. VACUUM leaves it alone, but not row ids.
            if_not_exists: What is there already stays.
        """
        index, guard = self._quote(self.name), "IF NOT EXISTS " if if_not_exists else ""

        def trigger(event: str, when: str, *actions: str) -> str:
            done = " ".join(
                action.format(index=index, key=key, elements=elements(f"{row}.{column}"))
                for action, row in ((each, "OLD" if each is _FORGET else "NEW") for each in actions)
            )
            name = f"{self._schema}{self._quote(f'{self.name}_{event}')}"
            return (
                f"CREATE TRIGGER {guard}{name} AFTER {event.upper()} ON {table}"
                f" WHEN {when} BEGIN {done} END"
            )

        changed = f"OLD.{column} IS NOT NEW.{column} OR OLD.{key} IS NOT NEW.{key}"
        return [
            f"CREATE TABLE {guard}{self._schema}{index} {_COLUMNS}",
            trigger("insert", f"NEW.{column} IS NOT NULL", _NOTE),
            trigger("update", changed, _FORGET, _NOTE),
            trigger("delete", f"OLD.{column} IS NOT NULL", _FORGET),
            f'INSERT INTO {self._schema}{index} (value, "row") SELECT DISTINCT atom, "row"'
            f' FROM (SELECT {key} AS "row", {column} AS of_row FROM {self._schema}{table}),'
            " json_tree(of_row) WHERE type <> 'array' AND atom IS NOT NULL ORDER BY 1, 2"
            " ON CONFLICT DO NOTHING",
        ]

    def removing(self, *, if_exists: bool = True) -> list[str]:
        """The statements that remove it, and its triggers if they are there.

        Args:
            if_exists: That it is not there is no error.
        """
        triggers = (self._quote(f"{self.name}_{event}") for event in _EVENTS)
        guard = "IF EXISTS " if if_exists else ""
        return [
            *(f"DROP TRIGGER IF EXISTS {self._schema}{trigger}" for trigger in triggers),
            f"DROP TABLE {guard}{self._schema}{self._quote(self.name)}",
        ]

    def rows(
        self,
        others: str,
        *,
        with_all: bool,
        are_several: bool = True,
        if_empty: tuple[str, str] | None = None,
    ) -> str:
        """A SELECT of the rows that may have elements of another array.

        Args:
            others: SQL of that array.
            with_all: They have all of its elements. Of those, the one that the fewest rows have is
                looked for.
            are_several: It has more elements than one, or may have.
            if_empty: It may have none at all, which each row has. SQL of the table, without a
                schema, and of its key, to find them all.
        """
        index, wanted = f"{self._schema}{self._quote(self.name)}", elements(others)
        if not with_all:
            return f'SELECT "row" FROM {index} WHERE value IN ({wanted})'
        if are_several:
            found = f"SELECT 1 FROM {index} AS entry WHERE entry.value = atom LIMIT {_COUNTED}"
            wanted = f"{wanted} ORDER BY (SELECT count(*) FROM ({found}))"
        select = f'SELECT "row" FROM {index} WHERE value = ({wanted} LIMIT 1)'
        if if_empty is None:
            return select
        table, key = if_empty
        # CROSS JOIN, so that SQLite begins with what has no row where there are elements.
        no_element = f"SELECT 1 WHERE NOT EXISTS (SELECT 1 {_ELEMENTS.format(others)})"
        return (
            f"{select} UNION ALL SELECT entry.{key} FROM ({no_element})"
            f" CROSS JOIN {self._schema}{table} AS entry"
        )


def indexes_found(schema: str = "main", *, of_one: bool = False) -> str:
    """A SELECT of the indexes in a database that are whole: their names, and a trigger's SQL.

    Args:
        schema: Its name, quoted.
        of_one: Those of one table, whose name is the parameter; otherwise all.
    """
    definition = f"""'CREATE TABLE "' || replace(entry.name, '"', '""') || '" {_COLUMNS}'"""
    others = ", ".join(f"entry.name || '_{event}'" for event in _EVENTS[1:])
    return (
        f"SELECT entry.name, noted.sql FROM {schema}.sqlite_schema AS noted"
        f" JOIN {schema}.sqlite_schema AS entry ON noted.name = entry.name || '_{_EVENTS[0]}'"
        " WHERE noted.type = 'trigger' AND entry.type = 'table'"
        f" AND entry.sql = {definition}"
        f" AND {len(_EVENTS) - 1} = (SELECT count(*) FROM {schema}.sqlite_schema AS kept"
        " WHERE kept.type = 'trigger' AND kept.tbl_name = noted.tbl_name"
        f" AND kept.name IN ({others}))"
        f"{' AND lower(noted.tbl_name) = lower(?)' if of_one else ''} ORDER BY 1"
    )


# ALTER TABLE writes names into triggers in a form of its own.
_NAME: Final = r'("(?:[^"]|"")*"|\w+)'
_NOTED: Final = re.compile(
    re.escape(_NOTE.format(index="INDEX", key="KEY", elements=elements("NEW.COLUMN")))
    .replace("INDEX", _NAME, 1)
    .replace("KEY", _NAME, 1)
    .replace("COLUMN", _NAME, 1)
)


def indexed(trigger: str) -> tuple[str, str] | None:
    """What an index is of, as its trigger has it.

    Args:
        trigger: The SQL that ``indexes_found`` has found.

    Returns:
        The names of the column and of the key; ``None`` if it is another trigger.
    """
    found = _NOTED.search(trigger)
    if found is None:
        return None
    key, column = (
        name[1:-1].replace('""', '"') if name.startswith('"') else name
        for name in found.groups()[1:]
    )
    return column, key
