"""The shell ``python -m oxlite.sqlite3``, in processes of its own."""

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from oxlite import sqlite3
from oxlite.sqlite3.completion import candidates

# Since Python 3.15 a prompt has colours, or none, between what tells readline of them.
MARKS = "\1\2" if sys.version_info >= (3, 15) else ""
PROMPT = f"{MARKS}sqlite> {MARKS}"
CONTINUATION = f"{MARKS}    ... {MARKS}"
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name != "FORCE_COLOR"},
    "PYTHONIOENCODING": "utf-8",
    "COLUMNS": "100",
}


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


@pytest.fixture
def named() -> Iterator[sqlite3.Connection]:
    """A database with names of all kinds, and one attached to it."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript("""
            CREATE TABLE orders(order_id, "o'clock", total);
            CREATE INDEX order_dates ON orders(total);
            CREATE VIEW Ordered AS SELECT 1;
            CREATE TRIGGER ordering BEFORE INSERT ON orders BEGIN SELECT 1; END;
            CREATE TEMP TABLE other(only_here);
            ATTACH ':memory:' AS "o""d'd";
            CREATE TABLE "o""d'd".outside(o_column);
        """)
        yield connection


@pytest.mark.skipif(sys.version_info < (3, 15), reason="completed since Python 3.15")
def test_what_is_completed(named: sqlite3.Connection) -> None:
    assert candidates(named, "ord") == [
        "ORDER ", "Ordered ", "order_dates ", "order_id ", "ordering ", "orders ",
    ]  # fmt: skip
    assert candidates(named, "o_") == ["o_column "]
    assert candidates(named, "o'c") == ["o'clock "]
    assert {"ON ", "OR ", "other ", "only_here ", "outside ", "o'clock ", "o\"d'd"} <= set(
        candidates(named, "o")
    )
    assert {"MATCH ", "MATERIALIZED ", "MAX(", "main"} <= set(candidates(named, "ma"))
    assert candidates(named, ".") == [".help ", ".quit ", ".version "]
    assert candidates(named, ".v") == [".version "]
    for text in ("xyzzy", "%", "^", "_", "'", '"', "\\", ".x", "\0"):
        assert candidates(named, text) == []
    assert candidates(named, "") == sorted(candidates(named, ""))
    assert not named.in_transaction


@pytest.mark.skipif(sys.version_info < (3, 15), reason="completed since Python 3.15")
def test_nothing_is_completed_from_a_database_that_cannot_be_read(
    named: sqlite3.Connection,
) -> None:
    named.close()
    assert candidates(named, "sel") == ["SELECT "]


@pytest.mark.skipif(sys.version_info < (3, 15), reason="completed since Python 3.15")
def test_a_terminal_completes_words(tmp_path: Path) -> None:
    pytest.importorskip("readline")
    terminal, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "oxlite.sqlite3"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**ENVIRONMENT, "TERM": "dumb", "INPUTRC": "/dev/null", "NO_COLOR": "1"},
        cwd=tmp_path,
    ) as process:
        os.close(theirs)
        try:
            seen = b""
            for line in (b"CREATE TABLE customers(number);", b"sel\tcou\t*) FROM cus\t;", b".qu\t"):
                while not seen.endswith(b"sqlite> "):
                    seen += os.read(terminal, 4096)
                seen = b""
                os.write(terminal, line + b"\n")
                if b"sel" in line:
                    while b"(0,)" not in seen:
                        seen += os.read(terminal, 4096)
                    typed = seen.replace(b"sel\x08\x08\x08", b"").replace(b"cou\x08\x08\x08", b"")
                    assert b"SELECT COUNT(*) FROM customers ;" in typed
            assert process.wait(60) == 0
        finally:
            process.kill()
            os.close(terminal)
