"""Scenarios, filters, cells, pragmas: what can exist, and why something cannot."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from oxlite.bench import UsageError, VerificationError
from oxlite.bench.drivers import pragmas
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.drivers.connections import Place
from oxlite.bench.drivers.stdlib import StandardLibrary
from oxlite.bench.harness import cells, installed
from oxlite.bench.scenarios.axes import BUILD, BUSY, DRIVER, JOURNAL, POLICIES
from oxlite.bench.scenarios.scenario import Scenario, parse_filter
from oxlite.bench.workloads.kv.workload import STOCK, WORKLOAD

AXES_OF_KV = {
    **WORKLOAD.grid(WORKLOAD.parameters({}, quick=False)),
    "driver": ("stdlib", "oxlite"),
}


def test_a_label_names_the_axes_and_an_unusual_build() -> None:
    assert (
        Scenario("stdlib", journal="wal", pragmas="tuned", busy="fair").label
        == "stdlib wal tuned fair"
    )
    assert Scenario("oxlite", journal="wal", build="tuned").label == "oxlite wal"
    assert Scenario("oxlite", journal="wal", build="seed").label == "oxlite-seed wal"


def test_scenarios_are_equal_by_value() -> None:
    one = Scenario("stdlib", journal="wal", busy=None, processes="4")
    assert one == Scenario("stdlib", processes="4", journal="wal")
    assert hash(one) == hash(Scenario("stdlib", processes="4", journal="wal"))
    assert one != one.but(journal="rollback")
    assert one.but(processes="8").counts() == [8]
    assert "busy" not in one


def test_a_filter_is_read() -> None:
    assert parse_filter("driver=oxlite, journal=wal", [DRIVER, JOURNAL]) == {
        "driver": "oxlite",
        "journal": "wal",
    }


@pytest.mark.parametrize(
    ("axes", "label"),
    [
        ({"clients": "1"}, "oxlite 1 client"),
        ({"clients": "16"}, "oxlite 16 clients"),
        ({"processes": "1", "long": "1"}, "oxlite 1 process 1 long"),
        ({"processes": "2", "long": "0"}, "oxlite 2 processes 0 long"),
    ],
)
def test_a_number_is_named_with_what_it_counts(axes: dict[str, str], label: str) -> None:
    assert Scenario("oxlite", **axes).label == label


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wal", "axis=value"),
        ("journal=", "axis=value"),
        ("", "axis=value"),
        ("jornal=wal", "did you mean 'journal'"),
        ("journal=wall", "did you mean 'wal'"),
        ("busy=fair,busy=none", "given twice"),
    ],
)
def test_a_bad_filter_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_filter(text, [DRIVER, JOURNAL, BUSY])


def test_an_open_axis_ranges_and_the_build_does_not() -> None:
    found = cells.expand(AXES_OF_KV, {"driver": "oxlite", "journal": "wal"})
    assert len(found) == 2 * len(POLICIES)
    assert {scenario.get("build") for scenario in found} == {"tuned"}
    assert all(scenario.get("journal") == "wal" for scenario in found)


def test_an_axis_the_workload_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown axis 'mix'"):
        cells.expand(AXES_OF_KV, {"mix": "balanced"})


def test_an_interpreter_must_be_one_of_the_run() -> None:
    axes = {**AXES_OF_KV, "interpreter": ("python3.12",)}
    found = cells.expand(axes, {"driver": "stdlib", "busy": "none"})
    assert {scenario.get("interpreter") for scenario in found} == {"python3.12"}
    assert all(scenario.label.endswith("none python3.12") for scenario in found)
    with pytest.raises(UsageError, match=r"unknown value of the axis interpreter 'python3\.13'"):
        cells.expand(axes, {"interpreter": "python3.13"})
    with pytest.raises(UsageError, match="unknown axis 'interpreter'"):
        cells.expand(AXES_OF_KV, {"interpreter": "python3.12"})


def test_an_unknown_driver_is_refused() -> None:
    with pytest.raises(UsageError, match="did you mean 'stdlib'"):
        cells.expand(AXES_OF_KV, {"driver": "stdlip"})


def test_all_cells_are_there_once_with_reasons_where_impossible() -> None:
    found = cells.cells([AXES_OF_KV], [{}, {"journal": "wal"}], [STOCK])
    cell_count = 2 * 2 * 2 * len(POLICIES)
    assert len(found) == cell_count
    assert len({cell.scenario.label for cell in found}) == cell_count
    assert found[0].scenario.label == "stdlib rollback stock backoff"
    impossible = {cell.scenario.label: cell.reason for cell in found if cell.reason}
    for busy, reason in (("fair", "busy handler"), ("gate", "the gate is Oxlite's")):
        assert {label for label, why in impossible.items() if reason in (why or "")} == {
            f"stdlib {journal} {settings} {busy}"
            for journal in ("rollback", "wal")
            for settings in ("stock", "tuned")
        }


def test_every_cell_has_a_scenario_or_a_reason_for_every_driver_and_value() -> None:
    for driver in DRIVERS:
        for build in BUILD.values:
            for busy in BUSY.values:
                cell = cells.cell(
                    Scenario(driver.name, journal="wal", pragmas="stock", busy=busy, build=build)
                )
                assert cell.reason is None or cell.reason.strip()


def test_only_oxlite_has_builds() -> None:
    cell = cells.cell(Scenario("stdlib", build="stock"))
    assert cell.reason is not None
    assert "brings its own SQLite" in cell.reason


def test_a_build_that_was_not_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "build_path", lambda build: Path("/nonexistent"))
    assert installed.missing_build("seed") == "not built; run `make builds`"
    assert installed.missing_build("tuned") is None


def test_a_driver_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StandardLibrary, "module", "no_such_module_anywhere")
    cell = cells.cell(
        Scenario("stdlib", journal="wal", pragmas="stock", busy="backoff", build="own")
    )
    assert cell.reason is not None
    assert "not installed" in cell.reason


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "p.db", isolation_level=None)) as opened:
        opened.execute("PRAGMA journal_mode=wal")
        yield opened


def test_tuned_takes_effect(connection: sqlite3.Connection) -> None:
    pragmas.apply(connection, "tuned")
    assert pragmas.read(connection, "synchronous") == 1
    assert pragmas.read(connection, "mmap_size") == 134217728
    pragmas.apply(connection, "durable")
    assert pragmas.read(connection, "synchronous") == 2


def test_stock_sets_nothing(connection: sqlite3.Connection) -> None:
    before = connection.total_changes, pragmas.read(connection, "synchronous")
    pragmas.apply(connection, "stock")
    assert (connection.total_changes, pragmas.read(connection, "synchronous")) == before


def test_a_pragma_without_effect_is_found_out(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(pragmas.SETS, "tuned", (("page_size", "1234", 1234),))  # type: ignore[misc]
    with pytest.raises(VerificationError, match="page_size=1234 did not take effect"):
        pragmas.apply(connection, "tuned")


def test_another_journal_mode_is_found_out(connection: sqlite3.Connection) -> None:
    pragmas.check_journal(connection, "wal")
    with pytest.raises(VerificationError, match="asks for 'delete'"):
        pragmas.check_journal(connection, "rollback")


# PostgreSQL's has a server instead of a file, and tests of its own; the others are for messages,
# caches or tasks.
OTHERS = {
    "postgresql", "redis", "honker", "channels_redis", "channels_lite", "memory", "diskcache",
    "filebased", "locmem", "celery", "huey", "django_tasks_db",
}  # fmt: skip


@pytest.mark.parametrize("driver", [name for name in DRIVERS.names() if name not in OTHERS])
def test_every_driver_opens_and_speaks_the_common_protocol(driver: str, tmp_path: Path) -> None:
    path = tmp_path / "d.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute("PRAGMA journal_mode=wal")
        made.execute("CREATE TABLE t(a)")
    found = DRIVERS.get(driver)
    if found.missing():
        pytest.skip(found.missing() or "")
    scenario = Scenario(
        driver, journal="wal", pragmas="tuned", busy="backoff", build=found.default_build
    )
    opened = Place(found, path, scenario, 1.0).opened()
    opened.executemany("INSERT INTO t VALUES(?)", [(1,), (2,)])
    assert [row[0] for row in opened.execute("SELECT a FROM t ORDER BY a", ()).fetchall()] == [1, 2]
    assert opened.execute("SELECT a FROM t WHERE a = ?", (3,)).fetchone() is None
    with pytest.raises(found.errors()):
        opened.execute("SELECT nothing FROM nowhere", ())
    assert set(found.versions()) == {"driver", "sqlite"}
    opened.close()


def test_a_baseline_is_beside_what_was_asked_for() -> None:
    fair = {"busy": "fair"}
    found = cells.cells(
        [AXES_OF_KV], [{"driver": "oxlite", "journal": "wal", "busy": "none"}], [fair]
    )
    assert [cell.scenario.label for cell in found] == [
        f"oxlite wal {pragmas} {busy}"
        for busy in ("fair", "none")
        for pragmas in ("stock", "tuned")
    ]
    scenario = found[-1].scenario
    assert [one.label for one in cells.baselines_of(scenario, [fair, STOCK])] == [
        "oxlite wal tuned fair",
        "stdlib rollback stock backoff",
    ]


def test_a_baseline_of_another_driver_has_its_own_build() -> None:
    asked = {"driver": "oxlite", "build": "seed", "journal": "wal", "busy": "none"}
    found = cells.cells([AXES_OF_KV], [asked], [{"driver": "stdlib"}])
    assert {cell.scenario.get("build") for cell in found if cell.scenario.driver == "stdlib"} == {
        "own"
    }
    assert found[0].scenario in cells.baselines_of(found[-2].scenario, [{"driver": "stdlib"}])


def test_a_label_says_what_is_counted() -> None:
    assert Scenario("oxlite", busy="fair", processes="8").label == "oxlite fair 8 processes"


def test_any_build_is_every_build_of_the_driver() -> None:
    found = cells.expand(AXES_OF_KV, {"journal": "wal", "busy": "backoff", "build": "any"})
    builds_of = {(scenario.driver, scenario.get("build")) for scenario in found}
    assert builds_of == {("stdlib", "own")} | {
        ("oxlite", build) for build in DRIVERS.get("oxlite").builds
    }


def test_a_driver_without_the_baselines_axes_brings_no_baseline() -> None:
    grids = ({"driver": ("stdlib", "oxlite"), "journal": ("wal",)}, {"driver": ("postgresql",)})
    found = cells.cells(grids, [{"driver": "postgresql"}], [{"driver": "stdlib"}])
    assert [one.scenario.driver for one in found] == ["postgresql"]
    found = cells.cells(grids, [{"driver": "oxlite"}], [{"driver": "stdlib"}])
    assert [one.scenario.driver for one in found] == ["stdlib", "oxlite"]
    refused = cells.cell(Scenario("postgresql", journal="wal", build="own"))
    assert refused.reason == "PostgreSQL has no journal: these are SQLite's"
