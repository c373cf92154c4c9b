"""Files that cannot be opened, read or written: what is raised, and that nothing else is harmed.

Tests of permissions run without root's rights, in a child process. Every way to run out of space is
real: a full file system where one can be mounted, else SQLite's own page limit and the kernel's
limit on the size of a file.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oxlite import sqlite3


@pytest.fixture
def database(path: Path) -> Path:
    """A file with the table ``t(a)`` of 1000 rows."""
    make(path)
    return path


def make(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t(a)")
    connection.executemany("INSERT INTO t VALUES (?)", ((f"row {n}" * 10,) for n in range(1000)))
    connection.commit()
    connection.close()


@pytest.mark.parametrize("kind", [str, Path, os.fsencode], ids=["str", "Path", "bytes"])
def test_a_path_of_any_kind(path: Path, kind: Callable[[Path], object]) -> None:
    connection = sqlite3.connect(kind(path))
    connection.execute("CREATE TABLE t(a)")
    connection.close()
    assert path.read_bytes()[:16] == b"SQLite format 3\0"


def test_a_path_by_protocol(path: Path) -> None:
    class Bytes:
        def __fspath__(self) -> bytes:
            return os.fsencode(path)

    sqlite3.connect(Bytes()).execute("CREATE TABLE t(a)")
    assert path.exists()


@pytest.mark.parametrize(
    "name",
    ["with space.db", "é☃𐍈.db", "-dash", "a?b#c%20d.db", "quo'te\".db", "new\nline", "a" * 200],
    ids=ascii,
)
def test_a_name_of_any_characters(tmp_path: Path, name: str) -> None:
    connection = sqlite3.connect(tmp_path / name)
    connection.execute("CREATE TABLE t(a)")
    connection.close()
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_a_name_that_is_no_utf8(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff\xfe.db"
    try:
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
    except OSError:
        pytest.skip("this file system takes no such names")
    for database in (name, os.fsdecode(name)):
        connection = sqlite3.connect(database)
        connection.execute("CREATE TABLE IF NOT EXISTS t(a)")
        connection.close()
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff\xfe.db"]  # noqa: PTH208 - bytes


def test_a_relative_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    connection = sqlite3.connect("relative.db")
    monkeypatch.chdir("/")
    connection.execute("CREATE TABLE t(a)")
    connection.close()
    assert (tmp_path / "relative.db").exists()


@pytest.mark.parametrize("name", ["a\0b", b"a\0b", "\0", b":memory:\0"])
def test_a_name_with_a_null_character(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="null"):
        sqlite3.connect(name)


@pytest.mark.parametrize(
    "name", [None, 1, 1.5, [], object()], ids=lambda value: repr(value).partition(" at 0x")[0]
)
def test_a_name_of_the_wrong_type(name: object) -> None:
    with pytest.raises(TypeError):
        sqlite3.connect(name)


def test_a_name_that_cannot_be_encoded() -> None:
    with pytest.raises(UnicodeEncodeError):
        sqlite3.connect("\ud800")


@pytest.mark.parametrize("name", ["", ":memory:", b":memory:"])
def test_a_database_without_a_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    connection = sqlite3.connect(name)
    connection.execute("CREATE TABLE t(a)")
    connection.close()
    assert list(tmp_path.iterdir()) == []


def test_a_colon_name_without_uri_is_plain_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "file:a.db?mode=ro&nolock=1"
    connection = sqlite3.connect(name)
    connection.execute("CREATE TABLE t(a)")
    connection.execute("ATTACH 'file:b.db?mode=memory' AS b")
    connection.execute("CREATE TABLE b.t(a)")
    connection.close()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [name, "file:b.db?mode=memory"]


def test_uris(database: Path, path: Path) -> None:
    reader = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    assert reader.execute("SELECT count(*) FROM t").fetchone() == (1000,)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM t")
    reader.close()
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        sqlite3.connect(f"file:{path}.missing?mode=rw", uri=True)
    one = sqlite3.connect("file:shared?mode=memory&cache=shared", uri=True)
    two = sqlite3.connect("file:shared?mode=memory&cache=shared", uri=True)
    one.execute("CREATE TABLE t(a)")
    assert two.execute("SELECT count(*) FROM t").fetchone() == (0,)
    one.close()
    two.close()


def test_the_drop_in_leaves_locking_parameters_alone(database: Path) -> None:
    """What the production profiles refuse, the standard library accepts."""
    for parameter in ("nolock=1", "immutable=1"):
        connection = sqlite3.connect(f"file:{database}?{parameter}", uri=True)
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (1000,)
        connection.close()


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="unable to open database file") as caught:
        sqlite3.connect(tmp_path)
    assert caught.value.sqlite_errorname.startswith("SQLITE_CANTOPEN")
    assert str(tmp_path) in str(caught.value)
    assert "directory" in str(caught.value)


def test_a_missing_parent(tmp_path: Path) -> None:
    parent = tmp_path / "missing"
    with pytest.raises(sqlite3.OperationalError, match="unable to open database file") as caught:
        sqlite3.connect(parent / "x.db")
    assert caught.value.sqlite_errorname.startswith("SQLITE_CANTOPEN")
    assert f"the directory '{parent}' does not exist" in str(caught.value)
    assert not parent.exists()


def test_a_parent_that_is_a_file(database: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="unable to open database file") as caught:
        sqlite3.connect(database / "x.db")
    assert str(database) in str(caught.value)


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    for name in ("x" * 300, "/".join(["x" * 100] * 100)):
        with pytest.raises(sqlite3.OperationalError, match="unable to open database file"):
            sqlite3.connect(tmp_path / name)


def test_a_dangling_symbolic_link_and_a_loop(tmp_path: Path) -> None:
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "missing" / "target")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for name in (dangling, loop):
        with pytest.raises(sqlite3.OperationalError, match="unable to open database file"):
            sqlite3.connect(name).execute("CREATE TABLE t(a)")


_PRINT_THE_ERROR = """
def attempt(function):
    try:
        return function()
    except sqlite3.Error as error:
        print(type(error).__name__, getattr(error, "sqlite_errorname", None), error, sep="|")
"""


def test_a_file_one_may_not_read(as_nobody: Callable[..., str], open_directory: Path) -> None:
    file = open_directory / "x.db"
    make(file)
    file.chmod(0)
    line = as_nobody(
        _PRINT_THE_ERROR
        + """
attempt(lambda: sqlite3.connect(sys.argv[1]).execute("SELECT * FROM t"))
attempt(lambda: oxlite.connect(sys.argv[1]))
""",
        file,
    ).splitlines()
    assert (
        line
        == [
            "OperationalError|SQLITE_CANTOPEN|unable to open database file: "
            f"no permission to read '{file}'"
        ]
        * 2
    )


def test_a_directory_one_may_not_write(as_nobody: Callable[..., str], open_directory: Path) -> None:
    file = open_directory / "x.db"
    line = as_nobody(
        _PRINT_THE_ERROR + "attempt(lambda: sqlite3.connect(sys.argv[1]))", file
    ).strip()
    assert line == (
        f"OperationalError|SQLITE_CANTOPEN|unable to open database file: '{file}' does not exist "
        f"and there is no permission to create it in '{open_directory}'"
    )
    assert not file.exists()


def test_a_directory_one_may_not_enter(as_nobody: Callable[..., str], open_directory: Path) -> None:
    """Whether the file exists cannot be known, so the message must not say that it does not."""
    closed = open_directory / "closed"
    closed.mkdir()
    make(closed / "x.db")
    closed.chmod(0)
    line = as_nobody(
        _PRINT_THE_ERROR + "attempt(lambda: sqlite3.connect(sys.argv[1]))", closed / "x.db"
    ).strip()
    closed.chmod(0o700)
    assert line.startswith("OperationalError|SQLITE_CANTOPEN|unable to open database file: ")
    assert str(closed) in line
    assert "ermission" in line
    assert "does not exist" not in line


def test_a_file_one_may_only_read(as_nobody: Callable[..., str], open_directory: Path) -> None:
    file = open_directory / "x.db"
    make(file)
    file.chmod(0o444)
    lines = as_nobody(
        _PRINT_THE_ERROR
        + """
for open in (sqlite3.connect, oxlite.connect):
    connection = open(sys.argv[1])
    print(connection.execute("SELECT count(*) FROM t").fetchone())
    attempt(lambda: connection.execute("DELETE FROM t"))
    attempt(connection.commit)
    print(connection.execute("SELECT count(*) FROM t").fetchone())
    connection.close()
""",
        file,
    ).splitlines()
    refused = "OperationalError|SQLITE_READONLY|attempt to write a readonly database"
    assert lines == ["(1000,)", refused, "(1000,)"] * 2
    assert sorted(entry.name for entry in open_directory.iterdir()) == ["x.db"]


@pytest.mark.parametrize("content", [b"no database at all, " * 100, b"SQLite format 3\0" * 200])
def test_a_file_that_is_no_database(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.DatabaseError, match="not a database") as caught:
        connection.execute("SELECT * FROM sqlite_schema")
    assert type(caught.value) is sqlite3.DatabaseError
    assert caught.value.sqlite_errorname == "SQLITE_NOTADB"
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        connection.execute("CREATE TABLE t(a)")
    connection.close()
    assert path.read_bytes() == content


@pytest.mark.parametrize("size", [0, 1, 15, 99, 511])
def test_a_file_shorter_than_a_header(path: Path, size: int) -> None:
    """An empty file is an empty database; a few bytes of something are left alone."""
    path.write_bytes(b"x" * size)
    connection = sqlite3.connect(path)
    try:
        connection.execute("SELECT * FROM sqlite_schema")
    except sqlite3.DatabaseError as error:
        assert error.sqlite_errorname == "SQLITE_NOTADB"  # noqa: PT017
    connection.close()
    assert path.read_bytes() == b"x" * size


@pytest.mark.parametrize("damage", ["pages", "cut", "schema"])
def test_a_corrupt_database(database: Path, damage: str) -> None:
    content = bytearray(database.read_bytes())
    match damage:
        case "pages":
            content[4096:] = b"\xa5" * (len(content) - 4096)
        case "cut":
            del content[8192:]
        case "schema":
            content[100:4096] = b"\xff" * 3996
    database.write_bytes(content)
    connection = sqlite3.connect(database)
    with pytest.raises(sqlite3.DatabaseError, match="malformed") as caught:
        connection.execute("SELECT count(a || 'x') FROM t").fetchall()
    assert type(caught.value) is sqlite3.DatabaseError
    assert caught.value.sqlite_errorname.startswith("SQLITE_CORRUPT")
    connection.close()


def test_a_database_that_is_replaced_while_open(database: Path, tmp_path: Path) -> None:
    """Another file of that name is not ours: what is open stays open."""
    connection = sqlite3.connect(database)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (1000,)
    other = tmp_path / "other.db"
    make(other)
    other.replace(database)
    try:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (1000,)
    except sqlite3.OperationalError as error:
        assert error.sqlite_errorname.startswith("SQLITE_READONLY")  # noqa: PT017
    connection.close()


FILL = "INSERT INTO t SELECT randomblob(4000) FROM t"


def check_that_nothing_was_lost(connection: sqlite3.Connection) -> None:
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (1000,)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_database_at_its_page_limit(database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA max_page_count = 50")
    with pytest.raises(sqlite3.OperationalError, match="database or disk is full") as caught:
        connection.execute(FILL)
    assert caught.value.sqlite_errorname == "SQLITE_FULL"
    check_that_nothing_was_lost(connection)
    connection.execute("PRAGMA max_page_count = 100000")
    connection.execute(FILL)
    connection.commit()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (2000,)
    connection.close()


@pytest.mark.parametrize("profile", ["stock", "web", "durable", "cache"])
def test_a_file_at_the_kernels_size_limit(
    child: Callable[..., str], database: Path, profile: str
) -> None:
    """The kernel refuses the write (and would kill a process that does not ignore its signal)."""
    printed = child(
        _PRINT_THE_ERROR
        + """
import resource, signal, sys
import oxlite
from oxlite import sqlite3
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
connection = oxlite.connect(sys.argv[1], profile=sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))

def fill():
    connection.execute("INSERT INTO t SELECT randomblob(4000) FROM t")
    connection.commit()

attempt(fill)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
connection.rollback()
assert connection.execute("SELECT count(*) FROM t").fetchone() == (1000,)
assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
fill()
connection.close()
""",
        database,
        profile,
    )
    error, name, _ = printed.split("|")
    # A write that fails in the middle of COMMIT, but for want of room, leaves open what is there.
    is_open = profile != "stock" and name == "SQLITE_IOERR_WRITE"
    assert error == ("CommitOutcomeUnknown" if is_open else "OperationalError")
    assert name in {"SQLITE_IOERR_WRITE", "SQLITE_FULL"}
    check = sqlite3.connect(database)
    assert check.execute("SELECT count(*) FROM t").fetchone() == (2000,)
    check.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    place = tmp_path / "small"
    place.mkdir()
    mount = shutil.which("mount")
    if os.geteuid() != 0 or mount is None:
        pytest.skip("only root can mount a file system")
    mounted = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize("journal_mode", ["DELETE", "WAL", "TRUNCATE", "PERSIST"])
def test_a_full_disk(small_disk: Path, journal_mode: str) -> None:
    file = small_disk / "x.db"
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA journal_mode = {journal_mode}")
    connection.execute("CREATE TABLE t(a)")
    connection.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(1000)))
    connection.commit()
    with pytest.raises(sqlite3.OperationalError, match="disk is full") as caught:
        connection.execute(FILL)
    assert caught.value.sqlite_errorname == "SQLITE_FULL"
    check_that_nothing_was_lost(connection)
    connection.execute("INSERT INTO t VALUES ('there is room for this')")
    connection.commit()
    connection.close()
    again = sqlite3.connect(file)
    assert again.execute("SELECT count(*) FROM t").fetchone() == (1001,)
    again.close()


def test_opening_on_a_full_disk(small_disk: Path) -> None:
    with pytest.raises(OSError, match="space"):
        (small_disk / "ballast").write_bytes(bytes(2_000_000))
    connection = sqlite3.connect(small_disk / "x.db")
    with pytest.raises(sqlite3.OperationalError) as caught:
        connection.execute("CREATE TABLE t(a)")
    assert caught.value.sqlite_errorname in {"SQLITE_FULL", "SQLITE_IOERR_WRITE"}
    connection.close()
