"""Files that somebody else has made or harms: nothing of them is run, written or believed.

Nothing hangs either: each examination of these ends within the limit of a test.
"""

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.operations.doctor import zoo
from tests.operations.doctor.healthy import run
from tests.operations.doctor.zoo import ROWS, Ward

import oxlite
from oxlite.operations import OperationsError
from oxlite.operations.doctor import Report, examine, mend
from oxlite.operations.doctor.checks import OUTSIDE
from oxlite.operations.doctor.content import opened
from oxlite.operations.doctor.place import look
from oxlite.operations.doctor.subject import Subject


def codes(report: Report) -> set[str]:
    return {finding.code for finding in report.findings}


# What cannot be examined.


def test_a_missing_file_is_an_error_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(OperationsError, match="No such file"):
        examine(tmp_path / "nothing.db")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OperationsError, match="is a directory"):
        examine(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OperationsError, match="not a regular file"):
        examine(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OperationsError):
        examine(tmp_path / "circle")
    with pytest.raises(OperationsError):
        examine("null\0byte")


def test_an_unknown_profile_is_an_error_that_names_all(ward: Ward) -> None:
    zoo.plain(ward)
    with pytest.raises(OperationsError, match="name one of stock, web, durable, cache, untrusted"):
        examine(ward.path, profile="wbe")


def test_a_link_is_followed_to_its_database(ward: Ward) -> None:
    zoo.left_wal(ward)
    link = ward.directory / "link.db"
    link.symlink_to(ward.path)
    assert examine(link).path == str(ward.path)
    assert "wal-left-behind" in codes(examine(link))


@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
def test_a_pipe_beside_it_stops_nobody(ward: Ward, suffix: str) -> None:
    zoo.plain(ward)
    os.mkfifo(ward.beside(suffix))
    report = examine(ward.path)
    assert "sidecar-not-a-file" in codes(report)
    assert "The content was not examined." in report.notes


# What a file contains.


def with_schema(ward: Ward, sql: str) -> None:
    """Put what no SQLite would take into the schema, for a table that has a row."""
    ward.run("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); INSERT INTO t(b) VALUES ('x')")
    with closing(sqlite3.connect(ward.path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 't'", (sql,))


@pytest.mark.parametrize(
    "column",
    [
        "b TEXT CHECK (load_extension(b) IS NULL)",
        "b TEXT, c AS (load_extension('x'))",
        "b TEXT CHECK (fts3_tokenizer('simple', b) IS NULL)",
        "b TEXT CHECK (randomblob(1000000000) IS NULL)",
    ],
)
def test_no_function_of_the_schema_does_harm(ward: Ward, column: str) -> None:
    with_schema(ward, f"CREATE TABLE t(a INTEGER PRIMARY KEY, {column})")
    report = examine(ward.path, quick=False)
    assert codes(report) & {"schema-unreadable", "constraint-violated", "not-finished"}, (
        report.findings
    )
    for finding in report.findings:
        assert "DELETE FROM sqlite_schema" not in finding.mend


def test_no_view_or_trigger_of_the_schema_is_run(ward: Ward) -> None:
    zoo.plain(ward)
    ward.run(
        "CREATE VIEW v AS SELECT load_extension('x');"
        "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT load_extension('x'); END;"
    )
    assert examine(ward.path, quick=False).is_well


def test_a_function_of_the_applications_is_named(ward: Ward) -> None:
    with closing(sqlite3.connect(ward.path)) as connection:
        connection.create_function("checked", 1, bool, deterministic=True)
        connection.execute("CREATE TABLE t(a CHECK (checked(a)))")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
    (finding,) = (one for one in examine(ward.path).findings if one.code == "needs-application")
    assert "checked" in finding.what


def test_its_connection_cannot_write(ward: Ward) -> None:
    ward.run(zoo.MANY)
    with opened(look(ward.path), is_quick=True, progress=None) as content:
        for statement in (
            "INSERT INTO t(b) VALUES ('x')",
            "UPDATE t SET b = 1",
            "DELETE FROM t",
            "CREATE TABLE other(a)",
            "CREATE TEMP TABLE other(a)",
            "DROP TABLE t",
            "VACUUM",
            "VACUUM INTO 'copy.db'",
            "ANALYZE",
            "REINDEX",
            "ATTACH 'other.db' AS other",
            "PRAGMA query_only = OFF",
            "PRAGMA journal_mode = delete",
            "PRAGMA wal_checkpoint(TRUNCATE)",
            "PRAGMA optimize",
            "PRAGMA user_version = 3",
            "PRAGMA writable_schema = ON",
            "PRAGMA trusted_schema = ON",
            "SELECT load_extension('x')",
        ):
            with pytest.raises(oxlite.sqlite3.Error):
                content.rows(statement)


def test_a_name_commands_no_terminal(ward: Ward) -> None:
    ward.run('CREATE TABLE "\x1b[31mred\r"(a, b UNIQUE); CREATE INDEX "\x1b]0;title\x07" ON'
             ' "\x1b[31mred\r"(b)')  # fmt: skip
    report = examine(ward.path)
    assert "duplicate-index" in codes(report)
    text = json.dumps(report.as_dict(), ensure_ascii=False)
    assert all(character >= " " for character in text)
    for finding in report.findings:
        for said in (finding.what, finding.why, finding.mend.replace("\n", "")):
            assert said == oxlite.harmless(said)


def test_a_path_is_quoted_for_a_shell(tmp_path: Path) -> None:
    directory = tmp_path / "a b; touch hurt'; $(touch hurt)"
    directory.mkdir()
    path = directory / "app%20?#.db"
    zoo_ward = Ward(directory, pytest.importorskip("contextlib").ExitStack())
    run(path, "CREATE TABLE t(a)")
    path.chmod(0o666)
    (finding,) = (one for one in examine(path).findings if one.code == "file-world-writable")
    zoo.by_shell(zoo_ward, finding)
    assert path.stat().st_mode & 0o777 == 0o664
    assert not (Path.cwd() / "hurt").exists()


def test_a_schema_without_an_end_is_read(ward: Ward) -> None:
    deep = "+".join(["1"] * 900)
    ward.run(f"CREATE TABLE t(a); CREATE VIEW v AS SELECT {deep}; CREATE INDEX i ON t(a + {deep})")
    with closing(sqlite3.connect(ward.path)) as connection, connection:
        connection.execute("BEGIN")
        for number in range(300):
            columns = ", ".join(f"c{column}" for column in range(100))
            connection.execute(f"CREATE TABLE wide_{number}({columns})")
    assert examine(ward.path).is_well


@pytest.mark.parametrize("number", range(12))
def test_damage_anywhere_gives_a_report(ward: Ward, number: int, seed: int) -> None:
    """Bytes at random, in database, WAL and index: never a crash, a traceback or a hang."""
    import random

    chance = random.Random(f"{seed} {number}")
    ward.run(
        "PRAGMA page_size = 512;" + zoo.PLAIN + zoo.FAMILY + "CREATE INDEX i ON t(b);"
        "CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES ('one two');"
        "CREATE VIRTUAL TABLE r USING rtree(id, a, b); INSERT INTO r VALUES (1, 2, 3);"
        + ROWS.format(count=300) + "INSERT INTO t SELECT i, hex(randomblob(20)) FROM n"
    )  # fmt: skip
    process = ward.start("c = sqlite3.connect(path)\nc.execute('DELETE FROM t')\nc.commit()")
    ward.kill(process)
    files = [ward.path, *([ward.beside("-wal")] if number % 2 else [])]
    for _ in range(1 + number * 2):
        file = chance.choice(files)
        at = chance.randrange(100 if file == ward.path else 0, file.stat().st_size)
        zoo.patch(file, at, chance.randbytes(chance.choice((1, 4, 64))))
    program = (
        "import sys\nfrom oxlite.operations.doctor import examine\n"
        "print(len(examine(sys.argv[1], quick=False).findings))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(ward.path)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_it_is_said_where_the_damage_is(ward: Ward) -> None:
    """Also where a page cannot be read: then SQLite's scan fails and tells nothing by itself."""
    ward.run(zoo.PLAIN + ROWS.format(count=3000) + "INSERT INTO t SELECT i, hex(i) FROM n")
    pages = ward.path.stat().st_size // 4096
    zoo.patch(ward.path, (pages - 1) * 4096, bytes(4096))
    found = [one.what for one in examine(ward.path).findings if one.code == "corrupt"]
    assert any(f"page {pages}:" in what for what in found), found


# Who uses it meanwhile.


@pytest.fixture
def busy(ward: Ward) -> Ward:
    """A database that another process writes without a pause."""
    zoo.plain(ward)
    ward.start(
        "import threading\nfrom oxlite import Database\ndb = Database(path)\ndef write():\n"
        "    while True:\n        db.execute('INSERT INTO t(b) VALUES (?)', ('x' * 100,))\n"
        "threading.Thread(target=write, daemon=True).start()"
    )
    return ward


def test_a_writer_without_a_pause_is_no_illness(busy: Ward) -> None:
    for quick in (True, False):
        report = examine(busy.path, quick=quick)
        assert [one.code for one in report.findings if one.severity != "hint"] == []
        assert len(report.processes) == 1
    assert busy.processes[0].poll() is None


def test_a_library_that_is_loaded_and_not_used_is_no_illness(ward: Ward) -> None:
    """Of Django every process has the standard library's."""
    zoo.plain(ward)
    ward.start(zoo.OURS)  # which imports both
    ward.start("import oxlite\nfile = open(path, 'rb')")
    report = examine(ward.path)
    assert "old-sqlite" not in codes(report)
    ours, neither = report.processes
    assert [one["is_oxlite"] for one in ours["sqlite"]] == [True]
    assert neither["sqlite"] == []


def test_who_has_begun_to_read_just_now_does_not_keep_the_wal(ward: Ward) -> None:
    zoo.a_reader_of_an_old_snapshot(ward)
    ward.start(zoo.OURS)
    found = [one.what for one in examine(ward.path).findings if one.code == "wal-held-back"]
    assert len(found) == 1
    assert f"rocess {ward.processes[0].pid} " in found[0]


def test_locks_of_another_sqlite_of_this_process_stay(ward: Ward) -> None:
    """Nothing of a database is opened and closed here by anybody who would take its locks away."""
    zoo.plain(ward)
    with closing(sqlite3.connect(ward.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t(b) VALUES ('ours')")
        examine(ward.path)
        other = (
            "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1], timeout=0)\n"
            "c.execute('BEGIN IMMEDIATE')"
        )
        done = subprocess.run(
            [sys.executable, "-c", other, str(ward.path)], capture_output=True, text=True
        )
        assert "database is locked" in done.stderr
        connection.execute("COMMIT")


def test_it_waits_for_a_lock_only_so_long(ward: Ward) -> None:
    zoo.one_that_is_locked(ward)
    report = examine(ward.path)
    (finding,) = (one for one in report.findings if one.code == "locked")
    assert str(ward.processes[0].pid) in finding.what
    assert report.notes[-1].startswith("The content was not examined")


# What is mended.


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_nothing_is_mended_while_there_are_errors(ward: Ward) -> None:
    zoo.many_rows_without_statistics(ward)
    ward.run(zoo.FAMILY + "INSERT INTO child VALUES (1, 7)")
    before = digest(ward.path)
    with pytest.raises(OperationsError, match="while there are errors"):
        mend(ward.path, examine(ward.path))
    assert digest(ward.path) == before


def test_nothing_is_touched_where_nothing_is_safe(ward: Ward) -> None:
    zoo.an_index_that_is_there_twice(ward)
    before = digest(ward.path)
    assert mend(ward.path, examine(ward.path)) == ()
    assert digest(ward.path) == before


def test_rows_with_the_last_numbers_are_kept(ward: Ward) -> None:
    zoo.numbers_that_are_used_up(ward)
    (finding,) = (
        one for one in examine(ward.path).findings if one.code == "autoincrement-near-end"
    )
    zoo.by_sql(ward, finding)
    with closing(sqlite3.connect(ward.path)) as connection:
        assert connection.execute("SELECT * FROM t").fetchall() == [(1, 1), (2, 2), (3, 2)]


def test_a_wal_that_somebody_has_open_is_left_to_him(ward: Ward) -> None:
    zoo.a_wal_of_a_killed_program(ward)
    report = examine(ward.path)
    ward.start(zoo.OURS)
    with pytest.raises(OperationsError, match="somebody has opened it meanwhile"):
        mend(ward.path, report)


# What is told.


def test_progress_is_told(ward: Ward) -> None:
    ward.run(zoo.MANY + ROWS.format(count=300_000) + "INSERT INTO t SELECT i, i FROM n")
    told: list[tuple[str, int, int]] = []
    examine(ward.path, quick=False, progress=lambda *one: told.append(one))
    assert told
    assert {name for name, _, _ in told} <= {"integrity_check", "foreign_key_check"}
    assert all(done >= 0 and total >= 0 for _, done, total in told)


def test_doors_say_how_they_would_open_it(ward: Ward) -> None:
    zoo.plain(ward)
    production, stock = examine(ward.path, profile="durable").doors
    assert production["profile"] == "durable"
    assert production["differs"] == []
    assert production["pragmas"]["synchronous"] == 2
    assert "foreign_keys" in stock["differs"]


# File systems that cannot be made here.


@pytest.mark.parametrize(
    ("kind", "options", "code", "severity"),
    [
        ("nfs4", ["rw"], "network-file-system", "error"),
        ("fuse.sshfs", ["rw"], "network-file-system", "error"),
        ("vfat", ["rw"], "unusual-file-system", "hint"),
        ("overlay", ["rw"], "overlay-file-system", "warning"),
        ("ext4", ["ro"], "read-only-file-system", "warning"),
    ],
)
def test_file_systems(ward: Ward, kind: str, options: list[str], code: str, severity: str) -> None:
    zoo.plain(ward)
    place = look(ward.path)
    network = kind in oxlite.NETWORK_FILE_SYSTEMS
    mount = {"type": kind, "options": options, "network": network, "volatile": False}
    place = replace(place, file_system=place.file_system | mount)
    found = [one for check in OUTSIDE for one in check(Subject(place, "web", ()))]
    assert [(one.code, one.severity) for one in found if one.code != "disk-nearly-full"] == [
        (code, severity)
    ]
