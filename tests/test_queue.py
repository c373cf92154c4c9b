"""Writers stand in line: in one process, between processes, and beside those who do not."""

import contextlib
import functools
import os
import pickle
import sqlite3 as standard
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.wait import until

import oxlite

Connect = Callable[..., oxlite.Connection]

needs_gate = pytest.mark.skipif(
    sys.platform != "linux", reason="processes stand in line on Linux alone"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "app.db"
    connection = oxlite.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    return path


@pytest.fixture
def connect(path: Path) -> Iterator[Connect]:
    """Opens connections that begin no transaction by themselves; closed after the test."""
    opened: list[oxlite.Connection] = []

    def connect(database: Path | str = path, **options: object) -> oxlite.Connection:
        options = {"isolation_level": None, "check_same_thread": False} | options
        connection = oxlite.connect(database, **options)  # type: ignore[arg-type]
        opened.append(connection)
        return connection

    yield connect
    for connection in opened:
        connection.close()


_OTHER = """
import sys, oxlite
connection = oxlite.connect(sys.argv[1], isolation_level=None, timeout=float(sys.argv[2]))
try:
    for sql in sys.argv[3:]:
        connection.execute(sql)
        print("done", flush=True)
        sys.stdin.readline()
except oxlite.LockedError as error:
    print(error.holder, flush=True)
connection.close()
"""


class Other:
    """A process of its own that executes statements, the next one when told to go on."""

    def __init__(self, path: Path, *statements: str, timeout: float = 30) -> None:
        command = [sys.executable, "-c", _OTHER, str(path), str(timeout), *statements]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def answer(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def other(path: Path) -> Iterator[Callable[..., Other]]:
    started: list[Other] = []

    def start(*statements: str, timeout: float = 30) -> Other:
        started.append(Other(path, *statements, timeout=timeout))
        return started[-1]

    yield start
    for process in started:
        process.end()


def statistics(connection: oxlite.Connection) -> dict[str, object]:
    found = connection.queue_statistics()
    assert found is not None
    return dict(found)


@pytest.mark.parametrize("profile", ["web", "durable", "cache"])
def test_the_production_profiles_stand_in_line(connect: Connect, profile: str) -> None:
    connection = connect(profile=profile)
    assert connection.busy == "gate"
    assert statistics(connection)["admissions"] == 0
    connection.execute("INSERT INTO t VALUES (1)")
    assert statistics(connection)["admissions"] == 1


def test_the_drop_in_does_on_request(path: Path) -> None:
    stock = oxlite.sqlite3.connect(path)
    assert (stock.busy, stock.queue_statistics()) == ("backoff", None)
    stock.close()
    asked = oxlite.sqlite3.connect(path, busy="gate", isolation_level=None)
    asked.execute("INSERT INTO t VALUES (1)")
    assert statistics(asked)["admissions"] == 1
    asked.close()


def test_reads_and_settings_do_not_stand_in_line(connect: Connect) -> None:
    writer, connection = connect(), connect(timeout=0)
    writer.execute("BEGIN IMMEDIATE")
    for sql in [
        "SELECT * FROM t",
        "PRAGMA synchronous = FULL",
        "PRAGMA user_version",
        "ATTACH ':memory:' AS a",
        "DETACH a",
        "BEGIN",
        "SELECT * FROM t",
        "COMMIT",
        "EXPLAIN INSERT INTO t VALUES (1)",
    ]:
        connection.execute(sql).fetchall()
    writer.execute("COMMIT")
    assert statistics(connection)["admissions"] == 1, "that of the writer"


def test_what_had_nothing_to_write_stands_in_line_once_it_has(connect: Connect) -> None:
    """SQLite calls a statement read-only that finds no trigger to drop, and prepares it anew."""
    connection = connect(isolation_level=None)
    drop = "DROP TRIGGER IF EXISTS r"
    connection.execute(drop)
    before = statistics(connection)["admissions"]
    connection.execute("CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; END")
    connection.execute(drop)
    assert statistics(connection)["admissions"] == before + 2


@pytest.mark.parametrize(
    "statements",
    [
        ["INSERT INTO t VALUES (1)"],
        ["INSERT INTO t VALUES (1) RETURNING x"],
        ["BEGIN IMMEDIATE", "INSERT INTO t VALUES (1)", "COMMIT"],
        ["BEGIN IMMEDIATE", "ROLLBACK"],
        ["BEGIN", "INSERT INTO t VALUES (1)", "COMMIT"],
        ["SAVEPOINT a", "INSERT INTO t VALUES (1)", "RELEASE a"],
        ["CREATE TABLE u (x)", "DROP TABLE u"],
        ["CREATE TEMP TABLE u (x)", "BEGIN", "INSERT INTO u VALUES (1)"],
        ["VACUUM"],
        ["BEGIN IMMEDIATE", "INSERT OR ROLLBACK INTO t SELECT NULL FROM missing"],
        ["CREATE UNIQUE INDEX i ON t (x)", "INSERT INTO t VALUES (1), (1)"],
    ],
)
def test_whatever_ends_a_transaction_lets_the_next_one_in(
    connect: Connect, statements: list[str]
) -> None:
    first, next_one = connect(), connect(timeout=0)
    for sql in statements:
        try:
            first.execute(sql).fetchall()
        except oxlite.sqlite3.Error:
            if first.in_transaction:
                first.rollback()
    next_one.execute("INSERT INTO t VALUES (2)")
    if first.in_transaction:
        first.rollback()


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("BEGIN IMMEDIATE", "COMMIT"),
        ("BEGIN", "END"),
        ("BEGIN IMMEDIATE", "ROLLBACK"),
        ("SAVEPOINT a", "RELEASE a"),
    ],
)
def test_a_transaction_that_ends_in_a_function_lets_the_next_one_in(
    connect: Connect, begin: str, end: str
) -> None:
    """At once, and not at the end of the statement that has called the function."""
    first, next_one = connect(), connect(timeout=0.01)
    inserted = []

    def write() -> int:
        for sql in (begin, "INSERT INTO t VALUES (1)", end):
            first.execute(sql)
        inserted.append(next_one.execute("INSERT INTO t VALUES (2)").rowcount)
        return 1

    first.create_function("write", 0, write)
    assert (
        first.execute("SELECT write() FROM (SELECT 1 UNION ALL SELECT 2)").fetchall() == [(1,)] * 2
    )
    assert inserted == [1, 1]
    assert statistics(first)["thread_waits"] == 0
    assert statistics(first)["admissions"] == 4


def test_a_dropped_cursor_and_a_closed_connection_let_the_next_one_in(connect: Connect) -> None:
    first, next_one = connect(), connect(timeout=0)
    cursor = first.execute("INSERT INTO t VALUES (1), (2) RETURNING x")
    assert cursor.fetchone() == (1,)
    del cursor
    next_one.execute("INSERT INTO t VALUES (3)")
    first.execute("BEGIN IMMEDIATE")
    first.close()
    next_one.execute("INSERT INTO t VALUES (4)")


def test_a_script_lets_others_in_between_its_transactions(connect: Connect) -> None:
    first = connect()
    first.executescript("INSERT INTO t VALUES (1); BEGIN; INSERT INTO t VALUES (2); COMMIT")
    assert statistics(first)["admissions"] == 2


def test_nobody_waits_for_longer_than_the_timeout(connect: Connect) -> None:
    holder, connection = connect(), connect(timeout=0.2)
    holder.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with pytest.raises(oxlite.LockedError, match=r"^database is locked: held by this process"):
        connection.execute("INSERT INTO t VALUES (1)")
    assert time.monotonic() - began >= 0.2
    holder.execute("COMMIT")
    connection.execute("INSERT INTO t VALUES (1)")


def test_waits_for_another_connection_of_the_process_are_counted(connect: Connect) -> None:
    holder = connect()
    holder.execute("BEGIN IMMEDIATE")
    assert statistics(holder)["thread_waits"] == 0
    with pytest.raises(oxlite.LockedError):
        connect(timeout=0.05).execute("INSERT INTO t VALUES (1)")
    assert statistics(holder)["thread_waits"] == 1


def test_who_has_let_the_lock_go_is_not_named(connect: Connect, path: Path) -> None:
    connect().executescript("BEGIN IMMEDIATE; INSERT INTO t VALUES (1); COMMIT")
    with contextlib.closing(standard.connect(path, isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        with pytest.raises(oxlite.LockedError, match="who holds it is not known") as caught:
            connect(timeout=0).execute("INSERT INTO t VALUES (2)")
        assert caught.value.holder is None


def test_the_error_names_the_holder_in_this_process(connect: Connect) -> None:
    holder, connection = connect(), connect(timeout=0)
    holder.execute("BEGIN IMMEDIATE")
    holder.execute("UPDATE t SET x = 'culprit'")
    with pytest.raises(oxlite.LockedError) as caught:
        connection.execute("INSERT INTO t VALUES (1)")
    error = caught.value
    assert error.holder is not None
    assert error.holder["process_id"] == os.getpid()
    assert error.holder["thread_id"] == threading.get_native_id()
    assert error.holder["statement"] == "UPDATE t SET x = 'culprit'"
    assert error.sqlite_errorname == "SQLITE_BUSY"
    assert isinstance(error, oxlite.sqlite3.OperationalError)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.holder, str(copy)) == (type(error), error.holder, str(error))


def test_an_implicit_transaction_is_named_by_what_it_was_begun_for(connect: Connect) -> None:
    holder, connection = connect(isolation_level="IMMEDIATE"), connect(timeout=0)
    holder.execute("INSERT INTO t VALUES ('culprit')")
    with pytest.raises(oxlite.LockedError) as caught:
        connection.execute("INSERT INTO t VALUES (1)")
    assert caught.value.holder is not None
    assert caught.value.holder["statement"] == "INSERT INTO t VALUES ('culprit')"


def test_an_implicit_transaction_whose_statement_fails_is_named(connect: Connect) -> None:
    holder, connection = connect(isolation_level="IMMEDIATE"), connect(timeout=0)
    holder.execute("CREATE TABLE u (x UNIQUE)")
    holder.commit()
    sql = "INSERT OR FAIL INTO u VALUES (1), (1)"
    with pytest.raises(oxlite.sqlite3.IntegrityError):
        holder.execute(sql)
    assert holder.in_transaction
    with pytest.raises(oxlite.LockedError) as caught:
        connection.execute("INSERT INTO t VALUES (1)")
    assert caught.value.holder is not None
    assert caught.value.holder["statement"] == sql


@needs_gate
def test_the_error_names_the_holder_in_another_process(
    connect: Connect, other: Callable[..., Other]
) -> None:
    holder = other("BEGIN IMMEDIATE", "UPDATE t SET x = 'culprit'", "COMMIT")
    assert holder.answer() == "done"
    holder.go_on()
    assert holder.answer() == "done"
    with pytest.raises(oxlite.LockedError, match=f"held by process {holder.process.pid}") as caught:
        connect(timeout=0).execute("INSERT INTO t VALUES (1)")
    assert caught.value.holder is not None
    assert caught.value.holder["process_id"] == holder.process.pid
    assert caught.value.holder["statement"] == "UPDATE t SET x = 'culprit'"
    assert 0 <= caught.value.holder["held_for_seconds"] < 60


@needs_gate
def test_a_long_statement_is_told_of_while_it_works(
    connect: Connect, other: Callable[..., Other]
) -> None:
    sql = (
        "INSERT INTO t WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
        "SELECT x FROM c LIMIT 100000000"
    )
    holder = other(sql)
    connection = connect(timeout=0)

    def named() -> str | None:
        try:
            connection.execute("DELETE FROM t")
        except oxlite.LockedError as error:
            return error.holder and error.holder["statement"]
        return None

    until(lambda: named() is not None)
    assert named() == sql
    holder.end()


@needs_gate
def test_a_killed_holder_is_not_named_and_does_not_block(
    connect: Connect, other: Callable[..., Other], path: Path
) -> None:
    holder = other("BEGIN IMMEDIATE", "COMMIT")
    assert holder.answer() == "done"
    holder.end()
    stranger = standard.connect(path, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    with pytest.raises(oxlite.LockedError, match="who holds it is not known") as caught:
        connect(timeout=0).execute("INSERT INTO t VALUES (1)")
    assert caught.value.holder is None
    stranger.close()
    connect(timeout=0).execute("INSERT INTO t VALUES (1)")


def test_an_interruption_ends_the_wait_in_line(connect: Connect) -> None:
    holder, connection = connect(), connect(timeout=60)
    holder.execute("BEGIN IMMEDIATE")
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            connection.execute("INSERT INTO t VALUES (1)")
        except oxlite.sqlite3.OperationalError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    until(lambda: statistics(holder)["waiting"])
    connection.interrupt()
    waiting.join(30)
    assert not waiting.is_alive()
    assert [str(error) for error in errors] == ["interrupted"]
    assert statistics(holder)["waiting"] == 0
    holder.execute("COMMIT")
    connection.execute("INSERT INTO t VALUES (1)")


def test_a_statement_timeout_ends_the_wait_in_line(connect: Connect) -> None:
    holder, connection = connect(), connect(timeout=60, statement_timeout=0.1)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(oxlite.StatementTimeout):
        connection.execute("INSERT INTO t VALUES (1)")
    holder.execute("COMMIT")
    connection.execute("INSERT INTO t VALUES (1)")


def test_a_stale_snapshot_is_an_error_of_its_own(connect: Connect) -> None:
    reader, writer = connect(timeout=60), connect()
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM t").fetchall()
    writer.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(oxlite.StaleSnapshotError, match="roll back and run it again") as caught:
        reader.execute("INSERT INTO t VALUES (2)")
    assert caught.value.sqlite_errorname == "SQLITE_BUSY_SNAPSHOT"
    assert type(pickle.loads(pickle.dumps(caught.value))) is oxlite.StaleSnapshotError


def read_then_write(
    connection: oxlite.Connection, has_read: threading.Event | None = None
) -> BaseException | None:
    """Read in a deferred transaction, then write; what that raises."""
    connection.execute("BEGIN")
    connection.execute("SELECT * FROM t").fetchall()
    if has_read:
        has_read.set()
    try:
        connection.execute("INSERT INTO t VALUES ('ours')")
    except oxlite.sqlite3.OperationalError as error:
        return error
    finally:
        connection.execute("ROLLBACK")
    return None


@needs_gate
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("is_here", [True, False], ids=["this process", "another process"])
def test_who_has_read_waits_to_write_until_it_is_known_what_has_become_of_what_he_read(
    connect: Connect, other: Callable[..., Other], end: str, is_here: bool
) -> None:
    write = "INSERT INTO t VALUES ('theirs')"
    connection = connect(timeout=30)
    if is_here:
        writer = connect()
        writer.execute("BEGIN IMMEDIATE")
        writer.execute(write)
        finish = functools.partial(writer.execute, end)
    else:
        process = other("BEGIN IMMEDIATE", write, end)
        assert process.answer() == "done"
        process.go_on()
        assert process.answer() == "done"
        finish = process.go_on
    outcomes: list[BaseException | None] = []
    has_read = threading.Event()
    thread = threading.Thread(target=lambda: outcomes.append(read_then_write(connection, has_read)))
    thread.start()
    assert has_read.wait(30)
    thread.join(0.1)
    assert not outcomes, "it waits"
    finish()
    thread.join(30)
    kind = oxlite.StaleSnapshotError if end == "COMMIT" else type(None)
    assert [type(outcome) for outcome in outcomes] == [kind]


def test_who_has_read_waits_for_no_longer_than_the_timeout_nor_when_interrupted(
    connect: Connect,
) -> None:
    writer, connection = connect(), connect(timeout=0.05)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO t VALUES ('theirs')")
    error = read_then_write(connection)
    assert isinstance(error, oxlite.LockedError)
    assert error.holder is not None
    assert error.holder["statement"] == "INSERT INTO t VALUES ('theirs')"
    patient = connect(timeout=30)
    outcomes: list[BaseException | None] = []
    has_read = threading.Event()
    thread = threading.Thread(target=lambda: outcomes.append(read_then_write(patient, has_read)))
    thread.start()
    assert has_read.wait(30)
    while thread.is_alive():
        patient.interrupt()
        thread.join(0.01)
    assert getattr(outcomes[0], "sqlite_errorname", None) in {"SQLITE_INTERRUPT", "SQLITE_BUSY"}


def test_in_a_rollback_journal_who_has_read_does_not_wait(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with contextlib.closing(oxlite.sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE t (x)")
    options = {"journal": "keep", "isolation_level": None, "timeout": 1000}
    with (
        contextlib.closing(oxlite.connect(path, **options)) as writer,
        contextlib.closing(oxlite.connect(path, **options)) as connection,
    ):
        writer.execute("BEGIN IMMEDIATE")
        # The writer's COMMIT would wait for this reader.
        assert isinstance(read_then_write(connection), oxlite.LockedError)
        writer.execute("COMMIT")


def test_threads_lose_no_write_and_all_get_their_turn(connect: Connect) -> None:
    connections = [connect() for _ in range(6)]

    def work(connection: oxlite.Connection) -> None:
        for _ in range(200):
            connection.execute("INSERT INTO t VALUES (1)")

    threads = [threading.Thread(target=work, args=(connection,)) for connection in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert connect().execute("SELECT count(*) FROM t").fetchone() == (1200,)
    assert statistics(connections[0])["admissions"] == 1200


@needs_gate
@pytest.mark.parametrize("name", ["{}", "{}/../app.db", "link.db", "file:{}"])
def test_all_paths_to_a_file_are_one_lane(connect: Connect, path: Path, name: str) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    database = {"{}": str(path), "link.db": str(link)}.get(name)
    if name == "{}/../app.db":
        (path.parent / "folder").mkdir()
        database = str(path.parent / "folder" / ".." / "app.db")
    uri = name.startswith("file:")
    one, same = connect(), connect(database or f"file:{path}", uri=uri)
    one.execute("INSERT INTO t VALUES (1)")
    same.execute("INSERT INTO t VALUES (1)")
    assert statistics(one) == statistics(same)
    assert statistics(one)["admissions"] == 2
    assert [found.name for found in path.parent.glob("*-gate")] == ["app.db-gate"]


@needs_gate
def test_who_may_write_the_database_may_open_the_file_of_the_gate(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    path.touch(mode=0o600)
    path.chmod(0o664)
    connection = oxlite.connect(path)
    gate_path = path.with_name("app.db-gate")
    assert not gate_path.exists(), "nobody has written"
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    gate = gate_path.stat()
    assert stat.S_IMODE(gate.st_mode) == 0o660
    assert (gate.st_uid, gate.st_gid) == (path.stat().st_uid, path.stat().st_gid)


@needs_gate
@pytest.mark.parametrize("obstacle", ["link", "folder", "pipe"])
def test_what_cannot_be_the_file_of_the_gate_is_passed_by(
    connect: Connect, path: Path, obstacle: str, caplog: pytest.LogCaptureFixture
) -> None:
    gate = path.with_name("app.db-gate")
    gate.unlink()
    target = path.with_name("elsewhere")
    match obstacle:
        case "link":
            target.touch()
            gate.symlink_to(target)
        case "folder":
            gate.mkdir()
        case "pipe":
            os.mkfifo(gate)
    connection = connect()
    connection.execute("INSERT INTO t VALUES (1)")
    assert "app.db-gate" in str(statistics(connection)["process_queue_unavailable"])
    [record] = caplog.records
    assert (record.name, record.levelname) == ("oxlite", "WARNING")
    assert "do not stand in line with those of other processes" in record.getMessage()
    assert not target.exists() or target.stat().st_size == 0


@needs_gate
def test_the_note_in_the_file_is_not_believed_without_its_lock(
    connect: Connect, path: Path
) -> None:
    gate = path.with_name("app.db-gate")
    connection = connect(timeout=0)
    for note in [b"", b"oxlite 2\n1\n1\n1\n0\nDROP TABLE users\0", b"\xff" * 4096]:
        gate.write_bytes(note)
        stranger = standard.connect(path, isolation_level=None)
        stranger.execute("BEGIN IMMEDIATE")
        with pytest.raises(oxlite.LockedError) as caught:
            connection.execute("INSERT INTO t VALUES (1)")
        assert caught.value.holder is None
        stranger.close()


@needs_gate
@pytest.mark.parametrize("what", ["unlink", "replace", "truncate", "make unreadable"])
def test_the_file_may_be_tampered_with(
    connect: Connect, other: Callable[..., Other], path: Path, what: str
) -> None:
    gate = path.with_name("app.db-gate")
    holder = other("BEGIN IMMEDIATE", "COMMIT")
    assert holder.answer() == "done"
    match what:
        case "unlink":
            gate.unlink()
        case "replace":
            path.with_name("new").write_bytes(b"something else")
            path.with_name("new").rename(gate)
        case "truncate":
            gate.write_bytes(b"")
        case "make unreadable":
            gate.chmod(0)
    waiting = other("INSERT INTO t VALUES (1)")
    holder.go_on()
    assert holder.answer() == "done"
    assert waiting.answer() == "done"
    connect().execute("INSERT INTO t VALUES (2)")
    assert connect().execute("SELECT count(*) FROM t").fetchone() == (2,)


@needs_gate
def test_who_has_the_file_open_comes_to_the_one_that_took_its_place(
    connect: Connect, other: Callable[..., Other], path: Path
) -> None:
    connection = connect()
    connection.execute("INSERT INTO t VALUES (1)")
    path.with_name("app.db-gate").unlink()

    def is_named_to_who_comes_now() -> bool:
        connection.execute("BEGIN IMMEDIATE")
        newcomer = other("INSERT INTO t VALUES (2)", timeout=0)
        said = newcomer.answer()
        newcomer.end()
        connection.execute("ROLLBACK")
        return f"'process_id': {os.getpid()}," in said

    ends = time.monotonic() + 30
    while not is_named_to_who_comes_now():
        assert time.monotonic() < ends
