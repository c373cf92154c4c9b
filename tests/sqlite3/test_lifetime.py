"""Lifetimes: closing, using what is closed, collecting in any order, subclasses, leaks."""

import contextlib
import gc
import random
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from oxlite import sqlite3

Call = Callable[[sqlite3.Connection, sqlite3.Cursor], object]

ON_CONNECTION: dict[str, Call] = {
    "cursor": lambda connection, cursor: connection.cursor(),
    "cursor with a factory": lambda connection, cursor: connection.cursor(sqlite3.Cursor),
    "execute": lambda connection, cursor: connection.execute("SELECT 1"),
    "executemany": lambda connection, cursor: connection.executemany("DELETE FROM t", []),
    "executescript": lambda connection, cursor: connection.executescript(""),
    "commit": lambda connection, cursor: connection.commit(),
    "rollback": lambda connection, cursor: connection.rollback(),
    "interrupt": lambda connection, cursor: connection.interrupt(),
    "__enter__": lambda connection, cursor: connection.__enter__(),
    "__exit__": lambda connection, cursor: connection.__exit__(None, None, None),
    "__exit__ of an error": lambda connection, cursor: connection.__exit__(KeyError, None, None),
    "in_transaction": lambda connection, cursor: connection.in_transaction,
    "total_changes": lambda connection, cursor: connection.total_changes,
    "isolation_level": lambda connection, cursor: connection.isolation_level,
    "set isolation_level": lambda connection, cursor: setattr(connection, "isolation_level", None),
}
ON_CURSOR: dict[str, Call] = {
    "execute": lambda connection, cursor: cursor.execute("SELECT 1"),
    "executemany": lambda connection, cursor: cursor.executemany("DELETE FROM t", []),
    "executescript": lambda connection, cursor: cursor.executescript(""),
    "fetchone": lambda connection, cursor: cursor.fetchone(),
    "fetchmany": lambda connection, cursor: cursor.fetchmany(),
    "fetchall": lambda connection, cursor: cursor.fetchall(),
    "__next__": lambda connection, cursor: next(cursor),
}


@pytest.mark.parametrize("call", ON_CONNECTION.values(), ids=ON_CONNECTION.keys())
def test_a_closed_connection(connection: sqlite3.Connection, call: Call) -> None:
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError, match=r"^Cannot operate on a closed database\.$"):
        call(connection, None)


@pytest.mark.parametrize("call", ON_CURSOR.values(), ids=ON_CURSOR.keys())
def test_a_cursor_of_a_closed_connection(connection: sqlite3.Connection, call: Call) -> None:
    cursor = connection.execute("SELECT 1 UNION SELECT 2")
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError, match=r"^Cannot operate on a closed database\.$"):
        call(connection, cursor)
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        cursor.close()


@pytest.mark.parametrize("call", ON_CURSOR.values(), ids=ON_CURSOR.keys())
def test_a_closed_cursor(connection: sqlite3.Connection, call: Call) -> None:
    cursor = connection.execute("SELECT 1 UNION SELECT 2")
    cursor.close()
    with pytest.raises(sqlite3.ProgrammingError, match=r"^Cannot operate on a closed cursor\.$"):
        call(connection, cursor)
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_closing_twice(connection: sqlite3.Connection) -> None:
    cursor = connection.cursor()
    cursor.close()
    cursor.close()
    connection.close()
    connection.close()


def test_what_can_still_be_asked_of_the_closed(connection: sqlite3.Connection) -> None:
    connection.row_factory = sqlite3.Row
    cursor = connection.execute("SELECT 1 AS a")
    cursor.close()
    connection.close()
    assert connection.row_factory is sqlite3.Row
    assert cursor.description[0][0] == "a"
    assert (cursor.rowcount, cursor.arraysize, cursor.connection) == (-1, 1, connection)


def test_a_connection_closed_inside_its_own_block() -> None:
    connection = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"), connection:
        connection.close()


def test_a_cursor_keeps_its_connection_open() -> None:
    cursor = sqlite3.connect(":memory:").execute("SELECT 1 UNION SELECT 2")
    gc.collect()
    assert cursor.fetchone() == (1,)
    assert cursor.connection.execute("SELECT 3").fetchone() == (3,)
    assert cursor.fetchone() == (2,)


_CLOSING_WITH_A_VIRTUAL_TABLE = """
import sys
from oxlite import sqlite3
for unread in (False, True):
    for open_transaction in (False, True):
        connection = sqlite3.connect(":memory:")
        for sql in sys.argv[1].split(";"):
            connection.execute(sql)
        if not open_transaction:
            connection.commit()
        cursor = connection.execute("SELECT * FROM v")
        assert cursor.fetchone()
        if not unread:
            cursor.fetchall()
        connection.close()
        del cursor, connection
"""


@pytest.mark.parametrize(
    "script",
    [
        "CREATE VIRTUAL TABLE v USING fts5(a); INSERT INTO v VALUES ('a'), ('b'), ('c');"
        "DELETE FROM v WHERE a MATCH 'a'",
        "CREATE VIRTUAL TABLE v USING fts4(a); INSERT INTO v VALUES ('a'), ('b'), ('c');"
        "DELETE FROM v WHERE a MATCH 'a'",
        "CREATE VIRTUAL TABLE v USING rtree(id, a, b); INSERT INTO v(a, b) VALUES (1, 2), (3, 4);"
        "DELETE FROM v WHERE id = 1",
        "CREATE VIRTUAL TABLE v USING geopoly(a);"
        "INSERT INTO v(_shape) VALUES ('[[0,0],[1,0],[1,1],[0,0]]'), ('[[0,0],[2,0],[1,1],[0,0]]')",
        "CREATE TABLE t(a); CREATE VIRTUAL TABLE v USING dbstat",
    ],
    ids=["fts5", "fts4", "rtree", "geopoly", "dbstat"],
)
def test_closing_with_a_virtual_table_in_use(child: Callable[..., str], script: str) -> None:
    """The table's module has prepared statements of its own, which it finalises itself."""
    child(_CLOSING_WITH_A_VIRTUAL_TABLE, script)


def test_dropping_with_a_virtual_table_in_use(child: Callable[..., str]) -> None:
    child(
        """
import gc
from oxlite import sqlite3
for order in (0, 1):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE v USING fts5(a)")
    connection.execute("INSERT INTO v VALUES ('one'), ('two')")
    cursor = connection.execute("SELECT * FROM v")
    cursor.fetchone()
    if order:
        del connection, cursor
    else:
        del cursor, connection
    gc.collect()
"""
    )


def alive(kind: type) -> int:
    gc.collect()
    # By its type: a lazy object, such as settings of Django's, sets itself up when it is asked.
    return sum(issubclass(type(thing), kind) for thing in gc.get_objects())


@pytest.mark.parametrize("seed", range(5))
def test_everything_is_collected_in_any_order(path: Path, seed: int) -> None:
    sqlite3.connect(path).executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3)")
    connections, cursors = alive(sqlite3.Connection), alive(sqlite3.Cursor)
    print(f"seed {seed}")
    chance = random.Random(seed)
    things: list[object] = []
    for _ in range(10):
        connection = sqlite3.connect(path)
        things.append(connection)
        for _ in range(5):
            cursor = connection.execute("SELECT a FROM t")
            for _ in range(chance.randrange(4)):
                cursor.fetchone()
            things.append(cursor)
        if chance.random() < 0.5:
            cursor.row_factory = connection.cursor  # a cycle
            connection.text_factory = cursor.fetchone
        if chance.random() < 0.3:
            connection.close()
    del connection, cursor
    chance.shuffle(things)
    while things:
        things.pop()
        if chance.random() < 0.1:
            gc.collect()
    # What other tests have left may go meanwhile.
    assert alive(sqlite3.Cursor) <= cursors
    assert alive(sqlite3.Connection) <= connections
    check = sqlite3.connect(path, timeout=0, isolation_level=None)
    check.execute("DROP TABLE t")  # fails while anything still reads
    check.close()


class Holder(sqlite3.Connection):
    """A connection that can be part of any cycle."""


class HolderCursor(sqlite3.Cursor):
    """A cursor that can be part of any cycle."""


CYCLES: dict[str, Call] = {
    "row_factory of the connection": lambda connection, cursor: setattr(
        connection, "row_factory", lambda *_: (connection, cursor)
    ),
    "text_factory": lambda connection, cursor: setattr(
        connection, "text_factory", lambda _: (connection, cursor)
    ),
    "row_factory of the cursor": lambda connection, cursor: setattr(
        cursor, "row_factory", lambda *_: (connection, cursor)
    ),
    "bound methods": lambda connection, cursor: setattr(connection, "row_factory", cursor.execute),
    "attributes": lambda connection, cursor: (
        setattr(connection, "mine", cursor),
        setattr(cursor, "mine", connection),
    ),
}


@pytest.mark.parametrize("cycle", CYCLES.values(), ids=CYCLES.keys())
@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_a_cycle_is_collected(cycle: Call, closed: bool) -> None:
    def make() -> tuple[weakref.ref[Holder], weakref.ref[HolderCursor]]:
        connection = sqlite3.connect(":memory:", factory=Holder)
        cursor = connection.cursor(HolderCursor)
        cursor.execute("SELECT 1 UNION SELECT 2")
        cycle(connection, cursor)
        if closed:
            connection.close()
        return weakref.ref(connection), weakref.ref(cursor)

    references = make()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def descriptors_on(path: Path) -> int:
    open_files = Path("/proc/self/fd")
    if not open_files.exists():
        pytest.skip("this system does not list a process's open files")
    names = []
    for descriptor in open_files.iterdir():
        try:
            names.append(descriptor.readlink())
        except FileNotFoundError:  # that of the listing itself
            continue
    return sum(str(name).startswith(str(path)) for name in names)


def test_no_file_stays_open(path: Path) -> None:
    def work(how: int) -> None:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE IF NOT EXISTS t(a)")
        cursor = connection.execute("SELECT 1 UNION SELECT 2")
        if how == 0:
            connection.close()
        elif how == 1:
            cursor.close()
        elif how == 2:
            connection.row_factory = lambda *_: cursor

    for how in (0, 1, 2):
        work(how)
    gc.collect()
    assert descriptors_on(path) == 0


@pytest.mark.parametrize("name", ["no/such/place/x.db", "."])
def test_a_failed_opening_leaves_no_file_open(tmp_path: Path, name: str) -> None:
    for _ in range(3):
        with pytest.raises(sqlite3.OperationalError):
            sqlite3.connect(tmp_path / name)
    assert descriptors_on(tmp_path) == 0


@pytest.mark.parametrize("call", ON_CONNECTION.values(), ids=ON_CONNECTION.keys())
def test_a_connection_whose_init_was_not_called(call: Call) -> None:
    class Forgetful(sqlite3.Connection):
        def __init__(self, *arguments: object) -> None:
            pass

    connection = Forgetful("x")
    with pytest.raises(sqlite3.ProgrammingError, match=r"^Base Connection\.__init__ not called\.$"):
        call(connection, None)


def test_a_cursor_of_a_connection_whose_init_was_not_called() -> None:
    with pytest.raises(sqlite3.ProgrammingError, match="__init__ not called"):
        sqlite3.Cursor(sqlite3.Connection.__new__(sqlite3.Connection))


@pytest.mark.parametrize(
    "call",
    [*ON_CURSOR.values(), lambda connection, cursor: cursor.close()],
    ids=[*ON_CURSOR.keys(), "close"],
)
def test_a_cursor_whose_init_was_not_called(connection: sqlite3.Connection, call: Call) -> None:
    class Forgetful(sqlite3.Cursor):
        def __init__(self, connection: sqlite3.Connection) -> None:
            pass

    with pytest.raises(sqlite3.ProgrammingError, match=r"^Base Cursor\.__init__ not called\.$"):
        call(connection, connection.cursor(Forgetful))


def test_the_attributes_of_a_cursor_whose_init_was_not_called() -> None:
    cursor = sqlite3.Cursor.__new__(sqlite3.Cursor)
    assert cursor.description is None
    assert cursor.lastrowid is None
    assert cursor.row_factory is None


def test_a_subclass_with_arguments_of_its_own(path: Path) -> None:
    class Named(sqlite3.Connection):
        def __init__(self, name: str, *, directory: Path) -> None:
            super().__init__(directory / name, isolation_level=None)
            self.name = name

    connection = Named(path.name, directory=path.parent)
    connection.execute("CREATE TABLE t(a)")
    assert (connection.name, connection.isolation_level) == (path.name, None)
    connection.close()
    assert path.exists()


def test_a_cursor_subclass_with_arguments_of_its_own(connection: sqlite3.Connection) -> None:
    class Limited(sqlite3.Cursor):
        def __init__(self, connection: sqlite3.Connection, limit: int) -> None:
            super().__init__(connection)
            self.arraysize = limit

    cursor = connection.cursor(lambda owner: Limited(owner, 2))
    cursor.execute("VALUES (1), (2), (3)")
    assert cursor.fetchmany() == [(1,), (2,)]


def test_what_a_subclass_overrides_the_base_does_not_call(path: Path) -> None:
    calls = []

    class Loud(sqlite3.Connection):
        def cursor(self, factory: object = sqlite3.Cursor) -> sqlite3.Cursor:
            calls.append("cursor")
            return super().cursor(factory)

        def commit(self) -> None:
            calls.append("commit")

    connection = Loud(path)
    connection.execute("CREATE TABLE t(a)")
    with connection:
        connection.executemany("INSERT INTO t VALUES (?)", [(1,)])
    connection.executescript("SELECT 1")
    assert calls == []
    assert not connection.in_transaction
    connection.close()


def test_calling_init_again_opens_anew(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t(a)")
    connection.row_factory = sqlite3.Row
    connection.text_factory = bytes
    connection.__init__(":memory:", isolation_level="EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        connection.execute("SELECT * FROM t")
    assert connection.isolation_level == "EXCLUSIVE"
    assert connection.row_factory is None
    assert connection.text_factory is str
    connection.close()


def test_calling_init_again_lets_the_old_file_go(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t(a)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.__init__(":memory:")
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert other.execute("SELECT count(*) FROM t").fetchone() == (0,)
    assert descriptors_on(path) > 0
    other.close()
    assert descriptors_on(path) == 0
    connection.close()


def test_an_init_that_fails_leaves_no_connection(tmp_path: Path) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t(a)")
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        connection.__init__(tmp_path)
    with pytest.raises(sqlite3.ProgrammingError, match="__init__ not called"):
        connection.execute("SELECT * FROM t")


def test_a_cursors_init_may_be_called_again(connection: sqlite3.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT 1 UNION SELECT 2")
    other = sqlite3.connect(":memory:")
    other.execute("CREATE TABLE elsewhere(a)")
    cursor.__init__(other)
    assert cursor.connection is other
    assert cursor.execute("SELECT count(*) FROM elsewhere").fetchone() == (0,)
    other.close()


@pytest.mark.parametrize("argument", [None, 1, "x", object()])
def test_a_cursor_needs_a_connection(argument: object) -> None:
    with pytest.raises(TypeError):
        sqlite3.Cursor(argument)
    with pytest.raises(TypeError):
        sqlite3.Cursor()


def test_weak_references(connection: sqlite3.Connection) -> None:
    cursor = connection.cursor()
    reference = weakref.ref(cursor)
    assert reference() is cursor
    del cursor
    assert reference() is None
    assert weakref.ref(connection)() is connection


def test_the_interpreter_ends_with_everything_open(child: Callable[..., str], path: Path) -> None:
    """Unread rows, an open transaction, cycles, a finaliser that still executes."""
    assert (
        child(
            """
import sys
from oxlite import sqlite3
connection = sqlite3.connect(sys.argv[1])
connection.execute("CREATE TABLE t(a)")
connection.execute("INSERT INTO t VALUES (1), (2), (3)")
connection.commit()
connection.execute("DELETE FROM t")
unread = connection.execute("SELECT 1 UNION SELECT 2")
connection.row_factory = lambda *_: unread

class Late:
    def __init__(self, connection):
        self.connection = connection
    def __del__(self):
        rows = self.connection.execute("SELECT count(*) FROM t")
        rows.row_factory = None
        print(rows.fetchone())

late = Late(connection)
""",
            path,
        )
        == "(0,)\n"
    )
    check = sqlite3.connect(path)
    assert check.execute("SELECT count(*) FROM t").fetchone() == (3,)
    check.close()


def test_finalisers_may_use_the_connection_that_is_executing(
    child: Callable[..., str],
) -> None:
    """The collector runs at any allocation, so in the middle of a fetch or of binding."""
    child(
        """
import gc
from oxlite import sqlite3
connection = sqlite3.connect(":memory:")
connection.executescript("CREATE TABLE t(a); INSERT INTO t VALUES ('x'), ('y'), ('z')")
cursor = connection.cursor()
seen = []

class Finaliser:
    def __init__(self):
        self.me = self
    def __del__(self):
        seen.append(connection.execute("SELECT count(*) FROM t").fetchone()[0])
        cursor.description, cursor.rowcount

def factory(text):
    Finaliser()
    gc.collect()
    return text.decode()

connection.text_factory = factory
for _ in range(20):
    Finaliser()
    assert cursor.execute("SELECT a FROM t").fetchall() == [("x",), ("y",), ("z",)]
    connection.executemany("UPDATE t SET a = ?", ((gc.collect() and "x",) for _ in range(0)))
assert seen and set(seen) == {3}
"""
    )


def test_rows_and_descriptions_are_not_leaked(connection: sqlite3.Connection) -> None:
    """Neither by fetching nor by errors; what the statement cache keeps is bounded."""

    def work() -> int:
        for n in range(200):
            connection.execute(f"SELECT {n} AS a, 'text' AS b UNION SELECT 2, 'x'").fetchone()
            cursor = connection.execute("SELECT 1 AS a, 'text', CAST(x'ff' AS TEXT)")
            with contextlib.suppress(sqlite3.OperationalError):
                cursor.fetchone()
        gc.collect()
        return len(gc.get_objects())

    work()
    before = work()
    assert work() - before < 50


def test_a_cursor_made_anew_for_its_connection_keeps_nothing_more() -> None:
    connection = sqlite3.connect(":memory:")
    cursors = [connection.cursor(), sqlite3.Cursor(connection)]
    before = sys.getrefcount(connection)
    for cursor in cursors:
        for _ in range(50):
            cursor.execute("SELECT 1")
            cursor.__init__(connection)  # type: ignore[misc]
            assert cursor.fetchall() == []
    assert sys.getrefcount(connection) == before


def test_a_cursor_goes_over_from_a_closed_connection_in_the_middle_of_rows(path: Path) -> None:
    one, other = sqlite3.connect(path), sqlite3.connect(path)
    one.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2)")
    cursor = sqlite3.Cursor(one)
    cursor.execute("SELECT a FROM t")
    one.close()
    cursor.__init__(other)  # type: ignore[misc]
    cursor.executemany("INSERT INTO t VALUES (?)", [])
    assert cursor.execute("SELECT a FROM t").fetchall() == [(1,), (2,)]
    other.close()
