"""What a value of PostgreSQL's is in SQLite: as Django and SQLAlchemy write it there themselves.

PostgreSQL writes the values (an expression for each type); a column is declared so that
``oxlite promote`` makes the same type of it again, where it knows one, and so that SQLite changes
nothing: ``JSON TEXT`` keeps a text of digits a text (https://sqlite.org/datatype3.html#affinity).

Invariant: nothing is rounded. Two things have no counterpart: an interval's months are 30 days, and
what SQLite has no value for (infinite times, years before 1) is PostgreSQL's text.
"""

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Form", "bare", "form_of"]

_MODIFIED: Final = re.compile(
    r"([a-z ]+?)\s*(?:\((-?\d+)(?:,(-?\d+))?\))?( with(?:out)? time zone)?(\[\])?"
)
_MOMENT: Final = (
    "CASE WHEN isfinite({c}) AND {c} >= '0001-01-01' AND {c} < '10000-01-01'"
    " THEN to_char({value}, '{format}') ELSE {c}::text END"
)
_TO_SECONDS: Final = "YYYY-MM-DD HH24:MI:SS.US"
_JSON_ELEMENTS: Final = {
    "boolean", "smallint", "integer", "bigint", "double precision", "text", "character varying",
}  # fmt: skip
"""Types whose arrays ``array_to_json`` writes as the mappers do."""


@dataclass(frozen=True, slots=True)
class Form:
    """What becomes of a type.

    Attributes:
        declared: The column's type in SQLite.
        read: PostgreSQL's expression of the value; ``{c}`` is the column.
        is_float: Whether it may be NaN, which SQLite would take for NULL.
        is_numeric: Whether it is a text of digits, to become a number where that is exact.
        is_integer: Whether it is a whole number.
        has_fraction: Whether it ends with a fraction of a second.
    """

    declared: str
    read: str
    is_float: bool = False
    is_numeric: bool = False
    is_integer: bool = False
    has_fraction: bool = False

    def read_of(self, column: str, *, is_djangos: bool = False) -> str:
        """``read``, of a column (in quotes).

        Args:
            column: That.
            is_djangos: Whether a fraction that is zero is left out, as Django does; SQLAlchemy
                writes it. Both read either, but look for the text that they write.
        """
        read = self.read.replace("{c}", column)
        return f"replace({read}, '.000000', '')" if is_djangos and self.has_fraction else read


def _moment(value: str, pattern: str) -> str:
    return _MOMENT.replace("{value}", value).replace("{format}", pattern)


_FORMS: Final = {
    "boolean": Form("BOOLEAN", "{c}::int"),
    "smallint": Form("SMALLINT", "{c}", is_integer=True),
    "integer": Form("INTEGER", "{c}", is_integer=True),
    "bigint": Form("BIGINT", "{c}", is_integer=True),
    # By its digits: 0.1 is 0.1, and not what float8 makes of float4's bits.
    "real": Form("REAL", "{c}::text::float8", is_float=True),
    "double precision": Form("DOUBLE PRECISION", "{c}", is_float=True),
    "text": Form("TEXT", "{c}"),
    "bytea": Form("BLOB", "{c}"),
    "date": Form("DATE", _moment("{c}", "YYYY-MM-DD")),
    "time without time zone": Form("TIME", "to_char({c}, 'HH24:MI:SS.US')", has_fraction=True),
    "timestamp without time zone": Form("DATETIME", _moment("{c}", _TO_SECONDS), has_fraction=True),
    "timestamp with time zone": Form(
        "TIMESTAMPTZ", _moment("{c} AT TIME ZONE 'UTC'", _TO_SECONDS), has_fraction=True
    ),
    "interval": Form("INTERVAL", "trunc(extract(epoch FROM {c}) * 1000000)::text"),
    "json": Form("JSON TEXT", "{c}::text"),
    "jsonb": Form("JSONB TEXT", "{c}::text"),
    "uuid": Form("UUID TEXT", "replace({c}::text, '-', '')"),
    "inet": Form(
        "TEXT",
        "CASE WHEN masklen({c}) = CASE family({c}) WHEN 4 THEN 32 ELSE 128 END THEN host({c})"
        " ELSE {c}::text END",
    ),
}
_ANY: Final = Form("TEXT", "{c}::text")


def form_of(name: str) -> Form:
    """What becomes of a type, by PostgreSQL's name for it; of an unknown one, its text."""
    found = _MODIFIED.fullmatch(name)
    if found is None:
        return _ANY
    base, first, second, zone, is_array = found.groups()
    base += zone or ""
    if is_array:
        return _array(base, has_scale=first is not None)
    sizes = "" if first is None else f"({first})" if second is None else f"({first},{second})"
    match base:
        case "character varying":
            return Form(f"VARCHAR{sizes}", "{c}")
        case "character":
            return Form(f"CHAR{sizes}", "{c}::text")
        case "numeric":
            return Form(
                f"DECIMAL{sizes}" if sizes else "NUMERIC", "trim_scale({c})::text", is_numeric=True
            )
    return _FORMS.get(base, _ANY)


def _array(element: str, *, has_scale: bool) -> Form:
    """JSON as ``oxlite.arrays`` writes it; of one dimension, where PostgreSQL's elements differ."""
    whole = "array_to_json({c})::text"
    if element not in _JSON_ELEMENTS:
        one = form_of(element).read_of("e")
        if element == "bytea":
            one = "encode(e, 'hex')"
        elif element == "numeric" and has_scale:
            one = "e::text"  # with all digits of its scale
        whole = (
            f"CASE WHEN array_ndims({{c}}) = 1 THEN array_to_json(ARRAY(SELECT ({one})::text"
            " FROM unnest({c}) WITH ORDINALITY AS u(e, n) ORDER BY n))::text"
            f" ELSE {whole} END"
        )
    return Form("TEXT_ARRAY", whole, has_fraction=form_of(element).has_fraction)


def bare(name: str) -> str:
    """A type without its size, for a cast that is not to cut a value off."""
    found = re.sub(r"\([^)]*\)", "", name).strip()
    return "bpchar" if found == "character" else found
