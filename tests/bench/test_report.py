"""What is printed: figures with their spread, absences with their reasons, 120 columns."""

import io
from array import array

import pytest
from rich.console import Console

from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.statistics import latencies
from oxlite.bench.layout import DASH, WITHHELD, names, number
from oxlite.bench.report.progress import Lines, watching
from oxlite.bench.report.terminal import MULTIPLIED, show
from oxlite.bench.scenarios.cells import Cell
from oxlite.bench.scenarios.scenario import Scenario

FIGURES = {
    "operations_per_second": 250_123.0,
    "reads_per_second": 233_123.0,
    "writes_per_second": 12_456.0,
    "fastest_process_seconds": 0.123,
    "slowest_process_seconds": 12.35,
    "jain": 0.987,
}


def row(*words: str, wall: float = 1.0) -> Row:
    samples = [Sample({**FIGURES, "wall_seconds": wall * factor}) for factor in (0.9, 1.0, 1.1)]
    milliseconds = latencies(array("Q", (n * 1_000_000 for n in range(2000))))
    return Row(Scenario(*words), samples, {"read": milliseconds, "write": milliseconds})


@pytest.fixture
def result() -> Result:
    stock = row("stdlib", "rollback", "stock", "backoff", wall=9.0)
    fast = row("oxlite", "wal", "tuned", "fair")
    fast.samples[0].asked = 2_000_000
    fast.samples[0].errors = {"OperationalError: database is locked": 1234}
    broken = Row(Scenario("oxlite", "wal", "tuned", "backoff"), failure="worker 2 was killed")
    return Result(
        "kv", {"processes": 25}, Plan(), 3, [stock.label], [stock, fast, broken],
        [Cell(Scenario("stdlib", "wal", "tuned", "fair"), "no busy handler")],
        "0123456789abcdef0123", "oxlite bench kv --seed 1", "now", 3.0, ["a note"],
    )  # fmt: skip


def printed(result: Result) -> str:
    buffer = io.StringIO()
    show(result, Console(file=buffer, width=80))
    return buffer.getvalue()


def test_everything_is_said(result: Result) -> None:
    text = printed(result)
    for expected in (
        "233,123",
        f"9.00 (9.00{DASH}9.00)",
        "oxlite wal tuned backoff: worker 2 was killed",
        "stdlib wal tuned fair: no busy handler",
        f"1,234 {MULTIPLIED} OperationalError: database is locked",
        "Note: a note",
        "repeat with: oxlite bench kv --seed 1",
        WITHHELD,
        "withheld",
        "Noise of wall time",
    ):
        assert expected in text


def test_failing_fast_is_not_being_fast(result: Result) -> None:
    result.rows[1].samples[0].asked = 20_000
    assert f"9.00 (9.00{DASH}9.00)" not in printed(result)


def test_tables_fit_120_columns(result: Result) -> None:
    lines = printed(result).splitlines()
    table = [line for line in lines if line.startswith(("scenario", "stdlib", "oxlite", "─"))]
    assert len(table) == 2 * 5
    assert max(map(len, table)) <= 120


def test_names_leave_out_what_all_rows_share(result: Result) -> None:
    assert names(result)["oxlite wal tuned fair"] == "oxlite wal tuned fair"
    result.rows = [row("stdlib", "wal", "tuned"), row("oxlite", "wal", "stock")]
    assert names(result) == {"stdlib wal tuned": "stdlib tuned", "oxlite wal stock": "oxlite stock"}


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (0.00512, "0.005"), (0.512, "0.51"), (9.126, "9.13"), (91.26, "91.3"),
     (912.6, "913"), (1234567.0, "1,234,567")],
)  # fmt: skip
def test_numbers_have_about_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_without_a_terminal_progress_is_lines() -> None:
    buffer = io.StringIO()
    with watching(Console(file=buffer)) as listener:
        assert isinstance(listener, Lines)
        listener.planned(["a", "b"], 1, 7)
        listener.begun("warm-up", "a")
        listener.ended("warm-up", "a", "1.2 s")
        listener.stopped_early(3, 7)
    assert len(buffer.getvalue().splitlines()) == 3


def test_on_a_terminal_progress_is_a_bar() -> None:
    buffer = io.StringIO()
    console = Console(file=buffer, force_terminal=True, width=120)
    with watching(console) as listener:
        listener.planned(["a"], 1, 1)
        listener.begun("warm-up", "stdlib [wal]")
        listener.ended("warm-up", "stdlib [wal]", "1.2 s")
        listener.stopped_early(1, 2)
    assert buffer.getvalue()
