"""How a value of SQLite's gets into a column of PostgreSQL's, for each type of those.

A type has four SQL expressions. In SQLite: whether a value fits, how COPY reads it, and how it is
compared; in PostgreSQL: how it is compared. The last two give the same text for the same value.

Invariant: nothing is changed on the way but the form. What would lose something does not fit.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from oxlite.promotion.errors import PromotionError
from oxlite.promotion.names import literal

__all__ = ["Type", "type_of"]

_DATE: Final = "(length({c}) = 10 AND date({c}) IS {c} AND {c} GLOB '[0-9]*' AND {c} >= '0001')"
_TIME_FITS: Final = (
    "CASE WHEN length({t}) = 5 THEN strftime('%H:%M', {t}) IS {t}"
    " WHEN length({t}) = 8 THEN strftime('%H:%M:%S', {t}) IS {t}"
    " ELSE length({t}) BETWEEN 10 AND 15 AND strftime('%H:%M:%S', substr({t}, 1, 8)) IS"
    " substr({t}, 1, 8) AND substr({t}, 9, 1) = '.' AND substr({t}, 10) GLOB '[0-9]*'"
    " AND substr({t}, 10) NOT GLOB '*[^0-9]*' END"
)
_TIME_PADDED: Final = (
    "CASE WHEN length({t}) = 5 THEN {t} || ':00.000000'"
    " WHEN length({t}) = 8 THEN {t} || '.000000' ELSE substr({t} || '000000', 1, 15) END"
)
_NO_NUL: Final = "instr({c}, char(0)) = 0"
"""Most of SQLite's functions read a text up to its first NUL."""
_WHOLE_DOUBLE: Final = 2**53


@dataclass(frozen=True, slots=True)
class Type:
    """A type of PostgreSQL's, with its modifiers.

    ``{c}`` is the column, in each expression.

    Attributes:
        name: As PostgreSQL writes it.
        fits: 1 for what it can hold. (Nothing is asked of NULL.)
        written: As COPY reads it, before it is escaped.
        compared: The text that stands for the value.
        compared_there: The same of what PostgreSQL has.
        is_text: Whether ``written`` is any text: what COPY has a meaning for is escaped, and what
            is no text of PostgreSQL's does not fit.
        letter: By which the driver's ``oxlite_copy_row`` knows it; ``x`` where it does not.
        is_judge: Whether ``written`` and ``compared`` are NULL for what does not fit, so that it
            need not be asked before.
    """

    name: str
    fits: str
    written: str
    compared: str
    compared_there: str
    is_text: bool = False
    is_judge: bool = False
    letter: str = "x"

    def fits_of(self, column: str) -> str:
        """``fits``, of a column (in quotes)."""
        fits = self.fits.replace("{c}", column)
        if self.is_text:
            return f"(({fits}) AND {_copied(self.written.replace('{c}', column))} IS NOT NULL)"
        return fits

    def written_of(self, column: str) -> str:
        """``written``, escaped, of a column; NULL of what does not fit."""
        written = self.written.replace("{c}", column)
        if self.is_text:
            fits = self.fits.replace("{c}", column)
            return f"CASE WHEN {column} IS NULL THEN '\\N' WHEN {fits} THEN {_copied(written)} END"
        return self._of_what_fits(column, written, "'\\N'")

    def compared_of(self, column: str, *, is_known_to_fit: bool = False) -> str:
        """``compared``, of a column; NULL of what does not fit, unless all is known to."""
        compared = self.compared.replace("{c}", column)
        if is_known_to_fit:
            return f"CASE WHEN {column} IS NULL THEN char(30) ELSE {compared} END"
        return self._of_what_fits(column, compared, "char(30)")

    def _of_what_fits(self, column: str, sql: str, null: str) -> str:
        if self.is_judge:
            return f"CASE WHEN {column} IS NULL THEN {null} ELSE {sql} END"
        return f"CASE WHEN {column} IS NULL THEN {null} WHEN {self.fits_of(column)} THEN {sql} END"

    def compared_there_of(self, column: str) -> str:
        """``compared_there``, of a column."""
        return f"coalesce({self.compared_there.replace('{c}', column)}, chr(30))"


def _copied(text: str) -> str:
    return f"oxlite_copy_text({text})"


def _integer(name: str, bits: int) -> Type:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    fits = f"typeof({{c}}) = 'integer' AND {{c}} BETWEEN {least} AND {most}"
    if bits == 64:
        fits = "typeof({c}) = 'integer'"
    letter = {16: "s", 32: "i", 64: "l"}[bits]
    return Type(name, fits, "{c}", "{c}", "{c}::text", letter=letter)


def _text(name: str, most: int | None = None) -> Type:
    fits = "typeof({c}) <> 'blob'"
    if most is not None:
        fits += f" AND length({{c}}) <= {most}"
    letter = "t" if most is None else f"v{most},"
    text = "CAST({c} AS TEXT)"
    return Type(name, fits, text, text, "{c}::text", is_text=True, letter=letter)


def _numeric(name: str, precision: int | None, scale: int | None) -> Type:
    arguments = "NULL, NULL" if precision is None else f"{precision}, {scale or 0}"
    bare = "CASE typeof({c}) WHEN 'text' THEN CAST({c} AS BLOB) ELSE {c} END"
    written = f"CASE WHEN typeof({{c}}) <> 'blob' THEN oxlite_decimal({bare}, {arguments}) END"
    there = "trim_scale({c})::text"
    return Type(name, f"{written} IS NOT NULL", written, written, there, is_judge=True)


def _float(name: str, size: int) -> Type:
    bits = f"oxlite_float_bits({{c}}, {size})"
    fits = (
        "(typeof({c}) = 'real' OR typeof({c}) = 'integer'"
        f" AND {{c}} BETWEEN -{_WHOLE_DOUBLE} AND {_WHOLE_DOUBLE})"
    )
    if size == 4:
        fits = f"CASE WHEN {fits} THEN {bits} IS NOT NULL ELSE 0 END"
    return Type(
        name,
        fits,
        "oxlite_float_text({c})",
        bits,
        f"encode(float{size}send({{c}}), 'hex')",
        letter="r" if size == 8 else "x",
    )


_MOMENT_FITS: Final = (
    f"({_NO_NUL} AND {{c}} >= '0001' AND {{c}} GLOB '[0-9]*' AND CASE length({{c}})"
    " WHEN 10 THEN date({c}) IS {c}"
    " WHEN 16 THEN strftime('%Y-%m-%d %H:%M', {c}) IS replace({c}, 'T', ' ')"
    " WHEN 19 THEN datetime({c}) IS replace({c}, 'T', ' ')"
    " ELSE length({c}) BETWEEN 21 AND 26 AND substr({c}, 20, 1) = '.'"
    " AND substr({c}, 21) NOT GLOB '*[^0-9]*'"
    " AND datetime(substr({c}, 1, 19)) IS replace(substr({c}, 1, 19), 'T', ' ') END)"
)
_MOMENT_PADDED: Final = (
    "CASE length({c}) WHEN 26 THEN replace({c}, 'T', ' ') WHEN 10 THEN {c} || ' 00:00:00.000000'"
    " WHEN 16 THEN replace({c}, 'T', ' ') || ':00.000000'"
    " WHEN 19 THEN replace({c}, 'T', ' ') || '.000000'"
    " ELSE substr(replace({c}, 'T', ' ') || '000000', 1, 26) END"
)


def _timestamp() -> Type:
    written = (
        f"CASE WHEN typeof({{c}}) = 'text' THEN {_MOMENT_PADDED} ELSE oxlite_moment({{c}}) END"
    )
    return Type(
        "timestamp without time zone",
        f"CASE typeof({{c}}) WHEN 'text' THEN {_MOMENT_FITS} WHEN 'blob' THEN 0"
        " ELSE oxlite_moment({c}) IS NOT NULL END",
        written,
        written,
        "to_char({c}, 'YYYY-MM-DD HH24:MI:SS.US')",
        letter="m",
    )


def _timestamp_with_zone() -> Type:
    plain = _timestamp()
    has_offset = (
        "typeof({c}) = 'text' AND (substr({c}, -1) IN ('Z', 'z') OR substr({c}, 17) GLOB '*[+-]*')"
    )
    utc = "oxlite_utc(CAST({c} AS BLOB))"
    written = f"CASE WHEN {has_offset} THEN {utc} ELSE {plain.written} END"
    return Type(
        "timestamp with time zone",
        f"CASE WHEN {has_offset} THEN {utc} IS NOT NULL ELSE {plain.fits} END",
        f"{written} || '+00'",
        written,
        "to_char({c} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')",
        letter="z",
    )


_IS_JSONB: Final = (
    "typeof({c}) <> 'blob' AND CASE WHEN instr({c}, '\\u') = 0 AND length({c}) < 10000"
    " AND {c} NOT GLOB '*[eE][-+0-9][0-9][0-9][0-9]*' THEN json_valid({c})"
    " ELSE oxlite_json(CAST({c} AS BLOB)) IS NOT NULL END"
)
"""A number in a column that is declared as JSON is stored as one. No call into Python where neither
an escape nor a number may be beyond what a jsonb holds."""

_IS_UUID: Final = (
    "CASE typeof({c}) WHEN 'blob' THEN length({c}) = 16 WHEN 'text' THEN"
    " length(replace({c}, '-', '')) = 32 AND replace({c}, '-', '') NOT GLOB '*[^0-9a-fA-F]*'"
    f" AND length({{c}}) IN (32, 36) AND {_NO_NUL} ELSE 0 END"
)
_UUID_TEXT: Final = (
    "lower(CASE WHEN typeof({c}) = 'blob' THEN hex({c}) ELSE replace({c}, '-', '') END)"
)

_TYPES: Final = {
    "boolean": Type(
        "boolean",
        "CASE typeof({c}) WHEN 'integer' THEN {c} IN (0, 1) WHEN 'text'"
        " THEN lower({c}) IN ('0', '1', 't', 'f', 'true', 'false') ELSE 0 END",
        "CASE WHEN lower({c}) IN ('1', 't', 'true') THEN 't' ELSE 'f' END",
        "CASE WHEN lower({c}) IN ('1', 't', 'true') THEN 't' ELSE 'f' END",
        "CASE {c} WHEN true THEN 't' WHEN false THEN 'f' END",
        letter="o",
    ),
    "smallint": _integer("smallint", 16),
    "integer": _integer("integer", 32),
    "bigint": _integer("bigint", 64),
    "real": _float("real", 4),
    "double precision": _float("double precision", 8),
    "text": _text("text"),
    "bytea": Type(
        "bytea",
        "typeof({c}) IN ('blob', 'text')",
        "'\\\\x' || hex({c})",
        "hex({c})",
        "upper(encode({c}, 'hex'))",
        letter="b",
    ),
    "date": Type(
        "date",
        f"typeof({{c}}) = 'text' AND {_DATE}",
        "{c}",
        "{c}",
        "to_char({c}, 'YYYY-MM-DD')",
        letter="d",
    ),
    "time without time zone": Type(
        "time without time zone",
        f"typeof({{c}}) = 'text' AND {_NO_NUL} AND {_TIME_FITS.replace('{t}', '{c}')}",
        "{c}",
        _TIME_PADDED.replace("{t}", "{c}"),
        "to_char({c}, 'HH24:MI:SS.US')",
        letter="h",
    ),
    "timestamp without time zone": _timestamp(),
    "timestamp with time zone": _timestamp_with_zone(),
    "interval": Type(
        "interval",
        "typeof({c}) = 'integer'",
        "{c} || ' microseconds'",
        "{c}",
        "trunc(extract(epoch FROM {c}) * 1000000)::text",
    ),
    "jsonb": Type(
        "jsonb",
        _IS_JSONB,
        "CAST({c} AS TEXT)",
        "oxlite_json(CAST({c} AS BLOB))",
        "{c}::text",
        is_text=True,
    ),
    "json": Type(
        "json",
        "typeof({c}) <> 'blob' AND json_valid({c})",
        "CAST({c} AS TEXT)",
        "CAST({c} AS TEXT)",
        "{c}::text",
        is_text=True,
    ),
    "uuid": Type(
        "uuid", _IS_UUID, _UUID_TEXT, _UUID_TEXT, "replace({c}::text, '-', '')", letter="u"
    ),
    "inet": Type(
        "inet",
        "typeof({c}) = 'text' AND oxlite_address(CAST({c} AS BLOB)) IS NOT NULL",
        "oxlite_address(CAST({c} AS BLOB))",
        "oxlite_address_bits(CAST({c} AS BLOB))",
        "encode(inet_send({c}), 'hex')",
    ),
}

_SHORT: Final = {
    "bool": "boolean",
    "int2": "smallint",
    "int": "integer",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "time": "time without time zone",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
    "decimal": "numeric",
    "varchar": "character varying",
    "char": "character",
}
_MODIFIED: Final = re.compile(r"([a-z0-9 _]+?)\s*(?:\((\d+)(?:\s*,\s*(\d+))?\))?(\[\])?")
_ROUNDED: Final = re.compile(
    r"(timestamp|time)\s*\((\d)\)( with(?:out)? time zone)?", re.IGNORECASE
)


def _rounded(name: str, exact: Type, digits: int) -> Type:
    """One of times, with fewer digits of a second than six."""
    zeros = "0" * (6 - digits)
    fits = exact.fits
    if zeros:
        fits = f"({fits}) AND substr({exact.compared}, {digits - 6}) = '{zeros}'"
    return replace(exact, name=name, fits=fits, letter="x")


def type_of(name: str) -> Type:
    """A type by PostgreSQL's name for it, such as ``character varying(20)``.

    One that is not known here takes a text, and gives the same text back.

    Raises:
        PromotionError: That is no name of a type.
    """
    rounded = _ROUNDED.fullmatch(name.strip())
    if rounded is not None:
        return _rounded(name, type_of(rounded[1] + (rounded[3] or "")), int(rounded[2]))
    found = _MODIFIED.fullmatch(name.strip().lower())
    if found is None:
        return _text(name)
    base, first, second, is_array = found.groups()
    base = _SHORT.get(base, base)
    if is_array:
        arguments = f"CAST({{c}} AS BLOB), {literal(name.strip().lower()[:-2])}"
        return Type(
            name,
            f"typeof({{c}}) = 'text' AND oxlite_array({arguments}) IS NOT NULL",
            f"oxlite_array({arguments})",
            f"oxlite_array_json({arguments})",
            "array_to_json({c}::text[])::text",
            is_text=True,
        )
    if base == "numeric":
        return _numeric(name, int(first) if first else None, int(second) if second else None)
    if base == "character varying":
        return _text(name, int(first) if first else None)
    if base == "character":
        text = _text(name, int(first or 1))
        return Type(name, text.fits, text.written, "rtrim({c})", "rtrim({c}::text)", is_text=True)
    if not base:
        raise PromotionError(f"{name!r} is no type of PostgreSQL's")
    return _TYPES.get(base) or _text(name)
