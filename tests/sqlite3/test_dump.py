"""The SQL text of a database: equal to the standard library's, and executable where that is not."""

import sqlite3 as standard
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import oxlite
from oxlite import sqlite3
from oxlite.sqlite3.dump import _iterdump

SCHEMAS = {
    "nothing": "",
    "tables by name": "CREATE TABLE b(x); CREATE TABLE A(x); CREATE TABLE _(x); CREATE TABLE a1(x)",
    "values": """
        CREATE TABLE t(a TEXT, b BLOB, c REAL, d INTEGER, e);
        INSERT INTO t VALUES ('it''s', x'00ff', 1.5, 7, NULL), ('', x'', -1e300, -9, 'é☃𐍈'),
            ('line' || char(13, 10) || 'line', zeroblob(3), 0.0, 9223372036854775807, x'27')
    """,
    "names": """
        CREATE TABLE "in""dex"("sel'ect", [a b], `c``d`, "x [date]");
        INSERT INTO "in""dex" VALUES (1, 2, 3, 4);
        CREATE TABLE "tablé ☃"("☃"); INSERT INTO "tablé ☃" VALUES ('☃');
        CREATE TABLE sqliteish(a); CREATE TABLE "Sqlite x"(a)
    """,
    "definitions": """
        create  table t(a,
          b unique) -- after
        ; create view z as select 1; create index i2 on t(a);
        create trigger r after insert on t begin select 1; select 2; end;
        create view b as select 2; create unique index i1 on t(b) where b > 1
    """,
    "kinds of tables": """
        CREATE TABLE w(a, b, PRIMARY KEY (b)) WITHOUT ROWID; INSERT INTO w VALUES (1, 2), (3, 1);
        CREATE TABLE s(a INTEGER, b ANY) STRICT; INSERT INTO s VALUES (1, '2');
        CREATE TABLE g(a, b AS (a * 2), c AS (a * 3) STORED, d); INSERT INTO g(a, d) VALUES (1, 2)
    """,
    "autoincrement": """
        CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES (7), (3);
        CREATE TABLE u(a INTEGER PRIMARY KEY AUTOINCREMENT); DELETE FROM t WHERE a = 7
    """,
    "autoincrement, never used": "CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT)",
    "autoincrement, forgotten": """
        CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES (7);
        DELETE FROM sqlite_sequence
    """,
    "statistics": """
        CREATE TABLE t(a); CREATE INDEX i ON t(a); INSERT INTO t VALUES (1), (2); ANALYZE
    """,
    "a virtual table": """CREATE VIRTUAL TABLE "f""t" USING fts4(a, "b'c"); CREATE TABLE g(a)""",
    "temporary objects": "CREATE TABLE t(a); CREATE TEMP TABLE u(a); INSERT INTO temp.u VALUES (1)",
    "UTF-16": "PRAGMA encoding = 'UTF-16'; CREATE TABLE é(☃); INSERT INTO é VALUES ('𐍈')",
    "foreign keys": """
        PRAGMA foreign_keys = ON; CREATE TABLE p(a PRIMARY KEY); INSERT INTO p VALUES (1);
        CREATE TABLE c(a REFERENCES p); INSERT INTO c VALUES (1), (NULL)
    """,
}


@pytest.fixture(params=SCHEMAS.values(), ids=SCHEMAS.keys())
def schema(request: pytest.FixtureRequest) -> str:
    """A script that fills a database."""
    return str(request.param)


@pytest.fixture
def dumped() -> Iterator[Callable[..., list[str]]]:
    """Fills a database in memory and dumps it."""
    connections: list[sqlite3.Connection] = []

    def dump(script: str, **options: object) -> list[str]:
        connection = sqlite3.connect(":memory:")
        connections.append(connection)
        connection.executescript(script)
        return list(_iterdump(connection, **options))

    yield dump
    for connection in connections:
        connection.close()


@pytest.fixture
def loaded() -> Iterator[Callable[[list[str]], sqlite3.Connection]]:
    """Executes a dump in a new database, as one script."""
    connections: list[sqlite3.Connection] = []

    def load(lines: list[str]) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:")
        connections.append(connection)
        connection.executescript("\n".join(lines))
        return connection

    yield load
    for connection in connections:
        connection.close()


def of_the_standard_library(script: str, **options: object) -> list[str]:
    connection = standard.connect(":memory:")
    connection.executescript(script)
    lines = list(connection.iterdump(**options))
    connection.close()
    # With its OFF the virtual tables are there only when the database is next opened.
    return [line.replace("writable_schema=OFF", "writable_schema=RESET") for line in lines]


def test_the_same_as_the_standard_librarys(dumped: Callable[..., list[str]], schema: str) -> None:
    if "STRICT" in schema and standard.sqlite_version_info < (3, 37):
        pytest.skip("the standard library's SQLite has no STRICT tables")
    assert dumped(schema) == of_the_standard_library(schema)


def test_a_dump_makes_what_was_dumped(
    dumped: Callable[..., list[str]],
    loaded: Callable[[list[str]], sqlite3.Connection],
    schema: str,
) -> None:
    lines = dumped(schema)
    copy = loaded(lines)
    assert list(_iterdump(copy)) == lines
    assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.skipif(sys.version_info < (3, 13), reason="the standard library has no filter yet")
@pytest.mark.parametrize("pattern", ["t", "T", "t%", "_", "%", "", "none", "sqlite%", None, 1])
def test_the_same_filter_as_the_standard_librarys(
    dumped: Callable[..., list[str]], pattern: object
) -> None:
    script = """
        CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES (1);
        CREATE TABLE "1"(a); CREATE INDEX ti ON t(a); CREATE VIEW v AS SELECT 1;
        CREATE TRIGGER tt AFTER INSERT ON t BEGIN SELECT 1; END
    """
    assert dumped(script, filter=pattern) == of_the_standard_library(script, filter=pattern)


def test_a_filter_selects_by_name(dumped: Callable[..., list[str]]) -> None:
    script = (
        "CREATE TABLE ta(a); CREATE TABLE b(a); CREATE INDEX ti ON ta(a); CREATE INDEX bi ON b(a)"
    )
    assert dumped(script, filter="t%") == [
        "BEGIN TRANSACTION;",
        "CREATE TABLE ta(a);",
        "CREATE INDEX ti ON ta(a);",
        "COMMIT;",
    ]


VALUES: list[Any] = [
    None,
    0,
    -(2**63),
    2**63 - 1,
    0.1,
    1 / 3,
    -0.1 - 0.2,
    5e-324,
    1.7976931348623157e308,
    float("inf"),
    float("-inf"),
    123456789012345.67,
    "",
    "'",
    "''--\n;",
    "\0",
    "a\0b\0\0c'\0",
    "\x01\x7f\ufeff\uffff\U0010ffff",
    "1",
    b"",
    b"\0'\xff",
    bytes(range(256)),
]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
@pytest.mark.parametrize("target", ["UTF-8", "UTF-16le"])
def test_values_come_back_as_they_were(
    connection: sqlite3.Connection, encoding: str, target: str
) -> None:
    connection.execute(f"PRAGMA encoding = '{encoding}'")
    connection.execute("CREATE TABLE t(n, v)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", enumerate(VALUES))
    copy = sqlite3.connect(":memory:")
    copy.execute(f"PRAGMA encoding = '{target}'")
    copy.executescript("".join(_iterdump(connection)))
    found = copy.execute("SELECT v, typeof(v) FROM t ORDER BY n").fetchall()
    copy.close()
    assert found == connection.execute("SELECT v, typeof(v) FROM t ORDER BY n").fetchall()
    assert [value for value, _ in found] == VALUES


def test_text_that_is_not_utf8_comes_back_byte_for_byte(
    dumped: Callable[..., list[str]], loaded: Callable[[list[str]], sqlite3.Connection]
) -> None:
    lines = dumped("""
        CREATE TABLE t(a, b, c);
        INSERT INTO t VALUES (CAST(x'ff2700c3' AS TEXT), 'it''s é' || char(0), x'fe27')
    """)
    assert lines[2] == (
        "INSERT INTO \"t\" VALUES(CAST(X'FF2700C3' AS TEXT),'it''s é'||char(0)||'',X'FE27');"
    )
    query = "SELECT hex(a), typeof(a), hex(b), typeof(b), c FROM t"
    assert loaded(lines).execute(query).fetchall() == [
        ("FF2700C3", "text", "it's é\0".encode().hex().upper(), "text", b"\xfe'")
    ]


def test_factories_see_nothing(connection: sqlite3.Connection) -> None:
    def refuse(*arguments: object) -> object:
        raise AssertionError(arguments)

    connection.executescript(SCHEMAS["values"] + ";" + SCHEMAS["autoincrement"].replace(" t", " v"))
    expected = list(_iterdump(connection))
    for text_factory in (bytes, bytearray, lambda data: data.decode().upper(), refuse):
        connection.text_factory = text_factory
        assert list(_iterdump(connection)) == expected
    for row_factory in (sqlite3.Row, lambda cursor, row: {}, refuse):
        connection.row_factory = row_factory
        assert list(_iterdump(connection)) == expected
        assert connection.row_factory is row_factory


@pytest.mark.parametrize("detect_types", [sqlite3.PARSE_COLNAMES, sqlite3.PARSE_DECLTYPES])
def test_converters_see_nothing(detect_types: int) -> None:
    connection = sqlite3.connect(":memory:", detect_types=detect_types)
    connection.executescript("""
        CREATE TABLE t("a [date]" date, "b [timestamp]" timestamp); INSERT INTO t VALUES ('x', 'y')
    """)
    assert "INSERT INTO \"t\" VALUES('x','y');" in list(_iterdump(connection))
    connection.close()


def test_the_connections_own_functions_are_not_needed(connection: sqlite3.Connection) -> None:
    """A user's ``like`` or ``concat_ws`` may do anything."""
    connection.executescript(SCHEMAS["values"])
    expected = list(_iterdump(connection))
    for name in ("like", "concat", "concat_ws", "hex", "format", "printf", "instr"):
        for count in (1, 2, 3):
            connection.create_function(name, count, lambda *_: 1 / 0)
    assert list(_iterdump(connection)) == expected


def test_a_temporary_table_hides_nothing(dumped: Callable[..., list[str]]) -> None:
    lines = dumped("""
        CREATE TABLE t(a); INSERT INTO t VALUES ('main');
        CREATE TEMP TABLE t(b, c); INSERT INTO temp.t VALUES ('temp', 'temp')
    """)
    assert lines[1:-1] == ["CREATE TABLE t(a);", "INSERT INTO \"t\" VALUES('main');"]


def test_a_table_named_with_a_single_quote(
    dumped: Callable[..., list[str]], loaded: Callable[[list[str]], sqlite3.Connection]
) -> None:
    lines = dumped("""CREATE TABLE "it's"(a); INSERT INTO "it's" VALUES (1)""")
    assert loaded(lines).execute("""SELECT a FROM "it's" """).fetchall() == [(1,)]


def test_attached_databases_are_left_out(dumped: Callable[..., list[str]]) -> None:
    lines = dumped("ATTACH ':memory:' AS o; CREATE TABLE o.t(a); INSERT INTO t VALUES (1)")
    assert lines == ["BEGIN TRANSACTION;", "COMMIT;"]


def test_a_table_of_many_columns(
    dumped: Callable[..., list[str]], loaded: Callable[[list[str]], sqlite3.Connection]
) -> None:
    count = 2000
    lines = dumped(
        f"CREATE TABLE t({','.join(f'c{n}' for n in range(count))});"
        f"INSERT INTO t VALUES ({','.join(map(str, range(count)))})"
    )
    assert loaded(lines).execute("SELECT * FROM t").fetchall() == [tuple(range(count))]


@pytest.mark.parametrize("comment", ["-- c", "/* c */", "/* open", "-- a\n-- b", "/* -- */ -- /*"])
def test_a_comment_at_the_end_of_a_definition(
    connection: sqlite3.Connection,
    loaded: Callable[[list[str]], sqlite3.Connection],
    comment: str,
) -> None:
    connection.execute("CREATE TABLE t(a)")
    connection.execute(f"CREATE INDEX i ON t(a) {comment}")
    connection.execute(f"CREATE VIEW v AS SELECT '--' AS x {comment}")
    connection.execute("CREATE VIEW w AS SELECT 2 AS x")
    copy = loaded(list(_iterdump(connection)))
    assert copy.execute("SELECT v.x, w.x FROM v, w").fetchall() == [("--", 2)]
    assert copy.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'index'").fetchone() == (
        1,
    )


def test_a_sequence_that_no_table_needs(
    dumped: Callable[..., list[str]], loaded: Callable[[list[str]], sqlite3.Connection]
) -> None:
    """The table ``sqlite_sequence`` stays when the last table with AUTOINCREMENT goes."""
    lines = dumped("""
        CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES (1); DROP TABLE t;
        CREATE TABLE u(a)
    """)
    assert lines == ["BEGIN TRANSACTION;", "CREATE TABLE u(a);", "COMMIT;"]
    loaded(lines)


def test_a_sequence_goes_on_where_it_was(
    dumped: Callable[..., list[str]], loaded: Callable[[list[str]], sqlite3.Connection]
) -> None:
    copy = loaded(dumped(SCHEMAS["autoincrement"]))
    assert copy.execute("INSERT INTO t VALUES (NULL) RETURNING a").fetchone() == (8,)


@pytest.mark.parametrize(
    ("create", "insert", "query"),
    [
        ("fts4(a)", "INSERT INTO v VALUES ('one two')", "SELECT a FROM v WHERE v MATCH 'two'"),
        ("fts5(a)", "INSERT INTO v VALUES ('one two')", "SELECT a FROM v WHERE v MATCH 'two'"),
        ("rtree(i, a, b)", "INSERT INTO v VALUES (1, 2, 3)", "SELECT i FROM v WHERE a < 2.5"),
    ],
)
def test_rows_of_a_virtual_table(
    dumped: Callable[..., list[str]], path: Path, create: str, insert: str, query: str
) -> None:
    lines = dumped(f"CREATE VIRTUAL TABLE v USING {create}; {insert}")
    copy = sqlite3.connect(path)
    copy.executescript("\n".join(lines))
    assert len(copy.execute(query).fetchall()) == 1
    copy.execute(insert.replace("1,", "2,"))
    copy.commit()
    assert len(copy.execute(query).fetchall()) == 2
    copy.close()
    reopened = sqlite3.connect(path)
    assert len(reopened.execute(query).fetchall()) == 2
    assert reopened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    reopened.close()


def test_search_indexes_of_all_kinds_in_a_production_database(path: Path) -> None:
    """Contentless and external content, with the triggers that keep it."""
    source = oxlite.connect(":memory:")
    source.executescript("""
        CREATE TABLE document(id INTEGER PRIMARY KEY, body);
        CREATE VIRTUAL TABLE outside USING fts5(body, content='document', content_rowid='id');
        CREATE VIRTUAL TABLE contentless USING fts5(body, content='');
        CREATE TRIGGER kept AFTER INSERT ON document BEGIN
            INSERT INTO outside(rowid, body) VALUES (new.id, new.body);
            INSERT INTO contentless(rowid, body) VALUES (new.id, new.body);
        END;
        INSERT INTO document VALUES (1, 'one two');
    """)
    copy = oxlite.connect(path)
    copy.executescript("\n".join(source.iterdump()))
    copy.execute("INSERT INTO document VALUES (2, 'two three')")
    copy.commit()
    for table in ("outside", "contentless"):
        found = copy.execute(f"SELECT rowid FROM {table} WHERE {table} MATCH 'two'")
        assert found.fetchall() == [(1,), (2,)]
        copy.execute(f"INSERT INTO {table}({table}) VALUES ('integrity-check')")
    assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    source.close()
    copy.close()


VIOLATION = (
    "CREATE TABLE p(a PRIMARY KEY); CREATE TABLE c(a REFERENCES p); INSERT INTO c VALUES (1)"
)


def test_a_violated_foreign_key(dumped: Callable[..., list[str]]) -> None:
    lines = dumped(VIOLATION)
    assert lines[:2] == ["PRAGMA foreign_keys=OFF;", "BEGIN TRANSACTION;"]
    strict = sqlite3.connect(":memory:")
    strict.execute("PRAGMA foreign_keys = ON")
    strict.executescript("\n".join(lines))
    assert strict.execute("SELECT a FROM c").fetchall() == [(1,)]
    strict.close()


def test_a_violation_is_looked_for_in_the_main_database_alone(
    dumped: Callable[..., list[str]],
) -> None:
    attached = VIOLATION.replace("TABLE ", "TABLE o.").replace("INTO ", "INTO o.")
    assert dumped(f"ATTACH ':memory:' AS o; {attached}")[0] == "BEGIN TRANSACTION;"


def test_a_foreign_key_that_cannot_be_checked(dumped: Callable[..., list[str]]) -> None:
    lines = dumped("CREATE TABLE p(a); CREATE TABLE c(a REFERENCES p(a)); INSERT INTO c VALUES (1)")
    assert lines[0] == "BEGIN TRANSACTION;"
    assert 'INSERT INTO "c" VALUES(1);' in lines


def test_the_method_of_a_connection(connection: sqlite3.Connection) -> None:
    connection.executescript("CREATE TABLE t(a); CREATE TABLE u(a)")
    assert list(connection.iterdump()) == list(_iterdump(connection))
    assert list(connection.iterdump(filter="u")) == list(_iterdump(connection, filter="u"))


def test_it_is_read_as_it_is_yielded(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE t(a)")
    connection.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(1000)))
    lines = _iterdump(connection)
    assert [next(lines) for _ in range(3)][2] == 'INSERT INTO "t" VALUES(0);'
    lines.close()
    connection.execute("DROP TABLE t")  # no statement is left open on it


def test_it_neither_begins_nor_ends_a_transaction(connection: sqlite3.Connection) -> None:
    connection.executescript(SCHEMAS["autoincrement"])
    list(_iterdump(connection))
    assert not connection.in_transaction
    connection.execute("INSERT INTO t VALUES (100)")
    assert 'INSERT INTO "t" VALUES(100);' in list(_iterdump(connection))
    assert connection.in_transaction


def test_errors_are_those_of_the_connection(connection: sqlite3.Connection) -> None:
    lines = _iterdump(connection)
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        next(lines)


def test_a_file_that_is_no_database(path: Path) -> None:
    path.write_bytes(b"no database at all, " * 100)
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        list(_iterdump(connection))
    connection.close()
