"""Backups: consistent while others write, verified, named when they are whole, pruned."""

import errno
import json
import os
import shlex
import signal
import socket
import sqlite3 as stdlib
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.operations.databases import filled, numbers, python, writing

import oxlite
from oxlite import operations
from oxlite.cli import main
from oxlite.operations import OperationsError, VerificationFailed, backup, backups_in, prune
from oxlite.operations.partial import Partial


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return filled(tmp_path / "app.db")


def left_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name.startswith("."))


@pytest.mark.parametrize("compress", [False, True])
def test_a_backup_has_what_was_committed_when_it_began(
    database: Path, tmp_path: Path, compress: bool
) -> None:
    with writing(database) as writer:
        assert writer.stdout is not None
        before = int(writer.stdout.readline())
        made = backup(database, tmp_path / "copy", compress=compress)
        after = int(writer.stdout.readline())
        assert after  # it goes on
    restored = operations.restore(made.path, tmp_path / "back.db")
    found = numbers(restored.path)
    assert found == list(range(1, len(found) + 1))
    assert len(found) >= before
    assert made.manifest.contents.rows == {"t": len(found)}
    assert restored.was_proved


def test_a_backup_is_a_database_for_any_sqlite(database: Path, tmp_path: Path) -> None:
    made = backup(database, tmp_path / "copy.db")
    assert numbers(made.path) == list(range(1, 1001))
    assert stat.S_IMODE(made.path.stat().st_mode) == stat.S_IMODE(database.stat().st_mode)
    manifest = json.loads((tmp_path / "copy.db.json").read_text())
    assert manifest["contents"]["rows"] == {"t": 1000}
    assert manifest["size"] == made.path.stat().st_size


@pytest.mark.parametrize("journal_mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
@pytest.mark.parametrize("page_size", [512, 65536])
def test_whatever_database_it_is(
    tmp_path: Path, journal_mode: str, encoding: str, page_size: int
) -> None:
    path = tmp_path / "odd name?#%.db"
    with closing(stdlib.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {page_size}")
        connection.execute(f"PRAGMA encoding = '{encoding}'")
        connection.execute(f"PRAGMA journal_mode = {journal_mode}")
        connection.executescript(
            """PRAGMA application_id = 7; PRAGMA user_version = 9;
            CREATE TABLE "a ""b" (x, y AS (x + 1)); INSERT INTO "a ""b" VALUES (1), (2);
            CREATE TABLE w (x PRIMARY KEY) WITHOUT ROWID;
            CREATE VIRTUAL TABLE words USING fts5(text); INSERT INTO words VALUES ('some words');
            CREATE VIEW v AS SELECT gone FROM nowhere;
            CREATE TABLE child (x REFERENCES w); INSERT INTO child VALUES ('none');"""
        )
    contents = backup(path, tmp_path / "copy.db").manifest.contents
    assert (contents.application_id, contents.user_version) == (7, 9)
    assert contents.page_size == page_size
    assert contents.rows['a "b'] == 2
    assert contents.foreign_key_violations == 1


def test_a_schema_with_functions_and_tables_of_a_program_is_copied(tmp_path: Path) -> None:
    with closing(stdlib.connect(tmp_path / "app.db")) as connection:
        connection.create_function("half", 1, lambda x: x / 2, deterministic=True)
        connection.executescript(
            """CREATE TABLE t (x CHECK (half(x) > 0)); CREATE INDEX i ON t (half(x));
            INSERT INTO t VALUES (2);"""
        )
    made = backup(tmp_path / "app.db", tmp_path / "copy.db")
    assert made.manifest.contents.rows == {"t": 1}
    assert made.manifest.contents.unchecked == ["t"]
    assert operations.restore(made.path, tmp_path / "back.db").contents.unchecked == ["t"]


def test_an_empty_database_is_one(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    assert backup(tmp_path / "empty.db", tmp_path / "copy.db").manifest.contents.rows == {}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"no database at all, but a text of some length" * 40, "is no SQLite database, or it is"),
        (os.urandom(8192), "is no SQLite database, or it is encrypted"),
        (None, "there is no"),
    ],
)
def test_what_is_no_database_is_refused(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "app.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(OperationsError, match=says):
        backup(path, tmp_path / "copy.db")
    with pytest.raises(OperationsError, match="is no file"):
        backup(tmp_path, tmp_path / "copy.db")
    assert left_in(tmp_path) == []
    assert not (tmp_path / "copy.db").exists()


def test_a_damaged_database_has_no_backup(database: Path, tmp_path: Path) -> None:
    size = database.stat().st_size
    with database.open("r+b") as file:
        file.seek(size // 2)
        file.write(os.urandom(size // 4))
    with pytest.raises((VerificationFailed, oxlite.sqlite3.DatabaseError)):
        backup(database, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()
    assert not (tmp_path / "copy.db.json").exists()
    assert left_in(tmp_path) == []


def test_nothing_is_replaced(database: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "other.json").write_text("mine, too")
    for name in ("taken", "link", "other", "app.db"):
        with pytest.raises(OperationsError, match="exists: a backup takes nothing's place"):
            backup(database, tmp_path / name)
    with pytest.raises(OperationsError, match="there is no directory"):
        backup(database, tmp_path / "gone" / "copy.db")
    assert taken.read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_what_gets_its_name_meanwhile_is_not_replaced(database: Path, tmp_path: Path) -> None:
    def take(what: str, _done: int, _of: int) -> None:
        if what == "verifying":
            (tmp_path / "copy.db").write_text("mine")

    with pytest.raises(OperationsError, match="exists"):
        backup(database, tmp_path / "copy.db", stage=take)
    assert (tmp_path / "copy.db").read_text() == "mine"
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("compress", [False, True])
def test_without_room_there_is_no_backup(database: Path, tmp_path: Path, compress: bool) -> None:
    said = python(
        """
import resource, sys
from oxlite.operations import backup
limit = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    backup(sys.argv[1], sys.argv[2], compress=sys.argv[4] == "True")
except Exception as error:
    print(type(error).__name__)
""",
        database,
        tmp_path / "copy.db",
        database.stat().st_size // 2,
        compress,
    )
    assert said.strip() in ("OperationalError", "OSError")
    assert not (tmp_path / "copy.db").exists()
    assert left_in(tmp_path) == []


def test_whoever_is_killed_leaves_nothing_that_is_taken_for_a_backup(
    database: Path, tmp_path: Path
) -> None:
    target = tmp_path / "backups"
    target.mkdir()
    script = """
import os, signal, sys
from oxlite.operations import backup
def die(what, done, of):
    if what == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)
backup(sys.argv[1], sys.argv[2], compress=True, stage=die)
"""
    for stage in ("copying", "verifying", "compressing"):
        python(script, database, target, stage, expected=-signal.SIGKILL)
        assert backups_in(target) == []
        assert len(left_in(target)) == 1  # what the one before has left is gone
    backup(database, target)
    assert left_in(target) == []
    assert len(backups_in(target)) == 1


def test_what_somebody_is_making_is_left_alone(database: Path, tmp_path: Path) -> None:
    seen: list[str] = []

    def look(what: str, _done: int, _of: int) -> None:
        if what == "verifying":
            backup(database, tmp_path / "second.db")
            seen.extend(left_in(tmp_path))

    backup(database, tmp_path / "first.db", stage=look)
    assert len(seen) == 1
    assert {one.name for one in backups_in(tmp_path)} == {"first", "second"}


def test_two_at_once_have_two_names(database: Path, tmp_path: Path) -> None:
    target = tmp_path / "backups"
    target.mkdir()
    threads = [threading.Thread(target=backup, args=(database, target)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = backups_in(target)
    assert [one.manifest.sequence for one in found] == list(range(1, 9))
    assert all(operations.restore(one.path, tmp_path / "back.db").was_proved for one in found)


def test_a_rate_slows_it_down_and_the_wal_ends_that(database: Path, tmp_path: Path) -> None:
    size = database.stat().st_size
    began = time.monotonic()
    backup(database, tmp_path / "slow.db", bytes_per_second=2 * size)
    assert time.monotonic() - began > 0.3
    # A WAL that is larger than its limit.
    with (
        closing(oxlite.connect(database)) as reader,
        closing(oxlite.connect(database)) as writer,
    ):
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM t").fetchone()
        writer.execute("CREATE TABLE large (x)")
        writer.execute("INSERT INTO large VALUES (zeroblob(70000000))")
        writer.execute("DELETE FROM large")
        writer.commit()
        assert Path(f"{database}-wal").stat().st_size > 64 << 20
        began = time.monotonic()
        backup(database, tmp_path / "fast.db", bytes_per_second=size / 100)
        assert time.monotonic() - began < 60


def test_old_ones_are_pruned_and_the_last_that_is_whole_is_kept(
    database: Path, tmp_path: Path
) -> None:
    target = tmp_path / "backups"
    target.mkdir()
    made = [backup(database, target / f"{number}.db") for number in range(5)]
    (target / "stranger.db").write_text("none of ours")
    assert [one.name for one in prune(target, keep=3)] == ["0", "1"]
    assert prune(target, keep_for=timedelta(hours=1)) == []
    # The last two are damaged: the one before them is kept, whatever is said.
    for one in made[3:]:
        one.path.write_bytes(b"short")
    assert [one.name for one in prune(target, keep=0)] == ["3", "4"]
    assert [one.name for one in backups_in(target)] == ["2"]
    assert (target / "stranger.db").exists()
    assert sorted(path.name for path in target.iterdir()) == ["2.db", "2.db.json", "stranger.db"]
    for wrong in ({}, {"keep": -1}, {"keep_for": timedelta(seconds=-1)}):
        with pytest.raises(ValueError, match=r"say how many|not less than nothing"):
            prune(target, **wrong)  # type: ignore[arg-type]


def test_a_clock_that_was_set_back_changes_no_order(database: Path, tmp_path: Path) -> None:
    backup(database, tmp_path / "old.db")
    path = tmp_path / "old.db.json"
    manifest = json.loads(path.read_text())
    manifest["created_at"] = (datetime.now(UTC) + timedelta(days=900)).isoformat()
    path.write_text(json.dumps(manifest))
    backup(database, tmp_path / "new.db")
    assert [one.name for one in prune(tmp_path, keep=1)] == ["old"]
    assert [one.name for one in backups_in(tmp_path)] == ["new"]


def test_others_backups_are_left_alone(database: Path, tmp_path: Path) -> None:
    other = filled(tmp_path / "other.db", 1)
    for path in (database, other, database):
        backup(path, tmp_path / f"{path.stem}-{time.monotonic_ns()}.db")
    assert len(prune(tmp_path, database=database, keep=1)) == 1
    assert len(backups_in(tmp_path)) == 2


@pytest.mark.parametrize("wrong", ["no JSON", "[]", '{"format": 2}', '{"format": 1}'])
def test_a_manifest_that_is_none_is_none(database: Path, tmp_path: Path, wrong: str) -> None:
    backup(database, tmp_path / "copy.db")
    (tmp_path / "copy.db.json").write_text(wrong)
    assert backups_in(tmp_path) == []
    with pytest.raises(OperationsError, match="is no manifest of a backup"):
        operations.restore(tmp_path / "copy.db", tmp_path / "back.db")


def test_writers_are_not_kept_waiting(database: Path, tmp_path: Path) -> None:
    """With a WAL: one that waits no moment for a lock goes on."""
    # In another process: two SQLites in one harm each other's locks.
    script = f"import sqlite3, sys\npath = sys.argv[1]\n{_WRITE_ALONE}"
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    for number in range(5):
        backup(database, tmp_path / f"{number}.db")
    said, _ = process.communicate("end\n", timeout=60)
    assert process.returncode == 0, said


_WRITE_ALONE = """
import select
connection = sqlite3.connect(path, timeout=0)
print("begun", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    connection.execute("UPDATE t SET filling = zeroblob(201) WHERE x = 5")
    connection.commit()
"""


def test_it_gives_way_to_others_and_what_called_it_does_not(database: Path, tmp_path: Path) -> None:
    seen: list[int] = []

    def look(_what: str, _done: int, _of: int) -> None:
        seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    backup(database, tmp_path / "gentle.db", stage=look)
    assert set(seen) == {min(before + 10, 19)}
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before
    seen.clear()
    backup(database, tmp_path / "not.db", nice=0, stage=look)
    assert set(seen) == {before}
    with pytest.raises(ValueError, match="nice is a number from 0 to 19"):
        backup(database, tmp_path / "wrong.db", nice=20)


def test_who_is_interrupted_leaves_nothing(database: Path, tmp_path: Path) -> None:
    said = python(
        """
import signal, sys, threading, time
from oxlite.operations import backup
def interrupt(what, done, of):
    if what == "verifying":
        # As a terminal's comes to it; one to the process may come to this thread instead.
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        for _ in range(3000):  # the main thread hears it meanwhile, and ends this
            time.sleep(0.01)
try:
    backup(sys.argv[1], sys.argv[2], stage=interrupt)
except KeyboardInterrupt:
    print("interrupted")
""",
        database,
        tmp_path / "copy.db",
    )
    assert said == "interrupted\n"
    assert not (tmp_path / "copy.db").exists()
    assert left_in(tmp_path) == []


def test_who_is_interrupted_as_the_work_begins_leaves_nothing(
    database: Path, tmp_path: Path
) -> None:
    said = python(
        """
import signal, sys, threading, time
from oxlite.operations import backup
start = threading.Thread.start
def start_and_interrupt(self):
    start(self)
    signal.raise_signal(signal.SIGINT)
threading.Thread.start = start_and_interrupt
try:
    backup(sys.argv[1], sys.argv[2], stage=lambda what, done, of: time.sleep(0.5))
except KeyboardInterrupt:
    print("interrupted")
""",
        database,
        tmp_path / "copy.db",
    )
    assert said == "interrupted\n"
    assert not (tmp_path / "copy.db").exists()
    assert left_in(tmp_path) == []


# Each row takes long to check; all of them a quarter of an hour.
_SLOW_CHECK = """PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql,
'filling BLOB', 'filling BLOB CHECK (length(replace(hex(zeroblob(20000000)), ''0'', ''1'')) > x)')
WHERE name = 't';"""


@pytest.mark.parametrize("nice", [0, 10])
def test_who_is_interrupted_while_all_is_verified_waits_for_no_end_of_that(
    tmp_path: Path, nice: int
) -> None:
    slow = filled(tmp_path / "slow.db", 20_000)
    with closing(stdlib.connect(slow)) as connection:
        connection.executescript(_SLOW_CHECK)
    said = python(
        """
import signal, sys, threading
from contextlib import contextmanager
from oxlite.cli import main, output
@contextmanager
def interrupting(**_):
    def stage(what, done, of):
        if what == "verifying":
            thread = threading.main_thread().ident
            threading.Timer(0.3, lambda: signal.pthread_kill(thread, signal.SIGINT)).start()
    yield stage
output.scan_progress = interrupting
print(main(["backup", *sys.argv[1:]]))
""",
        slow,
        tmp_path / "copy.db",
        "--nice",
        nice,
    )
    assert said == "130\n"
    assert not (tmp_path / "copy.db").exists()
    assert left_in(tmp_path) == []


def test_no_wal_of_another_file_is_beside_a_backup(database: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.db-wal").write_bytes(b"of another file")
    with pytest.raises(OperationsError, match=r"copy.db-wal exists"):
        backup(database, tmp_path / "copy.db")
    (tmp_path / "copy.db-wal").unlink()
    for name in ("copy.db", "next.db"):
        backup(database, tmp_path / name)
        (tmp_path / f"{name}-shm").touch()
        (tmp_path / f"{name}-gate").touch()
    prune(tmp_path, keep=1)
    assert not (tmp_path / "copy.db-shm").exists()
    assert not (tmp_path / "copy.db-gate").exists()
    assert (tmp_path / "next.db-gate").exists()


def test_a_backup_reads_each_manifest_of_its_directory_once(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        backup(database, tmp_path / f"{name}.db")
    seen: list[str] = []
    module = sys.modules["oxlite.operations.manifest"]
    read = module.read_manifest

    def note(path: Path) -> object:
        seen.append(path.name)
        return read(path)

    monkeypatch.setattr(module, "read_manifest", note)
    made = backup(database, tmp_path)
    assert sorted(seen) == ["a.db", "b.db"]
    assert made.manifest.sequence == 3


def test_a_manifest_without_its_backup_keeps_no_name_taken(database: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        backup(database, tmp_path / f"{name}.db")
        (tmp_path / f"{name}.db").unlink()
    assert backup(database, tmp_path / "a.db").manifest.sequence == 1
    assert not (tmp_path / "b.db.json").exists()


def test_each_database_keeps_its_last(database: Path, tmp_path: Path) -> None:
    other = filled(tmp_path / "other.db", 1)
    for path in (other, database, database):
        backup(path, tmp_path / f"{path.stem}-{time.monotonic_ns()}.db")
    assert len(prune(tmp_path, keep=0)) == 1
    assert {one.manifest.source for one in backups_in(tmp_path)} == {str(other), str(database)}


def test_strangers_directories_are_left_alone(database: Path, tmp_path: Path) -> None:
    (tmp_path / ".download.partial").mkdir()
    backup(database, tmp_path / "copy.db")
    assert left_in(tmp_path) == [".download.partial"]


def test_odd_schemas_have_backups(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"odd\xff.db")
    with closing(stdlib.connect(os.fsencode(path))) as connection:
        connection.create_collation("own", lambda a, b: (a > b) - (a < b))
        connection.executescript(
            """CREATE TABLE parent (x); CREATE TABLE child (x REFERENCES parent (x));
            INSERT INTO child VALUES (1);
            CREATE TABLE t (x TEXT COLLATE own PRIMARY KEY) WITHOUT ROWID;
            CREATE TABLE u (x TEXT); CREATE INDEX ui ON u (x COLLATE own);
            INSERT INTO t VALUES ('a'); INSERT INTO u VALUES ('a');"""
        )
    contents = backup(path, tmp_path / "copy.db").manifest.contents
    assert contents.foreign_key_violations is None
    assert contents.rows["u"] == contents.rows["child"] == 1
    assert set(contents.unchecked) >= {"t"}


def test_two_hosts_that_share_a_directory_have_two_rotations(
    database: Path, tmp_path: Path
) -> None:
    target = tmp_path / "shared"
    target.mkdir()
    for host in ("one", "two", "one", None, None):
        name = f"{host}-{time.monotonic_ns()}.db"
        backup(database, target / name, host=host)
    here = [one for one in backups_in(target) if one.name.startswith("None")]
    assert {one.manifest.host for one in here} == {socket.gethostname()}
    assert prune(target, database=database, host="two", keep=0) == []
    assert [one.path for one in prune(target, database=database, keep=0)] == [here[0].path]
    assert [one.manifest.host for one in prune(target, keep=0)] == ["one"]
    assert len(backups_in(target)) == 3


def test_a_manifest_that_names_no_host_is_read_and_nobodys(database: Path, tmp_path: Path) -> None:
    target = tmp_path / "shared"
    target.mkdir()
    for name in ("old", "older"):
        made = backup(database, target / f"{name}.db")
        path = target / f"{name}.db.json"
        said = json.loads(path.read_text())
        del said["host"]
        path.write_text(json.dumps(said))
    backup(database, target)
    assert [one.manifest.host for one in backups_in(target)][:2] == [None, None]
    assert operations.restore(made.path, tmp_path / "back.db").was_proved
    assert prune(target, database=database, keep=0) == []
    assert [one.name for one in prune(target, keep=0)] == ["old"]


@pytest.mark.parametrize("compress", [False, True])
def test_a_backup_that_was_changed_in_its_midst_is_not_the_one_that_is_kept(
    database: Path, tmp_path: Path, compress: bool
) -> None:
    target = tmp_path / "backups"
    target.mkdir()
    made = [
        backup(database, target / f"{number}.db", compress=compress, nice=0) for number in range(4)
    ]
    with made[2].path.open("r+b") as file:  # its size stays
        file.seek(made[2].manifest.size // 2)
        file.write(b"!")
    with made[3].path.open("r+b") as file:
        file.write(bytes(made[3].manifest.size))
    assert (made[2].looks_whole, made[2].is_proved()) == (True, False)
    assert not made[3].looks_whole
    assert [one.name for one in prune(target, keep=1)] == ["0", "2"]
    assert [one.name for one in backups_in(target)] == ["1", "3"]
    made[1].path.write_bytes(b"short")
    assert prune(target, keep=0) == []  # none can be relied on: a person looks


def test_nothing_is_read_where_nothing_is_deleted(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup(database, tmp_path / "copy.db")
    monkeypatch.setattr(
        sys.modules["oxlite.operations.backups"], "digest", lambda _path: pytest.fail("read")
    )
    assert prune(tmp_path, keep=1) == []


def test_rows_that_the_schema_forbids_are_told_and_hide_no_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "app.db"
    with closing(stdlib.connect(path)) as connection:
        connection.executescript(
            """PRAGMA journal_mode = WAL; PRAGMA ignore_check_constraints = ON;
            CREATE TABLE t (x CHECK (x > 0), y); CREATE INDEX i ON t (y);
            WITH RECURSIVE n (v) AS (VALUES (1) UNION ALL SELECT v + 1 FROM n WHERE v < 30)
            INSERT INTO t SELECT -1, iif(v > 25, v, -1) FROM n;
            CREATE TABLE u (x); INSERT INTO u VALUES (NULL); PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE TABLE u (x NOT NULL)' WHERE name = 'u';"""
        )
    said = {"CHECK constraint failed in t": 30, "NULL value in u.x": 1}
    made = backup(path, tmp_path / "copy.db")
    assert made.manifest.contents.violations == said
    assert operations.restore(made.path, tmp_path / "back.db").contents.violations == said
    assert main(["backup", str(path), str(tmp_path / "second.db")]) == 0
    assert "CHECK constraint failed in t (30 rows), as in the database" in capsys.readouterr().err

    # One that was made before these were looked at is restored as well.
    manifest = tmp_path / "copy.db.json"
    old = json.loads(manifest.read_text())
    del old["contents"]["violations"]
    manifest.write_text(json.dumps(old))
    assert operations.restore(made.path, tmp_path / "back.db").was_proved

    with closing(stdlib.connect(path)) as connection:
        connection.executescript(
            """PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON t (x)' WHERE name = 'i';"""
        )
    # The damage is behind 25 of them: also where fewer are listed.
    for most in (100_000, 10):
        module = sys.modules["oxlite.operations.verification"]
        monkeypatch.setattr(module, "_LINES_AT_MOST", most)
        with pytest.raises(VerificationFailed, match=r"is damaged: row 26 missing from index i"):
            backup(path, tmp_path / "third.db")


def test_a_check_that_only_a_program_can_evaluate_leaves_the_rest_checked(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with closing(stdlib.connect(path)) as connection:
        connection.create_function("half", 1, lambda x: x / 2, deterministic=True)
        connection.executescript(
            """CREATE TABLE t (x CHECK (half(x) > 0), y); CREATE INDEX i ON t (y);
            INSERT INTO t VALUES (2, 1), (3, 2); CREATE TABLE u (z);"""
        )
    assert backup(path, tmp_path / "copy.db").manifest.contents.unchecked == ["t"]
    with closing(stdlib.connect(path)) as connection:
        connection.executescript(
            """PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON t (x)' WHERE name = 'i';"""
        )
    with pytest.raises(VerificationFailed, match="missing from index i"):
        backup(path, tmp_path / "second.db")


def test_a_database_with_a_hot_journal_is_refused_and_what_is_said_makes_it_whole(
    tmp_path: Path,
) -> None:
    path = tmp_path / "my app.db"
    script = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.executescript(
    "PRAGMA cache_size = 1; CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(1000000)), (1);"
    "BEGIN; UPDATE t SET x = randomblob(1000000);"
)
os._exit(0)
"""
    python(script, path)
    with pytest.raises(OperationsError, match=r"is half changed: my app\.db-journal") as refused:
        backup(path, tmp_path / "copy.db")
    assert left_in(tmp_path) == []
    with pytest.raises(OperationsError, match="is half changed"):  # it may be restored from, too
        operations.restore(path, tmp_path / "back.db")
    words = shlex.split(str(refused.value).partition("by reading it: ")[2])
    assert words[0] == "python"
    subprocess.run([sys.executable, *words[1:]], check=True, capture_output=True)
    assert backup(path, tmp_path / "copy.db").manifest.contents.rows == {"t": 2}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("out.json", r"out\.json is the name of a manifest.*name it out\.db, for example"),
        (".hidden.db", "is hidden"),
        ("a.db-wal", "is the name of what lies beside a database"),
        ("a.db-gate", "is the name of what lies beside a database"),
        ("数" * 82 + ".db", "is too long a name: it has 249 bytes, and .* leaves 246 for it"),
        ("x" * 300, "is too long a name"),
    ],
)
def test_a_name_that_is_no_backups_is_refused_before_any_work(
    database: Path, tmp_path: Path, name: str, says: str
) -> None:
    before = sorted(tmp_path.iterdir())
    seen: list[str] = []
    with pytest.raises(OperationsError, match=says):
        backup(database, tmp_path / name, stage=lambda what, *_: seen.append(what))
    assert not seen
    assert sorted(tmp_path.iterdir()) == before


def test_a_long_name_is_cut_where_the_time_is_added(tmp_path: Path) -> None:
    database = filled(tmp_path / ("数" * 81 + ".db"))  # 246 bytes
    target = tmp_path / "backups"
    target.mkdir()
    for compress in (False, True):
        made = backup(database, target, compress=compress)
        assert len(os.fsencode(made.path.name)) > 200
        kept = operations.restore(made.path, database).kept_as
        assert kept is not None
        assert ".before-" in kept.name
        assert numbers(kept) == numbers(database)
    assert len(backups_in(target)) == 2
    exact = backup(database, tmp_path / ("数" * 81 + "fit"))
    assert operations.restore(exact.path, tmp_path / "new.db").was_proved
    with pytest.raises(OperationsError, match="is too long a name"):
        operations.restore(exact.path, tmp_path / ("数" * 82 + ".db"))
    with pytest.raises(OperationsError, match="is too long a name"):
        operations.create_snapshot(database)


def test_backups_of_a_hidden_database_are_listed(tmp_path: Path) -> None:
    database = filled(tmp_path / ".app.db")
    backup(database, tmp_path)
    assert [one.name[:4] for one in backups_in(tmp_path)] == ["app-"]


# Ends itself before it changes a name for the given time.
_DIES = """
import os, signal, sys
from oxlite.operations import backup
left = int(sys.argv[3])
def die(event, arguments):
    global left
    if event in ("os.link", "os.rename", "os.remove", "os.rmdir", "os.mkdir"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(die)
backup(sys.argv[1], sys.argv[2])
"""


def test_whoever_is_killed_at_any_step_leaves_no_name_without_a_manifest(
    database: Path, tmp_path: Path
) -> None:
    for step in range(1, 100):
        target = tmp_path / f"{step}.db"
        done = subprocess.run(
            [sys.executable, "-c", _DIES, database, target, str(step)], check=False
        )
        assert done.returncode in (0, -signal.SIGKILL)
        if target.exists():
            [made] = backups_in(tmp_path)
            assert made.is_proved()
            target.unlink()
        backup(database, tmp_path / "next.db")
        assert left_in(tmp_path) == []
        assert [one.name for one in backups_in(tmp_path)] == ["next"]
        assert not (tmp_path / f"{step}.db.json").exists()
        for path in (tmp_path / "next.db", tmp_path / "next.db.json"):
            path.unlink()
        if done.returncode == 0:
            break
    assert step > 5


def test_a_backup_that_cannot_have_its_name_leaves_no_manifest(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_partial: Partial, _final: Path) -> None:
        raise OSError(errno.EIO, "the disk")

    monkeypatch.setattr(Partial, "finish", fail)
    with pytest.raises(OSError, match="the disk"):
        backup(database, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db.json").exists()
    assert left_in(tmp_path) == []


def test_a_copy_that_has_not_the_rows_of_the_snapshot_is_no_backup(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["oxlite.operations.backups"]
    copy = module.copy_online

    def lose(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as it is
        copied = copy(*arguments, **options)
        return copied._replace(rows={"t": copied.rows["t"] + 1})

    monkeypatch.setattr(module, "copy_online", lose)
    with pytest.raises(VerificationFailed, match="has not the rows that it had"):
        backup(database, tmp_path / "copy.db")
    assert left_in(tmp_path) == []
