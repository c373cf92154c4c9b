"""Authorizer, progress handler and trace written in Python; limits and switches."""

from collections.abc import Callable

import pytest

from oxlite import sqlite3

OK, DENY, IGNORE = 0, 1, 2
READ = 20
LIMIT_VARIABLE_NUMBER = 9
DBCONFIG_ENABLE_TRIGGER = 1003

LONG = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
    " SELECT count(*) FROM n"
)


@pytest.fixture
def table() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE t(a, b)")
    connection.execute("INSERT INTO t VALUES (1, 2)")
    return connection


def test_an_authorizer_is_asked_about_columns(table: sqlite3.Connection) -> None:
    asked = []

    def authorize(*question: object) -> int:
        asked.append(question)
        return IGNORE if question[:3] == (READ, "t", "b") else OK

    table.set_authorizer(authorize)
    assert table.execute("SELECT a, b FROM t").fetchall() == [(1, None)]
    assert (READ, "t", "a", "main", None) in asked
    table.set_authorizer(None)
    assert table.execute("SELECT a, b FROM t -- again").fetchall() == [(1, 2)]


@pytest.mark.parametrize("answer", [lambda *_: DENY, lambda *_: "yes", lambda *_: 1 / 0])
def test_whatever_is_not_clearly_allowed_is_denied(
    table: sqlite3.Connection, answer: Callable[..., object]
) -> None:
    table.set_authorizer(answer)
    with pytest.raises(sqlite3.DatabaseError, match=r"not authorized|prohibited"):
        table.execute("SELECT a FROM t")


def test_a_progress_handler_may_interrupt(table: sqlite3.Connection) -> None:
    calls = []
    table.set_progress_handler(lambda: calls.append(1), 1000)
    table.execute(LONG)
    assert len(calls) > 10
    table.set_progress_handler(lambda: True, 1000)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        table.execute(LONG)
    table.set_progress_handler(None, 1000)
    assert table.execute(LONG).fetchone() == (100000,)


def test_a_progress_handler_is_called_as_rarely_as_asked(table: sqlite3.Connection) -> None:
    counts = []
    for operations in (1000, 100_000):
        calls: list[int] = []
        table.set_progress_handler(lambda calls=calls: calls.append(1), operations)
        table.execute(LONG)
        counts.append(len(calls))
    assert 50 * counts[1] < counts[0]
    assert counts[1] > 0


def test_a_progress_handler_that_raises_interrupts(table: sqlite3.Connection) -> None:
    table.set_progress_handler(lambda: 1 / 0, 1000)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        table.execute(LONG)


def test_a_callback_cannot_use_the_connection_that_calls_it(table: sqlite3.Connection) -> None:
    """SQLite says what would happen is undefined."""
    errors = []

    def use() -> None:
        for act in (lambda: table.execute("SELECT 1"), table.commit, table.close):
            try:
                act()
            except sqlite3.ProgrammingError as error:
                errors.append(str(error))

    table.set_progress_handler(use, 10_000)
    table.execute(LONG)
    assert errors
    assert set(errors) == {"A callback of this kind cannot use the connection that calls it."}
    assert len(errors) % 3 == 0


def test_a_callback_may_look_at_its_connection(table: sqlite3.Connection) -> None:
    """As with the standard library; nothing of it calls SQLite to work."""
    seen = []

    def look(*_: object) -> int:
        autocommit = table.autocommit  # the standard library has it since 3.12
        assert autocommit == sqlite3.LEGACY_TRANSACTION_CONTROL
        seen.append((table.in_transaction, table.total_changes, table.isolation_level))
        return OK

    table.isolation_level = "IMMEDIATE"
    table.set_authorizer(look)
    table.set_trace_callback(look)
    table.set_commit_hook(look)
    table.set_rollback_hook(look)
    table.set_update_hook(look)
    table.set_preupdate_hook(look)
    table.set_progress_handler(look, 1)
    table.execute("INSERT INTO t VALUES (3, 4)")
    table.rollback()
    table.execute("INSERT INTO t VALUES (3, 4)")
    table.commit()
    assert {state[0] for state in seen} == {True, False}
    assert {state[1] for state in seen} >= {1, 2}
    assert {state[2] for state in seen} == {"IMMEDIATE"}


def test_a_statement_let_go_in_a_callback_waits_for_its_end(table: sqlite3.Connection) -> None:
    """Finalised there, it would commit in the middle of another one."""
    held = [table.execute("INSERT INTO t VALUES (5, 6), (7, 8) RETURNING a")]
    table.set_progress_handler(held.clear, 1)
    assert table.execute("SELECT count(*) FROM t").fetchone() == (3,)
    table.set_progress_handler(None, 1)
    assert not held
    assert not table.in_transaction
    assert table.execute("SELECT count(*) FROM t").fetchone() == (3,)


def test_a_trace_sees_the_parameters(table: sqlite3.Connection) -> None:
    traced: list[str] = []
    table.set_trace_callback(traced.append)
    table.execute("SELECT a FROM t WHERE a = ?", ("it's",))
    table.set_trace_callback(None)
    table.execute("SELECT 1")
    assert traced == ["SELECT a FROM t WHERE a = 'it''s'"]


def test_a_trace_that_raises_changes_nothing(table: sqlite3.Connection) -> None:
    table.set_trace_callback(lambda sql: 1 / 0)
    assert table.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_limits(table: sqlite3.Connection) -> None:
    before = table.getlimit(LIMIT_VARIABLE_NUMBER)
    assert table.setlimit(LIMIT_VARIABLE_NUMBER, 2) == before
    assert table.getlimit(LIMIT_VARIABLE_NUMBER) == 2
    with pytest.raises(sqlite3.OperationalError, match="too many SQL variables"):
        table.execute("SELECT ?, ?, ?", (1, 2, 3))
    assert table.setlimit(LIMIT_VARIABLE_NUMBER, -1) == 2
    with pytest.raises(sqlite3.ProgrammingError, match="'category' is out of bounds"):
        table.getlimit(1111)


def test_switches(table: sqlite3.Connection) -> None:
    assert table.getconfig(DBCONFIG_ENABLE_TRIGGER)
    table.setconfig(DBCONFIG_ENABLE_TRIGGER, False)
    assert not table.getconfig(DBCONFIG_ENABLE_TRIGGER)
    table.setconfig(DBCONFIG_ENABLE_TRIGGER)
    assert table.getconfig(DBCONFIG_ENABLE_TRIGGER)


@pytest.mark.parametrize("op", [0, -1, 1000, 1001, 99999])
def test_a_switch_of_another_kind_is_refused(table: sqlite3.Connection, op: int) -> None:
    """1000 and 1001 take other arguments: passing a flag would be undefined behaviour."""
    with pytest.raises(ValueError, match="unknown config"):
        table.getconfig(op)
