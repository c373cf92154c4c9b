"""The rows, the figures and the checks of inserts: what is wrong is found out."""

import itertools
import sqlite3
import uuid
from array import array
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError, VerificationError
from oxlite.bench.harness.databases import make_file, rows_of_file
from oxlite.bench.harness.outcomes import Errors, packed
from oxlite.bench.workloads.inserts import figures, verify, work
from oxlite.bench.workloads.inserts.figures import Outcome
from oxlite.bench.workloads.inserts.parts import kind
from oxlite.bench.workloads.inserts.work import InsertsParameters

SMALL = InsertsParameters(threads=(1, 2), inserts=60)
LOCKED = "OperationalError (SQLITE_BUSY): database is locked"
FULL_DISK = "OperationalError (SQLITE_FULL): database or disk is full"


def test_rows_depend_on_the_seed_alone() -> None:
    rows = work.rows(SMALL)
    assert rows == work.rows(replace(SMALL, mode="faithful", threads=(2,), timeout_seconds=1.0))
    assert rows[:4] == work.rows(replace(SMALL, inserts=4))
    assert rows != work.rows(replace(SMALL, seed=2))


def test_rows_are_what_the_published_benchmarks_insert() -> None:
    rows = work.rows(replace(SMALL, inserts=2_500))
    assert len({identifier for identifier, _, _ in rows}) == 2_500
    for identifier, created_at, username in rows:
        found = uuid.UUID(bytes=identifier)
        assert (found.version, found.variant) == (4, uuid.RFC_4122)
        assert datetime.fromisoformat(created_at).utcoffset() is not None
        assert created_at.endswith("Z")
        assert username.startswith("user")
    assert [row[1] for row in rows] == sorted(row[1] for row in rows)


def test_the_digest_is_the_same_in_every_version_of_python() -> None:
    digest = work.digest(work.rows(InsertsParameters()))
    assert digest == "c0ff82fa465697035aff8f09aef02bab0ccaabf250a99b4d26db2cdc0b2aacb4"


def test_shares_are_all_of_the_rows_once() -> None:
    rows = work.rows(SMALL)
    for threads in (1, 7, 60):
        shares = [work.share(rows, thread, threads) for thread in range(threads)]
        assert sorted(itertools.chain(*shares)) == sorted(rows)


@pytest.mark.parametrize(
    "changes",
    [
        {"threads": ()},
        {"threads": (0,)},
        {"threads": (1, 1001)},
        {"inserts": 1},
        {"duration_seconds": 0.0},
        {"duration_seconds": float("nan")},
        {"timeout_seconds": -1.0},
    ],
)
def test_parameters_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be"):
        replace(SMALL, **changes)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UsageError, match="--mode 'faithfull': did you mean 'faithful'"):
        replace(SMALL, mode="faithfull")


@pytest.mark.parametrize(("mode", "indexes"), [("sound", 1), ("faithful", 2)])
def test_the_redundant_index_is_there_in_the_faithful_mode_alone(
    mode: str, indexes: int, tmp_path: Path
) -> None:
    path = tmp_path / "i.db"
    make_file(path, "wal", partial(work.fill, mode=mode))
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("PRAGMA index_list(users)").fetchall()
        assert [row[2] for row in found] == [1] * indexes
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def outcome(numbers: Sequence[int], first_ms: int = 0) -> Outcome:
    """A thread whose inserts began every 10 ms and took 5, with these outcomes."""
    ended = [1_000_000 * (first_ms + 10 * place + 5) for place in range(len(numbers))]
    times_ns = array("Q", [5_000_000]) * len(numbers)
    return Outcome(times_ns, array("H", numbers), [LOCKED], array("Q", ended))


def test_a_rate_is_of_the_time_in_which_all_threads_are_at_work() -> None:
    # Ends at 5, 15, …, 95 ms and at 7, 17, …, 47 ms: counted from 10 to 47.
    found = [outcome([0] * 10), outcome([0, 0, 1, 0, 0], 2)]
    sample = figures.sample(found, 10_000_000)
    seconds = 0.037
    assert sample.detail["seconds"] == pytest.approx(seconds)
    assert sample.figures[figures.MOST.name] == pytest.approx(4 / seconds)
    assert sample.figures[figures.FEWEST.name] == pytest.approx(3 / seconds)
    assert sample.figures[figures.RATE.name] == pytest.approx((4 + 3) / seconds)
    assert sample.errors == {LOCKED: 1}
    assert sample.asked == 15
    assert len(sample.latencies_ns["insert"]) == 14
    assert sample.figures[figures.LONGEST.name] == 5.0
    assert figures.P99.name not in sample.figures  # too few


def test_a_thread_without_rows_is_no_rate() -> None:
    with pytest.raises(VerificationError, match="more --inserts"):
        figures.sample([outcome([0] * 10), outcome([0])], 10_000_000)


def test_what_a_worker_hands_over_is_read() -> None:
    found = [outcome([0, 1]), outcome([0], 3)]
    begun = (array("Q", (end - 5_000_000 for end in one.ended_ns)) for one in found)
    payload = packed(each for one in found for each in (next(begun), one.ended_ns, one.numbers))
    facts = {"counts": [2, 1], "errors": [LOCKED]}
    assert figures.unpack(facts, payload, 2) == found
    with pytest.raises(VerificationError, match="2 of 3 threads inserted"):
        figures.unpack(facts, payload, 3)
    with pytest.raises(VerificationError, match="1 of 2 threads inserted"):
        figures.unpack({**facts, "counts": [2, 0]}, payload, 2)
    for wrong in (payload[:-1], payload + b"1"):
        with pytest.raises(VerificationError, match="does not account for what it did"):
            figures.unpack(facts, wrong, 2)


@pytest.fixture
def worked(tmp_path: Path) -> tuple[Path, list[Sequence[work.Row]], list[Outcome]]:
    """A database into which two threads have inserted, one of them once in vain."""
    path = tmp_path / "inserts.db"
    make_file(path, "rollback", partial(work.fill, mode="faithful"))
    rows = work.rows(SMALL)
    shares = [work.share(rows, thread, 2) for thread in range(2)]
    found = [outcome([0, 1, 0]), outcome([0] * 4)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(work.INSERT, [shares[0][0], shares[0][2], *shares[1][:4]])
    return path, shares, found


def checked(worked: Any, *errors: str) -> tuple[int, str]:  # noqa: ANN401
    path, shares, found = worked
    table = rows_of_file(path, work.TABLE)
    found = [replace(one, errors=errors) for one in found]
    return len(table), verify.check_table(table, *verify.acknowledged(shares, found))


def test_the_right_table_is_accepted(worked: Any) -> None:  # noqa: ANN401
    _, shares, _ = worked
    rows, digest = checked(worked, LOCKED)
    assert rows == 6
    assert digest == work.digest(sorted([shares[0][0], shares[0][2], *shares[1][:4]]))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DELETE FROM users WHERE username = 'user0'", "has 5 rows, and 6 inserts"),
        ("INSERT INTO users VALUES(x'00', '', '')", "has 7 rows, and 6 inserts"),
        ("UPDATE users SET username = 'x' WHERE username = 'user1'", "not those that were"),
        ("UPDATE users SET id = x'00' WHERE username = 'user1'", "not those that were"),
    ],
)
def test_a_wrong_table_is_found_out(worked: Any, sql: str, message: str) -> None:  # noqa: ANN401
    with closing(sqlite3.connect(worked[0])) as connection, connection:
        connection.execute(sql)
    with pytest.raises(VerificationError, match=message):
        checked(worked, LOCKED)


def test_an_insert_that_failed_with_a_lock_must_not_be_there(worked: Any) -> None:  # noqa: ANN401
    path, shares, _ = worked
    checked(worked, FULL_DISK)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(work.INSERT, shares[0][1])
    checked(worked, FULL_DISK)
    with pytest.raises(VerificationError, match="has 7 rows, and 6 inserts"):
        checked(worked, LOCKED)


def test_errors_are_counted_by_kind() -> None:
    errors = Errors(kind)
    busy = sqlite3.OperationalError("database is locked: by process 7")
    assert errors.number(busy) == 1
    busy.sqlite_errorname = "SQLITE_BUSY"
    assert errors.number(busy) == errors.number(busy) == 2
    assert errors.kinds() == ["OperationalError: database is locked", LOCKED]
