"""A shell for SQLite: ``python -m oxlite.sqlite3 [-h] [-v] [filename] [sql]``.

It is what ``python -m sqlite3`` is from Python 3.12 on: with SQL one statement is executed,
without it statements are read line by line until a semicolon ends them. From Python 3.15 on it has
colours, and TAB completes words, as there.

Invariants: rows go to the output, all else to the error output. A statement that fails ends the
program with status 1 if it was an argument, and never ends a session. Every statement commits by
itself unless a transaction was begun.
"""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from oxlite.sqlite3 import Connection, Error, complete_statement, connect, sqlite_version
from oxlite.sqlite3.completion import completing

__all__ = ["main"]

_PROMPT = "sqlite> "
_CONTINUATION = "    ... "
_HELP = """\
Enter SQL, ended by a semicolon, or one of these commands:

.help       Print this help
.quit       Leave; so does CTRL-D
.version    Print the version of SQLite"""

# Between so many of SQLite's instructions Python gets to see CTRL-C.
_INSTRUCTIONS_PER_CHECK = 100_000


class _Colours(NamedTuple):
    """What the terminal is sent before a part of the output, and after it."""

    prompt: str = ""
    error: str = ""
    message: str = ""
    reset: str = ""


def _colours() -> _Colours:
    if sys.version_info >= (3, 15):
        from _colorize import get_theme

        theme = get_theme()
        wrong = theme.traceback
        return _Colours(theme.syntax.prompt, wrong.type, wrong.message, theme.syntax.reset)
    return _Colours()


def _prompt(text: str) -> str:
    """Return a prompt in its colour, which readline is told to have no width."""
    if sys.version_info >= (3, 15):
        colours = _colours()
        return f"\001{colours.prompt}\002{text}\001{colours.reset}\002"
    return text


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the shell.

    Args:
        arguments: Those of the command line; without them, the process's own.

    Raises:
        SystemExit: Always: with 0, with 1 after an error of SQLite, with 2 after a wrong option.
    """
    options = _parser().parse_args(arguments)
    try:
        uri = options.filename.startswith("file:")  # as the program sqlite3 has it
        connection = connect(options.filename, isolation_level=None, uri=uri)
    except (Error, ValueError) as error:
        _report(error)
        sys.exit(1)
    with contextlib.closing(connection):
        # Calling into Python is the point: a signal's handler runs there, and its exception
        # interrupts the statement.
        connection.set_progress_handler(lambda: 0, _INSTRUCTIONS_PER_CHECK)
        if options.sql is not None:
            sys.exit(0 if _execute(connection, options.sql) else 1)
        _converse(connection, options.filename)
    sys.exit(0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m oxlite.sqlite3", description="Python sqlite3 CLI, on Oxlite's SQLite"
    )
    parser.add_argument(
        "filename",
        nargs="?",
        default=":memory:",
        help="the database to open, made if it does not exist, or a URI that begins with file:"
        " (default: ':memory:')",
    )
    parser.add_argument("sql", nargs="?", help="a statement to execute; its rows are printed")
    parser.add_argument(
        "-v",
        "--version",
        action="version",
        version=f"SQLite version {sqlite_version}",
        help="print the version of SQLite and exit",
    )
    return parser


def _converse(connection: Connection, filename: str) -> None:
    """Execute what is entered until the input ends or says ``.quit``."""
    name = "a transient in-memory database" if filename == ":memory:" else repr(filename)
    _tell(f"Oxlite's sqlite3 shell, running on SQLite version {sqlite_version}")
    _tell(f"Connected to {name}\n")
    _tell("Each statement is executed once a semicolon ends it.")
    _tell('Type ".help" for more information; type ".quit" or CTRL-D to quit.')
    with completing(connection) if sys.stdin.isatty() else contextlib.nullcontext():
        _read_statements(connection)


def _read_statements(connection: Connection) -> None:
    source = ""
    while True:
        try:
            line = input(_prompt(_CONTINUATION if source else _PROMPT))
            if source or not line.startswith("."):
                source = _entered(connection, f"{source}{line}\n")
            elif not _obey(line[1:].strip()):
                return
        except EOFError:
            _tell("")
            return
        except KeyboardInterrupt:
            source = ""
            _tell("\nKeyboardInterrupt")
        except UnicodeError as error:
            source = ""
            _report(error)


def _entered(connection: Connection, source: str) -> str:
    """Execute the source if it is complete; return what of it is still to be continued."""
    if not source.strip():
        return ""
    if not complete_statement(source):
        return source
    _execute(connection, source)
    return ""


def _obey(command: str) -> bool:
    """Do what a command without its dot says; return whether the session goes on."""
    match command:
        case "quit":
            return False
        case "help":
            print(_HELP)
        case "version":
            print(sqlite_version)
        case "":
            pass
        case unknown:
            _tell_wrong("Error", f'unknown command: "{unknown}"; ".help" lists the commands')
    return True


def _execute(connection: Connection, sql: str) -> bool:
    """Execute a statement and print its rows; return whether there was no error."""
    try:
        for row in connection.execute(sql):
            print(row)
    except (Error, UnicodeError) as error:
        _report(error)
        return False
    return True


def _report(error: Exception) -> None:
    """Print an error with its class and, if SQLite gave it one, its extended name."""
    name = getattr(error, "sqlite_errorname", None)
    _tell_wrong(f"{type(error).__name__}{f' ({name})' if name else ''}", str(error))


def _tell_wrong(what: str, message: str) -> None:
    colours = _colours()
    what = f"{colours.error}{what}{colours.reset}"
    _tell(f"{what}: {colours.message}{message}{colours.reset}")


def _tell(line: str) -> None:
    # What was printed so far stands before it, wherever the two outputs go.
    sys.stdout.flush()
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
