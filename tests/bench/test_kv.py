"""The workload kv: its work is reproducible, its checks find what is wrong, its rows run."""

import sqlite3
from array import array
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError, VerificationError
from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.drivers.oxlite import BUSY
from oxlite.bench.harness import record, statistics
from oxlite.bench.harness.databases import make_file, rows_of_file
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.outcomes import packed
from oxlite.bench.harness.run import Listener
from oxlite.bench.harness.statistics import supported
from oxlite.bench.lab import TRUSTED_REPEATS, Request, UnwrittenError, perform
from oxlite.bench.layout import DASH, WITHHELD
from oxlite.bench.scenarios.axes import POLICIES
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.kv import figures, verify, work
from oxlite.bench.workloads.kv.figures import Outcome
from oxlite.bench.workloads.kv.work import KvParameters
from oxlite.bench.workloads.kv.workload import KvWorkload

SMALL = KvParameters(processes=2, queries=400, keys=50, write_ratio=0.5)


def test_a_stream_depends_on_seed_and_process_alone() -> None:
    assert work.stream(SMALL, 0) == work.stream(replace(SMALL, timeout_seconds=1.0), 0)
    assert work.stream(SMALL, 0) != work.stream(SMALL, 1)
    assert work.stream(SMALL, 0) != work.stream(replace(SMALL, seed=2), 0)


def test_the_digest_is_the_same_in_every_version_of_python() -> None:
    digest = work.stream_digest(work.stream(KvParameters(), 0))
    assert digest == "9c28b82e096331624d80b88482ee52003968a2528aa823262649a50c704c5da5"


def test_the_mix_is_as_asked() -> None:
    operations = work.stream(replace(SMALL, queries=10_000, write_ratio=0.05), 0)
    writes = [value for _, value in operations if value is not None]
    assert 400 < len(writes) < 600
    assert len(set(writes)) == len(writes)
    assert all(len(value) == 64 for value in writes)
    loaded = work.loaded(SMALL)
    assert all(key in loaded for key, value in operations if value is None)
    assert any(key not in loaded for key, value in operations if value is not None)


@pytest.mark.parametrize(
    "changes",
    [
        {"processes": 0},
        {"processes": 1001},
        {"queries": 0},
        {"keys": 0},
        {"write_ratio": -0.1},
        {"write_ratio": 1.1},
        {"write_ratio": float("nan")},
        {"timeout_seconds": -1.0},
        {"timeout_seconds": float("inf")},
        {"timeout_seconds": float("nan")},
        {"timeout_seconds": 2.0**31 / 1000},
        {"fairness_seconds": -1.0},
        {"fairness_seconds": float("inf")},
        {"fairness_seconds": float("nan")},
        {"queries": 10**400},
    ],
)
def test_parameters_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be"):
        replace(SMALL, **changes)


def fill(connection: Connection, _: Driver) -> None:
    work.fill(connection, SMALL)


def table_of(path: Path) -> dict[str, str]:
    return dict(rows_of_file(path, work.TABLE))


@pytest.mark.parametrize("journal", ["rollback", "wal"])
def test_the_database_is_alone_and_in_its_mode(journal: str, tmp_path: Path) -> None:
    path = tmp_path / "kv.db"
    make_file(path, journal, fill)
    assert [entry.name for entry in tmp_path.iterdir()] == ["kv.db"]
    with closing(sqlite3.connect(path)) as connection:
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        assert mode == {"rollback": "delete", "wal": "wal"}[journal]
        assert dict(connection.execute("SELECT k, v FROM kv")) == work.loaded(SMALL)


def done(count: int, start_ns: int = 1000) -> Outcome:
    """A process whose statements began every 10 ns and took 5."""
    ended_ns = start_ns + 10 * (count - 1) + 5
    times_ns, numbers = array("Q", [5]) * count, array("H", bytes(2 * count))
    return Outcome(times_ns, numbers, [], start_ns, ended_ns)


@pytest.fixture
def worked(tmp_path: Path) -> tuple[Path, list[list[work.Operation]], list[Outcome]]:
    """A database on which two processes have worked, one after the other."""
    path = tmp_path / "kv.db"
    make_file(path, "rollback", fill)
    streams = [work.stream(SMALL, process) for process in range(2)]
    with closing(sqlite3.connect(path)) as connection, connection:
        for stream in streams:
            connection.executemany(work.WRITE, [pair for pair in stream if pair[1] is not None])
    return path, streams, [done(len(stream)) for stream in streams]


def alter(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


def test_the_right_table_is_accepted(worked: Any) -> None:  # noqa: ANN401
    path, streams, found = worked
    table = table_of(path)
    verify.check_table(table, work.loaded(SMALL), streams, found)
    verify.check_after(table, work.loaded(SMALL), streams, len(table))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DELETE FROM kv WHERE k = (SELECT min(k) FROM kv)", "1 rows are missing"),
        ("UPDATE kv SET v = 'x' WHERE k = (SELECT min(k) FROM kv)", "nobody wrote there last"),
        ("INSERT INTO kv VALUES('stranger', 'x')", "'stranger' has a value that nobody"),
    ],
)
def test_a_wrong_table_is_found_out(worked: Any, sql: str, message: str) -> None:  # noqa: ANN401
    path, streams, found = worked
    alter(path, sql)
    with pytest.raises(VerificationError, match=message):
        verify.check_table(table_of(path), work.loaded(SMALL), streams, found)


def test_a_lost_update_is_found_out(worked: Any) -> None:  # noqa: ANN401
    path, streams, found = worked
    key = next(k for k, v in streams[1] if v is not None and k in work.loaded(SMALL))
    alter(path, f"UPDATE kv SET v = '{work.loaded(SMALL)[key]}' WHERE k = '{key}'")
    with pytest.raises(VerificationError, match="nobody wrote there last"):
        verify.check_table(table_of(path), work.loaded(SMALL), streams, found)


def test_a_write_that_failed_with_a_lock_must_not_be_there(worked: Any) -> None:  # noqa: ANN401
    path, streams, found = worked
    found[1].numbers = array("H", [1]) * len(streams[1])
    found[1].errors = ["OperationalError: database is locked"]
    with pytest.raises(VerificationError, match="nobody wrote there last"):
        verify.check_table(table_of(path), work.loaded(SMALL), streams, found)
    found[1].errors = ["OperationalError: disk I/O error"]
    verify.check_table(table_of(path), work.loaded(SMALL), streams, found)


def test_strangers_are_found_out_at_the_end(worked: Any) -> None:  # noqa: ANN401
    path, streams, _ = worked
    alter(path, "INSERT INTO kv VALUES('stranger', 'x')")
    with pytest.raises(VerificationError, match="1 of them that nobody wrote"):
        verify.check_after(table_of(path), work.loaded(SMALL), streams, 1)


def test_figures_count_every_statement_once() -> None:
    streams = [work.stream(SMALL, process) for process in range(2)]
    found = [done(400), done(400, 2000)]
    found[0].numbers[0] = 1
    found[0].errors = ["OperationalError: database is locked"]
    sample = figures.sample(streams, found, 1000, [30, 10])
    reads, writes = (len(sample.latencies_ns[kind]) for kind in ("read", "write"))
    assert reads + writes + sum(sample.errors.values()) == 800
    assert sample.figures["wall_seconds"] == pytest.approx((2000 + 3990 + 5 - 1000) / 1e9)
    assert sample.figures["fastest_process_seconds"] == pytest.approx(3995 / 1e9)
    assert sample.figures["jain"] == pytest.approx(0.8)
    assert set(sample.latencies_ns["read"]) == {5}


def test_work_that_was_not_done_is_found_out() -> None:
    whole = done(3)
    data = packed([array("Q", [1000, 1010, 1020]), array("Q", [1005, 1015, 1025]), whole.numbers])
    assert figures.unpack({"errors": [], "missing": 0}, data, 3) == whole
    with pytest.raises(VerificationError, match="does not account for what it did"):
        figures.unpack({"errors": [], "missing": 0}, data, 4)
    with pytest.raises(VerificationError, match="did not find"):
        figures.unpack({"errors": [], "missing": 1}, data, 3)
    with pytest.raises(VerificationError, match="left a statement"):
        figures.unpack({"errors": [], "missing": 0}, bytes(len(data)), 3)


TINY = {"processes": 3, "queries": 50, "keys": 200, "write_ratio": 0.2, "fairness_seconds": 0.05}


@pytest.mark.slow
def test_every_kind_of_row_runs_and_is_the_same_work(tmp_path: Path, listener: Listener) -> None:
    place = tmp_path / "place"
    place.mkdir()
    file = tmp_path / "r.json"
    request = Request(
        "kv",
        TINY,
        ["journal=wal,pragmas=tuned", "journal=rollback,pragmas=stock"],
        repeats=1,
        directory=place,
        json_file=file,
    )
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    labels = [row.label for row in result.rows]
    assert "stdlib wal tuned backoff" in labels
    assert "oxlite wal tuned fair" in labels
    for row in result.rows:
        assert len(row.samples) == result.repeats
        for sample in row.samples:
            asked = TINY["processes"] * TINY["queries"]
            done_here = sum(process["done"] for process in sample.detail["processes"])
            assert done_here + sum(sample.errors.values()) == asked
            assert len(sample.detail["done_in_fixed_time"]) == TINY["processes"]
        assert row.environment is not None
        assert row.environment["schema"]
    assert not list(place.iterdir())
    assert record.read(file) == result
    assert [sorted(turns) for turns in result.orders] == [sorted(labels)]
    again = perform(replace(request, scenarios=["journal=wal,pragmas=tuned,busy=none"]), listener)
    assert result.work_digest == again.work_digest


def test_a_worker_with_other_work_fails_the_row(
    tmp_path: Path,
    listener: Listener,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(work, "stream_digest", lambda stream: "another")
    request = Request("kv", TINY, ["driver=stdlib,busy=none,journal=wal"], directory=tmp_path)
    result = perform(replace(request, repeats=1), listener)
    assert {row.failure for row in result.rows} == {
        "the workers' list of work is not the one asked for"
    }


def test_keep_leaves_the_databases(tmp_path: Path, listener: Listener) -> None:
    request = Request(
        "kv",
        TINY,
        ["driver=stdlib,busy=backoff,journal=wal,pragmas=stock"],
        repeats=1,
        directory=tmp_path,
        keep=True,
    )
    result = perform(request, listener)
    [kept] = tmp_path.iterdir()
    assert (kept / "stdlib-wal-stock-backoff" / "kv.db").is_file()
    assert any(str(kept) in note for note in result.notes)


def test_all_and_quick_choose_cells(listener: Listener, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        perform(Request("kv", TINY, ["busy=none"], every=True, directory=tmp_path), listener)


@pytest.mark.parametrize(
    ("scenarios", "message"),
    [
        (["driver=stdlib,busy=gate"], "nothing to run: the gate is Oxlite's"),
        (["driver=stdlib,busy=fair", "driver=stdlib,build=seed"], "nothing to run: the standard"),
    ],
)
def test_nothing_is_measured_when_nothing_asked_for_can_run(
    scenarios: list[str],
    message: str,
    listener: Any,  # noqa: ANN401
    tmp_path: Path,
) -> None:
    with pytest.raises(UsageError, match=message):
        perform(Request("kv", TINY, scenarios, directory=tmp_path), listener)
    assert not listener.heard


LACKING = {"stdlib": ("fair", "gate"), "oxlite": tuple(set(POLICIES) - BUSY.keys())}
IMPOSSIBLE = {
    f"{driver} {journal} {pragmas} {busy}"
    for driver, policies in LACKING.items()
    for journal in ("rollback", "wal")
    for pragmas in ("stock", "tuned")
    for busy in policies
}
OF_SQLITE = 2 * 2 * 2 * len(POLICIES) - len(IMPOSSIBLE)
OF_APSW = 2 * 2 * 2
CELLS = OF_SQLITE + OF_APSW + 1
"""PostgreSQL has a cell beside them."""
LEFT = OF_SQLITE // 4 + OF_APSW - 1
"""The default has of apsw what its user would choose."""


class Nothing:
    """A session that measures nothing."""

    def __init__(self, *_: object) -> None:
        pass

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        return Sample({"wall_seconds": 1.0})


def selected(listener: Listener, tmp_path: Path, monkeypatch: Any, **how: Any) -> Result:  # noqa: ANN401
    monkeypatch.setattr(KvWorkload, "session_type", Nothing)
    return perform(Request("kv", TINY, repeats=1, directory=tmp_path, **how), listener)


def test_the_default_has_every_cell_but_the_rollback_tuned_ones(
    listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = selected(listener, tmp_path, monkeypatch, every=True)
    default = selected(listener, tmp_path, monkeypatch)
    assert len(every.rows) == CELLS
    assert not every.left
    for result in (every, default):
        assert {cell.scenario.label for cell in result.impossible} == IMPOSSIBLE
    rows = {row.label for row in default.rows}
    assert rows | set(default.left) == {row.label for row in every.rows}
    assert len(default.left) == LEFT
    assert all("rollback tuned" in label or label[:4] == "apsw" for label in default.left)
    assert "apsw wal tuned backoff" in rows


def test_the_quick_selection_tells_the_story(
    listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = selected(listener, tmp_path, monkeypatch, quick=True)
    rows = [row.label for row in quick.rows]
    assert rows[0] == "stdlib rollback stock backoff"
    assert {"stdlib wal tuned backoff", "oxlite wal tuned gate", "postgresql"} <= set(rows)
    assert len(rows) + len(quick.left) == CELLS
    assert {cell.scenario.label for cell in quick.impossible} == IMPOSSIBLE
    assert not selected(listener, tmp_path, monkeypatch, scenarios=["busy=none"]).left


def test_the_quick_work_has_enough_writes_for_their_99th_percentile() -> None:
    parameters = KvWorkload().parameters({}, quick=True)
    streams = (work.stream(parameters, process) for process in range(parameters.processes))
    writes = sum(value is not None for stream in streams for _, value in stream)
    assert supported(TRUSTED_REPEATS * writes, 99.0)


def test_a_file_that_cannot_be_written_after_all_does_not_lose_the_run(
    listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "r.md"
    with pytest.raises(UnwrittenError, match="cannot write /dev/full: No space left") as caught:
        selected(listener, tmp_path, monkeypatch, json_file=Path("/dev/full"), markdown_file=page)
    assert len(caught.value.result.rows) == CELLS - LEFT
    assert page.read_text().count("| scenario |") == 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.md"]


def test_a_warm_up_is_made_or_left_out_as_the_user_says(
    listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for asked, warm_ups in ((None, 1), (True, 1), (False, 0)):
        result = selected(listener, tmp_path, monkeypatch, scenarios=["busy=none"], warm_up=asked)
        assert result.plan.warm_ups == warm_ups
        said = [word for word in result.command.split() if word.endswith("-warm-up")]
        assert said == {None: [], True: ["--warm-up"], False: ["--no-warm-up"]}[asked]


def gate_row(busy: str, waits_ms: range, count: int) -> Row:
    scenario = Scenario("oxlite", journal="wal", pragmas="tuned", busy=busy, build="tuned")
    waits_ns = array("Q", [1_000_000 * wait for wait in waits_ms]) * count
    found = statistics.latencies(waits_ns)
    figure = {"wall_seconds": 1.0, "write_p99_ms": float(waits_ms[-1])}
    return Row(scenario, [Sample(figure)] * 2, {"write": found})


def test_the_gate_is_compared_with_fair_in_its_longest_waits() -> None:
    rows = [gate_row("fair", range(1, 21), 1000), gate_row("gate", range(1, 11), 2000)]
    result = Result("kv", {}, Plan(), 1, [], rows, [], "", "", "", 1.0)
    [drawing] = KvWorkload.tables[-1].drawings(result)
    [line] = drawing.lines
    assert line.name == "oxlite"
    assert list(line.cells[:3]) == ["10.0", "20.0", "0.50"]
    assert line.cells[3] == DASH  # a repeat has no 99.9th percentile of its own here
    assert line.cells[4] == f"2.00 (2.00{DASH}2.00)"
    few = [gate_row("fair", range(1, 21), 1), gate_row("gate", range(1, 11), 1)]
    result.rows = few
    [drawing] = KvWorkload.tables[-1].drawings(result)
    assert list(drawing.lines[0].cells[:3]) == [WITHHELD] * 3
    result.rows = rows[:1]
    assert not KvWorkload.tables[-1].drawings(result)


def test_the_longest_waits_of_a_repeat_are_of_writes_alone() -> None:
    many = replace(SMALL, queries=4_000)
    streams = [work.stream(many, process) for process in range(2)]
    sample = figures.sample(streams, [done(4_000), done(4_000)], 1000, None)
    assert sample.figures["write_p99_ms"] == pytest.approx(5 / 1e6)
    assert "write_p999_ms" not in sample.figures  # 4,000 writes are too few


def test_two_files_need_two_names(listener: Any, tmp_path: Path) -> None:  # noqa: ANN401
    file = tmp_path / "r"
    with pytest.raises(UsageError, match="the same file"):
        perform(Request("kv", TINY, json_file=file, markdown_file=file), listener)
    assert not listener.heard
