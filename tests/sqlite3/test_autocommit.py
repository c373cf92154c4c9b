"""Transaction control by ``autocommit``, on every version of Python.

The standard library has it since 3.12; there every script of steps must come to the same on both.
What must come out is written down here too, since 3.11 has nothing to compare with.
"""

import contextlib
import sqlite3 as stdlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import oxlite
from oxlite import sqlite3

# A module, an object or an argument of any kind: what is compared, or wrong on purpose.
Untyped = Any

LEGACY = sqlite3.LEGACY_TRANSACTION_CONTROL
HAS_STDLIB = sys.version_info >= (3, 12)

Step = Callable[[Any], object]

STEPS: dict[str, Step] = {
    "insert": lambda c: c.execute("INSERT INTO t VALUES (1)").rowcount,
    "insert many": lambda c: c.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)]).rowcount,
    "insert returning": lambda c: c.execute("INSERT INTO t VALUES (1) RETURNING a").fetchone(),
    "select": lambda c: c.execute("SELECT count(*) FROM t").fetchone(),
    "create": lambda c: c.execute("CREATE TABLE IF NOT EXISTS u(a)").rowcount,
    "begin": lambda c: c.execute("BEGIN").rowcount,
    "commit by SQL": lambda c: c.execute("COMMIT").rowcount,
    "rollback by SQL": lambda c: c.execute("ROLLBACK").rowcount,
    "savepoint": lambda c: c.execute("SAVEPOINT s").rowcount,
    "release": lambda c: c.execute("RELEASE s").rowcount,
    "commit": lambda c: c.commit(),
    "rollback": lambda c: c.rollback(),
    "script": lambda c: c.executescript("INSERT INTO t VALUES (3)").rowcount,
    "script with a transaction": lambda c: (
        c.executescript("BEGIN; INSERT INTO t VALUES (4); COMMIT").rowcount
    ),
    "vacuum": lambda c: c.execute("VACUUM").rowcount,
    "pragma": lambda c: c.execute("PRAGMA foreign_keys = ON").fetchall(),
    "block": lambda c: _block(c, None),
    "block that raises": lambda c: _block(c, KeyError),
    "autocommit = True": lambda c: setattr(c, "autocommit", True),
    "autocommit = False": lambda c: setattr(c, "autocommit", False),
    "autocommit = legacy": lambda c: setattr(c, "autocommit", LEGACY),
    "wrong value": lambda c: setattr(c, "autocommit", 2),
}


def _block(connection: Untyped, error: type[Exception] | None) -> None:
    with contextlib.suppress(KeyError), connection:
        connection.execute("INSERT INTO t VALUES (5)")
        if error:
            raise error


def observe(module: Untyped, connection: Untyped, steps: list[str]) -> list[object]:
    """What each step comes to, and the state after it."""
    seen: list[object] = []
    for name in steps:
        try:
            outcome: object = STEPS[name](connection)
        except (module.Error, ValueError) as error:
            outcome = type(error).__name__, str(error)
        state = connection.autocommit, connection.in_transaction, connection.isolation_level
        seen.append((name, outcome, state))
    return seen


def run(
    module: Untyped, path: Path, control: object, level: object, steps: list[str]
) -> list[object]:
    """The observations, and what another connection finds in the file at the end."""
    with contextlib.closing(module.connect(path, isolation_level=None)) as maker:
        maker.execute("CREATE TABLE t(a)")
    connection = module.connect(path, isolation_level=level, autocommit=control)
    with contextlib.closing(connection):
        seen = observe(module, connection, steps)
    with contextlib.closing(module.connect(path)) as reader:
        seen.append(reader.execute("SELECT a FROM t ORDER BY a").fetchall())
    return seen


SCRIPTS: list[list[str]] = [
    ["insert", "commit", "insert", "rollback", "insert"],
    ["insert many", "insert returning", "select", "commit", "select"],
    ["begin", "insert", "commit", "begin", "insert", "rollback"],
    ["begin", "begin", "commit by SQL", "insert", "rollback by SQL", "select"],
    ["commit by SQL", "commit", "rollback by SQL", "rollback", "insert", "commit"],
    ["savepoint", "insert", "release", "rollback", "savepoint", "insert", "commit", "release"],
    ["insert", "script", "rollback", "insert", "script with a transaction", "commit"],
    ["script with a transaction", "insert", "vacuum", "commit", "vacuum", "pragma"],
    ["block", "block that raises", "select", "insert", "block", "insert", "block that raises"],
    ["create", "rollback", "create", "commit", "rollback"],
    ["insert", "autocommit = True", "insert", "rollback", "autocommit = False", "insert"],
    ["autocommit = False", "insert", "rollback", "insert", "commit", "autocommit = legacy",
     "insert"],
    ["autocommit = False", "autocommit = False", "commit by SQL", "autocommit = False", "insert"],
    ["insert", "autocommit = legacy", "rollback", "autocommit = True", "begin", "insert",
     "autocommit = True", "insert"],
    ["insert", "autocommit = legacy", "insert", "commit", "autocommit = False", "wrong value",
     "insert", "autocommit = legacy", "commit", "select"],
]  # fmt: skip


@pytest.mark.skipif(not HAS_STDLIB, reason="the standard library has autocommit since 3.12")
@pytest.mark.parametrize("level", ["", "IMMEDIATE", None])
@pytest.mark.parametrize("control", [True, False, LEGACY])
@pytest.mark.parametrize("steps", SCRIPTS, ids=lambda steps: "; ".join(steps))
def test_as_the_standard_library(
    tmp_path: Path, control: object, level: object, steps: list[str]
) -> None:
    theirs = run(stdlib, tmp_path / "theirs.db", control, level, steps)
    ours = run(sqlite3, tmp_path / "ours.db", control, level, steps)
    assert ours == theirs


@pytest.mark.skipif(not HAS_STDLIB, reason="the standard library has autocommit since 3.12")
@pytest.mark.parametrize(
    ("control", "after"),
    [(control, after) for control in (True, False, LEGACY) for after in ("EXCLUSIVE", None)],
)
def test_setting_the_isolation_level_too(control: object, after: object) -> None:
    """``None`` commits as ``commit()`` does: with ``True`` not at all."""
    outcomes = []
    for module in (stdlib, sqlite3):
        connection = module.connect(":memory:", isolation_level="DEFERRED", autocommit=control)
        with contextlib.closing(connection):
            if not connection.in_transaction:
                connection.execute("BEGIN")
            connection.isolation_level = after
            outcomes.append((connection.in_transaction, connection.autocommit))
    assert outcomes[1] == outcomes[0]


@pytest.fixture
def table(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that always has a transaction open, to a file with the table ``t(a)``."""
    with contextlib.closing(sqlite3.connect(path)) as maker:
        maker.execute("CREATE TABLE t(a)")
    connection = sqlite3.connect(path, autocommit=False)
    yield connection
    connection.close()


def committed(path: Path) -> list[tuple[object, ...]]:
    """What another connection sees."""
    with contextlib.closing(sqlite3.connect(path)) as reader:
        return reader.execute("SELECT a FROM t ORDER BY a").fetchall()


def test_the_default_is_legacy() -> None:
    for connect in (sqlite3.connect, oxlite.connect):
        with contextlib.closing(connect(":memory:")) as connection:
            assert connection.autocommit == LEGACY == -1
            assert type(connection.autocommit) is int


def test_false_keeps_a_transaction_open(table: sqlite3.Connection, path: Path) -> None:
    assert table.autocommit is False
    assert table.in_transaction
    for end, rows in ((table.rollback, []), (table.commit, [(1,)])):
        table.execute("INSERT INTO t VALUES (1)")
        assert committed(path) == []
        end()
        assert table.in_transaction
        assert committed(path) == rows


def test_false_rolls_back_when_closed(table: sqlite3.Connection, path: Path) -> None:
    table.execute("INSERT INTO t VALUES (1)")
    table.close()
    table.close()
    assert committed(path) == []


def test_false_and_a_script(table: sqlite3.Connection, path: Path) -> None:
    """Nothing is committed before it."""
    table.execute("INSERT INTO t VALUES (1)")
    table.executescript("INSERT INTO t VALUES (2)")
    assert table.in_transaction
    table.rollback()
    assert committed(path) == []


def test_false_takes_no_lock_before_it_is_needed(table: sqlite3.Connection, path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, timeout=0)) as other, other:
        other.execute("INSERT INTO t VALUES (2)")
    assert table.execute("SELECT a FROM t").fetchall() == [(2,)]


def test_true_leaves_transactions_to_sql(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, autocommit=True)) as connection:
        assert connection.autocommit is True
        connection.execute("CREATE TABLE t(a)")
        connection.execute("INSERT INTO t VALUES (1)")
        assert not connection.in_transaction
        assert committed(path) == [(1,)]
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (2)")
        connection.commit()
        connection.rollback()
        with connection:
            pass
        assert connection.in_transaction
        assert committed(path) == [(1,)]
        connection.execute("COMMIT")
        assert committed(path) == [(1,), (2,)]


def test_true_commits_what_is_open(table: sqlite3.Connection, path: Path) -> None:
    table.execute("INSERT INTO t VALUES (1)")
    table.autocommit = True
    assert not table.in_transaction
    assert committed(path) == [(1,)]


def test_a_commit_that_fails_leaves_everything_as_it_was(
    table: sqlite3.Connection, path: Path
) -> None:
    """The reader keeps the writer of a rollback journal from committing."""
    with contextlib.closing(sqlite3.connect(path, timeout=0, autocommit=False)) as writer:
        writer.execute("INSERT INTO t VALUES (1)")
        assert table.execute("SELECT a FROM t").fetchall() == []
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            writer.autocommit = True
        assert writer.autocommit is False
        assert writer.in_transaction
        table.rollback()
        writer.autocommit = True
    assert committed(path) == [(1,)]


@pytest.mark.parametrize("value", [2, -2, "yes", None, 1.0, 0.5, [], 0, 1, -1.0])
def test_a_value_that_is_none_of_the_three(path: Path, value: object) -> None:
    outcomes: list[str | None] = []
    for module in (stdlib, sqlite3) if HAS_STDLIB else (sqlite3,):
        try:
            module.connect(":memory:", autocommit=value).close()
            outcomes.append(None)
        except ValueError as error:
            outcomes.append(str(error))
        with contextlib.closing(module.connect(":memory:")) as connection:
            try:
                connection.autocommit = value
                outcomes.append(None)
            except ValueError as error:
                outcomes.append(str(error))
    assert set(outcomes) == {
        "autocommit must be True, False, or sqlite3.LEGACY_TRANSACTION_CONTROL"
    }


def test_it_cannot_be_deleted(connection: sqlite3.Connection) -> None:
    with pytest.raises(AttributeError):
        del connection.autocommit


@pytest.mark.parametrize("value", [True, False, LEGACY])
def test_of_a_closed_connection(connection: sqlite3.Connection, value: Untyped) -> None:
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.autocommit = value
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.autocommit  # noqa: B018


def test_in_another_thread(connection: sqlite3.Connection, in_thread: Callable[..., Any]) -> None:
    for act in (lambda: connection.autocommit, lambda: setattr(connection, "autocommit", True)):
        with pytest.raises(sqlite3.ProgrammingError, match="created in a thread"):
            in_thread(act)


def test_the_profile_is_applied_before_the_transaction_begins(path: Path) -> None:
    with contextlib.closing(oxlite.connect(path, autocommit=False)) as connection:
        assert connection.in_transaction
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
