"""Oxlite against the standard library's ``sqlite3``: the same scripts, the same observations.

Each script runs on both modules, each on a database of its own (two copies of SQLite must never
share a file in one process), and everything that can be observed is compared: rows, description,
row counts, transaction state, class and code of an error. The random scripts are seeded.
"""

import itertools
import random
import sqlite3 as stdlib
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oxlite import sqlite3

# One step: the method of the connection, and its arguments.
Step = tuple[Any, ...]
Observation = tuple[object, ...]

SCRIPTS: dict[str, list[Step]] = {
    "values": [
        ("execute", "SELECT 1, 1.5, 'text', x'00', NULL, -0.0, 9e999, 9223372036854775807"),
        ("execute", "SELECT ?, ?, ?, ?, ?", (1, 1.5, "é\0ü", b"\0", None)),
        ("execute", "SELECT typeof(?1), ?1", (True,)),
        ("execute", "SELECT typeof(?1), ?1", (float("nan"),)),
        ("execute", "SELECT typeof(?1), ?1", (bytearray(b"ab"),)),
        ("execute", "SELECT typeof(?1), ?1", (memoryview(b"ab"),)),
        ("execute", "SELECT typeof(?1), length(?1)", (b"",)),
        ("execute", "SELECT ?", (2**63,)),
        ("execute", "SELECT ?", (-(2**63),)),
        ("execute", "SELECT ?", ("\ud800",)),
        ("execute", "SELECT ?", (object(),)),
        ("execute", "SELECT ?", (1j,)),
        ("execute", "SELECT CAST(x'ff' AS TEXT)"),
    ],
    "parameters": [
        ("execute", "SELECT ?, ?", (1,)),
        ("execute", "SELECT ?, ?", (1, 2, 3)),
        ("execute", "SELECT ?", ()),
        ("execute", "SELECT ?"),
        ("execute", "SELECT 1", (1,)),
        ("execute", "SELECT ?, ?", "ab"),
        ("execute", "SELECT ?, ?", [1, 2]),
        ("execute", "SELECT ?", 5),
        ("execute", "SELECT ?", {1}),
        ("execute", "SELECT ?", iter(())),
        ("execute", "SELECT ?2, ?1", (1, 2)),
        ("execute", "SELECT ?3", (1, 2, 3)),
        ("execute", "SELECT ?3", (3,)),
        ("execute", "SELECT :a, @b, $c", {"a": 1, "b": 2, "c": 3}),
        ("execute", "SELECT :a, :b", {"a": 1}),
        ("execute", "SELECT :a", {":a": 1}),
        ("execute", "SELECT ?", {"a": 1}),
        ("execute", "SELECT ?1, ?2", {"1": 1, "2": 2}),
        ("execute", "SELECT :a", {"a": object()}),
        ("execute", "SELECT :a", type("Missing", (dict,), {"__missing__": lambda *_: 7})()),
        ("execute", "", (1,)),
    ],
    "columns": [
        ("execute", 'SELECT 1 AS a, 2 AS \'b c\', 3 "d [x]", 1 + 1, count(*), 5 AS ""'),
        ("execute", "CREATE TABLE t(a, b)"),
        ("execute", "SELECT * FROM t"),
        ("execute", "SELECT rowid, * FROM t"),
        ("execute", "SELECT t.a, x.b FROM t, t AS x"),
        ("execute", "INSERT INTO t VALUES (1, 2) RETURNING a AS one, b"),
        ("execute", "PRAGMA table_info(t)"),
        ("execute", "ALTER TABLE t ADD COLUMN c"),
        ("execute", "SELECT * FROM t"),
        ("execute", "ALTER TABLE t RENAME COLUMN c TO d"),
        ("execute", "SELECT * FROM t"),
    ],
    "nothing": [
        ("execute", ""),
        ("execute", " \n"),
        ("execute", ";"),
        ("execute", "-- comment"),
        ("execute", "/* comment */"),
        ("execute", "SELECT 1;"),
        ("execute", "SELECT 1; SELECT 2"),
        ("execute", "SELECT 1; nonsense"),
        ("execute", "nonsense; SELECT 1"),
        ("execute", "SELECT 1\0"),
        ("execute", "SELECT '\ud800'"),
        ("execute", None),
        ("execute", b"SELECT 1"),
        ("execute",),
        ("executemany", "", [(1,)]),
        ("executemany", "", []),
        ("executemany", "-- comment", []),
        ("executemany", "SELECT 1", []),
        ("executemany", "SELECT 1; SELECT 2", []),
        ("executemany", "INSERT INTO gone VALUES (1)", []),
        ("executescript", ""),
        ("executescript", "-- comment"),
        ("executescript", "SELECT 1; nonsense"),
        ("executescript", "SELECT 1\0"),
        ("executescript", b""),
    ],
    "counts": [
        ("execute", "CREATE TABLE t(a INTEGER PRIMARY KEY, b)"),
        ("execute", "INSERT INTO t(b) VALUES (1), (2), (3)"),
        ("execute", "INSERT OR IGNORE INTO t VALUES (1, 1)"),
        ("execute", "REPLACE INTO t VALUES (1, 9)"),
        ("execute", "UPDATE t SET b = 5 WHERE a > 1"),
        ("execute", "UPDATE t SET b = 5 WHERE 0"),
        ("execute", "SELECT count(*) FROM t"),
        ("execute", "WITH w AS (SELECT 7) INSERT INTO t(b) SELECT * FROM w"),
        ("execute", " -- comment\n/* another */ DELETE FROM t WHERE a = 2"),
        ("execute", "INSERT INTO t(b) VALUES (1), (2) RETURNING a"),
        ("execute", "UPDATE t SET b = 0 RETURNING a, b"),
        ("execute", "UPDATE t SET b = 0 WHERE 0 RETURNING a, b"),
        ("execute", "DELETE FROM t WHERE a > 2 RETURNING a"),
        ("executemany", "INSERT INTO t(b) VALUES (?)", [(1,), (2,), (3,)]),
        ("executemany", "UPDATE t SET b = ? WHERE b = ?", [(7, 1), (8, 2), (9, 99)]),
        ("executemany", "DELETE FROM t WHERE a = ?", []),
        ("execute", "DELETE FROM t"),
        ("execute", "CREATE TABLE u AS SELECT 1 AS x UNION SELECT 2"),
        ("execute", "DROP TABLE t"),
        ("execute", "ANALYZE"),
        ("execute", "EXPLAIN QUERY PLAN SELECT 1"),
    ],
    "constraints": [
        ("execute", "PRAGMA foreign_keys = ON"),
        (
            "execute",
            "CREATE TABLE t(i INTEGER PRIMARY KEY, u UNIQUE, n NOT NULL, c CHECK (c < 9), "
            "f REFERENCES t(i))",
        ),
        ("execute", "CREATE TABLE w(k PRIMARY KEY) WITHOUT ROWID"),
        ("execute", "INSERT INTO t VALUES (1, 1, 1, 1, NULL)"),
        ("execute", "INSERT INTO t VALUES (1, 2, 1, 1, NULL)"),
        ("execute", "INSERT INTO t VALUES (2, 1, 1, 1, NULL)"),
        ("execute", "INSERT INTO t VALUES (2, 2, NULL, 1, NULL)"),
        ("execute", "INSERT INTO t VALUES (2, 2, 1, 9, NULL)"),
        ("execute", "INSERT INTO t VALUES (2, 2, 1, 1, 77)"),
        ("execute", "INSERT INTO t VALUES ('x', 2, 1, 1, NULL)"),
        ("executemany", "INSERT INTO w VALUES (?)", [("a",), ("b",), ("a",), ("c",)]),
        ("execute", "SELECT * FROM w"),
        ("execute", "CREATE TRIGGER r BEFORE DELETE ON t BEGIN SELECT RAISE(FAIL, 'no'); END"),
        ("execute", "DELETE FROM t"),
        ("execute", "INSERT OR ROLLBACK INTO w VALUES ('a')"),
        ("execute", "SELECT count(*) FROM w"),
        ("commit",),
    ],
    "mistakes": [
        ("execute", "SELECT * FROM gone"),
        ("execute", "SELECT gone"),
        ("execute", "SELECT no_such_function(1)"),
        ("execute", "SELECT abs()"),
        ("execute", "SELECT abs(-9223372036854775808)"),
        ("execute", "SELECT zeroblob(1000000001)"),
        ("execute", "COMMIT"),
        ("execute", "ROLLBACK"),
        ("execute", "RELEASE gone"),
        ("execute", "DETACH gone"),
        ("execute", "ATTACH '/no/such/place/x.db' AS x"),
        ("execute", "PRAGMA no_such_pragma"),
        ("execute", "CREATE TABLE sqlite_mine(a)"),
        ("execute", "SELECT 'never closed"),
        ("execute", "SELECT 1 WHERE x'1'"),
        ("execute", "SELECT load_extension('x')"),
        ("execute", "SELECT json('{')"),
        ("execute", "SELECT 'a' LIKE 'b' ESCAPE 'cd'"),
        ("execute", 'SELECT "a string"'),
        ("execute", "VACUUM"),
        ("execute", "REINDEX gone"),
    ],
    "transactions": [
        ("execute", "CREATE TABLE t(a)"),
        ("execute", "INSERT INTO t VALUES (1)"),
        ("rollback",),
        ("execute", "SELECT * FROM t"),
        ("execute", "INSERT INTO t VALUES (2)"),
        ("execute", "CREATE TABLE u(a)"),
        ("commit",),
        ("commit",),
        ("rollback",),
        ("execute", "BEGIN"),
        ("execute", "BEGIN"),
        ("execute", "INSERT INTO t VALUES (3)"),
        ("execute", "SAVEPOINT s"),
        ("execute", "DELETE FROM t"),
        ("execute", "ROLLBACK TO s"),
        ("execute", "RELEASE s"),
        ("execute", "SELECT a FROM t"),
        ("executescript", "INSERT INTO t VALUES (4); SELECT 1"),
        ("execute", "SELECT a FROM t"),
        ("executescript", "BEGIN; INSERT INTO t VALUES (5)"),
        ("execute", "ROLLBACK"),
        ("execute", "WITH w AS (SELECT 6) INSERT INTO t SELECT * FROM w"),
        ("execute", "EXPLAIN DELETE FROM t"),
        ("execute", "PRAGMA user_version = 3"),
        ("execute", "REPLACE INTO t VALUES (7)"),
        ("execute", "VACUUM"),
        ("rollback",),
        ("execute", "VACUUM"),
        ("execute", "SELECT a FROM t"),
    ],
    "attached": [
        ("execute", "ATTACH ':memory:' AS other"),
        ("execute", "CREATE TABLE other.t(a)"),
        ("execute", "INSERT INTO other.t VALUES (1)"),
        ("execute", "DETACH other"),
        ("commit",),
        ("execute", "SELECT * FROM other.t"),
        ("execute", "DETACH other"),
        ("execute", "SELECT * FROM other.t"),
    ],
}


def error_of(error: Exception) -> Observation:
    """What is compared of an error: its class, and SQLite's code where it has one."""
    return "error", type(error).__name__, getattr(error, "sqlite_errorname", None)


def names(cursor: sqlite3.Cursor) -> list[str] | None:
    return None if cursor.description is None else [column[0] for column in cursor.description]


def same(value: object) -> object:
    """Rows compared by type and by text, so that 1 is not 1.0 and -0.0 is not 0.0."""
    if isinstance(value, (list, tuple)):
        return [same(item) for item in value]
    return type(value).__name__, repr(value)


def observe(connection: sqlite3.Connection, step: Step) -> Observation:
    """Runs one step and returns everything that can be seen of it."""
    method, *arguments = step
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a newer Python discourages still works
            cursor = getattr(connection, method)(*arguments)
        if cursor is None:
            outcome: Observation = ("done",)
        else:
            before = cursor.rowcount
            outcome = (
                names(cursor),
                before,
                same(cursor.fetchall()),
                cursor.rowcount,
                cursor.lastrowid,
            )
    except Exception as error:
        outcome = error_of(error)
    return *outcome, connection.in_transaction, connection.total_changes


@pytest.mark.parametrize("isolation_level", ["", "IMMEDIATE", None])
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_does_the_same(name: str, isolation_level: str | None) -> None:
    ours = sqlite3.connect(":memory:", isolation_level=isolation_level)
    theirs = stdlib.connect(":memory:", isolation_level=isolation_level)
    try:
        for step in SCRIPTS[name]:
            expected = observe(theirs, step)
            assert observe(ours, step) == expected, step
    finally:
        ours.close()
        theirs.close()


class Player:
    """Plays random moves on a few cursors of one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.connection.executescript(
            "PRAGMA synchronous = OFF;"
            "CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE, c NOT NULL DEFAULT 0)"
        )
        self.cursors = [self.connection.cursor() for _ in range(3)]

    def play(self, move: Step) -> Observation:
        kind, *rest = move
        try:
            if kind == "connection":
                value = getattr(self.connection, rest[0])(*rest[1:])
                outcome: Observation = ("nothing" if value is None else value.rowcount,)
            elif kind == "level":
                if self.connection.in_transaction:
                    # Its commit may fail; the standard library changes the level all the same.
                    return ("left alone",)
                self.connection.isolation_level = rest[0]
                outcome = (self.connection.isolation_level,)
            else:
                index, method, *arguments = rest
                cursor = self.cursors[index]
                value = getattr(cursor, method)(*arguments)
                outcome = (
                    "cursor" if value is cursor else same(value),
                    names(cursor),
                    cursor.rowcount,
                    cursor.lastrowid,
                )
        except Exception as error:
            outcome = error_of(error)
        return *outcome, self.connection.in_transaction, self.connection.total_changes


def moves(chance: random.Random, number: int) -> Iterable[Step]:
    """Reading is sorted first, so that what a cursor gives is fixed when it is executed."""

    def value() -> object:
        return chance.choice([None, 0, 1, chance.randrange(40), "x", 0.5, b"y", 2**40])

    statements: list[Callable[[], Step]] = [
        lambda: ("execute", "SELECT * FROM t ORDER BY a + 0"),
        lambda: ("execute", "SELECT b, c FROM t WHERE a > ? ORDER BY +b", (chance.randrange(40),)),
        lambda: ("execute", "SELECT count(*) AS n, :x FROM t", {"x": value()}),
        lambda: ("execute", "INSERT INTO t(b, c) VALUES (?, ?)", (value(), value())),
        lambda: ("execute", "INSERT INTO t(b) VALUES (?) RETURNING a, b", (value(),)),
        lambda: ("execute", "REPLACE INTO t VALUES (?, ?, 1)", (chance.randrange(40), value())),
        lambda: ("execute", "INSERT OR IGNORE INTO t(b) VALUES (?)", (value(),)),
        lambda: ("execute", "INSERT OR ROLLBACK INTO t(b, c) VALUES (?, 1)", (value(),)),
        lambda: ("execute", "UPDATE t SET c = ? WHERE a % 3 = 1", (value(),)),
        lambda: ("execute", "DELETE FROM t WHERE a > 30"),
        lambda: (
            "executemany",
            "INSERT INTO t(b) VALUES (?)",
            [(value(),) for _ in range(chance.randrange(1, 5))],
        ),
        lambda: ("execute", "SELECT nonsense"),
        lambda: ("execute", "SELECT ?, ?", (1,)),
        # Not "": after an error, the standard library of Python 3.12 and 3.13 raises it once more.
        lambda: ("execute", chance.choice(["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s"])),
        lambda: ("execute", chance.choice(["ROLLBACK TO s", "RELEASE s"])),
        lambda: ("fetchone",),
        lambda: ("fetchone",),
        lambda: ("fetchmany", chance.randrange(1, 5)),
        lambda: ("fetchall",),
    ]
    for _ in range(number):
        what = chance.random()
        if what < 0.06:
            yield "connection", chance.choice(["commit", "rollback"])
        elif what < 0.07:
            yield "connection", "executescript", f"INSERT INTO t(b) VALUES ('{what}'); SELECT 1"
        elif what < 0.09:
            yield "level", chance.choice(["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE", None])
        else:
            yield "cursor", chance.randrange(3), *chance.choice(statements)()


@pytest.mark.parametrize("isolation_level", ["", "IMMEDIATE", None])
@pytest.mark.parametrize("seed", range(6))
def test_random_moves_do_the_same(tmp_path: Path, seed: int, isolation_level: str | None) -> None:
    print(f"seed {seed}, Python {sys.version}")
    level = isolation_level
    ours = Player(sqlite3.connect(tmp_path / "ours.db", isolation_level=level))
    theirs = Player(stdlib.connect(tmp_path / "theirs.db", isolation_level=level))
    try:
        for number, move in enumerate(moves(random.Random(seed), 700)):
            expected = theirs.play(move)
            assert ours.play(move) == expected, f"move {number}: {move}"
    finally:
        ours.connection.close()
        theirs.connection.close()


def recorded(connect: Callable[[str], sqlite3.Connection]) -> list[object]:
    """What a cursor with unread rows gives after a script ran on it."""
    connection = connect(":memory:")
    connection.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3)")
    cursor = connection.execute("SELECT a FROM t")
    seen: list[object] = [cursor.fetchone()]
    cursor.executescript("INSERT INTO t SELECT 4 WHERE 0; SELECT 7")
    seen += [names(cursor), cursor.rowcount, cursor.fetchall()]
    connection.close()
    return seen


def test_a_script_leaves_the_unread_rows_of_its_cursor_alone() -> None:
    assert recorded(sqlite3.connect) == recorded(stdlib.connect)


@pytest.mark.parametrize("size", [0, -1, 1, 100])
def test_a_fetch_of_any_size(size: int) -> None:
    fetched = []
    for connect in (sqlite3.connect, stdlib.connect):
        connection = connect(":memory:")
        cursor = connection.execute("VALUES (1), (2), (3)")
        try:
            rows = cursor.fetchmany(size)
        except ValueError as error:
            rows = [str(error)]
        fetched.append([rows, cursor.fetchone()])
        connection.close()
    assert fetched[0] == fetched[1]


def test_executemany_of_nothing_leaves_the_same_transaction_state() -> None:
    states = []
    for connect in (sqlite3.connect, stdlib.connect):
        connection = connect(":memory:")
        connection.execute("CREATE TABLE t(a)")
        connection.executemany("INSERT INTO t VALUES (?)", [])
        states.append(connection.in_transaction)
        connection.close()
    assert states[0] == states[1]


class Asking:
    """A parameter set that does something with the connection when it is asked for its value."""

    def __init__(self, ask: Callable[[], object]) -> None:
        self.ask = ask

    def __len__(self) -> int:
        """One value."""
        return 1

    def __getitem__(self, index: int) -> object:
        """The value, made now."""
        return self.ask()


def nothing_but_numbers(connection: sqlite3.Connection) -> list[object]:
    return [(n,) for n in range(150)]


def with_a_bad_set(position: int, bad: object) -> Callable[[sqlite3.Connection], list[object]]:
    def sets(connection: sqlite3.Connection) -> list[object]:
        numbers: list[object] = [(n,) for n in range(150)]
        numbers.insert(position, bad)
        return numbers

    return sets


def asking(ask: Callable[[sqlite3.Connection], object]) -> Callable[..., list[object]]:
    def sets(connection: sqlite3.Connection) -> list[object]:
        numbers: list[object] = [(n,) for n in range(150)]
        numbers[70] = Asking(lambda: ask(connection))
        numbers[71] = Asking(lambda: ask(connection))
        return numbers

    return sets


def growing(connection: sqlite3.Connection) -> list[object]:
    numbers: list[object] = [(0,)]

    def grow() -> object:
        if len(numbers) < 150:
            numbers.extend([(1000 * len(numbers),), Asking(grow)])
        return len(numbers)

    numbers.append(Asking(grow))
    return numbers


LISTS: dict[str, Callable[[sqlite3.Connection], list[object]]] = {
    "numbers": nothing_but_numbers,
    "growing": growing,
    "counting": asking(
        lambda connection: connection.execute("SELECT -count(*) FROM t").fetchone()[0]
    ),
    "committing": asking(lambda connection: connection.commit()),
    "rolling back": asking(lambda connection: connection.rollback()),
    **{
        f"{type(bad).__name__} of {len(bad)} at {position}": with_a_bad_set(position, bad)
        for position in (0, 1, 63, 64, 65, 128, 150)
        for bad in ((), (1, 2), (object(),), [2**63], [5], {"a": 6})
    },
}


@pytest.mark.parametrize("isolation_level", ["", None])
@pytest.mark.parametrize("name", LISTS)
def test_a_long_list_of_sets_does_the_same(name: str, isolation_level: str | None) -> None:
    """However many sets are taken at once, each sees what those before it have done."""
    outcomes = []
    for connect in (sqlite3.connect, stdlib.connect):
        connection = connect(":memory:", isolation_level=isolation_level)
        connection.execute("CREATE TABLE t(a UNIQUE)")
        cursor = connection.cursor()
        try:
            cursor.executemany("INSERT INTO t VALUES (?)", LISTS[name](connection))
            outcome: Observation = ("done",)
        except Exception as error:
            outcome = error_of(error)
        outcomes.append(
            (
                *outcome,
                cursor.rowcount,
                connection.in_transaction,
                connection.total_changes,
                connection.execute("SELECT a FROM t ORDER BY rowid").fetchall(),
            )
        )
        connection.close()
    assert outcomes[0] == outcomes[1]


FETCHES: dict[str, Callable[[sqlite3.Cursor], object]] = {
    "fetchone": lambda cursor: cursor.fetchone(),
    "fetchmany": lambda cursor: cursor.fetchmany(2),
    "fetchall": lambda cursor: cursor.fetchall(),
    "next": lambda cursor: next(cursor, "end"),
}


@pytest.mark.parametrize("kind", ["text_factory", "row_factory"])
@pytest.mark.parametrize("fetch", FETCHES.values(), ids=FETCHES.keys())
def test_a_factory_that_fails_once_loses_the_same_rows(
    fetch: Callable[[sqlite3.Cursor], object], kind: str
) -> None:
    outcomes = []
    for connect in (sqlite3.connect, stdlib.connect):
        connection = connect(":memory:")
        calls = itertools.count(1)

        def make(*arguments: object, calls: Iterator[int] = calls) -> object:
            if next(calls) in {2, 4}:
                raise ZeroDivisionError
            return arguments[-1]

        setattr(connection, kind, make)
        cursor = connection.execute("VALUES ('a'), ('b'), ('c'), ('d')")
        seen: list[object] = []
        for _ in range(8):
            try:
                seen.append(fetch(cursor))
            except ZeroDivisionError:
                seen.append("failed")
        outcomes.append(seen)
        connection.close()
    assert outcomes[0] == outcomes[1]
