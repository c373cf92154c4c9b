"""The frames of a commit reach the log in one write, and nothing is lost by it.

Each case runs in a process of its own, where what is done to the files is recorded and may fail:
see ``interposer``. What is lost shows when the log is recovered: from copies of the files, as after
a crash. Why it holds: ``docs/decisions/0051-gathered-frames.md``.
"""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.faults.injector import ROOT, SUPPORTED, build

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="faults are injected on x86-64 Linux only")

PRELUDE = '''
import errno, itertools, os, random, shutil, subprocess, sys
from pathlib import Path
import oxlite
from oxlite import sqlite3
from tests.crash import log
from tests.crash.recorder import Recorder

HEADER = 24
FRAME = HEADER + 4096
NEVER = 1 << 40
SHORT = -1
folder = Path(sys.argv[1]).resolve() / "files"
folder.mkdir()
path = folder / "app.db"
record = folder.with_name("record")
log.create(record, 1 << 28)
recorder = Recorder()
recorder.begin(record, folder, 0)
injector = recorder.injector
copies = itertools.count()
INSERT = "INSERT INTO t (x) VALUES (?)"
ALL = "SELECT id, x FROM t ORDER BY id"

def opened(name=path, profile="web", uri=False, **pragmas):
    pragmas = {"wal_autocheckpoint": 0, **pragmas}
    return oxlite.connect(
        name, profile=profile, uri=uri, isolation_level=None, pragmas=pragmas, timeout=30
    )

def made(*arguments, **options):
    connection = opened(*arguments, **options)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)")
    return connection

def pages(connection, number, size=4000):
    for index in range(number):
        connection.execute(INSERT, (bytes([index % 256]) * size,))

def written(work, name="app.db-wal"):
    "What work writes to a log: (offset, length, process)."
    recorder.mark("here")
    work()
    events = log.read(record)
    begin = max(n for n, event in enumerate(events) if event.kind is log.Kind.MARK)
    files = {e.file for e in events if e.kind is log.Kind.OPEN and e.content == name.encode()}
    return [
        (event.first, len(event.content), event.process)
        for event in events[begin:] if event.kind is log.Kind.WRITE and event.file in files
    ]

def lengths(work, name="app.db-wal"):
    return [length for _, length, _ in written(work, name)]

def recovered(query=ALL, name="app.db"):
    "What is there after a crash in which the disk has kept all that was written."
    place = folder.with_name(f"copy{next(copies)}")
    place.mkdir()
    for file in (name, name + "-wal"):
        if (folder / file).exists():
            shutil.copy(folder / file, place)
    connection = sqlite3.connect(place / name)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return connection.execute(query).fetchall()

OTHER = """
import sys
from oxlite import sqlite3
for sql in sys.stdin:
    connection = sqlite3.connect(sys.argv[1])
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(sql)
    connection.commit()
    connection.close()
    print("done", flush=True)
"""
other = subprocess.Popen(
    [sys.executable, "-c", OTHER, str(path)],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
)

def elsewhere(sql):
    "Another process writes."
    print(sql, file=other.stdin, flush=True)
    assert other.stdout.readline() == "done\\n"

def failure(work):
    try:
        work()
    except sqlite3.Error as error:
        return error.sqlite_errorname
    return None

def rows(connection):
    return connection.execute(ALL).fetchall()
'''


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    """Built once."""
    build()


def run(tmp_path: Path, script: str) -> None:
    """Run it in a process; what it asserts must hold."""
    script = PRELUDE + textwrap.dedent(script)
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=ROOT,
        check=True,
        timeout=120,
    )


@pytest.mark.parametrize("profile", ["web", "durable"])
@pytest.mark.parametrize("number", [1, 10, 20])
def test_a_transaction_is_one_write(tmp_path: Path, profile: str, number: int) -> None:
    run(
        tmp_path,
        f"""
        connection = made(profile="{profile}")
        connection.execute(INSERT, ("before",))
        def transaction():
            connection.execute("BEGIN IMMEDIATE")
            pages(connection, {number})
            assert not lengths(lambda: None)
            connection.execute("COMMIT")
        (length,) = lengths(transaction)
        assert length % FRAME == 0 and length >= {number} * FRAME, length
        assert rows(connection) == recovered()
        """,
    )


def test_statements_by_themselves_and_by_the_standard_librarys_face(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)")
        for number in range(10):
            assert lengths(lambda: connection.execute(INSERT, (number,))) == [FRAME]
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        writes = lengths(lambda: connection.execute(INSERT, ("the log begins anew",)))
        assert writes == [32, FRAME], writes
        assert rows(connection) == recovered()
        """,
    )


@pytest.mark.parametrize("page_size", [512, 1024, 4096, 65536])
def test_no_write_is_larger_than_sqlite_can_make(tmp_path: Path, page_size: int) -> None:
    run(
        tmp_path,
        f"""
        connection = made(page_size={page_size})
        def transaction(number):
            connection.execute("BEGIN IMMEDIATE")
            pages(connection, number, {page_size} * 3)
            connection.execute("COMMIT")
        for number in (1, 2, 13, 40, 400):
            writes = lengths(lambda: transaction(number))
            assert max(writes) <= 131_071, writes
            whole = 131_071 // ({page_size} + HEADER)
            frames = sum(writes) // ({page_size} + HEADER)
            assert len(writes) == -(-frames // whole), (writes, whole)
            assert rows(connection) == recovered()
        """,
    )


def test_spills_go_straight_through(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        connection = made(cache_size=5)
        connection.execute("BEGIN IMMEDIATE")
        spilled = lengths(lambda: pages(connection, 60))
        assert len(spilled) > 80 and set(spilled) <= {HEADER, 4096}, spilled
        connection.execute("COMMIT")
        assert rows(connection) == recovered()
        # A spill that fails is an error of the statement that has spilled, and rolls back.
        connection.execute("BEGIN IMMEDIATE")
        injector.arm("write", 1, True, errno.ENOSPC)
        assert failure(lambda: pages(connection, 60)) == "SQLITE_FULL"
        assert injector.disarm() > 0
        assert not connection.in_transaction
        assert rows(connection) == recovered()
        """,
    )


@pytest.mark.parametrize("profile", ["web", "durable"])
def test_checksums_that_are_rewritten_reach_the_log(
    tmp_path: Path, profile: str, seed: int
) -> None:
    """The last header is written by itself, after the last frame."""
    run(
        tmp_path,
        f"""
        generator = random.Random({seed})
        connection = made(profile="{profile}", cache_size=5)
        pages(connection, 50)
        rewritten = 0
        for _ in range(20):
            connection.execute("BEGIN IMMEDIATE")
            for _ in range(generator.randint(10, 60)):
                what = bytes([generator.randrange(256)]) * 4000
                where = generator.randint(1, 50)
                connection.execute("UPDATE t SET x = ? WHERE id = ?", (what, where))
            last = lengths(lambda: connection.execute("COMMIT"))
            rewritten += last[-2:] == [HEADER, HEADER]
            assert rows(connection) == recovered()
        assert rewritten > 5, rewritten
        """,
    )


@pytest.mark.parametrize("ends", ["ROLLBACK TO s", "ROLLBACK"])
def test_what_is_rolled_back_after_a_spill_overwrites_nothing(tmp_path: Path, ends: str) -> None:
    run(
        tmp_path,
        f"""
        connection = made(cache_size=5)
        pages(connection, 20)
        for number in range(6):
            connection.execute("BEGIN IMMEDIATE")
            pages(connection, 30)
            connection.execute("SAVEPOINT s")
            pages(connection, 40)
            connection.execute("UPDATE t SET x = zeroblob(3000) WHERE id % 3 = 0")
            connection.execute("{ends}")
            if connection.in_transaction:
                pages(connection, number)
                connection.execute("COMMIT")
            assert rows(connection) == recovered()
            elsewhere("INSERT INTO t (x) VALUES (zeroblob(9000))")
            connection.execute(INSERT, ("after",))
            assert rows(connection) == recovered()
        """,
    )


def test_a_commit_that_is_refused_writes_nothing(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        connection = made()
        pages(connection, 5)
        for answer in (True, ValueError, False):
            def hook():
                if answer is ValueError:
                    raise ValueError
                return answer
            connection.set_commit_hook(hook)
            connection.execute("BEGIN IMMEDIATE")
            pages(connection, 10)
            writes = lengths(lambda: failure(lambda: connection.execute("COMMIT")))
            assert bool(writes) == (answer is False), (answer, writes)
            elsewhere("INSERT INTO t (x) VALUES ('elsewhere')")
            pages(connection, 1 if answer is False else 0)
            assert rows(connection) == recovered()
        assert len(rows(connection)) == 5 + 3 + 10 + 1
        """,
    )


def test_a_backup_into_a_live_file(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        connection = made()
        pages(connection, 50)
        source = sqlite3.connect(":memory:")
        source.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x)")
        pages(source, 70)
        source.commit()
        expected = rows(source)
        source.backup(connection)
        assert rows(connection) == expected == recovered()
        elsewhere("INSERT INTO t (x) VALUES ('elsewhere')")
        connection.execute(INSERT, ("after",))
        assert rows(connection) == recovered()
        """,
    )


@pytest.mark.parametrize("journal_mode", ["WAL", "DELETE"])
def test_attached_databases_have_logs_of_their_own(tmp_path: Path, journal_mode: str) -> None:
    run(
        tmp_path,
        f"""
        connection = made()
        for name in ("one", "two", "three"):
            connection.execute("ATTACH ? AS " + name, (str(folder / name),))
            connection.execute(f"PRAGMA {{name}}.journal_mode = {journal_mode}")
            connection.execute(f"CREATE TABLE {{name}}.u (id INTEGER PRIMARY KEY, x)")
        def transaction():
            connection.execute("BEGIN IMMEDIATE")
            pages(connection, 10)
            for name in ("one", "three"):
                for index in range(10):
                    connection.execute(f"INSERT INTO {{name}}.u (x) VALUES (zeroblob(4000))")
            connection.execute("COMMIT")
        for _ in range(3):
            assert len(lengths(transaction)) == 1
            if "{journal_mode}" == "WAL":
                assert len(lengths(transaction, "one-wal")) == 1
                assert len(lengths(transaction, "three-wal")) == 1
            assert rows(connection) == recovered()
            for name in ("one", "two", "three"):
                query = f"SELECT * FROM {{name}}.u"
                there = recovered("SELECT * FROM u", name)
                assert there == connection.execute(query).fetchall()
        """,
    )


@pytest.mark.parametrize("number", [10, 40, 100])
@pytest.mark.parametrize(
    ("effect", "name"), [("errno.ENOSPC", "SQLITE_FULL"), ("errno.EIO", "SQLITE_IOERR_WRITE")]
)
def test_a_write_that_fails_is_an_error_of_its_commit(
    tmp_path: Path, number: int, effect: str, name: str
) -> None:
    run(
        tmp_path,
        f"""
        connection = made()
        pages(connection, 5)
        def transaction():
            connection.execute("BEGIN IMMEDIATE")
            pages(connection, {number})
            connection.execute("COMMIT")
        writes = len(lengths(transaction))
        assert writes == {number} // 31 + 1
        for first in range(1, writes + 1):
            for is_persistent in (True, False):
                before = rows(connection)
                connection.execute("BEGIN IMMEDIATE")
                pages(connection, {number})
                injector.arm("write", first, is_persistent, {effect})
                assert failure(lambda: connection.execute("COMMIT")) == "{name}"
                assert injector.disarm() == 1
                assert not connection.in_transaction
                assert rows(connection) == before == recovered()
                elsewhere("INSERT INTO t (x) VALUES (zeroblob(9000))")
                connection.execute(INSERT, ("after",))
                assert len(rows(connection)) == len(before) + 2
                assert rows(connection) == recovered()
        # A write that is made in part goes on where it ended.
        injector.arm("write", 1, False, SHORT)
        transaction()
        assert injector.disarm() == 1
        assert rows(connection) == recovered()
        """,
    )


def test_sectors_that_are_not_overwritten_whole(tmp_path: Path) -> None:
    """The last frame is repeated, and split where the sync comes between."""
    run(
        tmp_path,
        """
        for page_size in (512, 1024, 4096):
            name = f"psow{page_size}"
            where = f"file:{folder / name}?psow=0"
            connection = made(where, profile="durable", uri=True, page_size=page_size)
            for number in (1, 2, 7, 30, 100):
                connection.execute("BEGIN IMMEDIATE")
                pages(connection, number, page_size // 2)
                def commit():
                    connection.execute("COMMIT")
                writes = lengths(commit, name + "-wal")
                assert len(writes) > 2, writes
                assert rows(connection) == recovered(name=name)
        """,
    )


AUTOMATIC_VACUUM = """
connection = made(page_size=1024, auto_vacuum=1, cache_size=5)

def filled(number):
    connection.execute("BEGIN IMMEDIATE")
    pages(connection, number, 3000)
    connection.execute("COMMIT")

def emptied():
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM t WHERE id % 3 <> 0 AND id < (SELECT max(id) FROM t) - 4")
"""


def test_pages_are_moved_after_the_hook(tmp_path: Path) -> None:
    """Automatic vacuum spills frames between the commit hook and the last frame, and reads them."""
    run(
        tmp_path,
        AUTOMATIC_VACUUM
        + """
for number in (20, 60, 90):
    filled(number)
    emptied()
    connection.execute("COMMIT")
    assert rows(connection) == recovered()
""",
    )


@pytest.mark.parametrize("call", ["read", "write"])
def test_a_commit_that_fails_after_the_hook_leaves_nothing_behind(
    tmp_path: Path, call: str
) -> None:
    """Rolling back calls no method of the log, which must not remember anything."""
    run(
        tmp_path,
        AUTOMATIC_VACUUM
        + f"""
filled(60)
connection.execute("PRAGMA wal_checkpoint(RESTART)")
connection.execute("PRAGMA mmap_size = 0")
struck = 0
for first in (*range(1, 8), *range(8, 400, 29)):
    emptied()
    before = recovered()
    injector.arm("{call}", first, False, errno.ENOSPC if "{call}" == "write" else errno.EIO)
    error = failure(lambda: connection.execute("COMMIT"))
    struck += injector.disarm()
    if error is None:
        assert not connection.in_transaction
        filled(60)
        continue
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    assert recovered() == before
    elsewhere("INSERT INTO t (x) VALUES (zeroblob(9000))")
    filled(40)
    assert len(rows(connection)) == len(before) + 41
    assert rows(connection) == recovered()
assert struck > 5, struck
""",
    )


def test_two_connections_take_turns(tmp_path: Path, seed: int) -> None:
    run(
        tmp_path,
        f"""
        generator = random.Random({seed})
        connections = [made(cache_size=5), opened(), opened(), opened(cache_size=7)]
        for _ in range(60):
            connection = generator.choice(connections)
            connection.execute("BEGIN IMMEDIATE")
            pages(connection, generator.randint(1, 40))
            connection.execute(generator.choice(("COMMIT", "COMMIT", "ROLLBACK")))
            if generator.random() < 0.1:
                mode = generator.choice(("PASSIVE", "RESTART", "TRUNCATE"))
                generator.choice(connections).execute(f"PRAGMA wal_checkpoint({{mode}})").fetchall()
        there = recovered()
        for connection in connections:
            assert rows(connection) == there
        """,
    )


def test_connections_that_share_a_cache_gather_nothing(tmp_path: Path) -> None:
    """The hook of one would meet the transaction of another, whose log a third may close."""
    run(
        tmp_path,
        """
        made().close()
        name = f"file:{path}?cache=shared"
        one, two = (sqlite3.connect(name, uri=True, isolation_level=None) for _ in range(2))
        one.execute("PRAGMA wal_autocheckpoint = 0")
        two.execute("CREATE TEMP TABLE q (x)")
        one.execute("BEGIN IMMEDIATE")
        two.execute("INSERT INTO q VALUES (1)")
        pages(one, 2, 100)
        writes = lengths(lambda: one.execute("COMMIT"))
        assert writes[-2:] == [HEADER, 4096], writes
        assert rows(one) == recovered()
        """,
    )


def test_who_locks_exclusively_gathers_nothing(tmp_path: Path) -> None:
    """There no lock in shared memory says when a transaction is over."""
    run(
        tmp_path,
        """
        made().close()
        connection = sqlite3.connect(path, isolation_level=None)
        rows(connection)  # so that it has shared memory, and can go back to it
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        pages(connection, 3)
        writes = lengths(lambda: pages(connection, 2, 100))
        assert len(writes) >= 4 and set(writes) == {HEADER, 4096}, writes
        assert rows(connection) == recovered()
        connection.execute("PRAGMA locking_mode = NORMAL")
        rows(connection)
        elsewhere("INSERT INTO t (x) VALUES ('elsewhere')")
        assert lengths(lambda: pages(connection, 1, 100)) == [FRAME]
        assert rows(connection) == recovered()
        """,
    )


def test_a_child_born_in_the_middle_writes_nothing(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        connection = made()
        pages(connection, 5)
        children = []
        def hook():
            child = os.fork()
            if child:
                children.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            return False
        connection.set_commit_hook(hook)
        parent = os.getpid()
        connection.execute("BEGIN IMMEDIATE")
        pages(connection, 10)
        def commit():
            error = failure(lambda: connection.execute("COMMIT"))
            if os.getpid() != parent:
                os._exit(0 if error else 1)
            assert error is None, error
        ((_, length, process),) = written(commit)
        assert process == parent and length >= 10 * FRAME
        assert children == [0], children
        assert rows(connection) == recovered()
        """,
    )
