"""SQL functions, aggregates, window functions and collations written in Python."""

import sys
import threading
from collections.abc import Callable

import pytest

from oxlite import sqlite3


@pytest.fixture
def memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:")


@pytest.mark.parametrize("value", [None, 0, -(2**63), 2**63 - 1, 1.5, "", "naïve \0", b"", b"\0x"])
def test_values_go_through_a_function_unchanged(memory: sqlite3.Connection, value: object) -> None:
    seen = []
    memory.create_function("same", 1, lambda x: seen.append(x) or x)
    assert memory.execute("SELECT same(?)", (value,)).fetchone() == (value,)
    assert seen == [value]
    assert type(seen[0]) is type(value)


def test_a_function_may_be_replaced_and_removed(memory: sqlite3.Connection) -> None:
    memory.create_function("f", 0, lambda: 1)
    memory.create_function("f", 0, lambda: 2)
    assert memory.execute("SELECT f()").fetchone() == (2,)
    memory.create_function("f", 0, None)
    with pytest.raises(sqlite3.OperationalError, match="no such function"):
        memory.execute("SELECT f()")


def test_any_number_of_arguments(memory: sqlite3.Connection) -> None:
    memory.create_function("count_of", -1, lambda *values: len(values))
    assert memory.execute("SELECT count_of(), count_of(1, 2, 3)").fetchone() == (0, 3)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda: 1 / 0, sqlite3.OperationalError, "user-defined function raised exception"),
        (lambda: object(), sqlite3.OperationalError, "user-defined function raised exception"),
        (lambda: 2**63, sqlite3.DataError, "too big"),
        (lambda: "\ud800", sqlite3.OperationalError, "user-defined function raised exception"),
    ],
)
def test_what_cannot_be_a_result_is_an_error(
    memory: sqlite3.Connection,
    function: Callable[[], object],
    error: type[Exception],
    message: str,
) -> None:
    memory.create_function("f", 0, function)
    with pytest.raises(error, match=message):
        memory.execute("SELECT f()")
    assert memory.execute("SELECT 1").fetchone() == (1,)


def test_memory_that_runs_out_in_a_function(memory: sqlite3.Connection) -> None:
    def exhausted() -> None:
        raise MemoryError

    memory.create_function("f", 0, exhausted)
    with pytest.raises(MemoryError):
        memory.execute("SELECT f()")


def test_the_exception_itself_is_shown_on_request(memory: sqlite3.Connection) -> None:
    shown = []
    memory.create_function("f", 0, lambda: 1 / 0)
    before = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: shown.append(unraisable.exc_type)
    try:
        for enable in (False, True):
            sqlite3.enable_callback_tracebacks(enable)
            with pytest.raises(sqlite3.OperationalError):
                memory.execute("SELECT f()")
    finally:
        sqlite3.enable_callback_tracebacks(False)
        sys.unraisablehook = before
    assert shown == [ZeroDivisionError]


def test_a_function_may_use_its_connection(memory: sqlite3.Connection) -> None:
    memory.execute("CREATE TABLE t(a)")
    memory.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
    memory.create_function("total", 0, lambda: memory.execute("SELECT sum(a) FROM t").fetchone()[0])
    assert memory.execute("SELECT a, total() FROM t").fetchall() == [(1, 3), (2, 3)]


def test_a_function_cannot_close_its_connection(memory: sqlite3.Connection) -> None:
    errors = []

    def close() -> int:
        try:
            memory.close()
        except sqlite3.Error as error:
            errors.append(str(error))
        return 7

    memory.create_function("close", 0, close)
    assert memory.execute("SELECT close()").fetchone() == (7,)
    assert len(errors) == 1
    assert "callback" in errors[0]
    memory.close()


def test_a_running_function_is_not_replaced(memory: sqlite3.Connection) -> None:
    def replace() -> str:
        try:
            memory.create_function("f", 0, lambda: "new")
        except sqlite3.OperationalError:
            return "refused"
        return "replaced"

    memory.create_function("f", 0, replace)
    assert memory.execute("SELECT f()").fetchone() == ("refused",)


def test_a_step_that_has_let_the_gil_go_takes_it_back_for_a_function(
    memory: sqlite3.Connection,
) -> None:
    """The second row computes for long with the GIL let go; then the function runs Python code."""
    ticks, stop = [0], threading.Event()

    def tick() -> None:
        while not stop.wait(0.0002):
            ticks[0] += 1

    calls = []
    memory.create_function("f", 1, lambda x: calls.append(x) or sum(range(x % 10 + 1)))
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        sql = (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)"
            " SELECT f(i) FROM n WHERE i % 100000 = 1"
        )
        cursor = memory.execute(sql)
        assert cursor.fetchall() == [(1,)] * 4
    finally:
        stop.set()
        thread.join()
    assert calls == [1, 100001, 200001, 300001]
    assert ticks[0] > 0


class Sum:
    def __init__(self) -> None:
        self.total = 0

    def step(self, value: int) -> None:
        self.total += value

    def inverse(self, value: int) -> None:
        self.total -= value

    def value(self) -> int:
        return self.total

    def finalize(self) -> int:
        return self.total


def test_an_aggregate_has_an_instance_for_each_group(memory: sqlite3.Connection) -> None:
    memory.create_aggregate("my_sum", 1, Sum)
    sql = "SELECT column1, my_sum(column2) FROM (VALUES (1, 10), (2, 20), (1, 1)) GROUP BY column1"
    assert memory.execute(sql).fetchall() == [(1, 11), (2, 20)]
    assert memory.execute("SELECT my_sum(1) WHERE 0").fetchone() == (None,)


def test_a_window_function_moves(memory: sqlite3.Connection) -> None:
    memory.create_window_function("my_sum", 1, Sum)
    sql = (
        "SELECT my_sum(column1) OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
        " FROM (VALUES (1), (2), (3), (4))"
    )
    assert memory.execute(sql).fetchall() == [(1,), (3,), (5,), (7,)]


@pytest.mark.parametrize("stop", ["execute", "close"])
def test_a_window_function_given_up_in_the_middle_fails_for_nobody(
    memory: sqlite3.Connection, stop: str
) -> None:
    ended = []

    def finalize(self: Sum) -> None:
        ended.append(self)
        raise MemoryError

    memory.create_window_function("my_sum", 1, type("Broken", (Sum,), {"finalize": finalize}))
    cursor = memory.execute(
        "SELECT my_sum(column1) OVER (ROWS 1 PRECEDING) FROM (VALUES (1), (2), (3))"
    )
    assert cursor.fetchone() == (1,)
    if stop == "close":
        cursor.close()
    else:
        assert cursor.execute("SELECT 7").fetchall() == [(7,)]
    assert ended
    assert memory.execute("SELECT 8").fetchall() == [(8,)]


@pytest.mark.parametrize("method", ["__init__", "step", "finalize"])
def test_an_aggregate_that_raises_names_the_method(memory: sqlite3.Connection, method: str) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    memory.create_aggregate("my_sum", 1, type("Broken", (Sum,), {method: broken}))
    with pytest.raises(sqlite3.OperationalError, match=f"'{method}' method raised error"):
        memory.execute("SELECT my_sum(1)").fetchall()


def test_an_aggregate_without_a_method_names_it(memory: sqlite3.Connection) -> None:
    memory.create_aggregate("empty", 1, type("Empty", (), {}))
    with pytest.raises(sqlite3.OperationalError, match="'step' method not defined"):
        memory.execute("SELECT empty(1)")


def test_a_collation_orders(memory: sqlite3.Connection) -> None:
    memory.create_collation("reverse", lambda a, b: (a < b) - (a > b))
    sql = "SELECT column1 FROM (VALUES ('a'), ('c'), ('b')) ORDER BY column1 COLLATE reverse"
    assert memory.execute(sql).fetchall() == [("c",), ("b",), ("a",)]
    memory.create_collation("reverse", None)
    with pytest.raises(sqlite3.OperationalError, match="no such collation"):
        memory.execute(sql)


def test_a_collation_that_raises_finds_all_equal(memory: sqlite3.Connection) -> None:
    memory.create_collation("broken", lambda a, b: 1 / 0)
    sql = "SELECT count(DISTINCT column1 COLLATE broken) FROM (VALUES ('a'), ('b'))"
    assert memory.execute(sql).fetchone() == (1,)


@pytest.mark.parametrize(
    "create",
    [
        lambda c: c.create_function("f", -100, lambda: 1),
        lambda c: c.create_aggregate("f", -100, Sum),
        lambda c: c.create_window_function("f", -100, Sum),
        lambda c: c.create_function("f" * 1000, 0, lambda: 1),
    ],
)
def test_what_sqlite_does_not_accept(
    memory: sqlite3.Connection, create: Callable[[sqlite3.Connection], None]
) -> None:
    with pytest.raises(
        sqlite3.DatabaseError, match=r"Error creating|misuse|between -1 and 1000, not -100"
    ):
        create(memory)


def test_callables_are_let_go(memory: sqlite3.Connection) -> None:
    class Function:
        def __call__(self) -> int:
            return 1

    function = Function()
    before = sys.getrefcount(function)
    memory.create_function("f", 0, function)
    assert sys.getrefcount(function) > before
    memory.create_function("f", 0, None)
    assert sys.getrefcount(function) == before
    memory.create_function("g", 0, function)
    memory.close()
    assert sys.getrefcount(function) == before
