"""What queries can ask of an ``ArrayField``: its lookups and transforms.

Invariants: a lookup answers as PostgreSQL's operator does; NULL included, but with an
``ArrayIndex`` it is false. The index only narrows down which rows are looked at, so one that has
too much in it changes no answer.

Source: https://docs.djangoproject.com/en/5.2/ref/contrib/postgres/fields/#querying-arrayfield
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.core.exceptions import FieldError
from django.db.models import Func, IntegerField, Lookup, Subquery, Transform, Value
from django.db.models.lookups import Exact, FieldGetDbPrepValueMixin
from django.db.models.sql.query import Query

from oxlite import arrays
from oxlite.django.indexes import ArrayIndex

__all__ = ["LOOKUPS", "ArraySubquery", "IndexTransform", "SliceTransform"]

_Compiled = tuple[str, Sequence[Any]]


def _is_expression(value: object) -> bool:
    return hasattr(value, "resolve_expression")


class _Array(Func):
    """An array of expressions: ``field__contains=[F("number"), 2]``."""

    function = "json_array"

    def __init__(self, *values: Any, output_field: Any) -> None:
        base = output_field.base_field
        super().__init__(
            *(
                value if _is_expression(value) else Value(value, output_field=base)
                for value in values
            ),
            output_field=output_field,
        )

    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> _Compiled:
        """Write the elements as the field does."""
        base = self.output_field.base_field
        parts: list[str] = []
        parameters: list[Any] = []
        for expression in self.get_source_expressions():
            sql, of_one = compiler.compile(expression)
            parts.append(_written(base, sql))
            parameters += of_one
        return f"json_array({', '.join(parts)})", tuple(parameters)


_KINDS: Final = {
    "DecimalField": "decimal",
    "BooleanField": "truth",
    "BinaryField": "bytes",
    "ArrayField": "array",
}


def _written(base: Any, sql: str) -> str:
    """SQL of a value in a column, as it is written in an array."""
    kind = _KINDS.get(base.get_internal_type(), "")
    return arrays.written(sql, kind, getattr(base, "decimal_places", None))


def _value_of(base: Any, sql: str) -> str:
    """SQL of a value in an array, as it is in a column of its own."""
    return arrays.value_of(sql, _KINDS.get(base.get_internal_type(), ""))


class ArraySubquery(Subquery):
    """The rows of a query as an array: ``ArraySubquery(queryset.values("number"))``.

    The query has one column. What else is given is as for any subquery.
    """

    @property
    def output_field(self) -> Any:
        """An array of what the column is."""
        from oxlite.django.fields import ArrayField

        return ArrayField(self.query.output_field)

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **context: Any) -> _Compiled:
        """Gather them."""
        query = self.query.clone()
        query.subquery = True
        sql, parameters = query.as_sql(compiler, connection)
        written = _written(self.query.output_field, "value")
        return (
            f"(WITH element(value) AS MATERIALIZED {sql}"
            f" SELECT json_group_array({written}) FROM element)",
            parameters,
        )


class _OfTwoArrays(FieldGetDbPrepValueMixin):
    """A lookup with an array at its right."""

    gathers_rows = False
    """A query at the right means all of its rows, though each is an array."""

    def __init__(self, lhs: Any, rhs: Any) -> None:
        if isinstance(rhs, list | tuple):
            if any(_is_expression(value) for value in rhs):
                rhs = _Array(*rhs, output_field=lhs.output_field)
        elif isinstance(rhs, Query):
            if self.gathers_rows or not hasattr(rhs.output_field, "base_field"):
                rhs = ArraySubquery(rhs)
        elif rhs is not None and not _is_expression(rhs):
            raise FieldError(
                f"the lookup {self.lookup_name!r} of an array takes a list, not a"
                f" {type(rhs).__name__}"
            )
        super().__init__(lhs, rhs)


class _Operator(_OfTwoArrays, Lookup):
    """A lookup that has no operator in SQLite."""

    def as_sql(self, compiler: Any, connection: Any) -> _Compiled:
        """Ask it of the two arrays."""
        array, of_array = self.process_lhs(compiler, connection)
        others, of_others = self.process_rhs(compiler, connection)
        return self.sql(array, others), (*of_array, *of_others)

    def sql(self, array: str, others: str) -> str:
        """What is asked of two arrays."""
        raise NotImplementedError


class _Search(_Operator):
    """A lookup of elements; few constants are asked for one by one, and an index helps."""

    needs_all = False

    def as_sql(self, compiler: Any, connection: Any) -> _Compiled:
        """Ask it of the rows that the index has, if there is one; where all have it, of all."""
        if not isinstance(self.rhs, list | tuple):
            return super().as_sql(compiler, connection)
        others, (text,) = self.process_rhs(compiler, connection)
        wanted = arrays.atoms(text)
        if 0 < len(wanted) <= _FEW and None not in wanted:
            array, of_array = self.process_lhs(compiler, connection)
            build = arrays.contains_values if self.needs_all else arrays.overlaps_values
            sql = build(array, ["%s"] * len(wanted))
            parameters: Sequence[Any] = (*wanted, *of_array)
        else:
            sql, parameters = super().as_sql(compiler, connection)
        index = ArrayIndex.of(self.lhs)
        if index is None or not wanted:
            return sql, parameters
        quote = connection.ops.quote_name
        key = f"{quote(self.lhs.alias)}.{quote(self.lhs.target.model._meta.pk.column)}"
        are_several = len(wanted) > 1
        table = arrays.IndexTable(index.name, quote)
        rows = table.rows(others, with_all=self.needs_all, are_several=are_several)
        return f"({key} IN ({rows}) AND {sql})", (text, *parameters)


_FEW: Final = 8
"""How many constants are asked for one by one."""


class _Contains(_Search):
    lookup_name = "contains"
    needs_all = True

    def sql(self, array: str, others: str) -> str:
        return arrays.contains(array, others)


class _ContainedBy(_Operator):
    lookup_name = "contained_by"

    def as_sql(self, compiler: Any, connection: Any) -> _Compiled:
        array, of_array = self.process_lhs(compiler, connection)
        others, of_others = self.process_rhs(compiler, connection)
        return arrays.contains(others, array), (*of_others, *of_array)


class _Overlap(_Search):
    lookup_name = "overlap"
    gathers_rows = True

    def sql(self, array: str, others: str) -> str:
        return arrays.overlaps(array, others)


class _Exact(_OfTwoArrays, Exact):
    """Equal arrays are equal texts."""


class _Order(_Operator):
    """Which of two arrays is greater."""

    operator = ""

    def sql(self, array: str, others: str) -> str:
        base = self.lhs.output_field.base_field
        while hasattr(base, "base_field"):
            base = base.base_field
        return f"{arrays.compared(array, others, _value_of(base, 'atom'))} {self.operator} 0"


class _GreaterThan(_Order):
    lookup_name, operator = "gt", ">"


class _GreaterThanOrEqual(_Order):
    lookup_name, operator = "gte", ">="


class _LessThan(_Order):
    lookup_name, operator = "lt", "<"


class _LessThanOrEqual(_Order):
    lookup_name, operator = "lte", "<="


class _Length(Transform):
    lookup_name = "len"
    output_field = IntegerField()

    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> _Compiled:
        sql, parameters = compiler.compile(self.lhs)
        return arrays.length(sql), parameters


class IndexTransform(Transform):
    """One element; NULL where there is none.

    Args:
        index: Its place, counted from 1 as PostgreSQL does.
        base_field: What it is.
        expressions: The array.
    """

    def __init__(self, index: int, base_field: Any, *expressions: Any) -> None:
        super().__init__(*expressions)
        self.index = index
        self.base_field = base_field

    @property
    def output_field(self) -> Any:
        """The base field."""
        return self.base_field

    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> _Compiled:
        """Take it out of the array. Its place is no parameter, so that an index can have it."""
        sql, parameters = compiler.compile(self.lhs)
        return _value_of(self.base_field, arrays.element(sql, str(self.index - 1))), parameters


class SliceTransform(Transform):
    """An array of some elements, one after the other.

    Args:
        start: The place of the first one, counted from 1.
        end: That of the last one; ``None``: all that come after.
        expressions: The array.
    """

    def __init__(self, start: int, end: int | None, *expressions: Any) -> None:
        super().__init__(*expressions)
        self.start = start
        self.end = end

    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> _Compiled:
        """Take them out of the array."""
        sql, parameters = compiler.compile(self.lhs)
        end = None if self.end is None else str(self.end)
        return arrays.part(sql, str(self.start - 1), end), parameters


LOOKUPS: Final[Iterable[Any]] = (
    _Contains,
    _ContainedBy,
    _Overlap,
    _Exact,
    _GreaterThan,
    _GreaterThanOrEqual,
    _LessThan,
    _LessThanOrEqual,
    _Length,
)
"""What ``ArrayField`` registers."""
