"""The workload inserts: every style and step inserts its rows, and is compared and judged."""

import itertools
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.drivers.connections import Place
from oxlite.bench.harness import record
from oxlite.bench.harness.cells import cells, selected
from oxlite.bench.harness.databases import Database, make_file, rows_of_file
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.outcomes import Errors
from oxlite.bench.harness.run import Listener
from oxlite.bench.harness.threads import Window, together
from oxlite.bench.lab import Request, perform
from oxlite.bench.layout import DASH
from oxlite.bench.report import markdown
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.inserts import figures, steps, verify, work, workload
from oxlite.bench.workloads.inserts.claims import CLAIMS
from oxlite.bench.workloads.inserts.parts import climber, inserter, kind
from oxlite.bench.workloads.inserts.steps import LADDER
from oxlite.bench.workloads.inserts.styles import STYLES, warm
from oxlite.bench.workloads.inserts.tables import TABLES
from oxlite.bench.workloads.inserts.work import InsertsParameters
from oxlite.bench.workloads.inserts.workload import InsertsWorkload

pytestmark = pytest.mark.slow

SMALL = InsertsParameters(threads=(1, 2), inserts=60)
TINY = {"threads": (2,), "inserts": 3_000, "duration_seconds": 0.05}
LOCKED = "OperationalError (SQLITE_BUSY): database is locked"
GRIDS = InsertsWorkload().grids(SMALL)


def test_the_ladder_adds_one_thing_a_step() -> None:
    changed = [
        [
            name
            for name in ("journal", "settings", "prepared", "rows")
            if getattr(below, name) != getattr(above, name)
        ]
        for below, above in itertools.pairwise(LADDER.values())
    ]
    assert changed == [
        ["journal"], *[["settings"]] * 4, ["prepared"], *[["rows"]] * 3,
    ]  # fmt: skip
    assert steps.FULL in LADDER["wal"].expected()
    assert steps.FULL not in LADDER["normal"].expected()
    assert (steps.below("defaults"), steps.below("wal")) == (None, "defaults")


def place(driver: str, path: Path, **axes: str) -> Place:
    make_file(path, "wal", partial(work.fill, mode="sound"))
    found = DRIVERS.get(driver)
    return Place(found, path, Scenario(driver, build=found.default_build, **axes), 5.0)


@pytest.mark.parametrize(
    ("driver", "style"),
    [
        (driver, style)
        for driver in workload.DRIVERS
        for style in STYLES
        if driver == "oxlite" or style not in workload.DATABASE_STYLES
    ],
)
def test_every_style_inserts_all_rows_of_all_threads(
    driver: str, style: str, tmp_path: Path
) -> None:
    if DRIVERS.get(driver).missing():
        pytest.skip(DRIVERS.get(driver).missing() or "")
    path, rows, errors = tmp_path / "i.db", work.rows(SMALL), Errors(kind)
    busy = "gate" if style in workload.DATABASE_STYLES else "backoff"
    where = place(driver, path, pragmas="durable", busy=busy, style=style, threads="3")
    shares = [work.share(rows, thread, 3) for thread in range(3)]
    failures = where.driver.errors()
    # One that has inserted its rows ends the time of all, so all are given as often as it takes.
    left = shares
    with STYLES[style](where) as enter:
        while any(left):
            found = together([inserter(enter, own, failures, errors) for own in left if own], 60)
            done = iter(len(one.numbers) for one in found)
            assert not any(number for one in found for number in one.numbers)
            left = [own[next(done) :] if own else own for own in left]
    verify.check_table(rows_of_file(path, work.TABLE), rows, [])
    assert not errors.kinds()


@pytest.mark.parametrize("size", [7, 100, None])
def test_rows_of_a_transaction_end_with_its_commit(size: int | None, tmp_path: Path) -> None:
    path, rows = tmp_path / "i.db", work.rows(SMALL)
    where = place("stdlib", path, pragmas="tuned")
    [done] = together([climber(lambda: closing(warm(where)), rows, size)], 60, 0)
    verify.check_table(rows_of_file(path, work.TABLE), rows, [])
    assert all(map(int.__le__, done.begun_ns, done.ended_ns))
    assert len(set(done.ended_ns)) == -(-len(rows) // (size or len(rows)))


def test_the_time_ends_a_transaction_of_any_size(tmp_path: Path) -> None:
    path, rows = tmp_path / "i.db", work.rows(SMALL)
    where = place("stdlib", path, pragmas="tuned")
    with climber(lambda: closing(warm(where)), rows, None)() as body:
        done = body(Window(0, 0, 0))
    assert len(done.numbers) == 1
    verify.check_table(rows_of_file(path, work.TABLE), rows[:1], [])


def test_the_ladder_and_threads_run_and_are_compared(tmp_path: Path, listener: Listener) -> None:
    directory = tmp_path / "place"
    directory.mkdir()
    file = tmp_path / "r.json"
    asked = ["driver=stdlib,step=any", "driver=oxlite,step=exclusive", "style=pool,pragmas=tuned"]
    request = Request(
        "inserts", TINY, asked, repeats=1, directory=directory, json_file=file, warm_up=False
    )
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    labels = {row.label for row in result.rows}
    assert labels >= {f"stdlib {step}" for step in LADDER} | {"oxlite defaults"}
    assert labels >= {
        "stdlib tuned backoff pool 2 threads",
        "oxlite tuned gate pool 2 threads",
        "oxlite tuned backoff mutex 2 threads",
    }
    for row in result.rows:
        [sample] = row.samples
        threads = int(row.scenario.get("threads") or 1)
        assert len(sample.detail["threads"]) == threads
        assert sample.asked == sum(sample.detail["threads"])
        assert sample.asked == row.latencies["insert"].count == sample.detail["rows"]
        assert not sample.errors
        assert row.environment is not None
        pragmas = row.environment["connection"]["pragmas"]
        assert pragmas["journal_mode"] == ("delete" if "defaults" in row.label else "wal")
        assert pragmas["locking_mode"] == (
            "exclusive"
            if row.scenario.get("step")
            and "locking_mode" in str(LADDER[row.scenario.get("step")].settings)
            else "normal"
        )
    assert result.compared["oxlite exclusive"] == ["oxlite defaults"]
    assert record.read(file).rows == result.rows
    page = markdown.render(result)
    for text in ("~25,000", "15,329", "transactions of 10", "of stdlib", "locking\\_mode"):
        assert text in page
    assert "--no-warm-up" in result.command
    assert not list(directory.iterdir())


@pytest.mark.parametrize("pragmas", ["tuned", "durable"])
def test_the_database_is_measured_at_the_settings_of_its_row(
    pragmas: str, tmp_path: Path, listener: Listener
) -> None:
    request = Request(
        "inserts", TINY | {"threads": (1, 3)}, [f"style=group,pragmas={pragmas}"], repeats=1,
        directory=tmp_path,
    )  # fmt: skip
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    rows = [row for row in result.rows if row.scenario.get("style") == "group"]
    assert [row.scenario.get("threads") for row in rows] == ["1", "3"]
    for row in rows:
        assert row.environment is not None
        synchronous = row.environment["connection"]["pragmas"]["synchronous"]
        assert synchronous == (2 if pragmas == "durable" else 1)
        assert [base for base in result.compared[row.label] if "stdlib" in base]


def test_who_does_not_wait_is_told_that_the_database_is_locked(
    tmp_path: Path, bench: Callable[..., Any]
) -> None:
    file = tmp_path / "r.json"
    ended = bench(
        "inserts", "--threads", "4", "--duration", "0.3", "--repeats", "1",
        "--scenario", "driver=stdlib,busy=none,pragmas=durable",
        "--directory", tmp_path, "--json", file,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    rows = {row["label"]: row for row in json.loads(file.read_text())["rows"]}
    [sample] = rows["stdlib durable none own 4 threads"]["samples"]
    assert sample["errors"].keys() == {LOCKED}
    assert sample["detail"]["rows"] == sample["asked"] - sample["errors"][LOCKED]
    assert f"{LOCKED}" in ended.stdout
    assert "repeat with: oxlite bench inserts --mode sound --threads 4" in ended.stdout


def test_a_table_that_lost_a_row_fails_its_scenario(
    tmp_path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Database.rows

    def lossy(database: Database, query: str) -> list[Any]:
        with closing(sqlite3.connect(database.path)) as connection, connection:
            connection.execute("DELETE FROM users WHERE username = 'user0'")
        return read(database, query)

    monkeypatch.setattr(Database, "rows", lossy)
    request = Request("inserts", TINY, ["driver=stdlib,step=normal"], repeats=1, directory=tmp_path)
    result = perform(request, listener)
    assert result.failed()
    assert all("inserts were acknowledged" in (row.failure or "") for row in result.rows)


def test_a_worker_with_other_rows_fails_the_row(
    tmp_path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "digest", lambda rows: "another")
    request = Request("inserts", TINY, ["driver=stdlib,step=wal"], repeats=1, directory=tmp_path)
    result = perform(request, listener)
    assert {row.failure for row in result.rows} == {
        "the workers' list of work is not the one asked for"
    }


def test_a_filter_is_of_the_part_that_has_its_axes() -> None:
    assert {one.get("step") for one in selected(GRIDS, {"step": "any"})} == set(LADDER)
    threads = selected(GRIDS, {"style": "any", "driver": "oxlite", "pragmas": "tuned"})
    assert all(one.get("step") is None for one in threads)
    # Five styles that wait, one that does not, seven in the queue; by two numbers of threads.
    assert len(threads) == (5 + 1 + 7) * 2
    assert selected(GRIDS, {"driver": "stdlib", "busy": "gate"}) == []
    with pytest.raises(UsageError, match="unknown axis 'journal'"):
        selected(GRIDS, {"journal": "wal"})
    with pytest.raises(UsageError, match="did you mean 'stdlib'"):
        selected(GRIDS, {"driver": "stdlip"})


def test_a_filter_that_nothing_fits_is_refused(tmp_path: Path, listener: Any) -> None:  # noqa: ANN401
    for asked in ("style=group,driver=apsw", "threads=3", "step=wal,threads=2"):
        request = Request("inserts", TINY, [asked], directory=tmp_path)
        with pytest.raises(UsageError, match=f"inserts has no scenario with {asked}"):
            perform(request, listener)
    assert not listener.heard


def test_no_two_parts_have_the_same_scenario() -> None:
    every = [one.label for grid in GRIDS for one in selected([grid], {})]
    assert len(every) == len(set(every))


@pytest.mark.parametrize("selection", ["selection", "quick_selection"])
def test_the_claims_can_be_judged_by_what_is_measured(selection: str) -> None:
    one = InsertsWorkload()
    parameters = one.parameters({}, quick=selection == "quick_selection")
    measured = {
        frozenset(cell.scenario.items())
        for cell in cells(one.grids(parameters), getattr(one, selection), one.baselines)
    }
    for claim in CLAIMS:
        if int(claim.rows["threads"]) in parameters.threads:
            ours = Scenario(**claim.rows)
            assert frozenset(ours.items()) in measured
            assert frozenset(ours.but(**claim.against).items()) in measured


def threads_row(style: str, busy: str, rates: Sequence[float], p99: float) -> Row:
    scenario = Scenario(
        "oxlite", pragmas="durable", busy=busy, build="tuned", style=style, threads="16"
    )
    samples = [Sample({figures.RATE.name: rate, figures.P99.name: p99}, 1) for rate in rates]
    return Row(scenario, samples)


def test_a_claim_is_judged_in_paired_repeats() -> None:
    rows = [
        threads_row("mutex", "backoff", [1000.0, 2000.0, 1000.0], 4.0),
        threads_row("group", "gate", [6000.0, 9000.0, 7000.0], 8.0),
    ]
    result = Result("inserts", {}, Plan(), 3, [], rows, [], "", "", "", 1.0)
    [drawing] = TABLES[-1].drawings(result)
    assert [(line.name, *line.cells) for line in drawing.lines] == [
        (
            "FULL, 16 callers: inserts/s than one mutex",
            "≥ 5.00",
            f"6.00 (4.50{DASH}7.00)",
            "held, with the bar inside the interval",
        ),
        (
            "FULL, 16 callers: shorter p99 than one mutex",
            "≥ 1.00",
            f"0.50 (0.50{DASH}0.50)",
            "missed by 50%",
        ),
    ]
    result.rows = rows[:1]
    assert not TABLES[-1].drawings(result)
