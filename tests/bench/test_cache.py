"""The workload cache: every value is looked at, by each client, and every claim has its rows."""

import random
from array import array
from collections.abc import Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError, VerificationError
from oxlite.bench.claims import beside
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness import installed
from oxlite.bench.harness.cells import cells
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.redis import RedisServer
from oxlite.bench.harness.run import Listener
from oxlite.bench.harness.scratch import scratch
from oxlite.bench.lab import Request, perform
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.cache import figures, lru, systems, work
from oxlite.bench.workloads.cache.claims import CLAIMS
from oxlite.bench.workloads.cache.systems import SYSTEMS, Client
from oxlite.bench.workloads.cache.tables import TABLES
from oxlite.bench.workloads.cache.work import CacheParameters, Entries
from oxlite.bench.workloads.cache.worker import CHECK, NOT_KEPT, AskingTask, PrepareTask
from oxlite.bench.workloads.cache.workload import WORKLOAD
from oxlite.cache import Cache

TINY = {
    "keys": 60, "processes": (1, 2), "tasks": (3,), "duration_seconds": 0.02, "size_mib": 1,
    "sets": 600, "requests": 6_000,
}  # fmt: skip


def measured(asked: Sequence[str], place: Path, listener: Listener, **given: object) -> Result:
    request = Request("cache", {**TINY, **given}, asked, repeats=1, warm_up=False, directory=place)
    result = perform(request, listener)
    assert not result.failed(), [(row.failure, row.failed_figures()) for row in result.rows]
    assert not list(place.iterdir())
    return result


@pytest.mark.slow
@pytest.mark.parametrize(("driver", "interface", "way"), SYSTEMS)
def test_every_system_gives_what_was_set(
    driver: str, interface: str, way: str, tmp_path: Path, listener: Listener
) -> None:
    at_work = {"tasks": "3"} if interface == "asyncio" else {"processes": "1"}
    asked = {"driver": driver, "interface": interface, "way": way, "load": "fixed", **at_work}
    scenario = Scenario(**asked)
    if (missing := installed.missing(scenario)) is not None:
        pytest.skip(missing)
    text = ",".join(f"{axis}={value}" for axis, value in asked.items())
    result = measured([text], tmp_path, listener)
    [row] = [row for row in result.rows if asked.items() <= row.scenario.items()]
    assert row.errors() == {}
    assert row.environment is not None
    [sample] = row.samples
    assert {metric.name for metric in figures.RATES.values()} <= sample.figures.keys()
    assert sample.figures[figures.MEMORY.name] > 0
    on_disk = sample.figures[figures.DISK.name] > 0
    assert on_disk == (way not in {"unix", "tcp", "memory"})
    assert set(row.latencies) == set(work.OPERATIONS)
    assert all(found.count > 0 for found in row.latencies.values())


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["oxlite", "redis", "diskcache"])
def test_processes_lose_no_increment(driver: str, tmp_path: Path, listener: Listener) -> None:
    if (missing := DRIVERS.get(driver).missing()) is not None:
        pytest.skip(missing)
    way = "unix" if driver == "redis" else "file"
    asked = f"driver={driver},interface=raw,way={way},load=fixed,processes=2"
    result = measured([asked], tmp_path, listener)
    assert [row.errors() for row in result.rows] == [{}] * len(result.rows)


@pytest.mark.slow
def test_a_limit_and_hits_are_measured(tmp_path: Path, listener: Listener) -> None:
    asked = ["load=limit", "load=zipf", "load=scan", "driver=oxlite,interface=raw,load=mixed"]
    result = measured(asked, tmp_path, listener)
    rows = {
        (row.scenario["load"], row.scenario.get("processes")): row
        for row in result.rows
        if row.scenario.driver == "oxlite"
    }
    assert rows.keys() == {
        ("limit", "1"), ("limit", "2"), ("zipf", None), ("scan", None), ("mixed", "1"),
    }  # fmt: skip
    assert all(row.errors() == {} for row in rows.values())
    [limit] = rows["limit", "1"].samples
    assert limit.figures[figures.OVER.name] < 30
    assert limit.detail["most_used_bytes"] > 0.5 * (1 << 20)
    [zipf] = rows["zipf", None].samples
    assert zipf.detail["evictions"] > 0
    assert abs(zipf.figures[figures.BEHIND.name]) < 20
    titles = [one.title for table in TABLES for one in table.drawings(result)]
    assert "A limit that is kept while values of random sizes are set" in titles
    assert any("beside an exact LRU" in title for title in titles)


@pytest.mark.slow
def test_the_command_says_how_to_repeat_it(bench: Any, tmp_path: Path) -> None:  # noqa: ANN401
    ended = bench(
        "cache", "--keys", "60", "--processes", "1", "--duration", "0.02", "--size", "2",
        "--repeats", "1", "--scenario", "driver=oxlite,interface=raw,load=fixed",
        "--directory", tmp_path,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "repeat with: oxlite bench cache --keys 60 --processes 1" in ended.stdout
    assert "--size 2 " in ended.stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"processes": ()}, "--processes must be at least one number"),
        ({"tasks": (0,)}, "--tasks"),
        ({"keys": 5}, "--keys"),
        ({"size_mib": 0}, "--size"),
        ({"duration_seconds": 0.0}, "--duration"),
    ],
)
def test_what_is_out_of_range_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CacheParameters(**given)


def test_a_value_says_whose_it_is_and_whether_it_is_whole() -> None:
    raw = work.value(17, 3, 500)
    assert len(raw) == 500
    assert work.is_sound(raw, 17)
    assert not work.is_sound(raw, 18)
    assert not work.is_sound(raw[:-1], 17)
    assert not work.is_sound(raw[:-1] + bytes([raw[-1] ^ 1]), 17)
    assert not work.is_sound(b"no value of ours", 17)
    assert not work.is_sound(None, 17)


def test_sizes_of_the_mix_reach_from_the_shortest_to_the_longest() -> None:
    draws = random.Random(1)
    lengths = [work.length(draws) for _ in range(20_000)]
    assert 100 <= min(lengths) < 110
    assert 60_000 < max(lengths) <= 65_536
    # Logarithms are evenly distributed: as many are below the geometric mean as above it.
    assert 0.48 < sum(one < 2560 for one in lengths) / len(lengths) < 0.52


def test_the_first_key_is_asked_for_twice_as_often_as_the_second() -> None:
    numbers = work.zipf(1000, 50_000, random.Random(1))
    assert max(numbers) < 1000
    assert 1.8 < numbers.count(0) / numbers.count(1) < 2.2


def test_the_work_follows_from_the_seed() -> None:
    scenario = Scenario("oxlite", interface="raw", load="mixed")
    one, same, other = (
        Entries(CacheParameters(keys=50, seed=seed), scenario).digest for seed in (1, 1, 2)
    )
    assert one == same != other
    parameters = CacheParameters(size_mib=1, requests=900)
    assert work.trace(parameters, "zipf").digest != work.trace(parameters, "scan").digest


def test_a_scan_asks_once_for_keys_that_nobody_else_asks_for() -> None:
    parameters = CacheParameters(size_mib=1, requests=9_000)
    zipf, scan = (work.trace(parameters, load) for load in work.TRACES)
    keys = work.universe(parameters)
    scanned = [number for number in scan.numbers if number >= keys]
    assert scanned == list(range(keys, keys + 900))
    assert array("I", (number for number in scan.numbers if number < keys)) == zipf.numbers
    assert scan.counted_from == zipf.counted_from == 3_000
    assert scan.numbers.index(keys) == 6_000


def test_batches_are_of_ten_different_keys() -> None:
    entries = Entries(CacheParameters(keys=50), Scenario("oxlite", interface="raw", load="fixed"))
    batches = entries.batches(0, 1)
    assert all(len({*next(batches)}) == work.BATCH for _ in range(50))


def test_an_exact_lru_is_one() -> None:
    # 0 1 2 0 3 0 1: with room for two keys only the 0 after the 3 is still there.
    assert lru.hits([0, 1, 2, 0, 3, 0, 1], 2, 0) == 1
    assert lru.hits([0, 1, 2, 0, 3, 0, 1], 3, 0) == 2
    assert lru.hits([0, 1, 2, 0, 3, 0, 1], 4, 0) == 3
    assert lru.hits([0, 1, 2, 0, 3, 0, 1], 4, 4) == 2


def given(path: Path, **more: object) -> dict[str, Any]:
    parameters = {"keys": 60, "processes": [1], "duration_seconds": 0.02}
    scenario = {
        "driver": "oxlite", "interface": "raw", "way": "file", "load": "fixed", "processes": "1",
    }  # fmt: skip
    common = {"parameters": parameters, "scenario": scenario, "path": str(path), "port": 0}
    return {**common, "place": 0, **more}


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    path = tmp_path / "cache.db"
    PrepareTask(given(path)).close()
    return path


def test_what_was_measured_is_handed_over(filled: Path) -> None:
    with closing(AskingTask(given(filled))) as task:
        for operation in work.OPERATIONS:
            task.run({"operation": operation}, 0)
            facts, payload = task.collect()
            sample = Sample({})
            added = figures.of_operation(operation, [(facts, payload)], sample)
            assert sample.asked == len(payload) // 8 > 0
            assert sample.errors == {}
            assert sample.figures[figures.RATES[operation].name] > 0
        assert added > 0
        task.run({"operation": CHECK, "is_alone": True}, 0)
        facts, _ = task.collect()
        assert facts["counted"] == added


@pytest.mark.parametrize(
    ("operation", "key", "wrong"),
    [
        (work.GET, work.key(0), b"of somebody else"),
        (work.GET, work.key(0), None),
        (work.GET_MANY, work.key(0), b"of somebody else"),
        (work.MISS, work.absent(0), b"never set"),
        (CHECK, work.key(59), b"of somebody else"),
    ],
)
def test_a_wrong_value_is_found(
    filled: Path, operation: str, key: str, wrong: bytes | None
) -> None:
    with Cache(filled) as cache:
        if wrong is None:
            cache.delete(key)
        else:
            cache.set(key, wrong)
    with closing(AskingTask(given(filled))) as task, pytest.raises(VerificationError, match=key):
        task.run({"operation": operation, "is_alone": True}, 0)


def test_a_set_that_was_forgotten_is_found(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: AskingTask) -> Client:
        client = systems.opened(self.scenario, self.where)
        self.exits.callback(client.close)
        return Client(
            client.get, lambda *_: True, client.incr, client.get_many, client.close, client.unable
        )

    monkeypatch.setattr(AskingTask, "open", forgetful)
    with closing(AskingTask(given(filled))) as task:
        task.run({"operation": work.SET}, 0)
        with pytest.raises(VerificationError, match="not what was set"):
            task.run({"operation": CHECK, "is_alone": True}, 0)


def test_a_set_that_is_refused_is_an_error(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cache, "set", lambda *_: False)
    with closing(AskingTask(given(filled))) as task:
        task.run({"operation": work.SET}, 0)
        facts, payload = task.collect()
    sample = Sample({})
    figures.of_operation(work.SET, [(facts, payload)], sample)
    # Those that warm up fail as well.
    assert sample.errors.keys() == {f"set: {NOT_KEPT}"}
    assert sample.errors[f"set: {NOT_KEPT}"] >= sample.asked


def test_increments_are_accounted_for() -> None:
    figures.account_for_sums(sample := Sample({}), 10, 10, is_exact=True)
    assert sample.errors == {}
    figures.account_for_sums(sample, 10, 8, is_exact=False)
    assert sample.errors == {"incr: lost": 2}
    with pytest.raises(VerificationError, match="of 10 increments 2 are lost"):
        figures.account_for_sums(Sample({}), 10, 8, is_exact=True)
    with pytest.raises(VerificationError, match="10 increments came to 12"):
        figures.account_for_sums(Sample({}), 10, 12, is_exact=False)


def test_a_limit_is_judged_by_the_most_that_anybody_saw() -> None:
    one = {
        "sets": 10, "spent_ns": 1_000_000, "longest_ns": 300_000, "most_used_bytes": 1_050,
        "last_used_bytes": 900, "read": 5, "found": 4, "errors": {},
    }  # fmt: skip
    sample = figures.of_limit([one, {**one, "longest_ns": 500_000, "most_used_bytes": 900}], 1_000)
    assert sample.figures[figures.OVER.name] == pytest.approx(5.0)
    assert sample.figures[figures.LONGEST.name] == 0.5
    assert sample.figures[figures.SETS.name] == 20_000
    assert sample.asked == 20


def test_hits_are_set_beside_those_of_an_exact_lru() -> None:
    facts = {
        "asked": 200, "hits": 150, "exact_hits": 154, "entries": 7, "evictions": 9, "errors": {},
    }  # fmt: skip
    sample = figures.of_hits(facts)
    assert sample.figures == {figures.HITS.name: 75.0, figures.BEHIND.name: 2.0}


def test_every_claim_has_rows_in_a_full_run() -> None:
    grids = WORKLOAD.grids(WORKLOAD.parameters({}, quick=False))
    found = cells(grids, WORKLOAD.selection, WORKLOAD.baselines)
    rows = [Row(cell.scenario, [Sample({})]) for cell in found]
    result = Result("cache", {}, Plan(), 1, [], rows, [], "", "", "", 1.0)
    for claim in CLAIMS:
        ours = [row for row in rows if claim.rows.items() <= row.scenario.items()]
        assert ours, claim.title
        for row in ours:
            if claim.against is not None:
                other = beside(result, row, claim.against)
                assert other is not None, claim.title
                assert other is not row, claim.title


def test_bars_are_judged_against_the_peers_of_the_same_run() -> None:
    def row(driver: str, way: str, gets: float) -> Row:
        scenario = Scenario(
            driver, interface="raw", way=way, load="fixed", processes="1",
            build=DRIVERS.get(driver).default_build,
        )  # fmt: skip
        return Row(scenario, [Sample({figures.GETS.name: gets}, 1)] * 2)

    rows = [
        row("oxlite", "file", 100.0), row("redis", "unix", 25.0), row("redis", "tcp", 5.0),
        row("diskcache", "file", 50.0),
    ]  # fmt: skip
    result = Result("cache", {}, Plan(), 2, [], rows, [], "", "", "", 1.0)
    verdicts = {line.name: line.cells[2] for line in TABLES[-1].drawings(result)[0].lines}
    gets = {name: verdict for name, verdict in verdicts.items() if ": get in a second" in name}
    assert gets == {
        "raw 1 process: get in a second, times that of Redis by its Unix socket": "missed by 20%",
        "raw 1 process: get in a second, times that of diskcache": "held",
    }


@pytest.mark.parametrize("driver", ["diskcache", "filebased", "locmem"])
def test_caches_are_for_one_workload_alone(driver: str) -> None:
    reason = DRIVERS.get(driver).refusal(Scenario(driver, journal="wal"))
    assert "oxlite bench cache" in str(reason)
    assert DRIVERS.get(driver).refusal(Scenario(driver, way="file", build="own")) is None


def test_what_goes_through_django_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario("stdlib", interface="django", way="table", build="own")
    monkeypatch.setattr(installed.util, "find_spec", lambda name: None)
    assert "pip install django" in str(installed.missing_mapper("django"))
    monkeypatch.setattr(type(DRIVERS.get("stdlib")), "missing", lambda self: None)
    assert "pip install django" in str(installed.missing(scenario))


def test_a_redis_server_listens_on_a_port_and_keeps_a_log(tmp_path: Path) -> None:
    if (missing := DRIVERS.get("redis").missing()) is not None:
        pytest.skip(missing)
    with (
        scratch(tmp_path, keep=False) as directory,
        RedisServer(directory, has_port=True, is_logged=True) as server,
    ):
        server.socket()
        with import_module("redis").Redis(port=server.port) as client:
            client.set("key", "value")
            assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert server.directory is not None
        assert any(file.stat().st_size for file in server.directory.rglob("*.aof*"))
