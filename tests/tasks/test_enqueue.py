"""What is enqueued: in which transaction, when it is ready, and what is refused."""

import asyncio
import os
import re
import sqlite3 as stdlib
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import oxlite
from oxlite.tasks import Queue, TaskNotFound, TaskOptions, TaskUnsuccessful, store


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(tmp_path / "app.db") as queue:
        yield queue


def statuses(queue: Queue) -> list[str]:
    """Of all tasks, the first first."""
    return [one.status for one in reversed(queue.find(at_most=1000))]


def add(a: int, b: int = 0) -> int:
    return a + b


def test_a_task_waits_with_its_arguments(queue: Queue) -> None:
    task = queue.task(add)
    result = task.using(priority=3, queue_name="sums").enqueue(1, b=2)
    assert result.is_new
    assert (result.name, result.queue_name, result.priority) == (f"{__name__}.add", "sums", 3)
    assert (result.status, result.args, result.kwargs) == ("ready", [1], {"b": 2})
    assert result.enqueued_at is not None
    assert abs(datetime.now(UTC) - result.enqueued_at) < timedelta(minutes=1)
    assert (result.started_at, result.finished_at, result.attempts, result.errors) == (
        None, None, 0, [],
    )  # fmt: skip
    with pytest.raises(TaskUnsuccessful, match="is ready: wait"):
        _ = result.return_value
    assert task(1, 2) == 3
    assert queue.get(result.id).args == [1]
    with pytest.raises(TaskNotFound, match="there is no task 99"):
        queue.get(99)


def test_a_task_is_part_of_the_transaction_that_it_is_enqueued_in(queue: Queue) -> None:
    task = queue.task(add)
    connection = oxlite.connect(queue.path)
    connection.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY)")
    connection.commit()
    connection.execute("INSERT INTO sale VALUES (1)")
    result = task.using(connection=connection).enqueue(1)
    assert queue.find() == []
    connection.commit()
    assert [one.id for one in queue.find()] == [result.id]
    connection.execute("INSERT INTO sale VALUES (2)")
    task.using(connection=connection).enqueue(2)
    queue.enqueue_many(task.using(connection=connection), [(3,), (4,)])
    connection.rollback()
    assert [one.args for one in queue.find()] == [[1]]
    queue.enqueue_many(task.using(connection=connection), [(5,), (6,)])
    connection.commit()
    assert [one.args for one in queue.find()] == [[6], [5], [1]]


def test_a_transaction_of_another_file_is_refused(queue: Queue, tmp_path: Path) -> None:
    task = queue.task(add)
    task.enqueue(1)
    with (
        closing(oxlite.connect(tmp_path / "other.db")) as other,
        pytest.raises(oxlite.sqlite3.ProgrammingError, match=r"is one to .*other\.db"),
    ):
        task.using(connection=other).enqueue(2)
    with pytest.raises(TypeError, match="connection= takes a connection"):
        task.using(connection=7).enqueue(2)


def test_many_are_enqueued_together_or_not_at_all(queue: Queue) -> None:
    task = queue.task(add)
    found = queue.enqueue_many(task, [(n,) for n in range(100)])
    assert [one.args for one in reversed(queue.find(at_most=1000))] == [[n] for n in range(100)]
    assert len({one.id for one in found}) == 100
    with pytest.raises(TypeError, match="argument 1"):
        queue.enqueue_many(task, [(1,), (object(),)])
    assert len(queue.find(at_most=1000)) == 100


def test_an_event_loop_enqueues_and_looks(queue: Queue) -> None:
    task = queue.task(add)

    async def main() -> None:
        results = await asyncio.gather(*(task.aenqueue(n) for n in range(20)))
        assert len({one.id for one in results}) == 20
        found = await queue.aget(results[7].id)
        assert (found.status, found.args) == ("ready", [7])
        assert not await found.wait_async(timeout=0.01)
        await queue.aclose()

    asyncio.run(main())
    assert statuses(queue) == ["ready"] * 20


@pytest.mark.parametrize(
    ("args", "kwargs", "kind", "says"),
    [
        ((object(),), {}, TypeError, "argument 1 of .*add cannot be JSON"),
        ((1,), {"b": {1, 2}}, TypeError, "argument 'b' of .*add cannot be JSON"),
        ((float("nan"),), {}, ValueError, "argument 1 of .*add cannot be JSON"),
        (("\ud800",), {}, ValueError, "argument 1 of .*add cannot be JSON"),
        ((b"bytes",), {}, TypeError, "argument 1 of .*add cannot be JSON"),
        (("x" * (1 << 20),), {}, ValueError, "of at most 1,048,576"),
        ((), {}, TypeError, r"add is not called like this: missing a required argument: 'a'"),
        ((1,), {"c": 2}, TypeError, r"add is not called like this: got an unexpected keyword"),
    ],
)
def test_arguments_that_cannot_be_written_are_refused_and_named(
    queue: Queue,
    args: tuple[Any, ...],
    kwargs: Any,  # noqa: ANN401
    kind: type[Exception],
    says: str,
) -> None:
    task = queue.task(add)
    with pytest.raises(kind, match=says):
        task.enqueue(*args, **kwargs)
    assert queue.find() == []


def test_arguments_nested_without_an_end_are_refused(queue: Queue) -> None:
    nested: list[Any] = []
    nested.append(nested)
    with pytest.raises(ValueError, match="argument 1"):
        queue.task(add).enqueue(nested)


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"priority": 1.5}, ValueError, "priority is a whole number"),
        ({"priority": 10**9}, ValueError, "priority is a whole number"),
        ({"retries": -1}, ValueError, "retries is a whole number of 0 or more"),
        ({"retry_delay": float("inf")}, ValueError, "retry_delay is a number of seconds"),
        ({"time_limit": 0}, ValueError, "time_limit is a number of seconds"),
        ({"keep": "day"}, TypeError, "keep is a number of seconds, not str"),
        ({"limit": 0}, ValueError, "limit is a whole number of 1 or more"),
        ({"limit_key": "k"}, ValueError, "limit_key goes with limit="),
        ({"queue_name": ""}, ValueError, "queue_name has 1 to"),
        ({"queue_name": 3}, TypeError, "queue_name is text, not int"),
        ({"run_after": datetime(2030, 1, 1)}, ValueError, "a datetime with a time zone"),
        ({"expires": "tomorrow"}, TypeError, "expires is a datetime with a time zone"),
        ({"colour": 1}, TypeError, "a task has no option 'colour'; it has queue_name"),
    ],
)
def test_options_that_no_task_can_have_are_refused(
    queue: Queue, options: TaskOptions, kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says):
        queue.task(add).using(**options)


def test_a_name_is_given_once(queue: Queue) -> None:
    queue.task(add)
    with pytest.raises(ValueError, match="give this one another name"):
        queue.task(add)
    queue.task(name="other")(add)
    assert sorted(queue.tasks) == ["other", f"{__name__}.add"]


def test_a_unique_task_is_enqueued_while_none_like_it_waits_or_runs(queue: Queue) -> None:
    task = queue.task(unique=True)(add)
    first = task.enqueue(1)
    again = task.enqueue(1)
    assert (again.id, again.is_new) == (first.id, False)
    other = task.enqueue(2)
    assert other.is_new
    keyed = task.using(unique_key="k")
    assert keyed.enqueue(3).is_new
    assert not keyed.enqueue(4).is_new
    by_argument = task.using(unique_key=lambda a: f"customer {a}")
    assert by_argument.enqueue(5).is_new
    assert not by_argument.enqueue(5).is_new
    assert [one.is_new for one in queue.enqueue_many(task, [(8,), (8,), (1,)])] == [
        True, False, False,
    ]  # fmt: skip
    queue.cancel(first.id)
    assert task.enqueue(1).is_new
    with pytest.raises(oxlite.sqlite3.IntegrityError):
        queue.retry(first.id)

    async def main() -> None:
        assert not (await task.aenqueue(2)).is_new
        await queue.aclose()

    asyncio.run(main())


def test_beyond_a_limit_a_task_is_blocked_until_another_one_ends(queue: Queue) -> None:
    task = queue.task(limit=2)(add)
    first, second, third, fourth = (task.enqueue(n) for n in range(4))
    assert statuses(queue) == ["ready", "ready", "blocked", "blocked"]
    urgent = task.using(priority=1).enqueue(9)
    queue.cancel(first.id)
    assert [one.id for one in queue.find(status="blocked")] == [fourth.id, third.id]
    assert queue.get(urgent.id).status == "ready"
    queue.discard(second.id)
    assert queue.get(third.id).status == "ready"
    queue.discard(third.id)
    assert queue.get(fourth.id).status == "ready"
    # Each key has a limit of its own.
    by_customer = queue.task(name="by", limit=1, limit_key=lambda a, b=0: f"customer {a}")(add)
    assert [by_customer.enqueue(n).status for n in (1, 2, 1)] == ["ready", "ready", "blocked"]


def test_what_is_run_again_keeps_to_its_limit(queue: Queue) -> None:
    task = queue.task(limit=1)(add)
    first = task.enqueue(1)
    queue.cancel(first.id)
    second = task.enqueue(2)
    assert second.status == "ready"
    assert queue.retry(first.id)
    assert queue.get(first.id).status == "blocked"
    queue.cancel(second.id)
    assert queue.get(first.id).status == "ready"


def test_a_later_task_is_scheduled(queue: Queue) -> None:
    task = queue.task(add)
    at = datetime.now(UTC) + timedelta(hours=1)
    assert task.using(run_after=at).enqueue(1).run_after == at
    later = task.using(run_after=timedelta(seconds=90)).enqueue(2)
    assert later.status == "scheduled"
    assert later.run_after is not None
    assert later.enqueued_at is not None
    assert later.run_after - later.enqueued_at == timedelta(seconds=90)
    assert task.using(run_after=-5).enqueue(3).status == "ready"


@pytest.mark.parametrize("isolation_level", [None, "DEFERRED"])
def test_many_are_enqueued_all_or_none_whatever_connection_is_given(
    queue: Queue, isolation_level: str | None
) -> None:
    task = queue.task(name="add")(lambda a: a)
    task.enqueue(0)
    queue.database.execute(
        "CREATE TRIGGER no AFTER INSERT ON oxlite_task WHEN new.id > 3"
        " BEGIN SELECT raise(ABORT, 'no more'); END"
    )
    with closing(oxlite.connect(queue.path, isolation_level=isolation_level)) as connection:
        with pytest.raises(oxlite.sqlite3.Error, match="no more"):
            queue.enqueue_many(task.using(connection=connection), [(n,) for n in range(5)])
        assert not connection.in_transaction
        assert len(queue.find()) == 1
        assert len(queue.enqueue_many(task.using(connection=connection), [(1,), (2,)])) == 2
        assert not connection.in_transaction
    assert len(queue.find()) == 3


def test_what_waits_is_cancelled_and_what_has_ended_is_not(queue: Queue) -> None:
    task = queue.task(add)
    waiting, later = task.enqueue(1), task.using(run_after=60).enqueue(2)
    assert queue.cancel(waiting.id) == queue.cancel(later.id) == "cancelled"
    assert queue.cancel(waiting.id) is None
    waiting.refresh()
    assert waiting.is_finished
    with pytest.raises(TaskUnsuccessful, match="is cancelled"):
        _ = waiting.return_value
    assert queue.retry(waiting.id)
    assert not queue.retry(waiting.id)
    assert queue.discard(waiting.id)
    assert not queue.discard(waiting.id)


def test_another_program_inserts_a_task(queue: Queue) -> None:
    task = queue.task(name="add")(add)
    task.enqueue(1)
    with closing(stdlib.connect(queue.path)) as other, other:
        other.execute("INSERT INTO oxlite_task (name) VALUES ('add')")
        other.execute(
            "INSERT INTO oxlite_task (name, run_after) VALUES ('add', strftime('%s') + 60)"
        )
        other.executemany(
            "INSERT INTO oxlite_task (name, limit_key, limit_count) VALUES ('add', 'k', ?)",
            [(1,), (1,)],
        )
    assert statuses(queue) == ["ready", "ready", "scheduled", "ready", "blocked"]
    with (
        closing(stdlib.connect(queue.path)) as other,
        pytest.raises(stdlib.IntegrityError, match="CHECK"),
    ):
        other.execute("INSERT INTO oxlite_task (name, status) VALUES ('add', 'odd')")


def test_tasks_are_found_and_counted(queue: Queue) -> None:
    task = queue.task(add)
    for n in range(5):
        task.enqueue(n)
    task.using(queue_name="other").enqueue(6)
    assert [one.args for one in queue.find(queue_name="default", at_most=2)] == [[4], [3]]
    assert queue.find(name="none") == []
    with pytest.raises(ValueError, match="status is one of scheduled, blocked"):
        queue.find(status="odd")
    found = queue.stats()
    assert found.counts == {"default": {"ready": 5}, "other": {"ready": 1}}
    assert 0 <= found.oldest_seconds["default"] < 60
    assert found.workers == 0


def test_what_is_kept_for_no_longer_is_deleted_in_passing(queue: Queue) -> None:
    task = queue.task(keep=0.001)(add)
    for n in range(100):
        queue.cancel(task.enqueue(n).id)
    queue.enqueue_many(task, [(n,) for n in range(200)])
    assert "cancelled" not in statuses(queue)


def test_a_forked_child_enqueues_as_well(queue: Queue) -> None:
    task = queue.task(add)
    task.enqueue(1)
    pid = os.fork()
    if pid == 0:
        task.enqueue(2)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert [one.args for one in queue.find()] == [[2], [1]]


def test_tables_that_are_dropped_are_made_anew(queue: Queue) -> None:
    task = queue.task(add)
    task.enqueue(1)
    with queue.database.write() as connection:
        connection.execute("DROP TABLE oxlite_task")
    assert queue.find() == []
    assert task.enqueue(2).status == "ready"


@pytest.mark.parametrize(
    "name",
    [
        "CLAIM", "LOOK", "PROMOTE", "EXPIRE", "OVERDUE", "LOSE", "SUCCEED", "FAIL", "RETRY",
        "DELETE_FINISHED", "RETRY_LATER", "HAND_BACK", "TAKE_OVER", "CANCEL", "DISCARD",
        "FIND_UNIQUE", "LEAVE_RUNNING",
    ],
)  # fmt: skip
def test_a_statement_finds_its_rows_by_an_index(queue: Queue, name: str) -> None:
    """What workers look for takes as long with a million waiting."""
    queue.task(add).enqueue(1)
    sql = getattr(store, name)
    count = max(int(number) for number in re.findall(r"\?(\d+)", sql))
    with closing(oxlite.connect(queue.path)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", [None] * count)
        scans = [row[3] for row in plan if row[3].startswith("SCAN")]
    small = ("oxlite_task_worker", "VIRTUAL TABLE", "CONSTANT ROW")
    # The first of an index is not looked for among others.
    first = re.compile(r"oxlite_task USING COVERING INDEX oxlite_task_scheduled$")
    assert [
        one for one in scans if not any(each in one for each in small) and not first.search(one)
    ] == []


def test_annotations_may_be_there_for_type_checkers_alone(queue: Queue) -> None:
    """Since Python 3.14 they are evaluated when somebody asks, and then are not there."""
    late = "" if sys.version_info >= (3, 14) else "from __future__ import annotations\n"
    source = f"{late}def counted(order: NotHere, count: int = 1) -> NotHereEither: return count\n"
    exec(source, globals())
    task = queue.task(globals()["counted"])
    assert task.enqueue("an order", 2).status == "ready"
    with pytest.raises(TypeError, match="count"):
        task.enqueue("an order", cuont=2)
