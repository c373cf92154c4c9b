"""The log of slow statements: what is logged, with what, when, and that nothing is without it."""

import asyncio
import contextlib
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy

import oxlite
import oxlite.aio

LOGGER = "oxlite.slow_statements"
SLOW = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"


class Told(logging.Handler):
    """Keeps the records; calls something with each."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.then: Callable[[logging.LogRecord], object] = lambda _record: None

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.then(record)

    @property
    def statements(self) -> list[str]:
        return [record.__dict__["sql"] for record in self.records]


@pytest.fixture
def told() -> Iterator[Told]:
    handler = Told()
    logger = logging.getLogger(LOGGER)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "app.db"
    with contextlib.closing(oxlite.connect(path)) as connection:
        connection.executescript("CREATE TABLE t (x, y); CREATE INDEX of_x ON t (x)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, i) for i in range(100)])
        connection.commit()
    return path


def connect(path: Path, slow_statement: float | None = 0, **options: object) -> oxlite.Connection:
    options = {"isolation_level": None, "slow_statement": slow_statement} | options
    return oxlite.connect(path, **options)  # type: ignore[arg-type]


def test_a_slow_statement_is_logged_with_its_plan_and_without_its_parameters(
    path: Path, told: Told
) -> None:
    connection = connect(path)
    told.records.clear()
    connection.execute("SELECT y FROM t\n WHERE x = ? ORDER BY y", ("secret",)).fetchall()
    [record] = told.records
    assert record.__dict__["sql"] == "SELECT y FROM t\n WHERE x = ? ORDER BY y"
    assert record.__dict__["plan"] == [
        "SEARCH t USING INDEX of_x (x=?)",
        "USE TEMP B-TREE FOR ORDER BY",
    ]
    assert record.__dict__["database"] == str(path)
    assert 0 < record.__dict__["seconds"] < 60
    assert record.__dict__["seconds_waited"] == 0
    assert record.levelno == logging.WARNING
    message = record.getMessage()
    assert message.endswith(
        f"in {path}: SELECT y FROM t WHERE x = ? ORDER BY y"
        " [SEARCH t USING INDEX of_x (x=?); USE TEMP B-TREE FOR ORDER BY]"
    )
    assert "secret" not in message
    connection.close()


def test_the_steps_of_a_plan_stand_in_their_tree(path: Path, told: Told) -> None:
    connection = connect(path)
    told.records.clear()
    connection.execute("SELECT x FROM t WHERE x IN (SELECT y FROM t) UNION SELECT 1").fetchall()
    assert told.records[0].__dict__["plan"] == [
        "MERGE (UNION)",
        "  LEFT",
        "    SEARCH t USING COVERING INDEX of_x (x=?)",
        "    LIST SUBQUERY 1",
        "      SCAN t",
        "  RIGHT",
        "    SCAN CONSTANT ROW",
    ]
    connection.close()


def test_what_is_quick_is_not_logged(path: Path, told: Told) -> None:
    connection = connect(path, 30)
    connection.execute("SELECT * FROM t").fetchall()
    connection.execute("INSERT INTO t VALUES (1, 2)")
    connection.close()
    with contextlib.closing(connect(path, None)) as without:
        without.execute(f"{SLOW} SELECT count(*) FROM n", (100_000,)).fetchone()
    assert told.records == []


def test_only_what_takes_as_long_is_logged(path: Path, told: Told) -> None:
    connection = connect(path, 0.05)
    connection.create_function("pause", 1, time.sleep)
    connection.execute("SELECT pause(0.06)").fetchone()
    connection.execute("SELECT 1").fetchone()
    assert told.statements == ["SELECT pause(0.06)"]
    assert told.records[0].__dict__["seconds"] >= 0.06
    connection.close()


def test_what_passes_between_two_rows_does_not_count(path: Path, told: Told) -> None:
    connection = connect(path, 0.2)
    rows = connection.execute("SELECT x FROM t")
    rows.fetchone()
    time.sleep(0.3)
    rows.fetchall()
    assert told.records == []
    connection.create_function("pause", 1, time.sleep)
    rows = connection.execute("SELECT pause(0.03) FROM t LIMIT 10")  # each of them is quick
    assert len(rows.fetchall()) == 10
    assert len(told.records) == 1
    connection.close()


def test_a_query_that_is_given_up_is_logged(path: Path, told: Told) -> None:
    connection = connect(path)
    told.records.clear()
    rows = connection.execute("SELECT x FROM t")
    rows.fetchone()
    assert told.records == []
    rows.close()
    assert told.statements == ["SELECT x FROM t"]
    connection.close()


def test_what_fails_is_logged(path: Path, told: Told) -> None:
    connection = connect(path, statement_timeout=0.05)
    told.records.clear()
    with pytest.raises(oxlite.StatementTimeout):
        connection.execute(f"{SLOW} SELECT count(*) FROM n", (10**9,)).fetchone()
    [record] = told.records
    assert record.__dict__["seconds"] > 0.03
    assert record.__dict__["plan"]
    connection.close()


def test_the_wait_for_the_write_lock_is_told(path: Path, told: Told) -> None:
    holder = connect(path, None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    waiting = connect(path, 0.2)
    release = threading.Timer(0.4, holder.execute, ("COMMIT",))
    release.start()
    waiting.execute("INSERT INTO t VALUES (1, 2)")
    release.join()
    [record] = told.records
    assert record.__dict__["seconds_waited"] >= 0.2
    assert record.__dict__["seconds"] >= record.__dict__["seconds_waited"]
    waiting.close()
    holder.close()


def test_in_a_transaction_that_writes_they_are_told_when_it_has_ended(
    path: Path, told: Told
) -> None:
    connection = connect(path)
    other = connect(path, None, timeout=0)
    written = []

    def write(record: logging.LogRecord) -> None:
        # As a handler does that logs to the database itself.
        other.execute("INSERT INTO t (x) VALUES (?)", (record.__dict__["sql"],))
        written.append(connection.in_transaction)

    told.then = write
    told.records.clear()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO t VALUES (1, 2)")
    connection.execute("SELECT 1").fetchone()
    assert told.records == []
    connection.execute("COMMIT")
    expected = ["BEGIN IMMEDIATE", "INSERT INTO t VALUES (1, 2)", "SELECT 1", "COMMIT"]
    assert told.statements == expected
    assert written == [False] * 4
    other.close()
    connection.close()


def test_who_is_told_may_use_the_connection(path: Path, told: Told) -> None:
    connection = connect(path)

    def count(record: logging.LogRecord) -> None:
        if "count" not in record.__dict__["sql"]:
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (101,)

    told.records.clear()
    told.then = count
    connection.execute("INSERT INTO t VALUES (1, 2)")
    assert told.statements == ["INSERT INTO t VALUES (1, 2)", "SELECT count(*) FROM t"]
    connection.close()


def test_what_a_handler_raises_is_not_the_statements(
    path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = connect(path)
    raised: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: raised.append(told.exc_value))

    def fail(_record: logging.LogRecord) -> None:
        raise KeyError("from the handler")

    told.then = fail
    connection.execute("INSERT INTO t VALUES (-1, -2)")
    told.then = lambda _record: None
    assert connection.execute("SELECT y FROM t WHERE x = -1").fetchone() == (-2,)
    assert "from the handler" in str(raised[0])
    connection.close()


@pytest.mark.parametrize("statement", ["SELECT 1", "INSERT INTO t VALUES (8, 8)", "COMMIT"])
def test_an_interrupt_in_a_handler_ends_the_program(path: Path, told: Told, statement: str) -> None:
    def interrupted(_record: logging.LogRecord) -> None:
        signal.raise_signal(signal.SIGINT)

    with contextlib.closing(connect(path)) as connection:
        if statement == "COMMIT":
            connection.execute("BEGIN")
        told.then = interrupted
        with pytest.raises(KeyboardInterrupt):
            connection.execute(statement).fetchall()
        told.then = lambda _record: None
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
        assert not connection.in_transaction


def test_a_statement_that_has_no_plan_is_logged_without(path: Path, told: Told) -> None:
    connection = connect(path)
    told.records.clear()
    for sql in ("CREATE TABLE u (z)", "PRAGMA user_version", "DROP TABLE u", "SAVEPOINT s"):
        connection.execute(sql).fetchall()
    assert [record.__dict__["plan"] for record in told.records] == [[]] * 4
    connection.close()


def test_asking_for_the_plan_is_nobodys_business(path: Path, told: Told) -> None:
    connection = connect(path)
    connection.execute("SELECT x FROM t").fetchall()
    seen: list[str] = []
    asked: list[int] = []
    connection.set_trace_callback(seen.append)
    connection.set_authorizer(lambda action, *_arguments: asked.append(action) or 0)
    told.records.clear()
    connection.execute("SELECT y FROM t").fetchall()
    assert seen == ["SELECT y FROM t"]
    assert told.records[0].__dict__["plan"] == ["SCAN t"]
    first = len(asked)
    with contextlib.closing(connect(path, None)) as without:
        without.set_authorizer(lambda action, *_arguments: asked.append(action) or 0)
        without.execute("SELECT y FROM t").fetchall()
    assert len(asked) - first == first
    connection.close()


def test_what_a_terminal_obeys_is_written_out_in_the_message(path: Path, told: Told) -> None:
    connection = connect(path)
    told.records.clear()
    connection.execute("SELECT '\x1b[2J\u202e'").fetchone()
    assert "\x1b" not in told.records[0].getMessage()
    assert "\\x1b[2J" in told.records[0].getMessage()
    long = "SELECT " + ", ".join("1" for _ in range(1000))
    connection.execute(long).fetchone()
    assert len(told.records[-1].getMessage()) < 1300
    assert told.statements[-1] == long
    connection.close()


def test_a_statement_inside_a_function_is_logged_by_itself(path: Path, told: Told) -> None:
    connection = connect(path)
    inner = connect(path)
    connection.create_function("other", 0, lambda: inner.execute("SELECT 7").fetchone()[0])
    told.records.clear()
    assert connection.execute("SELECT other()").fetchone() == (7,)
    assert sorted(told.statements) == ["SELECT 7", "SELECT other()"]
    inner.close()
    connection.close()


@pytest.mark.parametrize("value", [-1, -0.001, float("nan")])
def test_a_number_that_is_no_time_is_refused(path: Path, value: float) -> None:
    with pytest.raises(ValueError, match="slow_statement must be a number of seconds"):
        connect(path, value)
    with pytest.raises(TypeError, match="slow_statement"):
        connect(path, "slow")  # type: ignore[arg-type]
    with contextlib.closing(connect(path, float("inf"))) as connection:
        connection.execute("SELECT 1")


def test_each_door_takes_it(path: Path, told: Told) -> None:
    with contextlib.closing(oxlite.sqlite3.connect(path, slow_statement=0)) as drop_in:
        drop_in.execute("SELECT 'drop-in'").fetchall()
    with oxlite.Database(path, slow_statement=0) as database:
        database.query("SELECT 'query'")
        database.execute("INSERT INTO t VALUES ('execute', 1)")

    async def run() -> None:
        async with oxlite.aio.Database(path, slow_statement=0) as database:
            await database.query("SELECT 'asyncio'")

    asyncio.run(run())
    engine = sqlalchemy.create_engine(f"sqlite+oxlite:///{path}?slow_statement=0")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("SELECT 'SQLAlchemy'"))
    engine.dispose()
    assert {
        "SELECT 'drop-in'",
        "SELECT 'query'",
        "INSERT INTO t VALUES ('execute', 1)",
        "SELECT 'asyncio'",
        "SELECT 'SQLAlchemy'",
    } <= set(told.statements)
