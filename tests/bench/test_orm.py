"""The workload orm: every operation does its work on every driver, and is compared."""

import gc
import os
import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from oxlite.bench import UsageError, WorkerError
from oxlite.bench.harness import installed
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.run import Listener
from oxlite.bench.harness.scratch import scratch
from oxlite.bench.lab import Request, perform
from oxlite.bench.layout import DASH
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.orm import worker
from oxlite.bench.workloads.orm.figures import METRICS, SUM, TURNS, ratio
from oxlite.bench.workloads.orm.mapper import run_threads
from oxlite.bench.workloads.orm.operations import TIMED
from oxlite.bench.workloads.orm.parameters import OrmParameters
from oxlite.bench.workloads.orm.session import MOST_TIMES, OrmSession
from oxlite.bench.workloads.orm.table import TABLES
from oxlite.bench.workloads.orm.workload import OrmWorkload

pytestmark = pytest.mark.slow

TINY = {"level": 1, "at_least_seconds": 0.0}


@pytest.mark.timeout(300)
def test_every_operation_does_its_work_on_every_driver(listener: Listener) -> None:
    # Any account may enter it: root's PostgreSQL runs as another one.
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    asked = ["driver=oxlite,pragmas=tuned", "driver=postgresql"]
    request = Request("orm", TINY, asked, repeats=1, warm_up=False, directory=place)
    result = perform(request, listener)
    assert not result.failed(), [(row.failure, row.failed_figures()) for row in result.rows]
    assert {row.label for row in result.rows} == {
        f"{driver} {mapper}" for driver in ("stdlib wal tuned", "oxlite wal tuned", "postgresql")
        for mapper in ("sqlalchemy", "django")
    }  # fmt: skip
    for row in result.rows:
        [sample] = row.samples
        assert sample.figures.keys() == {SUM.name, *(timed.metric for timed in TIMED)}
        assert row.environment is not None
        connection = row.environment["connection"]
        if row.scenario.driver == "postgresql":
            assert connection["settings"]["fsync"] == "on"
        else:
            pragmas = connection["pragmas"]
            assert (pragmas["journal_mode"], pragmas["synchronous"]) == ("wal", 1)
    drawings = TABLES[0].drawings(result)
    assert [len(drawing.headings) for drawing in drawings] == [5, 5]
    assert all(drawing.lines[-1].name == SUM.title for drawing in drawings)
    assert not list(place.iterdir())
    place.rmdir()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("journal=wal,pragmas=durable", ("wal", 2)),
        ("journal=rollback,pragmas=stock", ("delete", 2)),
    ],
)
def test_settings_are_in_force_on_every_driver_and_mapper(
    tmp_path: Path, listener: Listener, settings: str, expected: tuple[str, int]
) -> None:
    parameters = {**TINY, "operation": ["model_object_creation"]}
    asked = [f"driver=oxlite,{settings}"]
    request = Request("orm", parameters, asked, repeats=1, warm_up=False, directory=tmp_path)
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    assert len(result.rows) == 4
    for row in result.rows:
        assert row.environment is not None
        pragmas = row.environment["connection"]["pragmas"]
        assert (pragmas["journal_mode"], pragmas["synchronous"]) == expected


def test_the_command_says_how_to_repeat_it(bench: Any, tmp_path: Path) -> None:  # noqa: ANN401
    ended = bench(
        "orm", "--level", "0", "--operation", "creation", "--repeats", "1", "--no-warm-up",
        "--at-least", "0", "--scenario", "driver=stdlib,mapper=django,journal=rollback",
        "--directory", tmp_path,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "model_object_and_associated_object_creation (txn)" in ended.stdout
    assert "repeat with: oxlite bench orm --level 0 --loops 0 --operation creation" in ended.stdout


def test_what_is_out_of_range_is_refused() -> None:
    with pytest.raises(UsageError, match="--level"):
        OrmParameters(level=-1)
    with pytest.raises(UsageError, match="operation"):
        OrmParameters(operation=("nonsense",))


SCENARIO = Scenario("stdlib", journal="wal", pragmas="tuned", mapper="sqlalchemy", build="own")


def task_of(tmp_path: Path, **parameters: object) -> worker.OrmTask:
    return worker.OrmTask(
        {
            "parameters": {"level": 1, **parameters},
            "scenario": dict(SCENARIO.but(journal="rollback")),
            "path": str(tmp_path / "orm.db"),
        }
    )


def test_an_operation_that_does_nothing_is_degenerate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    title = "model_object_select_by_pk"
    with closing(task_of(tmp_path)) as task:
        monkeypatch.setattr(task.mapper, "prepare", lambda _name, _scale: lambda: 39)
        task.run({"operation": title}, 0)
        facts, _ = task.collect()
        assert facts == {"failed": "ValueError: degenerate: it concerned 39 objects instead of 40"}


def test_nothing_is_collected_while_timing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def work() -> int:
        seen.append(gc.isenabled())
        return 40

    with closing(task_of(tmp_path)) as task:
        monkeypatch.setattr(task.mapper, "prepare", lambda _name, _scale: work)
        task.run({"operation": "model_object_select_by_pk"}, 0)
        assert task.collect()[0]["degenerate"] is None
    assert seen == [False]
    assert gc.isenabled()


@pytest.mark.parametrize("mapper", ["sqlalchemy", "django"])
def test_the_faithful_manner_is_marked_where_nobody_reads(
    tmp_path: Path, listener: Listener, mapper: str
) -> None:
    asked = [f"driver=stdlib,pragmas=tuned,mapper={mapper}"]
    parameters = {**TINY, "faithful": True, "loops": 1}
    result = perform(Request("orm", parameters, asked, repeats=1, directory=tmp_path), listener)
    assert not result.failed(), [row.failed_figures() for row in result.rows]
    [sample] = result.rows[0].samples
    degenerate = sample.detail["degenerate"]
    assert {timed.title for timed in TIMED if timed.operation.read_by_nobody} == set(degenerate)
    assert degenerate["model_object_select"].endswith("0 objects instead of 200")
    [drawing] = TABLES[0].drawings(result)
    assert len(drawing.remarks) == len(degenerate)
    assert "--faithful" in result.command.split()


def test_rows_that_an_operation_leaves_elsewhere_are_compared(tmp_path: Path) -> None:
    with ExitStack() as stack:
        place = stack.enter_context(scratch(tmp_path, keep=False))
        title = "model_object_creation"
        session = OrmSession(OrmParameters(level=1, operation=[title]), place, stack)
        session.digests[title] = ("another row", "another digest")
        session.do(SCENARIO, title)
        sample = session.measure(SCENARIO, with_environment=False)
    [reason] = sample.failed.values()
    assert reason == "degenerate: it leaves other rows in the tables than another row does"


def test_what_is_short_is_done_again_by_all_as_often(
    tmp_path: Path,
    listener: Any,  # noqa: ANN401
) -> None:
    parameters = {**TINY, "operation": ["select_by_pk"], "at_least_seconds": 60.0}
    asked = ["driver=oxlite,pragmas=tuned,mapper=sqlalchemy"]
    result = perform(Request("orm", parameters, asked, repeats=1, directory=tmp_path), listener)
    operations = OrmParameters(operation=["select_by_pk"]).operations()
    titles = [timed.title for timed in operations]
    metrics = [timed.metric for timed in operations]
    for row in result.rows:
        [sample] = row.samples
        turns_ms = sample.detail[TURNS]
        assert [len(turns_ms[metric]) for metric in metrics] == [MOST_TIMES] * len(titles)
        assert [median(turns_ms[metric]) for metric in metrics] == [
            sample.figures[metric] for metric in metrics
        ]
    [turns] = result.orders
    labels = [row.label for row in result.rows]
    assert len(turns) == len(titles) * (1 + MOST_TIMES) * len(labels)  # the first warms up
    pairs = [tuple(turns[place : place + 2]) for place in range(0, len(turns), 2)]
    assert all(sorted(pair) == sorted(labels) for pair in pairs)
    assert len(set(pairs)) == 2
    assert [heard[2] for heard in listener.heard if heard[0] == "ended"] == titles


def test_a_worker_that_cannot_say_where_it_ran_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    title = "model_object_creation"
    with ExitStack() as stack:
        place = stack.enter_context(scratch(tmp_path, keep=False))
        session = OrmSession(OrmParameters(level=1, operation=[title]), place, stack)
        for _ in range(2):
            session.do(SCENARIO, title)
        first = session.runners[SCENARIO]

        def fails(*_: object, **__: object) -> None:
            raise WorkerError("no report")

        monkeypatch.setattr(first.group, "environment", fails)
        with pytest.raises(WorkerError, match="no report"):
            session.measure(SCENARIO, with_environment=True)
        # As after an interruption: the same is told again.
        assert session.measure(SCENARIO, with_environment=False).figures
        assert session.runners[SCENARIO] is first
        session.do(SCENARIO, title)
        assert first.group.workers[0].process.poll() is not None
        assert session.runners[SCENARIO].elapsed_ns[title] == []


def test_a_round_has_new_workers_on_one_processor(tmp_path: Path) -> None:
    alone, threads = "model_object_creation", "light_threading"
    everywhere = os.sched_getaffinity(0)
    seen: list[tuple[int, set[int]]] = []
    with ExitStack() as stack:
        place = stack.enter_context(scratch(tmp_path, keep=False))
        parameters = OrmParameters(level=1, operation=[alone, threads])
        session = OrmSession(parameters, place, stack)
        for _ in range(3):
            for scenario in (SCENARIO, SCENARIO.but(driver="oxlite", build="tuned")):
                session.do(scenario, threads)
                pid = session.runners[scenario].group.workers[0].process.pid
                assert os.sched_getaffinity(pid) == everywhere
                session.do(scenario, alone)
                seen.append((pid, os.sched_getaffinity(pid)))
                assert session.runners[scenario].elapsed_ns[alone] == []  # warmed up, not counted
                assert session.again(alone)
                session.do(scenario, alone)
                assert len(session.runners[scenario].elapsed_ns[alone]) == 1
            for scenario in list(session.runners):
                sample = session.measure(scenario, with_environment=True)
                assert sample.environment is not None
                assert sample.environment["machine"]["cpu"]["usable_cores"] == len(everywhere)
    assert len({pid for pid, _ in seen}) == 6
    rounds = [seen[place][1] for place in range(0, 6, 2)]
    assert rounds == [seen[place][1] for place in range(1, 6, 2)]
    assert all(len(processors) == 1 for processors in rounds)
    assert (rounds[0] != rounds[1]) is (len(everywhere) > 1)


@pytest.mark.parametrize("one_by_one", [True, False])
def test_threads_live_together_or_one_by_one(one_by_one: bool) -> None:
    alive: list[int] = []
    together = threading.Barrier(3)

    def live(thread: int) -> int:
        alive.append(thread)
        if one_by_one:
            assert len(alive) == 1
        else:
            together.wait(30)
        alive.remove(thread)
        return 2

    assert run_threads(3, live, one_by_one=one_by_one) == 6
    with pytest.raises(ZeroDivisionError):
        run_threads(2, lambda thread: 1 // thread, one_by_one=one_by_one)


def test_verdicts_are_of_the_interval() -> None:
    metrics = list(TIMED[:3])

    def row(driver: str, *milliseconds: Sequence[float]) -> Row:
        build = "tuned" if driver == "oxlite" else "own"
        scenario = Scenario(driver, journal="wal", pragmas="tuned", build=build)
        return Row(
            scenario,
            [
                Sample({timed.metric: value for timed, value in zip(metrics, values, strict=True)})
                for values in milliseconds
            ],
        )

    rows = [
        row("stdlib", *([[10.0, 10.0, 10.0]] * 6)),
        row("oxlite", *([[5.0, 20.0, 5.0]] * 5), [5.0, 20.0, 20.0]),
    ]
    result = Result("orm", {}, Plan(), 6, [], rows, [], "", "", "", 1.0)
    [drawing] = TABLES[0].drawings(result)
    assert [line.name for line in drawing.lines] == [timed.title for timed in metrics]
    assert "97% sure" in drawing.title
    assert drawing.lines[2].cells[-1] == f"2.00 (0.50{DASH}2.00)"
    [remark] = drawing.remarks
    assert "oxlite: 1 of 3 lines are not slower than stdlib" in remark
    assert f"slower: {metrics[1].title} 0.50 (0.50{DASH}0.50)" in remark
    assert remark.endswith("; of lines that are all equal, up to 0.047 would look slower")
    assert f"not known: {metrics[2].title} 2.00 (0.50{DASH}2.00)" in remark
    del rows[1].samples[5]
    [drawing] = TABLES[0].drawings(result)
    assert drawing.remarks[0].startswith("oxlite: no verdict: six rounds or more")
    del rows[1].samples[1:]
    [drawing] = TABLES[0].drawings(result)
    assert "sure" not in drawing.title
    assert drawing.lines[0].cells[-1] == "2.00 (one repeat)"
    rows[1].failure = "gone"
    [drawing] = TABLES[0].drawings(result)
    assert drawing.remarks[0] == "oxlite: nothing was compared with stdlib"


def test_all_of_it_has_all_builds(
    tmp_path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Scenario] = []

    def session(_: OrmWorkload, __: OrmParameters, scenarios: Sequence[Scenario], ___: Any) -> Any:  # noqa: ANN401
        seen.extend(scenarios)
        raise OSError("enough")

    monkeypatch.setattr(OrmWorkload, "session", session)
    monkeypatch.setattr(installed, "missing", lambda _: None)
    with pytest.raises(UsageError, match="enough"):
        perform(Request("orm", TINY, every=True, directory=tmp_path), listener)
    settings = {("rollback", "stock"), ("wal", "tuned"), ("wal", "durable")}
    found = {
        (one.driver, one.get("build"), one.get("journal"), one.get("pragmas"), one.get("mapper"))
        for one in seen
    }
    assert found == {
        (driver, build, *setting, mapper)
        for driver, build in (
            ("stdlib", "own"),
            *(("oxlite", b) for b in ("tuned", "stock", "seed")),
        )
        for setting in settings
        for mapper in ("sqlalchemy", "django")
    } | {("postgresql", "own", None, None, mapper) for mapper in ("sqlalchemy", "django")}


def test_each_turn_is_paired_with_the_one_beside_it_and_rounds_count() -> None:
    [timed, *_] = TIMED
    metric = METRICS[0]
    assert metric.name == timed.metric

    def row(driver: str, *rounds: Sequence[float]) -> Row:
        samples = [
            Sample({metric.name: median(turns)}, detail={TURNS: {metric.name: list(turns)}})
            for turns in rounds
        ]
        return Row(Scenario(driver), samples)

    # The machine is twice as slow in the second turn of each round, for both.
    slow = row("stdlib", [10.0, 20.0, 10.0], [10.0, 20.0, 12.0])
    quick = row("oxlite", [5.0, 10.0, 5.0], [5.0, 8.0, 4.0])
    result = Result("orm", {}, Plan(), 2, [], [slow, quick], [], "", "", "", 1.0)
    found = ratio(result, quick, metric, slow)
    assert found is not None
    assert found.median == 2.25
    assert (found.interval.low, found.interval.high) == (2.0, 2.5)
    assert found.interval.confidence == pytest.approx(1 - 2 / 2**2)


def test_builds_and_settings_are_compared_beside_what_was_published() -> None:
    def row(driver: str, build: str, seconds: float, **settings: str) -> Row:
        scenario = Scenario(driver, build=build, **settings, mapper="django")
        return Row(scenario, [Sample({SUM.name: seconds * 1000}) for _ in range(6)])

    stock = {"journal": "rollback", "pragmas": "stock"}
    tuned = {"journal": "wal", "pragmas": "tuned"}
    rows = [
        row("stdlib", "own", 4.0, **tuned),
        row("oxlite", "tuned", 2.0, **tuned),
        row("oxlite", "seed", 2.5, **tuned),
        row("oxlite", "stock", 5.0, **stock),
        row("postgresql", "own", 8.0),
    ]
    result = Result("orm", {}, Plan(), 6, [], rows, [], "", "", "", 1.0)
    [sums] = TABLES[1].drawings(result)
    cells = {line.name: list(line.cells) for line in sums.lines}
    assert cells["oxlite-stock rollback stock django"] == ["5.00", "1", "1.00", "13.6"]
    same = f"2.00 (2.00{DASH}2.00)"
    assert cells["oxlite-seed wal tuned django"] == ["2.50", same, "2.07", "6.55"]
    assert cells["oxlite wal tuned django"][2:] == [DASH, DASH]
    assert cells["postgresql django"][2] == "1.19"
    drawn = [tuple(drawing.headings) for drawing in TABLES[0].drawings(result)]
    assert drawn == [
        ("stdlib", "oxlite", "postgresql", "oxlite than stdlib", "oxlite than postgresql"),
        ("oxlite", "oxlite-seed", "oxlite than oxlite-seed"),
        ("oxlite-stock",),
    ]
    del rows[3]
    assert TABLES[1].drawings(result) == []
