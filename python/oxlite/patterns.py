"""Python's regular expressions in the language of Rust's ``regex``, whose matches take linear time.

They are read by Python's own parser, and written again from what it has read.

Invariants: only what is on the list of this module is written, and whether a text has a match is
the same then. Where that depends on the meaning of a letter, a digit, a space or of case, it is
said of texts in ASCII alone.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, Protocol

from oxlite._native import Pattern

try:
    from re import _constants as _sre  # type: ignore[attr-defined]
    from re import _parser  # type: ignore[attr-defined]
except ImportError:  # another implementation of Python
    _sre = _parser = None

__all__ = ["pattern_of"]

_LONGEST: Final = 1000
"""Of a longer pattern Python is asked."""

_REPEATED_AT_MOST: Final = 1000

_FLAGS: Final = re.UNICODE | re.IGNORECASE | re.DOTALL | re.VERBOSE

_CLASSES: Final = {
    "CATEGORY_DIGIT": "0-9",
    "CATEGORY_SPACE": r"\x09-\x0d\x1c-\x20",
    "CATEGORY_WORD": "0-9A-Z_a-z",
}
"""In ASCII; of the negations only what is said outside of a set."""

_NEGATED: Final = {
    "CATEGORY_NOT_DIGIT": r"\x00-/:-\x7f",
    "CATEGORY_NOT_SPACE": r"\x00-\x08\x0e-\x1b\x21-\x7f",
    "CATEGORY_NOT_WORD": r"\x00-/:-@\[-\^`\{-\x7f",
}


class _UnlistedError(Exception):
    """Something is not on the list."""


class _Items(Protocol):
    """What Python's parser has read: each a kind and a value."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[tuple[object, Any]]: ...
    def getwidth(self) -> tuple[int, int]: ...


class _Writer:
    """Writes an expression again.

    Attributes:
        is_of_ascii: Whether it is said of texts in ASCII alone.
    """

    def __init__(self, flags: int) -> None:
        self.is_of_ascii = bool(flags & re.IGNORECASE)
        self._ignores_case = self.is_of_ascii
        self._dot = r"(?s:.)" if flags & re.DOTALL else r"[^\n]"

    def sequence(self, items: _Items, *, is_last: bool) -> str:
        """What follows one another; ``is_last`` if nothing follows that."""
        last = len(items) - 1
        return "".join(
            self._item(str(kind), value, is_last=is_last and place == last)
            for place, (kind, value) in enumerate(items)
        )

    def _item(self, kind: str, value: Any, *, is_last: bool) -> str:  # noqa: ANN401 - by its kind
        match kind:
            case "LITERAL":
                return self._character(value)
            case "NOT_LITERAL":
                return f"[^{self._character(value)}]"
            case "ANY":
                return self._dot
            case "IN":
                return self._set(value)
            case "AT":
                return self._place(str(value), is_last=is_last)
            case "BRANCH":
                parts = [self.sequence(part, is_last=is_last) for part in value[1]]
                return f"(?:{'|'.join(parts)})"
            case "SUBPATTERN":
                _, added, removed, items = value
                if added or removed:
                    raise _UnlistedError
                return f"(?:{self.sequence(items, is_last=is_last)})"
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repeat(*value)
            case _:
                raise _UnlistedError

    def _set(self, members: list[tuple[object, Any]]) -> str:
        written = []
        negation = ""
        for kind, value in members:
            match str(kind):
                case "NEGATE":
                    negation = "^"
                case "LITERAL":
                    written.append(self._character(value))
                case "RANGE":
                    written.append(f"{self._character(value[0])}-{self._character(value[1])}")
                case "CATEGORY":
                    self.is_of_ascii = True
                    written.append((_CLASSES | _NEGATED)[str(value)])
                case _:
                    raise _UnlistedError
        return f"[{negation}{''.join(written)}]"

    def _place(self, place: str, *, is_last: bool) -> str:
        match place:
            case "AT_BEGINNING" | "AT_BEGINNING_STRING":
                return r"\A"
            case "AT_END_STRING":
                return r"\z"
            case "AT_END" if is_last:
                return r"\n?\z"  # takes the newline that Python only looks at
            case "AT_BOUNDARY":
                self.is_of_ascii = True
                return r"\b"
            case _:
                raise _UnlistedError

    def _repeat(self, least: int, most: int, items: _Items) -> str:
        # How often nothing is repeated is a question that the two may answer differently.
        if items.getwidth()[0] == 0:
            raise _UnlistedError
        is_open = most == _sre.MAXREPEAT
        if least > _REPEATED_AT_MOST or (most > _REPEATED_AT_MOST and not is_open):
            raise _UnlistedError
        often = f"{{{least},{'' if is_open else most}}}"
        return f"(?:{self.sequence(items, is_last=False)}){often}"

    def _character(self, number: int) -> str:
        if self._ignores_case and number > 0x7F:
            raise _UnlistedError  # some are letters of ASCII in another case
        return f"\\x{{{number:x}}}"


@lru_cache(maxsize=512)
def pattern_of(pattern: str) -> Pattern | None:
    """A pattern of Python's, compiled; ``None`` where Python is to be asked."""
    if _parser is None or len(pattern) > _LONGEST:
        return None
    try:
        read = _parser.parse(pattern)
        flags = read.state.flags
        if flags & ~_FLAGS:
            return None
        writer = _Writer(flags)
        expression = writer.sequence(read, is_last=True)
        ignores_case = bool(flags & re.IGNORECASE)
        return Pattern(expression, writer.is_of_ascii, ignores_case)
    except Exception:  # it is wrong, or not on the list: Python says so, or knows what it means
        return None
