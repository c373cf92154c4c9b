"""SQL that cannot be executed as one statement, or at all: empty, two, cut off, too long."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from oxlite import sqlite3


@pytest.mark.parametrize(
    "sql",
    [
        "",
        " ",
        "\n\t\r\f",
        ";",
        " ; ;; ",
        "-- a comment",
        "/* a comment */",
        "/* never closed",
        "--",
    ],
    ids=ascii,
)
def test_sql_of_nothing_does_nothing(connection: sqlite3.Connection, sql: str) -> None:
    cursor = connection.execute("SELECT 1 UNION SELECT 2")
    assert cursor.execute(sql) is cursor
    assert (cursor.description, cursor.rowcount) == (None, -1)
    assert cursor.fetchall() == []
    assert not connection.in_transaction


@pytest.mark.parametrize(
    "tail",
    [
        "",
        ";",
        ";;",
        "; ; ",
        "; -- comment",
        "; /* comment */ ;",
        ";\n-- a\n-- b\n",
        "; /* open",
        "\n",
    ],
    ids=ascii,
)
def test_what_may_follow_a_statement(connection: sqlite3.Connection, tail: str) -> None:
    assert connection.execute(f"SELECT 1{tail}").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "tail",
    [
        "SELECT 2",
        ";SELECT 2",
        "/* comment */ SELECT 2",
        "-- comment\nSELECT 2",
        "DROP TABLE t",
        "nonsense",
        "SELECT * FROM gone",
        "SELECT 'not closed",
        "1",
        ")",
        "\N{SNOWMAN}",
    ],
)
def test_two_statements_are_refused_and_neither_is_executed(
    connection: sqlite3.Connection, tail: str
) -> None:
    connection.executescript("CREATE TABLE t(a)")
    with pytest.raises(
        sqlite3.ProgrammingError, match=r"^You can only execute one statement at a time\.$"
    ):
        connection.execute(f"INSERT INTO t VALUES (1); {tail}")
    with pytest.raises(sqlite3.ProgrammingError, match="one statement at a time"):
        connection.executemany(f"INSERT INTO t VALUES (?); {tail}", [(1,)])
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
    assert not connection.in_transaction


def test_an_error_in_the_first_of_two_statements(connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError, match="syntax error"):
        connection.execute("nonsense; SELECT 1")


@pytest.mark.parametrize(
    "sql", ["\0", "SELECT 1\0", "SELECT 1;\0", "SELECT '\0'", "\0SELECT 1", "SELECT 1; \0 nonsense"]
)
def test_a_null_character_is_refused(connection: sqlite3.Connection, sql: str) -> None:
    with pytest.raises(sqlite3.ProgrammingError, match="null character"):
        connection.execute(sql)
    with pytest.raises(sqlite3.ProgrammingError, match="null character"):
        connection.executemany(sql, [])


@pytest.mark.parametrize(
    "sql",
    [None, 1, b"SELECT 1", ["SELECT 1"], object()],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
def test_sql_that_is_no_string(connection: sqlite3.Connection, sql: object) -> None:
    for run in (connection.execute, connection.cursor().execute):
        with pytest.raises(TypeError, match="must be str"):
            run(sql)
    for run_many in (connection.executemany, connection.cursor().executemany):
        with pytest.raises(TypeError, match="must be str"):
            run_many(sql, [])


def test_a_subclass_of_str_is_sql(connection: sqlite3.Connection) -> None:
    class Sql(str):
        """SQL text with a type of its own."""

        __slots__ = ()

    assert connection.execute(Sql("SELECT 1")).fetchone() == (1,)
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_sql_with_an_unpaired_surrogate(connection: sqlite3.Connection) -> None:
    with pytest.raises(UnicodeEncodeError):
        connection.execute("SELECT '\ud800'")
    with pytest.raises(UnicodeEncodeError):
        connection.executemany("DELETE FROM \udfff", [])


def test_sql_in_any_script(connection: sqlite3.Connection) -> None:
    connection.execute('CREATE TABLE "tablé ☃𐍈"("ключ")')
    connection.execute('INSERT INTO "tablé ☃𐍈" VALUES (?)', ("значение",))
    cursor = connection.execute('SELECT * FROM "tablé ☃𐍈"')
    assert cursor.description[0][0] == "ключ"
    assert cursor.fetchall() == [("значение",)]


def test_arguments_are_checked(connection: sqlite3.Connection) -> None:
    for function in (
        connection.execute,
        connection.executemany,
        connection.executescript,
        connection.cursor().execute,
        connection.cursor().executemany,
        connection.cursor().executescript,
    ):
        with pytest.raises(TypeError):
            function()
        with pytest.raises(TypeError):
            function("SELECT 1", (), ())
    with pytest.raises(TypeError):
        connection.execute(sql="SELECT 1")


def test_deep_nesting_is_an_error_not_a_crash(child: Callable[..., str]) -> None:
    child(
        """
from oxlite import sqlite3
connection = sqlite3.connect(":memory:")
for sql in (
    "SELECT " + "(" * 100_000 + "1" + ")" * 100_000,
    "SELECT " + "-" * 0 + "NOT " * 100_000 + "1",
    "SELECT 1" + " + 1" * 100_000,
    "SELECT 1" + " UNION ALL SELECT 1" * 100_000,
    "SELECT " + "abs(" * 100_000 + "1" + ")" * 100_000,
    "SELECT " + ", ".join("1" for _ in range(100_000)),
):
    try:
        connection.execute(sql)
    except sqlite3.OperationalError as error:
        print(error)
    else:
        raise SystemExit(f"executed: {sql[:40]}")
"""
    )


def test_sql_longer_than_the_limit_is_refused(child: Callable[..., str]) -> None:
    """The limit is a thousand million bytes; a child process, for it takes that much memory."""
    memory = Path("/proc/meminfo")
    if memory.exists():
        available = re.search(r"MemAvailable: +(\d+) kB", memory.read_text())
        if available is not None and int(available[1]) < 3_000_000:
            pytest.skip("there is too little memory for a statement of this length")
    child(
        """
from oxlite import sqlite3
connection = sqlite3.connect(":memory:")
sql = " " * 1_000_000_001
for run in (
    lambda: connection.execute(sql),
    lambda: connection.executemany(sql, []),
    lambda: connection.executescript(sql),
):
    try:
        run()
    except sqlite3.DataError as error:
        assert "too l" in str(error), error  # too large, too long
    else:
        raise SystemExit("executed")
assert connection.execute("SELECT 1").fetchone() == (1,)
""",
        seconds=60,
    )


def test_a_long_statement_within_the_limit(connection: sqlite3.Connection) -> None:
    text = "x" * 3_000_000
    assert connection.execute(f"SELECT '{text}'").fetchone() == (text,)
    assert connection.execute(f"SELECT 1 /* {text} */").fetchone() == (1,)
