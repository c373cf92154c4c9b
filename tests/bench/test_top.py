"""The workload top: what was told is set beside what was done, and what is not so is found out."""

import logging
import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError, VerificationError
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.drivers.connections import Place
from oxlite.bench.harness.databases import Database, make_file
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.outcomes import packed
from oxlite.bench.harness.run import Listener
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.harness.session import HandedOver
from oxlite.bench.lab import Request, perform
from oxlite.bench.layout import ABSENT
from oxlite.bench.report import markdown
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.top import figures, verify, ways, work
from oxlite.bench.workloads.top.figures import Outcome
from oxlite.bench.workloads.top.tables import TABLES
from oxlite.bench.workloads.top.ways import UNWATCHED, WATCHED, WAYS
from oxlite.bench.workloads.top.work import READ, WRITE, TopParameters
from oxlite.bench.workloads.top.workload import WAY, WORKLOAD, TopSession

SMALL = TopParameters()
TINY = {"processes": (2,), "limit_seconds": 0.3, "lead_seconds": 1.2, "every_seconds": 0.1}
MS = 1_000_000
LOCKED = "OperationalError: database is locked"


def fill(connection: Any, _: object = None) -> None:  # noqa: ANN401
    work.fill(connection)


def scenario(driver: str, way: str, load: str = WRITE, processes: int = 2) -> Scenario:
    return Scenario(
        driver, journal="wal", pragmas="tuned", way=way, load=load, processes=str(processes)
    )


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "top.db"
    make_file(path, "wal", fill)
    return path


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    "changes",
    [
        {"processes": (0,)},
        {"processes": ()},
        {"limit_seconds": 0.0},
        {"lead_seconds": 1.0},
        {"every_seconds": float("nan")},
        {"timeout_seconds": -1.0},
    ],
)
def test_parameters_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be"):
        replace(SMALL, **changes)


def test_the_keys_depend_on_seed_and_process_alone() -> None:
    keys = work.keys(SMALL, 0)
    assert keys == work.keys(replace(SMALL, processes=(7,), limit_seconds=1.0), 0)
    assert keys != work.keys(SMALL, 1)
    assert keys != work.keys(replace(SMALL, seed=2), 0)
    assert {*keys} <= {*range(1, work.ROWS + 1)}
    assert len({*keys}) > work.ROWS // 2
    assert work.NO_ROW not in keys


def test_each_driver_has_its_own_ways() -> None:
    grids = WORKLOAD.grids(SMALL)
    assert [(grid["driver"], tuple(grid["way"])) for grid in grids] == [
        ((driver,), tuple(found)) for driver, found in WAYS.items()
    ]
    assert {way for found in WAYS.values() for way in found} == set(WAY.values)
    assert all(UNWATCHED in found for found in WAYS.values())


@pytest.mark.slow
def test_every_way_is_measured(tmp_path: Path, listener: Listener) -> None:
    request = Request("top", TINY, ["way=any"], repeats=1, warm_up=False, directory=tmp_path)
    result = perform(request, listener)
    assert not result.failed(), [(row.failure, row.failed_figures()) for row in result.rows]
    found = {(row.scenario.driver, row.scenario["way"], row.scenario["load"]): row
             for row in result.rows}  # fmt: skip
    able = {driver for driver in WAYS if DRIVERS.get(driver).missing() is None}
    assert found.keys() == {
        (driver, way, load) for driver in able for way in WAYS[driver] for load in (WRITE, READ)
    }
    for (_, way, load), row in found.items():
        [sample] = row.samples
        assert not sample.errors
        assert sample.figures["operations_per_second"] > 0
        in_round = work.OPERATIONS[load].in_round
        assert sample.asked == row.latencies[figures.OPERATION].count * in_round
        told = {"statements_told", "disagreement", "look_ms"} & sample.figures.keys()
        assert bool(told) == (way == WATCHED)
        assert ("commits_told" in sample.figures) == ((way, load) == (WATCHED, WRITE))
    # How right it is, is measured on a machine that does nothing else; not what it is about.
    [watched] = found["oxlite", WATCHED, WRITE].samples
    assert 0.5 < watched.figures["commits_told"] < 2
    assert 0.5 < watched.figures["admissions_told"] < 2
    assert 0.5 < watched.figures["statements_told"] < 2
    assert found["oxlite", UNWATCHED, WRITE].environment is not None
    page = markdown.render(result)
    assert "What top told, times what was counted" in page
    assert "transactions in a second while watched, times those unwatched" in page
    assert not list(tmp_path.iterdir())


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """The logger of slow statements, as it was before a way has changed it."""
    one = logging.getLogger(ways.LOGGER)
    handlers, propagates = list(one.handlers), one.propagate
    yield one
    one.handlers, one.propagate = handlers, propagates


@pytest.mark.parametrize(
    ("driver", "way"), [(driver, way) for driver, found in WAYS.items() for way in found]
)
def test_a_connection_is_listened_to_as_its_way_says(
    driver: str, way: str, database: Path, logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (missing := DRIVERS.get(driver).missing()) is not None:
        pytest.skip(missing)
    heard: list[object] = []
    monkeypatch.setattr(ways, "_hear_of", lambda *told: heard.append(told))
    place = Place(DRIVERS.get(driver), database, scenario(driver, way), 5.0)
    with closing(ways.opened(place)) as connection:
        heard.clear()
        logger.addFilter(heard.append)
        try:
            connection.execute(work.OPERATIONS[WRITE].sql, (1,)).fetchone()
        finally:
            logger.removeFilter(heard.append)
        assert [*connection.execute("PRAGMA cache_size", ()).fetchone()] == [2000]
    assert bool(heard) == (way in {ways.TRACED, ways.PROFILED, ways.ALL_LOGGED})
    if way == ways.ALL_LOGGED:
        [record] = heard
        assert record.sql == work.OPERATIONS[WRITE].sql  # type: ignore[attr-defined]
    # In autocommit mode each statement is a transaction.
    with closing(sqlite3.connect(database)) as other:
        assert other.execute(work.CHANGED).fetchone() == (1,)


def outcome(
    ended_ms: Sequence[int],
    load: str = WRITE,
    failed: dict[int, str] | None = None,
    last: list[Any] | None = None,
    process_id: int = 1,
) -> Outcome:
    """What a worker did whose rounds ended at those ms, some of which failed."""
    return figures.unpack(*handed_over(ended_ms, failed, last, process_id), load)


def handed_over(
    ended_ms: Sequence[int],
    failed: dict[int, str] | None = None,
    last: list[Any] | None = None,
    process_id: int = 1,
) -> HandedOver:
    failed = failed or {}
    texts = list(dict.fromkeys(failed.values()))
    numbers = [texts.index(failed[n]) + 1 if n in failed else 0 for n in range(len(ended_ms))]
    ended = array("Q", (one * MS for one in ended_ms))
    payload = packed((ended, array("Q", [MS] * len(ended_ms)), array("H", numbers)))
    return {
        "process_id": process_id, "count": len(ended_ms), "errors": texts, "last": last,
    }, payload  # fmt: skip


def look(
    begun_ms: int,
    rate: float | None = None,
    statements: float | None = None,
    admissions: float | None = None,
    telling: Sequence[int] = (1,),
    seconds: float | None = 1.0,
) -> dict[str, Any]:
    """A look that began then, and what it told."""
    told = {"statements": statements, "admissions": admissions}
    return {
        "begun_ns": begun_ms * MS,
        "since_before_seconds": seconds,
        "commits_per_second": rate,
        "per_second": None if statements is None else told,
        "telling": list(telling),
    }


def test_figures_are_of_what_ended_while_counting() -> None:
    workers = [outcome([50, 101, 150, 200, 201]), outcome([99, 160, 170], failed={2: LOCKED})]
    sample = figures.sample(workers, 100 * MS, 0.1)
    assert sample.figures == {"operations_per_second": 40.0}  # too few for a percentile
    assert sample.asked == 5
    assert sample.errors == {LOCKED: 1}
    assert list(sample.latencies_ns[figures.OPERATION]) == [MS] * 4
    reads = figures.sample([outcome([101, 150], READ)], 100 * MS, 0.1)
    assert reads.figures == {"operations_per_second": 400.0}
    assert reads.asked == 40


def test_a_process_that_did_nothing_fails_the_row() -> None:
    with pytest.raises(VerificationError, match="a process did nothing"):
        figures.sample([outcome([150]), outcome([50])], 100 * MS, 0.1)
    facts, payload = handed_over([50])
    with pytest.raises(VerificationError, match="does not account"):
        figures.unpack({**facts, "count": 2}, payload, WRITE)


def test_what_was_told_is_set_beside_what_was_counted() -> None:
    # Two processes, ten writes in a second each.
    workers = [outcome(range(50, 4000, 100)), outcome(range(70, 4000, 100))]
    looks = [
        look(1000, seconds=None),
        look(2000, 20.0, 19.0, 20.0),
        look(3000, 22.0, 17.0, 20.0),
    ]  # fmt: skip
    told = figures.told(workers, {"looks": looks, "look_ms": 7.0}, WRITE)
    assert told == pytest.approx(
        {
            "commits_told": 1.05,
            "admissions_told": 1.0,
            "statements_told": 0.9,
            "disagreement": 0.1,
            "look_ms": 7.0,
        }
    )
    # The longer one counts for more.
    looks[2]["since_before_seconds"] = 3.0
    uneven = figures.told(workers, {"looks": looks, "look_ms": 7.0}, WRITE)
    assert uneven["commits_told"] == pytest.approx(1.075)


def test_reads_are_no_commits() -> None:
    workers = [outcome(range(50, 3000, 100), READ)]
    looks = [look(1000, seconds=None), look(2000, 0.0, 200.0, 0.0)]
    told = figures.told(workers, {"looks": looks, "look_ms": 7.0}, READ)
    assert told == {"statements_told": 1.0, "disagreement": 0.0, "look_ms": 7.0}


@pytest.mark.parametrize(
    ("last", "named"), [(look(2000, 20.0), "statements"), (look(2000, None, 20.0, 20.0), "commits")]
)
def test_a_look_that_tells_no_rate_fails_the_row(last: dict[str, Any], named: str) -> None:
    watcher = {"looks": [look(1000, seconds=None), last], "look_ms": 7.0}
    with pytest.raises(VerificationError, match=f"not told the rate of {named}"):
        figures.told([outcome([1500])], watcher, WRITE)
    with pytest.raises(VerificationError, match="nothing was done from the first look"):
        figures.told([outcome([500])], watcher, WRITE)


def test_a_lost_change_is_found(database: Path) -> None:
    verify.check_work(database, [outcome([])], WRITE)
    written = [outcome([1, 2]), outcome([3, 4], failed={1: LOCKED})]
    with pytest.raises(VerificationError, match="0 changes are there, and 3 were acknowledged"):
        verify.check_work(database, written, WRITE)
    # Of what failed with a lock nothing was done; of another error that is not known.
    verify.check_work(database, [*written, outcome([5], failed={0: "disk I/O error"})], WRITE)
    change(database, "UPDATE item SET n = n + 1 WHERE id <= 3")
    verify.check_work(database, written, WRITE)
    with pytest.raises(VerificationError, match="3 changes are there, and 0"):
        verify.check_work(database, [outcome([1], READ, last=[1, work.text(1)])], READ)


@pytest.mark.parametrize("last", [None, [1, work.text(2)], [1, None]])
def test_a_wrong_row_is_found(last: list[Any] | None, database: Path) -> None:
    right = outcome([1], READ, last=[7, work.text(7)])
    verify.check_work(database, [right], READ)
    with pytest.raises(VerificationError, match="a process read"):
        verify.check_work(database, [right, outcome([1], READ, last=last)], READ)


def test_a_process_that_was_not_seen_is_found() -> None:
    workers = [outcome([1], process_id=number) for number in (1, 2)]
    verify.check_seen([look(1, telling=(2, 1, 3))], workers)
    with pytest.raises(VerificationError, match="1 of 2 processes were not seen"):
        verify.check_seen([look(1, telling=(1, 2)), look(2, telling=(1,))], workers)


def test_what_a_watch_leaves_behind_is_found(database: Path) -> None:
    verify.check_left(database)
    database.with_name("top.db-activity").touch()
    with pytest.raises(VerificationError, match="-activity was left behind"):
        verify.check_left(database)


def test_a_watch_that_does_not_see_all_fails_the_row(database: Path, tmp_path: Path) -> None:
    one = scenario("oxlite", WATCHED, processes=1)
    change(database, "UPDATE item SET n = 2 WHERE id = 1")
    with ExitStack() as exits:
        (tmp_path / "scratch").mkdir()
        session = TopSession(SMALL, Scratch(tmp_path / "scratch"), exits)
        watcher = {"looks": [look(2000, seconds=None), look(3000, 1.0, 1.0, 1.0)], "look_ms": 7.0}
        found = 0, [handed_over([1500, 2500]), (watcher, b"")]
        sample = session.sample(Database(one, database, tmp_path), found)
        assert sample.figures["commits_told"] == 1
        watcher["looks"][1]["telling"] = []  # type: ignore[index]
        with pytest.raises(VerificationError, match="were not seen"):
            session.sample(Database(one, database, tmp_path), found)


def test_the_bars_are_judged() -> None:
    rows = []
    for way, rate, errors in (
        (UNWATCHED, 1000.0, {}), (WATCHED, 900.0, {LOCKED: 1}), (ways.SLOW_LOG, 1000.0, {}),
    ):  # fmt: skip
        found = {"operations_per_second": rate}
        if way == WATCHED:
            found |= {"disagreement": 0.01, "commits_told": 1.01}
        sample = Sample(found, 5000, errors)
        rows.append(Row(scenario("oxlite", way), [sample, sample]))
    result = Result("top", {}, Plan(), 2, [rows[0].label], rows, [], "", "", "", 1.0)
    drawn = {line.name: line.cells for table in TABLES for one in table.drawings(result)
             for line in one.lines}  # fmt: skip
    watched = "write 2 processes: transactions in a second while watched, times those unwatched"
    assert drawn[watched][2].startswith("missed by 9%")
    assert not any("slow" in name and "a second" in name for name in drawn)  # it has no bar
    told = drawn["write 2 processes: largest part by which what top tells is wrong"]
    assert told[0] == "≤ 0.020"
    assert told[2] == "held"
    failed = drawn["watched write 2 processes: transactions that failed"]
    assert failed == ("0", "2 of 10,000", "missed")
    assert ABSENT in drawn["oxlite"]
