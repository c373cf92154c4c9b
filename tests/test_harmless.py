"""What others have written reaches messages and logs as text, and commands no terminal."""

import os
import sqlite3 as standard
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import oxlite

HOSTILE = "a\x1b[31m\n\x07\x9b\u202eb"
SHOWN = "a\\x1b[31m\\n\\x07\\x9b\\u202eb"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("Grüße, 数据库, 🦀, a  b\\n", "Grüße, 数据库, 🦀, a  b\\n"),
        (HOSTILE, SHOWN),
        ("".join(map(chr, (*range(32), 127))), None),
        ("".join(map(chr, range(128, 160))), None),
        (
            "\u2028\u2029\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
            None,
        ),
        # Bytes of a file's name that are no text.
        (os.fsdecode(b"\xff.db"), "\\udcff.db"),
    ],
)
def test_what_commands_is_written_out(text: str, expected: str | None) -> None:
    made = oxlite.harmless(text)
    if expected is not None:
        assert made == expected
    assert made.isprintable()


def test_only_text_is_taken() -> None:
    with pytest.raises(TypeError):
        oxlite.harmless(b"a")  # type: ignore[arg-type]


def test_paths_in_errors(tmp_path: Path) -> None:
    folder = tmp_path / HOSTILE
    for path in (folder / "app.db", tmp_path):
        with pytest.raises(oxlite.sqlite3.OperationalError) as caught:
            oxlite.connect(path)
        assert str(caught.value).isprintable()
    folder.mkdir()
    file = folder / "app.db"
    file.write_bytes(b"no database" * 100)
    with pytest.raises(oxlite.sqlite3.DatabaseError) as caught_another:
        oxlite.connect(file)
    assert SHOWN in str(caught_another.value)
    assert str(caught_another.value).isprintable()


def test_paths_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / HOSTILE
    folder.mkdir()
    path = folder / "app.db"
    with closing(standard.connect(path)) as made:
        made.execute("CREATE TABLE t (x)")
        made.commit()
        # Its journal mode changes, another SQLite has it open, and there is no gate.
        folder.joinpath("app.db-gate").mkdir()
        with closing(oxlite.connect(path, isolation_level=None)) as connection:
            connection.execute("INSERT INTO t VALUES (1)")
            statistics = connection.queue_statistics()
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 3
    for message in messages:
        assert SHOWN in message
        assert message.isprintable()
    assert statistics is not None
    assert str(statistics["process_queue_unavailable"]).isprintable()


def test_who_reads_the_log_is_told_without_what_a_terminal_obeys(tmp_path: Path) -> None:
    """In a process of its own: what is logged of a log is, at most, every ten seconds."""
    program = """
import logging, sys, time
from contextlib import closing
import oxlite
logging.basicConfig(format="%(message)s")
path = sys.argv[1]
pragmas = {"journal_size_limit": 4096}
with (
    closing(oxlite.connect(path, isolation_level=None, pragmas=pragmas)) as writer,
    closing(oxlite.connect(path, isolation_level=None, check_same_thread=False)) as reader,
):
    writer.execute("CREATE TABLE t (x)")
    writer.execute("INSERT INTO t VALUES (1), (2)")
    cursor = reader.execute("SELECT x FROM t -- \\x1b[2J\\n\\u202e")
    cursor.fetchone()
    # Who has read for less than a tenth of a second is not told of.
    ends = time.monotonic() + 0.5
    while time.monotonic() < ends:
        writer.execute("INSERT INTO t VALUES (zeroblob(1000000))")
        time.sleep(0.01)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "app.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    [line] = done.stderr.splitlines()
    assert "with: SELECT x FROM t -- \\x1b[2J" in line
    assert line.isprintable()
