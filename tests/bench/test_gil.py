"""The workload gil: its threads do what is counted, end by themselves, and are judged."""

import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest

from oxlite.bench import UsageError, VerificationError, WorkerError
from oxlite.bench.drivers.base import Connection
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.drivers.connections import Place
from oxlite.bench.harness.databases import make_file
from oxlite.bench.harness.model import Metric, Plan, Result, Row, Sample
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.harness.threads import Body, Part, Window, together
from oxlite.bench.lab import Request, perform
from oxlite.bench.report import facts
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.gil import parts, turns, work, workload
from oxlite.bench.workloads.gil.claims import CLAIMS
from oxlite.bench.workloads.gil.work import GilParameters
from oxlite.bench.workloads.gil.worker import GilTask
from oxlite.bench.workloads.gil.workload import GilSession, GilWorkload

pytestmark = pytest.mark.slow

FILE = {"journal": "wal", "pragmas": "tuned"}
STDLIB = Scenario("stdlib", **FILE, build="own")
TINY = {"scale": 0.01}
SECONDS = 0.01
TOO_FEW = {metric.name for metric in (*turns.WAKE_P99.values(), turns.TICK_P99)}

SHARES = {metric.name for metric in (*turns.CPU_KEPT.values(), turns.CPU_KEPT_BY_WRITERS)}


def test_drivers_take_turns_and_leave_nothing(tmp_path: Path, listener: Any) -> None:  # noqa: ANN401
    result = perform(Request("gil", TINY, repeats=1, directory=tmp_path), listener)
    assert not result.failed(), facts.failures(result, GilWorkload())
    absent = {cell.scenario.driver for cell in result.impossible}
    assert {row.scenario.driver for row in result.rows} == {"stdlib", "apsw", "oxlite"} - absent
    assert "stdlib" not in absent
    without = TOO_FEW | ({turns.SCALING.name} if turns.processors() < 2 else set())
    for row in result.rows:
        [sample] = row.samples
        # A CPU thread that another process kept waiting all the while has no share to show.
        assert without <= sample.absent.keys() <= without | SHARES
        expected = {metric.name for metric in turns.METRICS} - sample.absent.keys()
        assert sample.figures.keys() == expected
        assert row.latencies.keys() == {
            *(f"wake beside {readers}" for readers in turns.IDLE_READERS),
            "tick beside query",
        }
        assert all(found.count for found in row.latencies.values())
    assert not [heard for heard in listener.heard if "warm-up" in heard]
    assert not list(tmp_path.iterdir())


def test_it_has_its_own_plan_unless_the_user_says(tmp_path: Path, listener: Any) -> None:  # noqa: ANN401
    assert GilWorkload.plan == Plan(repeats=5, warm_ups=0)
    given = {**TINY, "scale": 0.001}
    request = Request("gil", given, ["driver=stdlib"], quick=True, directory=tmp_path)
    result = perform(request, listener)
    assert result.plan == GilWorkload.quick_plan
    assert result.repeats >= GilWorkload.quick_plan.least_repeats
    assert "warm-up" not in " ".join(facts.head(result, GilWorkload()))


def test_the_command_measures_another_interpreter(
    bench: Callable[..., Any], tmp_path: Path
) -> None:
    ended = bench(
        "gil", "--scale", "0.001", "--repeats", "1", "--scenario", "driver=stdlib",
        "--interpreter", sys.executable, "--directory", tmp_path,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert f"times better than each peer: CPython {sys.version.split()[0]} ({sys.executable})" in (
        " ".join(ended.stdout.split())
    )
    assert "repeat with: oxlite bench gil --interpreter" in ended.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("scale", [0.0, 1e9, float("nan")])
def test_parameters_out_of_range_are_refused(scale: float) -> None:
    with pytest.raises(UsageError, match="--scale must be at "):
        GilParameters(scale=scale)


def test_the_work_depends_on_the_parameters() -> None:
    digests = {
        GilWorkload().work_digest(GilParameters(**given))
        for given in ({}, {"seed": 2}, {"scale": 2.0})
    }
    assert len(digests) == 3


@pytest.fixture
def database(tmp_path: Path) -> Path:
    make_file(tmp_path / "gil.db", "wal", lambda connection, _: work.fill(connection))
    return tmp_path / "gil.db"


@pytest.fixture
def opened(database: Path) -> Callable[[], Connection]:
    return lambda: Place(DRIVERS.get("stdlib"), database, STDLIB, 5.0).opened()


def doing(body: Body) -> Part:
    """A part that needs no preparation."""

    @contextmanager
    def part() -> Iterator[Body]:
        yield body

    return part


def failing() -> Any:  # noqa: ANN401
    raise ValueError("no preparation")


def test_parts_begin_together_and_end_before_the_call_does() -> None:
    before = threading.active_count()
    gone: list[str] = []

    @contextmanager
    def part() -> Iterator[Body]:
        yield lambda window: (window.begin_ns, time.perf_counter_ns())
        gone.append(threading.current_thread().name)

    found = together([part, part], SECONDS)
    [begin_ns] = {begin_ns for begin_ns, _ in found}
    assert all(at_ns >= begin_ns for _, at_ns in found)
    assert len(set(gone)) == 2
    assert threading.active_count() == before


def test_what_goes_wrong_in_a_thread_is_raised_and_nobody_is_left() -> None:
    before = threading.active_count()
    ran: list[Window] = []
    with pytest.raises(ValueError, match="no preparation"):
        together([doing(ran.append), failing], SECONDS)
    assert not ran
    with pytest.raises(ZeroDivisionError):
        together([doing(ran.append), doing(lambda _: 1 / 0)], SECONDS)
    assert len(ran) == 1
    assert threading.active_count() == before


def test_one_that_closes_the_window_ends_the_others(opened: Callable[[], Connection]) -> None:
    late_ns, spun, read = together(
        [parts.ticker(3), parts.spinner(), parts.reader(opened, work.lookups(1, 0))], 3600
    )
    assert len(late_ns) == 3
    assert spun.total >= spun.counted
    assert read.total > read.counted


def test_another_row_is_found_out(opened: Callable[[], Connection]) -> None:
    [(parameters, _)] = work.lookups(1, 0)[:1]
    with pytest.raises(VerificationError, match="look-ups gave another row"):
        together([parts.reader(opened, [(parameters, ("other",))])], SECONDS)


def test_queries_are_counted_and_checked(
    opened: Callable[[], Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    [done] = together([parts.querier(opened, 1, 3)], 0.0)
    assert done.total == 3
    assert done.elapsed_ns > 0
    [endless] = together([parts.querier(opened, 1)], SECONDS)
    assert endless.total > endless.counted
    monkeypatch.setattr(work, "query_result", lambda rounds: rounds)
    with pytest.raises(VerificationError, match=r"instead of \(1,\)"):
        together([parts.querier(opened, 1, 1)], SECONDS)


@pytest.fixture
def task(database: Path) -> Iterator[GilTask]:
    """The standard library's driver in this process."""
    made = GilTask(
        {
            "parameters": asdict(GilParameters(scale=0.001)),
            "scenario": dict(STDLIB),
            "path": str(database),
        }
    )
    yield made
    made.close()


def test_a_turn_that_fails_fails_alone(task: GilTask, monkeypatch: pytest.MonkeyPatch) -> None:
    def writer(opened: Callable[[], Connection], text: str) -> Part:
        """Writes one row and says that it was two."""

        def body(window: Window) -> parts.Done:
            connection = opened()
            connection.execute(work.WRITE, (text,))
            connection.close()
            return parts.Done(2, 2, 1)

        return doing(body)

    with monkeypatch.context() as patched:
        patched.setattr(parts, "writer", writer)
        task.run({}, 0)
    found, payload = task.collect()
    reason = "VerificationError: 4 rows were written, and 8 counted"
    expected = dict.fromkeys((turns.INSERTS.name, turns.CPU_KEPT_BY_WRITERS.name), reason)
    assert found["failed"] == expected
    assert turns.LOOKUPS[1].name in found["figures"]
    assert len(payload) == array("Q").itemsize * sum(found["ticks"].values())
    task.run({}, 0)
    assert not task.collect()[0]["failed"]


def test_one_processor_cannot_show_scaling(task: GilTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "processors", lambda: 1)
    task.run({}, 0)
    found, _ = task.collect()
    assert found["absent"][turns.SCALING.name] == "needs 2 processors, there is 1"


def test_lateness_is_handed_over_by_kind(tmp_path: Path) -> None:
    facts = {"figures": {}, "absent": {}, "failed": {}, "detail": {}}
    payload = array("Q", [1, 2, 3]).tobytes()
    with ExitStack() as stack:
        session = GilSession(GilParameters(), Scratch(tmp_path), stack)
        found = session.sample(STDLIB, {**facts, "ticks": {"a": 1, "b": 0, "c": 2}}, payload)
    assert {kind: list(late_ns) for kind, late_ns in found.latencies_ns.items()} == {
        "a": [1], "b": [], "c": [2, 3],
    }  # fmt: skip


def test_a_worker_that_hangs_is_ended_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        session = GilSession(GilParameters(scale=0.1), Scratch(tmp_path), stack)
        session.measure(STDLIB, with_environment=False)
        workers = psutil.Process().children()
        monkeypatch.setattr(GilSession, "limit_seconds", lambda _: 0.001)
        with pytest.raises(WorkerError, match="no worker answered 'finished'"):
            session.measure(STDLIB, with_environment=False)
        ended, alive = psutil.wait_procs(workers, 10)
        assert len(ended) == 1
        assert not alive


def row(driver: str, interpreter: str | None, figures: Sequence[dict[Metric, float]]) -> Row:
    build = "tuned" if driver == "oxlite" else "own"
    scenario = Scenario(driver, **FILE, build=build, interpreter=interpreter)
    samples = [Sample({metric.name: v for metric, v in values.items()}) for values in figures]
    return Row(scenario, samples)


def result_of(*rows: Row) -> Result:
    return Result(
        "gil", {}, Plan(), 2, [rows[0].label], list(rows), [], "0" * 64, "oxlite", "now", 1.0
    )  # fmt: skip


def test_every_interpreter_is_judged_against_its_own_standard_library() -> None:
    lookups, late = turns.LOOKUPS_BESIDE[1], turns.WAKE_P99[4]
    result = result_of(
        row("stdlib", "a", [{lookups: 1.0, late: 4.0, turns.SCALING: 1.9}] * 2),
        row("oxlite", "a", [{lookups: n, late: 6.0, turns.SCALING: 1.9} for n in (120.0, 140.0)]),
        row("stdlib", "b", [{lookups: 10.0, late: 1.0}] * 2),
        row("oxlite", "b", [{lookups: 600.0, late: 3.0, turns.SCALING: 1.5}] * 2),
    )
    medians, claims = workload.GilWorkload.tables
    first, _second = medians.drawings(result)
    assert [line.name for line in first.lines] == [
        metric.title for metric in turns.METRICS if metric in {lookups, late, turns.SCALING}
    ]
    [judged] = claims.drawings(result)
    times = "times the standard library's"
    verdicts = {line.name: line.cells[-1] for line in judged.lines}
    assert len(verdicts) == 2 * len(CLAIMS)
    assert {name: verdict for name, verdict in verdicts.items() if verdict != "not known"} == {
        f"oxlite a: {lookups.title}, {times}": "held",
        f"oxlite a: {late.title}, {times}": "held",
        f"oxlite a: {turns.SCALING.title}": "held",
        f"oxlite b: {lookups.title}, {times}": "missed by 40%",
        f"oxlite b: {late.title}, {times}": "missed by 50%",
        f"oxlite b: {turns.SCALING.title}": "missed by 17%",
    }
