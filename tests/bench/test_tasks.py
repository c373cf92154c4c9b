"""The workload tasks: every task is accounted for, in every system."""

import os
import threading
import time
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.wait import until

from oxlite.bench import UsageError, VerificationError
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.errors import WorkerError
from oxlite.bench.harness.cells import cell
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.run import Listener
from oxlite.bench.lab import Request, perform
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.tasks import figures, verify, work
from oxlite.bench.workloads.tasks.crew import Crew
from oxlite.bench.workloads.tasks.figures import ENQUEUED, LONGEST, P50, RATE, WAKEUPS
from oxlite.bench.workloads.tasks.ledger import ENDED, FIRST, LATEST, PID, RUNS, Gate, Ledger
from oxlite.bench.workloads.tasks.ledger import pass_gate as pass_
from oxlite.bench.workloads.tasks.systems.base import Told
from oxlite.bench.workloads.tasks.systems.catalogue import KINDS
from oxlite.bench.workloads.tasks.tables import TABLES
from oxlite.bench.workloads.tasks.work import TasksParameters
from oxlite.tasks import Queue

TINY = {
    "processes": (2,), "threads": (1,), "tasks": 30, "duration_seconds": 0.1, "paced": 20,
    "enqueuers": (2,), "kills": 2, "waiting": (1_000, 2_000), "claimed": 20, "idle_seconds": 0.2,
}  # fmt: skip


def rows_of(
    driver: str, way: str, loads: Sequence[str], place: Path, listener: Listener, **more: object
) -> dict[str, Row]:
    """The rows of a system by load, none of which has failed."""
    scenario = Scenario(driver, way=way, load=loads[0])
    if missing := DRIVERS.get(driver).missing() or DRIVERS.get(driver).refusal(scenario):
        pytest.skip(missing)
    asked = [f"driver={driver},way={way},load={load}" for load in loads]
    request = Request("tasks", TINY | more, asked, repeats=1, warm_up=False, directory=place)
    result = perform(request, listener)
    mine = [row for row in result.rows if row.scenario.driver == driver]
    assert not any(row.failed() for row in mine), [
        (row.failure, row.failed_figures()) for row in mine
    ]
    assert not list(place.iterdir())
    return {row.scenario["load"]: row for row in mine}


@pytest.mark.slow
@pytest.mark.parametrize(("driver", "way"), KINDS)
def test_every_task_runs_once(driver: str, way: str, place: Path, listener: Listener) -> None:
    loads = (work.LATENCY, work.SHORT, work.ENQUEUE)
    rows = rows_of(driver, way, loads, place, listener)
    assert set(rows) == set(loads)
    for row in rows.values():
        if not any("is locked" in what for what in row.errors()) or driver == "oxlite":
            assert row.errors() == {}
        assert row.environment is not None
    assert rows[work.LATENCY].samples[0].asked == 20
    assert rows[work.LATENCY].latencies[figures.BEGUN].count == 20
    # Of a worker that sleeps for a millisecond in each of 30.
    assert 0 < rows[work.SHORT].samples[0].figures[RATE.name] < 2_000
    assert rows[work.ENQUEUE].samples[0].figures[ENQUEUED.name] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("driver", "way"), [("oxlite", "file"), ("celery", "redis")])
def test_a_killed_workers_task_is_run_again(
    driver: str, way: str, place: Path, listener: Listener
) -> None:
    row = rows_of(driver, way, (work.RECOVERY,), place, listener)[work.RECOVERY]
    assert row.errors() == {}
    assert row.latencies[figures.RECOVERED].count == 2
    assert row.samples[0].figures[LONGEST.name] > 0


@pytest.mark.slow
def test_many_may_wait_and_a_worker_may_be_idle(place: Path, listener: Listener) -> None:
    rows = rows_of("oxlite", "file", (work.WAITING, work.IDLE), place, listener)
    assert rows[work.WAITING].samples[0].asked == 20
    assert rows[work.IDLE].samples[0].figures[WAKEUPS.name] == 0


@pytest.mark.slow
def test_a_program_that_ends_says_why(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    scenario = Scenario("oxlite", way="file", load=work.EMPTY, processes="1", threads="1")
    told = Told("file", str(tmp_path), str(path), work.EMPTY)
    ledger = Ledger.made(path, 1)
    with (
        pytest.raises(WorkerError, match="a worker's program has ended"),
        Crew(scenario, told, tmp_path, ledger) as crew,
    ):
        # The path is a directory, in which nobody can have a queue.
        crew.hold(lambda holds: None, 0)
    ledger.close()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"processes": ()}, "--processes must be at least one number"),
        ({"hertz": 0}, "--rate"),
        ({"tasks": 0}, "--tasks"),
        ({"kills": 0}, "--kills"),
        ({"idle_seconds": 0.0}, "--idle"),
    ],
)
def test_what_is_out_of_range_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TasksParameters(**given)


def test_tasks_that_sleep_are_as_many_as_keep_workers_busy() -> None:
    parameters = TasksParameters(tasks=1_000, duration_seconds=2.0)
    counts = [
        work.count(parameters, Scenario("huey", load=load, processes=processes, threads="2"))
        for load, processes in (("empty", "1"), ("long", "1"), ("long", "2"), ("short", "8"))
    ]
    assert counts == [1_000, 400, 800, 1_000]


@pytest.mark.parametrize(
    ("driver", "reason"),
    [
        ("huey", "one whose worker is killed is lost"),
        ("django_tasks_db", "RUNNING for ever"),
        ("honker", "after its visibility timeout"),
    ],
)
def test_who_runs_nothing_again_is_named(driver: str, reason: str) -> None:
    found = cell(Scenario(driver, way="file", load=work.RECOVERY, build="own")).reason
    assert found is not None
    assert reason in found
    elsewhere = cell(Scenario(driver, build="own")).reason
    assert elsewhere is not None
    assert "oxlite bench" in elsewhere


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger.made(tmp_path / "ledger", 4)
    yield made
    made.close()


def test_a_ledger_keeps_the_first_and_the_latest_beginning(ledger: Ledger) -> None:
    ledger.begin(2, 100)
    assert ledger.have(ENDED, range(4)) == 0
    ledger.begin(2, 200)
    ledger.end(2)
    assert [ledger.value(each, 2) for each in (FIRST, LATEST, RUNS)] == [100, 200, 2]
    assert ledger.value(PID, 2) == os.getpid()
    assert ledger.have(FIRST, range(4)) == ledger.have(ENDED, range(4)) == 1
    assert ledger.column(FIRST, range(1, 4)) == [0, 100, 0]


def test_a_gate_holds_back_until_it_is_open(ledger: Ledger, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "ledger")
    passed: list[int] = []

    def go() -> None:
        pass_(str(tmp_path / "ledger"))
        passed.append(time.monotonic_ns())

    thread = threading.Thread(target=go)
    thread.start()
    assert passed == []
    opened_ns = gate.open()
    until(lambda: passed)
    thread.join()
    assert passed[0] >= opened_ns
    gate.close()


def ended(ledger: Ledger, *begun_ns: int) -> None:
    for number, instant_ns in enumerate(begun_ns):
        ledger.begin(number, instant_ns)
        ledger.end(number)


def calls(*called_ns: int) -> Any:  # noqa: ANN401
    return {}, array("Q", called_ns).tobytes()


def test_a_latency_is_from_the_call_to_the_first_line(ledger: Ledger) -> None:
    ended(ledger, 150, 260)
    sample = figures.of_latency(ledger, calls(100, 200), 2)
    assert list(sample.latencies_ns[figures.BEGUN]) == [50, 60]
    assert (sample.asked, sample.errors) == (2, {})


def test_what_cannot_be_is_found(ledger: Ledger) -> None:
    ended(ledger, 150, 260)
    with pytest.raises(VerificationError, match="task 1 began before it was enqueued"):
        figures.of_latency(ledger, calls(100, 300), 2)
    with pytest.raises(VerificationError, match="while all workers were held back"):
        figures.of_rate(ledger, range(2), 200)


def test_a_task_that_has_not_run_fails_the_row(ledger: Ledger) -> None:
    ended(ledger, 150)
    ledger.begin(1, 260)
    with pytest.raises(VerificationError, match="of 2 tasks 1 have not run"):
        figures.of_rate(ledger, range(2), 100)


def test_a_task_that_ran_twice_is_an_error(ledger: Ledger) -> None:
    ended(ledger, 150, 260)
    ledger.begin(1, 300)
    assert figures.of_rate(ledger, range(2), 100).errors == {figures.TWICE: 1}


def rush(times_ns: Sequence[int], numbers: Sequence[int], errors: Sequence[str]) -> Any:  # noqa: ANN401
    facts = {"calls": len(times_ns), "errors": errors, "elapsed_ns": 1_000_000_000}
    return facts, array("Q", times_ns).tobytes() + array("Q", numbers).tobytes()


def test_what_was_enqueued_is_counted_and_what_failed_is_not() -> None:
    found = [rush((10, 20, 30), (0, 1, 0), ["Error: locked"]), rush((40,), (0,), [])]
    sample = figures.of_enqueueing(found, 3)
    assert sample.figures == {ENQUEUED.name: 3.0}
    assert (sample.asked, sample.errors) == (4, {"Error: locked": 1})
    assert list(sample.latencies_ns[figures.CALLS]) == [10, 30, 40]
    with pytest.raises(VerificationError, match="3 tasks were enqueued, and 2 wait"):
        figures.of_enqueueing(found, 2)


def test_a_file_that_says_something_else_is_found(tmp_path: Path) -> None:
    def nothing() -> None:
        """Do nothing."""

    with Queue(tmp_path / "tasks.db") as queue:
        task = queue.task(nothing)
        queue.enqueue_many(task, [()] * 3)
        verify.check_statuses(tmp_path / "tasks.db", 0, ready=3)
        with pytest.raises(VerificationError, match="the file has 0 that were successful, 3 that"):
            verify.check_statuses(tmp_path / "tasks.db", 3)
        with queue.worker():
            until(lambda: queue.stats().counts["default"].get("successful") == 3)
        verify.check_statuses(tmp_path / "tasks.db", 3)
        verify.check_statuses(tmp_path / "tasks.db", 1, ready=2, others=2)
        with pytest.raises(VerificationError, match="2 tasks have run"):
            verify.check_statuses(tmp_path / "tasks.db", 2)


def row(driver: str, load: str, figures_of: dict[str, float], **axes: str) -> Row:
    build = DRIVERS.get(driver).default_build
    way = "redis" if driver == "celery" else "file"
    scenario = Scenario(driver, way=way, load=load, **axes, build=build)
    return Row(scenario, [Sample(figures_of, 1)] * 2)


def test_bars_are_judged_against_the_peers_of_the_same_run() -> None:
    one = {"processes": "1", "threads": "1"}
    rows = [
        row("oxlite", work.EMPTY, {RATE.name: 3_000.0}, **one),
        row("celery", work.EMPTY, {RATE.name: 900.0}, **one),
        row("django_tasks_db", work.EMPTY, {RATE.name: 400.0}, **one),
        row("oxlite", work.LATENCY, {P50.name: 0.5}),
        row("huey", work.LATENCY, {P50.name: 50.0}),
        row("oxlite", work.RECOVERY, {LONGEST.name: 1_500.0}),
        row("oxlite", work.WAITING, {RATE.name: 900.0}, waiting="1000"),
        row("oxlite", work.WAITING, {RATE.name: 610.0}, waiting="1000000"),
        row("oxlite", work.IDLE, {WAKEUPS.name: 0.0}),
    ]
    result = Result("tasks", {}, Plan(), 2, [], rows, [], "", "", "", 1.0)
    verdicts = {line.name: line.cells[2] for line in TABLES[-1].drawings(result)[0].lines}
    kept = {name: said for name, said in verdicts.items() if "ran twice" not in name}
    assert kept == {
        "median time until a task begins, ms": "held",
        "99th percentile of the time until a task begins, ms": "not known",
        "median time until a task begins, times shorter than Huey's": "held",
        "99th percentile of the time until a task begins, times shorter than Huey's": "not known",
        "1 process 1 thread: empty tasks in a second, times those of Celery with Redis": "held",
        "1 process 1 thread: empty tasks in a second, times those of django-tasks-db on SQLite":
            "missed by 25%",
        "longest time until a task begins again, ms": "missed by 50%",
        "1000000 waiting: tasks in a second, times those with 1,000 waiting": "held",
        "wake-ups of an idle worker": "held",
    }  # fmt: skip
    assert set(verdicts.values()) - set(kept.values()) == set()
