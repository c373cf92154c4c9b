"""What is printed: figures with their spread, absences with their reasons, 120 columns."""

import io
from array import array
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from oxlite.bench.harness.cells import Cell
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.statistics import Summary, latencies, summarise
from oxlite.bench.layout import ABSENT, DASH, WITHHELD, Table, against, names, number, spread_of
from oxlite.bench.report import markdown
from oxlite.bench.report.facts import MULTIPLIED
from oxlite.bench.report.html import page
from oxlite.bench.report.progress import Lines, watching
from oxlite.bench.report.terminal import show
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.catalogue import WORKLOADS
from oxlite.bench.workloads.kv.workload import KvWorkload

FIGURES = {
    "operations_per_second": 250_123.0,
    "reads_per_second": 233_123.0,
    "writes_per_second": 12_456.0,
    "fastest_process_seconds": 0.123,
    "slowest_process_seconds": 12.35,
    "jain": 0.987,
}


def row(*words: str, wall: float = 1.0, **axes: str) -> Row:
    samples = [Sample({**FIGURES, "wall_seconds": wall * factor}) for factor in (0.9, 1.0, 1.1)]
    milliseconds = latencies(array("Q", (n * 1_000_000 for n in range(2000))))
    named = dict(zip(("driver", "journal", "pragmas", "busy", "build"), words, strict=False))
    return Row(Scenario(**named, **axes), samples, {"read": milliseconds, "write": milliseconds})


@pytest.fixture
def result() -> Result:
    stock = row("stdlib", "rollback", "stock", "backoff", wall=9.0)
    fast = row("oxlite", "wal", "tuned", "fair")
    fast.samples[0].asked = 2_000_000
    fast.samples[0].errors = {"OperationalError: database is locked": 1234}
    broken = Row(
        Scenario("oxlite", journal="wal", pragmas="tuned", busy="backoff"),
        failure="worker 2 was killed",
    )
    return Result(
        "kv", {"processes": 25}, Plan(), 3, [stock.label], [stock, fast, broken],
        [Cell(Scenario("stdlib", journal="wal", pragmas="tuned", busy="fair"), "no busy handler")],
        "0123456789abcdef0123", "oxlite bench kv --seed 1", "now", 3.0, ["a note"],
    )  # fmt: skip


def printed(result: Result) -> str:
    buffer = io.StringIO()
    show(result, Console(file=buffer, width=80))
    return buffer.getvalue()


def said(result: Result) -> str:
    """The same without the ends of lines, which depend on the width."""
    return " ".join(printed(result).split())


def test_everything_is_said(result: Result) -> None:
    text = said(result)
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
        "with the interval of the true median (75% sure, by order statistics) in brackets",
    ):
        assert expected in text


def test_failing_fast_is_not_being_fast(result: Result) -> None:
    result.rows[1].samples[0].asked = 20_000
    assert f"9.00 (9.00{DASH}9.00)" not in printed(result)


@pytest.mark.parametrize("build", ["own", "stock", "seed"])
def test_tables_fit_80_columns(result: Result, build: str) -> None:
    result.rows.append(row("oxlite", "rollback", "tuned", "backoff", build, wall=123.4))
    lines = printed(result).splitlines()
    table = [line for line in lines if line.startswith(("scenario", "stdlib", "oxlite", "─"))]
    assert max(map(len, table)) <= 80
    # What is too wide is parted, and nothing of it is lost.
    headings = " ".join(line for line in table if line.startswith("scenario"))
    for heading in ("wall s", "reads/s", "errors", "Jain", "times faster", "read p50", "p99.9"):
        assert heading in headings


def test_a_row_with_failures_has_no_rate_to_compare(result: Result) -> None:
    result.rows[1].samples[0].asked = 20_000
    stock, failing = result.rows[:2]
    for metric in KvWorkload.metrics:
        compared = result.improvement(failing, metric, stock.label)
        assert (compared is None) == (metric.name != "jain"), metric.name


def test_what_all_rows_share_is_said_once(result: Result) -> None:
    assert "in all rows" not in printed(result)
    result.rows = [row("stdlib", "wal", "tuned", "none"), row("oxlite", "wal", "stock", "none")]
    assert "in all rows: journal=wal, busy=none\n" in printed(result)


def test_what_was_left_out_is_named_or_counted(result: Result) -> None:
    result.left = ["oxlite wal stock none", "stdlib wal stock none"]
    assert "left for --all  oxlite wal stock none, stdlib wal stock none\n" in printed(result)
    result.left = [f"row {number}" for number in range(20)]
    assert "left for --all  20 scenarios" in printed(result)


def test_the_noise_of_many_rows_is_summed_up(result: Result) -> None:
    result.rows = [
        row("oxlite", "wal", "tuned", "fair", processes=f"{number}", wall=float(number))
        for number in range(1, 51)
    ]
    text = said(result)
    assert "of 50 rows the median 14.8%, the largest oxlite" in text
    assert "14.8%; every row's in the JSON file" in text


def report(syncs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "machine": {
            "cpu": {"model": "An <odd> CPU | 9", "usable_cores": 2},
            "memory_total_bytes": 1 << 34,
            "operating_system": {"distribution": "Debian", "name": "Linux", "kernel": "6"},
            "python": {"implementation": "CPython", "version": "3.11", "gil_enabled": True},
            "file_system": {"type": "ext4", "options": ["rw"]},
        },
        "fsync": {"block_bytes": 4096, "series": syncs},
    }


@pytest.fixture
def described(result: Result) -> Result:
    """The result with what only the row measured first knows: the cost of a sync."""
    for index, found in enumerate(result.rows[:2]):
        sync = {"call": "fsync", "write": "append", "median_us": 125.4}
        found.environment = report([sync] * index)
        found.samples[0].detail["versions"] = {"driver": f"9.{index}", "sqlite": "3.54.1"}
    return result


def test_the_machine_is_described_whichever_row_measured_its_disk(described: Result) -> None:
    text = printed(described)
    assert "sync of 4096 bytes, median: fsync append 125 us" in text
    assert "stdlib (own build): driver 9.0, SQLite 3.54.1" in text


def test_markdown_has_the_tables_the_machine_and_the_command(described: Result) -> None:
    text = markdown.render(described)
    tables = [block for block in text.split("\n\n") if block.startswith("| scenario |")]
    assert len(tables) == 2
    for table in tables:
        lines = table.splitlines()
        assert len(lines) == 2 + len(described.rows)
        assert len({line.count("|") for line in lines}) == 1
        assert lines[1].startswith("| --- | ---: |")
    assert "| stdlib rollback stock backoff | 9.00 | 233,123 | 12,456 | 0 |" in tables[0]
    assert "An \\<odd\\> CPU \\| 9, 2 processors, 16.0 GiB" in text
    assert "- stdlib (own build): driver 9.0, SQLite 3.54.1\n" in text
    assert " now 3 s\n" in text
    assert text.endswith("```console\n$ oxlite bench kv --seed 1\n```\n")
    for line in ("worker 2 was killed", "no busy handler", "Note: a note", "database is locked"):
        assert line in text


@pytest.mark.parametrize("is_measured", [False, True])
def test_a_comparison_without_a_figure_is_not_drawn(result: Result, is_measured: bool) -> None:
    gate = row("oxlite", "wal", "tuned", "gate")
    gate.latencies = {"write": latencies(range(20_000 if is_measured else 100))}
    result.rows = [gate]
    assert ("The gate against fair" in printed(result)) == is_measured


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


def test_a_table_may_be_of_some_rows_and_keep_groups_together() -> None:
    rows = [
        row("oxlite", "wal", pragmas, busy, processes=processes, disturbance=disturbance)
        for disturbance in ("calm", "kills")
        for busy in ("backoff", "fair")
        for pragmas in ("tuned", "durable")
        for processes in ("4", "25")
    ]
    result = Result("gate", {}, Plan(), 3, [], rows, [], "", "", "", 1.0)
    calm = Table("t", (), {"disturbance": "calm"}, ("processes", "pragmas"))
    [drawing] = calm.drawings(result)
    assert [line.name for line in drawing.lines] == [
        f"oxlite {pragmas} {busy} {processes} processes"
        for processes in ("4", "25")
        for pragmas in ("tuned", "durable")
        for busy in ("backoff", "fair")
    ]
    assert not Table("t", (), {"disturbance": "outsiders"}).drawings(result)


def test_a_ratio_is_to_the_same_row_with_another_policy() -> None:
    slow = row("oxlite", "wal", "tuned", "backoff", processes="4", wall=3.0)
    fast = row("oxlite", "wal", "tuned", "fair", processes="4")
    other = row("oxlite", "wal", "tuned", "fair", processes="25")
    result = Result("gate", {}, Plan(), 3, [], [slow, fast, other], [], "", "", "", 1.0)
    metric = next(metric for metric in KvWorkload.metrics if metric.name == "wall_seconds")
    column = against("than backoff", metric, busy="backoff")
    texts = [column.text(result, one) for one in result.rows]
    assert texts == ["1", f"3.00 (3.00{DASH}3.00)", DASH]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.4], "1.40 (one repeat)"),
        ([1.0, 1.4, 2.0], f"1.40 (1.00{DASH}2.00)"),
        ([0.1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 9.0], f"1.40 (1.10{DASH}1.70)"),
    ],
)
def test_the_spread_is_where_the_median_lies(values: list[float], text: str) -> None:
    summary = summarise(values)
    assert summary is not None
    assert spread_of(summary) == text


def test_text_from_files_does_not_command_the_terminal(result: Result) -> None:
    result.notes = ["note \x1b]0;title\x07\x9b2J[red]end"]
    result.rows[0].failure = "gone \x1b[2J\rfailed"
    result.command = "oxlite bench kv \x1b[8m"
    buffer = io.StringIO()
    show(result, Console(file=buffer, width=120))
    text = buffer.getvalue()
    assert not set(text) & set("\x1b\x07\x9b\r")
    assert r"Note: note \x1b]0;title\x07\x9b2J[red]end" in text
    assert r"gone \x1b[2J\rfailed" in text


@pytest.mark.parametrize("render", [page.render, markdown.render_all])
def test_text_from_files_is_written_out_in_documents(
    result: Result, render: Callable[[list[Result]], str]
) -> None:
    evil = "\x1b[31m\x00\u202e\x85\ud800"
    result.notes = [f"note {evil}"]
    result.rows[0].failure = f"gone {evil}"
    result.rows[1].samples[0].errors[f"error {evil}"] = 1
    result.command = f"oxlite bench kv {evil}"
    result.parameters[f"name {evil}"] = evil
    text = render([result])
    assert not set(text) & set(evil) - set("[31m")
    text.encode()


def test_a_command_does_not_end_its_block(result: Result) -> None:
    result.command = "oxlite bench kv '````'\n# Heading"
    assert markdown.render(result).endswith(
        "`````console\n$ oxlite bench kv '````' # Heading\n`````\n"
    )


def test_published_figures_stand_at_the_end() -> None:
    def row(step: str, *rates: float) -> Row:
        scenario = Scenario("stdlib", step=step, build="own")
        return Row(scenario, [Sample({"inserts_per_second": rate}) for rate in rates])

    rows = [row("wal", 10.0, 10.0), row("normal", 40.0, 60.0)]
    result = Result("inserts", {}, Plan(), 2, [], rows, [], "", "oxlite bench inserts", "", 1.0)
    text = markdown.render_all([result])
    assert text.startswith(markdown.render(result))
    lines = text.partition("Published and measured")[2].splitlines()
    [line] = [line for line in lines if "synchronous=NORMAL" in line]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1:] == [
        "~25,000 against ~2,500 inserts/s", "10.0", f"5.00 (4.00{DASH}6.00)",
        "stdlib normal / stdlib wal",
    ]  # fmt: skip
    [absent] = [line for line in lines if "defaults" in line]
    assert absent.count(f" {ABSENT} ") == 2


def test_a_claim_about_postgresql_is_answered_by_the_row_that_has_less_to_differ_in() -> None:
    def row(milliseconds: float, **axes: str) -> Row:
        scenario = Scenario(**{"build": "own", "mapper": "sqlalchemy", **axes})
        return Row(scenario, [Sample({"sum_ms": milliseconds})])

    tuned = {"driver": "stdlib", "journal": "wal", "pragmas": "tuned"}
    server = row(30.0, driver="postgresql")
    # What has more axes than the other, or is of another mapper, answers nothing.
    rows = [row(10.0, **tuned), server, row(15.0, driver="postgresql", mapper="django")]
    result = Result("orm", {}, Plan(), 1, [], rows, [], "", "oxlite bench orm", "", 1.0)
    [claim] = [one for one in WORKLOADS.get("orm").published if "PostgreSQL" in one.claim]
    [answer] = claim.measured(result, WORKLOADS.get("orm").metric)
    assert (answer.row, answer.against) == (rows[0].label, server.label)
    assert isinstance(answer.times, Summary)
    assert answer.times.median == 3.0
