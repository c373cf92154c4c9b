"""What may happen to a worker or to its file, and loses no task: odd rows, forks, stops, time."""

import asyncio
import multiprocessing
import os
import sqlite3 as stdlib
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.wait import LIMIT_SECONDS, until

import oxlite
from oxlite import sqlite3
from oxlite.tasks import Queue, Retry, TaskContext, TaskResult, schedule
from oxlite.tasks import worker as worker_module
from oxlite.tasks.claim import Claim


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(tmp_path / "app.db") as queue:
        yield queue


def ended(result: TaskResult[Any]) -> TaskResult[Any]:
    assert result.wait(LIMIT_SECONDS), result.status
    return result


def do(path: str, sql: str, *parameters: object) -> list[Any]:
    """What another program does with the file."""
    with closing(stdlib.connect(path, timeout=LIMIT_SECONDS, isolation_level=None)) as other:
        return other.execute(sql, parameters).fetchall()


class OddError(BaseException):
    """One that is no Exception, as some libraries have them."""


@pytest.mark.parametrize(
    "error", [OddError, asyncio.CancelledError, GeneratorExit, KeyboardInterrupt]
)
def test_what_is_no_exception_is_an_error_of_the_task(
    queue: Queue, error: type[BaseException]
) -> None:
    @queue.task(retries=1, retry_delay=0)
    def fails() -> None:
        raise error

    works = queue.task(name="works")(lambda: 1)
    with queue.worker(threads=1):
        failed = ended(fails.enqueue())
        assert (failed.status, failed.attempts) == ("failed", 2)
        assert ended(works.enqueue()).return_value == 1


@pytest.mark.parametrize("delay", ["5", float("nan"), float("inf"), -1, object()])
def test_what_is_no_delay_is_an_error_of_the_task(queue: Queue, delay: Any) -> None:  # noqa: ANN401
    @queue.task
    def fails() -> None:
        raise Retry(delay)

    with queue.worker(threads=1):
        assert "Retry takes a number of seconds" in ended(fails.enqueue()).errors[-1].message


ROWS = [
    ("run_after", "datetime('now', '+1 hour')"), ("run_after", "1e300"), ("priority", "'high'"),
    ("expires_at", "'tomorrow'"), ("retries", "'many'"), ("time_limit", "-1"),
    ("enqueued_at", "x'00'"), ("attempt", "-1"), ("deadline", "'soon'"), ("limit_key", "'k'"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value"), ROWS)
def test_a_row_that_no_task_can_be_is_refused(queue: Queue, column: str, value: str) -> None:
    queue.task(name="add")(lambda a: a).enqueue(1)
    with pytest.raises(stdlib.IntegrityError, match="CHECK constraint failed"):
        do(queue.path, f"INSERT INTO oxlite_task (name, {column}) VALUES ('add', {value})")


def test_odd_rows_keep_nobody_back(queue: Queue) -> None:
    task = queue.task(name="add", retries=1, retry_delay=0)(lambda a: a)
    task.enqueue(1)
    odd = [
        "INSERT INTO oxlite_task (name) VALUES (CAST(x'fffe' AS TEXT))",
        "INSERT INTO oxlite_task (name, arguments) VALUES ('add', CAST(x'fffe' AS TEXT))",
        "INSERT INTO oxlite_task (name, arguments, errors) VALUES ('add', '7', 'no JSON')",
        "INSERT INTO oxlite_task (name, arguments, errors) VALUES ('add', '7', '{\"a\": 1}')",
        "INSERT INTO oxlite_task (name, arguments, errors) VALUES ('add', '7', x'00')",
        "INSERT INTO oxlite_task (name, limit_key, limit_count) VALUES"
        " ('add', CAST(x'ff' AS TEXT), 1)",
        "INSERT INTO oxlite_task (name, unique_key) VALUES ('add', x'ff')",
        "INSERT INTO oxlite_task (name, status, worker) VALUES ('add', 'running', 'nobody')",
        "INSERT INTO oxlite_task_worker VALUES ('gone', 5, '1:1', 99999999, 'ns', 1, '[]', 0, 1)",
        "INSERT INTO oxlite_task_schedule VALUES ('add', 0)",
    ]
    for statement in odd:
        do(queue.path, statement)
    with queue.worker(threads=2):

        def is_all_tried() -> bool:
            do(queue.path, "UPDATE oxlite_task SET run_after = 0 WHERE status = 'scheduled'")
            task.enqueue(2)
            return all(one.is_finished for one in queue.find(at_most=1000))

        until(is_all_tried)
        assert all(isinstance(one.errors, list) for one in queue.find(at_most=1000))
        assert do(queue.path, "SELECT count(*) FROM oxlite_task_worker") == [(1,)]


def test_what_is_handed_in_while_the_desk_closes_is_written(queue: Queue) -> None:
    nap = queue.task(name="nap")(time.sleep)

    def stops_in_the_midst() -> None:
        worker = queue.worker(threads=8)
        worker.start()
        naps = queue.enqueue_many(nap, [(0.01,)] * 8)
        until(lambda: len(worker.running) > 4)
        assert worker.stop(LIMIT_SECONDS)
        assert {queue.get(one.id).status for one in naps} <= {"successful", "ready"}
        for one in naps:
            queue.discard(one.id)

    for _ in range(20):
        stops_in_the_midst()


def test_what_ends_while_the_desk_closes_is_written_before_all_has_ended(queue: Queue) -> None:
    gates = [threading.Event() for _ in range(3)]
    task = queue.task(name="wait")(lambda n: gates[n].wait(LIMIT_SECONDS))
    with queue.worker(threads=2) as worker, closing(stdlib.connect(queue.path)) as other:
        results = [task.enqueue(n) for n in range(3)]
        until(lambda: len(worker.running) == 2)
        other.execute("BEGIN IMMEDIATE")
        for gate, left in ((gates[0], 1), (gates[1], 0)):
            gate.set()
            until(lambda left=left: len(worker.running) == left)
            time.sleep(0.05)  # the first one is about to claim, and waits for the file
        worker.close()
        other.rollback()
        assert [ended(one).return_value for one in results[:2]] == [True, True]
        assert not queue.get(results[2].id).is_finished
        gates[2].set()


def test_what_is_claimed_while_its_worker_leaves_is_left_to_others(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    gates = [threading.Event() for _ in range(2)]
    ran: list[int] = []
    wait = queue.task(name="wait")(lambda n: gates[n].wait(LIMIT_SECONDS))
    note = queue.task(name="note")(ran.append)
    worker = queue.worker(threads=2)
    with worker, closing(stdlib.connect(queue.path)) as other:
        for n in range(2):
            wait.enqueue(n)
        until(lambda: len(worker.running) == 2)
        noted = note.enqueue(1)
        other.execute("BEGIN IMMEDIATE")
        gates[0].set()
        until(lambda: len(worker.running) == 1)
        time.sleep(0.05)  # one thread is about to claim, and waits for the file
        stops = threading.Thread(target=worker.stop, args=(0.0,))
        stops.start()
        until(lambda: "is handed back in the midst of it" in caplog.text)
        other.rollback()
        stops.join(LIMIT_SECONDS)
        gates[1].set()
        assert worker.join(LIMIT_SECONDS)
    assert (ran, queue.get(noted.id).status) == ([], "ready")


def test_a_worker_that_has_left_harms_no_descriptor(queue: Queue, tmp_path: Path) -> None:
    """Stopped twice, it neither rings nor closes what is another one's by now."""
    with queue.worker() as worker:
        worker.stop()
        others = [oxlite.connect(tmp_path / f"other{n}.db") for n in range(8)]
    worker.close()
    for other in others:
        other.execute("CREATE TABLE t (x)")
        other.close()
    for n in range(8):
        assert (tmp_path / f"other{n}.db").read_bytes()[:16] == b"SQLite format 3\0"


def test_a_worker_cannot_wait_for_its_own_task(queue: Queue) -> None:
    @queue.task
    def stops() -> None:
        worker.stop()

    worker = queue.worker(threads=1)
    with worker:
        result = ended(stops.enqueue())
    assert "a task cannot wait for its own end" in result.errors[-1].message


def test_a_locked_file_at_the_end_loses_nothing(queue: Queue) -> None:
    """Who cannot write says so, and keeps its place: it is heard when its process ends."""
    with Queue(oxlite.Database(queue.path, timeout=0.05)) as impatient:
        gate = threading.Event()
        task = impatient.task(name="wait")(lambda: gate.wait() and None)
        worker = impatient.worker(threads=1)
        worker.start()
        result = task.enqueue()
        until(lambda: impatient.get(result.id).status == "running")
        with closing(stdlib.connect(queue.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            gate.set()
            assert not worker.stop(timeout=0.5)
        assert worker.stop(LIMIT_SECONDS)
        assert impatient.get(result.id).status == "successful"
        impatient.database.close()


def test_a_closed_database_ends_its_worker(queue: Queue) -> None:
    database = oxlite.Database(queue.path)
    worker = Queue(database).worker(threads=2)
    worker.start()
    database.close()
    queue.task(name="add")(lambda: None).enqueue()
    worker.close()
    assert not worker.join(timeout=1.0)


def test_a_row_that_is_deleted_comes_back(queue: Queue) -> None:
    task = queue.task(name="add")(lambda a: a)
    with queue.worker():
        ended(task.enqueue(1))
        do(queue.path, "DELETE FROM oxlite_task_worker")
        ended(task.enqueue(2))
        until(lambda: ended(task.enqueue(3)) and queue.stats().workers == 1)


def test_without_the_file_of_its_lock_a_worker_lives(queue: Queue) -> None:
    gate = threading.Event()
    attempts: list[int] = []

    @queue.task(takes_context=True)
    def waits(context: TaskContext) -> None:
        attempts.append(context.attempt)
        gate.wait()

    add = queue.task(name="add")(lambda a: a)
    with queue.worker(threads=2):
        result = waits.enqueue()
        until(lambda: attempts)
        Path(f"{queue.path}-workers").unlink()
        with queue.worker(threads=2):
            for n in range(20):
                ended(add.enqueue(n))
            gate.set()
            assert ended(result).attempts == 1
    assert attempts == [1]


def test_a_task_that_forks_is_alone_in_its_child(queue: Queue) -> None:
    @queue.task
    def forks() -> list[int]:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            return pool.map(abs, [-1, -2])

    add = queue.task(name="add")(lambda a: a)
    with queue.worker(threads=2):
        results = [forks.enqueue() for _ in range(3)]
        assert [ended(one).return_value for one in results] == [[1, 2]] * 3
        assert ended(add.enqueue(4)).return_value == 4
    assert queue.stats().workers == 0


def test_a_child_may_stop_the_worker_of_its_parent(queue: Queue) -> None:
    go_on = threading.Event()
    waits = queue.task(name="wait")(lambda: go_on.wait(LIMIT_SECONDS) and None)
    worker = queue.worker(threads=1)
    worker.start()
    result = waits.enqueue()
    until(lambda: worker.running)
    with closing(stdlib.connect(queue.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        go_on.set()
        until(lambda: not worker.running)
        time.sleep(0.05)  # what it came to waits for the lock, most likely
        child = os.fork()
        if child == 0:
            os._exit(0 if worker.stop(0.0) else 1)
    ended_with: list[int] = []

    def has_ended() -> bool:
        pid, status = os.waitpid(child, os.WNOHANG)
        ended_with.append(status)
        return pid == child

    until(has_ended)
    assert ended_with[-1] == 0
    assert ended(result).status == "successful"
    assert ended(queue.task(name="add")(lambda: 7).enqueue()).return_value == 7
    worker.stop()


def test_claims_of_which_nobody_has_heard_are_handed_back(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are committed, and the answer is an error."""
    attempts: list[int] = []

    @queue.task(takes_context=True)
    def note(context: TaskContext) -> int:
        attempts.append(context.attempt)
        return context.attempt

    database = queue.database
    begin = database.write
    is_lost = threading.Event()

    @contextmanager
    def write() -> Iterator[sqlite3.Connection]:
        with begin() as connection:
            yield connection
            is_claimed = connection.execute(
                "SELECT 1 FROM oxlite_task WHERE status = 'running'"
            ).fetchone()
        if is_claimed and not is_lost.is_set():
            is_lost.set()
            raise sqlite3.OperationalError("the outcome is unknown")

    with queue.worker(threads=2):
        # Only the worker writes by that: results are enqueued by another program.
        monkeypatch.setattr(database, "write", write)
        for _ in range(3):
            do(queue.path, "INSERT INTO oxlite_task (name) VALUES (?)", note.name)
        results = [ended(queue.get(number)) for number in (1, 2, 3)]
    assert is_lost.is_set()
    assert len(attempts) == 3
    assert max(result.attempts for result in results) == 2


def test_what_is_raised_around_a_task_costs_no_thread(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "_AROUND_SECONDS", 0.0)
    real = queue.context
    raised: list[int] = []

    def context(claim: Claim) -> TaskContext:
        if not raised:
            raised.append(claim.id)
            raise SystemExit
        return real(claim)

    monkeypatch.setattr(queue, "context", context)
    task = queue.task(name="add")(lambda: 7)
    with queue.worker(threads=1):
        found = ended(task.enqueue())
        assert (found.return_value, found.attempts) == (7, 2)
        assert found.errors[0].exception_class_path == "builtins.SystemExit"


def test_errors_that_are_no_list_are_none(queue: Queue) -> None:
    result = queue.task(name="add")(lambda: 7).enqueue()
    do(queue.path, "UPDATE oxlite_task SET errors = '5'")
    assert queue.get(result.id).errors == []


def test_what_does_not_end_is_taken_over(queue: Queue) -> None:
    """Its time was over long ago, and its process is not one that may be killed."""
    gate = threading.Event()

    @queue.task(takes_context=True, time_limit=3600)
    def sticks(context: TaskContext) -> str:
        if context.attempt == 1:
            gate.wait()
            return "late"
        return "again"

    add = queue.task(name="add")(lambda a: a)
    with queue.worker(threads=2):
        result = sticks.enqueue()
        until(lambda: queue.get(result.id).status == "running")
        do(queue.path, "UPDATE oxlite_task SET deadline = 0 WHERE id = ?", result.id)
        ended(add.enqueue(1))
        assert ended(result).return_value == "again"
        assert result.errors[-1].exception_class_path == "oxlite.tasks.errors.TimeLimitExceeded"
        gate.set()
    assert queue.get(result.id).return_value == "again"


def test_room_under_a_limit_is_for_all_who_fit(queue: Queue) -> None:
    """Another version of the application may have said another limit."""
    gate = threading.Event()
    ran: list[int] = []

    @queue.task(limit=1, limit_key="k")
    def narrow(n: int) -> None:
        ran.append(n)
        gate.wait()

    wide = narrow.using(limit=4)
    with queue.worker(threads=8):
        first = narrow.enqueue(0)
        others = [narrow.enqueue(1), *(wide.enqueue(n) for n in range(2, 5))]
        until(lambda: ran == [0, 2, 3, 4] or len(ran) == 4)
        gate.set()
        for one in [first, *others]:
            ended(one)
    assert sorted(ran) == list(range(5))


def test_who_is_unblocked_by_hand_is_run(queue: Queue) -> None:
    ran: list[int] = []
    task = queue.task(name="note", limit=1)(ran.append)
    queue.pause()
    waiting, blocked = task.enqueue(1), task.enqueue(2)
    with queue.worker(threads=1):
        queue.resume()
        ended(waiting)
        ended(blocked)
        queue.pause()
        waiting, blocked = task.enqueue(3), task.enqueue(4)
        do(queue.path, "DELETE FROM oxlite_task_pause")
        queue.cancel(waiting.id)
        assert ended(blocked).status == "successful"


ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("cron", ["30 2 * * *", "*/20 * * * *", "30 1 * * 0", "0 0 1 * *"])
def test_the_next_time_is_later(zone: str, cron: str) -> None:
    task = schedule.recurring("name", cron, zone, lambda _now: ())
    for begin in (datetime(2024, 10, 26, tzinfo=UTC), datetime(2024, 3, 30, tzinfo=UTC)):
        for minute in range(0, 3 * 1440, 7):
            after = begin.timestamp() + 60 * minute
            assert task.following(after) > after


def test_a_process_enqueues_and_one_that_it_forks_runs(queue: Queue) -> None:
    task = queue.task(name="add")(lambda a: a)
    result = task.enqueue(1)
    pid = os.fork()
    if pid == 0:
        with queue.worker(threads=1):
            result.wait(LIMIT_SECONDS)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    result.refresh()
    assert result.return_value == 1
