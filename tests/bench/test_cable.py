"""The workload cable: every message is accounted for, in every channel layer."""

from array import array
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError, VerificationError
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.run import Listener
from oxlite.bench.lab import Request, perform
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.cable import figures, work, workload
from oxlite.bench.workloads.cable.figures import P50, P99, WAKEUPS
from oxlite.bench.workloads.cable.layers import LAYERS
from oxlite.bench.workloads.cable.tables import TABLES
from oxlite.bench.workloads.cable.work import CableParameters

TINY = {
    "clients": (3,), "hertz": (100,), "messages": 20, "duration_seconds": 0.2, "idle_seconds": 0.2,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("driver", "way"), LAYERS)
def test_every_client_hears_every_message(
    driver: str, way: str, tmp_path: Path, listener: Listener
) -> None:
    reasons = [DRIVERS.get(driver).missing()]
    reasons += [f"{name} is not installed" for name in workload.NEEDED if not util.find_spec(name)]
    if missing := [reason for reason in reasons if reason]:
        pytest.skip(missing[0])
    asked = [f"driver={driver},way={way}"]
    request = Request("cable", TINY, asked, repeats=1, warm_up=False, directory=tmp_path)
    result = perform(request, listener)
    if driver == "channels_lite" and any("is locked" in str(row.failure) for row in result.rows):
        pytest.skip("channels-lite's members are in each other's way: database is locked")
    assert not result.failed(), [(row.failure, row.failed_figures()) for row in result.rows]
    rows = {
        row.scenario["load"]: row
        for row in result.rows
        if (row.scenario.driver, row.scenario["way"]) == (driver, way)
    }
    assert rows["messages"].errors() == {}
    assert rows["messages"].samples[0].asked == 3 * 20
    assert rows["messages"].latencies[figures.DELIVERED].count == 3 * 20
    assert rows["messages"].environment is not None
    assert ("idle" in rows) == (driver != "memory")
    if driver == "oxlite":
        assert rows["idle"].samples[0].figures[WAKEUPS.name] == 0
    if driver == "channels_lite":
        assert rows["idle"].samples[0].figures[WAKEUPS.name] > 0
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_server_that_does_not_come_up_says_why(tmp_path: Path, listener: Listener) -> None:
    file = tmp_path / "scratch"
    file.mkdir()
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "uvicorn.py").write_text("raise RuntimeError('nothing is served here')\n")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(broken))
        request = Request(
            "cable", TINY, ["driver=oxlite,load=messages"], repeats=1, warm_up=False, directory=file
        )
        [row] = [row for row in perform(request, listener).rows if row.scenario.driver == "oxlite"]
    assert "RuntimeError: nothing is served here" in str(row.failure)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clients": ()}, "--clients must be at least one number"),
        ({"hertz": (0,)}, "--rate"),
        ({"messages": 0}, "--messages"),
        ({"workers": 0}, "--workers"),
    ],
)
def test_what_is_out_of_range_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CableParameters(**given)


def test_what_the_site_needs_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload, "NEEDED", ("json", "no_such_module_1"))
    with pytest.raises(UsageError, match="the site needs no_such_module_1; run `pip install no_"):
        workload.require_installed()


def test_clients_are_divided_among_processes() -> None:
    assert [work.shares(*each) for each in ((0, 2), (1, 2), (5, 2), (7, 3))] == [
        [0, 0], [1, 0], [3, 2], [3, 2, 2],
    ]  # fmt: skip
    parameters = CableParameters(workers=3)
    assert work.workers(parameters, Scenario("oxlite")) == 3
    assert work.workers(parameters, Scenario("memory")) == 1


def handed_over(left_ns: Sequence[int], *clients: Sequence[tuple[int, int]]) -> Any:  # noqa: ANN401
    arrays = [array("q", left_ns)]
    for pairs in clients:
        arrays += [array("q", [pair[n] for pair in pairs]) for n in range(2)]
    facts = {"counts": [len(pairs) for pairs in clients]}
    return facts, b"".join(each.tobytes() for each in arrays)


def test_each_sender_has_an_order_of_its_own() -> None:
    # Senders take turns: 0 and 2 are of the one, 1 and 3 of the other.
    left_ns = (100, 200, 300, 400)
    in_order = [(1, 500), (0, 600), (2, 700), (3, 800)]
    sample = figures.of_messages(handed_over(left_ns, in_order), 4)
    assert sample.errors == {}
    assert list(sample.latencies_ns[figures.DELIVERED]) == [300, 500, 400, 400]
    disordered = [(2, 500), (0, 600), (1, 700), (3, 800)]
    assert figures.of_messages(handed_over(left_ns, disordered), 4).errors == {"out of order": 1}


def test_a_loss_is_an_error_of_the_row() -> None:
    found = handed_over((100, 200), [(0, 300), (1, 300)], [(0, 300), (0, 400)])
    sample = figures.of_messages(found, 2)
    assert sample.errors == {"lost": 1, "doubled": 1}
    assert sample.asked == 4


@pytest.mark.parametrize(
    ("pair", "reason"),
    [((0, 99), "heard before it was sent"), ((4, 300), "heard message 2, of 1 published")],
)
def test_what_cannot_be_is_found(pair: tuple[int, int], reason: str) -> None:
    with pytest.raises(VerificationError, match=reason):
        figures.of_messages(handed_over((100, 200), [pair]), 2)


def test_idle_members_were_waiting() -> None:
    watched = {"switches": 2, "running_ns": 3_000_000}
    sample = figures.of_idle([{"members": 2, "heard": 2}, {"members": 1, "heard": 1}], watched)
    assert sample.figures == {"wakeups": 2.0, "running_ms": 3.0}
    with pytest.raises(VerificationError, match="of 3 members only 2 were waiting"):
        figures.of_idle([{"members": 3, "heard": 2}], watched)


def row(driver: str, way: str, p50_ms: float, p99_ms: float) -> Row:
    scenario = Scenario(
        driver, way=way, load="messages", clients="3", hertz="20",
        build=DRIVERS.get(driver).default_build,
    )  # fmt: skip
    return Row(scenario, [Sample({P50.name: p50_ms, P99.name: p99_ms}, 1)] * 2)


def test_bars_are_judged_against_the_layers_of_the_same_run() -> None:
    rows = [row("oxlite", "file", 3.0, 11.0), row("channels_redis", "core", 2.0, 10.0)]
    result = Result("cable", {}, Plan(), 2, [], rows, [], "", "", "", 1.0)
    verdicts = {line.name: line.cells[2] for line in TABLES[-1].drawings(result)[0].lines}
    of_core = {
        name.split(": ")[1].split(",")[0]: verdict
        for name, verdict in verdicts.items()
        if name.endswith("channels-redis (core)")
    }
    assert of_core == {
        "median time from the sender to a client": "missed by 50%",
        "99th percentile of the time from the sender to a client": "held",
    }
    assert not any("pub/sub" in name for name in verdicts)
