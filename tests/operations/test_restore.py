"""Restoring: verified first, nobody is overwritten, what was there is kept."""

import os
import signal
import sqlite3 as stdlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.operations.databases import filled, numbers, python, writing

import oxlite
from oxlite import operations
from oxlite.operations import (
    Backup,
    DatabaseInUse,
    OperationsError,
    VerificationFailed,
    doctor,
    restore,
)

HOLDS = """
import sys
if sys.argv[2] == "oxlite":
    from oxlite import sqlite3
else:
    import sqlite3
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM t").fetchone()
print("open", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return filled(tmp_path / "app.db")


@pytest.fixture
def made(database: Path, tmp_path: Path) -> Backup:
    """Of the database, which has one row less since then."""
    made = operations.backup(database, tmp_path / "copy.db")
    with closing(stdlib.connect(database)) as connection:
        connection.execute("DELETE FROM t WHERE x = 1000")
        connection.commit()
    return made


@contextmanager
def held(path: Path, by: str) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path), by],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        process.stdout.readline()
        yield process.pid
    finally:
        process.communicate("end\n")


def left_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name.startswith("."))


def test_what_was_there_is_kept(made: Backup, database: Path) -> None:
    done = restore(made.path, database)
    assert numbers(database) == list(range(1, 1001))
    assert done.kept_as is not None
    assert numbers(done.kept_as) == list(range(1, 1000))
    assert done.kept_as.name.startswith("app.db.before-")
    assert restore(made.path, database.with_name("new.db")).kept_as is None


def test_what_is_in_the_wal_is_kept_too(made: Backup, database: Path) -> None:
    python(
        """
import os, sys, oxlite
connection = oxlite.connect(sys.argv[1])
connection.execute("INSERT INTO t VALUES (5000, NULL)")
connection.commit()
os._exit(0)
""",
        database,
    )
    assert Path(f"{database}-wal").stat().st_size
    done = restore(made.path, database)
    assert done.kept_as is not None
    assert numbers(done.kept_as)[-1] == 5000
    assert numbers(database)[-1] == 1000


def test_nothing_of_the_old_one_is_beside_the_new_one(made: Backup, database: Path) -> None:
    """As after a database was deleted, and its WAL was not."""
    database.unlink()
    for suffix in ("-wal", "-shm", "-journal"):
        Path(f"{database}{suffix}").write_bytes(b"of another database" * 100)
    restore(made.path, database)
    assert numbers(database) == list(range(1, 1001))


@pytest.mark.parametrize("by", ["oxlite", "sqlite3"])
def test_while_somebody_has_it_open_it_is_refused(made: Backup, database: Path, by: str) -> None:
    with (
        held(database, by) as pid,
        pytest.raises(DatabaseInUse, match=rf"is open in process {pid} \(.*python.*--live"),
    ):
        restore(made.path, database)
    assert numbers(database) == list(range(1, 1000))
    assert left_in(database.parent) == []
    restore(made.path, database)


def test_this_process_is_somebody_as_well(made: Backup, database: Path) -> None:
    with (
        closing(oxlite.connect(database)),
        pytest.raises(DatabaseInUse, match=f"process {os.getpid()}"),
    ):
        restore(made.path, database)


def test_what_cannot_be_seen_has_locks(made: Backup, database: Path) -> None:
    """Who is in another PID namespace: a process that is not in /proc here."""
    with held(database, "oxlite"):
        said = python(
            """
import sys
from oxlite.operations import restore
sys.modules["oxlite.operations.restore"].look_for_holders = lambda *_, **__: ()
restore(sys.argv[1], sys.argv[2])
""",
            made.path,
            database,
            expected=1,
        )
        assert "who cannot be seen from here" in said
    assert numbers(database) == list(range(1, 1000))


def test_an_open_database_can_be_written_into(made: Backup, database: Path) -> None:
    with closing(oxlite.connect(database)) as connection:
        assert connection.execute("SELECT max(x) FROM t").fetchone() == (999,)
        done = restore(made.path, database, live=True)
        assert connection.execute("SELECT max(x) FROM t").fetchone() == (1000,)
        assert done.kept_as is not None
        assert numbers(done.kept_as)[-1] == 999
    assert operations.backups_in(database.parent) == [made]


def test_a_live_restore_is_one_transaction_for_who_writes(made: Backup, database: Path) -> None:
    with writing(database) as writer:
        restore(made.path, database, live=True)
        assert writer.poll() is None
    found = numbers(database)
    assert found[:1000] == list(range(1, 1001))


def test_a_database_in_use_keeps_its_page_size(database: Path, tmp_path: Path) -> None:
    with closing(stdlib.connect(tmp_path / "large.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA page_size = 8192")
        connection.execute("CREATE TABLE t (x)")
    with pytest.raises(OperationsError, match="keeps its page size, 4096 bytes"):
        restore(tmp_path / "large.db", database, live=True)
    assert restore(tmp_path / "large.db", database).contents.page_size == 8192


def test_what_is_damaged_restores_nothing(made: Backup, database: Path) -> None:
    content = bytearray(made.path.read_bytes())
    content[len(content) // 2] ^= 1
    made.path.write_bytes(content)
    with pytest.raises(VerificationFailed, match="is not what it was"):
        restore(made.path, database)
    made.path.with_name("copy.db.json").unlink()
    made.path.write_bytes(content[: len(content) // 2])
    with pytest.raises((VerificationFailed, oxlite.sqlite3.DatabaseError)):
        restore(made.path, database)
    made.path.write_bytes(b"no database" * 1000)
    with pytest.raises(OperationsError, match="no SQLite database"):
        restore(made.path, database)
    packed = made.path.with_name("copy.zst")
    packed.write_bytes(b"not packed" * 1000)
    with pytest.raises(VerificationFailed, match="cannot be decompressed"):
        restore(packed, database)
    assert numbers(database) == list(range(1, 1000))
    assert left_in(database.parent) == []


@pytest.mark.parametrize("damage", [b"", b"nothing that SQLite knows" * 500])
def test_a_damaged_database_is_replaced(made: Backup, database: Path, damage: bytes) -> None:
    database.write_bytes(damage)
    done = restore(made.path, database)
    assert numbers(database) == list(range(1, 1001))
    assert done.kept_as is not None
    assert done.kept_as.read_bytes() == damage


def test_what_cannot_be_is_refused(made: Backup, database: Path, tmp_path: Path) -> None:
    for backup, target, says in (
        (tmp_path / "gone.db", database, "there is no backup"),
        (made.path, tmp_path / "gone" / "app.db", "there is no directory"),
        (made.path, tmp_path, "is no file"),
        (database, database, "is the database itself"),
    ):
        with pytest.raises(OperationsError, match=says):
            restore(backup, target)


def test_a_link_leads_to_the_database(made: Backup, database: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(database)
    restore(made.path, tmp_path / "link.db")
    assert (tmp_path / "link.db").is_symlink()
    assert numbers(database)[-1] == 1000


def test_any_database_that_is_in_use_can_be_restored_from(database: Path, tmp_path: Path) -> None:
    with writing(database):
        done = restore(database, tmp_path / "new.db")
    assert not done.was_proved
    found = numbers(tmp_path / "new.db")
    assert found == list(range(1, len(found) + 1))


def test_whoever_is_killed_leaves_the_one_or_the_other(made: Backup, database: Path) -> None:
    script = """
import os, signal, sys
from oxlite.operations import restore
def die(what, done, of):
    if what == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)
restore(sys.argv[1], sys.argv[2], stage=die)
"""
    for stage in ("comparing", "copying", "verifying"):
        python(script, made.path, database, stage, expected=-signal.SIGKILL)
        assert numbers(database) == list(range(1, 1000))
    restore(made.path, database)
    assert left_in(database.parent) == []


def test_without_room_nothing_is_restored(made: Backup, database: Path) -> None:
    said = python(
        """
import resource, sys
from oxlite.operations import restore
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    restore(sys.argv[1], sys.argv[2])
except OSError as error:
    print(error)
""",
        made.path,
        database,
    )
    assert "File too large" in said
    assert numbers(database) == list(range(1, 1000))
    assert left_in(database.parent) == []


def test_who_has_it_open_is_seen(database: Path) -> None:
    assert operations.look_for_holders(database) == ()
    with held(database, "sqlite3") as pid:
        found = operations.look_for_holders(database)
        assert found is not None
        assert [one.process_id for one in found] == [pid]


def test_of_a_database_that_was_moved_away_the_wal_is_kept(made: Backup, database: Path) -> None:
    database.rename(database.with_name("app.db.broken"))
    Path(f"{database}-wal").write_bytes(b"rows of the old one")
    restore(made.path, database)
    assert numbers(database) == list(range(1, 1001))
    [kept] = database.parent.glob("app.db.before-*-wal")
    assert kept.read_bytes() == b"rows of the old one"


def test_the_old_file_has_no_wal_that_a_late_opener_could_write(
    made: Backup, database: Path
) -> None:
    """Who has opened it in the midst would write into the WAL of the new one, by its name."""
    late = database.with_name("late.db")
    os.link(database, late)
    done = restore(made.path, database)
    assert done.kept_as is not None
    assert late.read_bytes()[18:20] == b"\1\1"  # as "journal_mode = DELETE" leaves it
    assert numbers(late)[-1] == 999


@pytest.mark.parametrize("left", [0, 4, 100, -4])
def test_a_compressed_backup_without_its_end_restores_nothing(
    database: Path, tmp_path: Path, left: int
) -> None:
    made = operations.backup(database, tmp_path / "copy.db.zst", compress=True)
    made.path.with_name("copy.db.zst.json").unlink()
    content = made.path.read_bytes()
    made.path.write_bytes(content[:left])
    with pytest.raises(VerificationFailed, match=r"has no end|is empty"):
        restore(made.path, database)
    assert numbers(database)[-1] == 1000


def test_a_live_restore_waits_for_nobody_for_ever(made: Backup, database: Path) -> None:
    said = python(
        """
import sys
from oxlite import sqlite3
from oxlite.operations import restore, DatabaseInUse
sys.modules["oxlite.operations.restore"]._STANDS_STILL_SECONDS = 0.5
other = sqlite3.connect(sys.argv[2], isolation_level=None)
other.execute("BEGIN IMMEDIATE")
try:
    restore(sys.argv[1], sys.argv[2], live=True)
except DatabaseInUse as error:
    print(error)
""",
        made.path,
        database,
    )
    assert "somebody has had" in said


def test_a_restored_database_has_the_rights_of_what_was_there(made: Backup, database: Path) -> None:
    made.path.chmod(0o600)
    assert restore(made.path, database.with_name("new.db")).path.stat().st_mode & 0o777 == 0o600
    database.chmod(0o640)
    assert restore(made.path, database).path.stat().st_mode & 0o777 == 0o640


# Ends itself before it changes a name for the given time.
_DIES = """
import os, signal, sys
from oxlite.operations import restore
left = int(sys.argv[3])
def die(event, arguments):
    global left
    if event in ("os.link", "os.rename", "os.remove", "os.rmdir", "os.mkdir"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(die)
restore(sys.argv[1], sys.argv[2])
"""


def test_whoever_is_killed_at_any_step_leaves_one_database_and_all_that_was_there(
    made: Backup, database: Path
) -> None:
    old, new = list(range(1, 1000)), list(range(1, 1001))
    seen_twice = 0
    for step in range(1, 100):
        done = subprocess.run(
            [sys.executable, "-c", _DIES, made.path, database, str(step)], check=False
        )
        assert done.returncode in (0, -signal.SIGKILL)
        is_double = database.stat().st_nlink > 1 and numbers(database) == old
        seen_twice += is_double
        assert numbers(database) in (old, new)
        if is_double:
            assert "hard-links" in {one.code for one in doctor.examine(database).findings}
        elif numbers(database) == new:
            assert [numbers(path) for path in database.parent.glob("app.db.before-*")] == [old]
        # The next one makes it whole.
        last = restore(made.path, database)
        assert last.kept_as is not None
        files = [database, *database.parent.glob("app.db.before-*")]
        assert [path.stat().st_nlink for path in files] == [1] * len(files)
        assert any(numbers(path) == old for path in files)
        assert left_in(database.parent) == []
        if done.returncode == 0:
            break
        for path in files[1:]:
            path.unlink()
        with closing(stdlib.connect(database)) as connection:
            connection.execute("DELETE FROM t WHERE x = 1000")
            connection.commit()
    assert step > 6
    assert seen_twice


def test_a_second_name_that_somebody_uses_stays(made: Backup, database: Path) -> None:
    used = database.with_name("app.db.before-20260101T000000Z")
    os.link(database, used)
    Path(f"{used}-wal").write_bytes(b"rows of his")
    restore(made.path, database)
    assert Path(f"{used}-wal").read_bytes() == b"rows of his"
    assert used.exists()


def test_without_hard_links_the_old_file_is_copied(
    made: Backup, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    done = restore(made.path, database)
    assert done.kept_as is not None
    assert numbers(done.kept_as) == list(range(1, 1000))
    assert numbers(database) == list(range(1, 1001))
    assert left_in(database.parent) == []
