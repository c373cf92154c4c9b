"""``oxlite doctor`` as a user meets it."""

import json
import os
import pty
import select
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from oxlite.cli import main

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return made(tmp_path / "app.db")


@pytest.fixture
def sick(database: Path) -> Path:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE INDEX one ON t(b)")
        connection.execute("CREATE INDEX two ON t(b)")
    return database


def made(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
        connection.executemany("INSERT INTO t(b) VALUES (?)", [("x",)] * 20_000)
    return path


def of_the_database(captured: str) -> list[str]:
    """The codes of findings, without those that are about the machine the tests run on."""
    found = json.loads(captured)["findings"]
    return [one["code"] for one in found if not one["code"].endswith(("-file-system", "-full"))]


def test_one_that_is_well(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", str(database), "--json"])
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert captured.err == ""
    assert report["schema"] == "oxlite.doctor/1"
    assert of_the_database(captured.out) == []
    assert report["facts"]["journal_mode"] == "wal"


def test_a_sick_one_is_1_and_says_what_why_and_how(
    sick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", str(sick)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    for expected in (
        "warning duplicate-index",
        "one of t is the same as two.",
        "Each write changes both",
        'DROP INDEX "one";',
        "statistics-missing",
        "safe: --fix does it",
    ):
        assert expected in out


def test_fix_mends_what_is_safe_and_nothing_else(
    sick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", str(sick), "--fix", "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["mended"] == ["statistics-missing"]
    assert of_the_database(captured.out) == ["duplicate-index"]


def test_with_errors_nothing_is_fixed_and_the_report_is_printed(
    sick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(sick)) as connection, connection:
        connection.execute("CREATE TABLE child(p REFERENCES t(a))")
        connection.execute("INSERT INTO child VALUES (-1)")
    assert main(["doctor", str(sick), "--fix", "--json"]) == 2
    captured = capsys.readouterr()
    assert "nothing is mended while there are errors" in captured.err
    assert "foreign-key-violated" in of_the_database(captured.out)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_it_is_read_in_any_width(oxlite: Run, sick: Path, columns: int) -> None:
    done = oxlite("doctor", sick, "--full", environment={"COLUMNS": str(columns)})
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert max(len(line) for line in lines if not line.startswith("    ")) <= columns
    assert "warning duplicate-index" in lines
    assert '    DROP INDEX "one";' in lines


@pytest.mark.parametrize("columns", [40, 100])
def test_what_is_to_be_copied_is_one_line_whatever_the_width(
    oxlite: Run, tmp_path: Path, columns: int
) -> None:
    path = tmp_path / ("an application with a name of many words " * 4 + ".db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
    path.chmod(0o666)
    done = oxlite("doctor", path, environment={"COLUMNS": str(columns)})
    assert f"    chmod o-w {shlex.quote(str(path))}" in done.stdout.splitlines()


def test_a_terminal_sees_how_far_it_has_come(tmp_path: Path) -> None:
    path = tmp_path / "large.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t(a TEXT PRIMARY KEY, b)")
        connection.executemany(
            "INSERT INTO t VALUES (?, 1)", ((f"key {number}",) for number in range(200_000))
        )
    main_side, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "oxlite.cli", "doctor", str(path), "--full", "--json"],
        stdout=subprocess.PIPE,
        stderr=terminal,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(terminal)
    out, _ = process.communicate(timeout=60)
    shown = b""
    while select.select([main_side], [], [], 0)[0]:
        try:
            part = os.read(main_side, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
    os.close(main_side)
    assert b"looking" in shown or b"integrity_check" in shown
    assert json.loads(out)["is_quick"] is False


@pytest.mark.parametrize(
    ("name", "expected"),
    [("nothing.db", "No such file"), (".", "is a directory"), ("app.db --profile x", "no profile")],
)
def test_what_cannot_be_examined_is_one_line(
    oxlite: Run, database: Path, name: str, expected: str
) -> None:
    done = oxlite("doctor", *name.split(), cwd=database.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("oxlite: error: ")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_one_may_not_read_is_one_line(oxlite: Run, open_directory: Path) -> None:
    database = made(open_directory / "app.db")
    database.chmod(0)
    done = oxlite("doctor", database, as_nobody=True)
    assert done.returncode == 2
    assert done.stderr.startswith("oxlite: error: ")
    assert "app.db" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_wal_without_its_index_in_a_read_only_directory(
    oxlite: Run, open_directory: Path
) -> None:
    database = made(open_directory / "app.db")
    program = (
        "import os, sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\n"
        "c.execute('INSERT INTO t(b) VALUES (1)')\nc.commit()\nos._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, database], check=True)
    (open_directory / "app.db-shm").unlink()
    open_directory.chmod(0o555)
    before = sorted(os.listdir(open_directory))  # noqa: PTH208 - names
    done = oxlite("doctor", database, "--json", as_nobody=True)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert "cannot-open" in {one["code"] for one in report["findings"]}
    assert any("The content was not examined" in note for note in report["notes"])
    assert any("Processes of other users" in note for note in report["notes"])
    assert sorted(os.listdir(open_directory)) == before  # noqa: PTH208 - names


def test_a_read_only_place_is_examined_all_the_same(oxlite: Run, open_directory: Path) -> None:
    database = open_directory / "app.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE t(a)")
    database.chmod(0o444)
    open_directory.chmod(0o555)
    done = oxlite("doctor", database, "--json", as_nobody=True)
    assert done.returncode == 1, done.stderr
    assert "file-read-only" in of_the_database(done.stdout)
    assert json.loads(done.stdout)["facts"]["journal_mode"] == "delete"


def test_no_file_is_left_that_the_owner_could_not_write(oxlite: Run, open_directory: Path) -> None:
    database = made(open_directory / "app.db")
    open_directory.chmod(0o777)
    done = oxlite("doctor", database, "--json", as_nobody=True)
    assert done.returncode == 1, done.stderr
    if os.geteuid() == 0:  # else it is its owner who asks
        (finding,) = (one for one in json.loads(done.stdout)["findings"] if "cannot" in one["code"])
        assert finding["mend"] == f"sudo -u '#0' oxlite doctor {database}"
    assert [file.name for file in open_directory.iterdir()] == ["app.db"]
