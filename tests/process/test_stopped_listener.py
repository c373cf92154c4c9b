"""A process that listens, and watches the files, and is stopped for a minute."""

import os
import signal
import sqlite3 as stdlib
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.pages import is_watcher, signals_page_of
from tests.wait import until

import oxlite

_LISTENS = """
import sys, oxlite
listener = oxlite.Database(sys.argv[1]).listen("orders")
print("listens", flush=True)
for note in listener:
    print(note.payload, flush=True)
"""


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.skipif(sys.platform != "linux", reason="notifications are for Linux only")
def test_a_listener_that_was_stopped_for_a_minute_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    command = [sys.executable, "-W", "ignore", "-c", _LISTENS, str(path)]
    with (
        oxlite.Database(path) as db,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        closing(stdlib.connect(path, isolation_level=None)) as other,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "listens\n"
        until(lambda: is_watcher(process.pid, signals_page_of(path)))
        os.kill(process.pid, signal.SIGSTOP)
        ends = time.monotonic() + 62
        expected: list[str] = []
        insert = "INSERT INTO oxlite_notification (channel, payload) VALUES ('orders', ?)"
        while time.monotonic() < ends:
            db.notify("orders", f"ours{len(expected)}")
            other.execute(insert, (f"theirs{len(expected)}",))
            expected += [f"ours{len(expected)}", f"theirs{len(expected)}"]
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGCONT)
        assert [process.stdout.readline().strip() for _ in expected] == expected
        process.kill()
