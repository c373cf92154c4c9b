"""Prepared statements that are kept: shared by nobody, current with the schema, holding no lock."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from oxlite import sqlite3

SIZES = [0, 1, 2, 128]


@pytest.fixture(params=SIZES, ids=lambda size: f"{size} statements kept")
def table(request: pytest.FixtureRequest, path: Path) -> Iterator[sqlite3.Connection]:
    """A connection with the table ``t(a)`` of the rows 1, 2, 3, for each size of the cache."""
    connection = sqlite3.connect(path, timeout=0, cached_statements=request.param)
    connection.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3)")
    yield connection
    connection.close()


@pytest.fixture
def other(path: Path, table: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Another connection to the same file."""
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    yield connection
    connection.close()


def names(cursor: sqlite3.Cursor) -> list[str]:
    return [column[0] for column in cursor.description or ()]


@pytest.mark.parametrize("size", [-1, 0, 1, 2**31 - 1])
def test_any_size_of_cache_will_do(size: int) -> None:
    connection = sqlite3.connect(":memory:", cached_statements=size)
    for n in range(10):
        assert connection.execute(f"SELECT {n % 3}").fetchone() == (n % 3,)
    connection.close()


def test_a_size_must_be_a_number() -> None:
    for size in ("1", 1.5, None):
        with pytest.raises(TypeError):
            sqlite3.connect(":memory:", cached_statements=size)


def test_the_same_sql_on_two_live_cursors(table: sqlite3.Connection) -> None:
    sql = "SELECT a FROM t WHERE a >= ? ORDER BY a"
    cursors = [table.execute(sql, (n,)) for n in (1, 2, 3, 1)]
    assert [cursor.fetchone() for cursor in cursors] == [(1,), (2,), (3,), (1,)]
    assert [cursor.fetchall() for cursor in cursors] == [[(2,), (3,)], [(3,)], [], [(2,), (3,)]]
    assert table.execute(sql, (2,)).fetchall() == [(2,), (3,)]


def test_the_same_sql_again_on_one_cursor(table: sqlite3.Connection) -> None:
    cursor = table.cursor()
    for start in (1, 2, 3, 4, 1):
        cursor.execute("SELECT a FROM t WHERE a >= ?", (start,))
        cursor.fetchone()
    assert cursor.fetchall() == [(2,), (3,)]


def test_more_statements_than_are_kept(table: sqlite3.Connection) -> None:
    for _ in range(2):
        for n in range(300):
            assert table.execute(f"SELECT {n}, ?", (n,)).fetchone() == (n, n)


def test_more_live_cursors_than_statements_are_kept(table: sqlite3.Connection) -> None:
    cursors = [table.execute(f"SELECT {n} FROM t") for n in range(200)]
    for n, cursor in enumerate(cursors):
        assert cursor.fetchall() == [(n,)] * 3


def test_sql_that_differs_in_letters_only_is_another_statement(table: sqlite3.Connection) -> None:
    assert names(table.execute("SELECT a AS x FROM t")) == ["x"]
    assert names(table.execute("SELECT a AS X FROM t")) == ["X"]
    assert table.execute("SELECT 'x'").fetchone() == ("x",)
    assert table.execute("SELECT 'X'").fetchone() == ("X",)


def test_a_new_column_is_seen(table: sqlite3.Connection) -> None:
    sql = "SELECT * FROM t WHERE a = 1"
    cursor = table.execute(sql)
    assert (names(cursor), cursor.fetchall()) == (["a"], [(1,)])
    table.execute("ALTER TABLE t ADD COLUMN b DEFAULT 'new'")
    cursor = table.execute(sql)
    assert (names(cursor), cursor.fetchall()) == (["a", "b"], [(1, "new")])
    table.execute("ALTER TABLE t RENAME COLUMN b TO c")
    cursor.execute(sql)
    assert (names(cursor), cursor.fetchall()) == (["a", "c"], [(1, "new")])
    table.execute("ALTER TABLE t DROP COLUMN c")
    cursor.execute(sql)
    assert (names(cursor), cursor.fetchall()) == (["a"], [(1,)])


def test_a_new_column_from_another_connection_is_seen(
    table: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    table.row_factory = sqlite3.Row
    sql = "SELECT * FROM t WHERE a = 1"
    assert table.execute(sql).fetchone().keys() == ["a"]
    other.execute("ALTER TABLE t ADD COLUMN b DEFAULT 'new'")
    assert dict(table.execute(sql).fetchone()) == {"a": 1, "b": "new"}
    other.execute("DROP TABLE t")
    other.execute("CREATE TABLE t(x, a, y)")
    cursor = table.execute(sql)
    assert (names(cursor), cursor.fetchall()) == (["x", "a", "y"], [])


def test_a_new_column_is_seen_when_there_are_no_rows(table: sqlite3.Connection) -> None:
    sql = "SELECT * FROM t WHERE 0"
    assert names(table.execute(sql)) == ["a"]
    table.execute("ALTER TABLE t ADD COLUMN b")
    assert names(table.execute(sql)) == ["a", "b"]


def test_a_statement_whose_table_is_gone_fails_and_recovers(table: sqlite3.Connection) -> None:
    sql = "INSERT INTO t VALUES (?)"
    table.execute(sql, (4,))
    table.commit()
    table.execute("DROP TABLE t")
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        table.execute(sql, (5,))
    table.rollback()
    table.execute("CREATE TABLE t(a)")
    assert table.execute(sql, (6,)).rowcount == 1
    assert table.execute("SELECT a FROM t").fetchall() == [(6,)]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("synchronous", (0, 2)),
        ("foreign_keys", (1, 0)),
        ("query_only", (1, 0)),
        ("cache_size", (100, 200)),
        ("user_version", (1, 2)),
    ],
)
def test_a_pragma_that_is_set_again_takes_effect_again(
    table: sqlite3.Connection, name: str, values: tuple[int, int]
) -> None:
    """SQLite carries some pragmas out while preparing them; a kept one must not do nothing."""
    for value in values * 3:
        table.execute(f"PRAGMA {name} = {value}")
        assert table.execute(f"PRAGMA {name}").fetchone() == (value,)


def test_a_kept_statement_of_a_detached_database(table: sqlite3.Connection, tmp_path: Path) -> None:
    table.isolation_level = None
    for n in range(3):
        table.execute("ATTACH ? AS extra", (str(tmp_path / f"extra{n}.db"),))
        table.execute("CREATE TABLE extra.u(a)")
        table.execute("INSERT INTO extra.u VALUES (?)", (n,))
        assert table.execute("SELECT a FROM extra.u").fetchall() == [(n,)]
        table.execute("DETACH extra")


def test_a_statement_that_failed_is_as_good_as_new(table: sqlite3.Connection) -> None:
    sql = "SELECT abs(?)"
    for _ in range(3):
        with pytest.raises(sqlite3.OperationalError, match="integer overflow"):
            table.execute(sql, (-(2**63),))
        assert table.execute(sql, (-5,)).fetchone() == (5,)


def test_rows_that_were_all_read_hold_no_lock(
    table: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    one_row = table.execute("SELECT a FROM t WHERE a = 1")
    assert one_row.fetchone() == (1,)  # not asked whether there is another
    three_rows = table.execute("SELECT a FROM t")
    assert three_rows.fetchmany(3) == [(1,), (2,), (3,)]
    no_rows = table.execute("SELECT a FROM t WHERE 0")
    other.execute("BEGIN EXCLUSIVE")
    other.execute("DROP TABLE t")
    other.execute("COMMIT")
    assert [cursor.fetchone() for cursor in (one_row, three_rows, no_rows)] == [None, None, None]


def test_unread_rows_hold_a_read_lock_and_no_more(
    table: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    cursor = table.execute("SELECT a FROM t")
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO t VALUES (4)")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("COMMIT")
    assert cursor.fetchall() == [(1,), (2,), (3,)]
    other.execute("COMMIT")
    assert other.execute("SELECT count(*) FROM t").fetchone() == (4,)


@pytest.mark.parametrize("how", ["close", "drop", "execute", "fail"])
def test_unread_rows_are_let_go(
    table: sqlite3.Connection, other: sqlite3.Connection, how: str
) -> None:
    cursor = table.execute("SELECT a FROM t")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("DROP TABLE t")
    match how:
        case "close":
            cursor.close()
        case "drop":
            del cursor
        case "execute":
            cursor.execute("SELECT 1")
        case "fail":
            with pytest.raises(sqlite3.OperationalError):
                cursor.execute("nonsense")
    other.execute("DROP TABLE t")


def test_a_read_that_fails_half_way_holds_no_lock(
    table: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    table.execute("INSERT INTO t VALUES (-9223372036854775808)")
    table.commit()
    cursor = table.execute("SELECT abs(a) FROM t")
    with pytest.raises(sqlite3.OperationalError, match="integer overflow"):
        cursor.fetchall()
    other.execute("DROP TABLE t")


def test_a_table_cannot_be_dropped_under_its_own_connections_rows(
    table: sqlite3.Connection,
) -> None:
    cursor = table.execute("SELECT a FROM t")
    with pytest.raises(sqlite3.OperationalError, match="locked") as caught:
        table.execute("DROP TABLE t")
    assert caught.value.sqlite_errorname == "SQLITE_LOCKED"
    cursor.fetchall()
    table.execute("DROP TABLE t")


def test_large_bindings_are_not_kept(connection: sqlite3.Connection) -> None:
    """A kept statement may go on holding what was bound; it must not be hundreds of megabytes."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("this system does not tell a process how much memory it has")

    def resident_bytes() -> int:
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    blob = bytes(10_000_000)
    before = resident_bytes()
    for n in range(40):
        assert connection.execute(f"SELECT {n}, length(?)", (blob,)).fetchone() == (n, len(blob))
    assert resident_bytes() - before < 200_000_000
