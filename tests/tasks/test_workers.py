"""Who runs tasks: results, errors and retries, limits, time, and a worker that ends."""

import asyncio
import json
import logging
import sqlite3 as stdlib
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.wait import LIMIT_SECONDS, until

import oxlite
from oxlite.tasks import (
    Queue,
    Retry,
    TaskContext,
    TaskError,
    TaskLost,
    TaskNotFound,
    TaskResult,
    TaskUnsuccessful,
    clerk,
    current_task,
    store,
)


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with Queue(tmp_path / "app.db") as queue:
        yield queue


def ended(result: TaskResult[Any]) -> TaskResult[Any]:
    """The task, when it has ended."""
    assert result.wait(LIMIT_SECONDS), result.status
    return result


def last_error(result: TaskResult[Any]) -> TaskError:
    return ended(result).errors[-1]


def do(path: str, sql: str, *parameters: object) -> list[Any]:
    """What another program does with the file."""
    with closing(stdlib.connect(path, timeout=LIMIT_SECONDS, isolation_level=None)) as other:
        return other.execute(sql, parameters).fetchall()


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What tasks wait for that are to be in the midst of it; open at the end."""
    gate = threading.Event()
    yield gate
    gate.set()


def test_a_task_is_run_and_its_result_is_kept(queue: Queue) -> None:
    @queue.task
    def add(a: int, b: int) -> int:
        return a + b

    before = add.enqueue(1, 2)
    with queue.worker() as worker:
        after = add.enqueue(3, b=4)
        assert ended(before).return_value == 3
        assert ended(after).return_value == 7
        assert after.status == "successful"
        assert after.attempts == 1
        assert after.worker == worker.name
        assert after.enqueued_at is not None
        assert after.started_at is not None
        assert after.finished_at is not None
        assert after.enqueued_at <= after.started_at <= after.finished_at
    assert queue.stats().workers == 0


@pytest.mark.parametrize("threads", [1, 8])
def test_many_tasks_are_each_run_once(queue: Queue, threads: int) -> None:
    ran: list[int] = []
    task = queue.task(name="note")(ran.append)
    results = queue.enqueue_many(task, [(n,) for n in range(1000)])
    with queue.worker(threads=threads):
        for result in results:
            ended(result)
    assert sorted(ran) == list(range(1000))


def test_what_is_greater_in_priority_goes_first_then_what_is_older(queue: Queue) -> None:
    ran: list[int] = []
    task = queue.task(name="note")(ran.append)
    for n, priority in enumerate([0, 5, 0, 10, 5]):
        task.using(priority=priority, queue_name="ab"[n % 2]).enqueue(n)
    with queue.worker(["b", "a"], threads=1):
        until(lambda: len(ran) == 5)
    assert ran == [3, 1, 4, 0, 2]


def test_a_worker_runs_the_tasks_of_its_queues_alone(queue: Queue) -> None:
    ran: list[str] = []
    task = queue.task(name="note")(ran.append)
    with queue.worker(["a"]):
        other = task.using(queue_name="b").enqueue("b")
        ended(task.using(queue_name="a").enqueue("a"))
        assert ran == ["a"]
    with queue.worker(["b", "c"]):
        ended(other)
    assert ran == ["a", "b"]


def test_a_task_that_fails_is_tried_again_and_then_set_aside(queue: Queue) -> None:
    @queue.task(retries=2, retry_delay=0.01)
    def fails(text: str) -> None:
        raise KeyError(text)

    with queue.worker() as worker:
        result = ended(fails.enqueue("no \U0001f600 such"))
        assert (result.status, result.attempts) == ("failed", 3)
        assert [one.attempt for one in result.errors] == [1, 2, 3]
        error = result.errors[-1]
        assert error.exception_class_path == "builtins.KeyError"
        assert error.worker == worker.name
        assert "raise KeyError(text)" in error.traceback
        assert error.at is not None
        with pytest.raises(TaskUnsuccessful, match=r"is failed: builtins\.KeyError"):
            _ = result.return_value
        # By hand, with all its retries.
        assert queue.retry(result.id)
        ended(result)
        assert (result.status, result.attempts, len(result.errors)) == ("failed", 6, 6)
    assert not queue.retry(99)


def test_a_task_has_its_latest_errors(queue: Queue) -> None:
    @queue.task(retries=30, retry_delay=0)
    def fails() -> None:
        raise ValueError("x" * 100_000)

    with queue.worker():
        errors = ended(fails.enqueue()).errors
    assert [one.attempt for one in errors] == list(range(12, 32))
    assert len(errors[0].traceback) < 20_000


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3), ValueError("\ud800"), ExceptionGroup("two", [ValueError(1), KeyError(2)]),
        RecursionError(), MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_whatever_a_task_raises_is_its_error(
    queue: Queue, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    # What is no Unicode cannot be reported by processes that share the tests.
    caplog.set_level(logging.CRITICAL, "oxlite.tasks")

    @queue.task
    def fails() -> None:
        raise error

    @queue.task
    def works() -> int:
        return 1

    with queue.worker(threads=1):
        path = last_error(fails.enqueue()).exception_class_path
        assert path == f"builtins.{type(error).__name__}"
        assert ended(works.enqueue()).return_value == 1


def test_an_error_that_cannot_be_said_is_one_all_the_same(queue: Queue) -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not even this")

    @queue.task
    def fails() -> None:
        raise OddError

    with queue.worker():
        assert last_error(fails.enqueue()).exception_class_path.endswith("OddError")


def test_a_result_that_cannot_be_json_is_an_error(queue: Queue) -> None:
    @queue.task
    def odd() -> object:
        return object()

    with queue.worker():
        assert "odd has returned cannot be JSON" in last_error(odd.enqueue()).message


def test_a_task_says_itself_that_it_is_to_run_again(queue: Queue) -> None:
    attempts: list[int] = []

    @queue.task(takes_context=True, retry_delay=0.01)
    def later(context: TaskContext) -> str:
        attempts.append(context.attempt)
        if context.attempt < 4:
            raise Retry(0.01 if context.attempt % 2 else None)
        return "done"

    with queue.worker():
        assert ended(later.enqueue()).return_value == "done"
    assert attempts == [1, 2, 3, 4]


def test_what_nobody_knows_is_set_aside_after_a_while(queue: Queue) -> None:
    """Another version of the application may know it: it is not set aside at once."""
    known = queue.task(name="add")(lambda a: a)
    known.enqueue(1)
    do(queue.path, "INSERT INTO oxlite_task (name) VALUES ('app.gone')")
    do(queue.path, "INSERT INTO oxlite_task (name, arguments) VALUES ('add', '[[1, 2], {}]')")
    do(queue.path, "INSERT INTO oxlite_task (name, arguments) VALUES ('add', 'odd')")
    with queue.worker():
        found = queue.get(2), queue.get(3)

        def is_tried_four_times() -> bool:
            do(queue.path, "UPDATE oxlite_task SET run_after = 0 WHERE status = 'scheduled'")
            do(queue.path, "INSERT INTO oxlite_task (name, arguments) VALUES ('add', '[[1], {}]')")
            for one in found:
                one.refresh()
            return all(one.is_finished for one in found)

        until(is_tried_four_times)
        assert [one.status for one in found] == ["failed", "failed"]
        assert [one.attempts for one in found] == [4, 4]
        assert "nothing of the name 'app.gone' is a task" in found[0].errors[-1].message
        assert "takes 1 positional argument but 2 were given" in found[1].errors[-1].message
        assert "are a JSON list of a list and an object" in last_error(queue.get(4)).message


def test_a_type_error_of_the_task_itself_is_one(queue: Queue) -> None:
    @queue.task
    def odd() -> None:
        len(3)  # type: ignore[arg-type]

    with queue.worker():
        result = ended(odd.enqueue())
    assert (result.status, result.attempts) == ("failed", 1)


def test_a_coroutine_function_is_a_task(queue: Queue) -> None:
    loops: set[int] = set()

    @queue.task
    async def wait(n: int) -> int:
        loops.add(id(asyncio.get_running_loop()))
        await asyncio.sleep(0.001)
        return n

    @queue.task(time_limit=0.05)
    async def for_ever() -> None:
        await asyncio.sleep(3600)

    async def results() -> list[int]:
        found = [await wait.aenqueue(n) for n in range(20)]
        for one in found:
            assert await one.wait_async(LIMIT_SECONDS)
        await queue.aclose()
        return [one.return_value for one in found]

    with queue.worker():
        assert asyncio.run(results()) == list(range(20))
        assert last_error(for_ever.enqueue()).exception_class_path.endswith("TimeLimitExceeded")
    assert len(loops) == 1


def test_a_task_ends_when_its_time_is_over(queue: Queue) -> None:
    @queue.task(time_limit=0.05)
    def for_ever() -> None:
        while True:
            time.sleep(0.001)

    @queue.task(time_limit=3600)
    def short() -> str:
        return "done"

    with queue.worker(threads=2):
        assert last_error(for_ever.enqueue()).exception_class_path.endswith("TimeLimitExceeded")
        assert all(ended(short.enqueue()).return_value == "done" for _ in range(20))


def test_a_task_that_does_not_end_is_taken_from_a_worker_that_may_not_be_killed(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clerk, "_OTHERS_WAIT_SECONDS", 0.1)
    go_on = threading.Event()

    @queue.task(takes_context=True, time_limit=1.0)
    def deaf(context: TaskContext) -> int:
        if context.attempt == 1:
            go_on.wait(LIMIT_SECONDS)  # in C
        return context.attempt

    try:
        with queue.worker(threads=2, overtime=0.1):
            found = ended(deaf.enqueue())
            assert (found.status, found.attempts, found.return_value) == ("successful", 2, 2)
            go_on.set()
    finally:
        go_on.set()
    assert queue.get(found.id).return_value == 2


@pytest.mark.parametrize("overtime", [-1, "1", True, None])
def test_overtime_is_a_number_of_seconds(queue: Queue, overtime: object) -> None:
    with pytest.raises((TypeError, ValueError), match="overtime is a number of seconds"):
        queue.worker(overtime=overtime)  # type: ignore[arg-type]


def test_the_last_writes_are_committed_with_the_completion(queue: Queue) -> None:
    with queue.database.write() as connection:
        connection.execute("CREATE TABLE paid (id INTEGER PRIMARY KEY)")

    @queue.task(takes_context=True)
    def pay(context: TaskContext, number: int) -> str:
        with context.finish(result=number) as connection:
            connection.execute("INSERT INTO paid VALUES (?)", (number,))
        return "what comes after counts no more"

    with queue.worker():
        assert ended(pay.enqueue(7)).return_value == 7
        # One that cannot be committed is none.
        assert last_error(pay.enqueue(7)).exception_class_path.endswith("IntegrityError")
    assert queue.database.query("SELECT id FROM paid") == [(7,)]


def test_who_was_taken_over_completes_nothing(queue: Queue, gate: threading.Event) -> None:
    lost: list[Exception] = []

    @queue.task(takes_context=True)
    def pay(context: TaskContext, is_slow: bool) -> str:
        if context.attempt == 1:
            gate.wait()
            if is_slow:
                return "first"
            try:
                with context.finish():
                    raise AssertionError("it is another one's")
            except TaskLost as error:
                lost.append(error)
                raise
        return "second"

    with queue.worker():
        results = [pay.enqueue(is_slow) for is_slow in (True, False)]
        until(lambda: all(queue.get(one.id).status == "running" for one in results))
        do(queue.path, "UPDATE oxlite_task SET status = 'ready' WHERE status = 'running'")
        do(queue.path, "INSERT INTO oxlite_task (name) VALUES ('wakes')")
        assert [ended(one).return_value for one in results] == ["second", "second"]
        gate.set()
        until(lambda: lost)
    assert [queue.get(one.id).return_value for one in results] == ["second", "second"]
    assert "was taken over or discarded" in str(lost[0])


def test_who_was_taken_over_does_not_end_the_attempt_of_another(queue: Queue) -> None:
    gates = {1: threading.Event(), 2: threading.Event()}

    @queue.task(takes_context=True)
    def attempt(context: TaskContext) -> int:
        gates[context.attempt].wait(LIMIT_SECONDS)
        return context.attempt

    result = attempt.enqueue()
    with queue.worker(threads=1) as first:
        until(lambda: queue.get(result.id).status == "running")
        do(queue.path, "UPDATE oxlite_task SET status = 'ready'")
        with queue.worker(threads=1) as second:
            until(lambda: queue.get(result.id).worker == second.name)
            gates[1].set()
            assert first.stop(LIMIT_SECONDS)
            assert queue.get(result.id).status == "running"
            gates[2].set()
            assert ended(result).return_value == 2


def test_a_task_that_runs_is_asked_to_end(queue: Queue) -> None:
    begun = threading.Event()

    @queue.task(takes_context=True)
    def works(context: TaskContext) -> None:
        begun.set()
        until(context.is_cancelled)
        context.raise_if_cancelled()

    with queue.worker():
        result = works.enqueue()
        assert begun.wait(LIMIT_SECONDS)
        assert queue.cancel(result.id) == "running"
        assert ended(result).status == "cancelled"
        assert result.errors == []


def test_a_paused_queue_waits(queue: Queue) -> None:
    task = queue.task(name="add")(lambda a: a)
    with queue.worker(threads=1):
        queue.pause()
        waiting = task.enqueue(1)
        assert queue.paused() == queue.stats().paused == ["default"]
        assert not waiting.wait(0.1)
        assert queue.resume()
        assert ended(waiting).return_value == 1
        assert not queue.resume()


def test_a_limit_is_kept_and_all_are_run(queue: Queue) -> None:
    lock = threading.Lock()
    running = most = 0

    @queue.task(limit=2)
    def limited() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1

    with queue.worker(threads=8):
        for result in queue.enqueue_many(limited, [()] * 60):
            ended(result)
    assert most == 2


def test_a_scheduled_task_is_run_when_its_time_has_come(queue: Queue) -> None:
    task = queue.task(name="add")(lambda a: a)
    with queue.worker():
        results = [task.using(run_after=0.05 + n / 1000).enqueue(n) for n in range(20)]
        for result in results:
            ended(result)
            assert result.started_at is not None
            assert result.run_after is not None
            assert result.started_at >= result.run_after


def test_what_is_due_is_run_by_a_worker_that_always_has_something_to_do(queue: Queue) -> None:
    came = threading.Event()
    due = queue.task(name="due")(came.set)

    @queue.task(keep=0)
    def busy() -> None:
        if not came.is_set():
            busy.enqueue()

    with queue.worker(threads=1):
        busy.enqueue()
        ended(due.using(run_after=0.05).enqueue())


def test_ten_thousand_are_scheduled_for_the_same_moment(queue: Queue) -> None:
    task = queue.task(name="add", keep=0.0)(lambda a: a)
    queue.enqueue_many(task.using(run_after=0.5), [(n,) for n in range(10_000)])
    with queue.worker():
        until(lambda: not do(queue.path, "SELECT 1 FROM oxlite_task LIMIT 1"))


def test_of_more_than_expire_at_once_none_is_run(queue: Queue) -> None:
    ran: list[int] = []
    task = queue.task(expires=0.0, keep=None)(ran.append)
    queue.enqueue_many(task, [(number,) for number in range(2 * store.SLICE)])
    with queue.worker(threads=1):
        until(lambda: queue.stats().counts["default"].get("expired") == 2 * store.SLICE)
    assert not ran


def test_what_has_expired_is_not_run(queue: Queue) -> None:
    ran: list[int] = []
    task = queue.task(name="note")(ran.append)
    expired = task.using(expires=0.0).enqueue(1)
    queue.pause()
    soon = task.using(expires=0.05).enqueue(2)
    with queue.worker():
        assert ended(expired).status == "expired"
        assert ended(soon).status == "expired"
        queue.resume()
        ended(task.using(expires=3600).enqueue(3))
    assert ran == [3]


def test_a_task_recurs(queue: Queue) -> None:
    ran: list[int] = []

    @queue.task(cron="* * * * * *")
    def tick() -> None:
        ran.append(1)

    with Queue(queue.path) as second_queue:
        second_queue.task(name=tick.name, cron="* * * * * *")(tick.function)
        with queue.worker(), second_queue.worker():
            until(lambda: len(ran) >= 3)
    dues = [one.enqueued_at for one in queue.find(name=tick.name)]
    assert len({int(due.timestamp()) for due in dues if due}) == len(dues)
    # What was missed is run once, by whoever comes next.
    do(queue.path, "UPDATE oxlite_task_schedule SET due_at = due_at - 3600")
    count = len(ran)
    with queue.worker():
        until(lambda: len(ran) > count)
    assert len(ran) <= count + 2


def test_a_time_is_enqueued_once_though_two_workers_have_seen_it(
    queue: Queue, gate: threading.Event
) -> None:
    queue.task(name="yearly", cron="0 0 1 1 *")(lambda: None)
    wait = queue.task(name="wait")(lambda: gate.wait() and None)
    with queue.worker(threads=1) as first, queue.worker(threads=1) as second:
        queue.enqueue_many(wait, [(), ()])
        until(lambda: first.running and second.running)
        do(queue.path, "UPDATE oxlite_task_schedule SET due_at = 0")
        with closing(stdlib.connect(queue.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            time.sleep(2 * clerk._LOOK_SECONDS)
            gate.set()
            time.sleep(0.05)  # both look meanwhile, and wait for the file
        until(lambda: queue.find(name="yearly"))
    assert len(queue.find(name="yearly")) == 1


@pytest.mark.parametrize(
    ("cron", "says"), [("odd", "is no cron line"), ("0 0 30 2 *", "is no cron line")]
)
def test_what_is_no_cron_line_is_refused(queue: Queue, cron: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        queue.task(cron=cron)(lambda: None)


def test_a_clock_that_was_ahead_keeps_nothing_from_recurring(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[int] = []

    @queue.task(cron="* * * * * *")
    def tick() -> None:
        ran.append(1)

    with queue.worker():
        until(lambda: ran)
    do(queue.path, "UPDATE oxlite_task_schedule SET due_at = due_at + 365 * 86400")
    count = len(ran)
    with queue.worker():
        until(lambda: len(ran) > count)
    assert "the clock was set back" in caplog.text
    [(due_at,)] = do(queue.path, "SELECT due_at FROM oxlite_task_schedule")
    assert due_at <= time.time()


def test_whose_end_was_asked_for_does_not_run_again(queue: Queue) -> None:
    attempts: list[int] = []
    go_on = threading.Event()

    @queue.task(takes_context=True, retries=5, retry_delay=0)
    def fails(context: TaskContext) -> None:
        attempts.append(context.attempt)
        go_on.wait(LIMIT_SECONDS)
        raise ValueError("not again")

    with queue.worker():
        result = fails.enqueue()
        until(lambda: attempts)
        assert queue.cancel(result.id) == "running"
        go_on.set()
        assert ended(result).status == "cancelled"
    assert attempts == [1]
    assert result.errors[-1].message == "not again"
    assert result.finished_at is not None


def test_whose_end_was_asked_for_is_not_handed_back(queue: Queue) -> None:
    go_on = threading.Event()
    task = queue.task(name="wait")(lambda: go_on.wait(LIMIT_SECONDS) and None)
    worker = queue.worker(threads=2)
    worker.start()
    both = [task.enqueue(), task.enqueue()]
    until(lambda: len(worker.running) == 2)
    queue.cancel(both[0].id)
    assert not worker.stop(0.0)
    assert [queue.get(one.id).status for one in both] == ["cancelled", "ready"]
    assert both[0].wait(0)
    go_on.set()


def test_who_waits_for_what_is_discarded_hears_of_it(queue: Queue) -> None:
    result = queue.task(name="add")(lambda: None).enqueue()
    found: list[object] = []

    def wait() -> None:
        try:
            found.append(result.wait(LIMIT_SECONDS))
        except TaskNotFound as error:
            found.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    time.sleep(0.1)  # it waits, most likely
    began = time.monotonic()
    assert queue.discard(result.id)
    waiter.join()
    assert isinstance(found[0], TaskNotFound)
    assert time.monotonic() - began < LIMIT_SECONDS / 2


def test_another_programs_task_is_run_soon(queue: Queue) -> None:
    queue.task(name="add")(lambda a: a)
    with queue.worker():
        do(queue.path, "INSERT INTO oxlite_task (name, arguments) VALUES ('add', '[[5], {}]')")
        assert ended(queue.get(1)).return_value == 5


def test_a_task_enqueues_another(queue: Queue) -> None:
    @queue.task
    def count(left: int) -> None:
        if left:
            count.enqueue(left - 1)

    with queue.worker(threads=1):
        count.enqueue(50)
        until(lambda: len(queue.find(status="successful", at_most=100)) == 51)


def test_a_task_knows_which_it_is(queue: Queue) -> None:
    @queue.task
    def which() -> int | None:
        found = current_task()
        return None if found is None else found.id

    with queue.worker():
        result = which.enqueue()
        assert ended(result).return_value == result.id
    assert current_task() is None


def test_a_worker_that_stops_finishes_what_runs(queue: Queue, gate: threading.Event) -> None:
    begun = threading.Event()

    @queue.task
    def slow() -> str:
        begun.set()
        gate.wait()
        return "done"

    worker = queue.worker(threads=2)
    worker.start()
    running = slow.enqueue()
    assert begun.wait(LIMIT_SECONDS)
    worker.close()
    waiting = slow.enqueue()
    gate.set()
    assert worker.join(LIMIT_SECONDS)
    assert queue.get(running.id).return_value == "done"
    assert queue.get(waiting.id).status == "ready"
    with pytest.raises(RuntimeError, match="begins once"):
        worker.start()


def test_what_does_not_end_in_time_is_handed_back(queue: Queue, gate: threading.Event) -> None:
    attempts: list[int] = []

    @queue.task(takes_context=True)
    def slow(context: TaskContext) -> int:
        attempts.append(context.attempt)
        if context.attempt == 1:
            gate.wait()
        return context.attempt

    first, second = queue.worker(), queue.worker()
    first.start()
    result = slow.enqueue()
    until(lambda: attempts)
    assert not first.stop(timeout=0.01)
    with second:
        assert ended(result).return_value == 2
        gate.set()
    assert queue.get(result.id).return_value == 2


def test_several_workers_share_the_tasks(queue: Queue) -> None:
    task = queue.task(name="add")(lambda a: a)
    with queue.worker(threads=2), queue.worker(threads=2), Queue(queue.path) as other:
        other.task(name="add")(task.function)
        with other.worker(threads=2):
            for result in queue.enqueue_many(task, [(n,) for n in range(500)]):
                ended(result)
    found = do(queue.path, "SELECT DISTINCT attempt, status FROM oxlite_task")
    assert found == [(1, "successful")]


def test_a_locked_file_is_waited_for(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    with Queue(oxlite.Database(queue.path, timeout=0.05)) as impatient:
        task = impatient.task(name="add")(lambda a: a)
        with impatient.worker(threads=1):
            with closing(stdlib.connect(queue.path, isolation_level=None)) as other:
                task.enqueue(1)
                until(lambda: impatient.get(1).is_finished)
                other.execute("BEGIN IMMEDIATE")
                other.execute(
                    "INSERT INTO oxlite_task (name, arguments) VALUES ('add', '[[2], {}]')"
                )
                time.sleep(0.3)
                other.execute("COMMIT")
            assert ended(impatient.get(2)).return_value == 2
        impatient.database.close()


def test_idle_workers_do_nothing(queue: Queue) -> None:
    """Neither wakes: of all threads the kernel counts how often they have gone to sleep."""

    def sleeps() -> dict[str, str]:
        found = {}
        for task in Path("/proc/self/task").iterdir():
            lines = (task / "status").read_text().splitlines()
            found[task.name] = next(line for line in lines if line.startswith("voluntary"))
        return found

    add = queue.task(name="add")(lambda a: a)
    with queue.worker(threads=4), queue.worker(["other"], threads=2):
        ended(add.enqueue(1))
        mine = str(threading.get_native_id())

        def nobody_wakes() -> bool:
            before = sleeps()
            time.sleep(0.5)
            after = sleeps()
            return after | {mine: ""} == before | {mine: ""}

        until(nobody_wakes)


def test_the_log_says_which_task(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    @queue.task(name="app.fails")
    def fails() -> None:
        raise ValueError("no")

    with caplog.at_level(logging.INFO, "oxlite.tasks"), queue.worker():
        ended(fails.enqueue())
    assert "task 1 (app.fails) has failed" in caplog.text
    assert "ValueError: no" in caplog.text


def test_what_is_kept_for_no_time_is_gone_at_once(queue: Queue) -> None:
    task = queue.task(name="add", keep=0)(lambda a: a)
    failing = queue.task(name="fails", keep=0)(lambda: 1 / 0)
    with queue.worker():
        task.enqueue(1)
        assert ended(failing.enqueue()).status == "failed"
        until(lambda: len(queue.find()) == 1)


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_a_worker_has_threads(queue: Queue, threads: Any) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match="threads is a whole number of 1 or more"):
        queue.worker(threads=threads)


def test_how_long_tasks_wait_and_take_is_counted(queue: Queue) -> None:
    task = queue.task(name="nap")(time.sleep)
    with queue.worker(threads=1):
        for result in [task.enqueue(0.01) for _ in range(5)]:
            ended(result)
        found = queue.stats()
    assert found.workers == 1
    assert found.counts == {"default": {"successful": 5}}
    p50, p99 = found.took_seconds["default"]
    assert 0.01 <= p50 <= p99 < LIMIT_SECONDS
    assert found.waited_seconds["default"][1] >= 0.03
    assert json.dumps(found.counts)
