"""What the shell completes when TAB is pressed: its commands, SQL's words, names in the databases.

It offers what ``python -m sqlite3`` offers, from Python 3.15 on, where there is ``readline``.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator

from oxlite import _native
from oxlite._native import Connection, Error

__all__ = ["COMMANDS", "candidates", "completing"]

COMMANDS = (".help", ".quit", ".version")
"""What one types instead of SQL."""

# SQL's words, which the module has since Python 3.15, as the standard library's.
_KEYWORDS: tuple[str, ...] = getattr(_native, "SQLITE_KEYWORDS", ())

_NAMES = "SELECT name FROM {schema}.sqlite_schema WHERE name LIKE ? ESCAPE '^'"
_COLUMNS = """\
SELECT c.name FROM {schema}.sqlite_schema AS s, pragma_table_xinfo(s.name, {literal}) AS c
WHERE s.type = 'table' AND c.name LIKE ? ESCAPE '^'"""
_FUNCTIONS = """\
SELECT upper(name) FROM pragma_function_list
WHERE name NOT IN ('->', '->>') AND name LIKE ? ESCAPE '^'"""


def candidates(connection: Connection, text: str) -> list[str]:
    """Return in what a word that has begun with ``text`` may end, in their order.

    A word that something must follow ends in a space, a function in its parenthesis.
    """
    if text.startswith("."):
        return [f"{command} " for command in COMMANDS if command.startswith(text)]
    found = {f"{word} " for word in _KEYWORDS if word.startswith(text.upper())}
    # A database that cannot be read now completes nothing.
    with contextlib.suppress(Error):
        found.update(_names(connection, text))
    return sorted(found)


def _names(connection: Connection, text: str) -> Iterator[str]:
    beginning = "".join(f"^{letter}" if letter in "^%_" else letter for letter in text) + "%"
    for name in [row[1] for row in connection.execute("PRAGMA database_list")]:
        if name.lower().startswith(text.lower()):
            yield name
        schema = '"{}"'.format(name.replace('"', '""'))
        literal = "'{}'".format(name.replace("'", "''"))
        for sql in (_NAMES, _COLUMNS):
            query = sql.format(schema=schema, literal=literal)
            yield from (f"{row[0]} " for row in connection.execute(query, (beginning,)))
    yield from (f"{row[0]}(" for row in connection.execute(_FUNCTIONS, (beginning,)))


@contextlib.contextmanager
def completing(connection: Connection) -> Iterator[None]:
    """Have lines edited where Python has ``readline``, and TAB complete them from 3.15 on."""
    try:
        import readline  # from then on lines can be edited
    except ImportError:
        yield
        return
    if sys.version_info < (3, 15):
        yield
        return
    before = readline.get_completer()
    readline.set_completer(_completer(connection))
    is_editline = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_editline else "tab: complete")
    try:
        yield
    finally:
        readline.set_completer(before)


def _completer(connection: Connection) -> Callable[[str, int], str | None]:
    """Return what readline asks for the first candidate, the second, until there is none."""
    found: list[str] = []

    def complete(text: str, state: int) -> str | None:
        if state == 0:
            found[:] = candidates(connection, text)
        return found[state] if state < len(found) else None

    return complete
