"""``oxlite top`` as a user meets it."""

import json
import os
import pty
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from oxlite.cli import main

Run = Callable[..., subprocess.CompletedProcess[str]]

OTHER_SCREEN, OWN_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"
SHOW_CURSOR = b"\x1b[?25h"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    """A database that this process has open."""
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("CREATE TABLE t(a)")
        yield path


class Terminal:
    """The command at a terminal of its own."""

    def __init__(self, *arguments: str | Path, kind: str = "xterm") -> None:
        self._side, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "oxlite.cli", "top", *map(str, arguments)],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=os.environ | {"TERM": kind, "COLUMNS": "80", "LINES": "24"},
            start_new_session=True,
        )
        os.close(terminal)
        self.shown = b""

    def until(self, text: bytes, *, times: int = 1) -> None:
        ends = time.monotonic() + 60
        while self.shown.count(text) < times:
            assert time.monotonic() < ends, self.shown
            self._read()

    def end(self) -> int:
        """Wait until it has ended; its exit code."""
        while self.process.poll() is None:
            self._read()
        while self._read():
            pass
        os.close(self._side)
        return self.process.returncode

    def _read(self) -> bool:
        if not select.select([self._side], [], [], 0.1)[0]:
            return False
        try:
            part = os.read(self._side, 65536)
        except OSError:  # the other side is closed
            return False
        self.shown += part
        return bool(part)


def test_once_is_one_look_over_an_interval(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["top", str(database), "--once", "--interval", "0.2"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith("app.db")
    assert captured.out.count("0/s") == 1
    assert str(os.getpid()) in captured.out


def test_without_a_terminal_it_is_the_same(oxlite: Run, database: Path) -> None:
    done = oxlite("top", database, "--interval", "0.2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("app.db") == 1
    assert "\x1b" not in done.stdout


def test_count_without_a_terminal(oxlite: Run, database: Path) -> None:
    done = oxlite("top", database, "--interval", "0.1", "--count", "3")
    assert done.stdout.count("app.db") == 3


def test_json_is_a_document_or_lines(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", str(database), "--once", "--json", "--interval", "0.1"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "oxlite.top/1"
    assert document["commits_per_second"] == 0
    assert main(["top", str(database), "--json", "--count", "2", "--interval", "0.1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["path"] for line in lines] == [str(database)] * 2


def test_json_without_an_end_ends_with_ctrl_c(database: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "oxlite.cli", "top", database, "--json", "--interval", "0.1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for _ in range(2):  # each at once, though it is a pipe
        json.loads(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


def test_a_reader_that_went_away(database: Path) -> None:
    command = f'"{sys.executable}" -m oxlite.cli top "$1" --json --interval 0.1 | head -1'
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}", "-", database],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")
    json.loads(done.stdout)


def test_prometheus(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", str(database), "--prometheus", "--interval", "0.1"]) == 0
    out = capsys.readouterr().out
    assert "# TYPE oxlite_wal_frames gauge" in out.splitlines()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--once", "--count", "2"], "leave --count away"),
        (["--prometheus", "--json"], "a form of its own"),
        (["--prometheus", "--count", "2"], "a form of its own"),
        (["--interval", "0"], "an interval is 0.1 to 3600 seconds"),
        (["--interval", "nan"], "an interval is"),
        (["--count", "0"], "--count"),
    ],
)
def test_wrong_usage(
    database: Path, capsys: pytest.CaptureFixture[str], options: list[str], expected: str
) -> None:
    assert main(["top", str(database), *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("oxlite: error: ")
    assert captured.err.count("\n") == 1
    assert expected in captured.err


@pytest.mark.parametrize(
    ("name", "expected"), [("nothing.db", "No such file"), (".", "is a directory")]
)
def test_what_cannot_be_watched_is_one_line(
    oxlite: Run, database: Path, name: str, expected: str
) -> None:
    done = oxlite("top", name, cwd=database.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("oxlite: error: ")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


def test_who_may_not_read_it_is_told_nothing(oxlite: Run, open_directory: Path) -> None:
    path = open_directory / "app.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("CREATE TABLE t(a)")
        path.chmod(0o600)
        (open_directory / "app.db-shm").chmod(0o666)
        done = oxlite("top", path, "--interval", "0.1", as_nobody=True)
        if os.geteuid() == 0:  # else it is its owner who asks
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr.startswith("oxlite: error: ")
            assert "is not readable" in done.stderr
            assert done.stderr.count("\n") == 1


def test_who_may_only_read_it_sees_what_he_can(oxlite: Run, open_directory: Path) -> None:
    path = open_directory / "app.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("CREATE TABLE t(a)")
        path.chmod(0o644)
        (open_directory / "app.db-shm").chmod(0o600)
        done = oxlite("top", path, "--json", "--once", "--interval", "0.1", as_nobody=True)
    assert done.returncode == 0, done.stderr
    notes = json.loads(done.stdout)["notes"]
    if os.geteuid() == 0:
        assert any("cannot be read: Permission denied" in note for note in notes)
        assert any("Processes of other users" in note for note in notes)


def test_a_terminal_is_redrawn_in_place_and_restored(database: Path) -> None:
    terminal = Terminal(database, "--interval", "0.1")
    terminal.until(b"app.db", times=3)
    assert terminal.shown.count(OTHER_SCREEN) == 1
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 0
    assert terminal.shown.count(OWN_SCREEN) == 1
    assert terminal.shown.rindex(SHOW_CURSOR) > terminal.shown.index(OTHER_SCREEN)
    assert b"Traceback" not in terminal.shown


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_it_leaves_the_terminal_as_it_was(database: Path, number: int) -> None:
    # Under nohup a hang-up is ignored, and so it would be by what is started here.
    before = signal.signal(number, signal.SIG_DFL)
    terminal = Terminal(database, "--interval", "0.1")
    signal.signal(number, before)
    terminal.until(b"app.db")
    terminal.process.send_signal(number)
    assert terminal.end() == 128 + number
    assert terminal.shown.count(OWN_SCREEN) == 1


def test_while_it_is_stopped_the_terminal_is_as_it_was(database: Path) -> None:
    terminal = Terminal(database, "--interval", "0.1")
    terminal.until(b"app.db")
    terminal.process.send_signal(signal.SIGTSTP)
    terminal.until(OWN_SCREEN)
    state = Path(f"/proc/{terminal.process.pid}/stat")
    while state.read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)
    terminal.process.send_signal(signal.SIGCONT)
    terminal.until(OTHER_SCREEN, times=2)
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 0


def test_an_error_leaves_the_terminal_as_it_was(database: Path) -> None:
    terminal = Terminal(database, "--interval", "0.1")
    terminal.until(b"app.db")
    database.unlink()
    assert terminal.end() == 2
    after = terminal.shown.partition(OWN_SCREEN)[2]
    assert b"was deleted or moved while it was watched" in after.replace(b"\r\n", b" ")


def test_count_at_a_terminal(database: Path) -> None:
    terminal = Terminal(database, "--interval", "0.1", "--count", "2")
    assert terminal.end() == 0
    assert terminal.shown.count(b"app.db") == 2


def test_a_terminal_that_cannot_be_redrawn_is_told_once(database: Path) -> None:
    terminal = Terminal(database, "--interval", "0.1", kind="dumb")
    assert terminal.end() == 0
    assert b"app.db" in terminal.shown
    assert b"\x1b" not in terminal.shown
