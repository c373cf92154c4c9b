"""Cycles through a connection, a cursor, a blob: the collector finds and frees them."""

import gc
import sqlite3 as stdlib
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from oxlite import sqlite3

# A module, an object or an argument of any kind: what is compared, or wrong on purpose.
Untyped = Any

Link = Callable[[Any], object]


class Connection(sqlite3.Connection):
    """One that can be an item of a cycle by its attributes."""


class TheirConnection(stdlib.Connection):
    """The same of the standard library."""


def _aggregate(connection: Untyped) -> type:
    class Aggregate:
        keeps = connection

        def step(self, value: object) -> None: ...

        def finalize(self) -> int:
            return 1

    return Aggregate


def _blob(connection: Untyped) -> object:
    connection.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(9))")
    return connection.blobopen("t", "a", 1)


def _cursor(connection: Untyped) -> object:
    cursor = connection.cursor()
    cursor.execute("VALUES (1), (2)")
    cursor.row_factory = lambda *_: connection
    cursor.fetchone()
    return cursor


LINKS: dict[str, Link] = {
    "row_factory": lambda c: setattr(c, "row_factory", lambda *_: c),
    "text_factory": lambda c: setattr(c, "text_factory", lambda *_: c),
    "trace": lambda c: c.set_trace_callback(lambda *_: c),
    "progress": lambda c: c.set_progress_handler(lambda *_: c and 0, 10),
    "authorizer": lambda c: c.set_authorizer(lambda *_: c and 0),
    "cursor": lambda c: setattr(c, "kept", _cursor(c)),
    "rows": lambda c: setattr(c, "kept", c.execute("SELECT 1").fetchall()),
    "statement": lambda c: setattr(c, "kept", c("SELECT 1")),
    "dump": lambda c: setattr(c, "kept", c.iterdump()),
    "itself": lambda c: setattr(c, "kept", c),
}
OWN_LINKS: dict[str, Link] = {
    "update hook": lambda c: c.set_update_hook(lambda *_: c),
    "commit hook": lambda c: c.set_commit_hook(lambda *_: c and 0),
    "rollback hook": lambda c: c.set_rollback_hook(lambda *_: c),
    "wal hook": lambda c: c.set_wal_hook(lambda *_: c),
    "all of them": lambda c: [link(c) for link in LINKS.values()],
    "again and again": lambda c: [c.set_commit_hook(lambda *_: c and 0) for _ in range(9)],
}
# The standard library does not find these either: SQLite alone knows the callable.
FUNCTIONS: dict[str, Link] = {
    "function": lambda c: c.create_function("f", 1, lambda *_: c),
    "aggregate": lambda c: c.create_aggregate("f", 1, _aggregate(c)),
    "collation": lambda c: c.create_collation("f", lambda *_: c),
}


@pytest.fixture(autouse=True)
def _collector_off() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def is_collected(factory: type[Any], link: Link) -> bool:
    connection = factory(":memory:")
    link(connection)
    reference = weakref.ref(connection)
    factory.close(connection)
    del connection
    gc.collect()
    return reference() is None


@pytest.mark.parametrize("link", [*LINKS.values(), *OWN_LINKS.values()], ids=[*LINKS, *OWN_LINKS])
def test_a_cycle_is_collected(link: Link) -> None:
    assert is_collected(Connection, link)


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS.keys())
def test_the_standard_library_does_too(link: Link) -> None:
    """Else the list above would be no promise of a drop-in."""
    assert is_collected(TheirConnection, link)


def test_a_cycle_through_a_blob_is_collected() -> None:
    assert is_collected(TheirConnection, lambda c: setattr(c, "kept", _blob(c)))
    assert is_collected(Connection, lambda c: setattr(c, "kept", _blob(c)))


@pytest.mark.parametrize("link", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_closing_breaks_a_cycle_through_a_function(link: Link) -> None:
    """Nobody can see the callable but SQLite, which lets it go when the connection is closed."""
    assert is_collected(Connection, link)


_OPEN = """
import gc, sys, weakref
import oxlite
from oxlite import sqlite3

class Connection(sqlite3.Connection):
    pass

def link(connection, what):
    if what == "busy":
        return
    if what.startswith("set_"):
        arguments = (1,) if "progress" in what else ()
        getattr(connection, what)(lambda *_: connection, *arguments)
    else:
        setattr(connection, what, lambda *_: connection)

gc.disable()
for what in sys.argv[1:]:
    holder = []
    if what == "busy":
        connection = oxlite.connect(
            ":memory:", factory=Connection, busy_handler=lambda calls, holder=holder: holder
        )
        holder.append(connection)
    else:
        connection = oxlite.connect(":memory:", factory=Connection)
        link(connection, what)
    reference = weakref.ref(connection)
    del connection, holder
    assert reference() is not None, what
    gc.collect()
    assert reference() is None, what
"""


def test_a_cycle_with_an_open_connection_is_collected(child: Callable[..., str]) -> None:
    """In a process of its own: from Python 3.13 on each is warned of."""
    child(
        _OPEN,
        *["row_factory", "text_factory", "set_trace_callback", "set_progress_handler", "busy"],
        *["set_authorizer", "set_update_hook", "set_commit_hook", "set_rollback_hook"],
        "set_wal_hook",
    )


CALLBACKS: dict[str, Callable[[Any, object], object]] = {
    "trace": lambda c, callback: c.set_trace_callback(callback),
    "progress": lambda c, callback: c.set_progress_handler(callback, 10),
    "authorizer": lambda c, callback: c.set_authorizer(callback),
    "update": lambda c, callback: c.set_update_hook(callback),
    "commit": lambda c, callback: c.set_commit_hook(callback),
    "rollback": lambda c, callback: c.set_rollback_hook(callback),
    "wal": lambda c, callback: c.set_wal_hook(callback),
    "function": lambda c, callback: c.create_function("f", 0, callback),
    "collation": lambda c, callback: c.create_collation("f", callback),
}


class Callback:
    def __call__(self, *_: object) -> int:
        return 0


@pytest.mark.parametrize("how", ["removed", "replaced", "dropped"])
@pytest.mark.parametrize("install", CALLBACKS.values(), ids=CALLBACKS.keys())
def test_a_callback_is_let_go(install: Callable[[Any, object], object], how: str) -> None:
    connection = sqlite3.connect(":memory:")
    callback = Callback()
    reference = weakref.ref(callback)
    install(connection, callback)
    del callback
    connection.execute("CREATE TABLE t(a)").fetchall()
    assert reference() is not None
    if how == "dropped":
        connection.close()
        del connection
    else:
        install(connection, None if how == "removed" else Callback())
        assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.close()
    assert reference() is None


@pytest.mark.parametrize("name", ["trace", "progress", "authorizer"])
def test_closing_lets_a_callback_go(name: str) -> None:
    """As in the standard library."""
    for module in (stdlib, sqlite3):
        connection = module.connect(":memory:")
        callback = Callback()
        reference = weakref.ref(callback)
        CALLBACKS[name](connection, callback)
        del callback
        connection.close()
        assert reference() is None


def _work() -> None:
    connection = Connection(":memory:", detect_types=3, isolation_level=None)
    for link in (*LINKS.values(), *OWN_LINKS.values()):
        link(connection)
    connection.text_factory = str
    connection.execute("CREATE TABLE t(a)")
    connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(20)])
    connection.row_factory = sqlite3.Row
    for row in connection.execute("SELECT a, 'text' AS b, x'00' AS c FROM t"):
        assert (row["a"], row["B"], row[2]) == (row[0], "text", b"\0")
    connection.close()


def test_nothing_grows() -> None:
    for _ in range(20):
        _work()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            _work()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 50_000, f"{grown} bytes after 200 connections"


_LOOKING_FINALISERS = """
import gc, sys
from oxlite import sqlite3

connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
connection.execute("CREATE TABLE t(a)")
cursor = connection.cursor()
looked = []

class Finaliser:
    def __call__(self, *arguments):
        return 0

    def __del__(self):
        # All that could be locked or borrowed while the object is let go.
        connection.row_factory, connection.text_factory, connection.autocommit
        connection.isolation_level, connection.statement_timeout, connection.in_transaction
        cursor.row_factory, cursor.description, cursor.rowcount
        connection.row_factory = connection.row_factory
        cursor.row_factory = cursor.row_factory
        connection.set_trace_callback(None)
        looked.append(connection.execute("SELECT count(*) FROM t").fetchone())

INSTALL = {
    "row_factory": lambda one: setattr(connection, "row_factory", one),
    "text_factory": lambda one: setattr(connection, "text_factory", one),
    "cursor's row_factory": lambda one: setattr(cursor, "row_factory", one),
    "trace": connection.set_trace_callback,
    "authorizer": connection.set_authorizer,
    "progress": lambda one: connection.set_progress_handler(one, 10),
    "update": connection.set_update_hook,
    "commit": connection.set_commit_hook,
    "rollback": connection.set_rollback_hook,
    "wal": connection.set_wal_hook,
    "function": lambda one: connection.create_function("f", 0, one),
    "collation": lambda one: connection.create_collation("c", one),
}
for name, install in INSTALL.items():
    print(name, flush=True)
    install(Finaliser())
    install(None)
    gc.collect()
    assert looked, name
    looked.clear()
INSTALL["row_factory"](Finaliser())
INSTALL["cursor's row_factory"](Finaliser())
print("again", flush=True)
cursor.__init__(connection)
assert looked
Finaliser.__del__ = lambda self: looked.append(connection.row_factory)
INSTALL["row_factory"](Finaliser())
INSTALL["commit"](Finaliser())
looked.clear()
connection.__init__(":memory:")
assert looked == [None, None], looked
"""


def test_a_finaliser_may_look_at_what_lets_its_object_go(child: Callable[..., str]) -> None:
    child(_LOOKING_FINALISERS)
