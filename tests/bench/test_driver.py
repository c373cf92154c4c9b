"""The workload driver: every operation does its work on every driver that can do it."""

import gc
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from oxlite.bench import UsageError, VerificationError
from oxlite.bench.harness.databases import make_file
from oxlite.bench.harness.model import Metric, Plan, Result, Row, Sample
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.lab import Request, perform
from oxlite.bench.layout import DASH
from oxlite.bench.report import facts, markdown
from oxlite.bench.report.terminal import show
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.driver.catalogue import OPERATIONS, DriverParameters
from oxlite.bench.workloads.driver.database import fill
from oxlite.bench.workloads.driver.operation import Batch, Operation
from oxlite.bench.workloads.driver.peers import UnavailableError
from oxlite.bench.workloads.driver.table import OperationTable
from oxlite.bench.workloads.driver.worker import DriverTask, timed
from oxlite.bench.workloads.driver.workload import METRICS, DriverSession, DriverWorkload

SMALL = {"batches": 2, "scale": 0.002}
FILE = {"journal": "wal", "pragmas": "tuned"}

# What has no equivalent in apsw. Of the standard library nothing may be missing.
NOT_IN_APSW = {
    "10,000 rows, fetchmany(100)",
    "text_factory=bytes, 1,000 rows",
    "blob: slice",
    "blob: slice assignment",
    "row_factory=Row, 1,000 rows",
    "Row by name",
    "Row by index",
    "converter by PARSE_COLNAMES, 1,000 rows",
    "date in (default adapter), a row",
    "datetime in (default adapter), a row",
    "date out (default converter), 1,000 rows",
    "datetime out (default converter), 1,000 rows",
    "iterdump, 1,000 rows",
}


def test_drivers_take_turns_and_leave_nothing(tmp_path: Path, listener: Any) -> None:  # noqa: ANN401
    request = Request("driver", SMALL, repeats=2, directory=tmp_path)
    result = perform(request, listener)
    assert not result.failed(), facts.failures(result, DriverWorkload())
    absent = {cell.scenario.driver for cell in result.impossible}
    assert {row.scenario.driver for row in result.rows} == {"stdlib", "apsw", "oxlite"} - absent
    assert "stdlib" not in absent
    for row in result.rows:
        without = row.absent_figures().keys()
        for metric in METRICS:
            assert (row.summary(metric.name) is None) == (metric.name in without)
        if row.scenario.driver == "stdlib":
            assert not without
        if row.scenario.driver == "apsw":
            assert without == {OPERATIONS.get(name).metric for name in NOT_IN_APSW}
    begun = [heard[2] for heard in listener.heard if heard[0] == "begun"]
    rows = [row.label for row in result.rows]
    assert begun[len(rows) :] == [label for turns in result.orders for label in turns]
    assert all(sorted(turns) == sorted(rows) for turns in result.orders)
    assert not list(tmp_path.iterdir())


def test_operations_and_interpreters_are_chosen(tmp_path: Path, listener: Any) -> None:  # noqa: ANN401
    given = {**SMALL, "operation": ["blob of", "CURSOR()"], "interpreter": [sys.executable]}
    request = Request("driver", given, ["driver=stdlib"], repeats=1, directory=tmp_path)
    result = perform(request, listener)
    row = result.row(f"stdlib wal tuned {sys.executable}")
    assert row is not None
    assert [*row.samples[0].figures] == ["blob_of_1_mib_out_us", "blob_of_1_mib_in_us", "cursor_us"]
    assert "--operation 'blob of' --operation 'CURSOR()' --interpreter" in result.command
    [drawing] = OperationTable(METRICS, ("stdlib", "apsw")).drawings(result)
    assert drawing.title.endswith(f"({sys.executable})")
    assert len(drawing.lines) == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"operation": ["blub"]}, "no operation is called 'blub'.*; cursor.*; "),
        ({"operation": [""]}, "no operation is called ''"),
        ({"batches": 0}, "--batches must be at least 1"),
        ({"scale": 0.0}, "--scale must be at least"),
    ],
)
def test_parameters_out_of_range_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        DriverParameters(**given)


def test_the_work_depends_on_the_parameters() -> None:
    digests = {
        DriverWorkload().work_digest(DriverParameters(**given))
        for given in ({}, {"seed": 2}, {"scale": 2.0}, {"operation": ["blob"]})
    }
    assert len(digests) == 4


def test_another_result_is_found_out() -> None:
    assert timed(Batch(lambda: [1], [1]))[1] == [1]
    with pytest.raises(VerificationError, match=r"\[1\] instead of \[2\]"):
        timed(Batch(lambda: [1], [2]))


def test_before_and_after_a_batch_is_not_timed() -> None:
    done: list[str] = []
    batch = Batch(
        lambda: done.append("run"),
        3,
        lambda: done.append("before"),
        lambda _: len([*done, "result"]),
    )
    assert timed(batch)[1] == 3
    assert done == ["before", "run"]


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., DriverTask]]:
    """A task of the standard library's driver in this process, with operations of the test's."""
    with ExitStack() as stack:
        stack.callback(gc.unfreeze)  # a task freezes what its process lives with

        def made(*operations: Operation) -> DriverTask:
            monkeypatch.setattr(DriverParameters, "operations", lambda _: operations)
            make_file(tmp_path / "d.db", "wal", lambda connection, _: fill(connection))
            scenario = dict(Scenario("stdlib", **FILE, build="own"))
            arguments = {
                "parameters": asdict(DriverParameters()),
                "scenario": dict(scenario),
                "path": str(tmp_path / "d.db"),
            }
            task = DriverTask(arguments)
            stack.callback(task.close)
            return task

        yield made


def refusing(*_: object) -> Batch:
    raise UnavailableError("it has no such thing")


def test_an_operation_fails_alone_and_is_not_tried_again(
    task: Callable[..., DriverTask],
) -> None:
    tries: list[int] = []
    made = task(
        Operation("good", 10, lambda _, count: Batch(lambda: count, 10)),
        Operation("wrong", 10, lambda _, count: Batch(lambda: tries.append(1), 10)),
        Operation("broken", 10, lambda peer, _: peer.library.nothing),
        Operation("lacking", 10, refusing),
    )
    for _ in range(2):
        made.run({}, 0)
    found, _ = made.collect()
    assert [*found["figures"]] == [*found["digests"]] == ["good_us"]
    assert found["absent"] == {"lacking_us": "it has no such thing"}
    assert found["failed"].keys() == {"wrong_us", "broken_us"}
    assert found["failed"]["wrong_us"] == "VerificationError: None instead of 10"
    assert "AttributeError" in found["failed"]["broken_us"]
    assert tries == [1]


def test_drivers_must_agree(tmp_path: Path) -> None:
    with ExitStack() as stack:
        session = DriverSession(DriverParameters(), Scratch(tmp_path), stack)
        common: dict[str, Any] = {"figures": {"a": 1.0, "b": 2.0}, "absent": {}, "failed": {}}
        first = session.sample(Scenario("stdlib"), {**common, "digests": {"a": "1", "b": "2"}}, b"")
        second = session.sample(
            Scenario("oxlite"), {**common, "digests": {"a": "1", "b": "3"}}, b""
        )
    assert first.figures == {"a": 1.0, "b": 2.0}
    assert second.figures == {"a": 1.0}
    assert second.failed == {"b": "its result is not that of stdlib"}


A, B, C = (Metric(f"{name}_us", f"operation {name}", "lower") for name in "abc")


def row(driver: str, figures: Sequence[dict[str, float]], **more: Any) -> Row:  # noqa: ANN401
    scenario = Scenario(driver, **FILE, build="tuned" if driver == "oxlite" else "own")
    return Row(scenario, [Sample(values, **more) for values in figures])


def result_of(*rows: Row) -> Result:
    return Result(
        "driver", {}, Plan(), 2, [rows[0].label], list(rows), [], "0" * 64, "oxlite", "now", 1.0
    )  # fmt: skip


def spread(*figures: float) -> str:
    middle, low, high = (f"{figure:.2f}" for figure in figures)
    return f"{middle} ({low}{DASH}{high})"


def test_the_table_has_a_line_for_each_operation_and_names_what_is_slower() -> None:
    result = result_of(
        row("stdlib", [{"a_us": 4.0, "b_us": 4.0}, {"a_us": 4.0, "b_us": 4.0}]),
        row("apsw", [{"a_us": 2.0}, {"a_us": 2.0}], absent={"b_us": "apsw has none"}),
        row("oxlite", [{"a_us": 2.0, "b_us": 4.0}, {"a_us": 1.0, "b_us": 5.0}]),
    )
    [drawing] = OperationTable((A, B, C), ("stdlib", "apsw")).drawings(result)
    assert drawing.headings == ["stdlib", "apsw", "oxlite", "than stdlib", "than apsw"]
    assert [(line.name, *line.cells) for line in drawing.lines] == [
        ("operation a", "4.00", "2.00", "1.50", spread(3, 2, 4), spread(1.5, 1, 2)),
        ("operation b", "4.00", DASH, "4.50", spread(0.9, 0.8, 1), DASH),
    ]
    [verdict] = drawing.remarks
    assert "slower than stdlib" in verdict
    assert verdict.endswith(f"1 of 2 operations): operation b {spread(0.9, 0.8, 1)}")


def test_where_nothing_is_slower_that_is_said() -> None:
    figures = [{"a_us": 1.0, "b_us": 1.04}] * 2
    result = result_of(row("stdlib", [{"a_us": 1.0, "b_us": 1.0}] * 2), row("oxlite", figures))
    table = OperationTable((A, B), ("stdlib", "apsw"))
    [[verdict]] = [drawing.remarks for drawing in table.drawings(result)]
    assert "nothing is slower than stdlib (of 2 operations" in verdict
    odd = [*[{"a_us": 1.0, "b_us": 1.0}] * 8, {"a_us": 2.0, "b_us": 1.0}]
    result = result_of(row("stdlib", [{"a_us": 1.0, "b_us": 1.0}] * 9), row("oxlite", odd))
    [[verdict]] = [drawing.remarks for drawing in table.drawings(result)]
    assert "nothing is slower than stdlib (of 2 operations" in verdict
    alone = result_of(row("oxlite", figures))
    [[verdict]] = [drawing.remarks for drawing in table.drawings(alone)]
    assert verdict == "oxlite: nothing was compared with stdlib"


def test_what_is_absent_and_what_failed_is_said_in_both_forms() -> None:
    name = METRICS[0].name
    lacking = row("apsw", [{}], absent={name: "apsw has none"})
    broken = row("oxlite", [{}], failed={name: "ValueError: wrong"})
    result = result_of(row("stdlib", [{name: 1.0}]), lacking, broken)
    assert result.failed()
    assert not result_of(lacking).failed()
    buffer = io.StringIO()
    show(result, Console(file=buffer, width=80))
    for text in (buffer.getvalue(), markdown.render(result)):
        words = " ".join(text.split())
        assert f"{DASH} apsw: apsw has none: {METRICS[0].title}" in words
        assert f"failed oxlite wal tuned: {METRICS[0].title}: ValueError: wrong" in words
