"""The workload notify: every message is accounted for, in every way of hearing of one."""

import os
import threading
import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.wait import until

from oxlite.bench import UsageError, VerificationError
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness import deliveries, wakeups
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.redis import RedisServer
from oxlite.bench.harness.run import Listener
from oxlite.bench.harness.scratch import scratch
from oxlite.bench.harness.session import HandedOver
from oxlite.bench.lab import Request, perform
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.notify import figures, work
from oxlite.bench.workloads.notify.figures import WAKEUPS
from oxlite.bench.workloads.notify.tables import TABLES
from oxlite.bench.workloads.notify.ways import WAYS
from oxlite.bench.workloads.notify.work import NotifyParameters

TINY = {
    "listeners": (3,), "hertz": (500,), "messages": 40, "duration_seconds": 0.1,
    "idle_seconds": 0.1, "processes": 2,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("driver", "way"), WAYS)
def test_every_listener_hears_every_message(
    driver: str, way: str, place: Path, listener: Listener
) -> None:
    if (missing := DRIVERS.get(driver).missing()) is not None:
        pytest.skip(missing)
    asked = [f"driver={driver},way={way},load={load}" for load in ("messages", "idle")]
    request = Request("notify", TINY, asked, repeats=1, warm_up=False, directory=place)
    result = perform(request, listener)
    assert not result.failed(), [(row.failure, row.failed_figures()) for row in result.rows]
    rows = [
        row for row in result.rows if (row.scenario.driver, row.scenario["way"]) == (driver, way)
    ]
    messages, idle = sorted(rows, key=lambda row: row.scenario["load"], reverse=True)
    assert messages.errors() == {}
    assert messages.samples[0].asked == 3 * 40
    assert messages.latencies[figures.CALLED].count == 3 * 40
    assert messages.environment is not None
    assert idle.samples[0].figures[WAKEUPS.name] >= (50 if way == "poll" else 0)
    assert not list(place.iterdir())


@pytest.mark.slow
def test_writers_beside_listeners_elsewhere_are_counted(tmp_path: Path, listener: Listener) -> None:
    given = TINY | {"elsewhere": (0, 2)}
    request = Request("notify", given, ["load=writers"], repeats=2, directory=tmp_path)
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    assert [row.scenario["elsewhere"] for row in result.rows] == ["0", "2"]
    drawn = [line.name for table in TABLES for one in table.drawings(result) for line in one.lines]
    assert any("transactions in a second, times those" in name for name in drawn)


@pytest.mark.slow
def test_the_command_says_how_to_repeat_it(bench: Any, tmp_path: Path) -> None:  # noqa: ANN401
    ended = bench(
        "notify", "--rate", "400", "--messages", "20", "--listeners", "1", "--repeats", "1",
        "--scenario", "driver=oxlite,way=outsider,load=messages", "--directory", tmp_path,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "repeat with: oxlite bench notify --listeners 1 --rate 400 --messages 20" in ended.stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"listeners": ()}, "--listeners must be at least one number"),
        ({"hertz": (0,)}, "--rate"),
        ({"messages": 0}, "--messages"),
        ({"idle_seconds": 0.0}, "--idle"),
    ],
)
def test_what_is_out_of_range_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        NotifyParameters(**given)


def test_listeners_are_divided_among_processes() -> None:
    parameters = NotifyParameters(processes=3)
    for listeners, division in ((0, []), (1, [1]), (3, [1, 1, 1]), (7, [2, 2, 3])):
        scenario = Scenario("oxlite", listeners=str(listeners))
        assert work.division(parameters, scenario) == division


def test_messages_end_with_the_time_or_their_number() -> None:
    parameters = NotifyParameters(messages=50, duration_seconds=0.5)
    counts = [work.messages(parameters, Scenario("redis", hertz=h)) for h in ("1", "20", "1000")]
    assert counts == [1, 10, 50]


def test_the_number_of_a_message_is_read_from_text_and_bytes() -> None:
    assert work.number(work.text(17)) == work.number(work.text(17).encode()) == 17
    assert work.number(work.text(work.WARM)) == work.WARM


@pytest.mark.parametrize(
    ("numbers", "account"),
    [
        ([0, 1, 2], (0, 0, 0)),
        ([0, 2], (1, 0, 0)),
        ([0, 1, 1, 2, 0], (0, 2, 0)),
        ([1, 0, 2], (0, 0, 1)),
        ([], (3, 0, 0)),
    ],
)
def test_every_message_is_accounted_for(numbers: list[int], account: tuple[int, ...]) -> None:
    assert deliveries.account(numbers, 3) == account


def test_what_nobody_has_published_is_found() -> None:
    with pytest.raises(VerificationError, match="heard message 3, of 3 published"):
        deliveries.account([3], 3)


def published(*instants_ns: tuple[int, int]) -> HandedOver:
    called, returned = (array("Q", each) for each in zip(*instants_ns, strict=True))
    return {}, called.tobytes() + returned.tobytes()


def heard(*pairs: tuple[int, int]) -> HandedOver:
    numbers, instants_ns = (array("q", [pair[n] for pair in pairs]) for n in range(2))
    return {"counts": [len(pairs)]}, numbers.tobytes() + instants_ns.tobytes()


def test_what_is_heard_before_the_call_returns_counts_as_nothing() -> None:
    sample = figures.of_messages(published((100, 200), (300, 400)), [heard((0, 150), (1, 450))], 2)
    assert list(sample.latencies_ns[figures.HEARD]) == [0, 50]
    assert list(sample.latencies_ns[figures.CALLED]) == [50, 150]
    assert sample.figures[figures.EARLY.name] == 0.5
    assert sample.errors == {}


def test_a_loss_is_an_error_of_the_row() -> None:
    listeners = [heard((0, 150)), heard((1, 450), (0, 460), (0, 470))]
    sample = figures.of_messages(published((100, 110), (300, 310)), listeners, 2)
    assert sample.errors == {"lost": 1, "doubled": 1, "out of order": 1}
    assert sample.asked == 4


def test_a_message_is_not_heard_before_it_is_published() -> None:
    with pytest.raises(VerificationError, match="before it was published"):
        figures.of_messages(published((100, 110)), [heard((0, 99))], 1)


def test_idle_listeners_hear_nothing() -> None:
    facts = {"switches": 2, "running_ns": 3_000_000}
    assert figures.of_idle(facts, [heard()]).figures == {"wakeups": 2.0, "running_ms": 3.0}
    with pytest.raises(VerificationError, match="nobody has published"):
        figures.of_idle(facts, [heard((0, 5))])


def test_wake_ups_of_all_threads_are_counted() -> None:
    ended = threading.Event()

    def wake() -> None:
        for _ in range(20):
            time.sleep(0.001)
        ended.wait()

    thread = threading.Thread(target=wake)
    before = wakeups.spent([os.getpid()])
    thread.start()
    try:
        until(lambda: wakeups.spent([os.getpid()]).since(before)[0] >= 20)
        assert wakeups.spent([os.getpid()]).since(before)[1] > 0
    finally:
        ended.set()
        thread.join()


def verdicts(rows: Sequence[Row]) -> dict[str, str]:
    result = Result("notify", {}, Plan(), 2, [], list(rows), [], "", "", "", 1.0)
    return {line.name: line.cells[2] for line in TABLES[-1].drawings(result)[0].lines}


@pytest.mark.parametrize(("count", "verdict"), [(0.0, "held"), (2.0, "missed")])
def test_no_wake_up_is_allowed(count: float, verdict: str) -> None:
    scenario = Scenario("oxlite", way="thread", load="idle", listeners="1", build="tuned")
    rows = [Row(scenario, [Sample({WAKEUPS.name: count})] * 2)]
    assert verdicts(rows) == {"thread: wake-ups of an idle listener": verdict}


def test_bars_are_judged_against_the_peers_of_the_same_run() -> None:
    def row(driver: str, way: str, p50_ms: float) -> Row:
        scenario = Scenario(
            driver, way=way, load="messages", listeners="1", hertz="100",
            build=DRIVERS.get(driver).default_build,
        )  # fmt: skip
        return Row(scenario, [Sample({figures.P50.name: p50_ms}, 1)] * 2)

    found = verdicts([row("oxlite", "thread", 0.05), row("redis", "thread", 0.04)])
    [against] = [
        verdict
        for name, verdict in found.items()
        if "commit to the listener, times shorter than Redis" in name
    ]
    assert against == "missed by 20%"
    assert found[
        "thread 1 listener 100 hertz: median time from the commit to the listener, ms"
    ] == ("held")
    assert not any("honker" in name for name in found)


@pytest.mark.parametrize(
    ("driver", "workload"),
    [
        ("redis", "notify"), ("honker", "notify"), ("channels_redis", "cable"),
        ("channels_lite", "cable"), ("memory", "cable"),
    ],
)  # fmt: skip
def test_peers_of_messages_are_for_one_workload_alone(driver: str, workload: str) -> None:
    reason = DRIVERS.get(driver).refusal(Scenario(driver, journal="wal"))
    assert f"oxlite bench {workload}" in str(reason)
    assert DRIVERS.get(driver).refusal(Scenario(driver, way="thread", build="own")) is None


def test_postgresql_has_connections_for_so_many_listeners() -> None:
    driver = DRIVERS.get("postgresql")
    few, many = (
        Scenario("postgresql", way="thread", listeners=count, build="own") for count in ("90", "91")
    )
    assert driver.refusal(few) is None
    assert "allow 100 connections" in str(driver.refusal(many))


def test_a_redis_server_begins_when_it_is_needed_and_ends(tmp_path: Path) -> None:
    if (missing := DRIVERS.get("redis").missing()) is not None:
        pytest.skip(missing)
    with scratch(tmp_path, keep=False) as directory:
        with RedisServer(directory) as server:
            assert server.pid is None
            socket = server.socket()
            assert server.socket() == socket
            pid = server.pid
            assert pid is not None
            assert Path(f"/proc/{pid}").exists()
        assert not socket.exists()
        assert not Path(f"/proc/{pid}").exists()
