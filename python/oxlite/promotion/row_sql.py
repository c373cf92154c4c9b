"""A whole row as one text, in SQL: as COPY reads it, and as it is compared.

The driver's functions write what is in the form that mappers write; where one value is not, the
expressions of its type do, and judge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from oxlite.promotion.names import literal
from oxlite.promotion.values import Type

__all__ = ["Part", "compared", "copied", "plain"]

_PARTS_AT_ONCE: Final = 100
"""https://sqlite.org/limits.html#max_expr_depth, and #max_function_arg"""


@dataclass(frozen=True, slots=True)
class Part:
    """A column in a row.

    Attributes:
        sql: It.
        type: What it becomes.
        becomes_null: Whether what does not fit becomes NULL.
        is_known_to_fit: Whether nothing is there that does not.
        is_plain: Whether all that was there when it was looked at is in the form that the driver's
            functions know.
    """

    sql: str
    type: Type
    becomes_null: bool = False
    is_known_to_fit: bool = False
    is_plain: bool = True

    @property
    def letter(self) -> str:
        """By which the driver's functions know the column."""
        return self.type.letter if self.is_plain and not self.becomes_null else "x"


def copied(parts: Sequence[Part]) -> str:
    """A line of COPY, without its end; NULL where something does not fit."""
    written = [_or_null(part, part.type.written_of(part.sql), "'\\N'") for part in parts]
    return _row("oxlite_copy_row", parts, written, 9)


def compared(parts: Sequence[Part]) -> str:
    """What stands for a row; NULL where something does not fit, as far as that is not known."""
    written = [
        _or_null(
            part,
            part.type.compared_of(part.sql, is_known_to_fit=part.is_known_to_fit),
            "char(30)",
        )
        for part in parts
    ]
    return _row("oxlite_compared_row", parts, written, 31)


def plain(part: Part) -> str:
    """A column alone, in the form that the driver's functions know; NULL where it is not."""
    return f"oxlite_copy_row({literal(part.letter)}, {part.sql})"


def _or_null(part: Part, sql: str, null: str) -> str:
    return f"coalesce({sql}, {null})" if part.becomes_null else sql


def _row(function: str, parts: Sequence[Part], written: list[str], separator: int) -> str:
    joined = _joined(written, separator)
    if len(parts) > _PARTS_AT_ONCE:
        return joined
    given = [
        sql if part.letter == "x" else part.sql for part, sql in zip(parts, written, strict=True)
    ]
    letters = "".join(part.letter for part in parts)
    return f"coalesce({function}({', '.join([literal(letters), *given])}), {joined})"


def _joined(parts: list[str], separator: int) -> str:
    """Texts with a character between them; in groups, since SQLite limits how deep SQL may nest."""
    while len(parts) > 1:
        groups = [
            parts[first : first + _PARTS_AT_ONCE] for first in range(0, len(parts), _PARTS_AT_ONCE)
        ]
        parts = [f" || char({separator}) || ".join(f"({one})" for one in group) for group in groups]
    return f"{parts[0]} || ''"
