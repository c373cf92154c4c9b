"""``sqlalchemy.ARRAY`` and PostgreSQL's own on SQLite: kept as JSON text.

A model that has ``postgresql.ARRAY`` need not be changed for one of the two databases: the dialect
compiles its type, its operators and the functions that go with it. How to use it:
``docs/arrays.md``.

Invariants: what is in a column is an array, or NULL (a CHECK in its definition sees to it);
decimals are written as text, never as floats. What has no counterpart is refused when it is
compiled.

Sources: https://docs.sqlalchemy.org/en/20/core/type_basics.html#sqlalchemy.types.ARRAY,
    https://docs.sqlalchemy.org/en/20/dialects/postgresql.html#array-types
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final, cast

from sqlalchemy import Column, exc
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.sqlite.base import SQLiteTypeCompiler
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import elements, functions, operators, sqltypes, visitors
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeEngine

from oxlite import arrays
from oxlite.sqlalchemy.array_indexes import ArrayIndexCompiler, index_of, index_table

__all__ = [
    "TYPE_NAME",
    "ArrayAsText",
    "ArrayCompiler",
    "ReflectedArray",
    "SQLiteDDLCompiler_oxlite",
    "SQLiteTypeCompiler_oxlite",
    "is_of_the_type",
    "render_item",
]

_Processor = Callable[[Any], Any]

TYPE_NAME: Final = "TEXT_ARRAY"
"""The type of the columns. SQLite takes it for a text, and a reflection for an array."""


class ArrayAsText(sqltypes.ARRAY[Any]):
    """What is done with the values of an array on their way."""

    def bind_processor(self, dialect: Dialect) -> _Processor:
        """What makes the text of a list."""
        item = self.item_type.dialect_impl(dialect)
        write = _writer(self.item_type, item.bind_processor(dialect))

        def process(value: Any) -> str | None:
            if value is None:
                return None
            if not isinstance(value, list | tuple):
                raise TypeError(f"an array is a list, not a {type(value).__name__}")
            return arrays.array_text(_mapped(value, write, self.dimensions, list))

        return process

    def result_processor(self, dialect: Dialect, coltype: object) -> _Processor:
        """What makes a list of a text."""
        item = self.item_type.dialect_impl(dialect)
        read = _reader(self.item_type, item.result_processor(dialect, coltype))
        collection = tuple if self.as_tuple else list

        def process(value: Any) -> Any:
            if value is None:
                return None
            found = json.loads(value)
            return _mapped(found, read, self.dimensions, collection)

        return process

    def literal_processor(self, dialect: Dialect) -> _Processor:
        """What makes a literal of a list."""
        bind = self.bind_processor(dialect)

        def process(value: Any) -> str:
            return "'" + str(bind(value)).replace("'", "''") + "'"

        return process


class ReflectedArray(postgresql.ARRAY[Any]):
    """An array as a reflection finds it: of elements that JSON has."""

    def __init__(self, item_type: Any = sqltypes.NULLTYPE, **arguments: Any) -> None:
        super().__init__(item_type, **arguments)


def _mapped(
    values: Sequence[Any], change: _Processor | None, depth: int | None, collection: type
) -> Any:
    """A collection of changed values; lists in it are arrays in an array."""
    return collection(
        None
        if value is None
        else _mapped(value, change, depth and depth - 1, collection)
        if depth != 1 and isinstance(value, list | tuple)
        else value
        if change is None
        else change(value)
        for value in values
    )


def _kind(item: TypeEngine[Any]) -> str:
    """What is special about elements of a type, in the words of ``oxlite.arrays``."""
    if isinstance(item, sqltypes.Numeric) and not isinstance(item, sqltypes.Float):
        return "decimal" if item.asdecimal else ""
    try:
        of_python = item.python_type
    except NotImplementedError:
        return ""
    return {bool: "truth", bytes: "bytes"}.get(of_python, "")


def _scale(item: TypeEngine[Any]) -> int | None:
    return getattr(item, "scale", None)


def _writer(item: TypeEngine[Any], bind: _Processor | None) -> _Processor | None:
    kind, scale = _kind(item), _scale(item)
    if kind == "decimal":
        return lambda value: arrays.decimal_text(Decimal(str(value)), scale)
    if kind == "truth":
        return bool if bind is None else lambda value: bool(bind(value))
    return bind


def _reader(item: TypeEngine[Any], result: _Processor | None) -> _Processor | None:
    kind = _kind(item)
    if kind == "decimal":
        return Decimal
    if kind == "bytes":
        return bytes.fromhex if result is None else lambda value: result(bytes.fromhex(value))
    return result


def render_item(kind: str, item: Any, context: Any) -> Any:
    """Write PostgreSQL's type into a migration: ``context.configure(render_item=render_item)``.

    Alembic knows how for ``sqlalchemy.ARRAY``, but for PostgreSQL's only where it is connected to
    PostgreSQL.

    Args:
        kind: What is to be rendered, in Alembic's words.
        item: That.
        context: Alembic's, of the migration that is generated.

    Returns:
        The text; ``False`` where it is no such type.

    Source: https://alembic.sqlalchemy.org/en/latest/autogenerate.html#affecting-the-rendering-of-types-themselves
    """
    if kind != "type" or type(item) is not postgresql.ARRAY:
        return False
    from alembic.autogenerate import render

    context.imports.add("from sqlalchemy.dialects import postgresql")
    of_item = render._repr_type(item.item_type, context)
    return f"postgresql.{item!r}".replace(f"({item.item_type!r}", f"({of_item}", 1)


_OWN_CHECK: Final = re.compile(
    re.escape(arrays.constraint("COLUMN")).replace("COLUMN", r"(\S+)", 1).replace("COLUMN", r"\1")
)


def is_of_the_type(check: str) -> bool:
    """Whether a CHECK is one that a column has by its type, and is given again with it."""
    return _OWN_CHECK.fullmatch(check.strip()) is not None


class SQLiteTypeCompiler_oxlite(SQLiteTypeCompiler):
    """Names types; arrays as well."""

    def visit_ARRAY(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        """The type of a column."""
        return TYPE_NAME


class SQLiteDDLCompiler_oxlite(ArrayIndexCompiler):
    """Writes definitions; a column with arrays has a CHECK."""

    def get_column_specification(self, column: Column[Any], **kwargs: Any) -> str:
        """A column of a table."""
        specification: str = super().get_column_specification(column, **kwargs)  # type: ignore[no-untyped-call]
        if isinstance(column.type._unwrapped_dialect_impl(self.dialect), sqltypes.ARRAY):
            check = arrays.constraint(self.preparer.format_column(column))
            return f"{specification} CHECK ({check})"
        return specification


_OF_TWO: Final = {
    "@>": arrays.contains,
    "<@": lambda array, others: arrays.contains(others, array),
    "&&": arrays.overlaps,
}

# What an index is looked into for.
_SEARCHES: Final = {"@>", "&&"}

_MIRRORED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_COMPARISONS: Final = {operators.lt, operators.le, operators.gt, operators.ge}


class ArrayCompiler(SQLCompiler):
    """Compiles what is said of arrays; a part of the dialect's compiler."""

    def visit_array(self, element: Any, **kw: Any) -> str:
        """``postgresql.array([…])``."""
        item = _item_of(element)
        written = (
            arrays.written(self.process(clause, **kw), _kind(item), _scale(item))
            for clause in element.clauses
        )
        return f"json_array({', '.join(written)})"

    def visit_custom_op_binary(self, element: Any, operator: Any, **kw: Any) -> str:
        """The operators of PostgreSQL's arrays."""
        build = _OF_TWO.get(operator.opstring)
        if build is None or not _is_array(element.left):
            text: str = super().visit_custom_op_binary(element, operator, **kw)  # type: ignore[no-untyped-call]
            return text
        kw["eager_grouping"] = False
        array, others = self._operand(element.left, kw), self._operand(element.right, kw)
        sql = build(array, others)
        if operator.opstring not in _SEARCHES or not _is_constant(element.right):
            return sql
        if not self._decides:
            return sql
        return self._narrowed(element.left, others, sql, operator.opstring == "@>", kw)

    def _narrowed(
        self, column: Any, others: str, sql: str, with_all: bool, kw: dict[str, Any]
    ) -> str:
        """A condition for rows that an index names, if the column has one."""
        found = index_of(column)
        if found is None:
            return sql
        index, key = found
        quote = self.preparer.quote_identifier
        every_row = quote(cast(Any, index.table).name), quote(key.name)
        rows = index_table(index, self.preparer).rows(others, with_all=with_all, if_empty=every_row)
        return f"({self._operand(key, kw)} IN ({rows}) AND {sql})"

    # Where a condition decides on a row, NULL is as good as false, which it is with an index. Where
    # something is made of its value (NOT, CASE, a function, a column), it is not.

    _decides = False
    """Whether what is compiled is a condition for rows, or what AND and OR make one of."""

    @contextmanager
    def _deciding(self, decides: bool) -> Iterator[None]:
        before, self._decides = self._decides, decides
        try:
            yield
        finally:
            self._decides = before

    def _generate_delimited_and_list(self, clauses: Any, **kw: Any) -> str:
        """WHERE and HAVING."""
        with self._deciding(True):
            text: str = super()._generate_delimited_and_list(clauses, **kw)  # type: ignore[no-untyped-call]
        return text

    def visit_join(self, join: Any, *args: Any, **kw: Any) -> str:
        """JOIN, with its ON."""
        with self._deciding(True):
            text: str = super().visit_join(join, *args, **kw)  # type: ignore[no-untyped-call]
        return text

    def visit_select(self, select_stmt: Any, *args: Any, **kw: Any) -> str:
        """SELECT."""
        with self._deciding(False):
            text: str = super().visit_select(select_stmt, *args, **kw)  # type: ignore[no-untyped-call]
        return text

    def visit_unary(self, unary: Any, *args: Any, **kw: Any) -> str:
        """NOT, among others."""
        with self._deciding(False):
            text: str = super().visit_unary(unary, *args, **kw)  # type: ignore[no-untyped-call]
        return text

    def visit_binary(self, binary: Any, *args: Any, **kw: Any) -> str:
        """Two operands; an operator of arrays may use an index."""
        is_search = getattr(binary.operator, "opstring", None) in _SEARCHES
        with self._deciding(self._decides and is_search):
            text: str = super().visit_binary(binary, *args, **kw)  # type: ignore[no-untyped-call]
        return text

    def visit_case(self, clause: Any, **kw: Any) -> str:
        """CASE."""
        with self._deciding(False):
            text: str = super().visit_case(clause, **kw)  # type: ignore[no-untyped-call]
        return text

    def visit_function(self, func: Any, *args: Any, **kw: Any) -> str:
        """A function."""
        with self._deciding(False):
            return super().visit_function(func, *args, **kw)

    def visit_getitem_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """An element, or a slice."""
        if not _is_array(binary.left):
            raise exc.UnsupportedCompilationError(self, operator)
        array = self.process(binary.left, **kw)
        if not isinstance(binary.right, elements.Slice):
            index = f"{self.process(binary.right, **kw)} - 1"
            return arrays.value_of(arrays.element(array, index), _kind(binary.type))
        bounds = binary.right
        if bounds.step is not None and not isinstance(bounds.step, elements.Null):
            raise exc.CompileError("a slice of an array has no step")
        first = None if _is_open(bounds.start) else f"({self.process(bounds.start, **kw)} - 1)"
        end = None if _is_open(bounds.stop) else self.process(bounds.stop, **kw)
        return arrays.part(array, first, end)

    def _generate_generic_binary(self, binary: Any, opstring: str, *args: Any, **kw: Any) -> str:
        """``ANY``, ``ALL``, and which of two arrays is greater."""
        if binary.operator is operators.concat_op and (
            _is_array(binary.left) or _is_array(binary.right)
        ):
            raise exc.CompileError("arrays are not concatenated in SQLite; do it in Python")
        left, right, operator = binary.left, binary.right, opstring.strip()
        if isinstance(left, elements.CollectionAggregate):
            left, right, operator = right, left, _MIRRORED.get(operator, operator)
        if isinstance(right, elements.CollectionAggregate) and _is_array(right.element):
            build = (
                arrays.some_element if right.operator is operators.any_op else arrays.every_element
            )
            array, kind = self._operand(right.element, kw), _kind(_item_of(right.element))
            return build(self._operand(left, kw), operator, array, kind)
        if binary.operator in _COMPARISONS and _is_array(binary.left):
            item = arrays.value_of("atom", _kind(_item_of(binary.left)))
            both = arrays.compared(self._operand(left, kw), self._operand(right, kw), item)
            return f"{both} {operator} 0"
        text: str = super()._generate_generic_binary(binary, opstring, *args, **kw)
        return text

    def _operand(self, element: Any, kw: dict[str, Any]) -> str:
        kw = {name: value for name, value in kw.items() if name != "eager_grouping"}
        text: str = element._compiler_dispatch(self, **kw)
        return text

    def visit_array_length_func(self, function: functions.Function[Any], **kw: Any) -> str:
        """``array_length(array, 1)``: NULL where there is none, as in PostgreSQL."""
        array, *dimension = function.clauses
        if [getattr(each, "value", None) for each in dimension] != [1]:
            raise exc.CompileError("array_length() takes the first dimension, 1")
        return f"nullif({arrays.length(self.process(array, **kw))}, 0)"

    def visit_cardinality_func(self, function: functions.Function[Any], **kw: Any) -> str:
        """``cardinality(array)``: how many elements there are, of all dimensions."""
        (array,) = function.clauses
        counted = arrays.elements("of_array", with_null=True)
        return (
            f"(SELECT CASE WHEN of_array IS NOT NULL THEN (SELECT count(*) FROM ({counted})) END"
            f" FROM (SELECT {self.process(array, **kw)} AS of_array))"
        )


def _type_of(element: Any) -> Any:
    of_element: Any = getattr(element, "type", None)
    return getattr(of_element, "impl_instance", of_element)


def _is_array(element: Any) -> bool:
    return isinstance(_type_of(element), sqltypes.ARRAY)


def _item_of(element: Any) -> TypeEngine[Any]:
    item: TypeEngine[Any] = _type_of(element).item_type
    return item


_CONSTANT: Final = (
    elements.BindParameter,
    elements.Cast,
    elements.ClauseList,
    elements.ExpressionClauseList,
    elements.False_,
    elements.Grouping,
    elements.Null,
    elements.True_,
    elements.TypeClause,
    elements.TypeCoerce,
)


def _is_constant(element: Any) -> bool:
    """Whether an operand is the same for each row."""
    return all(isinstance(each, _CONSTANT) for each in visitors.iterate(element))


def _is_open(bound: Any) -> bool:
    """Whether a slice has no such bound."""
    return bound is None or isinstance(bound, elements.Null)
