"""Converters: ``register_converter`` and ``detect_types``, by declaration and by column name."""

import gc
import sqlite3 as stdlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from oxlite import sqlite3

# A module, an object or an argument of any kind: what is compared, or wrong on purpose.
Untyped = Any

MODULES = [stdlib, sqlite3]
DECLTYPES, COLNAMES = sqlite3.PARSE_DECLTYPES, sqlite3.PARSE_COLNAMES


@pytest.fixture(autouse=True)
def _registries_as_before() -> Iterator[None]:
    kept = [(module, dict(module.converters)) for module in MODULES]
    for module in MODULES:
        module.register_converter("show", lambda stored: ("show", stored))
        module.register_converter("Ünïcode", lambda stored: ("unicode", stored))
        module.register_converter("", lambda stored: ("empty", stored))
        module.register_converter("number", lambda stored: ("number", float(stored)))
    yield
    for module, converters in kept:
        module.converters.clear()
        module.converters.update(converters)


def observed(module: Untyped, detect_types: int, *statements: str) -> object:
    """The rows and names of the last statement, or the class of what it raised."""
    connection = module.connect(":memory:", detect_types=detect_types)
    try:
        for statement in statements:
            cursor = connection.execute(statement)
        names = [column[0] for column in cursor.description]
        return names, cursor.fetchall()
    except Exception as error:
        return type(error).__name__, str(error)
    finally:
        connection.close()


ALL_VALUES = "(1), (-1.5), ('text'), (x'00ff'), (NULL), (''), (x''), (9223372036854775807), ('é')"

SCRIPTS: dict[str, list[str]] = {
    "every storage class": [
        "CREATE TABLE t(a show)",
        f"INSERT INTO t VALUES {ALL_VALUES}",
        "SELECT a FROM t",
    ],
    "every storage class by name": [f'SELECT column1 AS "c [show]" FROM (VALUES {ALL_VALUES})'],
    "a declaration of several words": ["CREATE TABLE t(a show me (3))", "INSERT INTO t VALUES (1)",
                                       "SELECT a FROM t"],
    "a declaration with parentheses": ["CREATE TABLE t(a SHOW(10))", "INSERT INTO t VALUES (1)",
                                       "SELECT a FROM t"],
    "in any case": ["CREATE TABLE t(a ShOw)", "INSERT INTO t VALUES (1)", "SELECT a FROM t"],
    "no declaration": ["CREATE TABLE t(a)", "INSERT INTO t VALUES (1)", "SELECT a FROM t"],
    "an unknown declaration": ["CREATE TABLE t(a shown)", "INSERT INTO t VALUES (1)",
                               "SELECT a FROM t"],
    "letters outside ASCII": ['CREATE TABLE t(a "ünïcode")', "INSERT INTO t VALUES (1)",
                              "SELECT a FROM t"],
    "an expression has no declaration": ["CREATE TABLE t(a show)", "INSERT INTO t VALUES (1)",
                                         "SELECT a + 1, a, +a, max(a), (SELECT a FROM t) FROM t"],
    "a view and a subquery keep it": ["CREATE TABLE t(a show)", "INSERT INTO t VALUES (1)",
                                      "CREATE VIEW v AS SELECT a AS b FROM t",
                                      "SELECT b, c FROM v, (SELECT a AS c FROM t)"],
    "by name": ['SELECT 1 AS "x [show]", 2 AS "y[show]", 3 AS "[show]", 4 AS "z [SHOW]"'],
    "by a name that is not clear": ['SELECT 1 AS "x [show", 2 AS "x ]show[", 3 AS "x [a] [show]",'
                                    ' 4 AS "x [[show]", 5 AS "x  [show] y", 6 AS "x []",'
                                    ' 7 AS "] [show]"'],
    "by a name and a declaration": ["CREATE TABLE t(a show)", "INSERT INTO t VALUES ('1')",
                                    'SELECT a AS "x [number]", a AS "y [unknown]", a AS z FROM t'],
    "a converter that raises": ["CREATE TABLE t(a number)", "INSERT INTO t VALUES ('no')",
                                "SELECT a FROM t"],
    "returning": ["CREATE TABLE t(a show)", "INSERT INTO t VALUES (1), (2) RETURNING a"],
    "columns of one name": ["CREATE TABLE t(a show, b)", "INSERT INTO t VALUES (1, 2)",
                            "SELECT a, b AS a, a FROM t"],
    "no rows": ["CREATE TABLE t(a show)", "SELECT a FROM t"],
}  # fmt: skip


@pytest.mark.parametrize("detect_types", [0, DECLTYPES, COLNAMES, DECLTYPES | COLNAMES, -1, 8])
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_as_the_standard_library(script: list[str], detect_types: int) -> None:
    theirs, ours = (observed(module, detect_types, *script) for module in MODULES)
    assert ours == theirs


def test_the_scripts_convert() -> None:
    """Else the comparison above would compare nothing."""
    by_declaration = observed(sqlite3, DECLTYPES, *SCRIPTS["every storage class"])
    stored = [
        b"1",
        b"-1.5",
        b"text",
        b"\0\xff",
        None,
        None,
        None,
        b"9223372036854775807",
        "é".encode(),
    ]
    # What is empty counts as NULL: its pointer is none.
    assert by_declaration == (["a"], [(value and ("show", value),) for value in stored])
    by_name = observed(sqlite3, COLNAMES, *SCRIPTS["by name"])
    assert by_name == (["x", "y", "", "z"], [tuple(("show", b"%d" % i) for i in (1, 2, 3, 4))])


@pytest.mark.parametrize("fetch", ["fetchone", "fetchmany", "fetchall", "iterate"])
def test_every_way_to_fetch(fetch: str) -> None:
    connection = sqlite3.connect(":memory:", detect_types=DECLTYPES)
    connection.execute("CREATE TABLE t(a show)")
    connection.executemany("INSERT INTO t VALUES (?)", [("1",), ("2",)])
    cursor = connection.execute("SELECT a FROM t")
    fetches: dict[str, Callable[[], list[Any]]] = {
        "fetchone": lambda: [cursor.fetchone(), cursor.fetchone()],
        "fetchmany": lambda: cursor.fetchmany(5),
        "fetchall": cursor.fetchall,
        "iterate": lambda: list(cursor),
    }
    rows = fetches[fetch]()
    assert rows == [(("show", b"1"),), (("show", b"2"),)]
    connection.close()


def test_with_text_and_row_factories() -> None:
    outcomes = []
    for module in MODULES:
        connection = module.connect(":memory:", detect_types=DECLTYPES)
        connection.text_factory = lambda text: ("text", text)
        connection.row_factory = module.Row
        connection.execute("CREATE TABLE t(a show, b text)")
        connection.execute("INSERT INTO t VALUES ('x', 'y')")
        row = connection.execute("SELECT a, b FROM t").fetchone()
        outcomes.append((row["a"], row["b"], row.keys()))
        connection.close()
    assert outcomes[0] == outcomes[1] == (("show", b"x"), ("text", b"y"), ["a", "b"])


def test_a_converter_may_be_registered_at_any_moment() -> None:
    """A kept statement looks it up anew each time it is executed."""
    for module in MODULES:
        connection = module.connect(":memory:", detect_types=DECLTYPES)
        connection.execute("CREATE TABLE t(a late)")
        connection.execute("INSERT INTO t VALUES (1)")
        found = [connection.execute("SELECT a FROM t").fetchone()]
        module.register_converter("LATE", lambda stored: "first")
        found.append(connection.execute("SELECT a FROM t").fetchone())
        module.register_converter("late", lambda stored: "second")
        found.append(connection.execute("SELECT a FROM t").fetchone())
        module.converters["LATE"] = None
        found.append(connection.execute("SELECT a FROM t").fetchone())
        del module.converters["LATE"]
        found.append(connection.execute("SELECT a FROM t").fetchone())
        connection.close()
        assert found == [(1,), ("first",), ("second",), (1,), (1,)]


def test_the_declaration_may_change_under_a_kept_statement() -> None:
    for module in MODULES:
        connection = module.connect(":memory:", detect_types=DECLTYPES, isolation_level=None)
        found = []
        for declaration in ("show", "number", ""):
            connection.execute(f"CREATE TABLE t(a {declaration})")
            connection.execute("INSERT INTO t VALUES ('7')")
            found.append(connection.execute("SELECT a FROM t").fetchone())
            connection.execute("DROP TABLE t")
        connection.close()
        assert found == [(("show", b"7"),), (("number", 7.0),), ("7",)]


def test_a_row_whose_converter_raised_can_be_fetched_again() -> None:
    for module in MODULES:
        calls: list[bytes] = []

        def once(stored: bytes, calls: list[bytes] = calls) -> object:
            calls.append(stored)
            if len(calls) == 1:
                raise KeyError(stored)
            return stored

        module.register_converter("once", once)
        connection = module.connect(":memory:", detect_types=DECLTYPES)
        connection.execute("CREATE TABLE t(a once)")
        connection.execute("INSERT INTO t VALUES ('x'), ('y')")
        cursor = connection.execute("SELECT a FROM t")
        with pytest.raises(KeyError):
            cursor.fetchone()
        assert cursor.fetchall() == [(b"x",), (b"y",)]
        connection.close()


def test_a_converter_runs_with_the_connection_unlocked(in_thread: Callable[..., Any]) -> None:
    """It may use the connection, and wait for another thread that does; not its own cursor."""
    shared = sqlite3.connect(":memory:", detect_types=COLNAMES, check_same_thread=False)
    refused: list[str] = []

    def converter(stored: bytes) -> object:
        for fetch in (cursor.fetchone, cursor.close, lambda: cursor.execute("SELECT 1")):
            try:
                fetch()
            except sqlite3.ProgrammingError as error:
                refused.append(str(error))
        return in_thread(lambda: shared.execute("SELECT ? || 'y'", (stored.decode(),)).fetchone())

    sqlite3.register_converter("threads", converter)
    cursor = shared.cursor()
    cursor.execute("SELECT 'x' AS \"a [threads]\" UNION ALL SELECT 'z'")
    assert cursor.fetchall() == [(("xy",),), (("zy",),)]
    assert refused == ["Recursive use of cursors not allowed."] * 6
    shared.close()


def test_a_converter_may_close_the_connection() -> None:
    connection = sqlite3.connect(":memory:", detect_types=COLNAMES)
    sqlite3.register_converter("closes", lambda stored: connection.close())
    cursor = connection.execute('SELECT 1 AS "a [closes]" UNION ALL SELECT 2')
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        cursor.fetchone()


def test_converters_in_a_cycle_with_their_cursor_are_collected() -> None:
    connection = sqlite3.connect(":memory:", detect_types=COLNAMES)

    class Converter:
        cursor: sqlite3.Cursor

        def __call__(self, stored: bytes) -> bytes:
            return stored

    converter = Converter()
    sqlite3.register_converter("cycle", converter)
    converter.cursor = connection.execute('SELECT 1 AS "a [cycle]" UNION ALL SELECT 2')
    reference = weakref.ref(converter)
    del sqlite3.converters["CYCLE"], converter
    gc.collect()
    assert reference() is None
    connection.close()


def test_iterdump_and_the_registry() -> None:
    """What is dumped has not been converted, whatever names and declarations say."""
    connection = sqlite3.connect(":memory:", detect_types=DECLTYPES | COLNAMES)
    connection.execute('CREATE TABLE t("a [show]" show)')
    connection.execute("INSERT INTO t VALUES (1)")
    assert 'INSERT INTO "t" VALUES(1);' in list(connection.iterdump())
    connection.close()


def test_wrong_arguments() -> None:
    for module in MODULES:
        for arguments in [(), ("x",), (b"x", str), (1, str), ("x", str, 1)]:
            with pytest.raises(TypeError):
                module.register_converter(*arguments)
        with pytest.raises(TypeError):
            module.connect(":memory:", detect_types="x")
