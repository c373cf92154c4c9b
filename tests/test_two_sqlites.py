"""Two SQLites in one process: neither drops the other's locks, so far as that can be helped.

The second one is the standard library's. What a lock keeps out is asked of a process of its own.
"""

import contextlib
import platform
import random
import sqlite3 as standard
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oxlite import sqlite3

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in {"x86_64", "aarch64"},
    reason="open-file-description locks are taken on these alone",
)

JOURNALS = ["delete", "wal"]

_OUTSIDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    for sql in sys.argv[2:]:
        rows = connection.execute(sql).fetchall()
    print("done", rows[0][0] if rows else "", sep=":", end="")
except sqlite3.OperationalError as error:
    print(error, end="")
connection.close()
"""


_READER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
rows = connection.execute("SELECT x FROM t")
next(rows)
print("in", flush=True)
sys.stdin.read()
"""


def outsider(path: Path, *statements: str) -> str:
    """What becomes of these statements in a process of its own that does not wait for locks."""
    command = [sys.executable, "-c", _OUTSIDER, str(path), *statements]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def outsider_writes(path: Path) -> bool:
    """Whether another process gets the write lock."""
    answer = outsider(path, "BEGIN IMMEDIATE", "ROLLBACK")
    assert answer in {"done:", "database is locked"}
    return answer == "done:"


def outsider_gets_everything(path: Path) -> bool:
    """Whether no lock at all is in another process's way."""
    if outsider(path, "PRAGMA journal_mode") == "done:wal":
        return outsider(path, "PRAGMA wal_checkpoint(TRUNCATE)") == "done:0"
    answer = outsider(path, "BEGIN EXCLUSIVE", "ROLLBACK")
    assert answer in {"done:", "database is locked"}
    return answer == "done:"


def rows_seen_outside(path: Path) -> int:
    assert outsider(path, "PRAGMA integrity_check") == "done:ok"
    return int(outsider(path, "SELECT count(*) FROM t").removeprefix("done:"))


def open_descriptors(*paths: Path) -> int:
    """How many descriptors of this process are open on these files."""
    wanted = {str(path) for path in paths}
    found = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found += str(entry.readlink()) in wanted
        except FileNotFoundError:
            continue  # that of the listing itself
    return found


Connect = Callable[..., sqlite3.Connection]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Opens connections of ours that do not wait; closed after the test."""
    opened = []

    def connect(path: Path | str, uri: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, uri=uri)
        opened.append(connection)
        return connection

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture(params=JOURNALS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A database with three rows, in each journal mode."""
    path = tmp_path / "app.db"
    connection = standard.connect(path)
    connection.execute(f"PRAGMA journal_mode = {request.param}")
    connection.execute("CREATE TABLE t (x)")
    connection.executemany("INSERT INTO t VALUES (?)", [(1,), (2,), (3,)])
    connection.commit()
    connection.close()
    return path


def visit(path: Path) -> None:
    """The standard library's SQLite opens, reads and closes the file."""
    visitor = standard.connect(path, timeout=0)
    visitor.execute("SELECT count(*) FROM t").fetchall()
    visitor.close()


def test_anothers_close_leaves_us_the_write_lock(path: Path, connect: Connect) -> None:
    ours = connect(path)
    ours.execute("BEGIN IMMEDIATE")
    ours.execute("INSERT INTO t VALUES (4)")
    visit(path)
    assert not outsider_writes(path)
    ours.execute("COMMIT")
    assert outsider_writes(path)
    assert rows_seen_outside(path) == 4


@pytest.mark.parametrize("suffix", ["", "-shm", "-wal"])
def test_a_plain_open_and_close_leaves_us_the_write_lock(
    path: Path, connect: Connect, suffix: str
) -> None:
    ours = connect(path)
    ours.execute("BEGIN IMMEDIATE")
    touched = Path(f"{path}{suffix}")
    if touched.exists():
        with touched.open("rb"):
            pass
    assert not outsider_writes(path)
    ours.execute("COMMIT")


def test_acknowledged_commits_survive_a_visit(path: Path, connect: Connect) -> None:
    ours = connect(path)
    ours.execute("INSERT INTO t VALUES (4)")
    visit(path)
    # An outsider that believes itself alone takes the WAL away from us when it closes.
    assert outsider(path, "INSERT INTO t VALUES (5)") == "done:"
    for _ in range(3):
        ours.execute("INSERT INTO t VALUES (6)")
    assert rows_seen_outside(path) == 8
    ours.close()
    assert rows_seen_outside(path) == 8


def test_a_reader_of_ours_keeps_its_lock(path: Path, connect: Connect) -> None:
    ours = connect(path)
    rows = ours.execute("SELECT x FROM t")
    next(rows)
    # Else there is nothing for a checkpoint to wait for.
    outsider(path, "INSERT INTO t VALUES (4)")
    visit(path)
    assert not outsider_gets_everything(path)
    assert len(rows.fetchall()) == 2
    assert outsider_gets_everything(path)


def test_our_close_leaves_another_the_write_lock(path: Path, connect: Connect) -> None:
    other = standard.connect(path, timeout=0, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO t VALUES (4)")
    ours = connect(path)
    assert ours.execute("SELECT count(*) FROM t").fetchone() == (3,)
    ours.close()
    assert not outsider_writes(path)
    other.execute("COMMIT")
    assert outsider_writes(path)
    other.close()
    assert rows_seen_outside(path) == 4


def test_our_close_leaves_another_its_lock_among_those_of_other_processes(
    path: Path, connect: Connect
) -> None:
    # What the kernel tells of first is then the other process's lock.
    with subprocess.Popen(
        [sys.executable, "-c", _READER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        reader.stdout.readline()
        other = standard.connect(path, timeout=0, isolation_level=None)
        rows = other.execute("SELECT x FROM t")
        next(rows)
        ours = connect(path)
        assert ours.execute("SELECT count(*) FROM t").fetchone() == (3,)
        ours.close()
        reader.stdin.close()
    outsider(path, "INSERT INTO t VALUES (4)")
    assert not outsider_gets_everything(path)
    rows.close()
    other.close()
    assert outsider_gets_everything(path)


def test_our_close_leaves_another_its_wal(path: Path, connect: Connect) -> None:
    other = standard.connect(path, timeout=0, isolation_level=None)
    assert other.execute("SELECT count(*) FROM t").fetchone() == (3,)
    ours = connect(path)
    ours.execute("INSERT INTO t VALUES (4)")
    ours.close()
    assert outsider(path, "INSERT INTO t VALUES (5)") == "done:"
    other.execute("INSERT INTO t VALUES (6)")
    assert rows_seen_outside(path) == 6
    other.close()
    assert rows_seen_outside(path) == 6


def test_descriptors_that_wait_for_anothers_locks_are_used_again_and_closed(
    path: Path, connect: Connect
) -> None:
    other = standard.connect(path, timeout=0, isolation_level=None)
    rows = other.execute("SELECT x FROM t")
    next(rows)
    files = [path, Path(f"{path}-shm"), Path(f"{path}-wal")]
    before = open_descriptors(*files)
    for _ in range(100):
        ours = connect(path)
        assert ours.execute("SELECT count(*) FROM t").fetchone() == (3,)
        ours.close()
    assert open_descriptors(*files) <= before + 4
    rows.close()
    other.close()
    # Closed when SQLite next closes anything.
    connect(path).close()
    assert open_descriptors(*files) == 0


def test_no_more_descriptors_wait_than_allowed(path: Path, connect: Connect) -> None:
    other = standard.connect(path, timeout=0, isolation_level=None)
    rows = other.execute("SELECT x FROM t")
    next(rows)
    many = [connect(path) for _ in range(200)]
    for ours in many:
        ours.execute("SELECT count(*) FROM t").fetchone()
    before = open_descriptors(path)
    for ours in many:
        ours.close()
    assert before > 200
    assert open_descriptors(path) < 80
    other.close()


def test_a_second_user_is_named_once_when_a_connection_is_opened(
    path: Path, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    connect(path)
    assert not caplog.records, "nobody else has it open"
    with contextlib.closing(standard.connect(path)) as other:
        other.execute("SELECT * FROM t").fetchall()
        connect(path)
        connect(path)
    [record] = caplog.records
    assert (record.name, record.levelname) == ("oxlite", "WARNING")
    assert record.getMessage().startswith(f"{path} is open in this process beside Oxlite")
    assert "_sqlite3" in record.getMessage(), "the library that can have opened it"


@pytest.mark.parametrize("first_to_end", [0, 1])
def test_overlapping_readers_leave_no_lock(path: Path, connect: Connect, first_to_end: int) -> None:
    readers = [connect(path), connect(path)]
    running = [reader.execute("SELECT x FROM t") for reader in readers]
    for rows in running:
        next(rows)
    outsider(path, "INSERT INTO t VALUES (4)")
    assert not outsider_gets_everything(path)
    running[first_to_end].close()
    assert not outsider_gets_everything(path)
    running[1 - first_to_end].close()
    assert outsider_gets_everything(path)


@pytest.mark.parametrize("first_to_close", [0, 1])
def test_a_lock_outlives_the_connection_that_shares_it(
    path: Path, connect: Connect, first_to_close: int
) -> None:
    readers = [connect(path), connect(path)]
    for reader in readers:
        reader.execute("SELECT x FROM t").fetchall()
    staying = readers[1 - first_to_close]
    rows = staying.execute("SELECT x FROM t")
    next(rows)
    outsider(path, "INSERT INTO t VALUES (4)")
    readers[first_to_close].close()
    assert not outsider_gets_everything(path)
    rows.close()
    assert outsider_gets_everything(path)
    staying.execute("BEGIN IMMEDIATE")
    assert not outsider_writes(path)
    staying.execute("ROLLBACK")
    staying.close()
    assert outsider_gets_everything(path)


@pytest.mark.parametrize("stays", [True, False], ids=["reader stays", "reader goes"])
def test_a_writer_takes_over_from_a_read_only_connection(
    path: Path, connect: Connect, stays: bool
) -> None:
    reader = connect(f"file:{path}?mode=ro", uri=True)
    rows = reader.execute("SELECT x FROM t")
    next(rows)
    writer = connect(path)
    writer.execute("BEGIN IMMEDIATE")
    visit(path)
    assert not outsider_writes(path)
    writer.execute("ROLLBACK")
    outsider(path, "INSERT INTO t VALUES (4)")
    assert not outsider_gets_everything(path)
    if not stays:
        rows.close()
        reader.close()
        assert outsider_gets_everything(path)
    else:
        assert len(rows.fetchall()) == 2
        assert outsider_gets_everything(path)
        assert len(reader.execute("SELECT x FROM t").fetchall()) >= 3
    writer.execute("INSERT INTO t VALUES (5)")
    assert outsider_gets_everything(path)


@pytest.mark.parametrize("link", ["symbolic", "hard"])
def test_a_file_has_one_set_of_locks_under_all_its_names(
    path: Path, connect: Connect, link: str
) -> None:
    alias = path.with_name("alias.db")
    if link == "symbolic":
        alias.symlink_to(path)
    elif outsider(path, "PRAGMA journal_mode") == "done:wal":
        pytest.skip("SQLite makes a WAL of its own for each hard link: to be avoided")
    else:
        alias.hardlink_to(path)
    one, two = connect(path), connect(alias)
    one.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="database is locked"):
        two.execute("BEGIN IMMEDIATE")
    visit(alias)
    assert not outsider_writes(path)
    assert not outsider_writes(alias)
    one.execute("COMMIT")
    one.close()
    two.execute("BEGIN IMMEDIATE")
    assert not outsider_writes(path)
    two.execute("COMMIT")
    assert outsider_gets_everything(path)


def test_a_number_used_again_is_another_file(path: Path, connect: Connect) -> None:
    other = path.with_name("other.db")
    other.write_bytes(path.read_bytes())
    for before, after in [(path, other), (other, path)] * 3:
        first = connect(before)
        first.execute("BEGIN IMMEDIATE")
        first.execute("ROLLBACK")
        first.close()
        second = connect(after)
        second.execute("BEGIN IMMEDIATE")
        assert outsider_writes(before)
        assert not outsider_writes(after)
        second.close()


_LOST = """
import os, sqlite3 as standard, sys
from pathlib import Path
from oxlite import sqlite3

victim, other = sys.argv[1:]
lost = sqlite3.connect(victim)
lost.execute("SELECT * FROM t").fetchall()
for entry in Path("/proc/self/fd").iterdir():
    if entry.is_symlink() and entry.readlink().name.startswith("victim.db"):
        os.close(int(entry.name))
ours = sqlite3.connect(other, isolation_level=None)
ours.execute("BEGIN IMMEDIATE")
visitor = standard.connect(other, timeout=0)
visitor.execute("SELECT count(*) FROM t").fetchall()
visitor.close()
print("in", flush=True)
sys.stdin.read()
os._exit(0)
"""


def test_a_number_closed_behind_our_back_is_another_file(path: Path) -> None:
    victim, other = path.with_name("victim.db"), path.with_name("other.db")
    for copy in (victim, other):
        copy.write_bytes(path.read_bytes())
    # In a process of its own: who closes what is not his has to end soon.
    with subprocess.Popen(
        [sys.executable, "-c", _LOST, str(victim), str(other)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"in\n"
        assert not outsider_writes(other)
        assert outsider_writes(victim)
        process.stdin.close()


def test_random_moves_leave_the_locks_that_the_state_asks_for(path: Path, connect: Connect) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    open_ones: list[sqlite3.Connection] = []
    read_only: set[sqlite3.Connection] = set()
    reading: dict[sqlite3.Connection, sqlite3.Cursor] = {}
    writing: sqlite3.Connection | None = None
    for _ in range(150):
        match chance.choice(
            ["open", "open_ro", "close", "read", "end", "write", "finish", "visit"]
        ):
            case "open" if len(open_ones) < 8:
                open_ones.append(connect(path))
            case "open_ro" if len(open_ones) < 8:
                open_ones.append(connect(f"file:{path}?mode=ro", uri=True))
                read_only.add(open_ones[-1])
            case "close" if open_ones:
                gone = open_ones.pop(chance.randrange(len(open_ones)))
                reading.pop(gone, None)
                writing = None if gone is writing else writing
                gone.close()
            case "read" if open_ones:
                reader = chance.choice(open_ones)
                rows = reader.execute("SELECT x FROM t")
                next(rows)
                reading[reader] = rows
            case "end" if reading:
                reading.pop(chance.choice(list(reading))).close()
            case "write" if open_ones and writing is None:
                writer = chance.choice(open_ones)
                if writer not in reading and writer not in read_only:
                    writer.execute("BEGIN IMMEDIATE")
                    writing = writer
            case "finish" if writing is not None:
                writing.execute("ROLLBACK")
                reading.pop(writing, None)
                writing = None
            case "visit":
                visit(path)
        if chance.random() < 0.3:
            assert outsider_writes(path) == (writing is None)
    for connection in open_ones:
        connection.close()
    assert outsider_gets_everything(path)
    assert open_descriptors(path, Path(f"{path}-shm")) == 0


_WORKER = """
import os, random, sqlite3 as standard, sys, threading
from pathlib import Path
from oxlite import sqlite3

path, inside, seed, kind = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
written = [0] * 3
failures = []
# A lock that the standard library takes between our look and our close could not be helped.
other_is_locking = threading.Lock()

def write(number):
    chance = random.Random(seed * 10 + number)
    connection = None
    try:
        for _ in range(60):
            if connection is None:
                connection = sqlite3.connect(path, timeout=120, isolation_level=None)
            connection.execute("SELECT count(*) FROM t").fetchone()
            connection.execute(chance.choice(["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"]))
            inside.touch(exist_ok=False)
            connection.execute("UPDATE n SET n = n + 1")
            connection.execute("INSERT INTO t VALUES (1)")
            inside.unlink()
            connection.execute("COMMIT")
            written[number] += 1
            if chance.random() < 0.2:
                with other_is_locking:
                    connection.close()
                connection = None
        with other_is_locking:
            if connection is not None:
                connection.close()
    except BaseException as failure:
        failures.append(repr(failure))

def visit(stop):
    while not stop.wait(0.001):
        with other_is_locking:
            visitor = standard.connect(path, timeout=0)
            try:
                visitor.execute("SELECT count(*) FROM t").fetchall()
            except standard.OperationalError as error:
                if "locked" not in str(error):
                    failures.append(repr(error))
            visitor.close()

stop = threading.Event()
visitors = [threading.Thread(target=visit, args=(stop,))] if kind == "visited" else []
writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
for thread in visitors + writers:
    thread.start()
for writer in writers:
    writer.join()
stop.set()
for visitor in visitors:
    visitor.join()
print(sum(written), *failures, sep="\\n")
"""


@pytest.mark.timeout(300)
def test_no_two_writers_are_ever_inside(path: Path, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    outsider(path, "CREATE TABLE n (n)", "INSERT INTO n VALUES (0)")
    workers = [
        subprocess.Popen(
            [
                *[sys.executable, "-c", _WORKER, str(path), str(tmp_path / "inside")],
                *[str(seed + number), "visited" if number < 2 else "ours alone"],
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    answers = [worker.communicate()[0].split("\n") for worker in workers]
    assert [answer[1:] for answer in answers] == [[""]] * 3
    written = sum(int(answer[0]) for answer in answers)
    assert written == 3 * 3 * 60
    assert outsider(path, "SELECT n FROM n") == f"done:{written}"
    assert rows_seen_outside(path) == 3 + written
