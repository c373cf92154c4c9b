"""``oxlite env`` as a user meets it."""

import hashlib
import json
import os
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oxlite.cli import main

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t(x CHECK (x > 0))")
    connection.close()
    return path


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that every user may enter, which pytest's own is not."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory
        directory.chmod(0o755)


def test_a_database_is_reported(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", str(database), "--no-fsync"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    for expected in ("app.db", "Profile web", "foreign_keys 1", "THREADSAFE=", 'journal="keep"'):
        assert expected in captured.out


def test_json_is_all_there_is_on_standard_output(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["env", str(database), "--json", "--check", "--profile", "durable"]) == 0
    captured = capsys.readouterr()
    made = json.loads(captured.out)
    assert captured.err == ""
    assert made["schema"] == "oxlite.environment/1"
    assert made["profile"]["name"] == "durable"
    assert made["connection"]["pragmas"]["synchronous"] == 2
    assert made["connection"]["pragmas"]["integrity_check"] == ["ok"]
    assert made["fsync"]["measured"] is True


# As a file may be named by whoever can write in the folder.
HOSTILE = "[red]x[bold] \x1b]0;owned\x07\x1b[2J\n\x9b\u202egnp.\u2028db"
SHOWN = "[red]x[bold] \\x1b]0;owned\\x07\\x1b[2J\\n\\x9b\\u202egnp.\\u2028db"


def test_a_hostile_name_is_shown_and_commands_nothing(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = database.rename(database.with_name(HOSTILE))
    assert main(["env", str(hostile), "--no-fsync"]) == 0
    said = capsys.readouterr().out
    assert SHOWN in said
    assert said.replace("\n", "").isprintable()
    # For a program it is what it is.
    assert main(["env", str(hostile), "--json", "--no-fsync"]) == 0
    assert json.loads(capsys.readouterr().out)["database"]["name"] == HOSTILE
    # Nor in what is said of one that cannot be read.
    hostile.write_bytes(b"no database" * 100)
    assert main(["env", str(hostile), "--no-fsync"]) == 2
    error = capsys.readouterr().err
    assert "\\x1b]0;owned\\x07" in error
    assert error.removesuffix("\n").isprintable()
    assert main(["env", str(hostile.with_name("gone" + HOSTILE)), "--no-fsync"]) == 2
    assert capsys.readouterr().err.removesuffix("\n").isprintable()


def test_the_file_is_not_changed(database: Path) -> None:
    def state() -> tuple[list[str], str]:
        content = hashlib.sha256(database.read_bytes()).hexdigest()
        return sorted(file.name for file in database.parent.iterdir()), content

    before = state()
    assert main(["env", str(database), "--check"]) == 0
    assert state() == before


def test_a_problem_found_is_code_1(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("INSERT INTO t VALUES (-1)")
    connection.close()
    assert main(["env", str(database), "--check", "--no-fsync"]) == 1
    assert "CHECK constraint failed in t" in capsys.readouterr().out
    assert main(["env", str(database), "--no-fsync"]) == 0


def test_the_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "--help"]) == 0
    output = capsys.readouterr().out
    assert "oxlite env app.db" in output
    assert "Exit code" in output


@pytest.mark.parametrize(
    ("name", "message"),
    [("none.db", "none.db: No such file"), (".", "Is a directory"), ("text", "not a database"),
     ("none/app.db", "No such file")],
)  # fmt: skip
def test_what_cannot_be_opened_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    (tmp_path / "text").write_text("certainly no database " * 100)
    before = sorted(tmp_path.iterdir())
    assert main(["env", str(tmp_path / name)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("oxlite: error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert sorted(tmp_path.iterdir()) == before


def test_an_unknown_profile_is_one_line(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", str(database), "--profile", "wep"]) == 2
    captured = capsys.readouterr()
    assert "wep" in captured.err
    assert captured.err.count("\n") == 1


def test_without_a_database_the_working_directory_is_described(oxlite: Run, tmp_path: Path) -> None:
    done = oxlite("env", "--json", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["database"]["name"] == ":memory:"
    assert list(tmp_path.iterdir()) == []


def test_an_unreadable_file_is_one_line(oxlite: Run, open_directory: Path) -> None:
    database = open_directory / "app.db"
    sqlite3.connect(database).execute("CREATE TABLE t(x)").connection.close()
    database.chmod(0)
    done = oxlite("env", database, as_nobody=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("oxlite: error: ")
    assert done.stderr.count("\n") == 1
    assert "app.db" in done.stderr


def test_a_directory_one_may_not_enter_is_one_line(oxlite: Run, open_directory: Path) -> None:
    closed = open_directory / "closed"
    closed.mkdir(mode=0o700)
    (closed / "app.db").touch()
    closed.chmod(0)
    done = oxlite("env", closed / "app.db", as_nobody=True)
    closed.chmod(0o700)
    assert done.returncode == 2
    assert "Permission denied" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_read_only_place_is_reported_all_the_same(oxlite: Run, open_directory: Path) -> None:
    database = open_directory / "app.db"
    sqlite3.connect(database).execute("CREATE TABLE t(x)").connection.close()
    database.chmod(0o444)
    open_directory.chmod(0o555)
    done = oxlite("env", database, "--json", "--check", as_nobody=True)
    assert (done.returncode, done.stderr) == (0, "")
    made = json.loads(done.stdout)
    assert made["fsync"] == {"measured": False, "reason": "Permission denied"}
    assert made["connection"]["pragmas"]["integrity_check"] == ["ok"]


def test_a_terminal_without_unicode_gets_a_report(oxlite: Run, database: Path) -> None:
    done = oxlite("env", database, environment={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "median ?s" in done.stdout


def test_a_name_that_is_no_text_is_shown(oxlite: Run, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.db")
    try:
        sqlite3.connect(tmp_path / name).execute("CREATE TABLE t(x)").connection.close()
    except (OSError, UnicodeError):
        pytest.skip("names here are text")
    done = oxlite("env", tmp_path / name, "--no-fsync")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(oxlite("env", tmp_path / name, "--no-fsync", "--json").stdout)
