"""Sick databases, each made so by what makes them so: processes, bytes, modes, mounts.

Each function makes one in a directory; what it starts ends with the ``Ward``. Beside it stands how
the finding's mend is applied: as SQL, by a shell, by ``mend`` (``--fix``), or by hand where it is
a sentence.
"""

import gzip
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from oxlite import sqlite3 as driver
from oxlite.operations.doctor import Finding, examine, mend

IS_ROOT = os.geteuid() == 0
SOMEBODY = 12345

Cure = Callable[["Ward", Finding], Path | None]


@dataclass
class Ward:
    """Where a sick database lies, and what ends with it."""

    directory: Path
    stack: ExitStack
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.directory / "app.db"

    @property
    def saved(self) -> Path:
        """A backup of it when it was well."""
        return self.directory / "backup.db"

    def beside(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)

    def run(self, script: str, *, path: Path | None = None) -> None:
        """Make it what a script of SQL makes of it, by the standard library's SQLite."""
        with closing(sqlite3.connect(path or self.path, isolation_level=None)) as connection:
            connection.executescript(script)

    def start(self, program: str, *more: str) -> subprocess.Popen[str]:
        """A process that says that it is ready, and stays until its input ends."""
        ready = "\nprint('ready', flush=True)\nsys.stdin.read()\n"
        begin = "import os, sqlite3, sys\npath = sys.argv[1]\n"
        process = subprocess.Popen(
            [sys.executable, "-c", begin + program + ready, str(self.path), *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.stack.callback(_end, process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        self.processes.append(process)
        return process

    def kill(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.wait()
        self.processes.remove(process)

    def reap(self) -> None:
        """Wait for those that a mend has ended."""
        for process in self.processes:
            if process.poll() is None:
                try:
                    process.wait(0.5)
                except subprocess.TimeoutExpired:
                    continue


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


# How a mend is applied.


def by_sql(ward: Ward, finding: Finding) -> None:
    """As it stands, in an SQL shell."""
    with closing(driver.connect(ward.path, isolation_level=None)) as connection:
        connection.executescript(finding.mend)


def by_shell(ward: Ward, finding: Finding) -> None:
    """Its last line, by a shell."""
    command = finding.mend.split("\n")[-1]
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["sh", "-c", command], check=True, timeout=60, env=os.environ | {"PATH": here})
    ward.reap()


def by_fix(ward: Ward, finding: Finding) -> None:
    assert finding.is_safe
    mended = mend(ward.path, examine(ward.path))
    assert finding.code in {one.code for one in mended}


def by_backup(ward: Ward, finding: Finding) -> None:
    """Restore what was saved."""
    assert "backup" in finding.mend
    for suffix in ("-wal", "-shm", "-journal"):
        ward.beside(suffix).unlink(missing_ok=True)
    shutil.copy(ward.saved, ward.path)


def by_recovery(ward: Ward, finding: Finding) -> Path:
    """Its command writes another file."""
    by_shell(ward, finding)
    (made,) = ward.directory.glob("app.db.*")
    return made


@dataclass(frozen=True)
class Sick:
    """One of the zoo."""

    code: str
    make: Callable[[Ward], None]
    cure: Cure | Callable[[Ward, Finding], None] | None
    quick: bool = True
    needs: str = ""

    @property
    def name(self) -> str:
        return self.make.__name__


ZOO: list[Sick] = []

Make = Callable[[Ward], None]


def sick(
    code: str,
    cure: Cure | Callable[[Ward, Finding], None] | None,
    *,
    quick: bool = True,
    needs: str = "",
) -> Callable[[Make], Make]:
    def listed(make: Make) -> Make:
        ZOO.append(Sick(code, make, cure, quick, needs))
        return make

    return listed


ROWS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
PLAIN = "PRAGMA journal_mode = wal; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);"


def plain(ward: Ward) -> None:
    """A database that is well, and a backup of it."""
    ward.run(PLAIN + ROWS.format(count=500) + "INSERT INTO t SELECT i, hex(randomblob(20)) FROM n")
    ward.run(f"VACUUM INTO '{ward.saved}'")


def left_wal(ward: Ward, rows: int = 10) -> None:
    """One whose last program was killed."""
    plain(ward)
    process = ward.start(
        "c = sqlite3.connect(path)\nc.execute('PRAGMA wal_autocheckpoint = 0')\n"
        f"c.executemany('INSERT INTO t(b) VALUES (?)', [('x' * 1000,)] * {rows})\nc.commit()"
    )
    ward.kill(process)


def patch(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


# The file.


def _migrate(ward: Ward, _finding: Finding) -> None:
    ward.run("CREATE TABLE t(a)")


@sick("empty-file", _migrate)
def a_misspelt_path(ward: Ward) -> None:
    ward.path.touch()


@sick("not-a-database", by_backup)
def a_text(ward: Ward) -> None:
    plain(ward)
    ward.path.write_text("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCOMMIT;\n")


@sick("not-a-database", by_backup)
def a_compressed_copy(ward: Ward) -> None:
    plain(ward)
    ward.path.write_bytes(gzip.compress(ward.path.read_bytes()))


@sick("encrypted", lambda ward, _: shutil.copy(ward.saved, ward.path) and None)
def one_without_its_key(ward: Ward) -> None:
    plain(ward)
    ward.path.write_bytes(os.urandom(16384))


@sick("corrupt-header", by_backup)
def a_wrong_header(ward: Ward) -> None:
    plain(ward)
    patch(ward.path, 21, b"\x41")


@sick("corrupt-header", by_backup)
def a_page_size_that_is_none(ward: Ward) -> None:
    plain(ward)
    patch(ward.path, 16, b"\x10\x01")


@sick("corrupt-header", by_backup)
def less_than_a_header(ward: Ward) -> None:
    plain(ward)
    os.truncate(ward.path, 64)


@sick("truncated", by_backup)
def an_unfinished_copy(ward: Ward) -> None:
    plain(ward)
    os.truncate(ward.path, ward.path.stat().st_size - 4096)


@sick("partial-page", by_shell)
def bytes_behind_the_end(ward: Ward) -> None:
    plain(ward)
    with ward.path.open("ab") as file:
        file.write(b"x" * 100)


@sick("hard-links", by_shell)
def a_second_name(ward: Ward) -> None:
    plain(ward)
    os.link(ward.path, ward.directory / "same.db")


@sick("hard-links", by_shell)
def a_restore_that_was_killed(ward: Ward) -> None:
    """In the moment in which the old file has the name under which it is to be kept, too."""
    plain(ward)
    program = """
import os, signal
from oxlite.operations import restore
def die(event, arguments):
    if event == "os.rename" and str(arguments[1]) == path:
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(die)
restore(sys.argv[2], path)
"""
    backup = ward.directory / "other.db"
    shutil.copy(ward.path, backup)
    program = "import sys\npath = sys.argv[1]" + program
    done = subprocess.run([sys.executable, "-c", program, ward.path, backup], check=False)
    assert done.returncode == -signal.SIGKILL


@sick("file-read-only", by_shell)
def a_file_that_nobody_may_write(ward: Ward) -> None:
    plain(ward)
    ward.path.chmod(0o444)


@sick("directory-read-only", by_shell)
def a_directory_of_somebody_else(ward: Ward) -> None:
    plain(ward)
    if IS_ROOT:
        os.chown(ward.path, SOMEBODY, SOMEBODY)
    ward.directory.chmod(0o555)


@sick("file-world-writable", by_shell)
def a_file_for_everybody(ward: Ward) -> None:
    plain(ward)
    ward.path.chmod(0o666)


@sick("directory-world-writable", by_shell)
def a_directory_for_everybody(ward: Ward) -> None:
    plain(ward)
    ward.directory.chmod(0o777)


@sick("sidecar-permissions", by_shell)
def what_another_user_has_left(ward: Ward) -> None:
    left_wal(ward)
    if IS_ROOT:
        os.chown(ward.directory, SOMEBODY, SOMEBODY)
        os.chown(ward.path, SOMEBODY, SOMEBODY)
        os.chown(ward.beside("-shm"), SOMEBODY, SOMEBODY)
    else:
        ward.beside("-wal").chmod(0o444)


@sick("sidecar-not-a-file", by_shell)
def a_directory_in_the_place_of_the_journal(ward: Ward) -> None:
    ward.run("CREATE TABLE t(a)")
    ward.beside("-journal").mkdir()


@sick("sidecar-not-a-file", by_shell)
def a_link_in_the_place_of_the_wal(ward: Ward) -> None:
    plain(ward)
    ward.beside("-wal").symlink_to(ward.directory / "elsewhere")


@sick("gate-permissions", by_shell)
def a_gate_for_everybody(ward: Ward) -> None:
    plain(ward)
    ward.beside("-gate").touch()
    ward.beside("-gate").chmod(0o666)


@sick("gate-permissions", by_shell)
def a_gate_of_somebody_else(ward: Ward) -> None:
    plain(ward)
    ward.beside("-gate").touch(mode=0o444)
    if IS_ROOT:
        os.chown(ward.path, SOMEBODY, SOMEBODY)
        os.chown(ward.directory, SOMEBODY, SOMEBODY)


@sick("hot-journal", by_shell)
def one_that_was_killed_while_it_wrote(ward: Ward) -> None:
    ward.run("CREATE TABLE t(a)")
    process = ward.start(
        "c = sqlite3.connect(path)\nc.execute('PRAGMA cache_size = 2')\nc.execute('BEGIN')\n"
        "c.executemany('INSERT INTO t VALUES (?)', [('x' * 3000,)] * 100)"
    )
    ward.kill(process)


@sick("stray-wal", by_shell)
def a_backup_in_the_place_of_the_database(ward: Ward) -> None:
    left_wal(ward)
    shutil.copy(ward.saved, ward.path)


# The file system.


def _moved(ward: Ward, finding: Finding) -> Path:
    assert finding.mend.startswith(("Move", "Mount", "Make room"))
    to = ward.directory / "moved.db"
    shutil.copy(ward.path, to)
    return to


@sick("memory-file-system", _moved, needs="shm")
def one_in_memory(ward: Ward) -> None:
    memory = Path("/dev/shm") / f"oxlite-doctor-{os.getpid()}"
    memory.mkdir()
    ward.stack.callback(shutil.rmtree, memory)
    ward.run("CREATE TABLE t(a)", path=memory / "app.db")
    ward.path.symlink_to(memory / "app.db")


# Processes.


READER = (
    "c = sqlite3.connect(path, isolation_level=None)\n"
    "c.execute('BEGIN')\nc.execute('SELECT * FROM t').fetchone()"
)
OURS = READER.replace("c = sqlite3", "from oxlite import sqlite3 as ours\nc = ours")


@sick("old-sqlite", by_shell, needs="old")
def one_that_an_old_sqlite_has_open(ward: Ward) -> None:
    plain(ward)
    ward.start(READER)


@sick("two-sqlites", by_shell)
def one_that_two_sqlites_of_a_process_have_open(ward: Ward) -> None:
    plain(ward)
    ward.start(f"{OURS}\nd = c\n{READER}")


@sick("unknown-sqlite", by_shell)
def one_that_a_strange_program_has_open(ward: Ward) -> None:
    plain(ward)
    # A program without any SQLite.
    with ward.path.open("rb") as file:
        process = subprocess.Popen(["sleep", "60"], stdin=file, text=True)
    ward.stack.callback(_end, process)
    ward.processes.append(process)


@sick("deleted-while-open", by_shell)
def one_that_was_replaced_under_a_program(ward: Ward) -> None:
    plain(ward)
    ward.start(OURS)
    ward.saved.replace(ward.path)


@sick("stopped-process", by_shell)
def one_whose_reader_was_stopped(ward: Ward) -> None:
    plain(ward)
    ward.start(OURS).send_signal(signal.SIGSTOP)


@sick("write-lock-held", by_shell)
def one_whose_writer_does_nothing(ward: Ward) -> None:
    plain(ward)
    ward.start(OURS.replace("'BEGIN'", "'BEGIN IMMEDIATE'"))


@sick("write-lock-held", by_shell)
def one_whose_writer_does_nothing_without_a_wal(ward: Ward) -> None:
    ward.run("CREATE TABLE t(a)")
    ward.start(READER.replace("'BEGIN'", "'BEGIN IMMEDIATE'"))


@sick("locked", by_shell)
def one_that_is_locked(ward: Ward) -> None:
    ward.run("CREATE TABLE t(a)")
    ward.start(READER.replace("'BEGIN'", "'BEGIN EXCLUSIVE'"))


# The WAL.


@sick("wal-large", by_fix)
def a_long_wal(ward: Ward) -> None:
    left_wal(ward, 0)
    process = ward.start(
        "c = sqlite3.connect(path)\nc.execute('PRAGMA wal_autocheckpoint = 0')\n"
        "c.execute('INSERT INTO t(b) VALUES (zeroblob(?))', (66 << 20,))\nc.commit()"
    )
    ward.kill(process)


@sick("wal-left-behind", by_fix)
def a_wal_of_a_killed_program(ward: Ward) -> None:
    left_wal(ward)


@sick("wal-held-back", by_shell)
def a_reader_of_an_old_snapshot(ward: Ward) -> None:
    plain(ward)
    ward.start(OURS)
    # It goes on with the WAL, that the other one keeps.
    with closing(sqlite3.connect(ward.path)) as connection, connection:
        connection.execute("INSERT INTO t(b) VALUES (zeroblob(?))", (6 << 20,))


@sick("wal-corrupt", by_shell)
def a_wal_whose_header_is_damaged(ward: Ward) -> None:
    left_wal(ward)
    patch(ward.beside("-wal"), 8, b"\xff")


# Settings in the file.


@sick("journal-mode", by_sql)
def one_without_a_wal(ward: Ward) -> None:
    ward.run("CREATE TABLE t(a)")


@sick("page-size", by_sql)
def small_pages(ward: Ward) -> None:
    ward.run("PRAGMA page_size = 1024;" + PLAIN)


@sick("auto-vacuum", by_sql)
def one_that_moves_pages(ward: Ward) -> None:
    ward.run("PRAGMA auto_vacuum = full;" + PLAIN)


@sick("text-encoding", by_recovery, needs="shell")
def text_of_two_bytes(ward: Ward) -> None:
    ward.run("PRAGMA encoding = 'UTF-16le';" + PLAIN)


# Integrity.


def _damage(ward: Ward) -> None:
    plain(ward)
    page = ward.path.stat().st_size // 4096 // 2
    patch(ward.path, page * 4096, os.urandom(64))


@sick("corrupt", by_backup)
def a_damaged_page(ward: Ward) -> None:
    _damage(ward)


@sick("corrupt", by_recovery, needs="shell")
def a_damaged_page_without_a_backup(ward: Ward) -> None:
    _damage(ward)


@sick("index-corrupt", by_sql, quick=False)
def an_index_that_misses_rows(ward: Ward) -> None:
    ward.run(
        PLAIN + "CREATE INDEX i ON t(b); CREATE TABLE kept AS SELECT * FROM sqlite_schema"
        " WHERE name = 'i'; PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name ="
        " 'i';"
    )
    ward.run("INSERT INTO t VALUES (1, 'missed'); PRAGMA writable_schema = ON;"
             " INSERT INTO sqlite_schema SELECT * FROM kept;")  # fmt: skip
    ward.run("DROP TABLE kept")


@sick("full-text-index-corrupt", by_sql)
def a_search_that_misses_rows(ward: Ward) -> None:
    ward.run(
        "CREATE VIRTUAL TABLE notes USING fts5(text);"
        "INSERT INTO notes VALUES ('one'), ('two'), ('three');"
        "UPDATE notes_content SET c0 = 'four' WHERE id = 2"
    )


@sick("schema-unreadable", by_sql)
def a_schema_that_is_no_sql(ward: Ward) -> None:
    plain(ward)
    ward.run(
        "CREATE INDEX i ON t(b); PRAGMA writable_schema = ON;"
        "UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON nothing' WHERE name = 'i'"
    )


@sick("constraint-violated", by_sql)
def a_null_where_there_is_none(ward: Ward) -> None:
    ward.run(
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); INSERT INTO t VALUES (1, NULL);"
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET"
        " sql = 'CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT NOT NULL)' WHERE name = 't'"
    )


FAMILY = (
    "CREATE TABLE parent(id INTEGER PRIMARY KEY, code TEXT);"
    "CREATE TABLE child(id INTEGER PRIMARY KEY, parent_id INT REFERENCES parent(id));"
)


@sick("foreign-key-violated", by_sql)
def children_without_a_parent(ward: Ward) -> None:
    ward.run(
        FAMILY
        + "INSERT INTO parent(id) VALUES (1); INSERT INTO child VALUES (1, 1), (2, 7), (3, NULL)"
    )


@sick("foreign-key-violated", by_sql)
def children_without_a_rowid(ward: Ward) -> None:
    ward.run(
        "CREATE TABLE parent(a, b, PRIMARY KEY (a, b)) WITHOUT ROWID;"
        "CREATE TABLE child(a, b, n, PRIMARY KEY (n), FOREIGN KEY (a, b) REFERENCES parent)"
        " WITHOUT ROWID; INSERT INTO child VALUES (1, 2, 3)"
    )


@sick("foreign-key-mismatch", by_sql)
def a_parent_without_a_unique_key(ward: Ward) -> None:
    ward.run(
        FAMILY + "CREATE TABLE other(code TEXT REFERENCES parent(code)); INSERT INTO parent VALUES"
        " (1, 'x'); INSERT INTO other VALUES ('x')"
    )


@sick("foreign-key-parent-missing", by_sql)
def a_parent_that_is_not_there(ward: Ward) -> None:
    ward.run("CREATE TABLE child(id INTEGER PRIMARY KEY, parent_id INT REFERENCES parent(id))")


# Structure.


@sick("foreign-key-without-index", by_sql)
def many_children_without_an_index(ward: Ward) -> None:
    ward.run(FAMILY + ROWS.format(count=2000) + "INSERT INTO child SELECT i, NULL FROM n")


@sick("duplicate-index", by_sql)
def an_index_that_is_there_twice(ward: Ward) -> None:
    ward.run("CREATE TABLE t(a, b); CREATE INDEX one ON t(a, b); CREATE INDEX two ON t(A, b)")


@sick("duplicate-index", by_sql)
def an_index_of_what_is_unique(ward: Ward) -> None:
    ward.run("CREATE TABLE t(a UNIQUE, b); CREATE INDEX one ON t(a)")


@sick("duplicate-index", by_sql)
def an_index_of_the_rowid(ward: Ward) -> None:
    ward.run("CREATE TABLE t(a INTEGER PRIMARY KEY, b); CREATE INDEX one ON t(a)")


@sick("prefix-index", by_sql)
def an_index_that_begins_another(ward: Ward) -> None:
    ward.run("CREATE TABLE t(a, b); CREATE INDEX one ON t(a, b); CREATE INDEX two ON t(a)")


@sick("double-quoted-default", by_sql)
def a_default_in_double_quotes(ward: Ward) -> None:
    ward.run("""CREATE TABLE t(a TEXT DEFAULT "it's new", b TEXT DEFAULT 'new')""")


@sick("autoincrement-near-end", by_sql)
def numbers_that_are_used_up(ward: Ward) -> None:
    ward.run(
        "CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT, b);"
        f"INSERT INTO t VALUES (1, 1), ({2**63 - 2}, 2), ({2**63 - 1}, 2)"
    )


@sick("rowid-near-end", by_sql)
def a_row_with_the_last_number(ward: Ward) -> None:
    ward.run(f"CREATE TABLE t(a); INSERT INTO t(rowid, a) VALUES ({2**63 - 1}, 1)")


# Statistics and space.


MANY = "CREATE TABLE t(a INTEGER PRIMARY KEY, b); CREATE INDEX i ON t(b);"


@sick("statistics-missing", by_fix)
def many_rows_without_statistics(ward: Ward) -> None:
    ward.run(MANY + ROWS.format(count=20000) + "INSERT INTO t SELECT i, i % 100 FROM n")


@sick("statistics-stale", by_fix)
def statistics_of_when_it_was_small(ward: Ward) -> None:
    ward.run(MANY + "INSERT INTO t(b) VALUES (1), (2); ANALYZE;")
    ward.run(ROWS.format(count=20000) + "INSERT INTO t SELECT i + 10, i % 100 FROM n")


@sick("free-pages", by_sql)
def what_was_deleted(ward: Ward) -> None:
    ward.run(
        "CREATE TABLE t(a); "
        + ROWS.format(count=12)
        + "INSERT INTO t SELECT zeroblob(1000000) FROM n; DELETE FROM t WHERE rowid > 1"
    )


@sick("half-empty-pages", by_sql, quick=False)
def pages_of_which_most_is_empty(ward: Ward) -> None:
    ward.run(
        "PRAGMA synchronous = OFF; CREATE TABLE t(a INTEGER PRIMARY KEY, b); "
        + ROWS.format(count=20000)
        + "INSERT INTO t SELECT i, zeroblob(800) FROM n; DELETE FROM t WHERE a % 5 IN (1, 2, 3)"
    )
