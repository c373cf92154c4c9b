"""Read marks that are kept for a moment: what it saves, and that it is in nobody's way."""

import fcntl
import os
import signal
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.faults.injector import ROOT, SUPPORTED, build
from tests.process.actors import DEADLINE, Actor, Start, is_stopped
from tests.wait import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="marks are kept on Linux alone")

READ_MARKS = range(123, 128)

HOT = """
def hot(times=200):
    for _ in range(times):
        connection.execute("SELECT x FROM k WHERE id = 1").fetchone()
"""


def locked_marks(path: Path) -> set[int]:
    """The read marks that somebody has locked."""
    descriptor = os.open(f"{path}-shm", os.O_RDWR | os.O_CLOEXEC)
    form = "hhqqi4x"
    found = set()
    for byte in READ_MARKS:
        lock = struct.pack(form, fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        lock = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, lock)
        if struct.unpack(form, lock)[0] != fcntl.F_UNLCK:
            found.add(byte)
    os.close(descriptor)
    return found


@pytest.fixture
def reader(start: Start) -> Actor:
    """A process that has read often, and keeps its connection."""
    actor = start()
    assert actor.does("execute('CREATE TABLE k (id INTEGER PRIMARY KEY, x)')") == "done"
    assert actor.does("execute('INSERT INTO k VALUES (1, 1)')") == "done"
    assert actor.does(f"exec({HOT!r}, globals())") == "done"
    return actor


@pytest.mark.parametrize("checkpoint", ["PRAGMA wal_checkpoint", "SELECT 1"])
@pytest.mark.skipif(not SUPPORTED, reason="calls are counted on x86-64 Linux only")
def test_a_read_in_a_loop_makes_no_system_call(tmp_path: Path, checkpoint: str) -> None:
    """On mark 0, which is that of who reads the database alone, and on another."""
    build()
    script = f"""
    import sys
    import oxlite
    from tests.faults.injector import Injector

    KINDS = ["shm-lock", "shm-unlock", "lock", "unlock", "read", "write", "stat"]
    injector = Injector()
    connection = oxlite.connect(sys.argv[1], isolation_level=None)
    connection.execute("CREATE TABLE k (id INTEGER PRIMARY KEY, x)")
    connection.execute("INSERT INTO k VALUES (1, 1)")
    connection.execute({checkpoint!r}).fetchall()

    def calls(work):
        injector.arm("sync", 10**9, False, 5)
        work()
        made = {{kind: injector.count(kind) for kind in KINDS}}
        injector.disarm()
        return made

    def thousand():
        for _ in range(1000):
            connection.execute("SELECT x FROM k WHERE id = 1").fetchone()

    # Where the processor is taken from us for a millisecond, the mark goes: so the best of some.
    rounds = [calls(thousand) for _ in range(300)]
    assert min(sum(made.values()) for made in rounds) == 0, rounds

    # Who reads now and then does as ever: it locks and lets go.
    import time
    def once():
        connection.execute("SELECT x FROM k WHERE id = 1").fetchone()
    def now_and_then():
        time.sleep(0.05)
        return calls(once)
    assert now_and_then()["shm-lock"] == 1
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), tmp_path / "app.db"], check=True, cwd=ROOT
    )


def test_it_is_let_go_by_itself(reader: Actor, path: Path) -> None:
    assert reader.does("hot()") == "done"
    until(lambda: not locked_marks(path))


def test_who_waits_for_nothing_else_may_checkpoint(reader: Actor, start: Start, path: Path) -> None:
    """An old SQLite, which knows nothing of it."""
    other = start("standard")
    assert other.does("connection = standard.connect(sys.argv[1], timeout=30)") == "done"
    for _ in range(20):
        assert reader.does("hot()") == "done"
        assert other.does("execute('UPDATE k SET x = x + 1')") == "done"
        assert other.does("connection.commit()") == "done"
        assert reader.does("hot()") == "done"
        line = "assert connection.execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchone()[0] == 0"
        assert other.does(line) == "done"
        assert Path(f"{path}-wal").stat().st_size == 0
    line = "assert connection.execute('SELECT x FROM k').fetchone() == (21,)"
    assert reader.does(line) == "done"


def test_another_connection_of_the_process_does_not_meet_it(reader: Actor) -> None:
    assert reader.does("other = oxlite.connect(sys.argv[1])") == "done"
    for _ in range(20):
        assert reader.does("hot()") == "done"
        # At once: nothing is waited for.
        line = "assert other.execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchone()[0] == 0"
        assert reader.does(f"hot(); {line}") == "done"
        assert reader.does("execute('UPDATE k SET x = x + 1')") == "done"


def test_what_others_commit_is_seen_at_once(reader: Actor, start: Start) -> None:
    other = start()
    for count in range(2, 60):
        assert reader.does("hot(40)") == "done"
        assert other.does(f"execute('UPDATE k SET x = {count}')") == "done"
        line = f"assert connection.execute('SELECT x FROM k').fetchone() == ({count},)"
        assert reader.does(line) == "done"


@pytest.mark.parametrize("mode", ["DELETE", "EXCLUSIVE"])
def test_the_journal_mode_can_be_changed(reader: Actor, start: Start, mode: str) -> None:
    """Once nobody else has the database open."""
    other = start("standard")
    assert other.does("connection = standard.connect(sys.argv[1], timeout=30)") == "done"
    assert reader.does("hot(); connection.close()") == "done"
    pragma = {"DELETE": "journal_mode = DELETE", "EXCLUSIVE": "locking_mode = EXCLUSIVE"}[mode]
    line = f"assert connection.execute('PRAGMA {pragma}').fetchone() == ({mode.lower()!r},)"
    assert other.does(line) == "done"
    assert other.does("execute('UPDATE k SET x = 5')") == "done"


@pytest.mark.parametrize("end", [signal.SIGSTOP, signal.SIGKILL])
def test_a_process_that_ends_or_stops_in_the_middle(
    reader: Actor, start: Start, path: Path, end: signal.Signals
) -> None:
    """A process that is stopped keeps its mark until it goes on; one that is killed does not."""
    other = start("standard")
    assert other.does("connection = standard.connect(sys.argv[1], timeout=0.2)") == "done"
    for _ in range(5):
        reader.tell("while True: hot()")
        until(lambda: locked_marks(path))
        reader.signal(end)
        if end == signal.SIGSTOP:
            until(lambda: is_stopped(reader))
            is_kept = bool(locked_marks(path))
            reader.signal(signal.SIGCONT)
            reader.signal(signal.SIGINT)
            assert "KeyboardInterrupt" in reader.answer()
            if is_kept:
                break
        else:
            reader.process.wait(DEADLINE)
            break
    else:
        pytest.fail("it was never stopped with a mark")
    until(lambda: not locked_marks(path))
    line = "assert connection.execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchone()[0] == 0"
    assert other.does(line) == "done"


def test_a_fork_finds_no_thread_and_no_mark(reader: Actor, path: Path) -> None:
    """Python 3.12 and later warn who forks with threads beside him."""
    script = """
    def names():
        tasks = os.listdir("/proc/self/task")
        return sorted(open(f"/proc/self/task/{task}/comm").read() for task in tasks)

    def fork():
        hot()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                assert len(names()) == 1, names()
                own = oxlite.connect(sys.argv[1])
                for _ in range(200):
                    assert own.execute("SELECT x FROM k").fetchone() == (1,)
                own.close()
                status = 0
            finally:
                os._exit(status)
        assert not any("oxlite-marks" in name for name in names()), names()
        assert os.waitpid(child, 0)[1] == 0
        hot()
    """
    assert reader.does(f"exec({textwrap.dedent(script)!r}, globals())") == "done"
    for _ in range(20):
        assert reader.does("fork()") == "done"
    until(lambda: not locked_marks(path))


def test_the_thread_ends_by_itself(reader: Actor) -> None:
    assert reader.does("hot()") == "done"
    tasks = Path(f"/proc/{reader.process.pid}/task")
    until(lambda: len(list(tasks.iterdir())) == 1)


def test_descriptors_that_are_closed_behind_its_back_are_noticed(reader: Actor) -> None:
    """As a daemon does it. Then there is no lock, and nothing may be read as if there were."""
    script = """
    def close_and_read():
        hot()
        os.closerange(3, 256)
        for _ in range(1_000_000):
            hot(1)
    """
    assert reader.does(f"exec({textwrap.dedent(script)!r}, globals())") == "done"
    reader.tell("close_and_read()")
    assert "OperationalError" in reader.answer()


def test_a_database_that_cannot_be_written_is_read(reader: Actor, start: Start, path: Path) -> None:
    """Through a lock descriptor that only reads nothing is kept."""
    assert reader.does(f"only = oxlite.connect('file:{path}?mode=ro', uri=True)") == "done"
    line = "[only.execute('SELECT x FROM k').fetchone() for _ in range(200)]"
    assert reader.does(line) == "done"
    assert reader.does("execute('UPDATE k SET x = 2')") == "done"
    assert reader.does("assert only.execute('SELECT x FROM k').fetchone() == (2,)") == "done"
