"""The shell ``python -m oxlite.sqlite3``, in processes of its own."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from oxlite import sqlite3

PROMPT = "sqlite> "
CONTINUATION = "    ... "
ENVIRONMENT = {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}


class Done(NamedTuple):
    """What a shell printed, and how it ended."""

    output: str
    errors: str
    status: int


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., Done]:
    """Runs the shell with arguments and lines of input."""

    def run(*arguments: object, lines: tuple[str, ...] = (), ending: str = "\n") -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "oxlite.sqlite3", *map(str, arguments)],
            input=ending.join([*lines, ""]),
            capture_output=True,
            encoding="utf-8",
            env=ENVIRONMENT,
            cwd=tmp_path,
            timeout=60,
        )
        return Done(done.stdout, done.stderr, done.returncode)

    return run


def test_help(shell: Callable[..., Done]) -> None:
    output, errors, status = shell("-h")
    assert output.startswith("usage: python -m oxlite.sqlite3 [-h] [-v] [filename] [sql]\n")
    assert (errors, status) == ("", 0)


@pytest.mark.parametrize("option", ["-v", "--version"])
def test_version(shell: Callable[..., Done], option: str) -> None:
    assert shell(option) == (f"SQLite version {sqlite3.sqlite_version}\n", "", 0)


def test_arguments_nobody_knows(shell: Callable[..., Done]) -> None:
    for arguments in (("-x",), (":memory:", "SELECT 1", "more")):
        output, errors, status = shell(*arguments)
        assert (output, status) == ("", 2)
        assert "usage: python -m oxlite.sqlite3" in errors


def test_a_statement_as_an_argument(shell: Callable[..., Done]) -> None:
    done = shell(":memory:", "SELECT 1, 'é☃', x'00', NULL, 0.5 UNION ALL SELECT 2, 3, 4, 5, 6;")
    assert done == ("(1, 'é☃', b'\\x00', None, 0.5)\n(2, 3, 4, 5, 6)\n", "", 0)


@pytest.mark.parametrize("sql", ["", " ", "-- comment", ";"])
def test_an_argument_that_does_nothing(shell: Callable[..., Done], sql: str) -> None:
    assert shell(":memory:", sql) == ("", "", 0)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("sel", 'OperationalError (SQLITE_ERROR): near "sel": syntax error\n'),
        ("SELECT 1; SELECT 2", "ProgrammingError: You can only execute one statement at a time.\n"),
        (
            "INSERT INTO t VALUES (1)",
            "IntegrityError (SQLITE_CONSTRAINT_UNIQUE): UNIQUE constraint failed: t.a\n",
        ),
    ],
)
def test_an_argument_that_fails(
    shell: Callable[..., Done], tmp_path: Path, sql: str, message: str
) -> None:
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.executescript("CREATE TABLE t(a UNIQUE); INSERT INTO t VALUES (1)")
    connection.close()
    assert shell("x.db", sql) == ("", message, 1)


def test_a_file_keeps_what_was_written(shell: Callable[..., Done], tmp_path: Path) -> None:
    assert shell("x.db", "CREATE TABLE t(a)") == ("", "", 0)
    assert shell("x.db", "INSERT INTO t VALUES (7)") == ("", "", 0)
    assert shell("x.db", "SELECT a FROM t") == ("(7,)\n", "", 0)
    assert (tmp_path / "x.db").exists()


@pytest.mark.parametrize("sql", [(), ("SELECT 1",)])
def test_a_file_that_cannot_be_opened(shell: Callable[..., Done], sql: tuple[str, ...]) -> None:
    output, errors, status = shell("missing/x.db", *sql)
    assert (output, status) == ("", 1)
    assert errors.startswith("OperationalError (SQLITE_CANTOPEN")
    assert errors.count("\n") == 1


def test_a_session_without_input(shell: Callable[..., Done]) -> None:
    output, errors, status = shell()
    assert (output, status) == (PROMPT, 0)
    assert f"SQLite version {sqlite3.sqlite_version}\n" in errors
    assert "Connected to a transient in-memory database\n" in errors
    assert '".help"' in errors


def test_a_session_on_a_file(shell: Callable[..., Done]) -> None:
    output, errors, status = shell(
        "x.db", lines=("CREATE TABLE t(a);", "INSERT INTO t VALUES (1);")
    )
    assert (output, status) == (PROMPT * 3, 0)
    assert "Connected to 'x.db'\n" in errors
    assert shell("x.db", lines=("SELECT a FROM t;",)).output == f"{PROMPT}(1,)\n{PROMPT}"


@pytest.mark.parametrize(
    ("lines", "output"),
    [
        (("SELECT 1;",), f"{PROMPT}(1,)\n{PROMPT}"),
        (("SELECT 1", ";"), f"{PROMPT}{CONTINUATION}(1,)\n{PROMPT}"),
        (("SELECT 1",), f"{PROMPT}{CONTINUATION}"),
        (("SELECT 'a;", "b' AS", "c;"), f"{PROMPT}{CONTINUATION * 2}('a;\\nb',)\n{PROMPT}"),
        (("SELECT 1; -- comment",), f"{PROMPT}(1,)\n{PROMPT}"),
        (("SELECT -- comment;", "1;"), f"{PROMPT}{CONTINUATION}(1,)\n{PROMPT}"),
        (("SELECT 1", "", ";"), f"{PROMPT}{CONTINUATION * 2}(1,)\n{PROMPT}"),
        (("SELECT 0 +", ".5;"), f"{PROMPT}{CONTINUATION}(0.5,)\n{PROMPT}"),
        (("", " ", "\t"), PROMPT * 4),
        ((".version",), f"{PROMPT}{sqlite3.sqlite_version}\n{PROMPT}"),
        ((".version ", ". version"), f"{PROMPT}{sqlite3.sqlite_version}\n" * 2 + PROMPT),
        ((".",), PROMPT * 2),
        ((".quit", "SELECT 1;"), PROMPT),
        ((" .quit ;",), PROMPT * 2),
    ],
)
def test_a_session(shell: Callable[..., Done], lines: tuple[str, ...], output: str) -> None:
    done = shell(lines=lines)
    assert (done.output, done.status) == (output, 0)


def test_help_in_a_session(shell: Callable[..., Done]) -> None:
    output = shell(lines=(".help",)).output
    for command in (".help", ".quit", ".version"):
        assert f"\n{command} " in output
    assert output.endswith(PROMPT)


@pytest.mark.parametrize("command", ["unknown", "help me", "QUIT", "."])
def test_an_unknown_command(shell: Callable[..., Done], command: str) -> None:
    output, errors, status = shell(lines=(f".{command}", "SELECT 1;"))
    assert (output, status) == (f"{PROMPT * 2}(1,)\n{PROMPT}", 0)
    assert f'Error: unknown command: "{command}"' in errors


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("sel;", 'OperationalError (SQLITE_ERROR): near "sel": syntax error\n'),
        ("SELECT 1; SELECT 2;", "ProgrammingError: You can only execute one statement at a time."),
        ("SELECT CAST(x'ff' AS TEXT);", "OperationalError: Could not decode to UTF-8"),
        ("SELECT abs(-9223372036854775808);", "(SQLITE_ERROR): integer overflow"),
    ],
)
def test_an_error_does_not_end_a_session(
    shell: Callable[..., Done], sql: str, message: str
) -> None:
    output, errors, status = shell(lines=(sql, "SELECT 2;"))
    assert (output, status) == (f"{PROMPT * 2}(2,)\n{PROMPT}", 0)
    assert message in errors
    assert "Traceback" not in errors


def test_input_that_is_no_utf8_does_not_end_a_session() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "oxlite.sqlite3"],
        input=b"SELECT '\xff';\nSELECT 2;\n",
        capture_output=True,
        env={**ENVIRONMENT, "PYTHONIOENCODING": "utf-8:surrogateescape"},
        timeout=60,
    )
    assert done.stdout.decode() == f"{PROMPT * 2}(2,)\n{PROMPT}"
    assert b"UnicodeEncodeError: " in done.stderr


def test_every_statement_commits_unless_a_transaction_was_begun(
    shell: Callable[..., Done],
) -> None:
    shell("x.db", lines=("CREATE TABLE t(a);", "BEGIN;", "INSERT INTO t VALUES (1);"))
    assert shell("x.db", "SELECT a FROM t").output == ""
    shell("x.db", lines=("BEGIN;", "INSERT INTO t VALUES (1);", "COMMIT;"))
    assert shell("x.db", "SELECT a FROM t").output == "(1,)\n"


ENDLESS = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c WHERE x <= 2;"
)


def test_an_interrupt_ends_the_statement_and_not_the_session() -> None:
    """The first row says that the statement runs; it would never come to the third."""
    program = (  # whoever runs the tests may have interrupts ignored, and children inherit it
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from oxlite.sqlite3.__main__ import main; main([])"
    )
    with subprocess.Popen(
        [sys.executable, "-u", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        text=True,
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{ENDLESS}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{PROMPT}(1,)\n"
            time.sleep(0.2)  # for the interrupt to come while SQLite searches, not Python prints
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate("SELECT 2;\n", timeout=60)
        finally:
            process.kill()
    assert output == f"{PROMPT}(2,)\n{PROMPT}"
    assert re.search(
        r"OperationalError \(SQLITE_INTERRUPT\): interrupted|KeyboardInterrupt", errors
    )
    assert "Traceback" not in errors
    assert process.returncode == 0
