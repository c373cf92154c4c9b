"""Read marks that are kept for a moment: what it saves, and that it is in nobody's way."""

import fcntl
import inspect
import os
import signal
import struct
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest
from tests.faults.injector import ROOT, SUPPORTED, build
from tests.process.actors import DEADLINE, Actor, Start, is_stopped
from tests.wait import until

import oxlite

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="marks are kept on Linux alone")

CHECKPOINT = "connection.execute('PRAGMA wal_checkpoint').fetchone()"

READ_MARKS = range(123, 128)
INDEX_HEADERS_BYTES = 2 * 48

HOT = """
def hot(times=200):
    for _ in range(times):
        connection.execute("SELECT x FROM k WHERE id = 1").fetchone()
"""


def locked_marks(path: Path | str) -> set[int]:
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


COUNTING = """
import sys
import oxlite
from tests.faults.injector import Injector

KINDS = ["shm-lock", "shm-unlock", "lock", "unlock", "read", "write", "stat"]
injector = Injector()
connection = oxlite.connect(sys.argv[1], isolation_level=None)

def calls(work, times):
    injector.arm("sync", 10**9, False, 5)
    for _ in range(times):
        work()
    made = {kind: injector.count(kind) for kind in KINDS}
    injector.disarm()
    return made

def best(work, times):
    # The ten best of some rounds of each a tenth. Where the processor is taken from us for a
    # millisecond, the mark goes; and each millisecond somebody looks whether it is still used.
    rounds = [calls(work, times // 10) for _ in range(1000)]
    rounds.sort(key=lambda made: sum(made.values()))
    return {kind: sum(made[kind] for made in rounds[:10]) for kind in KINDS}

def look_up():
    connection.execute("SELECT x FROM k WHERE id = 1").fetchone()

def insert():
    connection.execute("INSERT INTO k (x) VALUES (1)")
"""


def counted(path: Path, *prepared: str, script: str) -> None:
    """Run ``script``, which counts system calls, on a database made by ``prepared`` statements."""
    build()
    with closing(oxlite.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE k (id INTEGER PRIMARY KEY, x)")
        connection.execute("INSERT INTO k VALUES (1, 1)")
    with closing(oxlite.connect(path, isolation_level=None)) as connection:
        prepare = "".join(f"connection.execute({sql!r}).fetchall()\n" for sql in prepared)
        whole = COUNTING + prepare + textwrap.dedent(script)
        subprocess.run([sys.executable, "-c", whole, path], check=True, cwd=ROOT)


only_where_calls_are_counted = pytest.mark.skipif(
    not SUPPORTED, reason="calls are counted on x86-64 Linux only"
)


@pytest.mark.parametrize(
    "prepared",
    [
        pytest.param([], id="mark 0, nothing written yet"),
        pytest.param(["UPDATE k SET x = 2", "PRAGMA wal_checkpoint"], id="mark 0"),
        pytest.param(["UPDATE k SET x = 2"], id="another mark"),
    ],
)
@only_where_calls_are_counted
def test_a_read_in_a_loop_makes_no_system_call(tmp_path: Path, prepared: list[str]) -> None:
    """Mark 0 is that of who reads the database alone."""
    script = """
    made = best(look_up, 1000)
    assert sum(made.values()) == 0, made
    """
    counted(tmp_path / "app.db", *prepared, script=script)


@only_where_calls_are_counted
def test_an_insert_in_a_loop_locks_for_writing_alone(tmp_path: Path) -> None:
    """It reads under the mark of the one before, and moves that only now and then."""
    script = """
    made = best(insert, 200)
    assert made == {
        "shm-lock": 200, "shm-unlock": 200, "lock": 0, "unlock": 0,
        "read": 0, "write": 200, "stat": 0,
    }, made
    """
    counted(tmp_path / "app.db", "PRAGMA wal_autocheckpoint = 0", script=script)


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


def test_the_mark_of_who_writes_in_a_loop_moves_on(reader: Actor, start: Start) -> None:
    """What others copy back follows it, and the WAL can begin anew."""
    other = start("standard")
    assert other.does("connection = standard.connect(sys.argv[1], timeout=30)") == "done"
    write = """
    def write(times=200):
        for _ in range(times):
            connection.execute("UPDATE k SET x = x + 1")
    """
    assert reader.does(f"exec({textwrap.dedent(write)!r}, globals())") == "done"
    assert reader.does("connection.execute('PRAGMA wal_autocheckpoint = 0')") == "done"
    reader.tell("while True: write(100)")
    copied = f"copied = set()\nwhile len(copied) < 10: copied.add({CHECKPOINT}[2])"
    assert other.does(f"exec({copied!r}, globals())") == "done"
    reader.signal(signal.SIGINT)
    assert "KeyboardInterrupt" in reader.answer()
    # The last mark has gone, or goes within milliseconds.
    until(lambda: other.does(f"_, log, copied = {CHECKPOINT}; assert log == copied") == "done")
    assert reader.does("write(1)") == "done"
    assert other.does(f"assert {CHECKPOINT}[1] == 1") == "done"


def test_who_writes_in_a_loop_copies_back_all_that_he_wrote(reader: Actor, path: Path) -> None:
    """His own checkpoints move the mark."""
    assert reader.does("connection.execute('PRAGMA wal_checkpoint(TRUNCATE)')") == "done"
    assert reader.does("connection.execute('PRAGMA wal_autocheckpoint = 4')") == "done"
    write = "for _ in range(2000): connection.execute('UPDATE k SET x = x + 1')"
    assert reader.does(f"exec({write!r}, globals())") == "done"
    assert Path(f"{path}-wal").stat().st_size < 10 * 4120


def test_two_who_write_in_loops_lose_nothing(reader: Actor, start: Start) -> None:
    """Each moves the other's marks; one of them knows nothing of kept ones."""
    other = start("standard")
    assert other.does("connection = standard.connect(sys.argv[1], timeout=30)") == "done"
    assert other.does("connection.isolation_level = None") == "done"
    loop = """
    def write():
        for number in range(2000):
            connection.execute("UPDATE k SET x = x + 1")
            if number % 500 == 0:
                connection.execute("PRAGMA wal_checkpoint(RESTART)")
    """
    for actor in (reader, other):
        assert actor.does(f"exec({textwrap.dedent(loop)!r}, globals())") == "done"
        actor.tell("write()")
    assert [actor.answer() for actor in (reader, other)] == ["done", "done"]
    for actor in (reader, other):
        line = "assert connection.execute('SELECT x FROM k').fetchone() == (4001,)"
        assert actor.does(line) == "done"


def test_a_database_that_grows_under_an_empty_log_is_read_whole(
    reader: Actor, start: Start, path: Path
) -> None:
    """Its size is not asked for at each read, while nobody can write to it.

    SQLite knows it from the header of the index, but after a recovery that found an empty WAL.
    """
    other = start("standard")
    assert other.does("connection = standard.connect(sys.argv[1], timeout=30)") == "done"
    assert other.does("connection.isolation_level = None") == "done"
    count = "connection.execute('SELECT count(*), sum(length(x) > 1) FROM k').fetchone()"
    for rows in range(1, 20):
        assert other.does("execute('PRAGMA wal_checkpoint(TRUNCATE)')") == "done"
        with Path(f"{path}-shm").open("r+b") as index:
            index.write(bytes(INDEX_HEADERS_BYTES))
        assert reader.does("hot()") == "done"
        line = f"found = {count}; assert found == ({rows}, {rows - 1}), found"
        assert reader.does(line) == "done"
        assert other.does("execute('INSERT INTO k (x) VALUES (randomblob(100000))')") == "done"


def test_who_reads_now_and_then_keeps_nothing(reader: Actor) -> None:
    """Not even for the moment after his read."""
    script = f"""
import fcntl, os, struct, time
from pathlib import Path
READ_MARKS = {READ_MARKS}
{inspect.getsource(locked_marks)}
def now_and_then():
    for _ in range(40):
        time.sleep(0.002)
        hot(1)
    return locked_marks(sys.argv[1])
"""
    assert reader.does(f"exec({script!r}, globals())") == "done"
    assert reader.does("found = now_and_then(); assert not found, found") == "done"


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
