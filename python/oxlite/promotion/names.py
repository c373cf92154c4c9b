"""Names and texts, written into SQL of either side."""

from collections.abc import Iterable

__all__ = ["identifier", "identifiers", "literal"]


def identifier(name: str) -> str:
    """A name in double quotes, as SQLite and PostgreSQL both read it."""
    return '"' + name.replace('"', '""') + '"'


def identifiers(names: Iterable[str]) -> str:
    """Names, with commas between them."""
    return ", ".join(map(identifier, names))


def literal(text: str) -> str:
    """A text in single quotes, as SQLite reads it, and PostgreSQL where no backslash escapes."""
    return "'" + text.replace("'", "''") + "'"
