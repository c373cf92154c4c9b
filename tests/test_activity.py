"""What processes tell while somebody watches: when, what and to whom; nothing stays behind."""

import contextlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.wait import until

import oxlite
from oxlite import _native

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes tell one another on Linux alone"
)

_WRITER = """
import sys, time, oxlite
connection = oxlite.connect(sys.argv[1], isolation_level=None)
print("open", flush=True)
while True:
    connection.execute("INSERT INTO t VALUES (?)", (1,))
    time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "app.db"
    with contextlib.closing(oxlite.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
    return path


def activity_file(path: Path) -> Path:
    return path.with_name(f"{path.name}-activity")


@contextlib.contextmanager
def writer(path: Path, pause: float = 0.001) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _WRITER, str(path), str(pause)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def has_activity_open(process_id: int) -> bool:
    """Whether a process still has the file of those who watch, or have watched."""
    descriptors = Path(f"/proc/{process_id}/fd").iterdir()
    return any("-activity" in str(one.readlink()) for one in descriptors)


def told_now(watcher: _native.ActivityWatcher, process_id: int) -> dict[str, Any]:
    """What it has told so far; nothing if it has told nothing."""
    told = [told for told in watcher.processes() if told["process_id"] == process_id]
    return dict(told[0]) if told else {}


def told_by(watcher: _native.ActivityWatcher, process_id: int) -> dict[str, Any]:
    """What that process has told, once it has."""
    until(lambda: told_now(watcher, process_id))
    return told_now(watcher, process_id)


def counter(watcher: _native.ActivityWatcher, process_id: int, name: str) -> int:
    return int(told_by(watcher, process_id)["counters"][name])


def test_a_process_tells_what_it_does_while_somebody_watches(path: Path) -> None:
    with writer(path) as process:
        time.sleep(0.1)
        assert not activity_file(path).exists()
        with _native.ActivityWatcher(path) as watcher:
            before = told_by(watcher, process.pid)
            assert before["pid_namespace"] == "own"
            commits = before["counters"]["commits"]
            until(lambda: counter(watcher, process.pid, "commits") > commits + 20)
            after = told_by(watcher, process.pid)
            assert after["told_ms"] > before["told_ms"]
            assert after["counters"]["admissions"] >= after["counters"]["commits"] > 0
            assert after["counters"]["turns"] > 0
            until(lambda: told_by(watcher, process.pid)["slowest"])
            slowest = told_by(watcher, process.pid)["slowest"]
            assert slowest[0]["sql"] == "INSERT INTO t VALUES (?)"
            assert slowest[0]["longest_us"] > 0
            assert counter(watcher, process.pid, "statements") > 0
        assert not activity_file(path).exists()
        until(lambda: not has_activity_open(process.pid))


def test_what_is_counted_is_what_was_done(path: Path) -> None:
    with oxlite.Database(path) as database, _native.ActivityWatcher(path) as watcher:

        def counters() -> dict[str, int]:
            database.execute("INSERT INTO t VALUES (1)")
            return dict(told_now(watcher, os.getpid()).get("counters", {}))

        until(counters)
        begun = counters()
        until(lambda: counters()["commits"] >= begun["commits"] + 50)
        ended = counters()
        statistics = database.stats()
        assert ended["commits"] - begun["commits"] == ended["batches"] - begun["batches"]
        assert begun["batches"] < ended["batches"] <= statistics.batches
        assert ended["batched_writes"] >= ended["batches"]
        assert ended["waiting"] == 0
        assert ended["wal_frames"] > 0


def test_who_waits_and_who_holds_the_lock_are_told(path: Path) -> None:
    def open_one() -> oxlite.Connection:
        return oxlite.connect(path, isolation_level=None, check_same_thread=False, timeout=60)

    holder, *others = (open_one() for _ in range(4))
    with _native.ActivityWatcher(path) as watcher:
        holder.execute("BEGIN IMMEDIATE")
        holder.execute("INSERT INTO t VALUES ('\x1b[2J')")
        threads = [
            threading.Thread(target=other.execute, args=("INSERT INTO t VALUES (1)",))
            for other in others
        ]
        for thread in threads:
            thread.start()
        # Nobody of them begins anything: those who wait say so.
        until(lambda: counter(watcher, os.getpid(), "waiting") == 3)
        until(watcher.holder)
        held = watcher.holder()
        assert held is not None
        assert held["process_id"] == os.getpid()
        assert held["thread_id"] == threading.get_native_id()
        assert held["sql"] == "INSERT INTO t VALUES ('\\x1b[2J')"
        holder.execute("COMMIT")
        for thread in threads:
            thread.join()
        assert watcher.holder() is None
    for connection in (holder, *others):
        connection.close()


def test_a_snapshot_that_is_kept_is_told(path: Path) -> None:
    reader = oxlite.connect(path, isolation_level=None, check_same_thread=False)
    other = oxlite.connect(path, isolation_level=None)
    with _native.ActivityWatcher(path) as watcher:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t").fetchall()

        def readings() -> list[Any]:
            other.execute("INSERT INTO t VALUES (1)")
            return list(told_now(watcher, os.getpid()).get("readings", []))

        until(readings)
        [reading] = readings()
        assert reading["thread_id"] == threading.get_native_id()
        assert reading["held_ms"] >= 100
        assert reading["sql"] is None
        reader.execute("COMMIT")
        until(lambda: not readings())
    reader.close()
    other.close()


def test_who_was_killed_tells_nothing_any_more(path: Path) -> None:
    with _native.ActivityWatcher(path) as watcher, writer(path) as process:
        told_by(watcher, process.pid)
        process.kill()
        process.wait()
        assert watcher.processes() == []


def test_what_a_killed_watcher_leaves_is_taken_away(path: Path) -> None:
    program = (
        "import sys, time; from oxlite import _native;"
        "watcher = _native.ActivityWatcher(sys.argv[1]); print(1, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", program, str(path)]
    with writer(path) as process:
        killed = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert killed.stdout
        killed.stdout.readline()
        assert activity_file(path).exists()
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        until(lambda: not activity_file(path).exists())
        assert process.poll() is None
        with _native.ActivityWatcher(path) as watcher:
            told_by(watcher, process.pid)


def test_several_watch_and_the_last_one_takes_the_file_along(path: Path) -> None:
    with writer(path) as process:
        first, second = _native.ActivityWatcher(path), _native.ActivityWatcher(path)
        told_by(first, process.pid)
        first.close()
        first.close()
        told_by(second, process.pid)
        with pytest.raises(ValueError, match="closed"):
            first.processes()
        second.close()
        assert not activity_file(path).exists()


def test_watchers_come_and_go_at_once(path: Path) -> None:
    def watch() -> None:
        for _ in range(200):
            with _native.ActivityWatcher(path) as watcher:
                watcher.processes()

    failures: list[BaseException] = []

    def run() -> None:
        try:
            watch()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert not activity_file(path).exists()


@pytest.mark.parametrize(("mode", "expected"), [(0o600, 0o600), (0o660, 0o660), (0o644, 0o600)])
def test_who_cannot_write_the_database_does_not_read_its_statements(
    path: Path, mode: int, expected: int
) -> None:
    path.chmod(mode)
    with _native.ActivityWatcher(path):
        assert stat.S_IMODE(activity_file(path).stat().st_mode) == expected


@pytest.mark.parametrize("content", ["somebody's own\n" * 2000, ""])
def test_a_file_of_somebody_elses_is_not_written_into(path: Path, content: str) -> None:
    other = activity_file(path)
    other.write_text(content)
    other.chmod(0o600)
    with writer(path, 0.01) as process:
        for _ in range(2):
            with pytest.raises(OSError, match=r"-activity: it .* holds something else than notes"):
                _native.ActivityWatcher(path)
            time.sleep(0.6)
        assert process.poll() is None
    assert other.read_text() == content


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a disk that is full")
def test_a_full_disk_leaves_no_file_that_nobody_can_write_into(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("it may not mount")
    try:
        database = small / "app.db"
        with contextlib.closing(oxlite.connect(database)) as connection:
            connection.execute("CREATE TABLE t (x)")
            filling = (small / "filling").open("wb", buffering=0)
            with filling, contextlib.suppress(OSError):
                while True:
                    filling.write(bytes(4096))
            with pytest.raises(OSError, match="No space left on device"):
                _native.ActivityWatcher(database)
            assert not activity_file(database).exists()
            (small / "filling").unlink()
            with _native.ActivityWatcher(database):
                assert activity_file(database).stat().st_size
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)  # the gate stays open


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("missing", "No such file or directory"),
        ("folder", "-activity: Is a directory"),
        ("link", "-activity: .*symbolic link"),
    ],
)
def test_what_cannot_be_watched_says_why(path: Path, kind: str, why: str) -> None:
    if kind == "missing":
        path.unlink()
    elif kind == "folder":
        activity_file(path).mkdir()
    else:
        activity_file(path).symlink_to(path)
    with pytest.raises(OSError, match=why):
        _native.ActivityWatcher(path)


@pytest.mark.parametrize("pragmas", [{"wal_autocheckpoint": 1000}, {"journal_mode": "delete"}])
def test_what_nobody_counts_is_not_told(path: Path, pragmas: dict[str, bool | int | str]) -> None:
    connection = oxlite.connect(path, isolation_level=None, pragmas=pragmas)
    with _native.ActivityWatcher(path) as watcher:

        def counters() -> dict[str, int]:
            connection.execute("INSERT INTO t VALUES (1)")
            return dict(told_now(watcher, os.getpid()).get("counters", {}))

        until(counters)
        told = counters()
        assert "statements" in told
        assert "commits" not in told
        assert "checkpoints" not in told
    connection.close()


def test_a_forked_child_tells_by_itself(path: Path) -> None:
    connection = oxlite.connect(path, isolation_level=None)
    connection.execute("INSERT INTO t VALUES (1)")
    with _native.ActivityWatcher(path) as watcher:

        def own() -> bool:
            connection.execute("INSERT INTO t VALUES (1)")
            return any(told["process_id"] == os.getpid() for told in watcher.processes())

        until(own)
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                mine = oxlite.connect(path, isolation_level=None)
                ends = time.monotonic() + 30
                while time.monotonic() < ends:
                    mine.execute("INSERT INTO t VALUES (1)")
                    time.sleep(0.001)
            os._exit(0)
        try:
            until(lambda: counter(watcher, child, "commits") > 0)
            assert own()
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    connection.close()
