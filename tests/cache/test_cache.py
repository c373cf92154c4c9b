"""The cache: keys, expiry, several processes, a limit that is kept, and files that are damaged."""

import json
import os
import random
import sqlite3 as stdlib
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cache.faces import AwaitedCache

from oxlite import sqlite3
from oxlite.cache import Cache

FACES: dict[str, Any] = {"threads": Cache, "asyncio": AwaitedCache}


@pytest.fixture(params=FACES)
def cache(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cache]:
    """Either face: what a test says of one holds for both."""
    with FACES[request.param](tmp_path / "cache.db", size=4 << 20) as cache:
        yield cache


def table(path: Path, sql: str, *parameters: object) -> list[Any]:
    """What another program does with the file."""
    connection = stdlib.connect(path, isolation_level=None)
    try:
        return connection.execute(sql, parameters).fetchall()
    finally:
        connection.close()


VALUES = [
    "text", "", "\ud800 no Unicode", b"", b"\x00\xff" * 9_000, 0, -1, 2**63 - 1, -(2**63), 2**63,
    2**200, 1.5, True, False, None, [1, "a", None], {"a": {"b": [1.5]}}, "x" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize(
    "value", VALUES, ids=lambda value: f"{type(value).__name__}-{str(value)[:9]!r}"
)
@pytest.mark.parametrize("serializer", ["json", "pickle"])
@pytest.mark.parametrize("face", FACES)
def test_a_value_comes_back_as_it_was(
    tmp_path: Path,
    face: str,
    serializer: Any,  # noqa: ANN401
    value: object,
) -> None:
    with FACES[face](tmp_path / "cache.db", serializer=serializer, secret_key="s") as cache:
        assert cache.set("k", value)
        found = cache.get("k", "default")
        assert (found, type(found)) == (value, type(value))


def test_what_is_not_there_is_the_default(cache: Cache) -> None:
    assert cache.get("k") is None
    assert cache.get("k", "d") == "d"
    assert "k" not in cache
    cache.set("k", None)
    assert cache.get("k", "d") is None
    assert "k" in cache
    assert cache.delete("k")
    assert not cache.delete("k")


def test_a_key_expires(cache: Cache) -> None:
    cache.set("k", 1, timeout=0.05)
    assert 0 < (cache.ttl("k") or 0) <= 0.05
    assert cache.get("k") == 1
    time.sleep(0.06)
    assert cache.get("k") is None
    assert cache.ttl("k") is None
    assert not cache.touch("k", 10)
    assert not cache.delete("k")
    assert cache.add("k", 2, timeout=None)
    assert cache.ttl("k") == float("inf")
    assert cache.touch("k", 10)
    assert 9 < (cache.ttl("k") or 0) <= 10
    assert cache.touch("k", 0)
    assert "k" not in cache


@pytest.mark.parametrize("timeout", [0, -1, 0.0])
def test_a_timeout_that_has_passed_deletes(cache: Cache, timeout: float) -> None:
    cache.set("k", 1)
    assert cache.set("k", 2, timeout)
    assert "k" not in cache
    cache.set_many({"k": 1, "l": 2})
    cache.set_many({"k": 1, "l": 2}, timeout)
    assert len(cache) == 0
    assert cache.add("k", 1, timeout)
    assert "k" not in cache


def test_add_and_replace_ask_whether_it_is_there(cache: Cache) -> None:
    assert not cache.replace("k", 0)
    assert cache.add("k", 1)
    assert not cache.add("k", 2)
    assert cache.get("k") == 1
    assert cache.replace("k", 3)
    assert cache.get("k") == 3


def test_numbers_are_added_to(cache: Cache) -> None:
    cache.set("n", 40, timeout=100)
    assert cache.incr("n") == 41
    assert cache.incr("n", 10) == 51
    assert cache.decr("n", 100) == -49
    assert cache.get("n") == -49
    assert (cache.ttl("n") or 0) > 90
    cache.set("n", 2**63 - 1)
    with pytest.raises(ValueError, match="'absent' is not there"):
        cache.incr("absent")
    for delta in (1, 2**63, 2**64):
        with pytest.raises(TypeError, match="no whole number of 64 bits"):
            cache.incr("n", delta)
    assert cache.get("n") == 2**63 - 1
    for value in ("5", 1.5, True, b"1", None):
        cache.set("n", value)
        with pytest.raises(TypeError, match="no whole number"):
            cache.incr("n")
    with pytest.raises(TypeError, match="delta is an int"):
        cache.incr("n", 1.5)  # type: ignore[arg-type]


def test_several_at_once(cache: Cache) -> None:
    assert cache.set_many({f"k{n}": n for n in range(10)}) == []
    assert cache.get_many(["k3", "absent", "k1", "k3"]) == {"k3": 3, "k1": 1}
    assert list(cache.get_many(["k3", "k1"])) == ["k3", "k1"]
    assert cache.delete_many(["k1", "k2", "absent"]) == 2
    assert len(cache) == 8
    assert sorted(cache) == sorted(f"k{n}" for n in range(10) if n not in (1, 2))
    assert cache.get_many([]) == {}
    cache.clear()
    assert list(cache) == []


def test_keys_of_a_pattern(cache: Cache) -> None:
    cache.set_many({f"user:{n}:name": n for n in range(1_200)} | {"other": 1})
    assert len(list(cache.keys("user:*"))) == 1_200
    assert cache.delete_pattern("user:1*:name") == 311
    assert len(cache) == 1_201 - 311
    assert cache.delete_pattern("nothing*") == 0


@pytest.mark.parametrize(
    ("key", "error", "match"),
    [
        (5, TypeError, "a key is a str"),
        (b"k", TypeError, "a key is a str"),
        ("x" * 65_537, ValueError, "at most 65,536 bytes"),
        ("\ud800", ValueError, "valid Unicode"),
    ],
)
def test_what_is_no_key_is_refused(
    cache: Cache,
    key: Any,  # noqa: ANN401
    error: type[Exception],
    match: str,
) -> None:
    for call in (cache.get, cache.delete, cache.incr, cache.ttl, lambda k: cache.set(k, 1)):
        with pytest.raises(error, match=match):
            call(key)


@pytest.mark.parametrize("key", ["", "a b\n\x00c", "ключ", "x" * 65_536, "k'; DROP TABLE t"])
def test_any_text_is_a_key(cache: Cache, key: str) -> None:
    cache.set(key, 1)
    assert cache.get(key) == 1
    assert cache.get_many([key]) == {key: 1}
    assert list(cache) == [key]
    assert cache.delete_many([key]) == 1


def test_what_cannot_be_written_leaves_what_was_there(cache: Cache) -> None:
    cache.set("k", 1)
    for value in (object(), {1, 2}, {"a": object()}):
        with pytest.raises(TypeError):
            cache.set("k", value)
    assert cache.get("k") == 1


def test_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="size is at least 1,048,576 bytes"):
        Cache(tmp_path / "cache.db", size=1000)
    with pytest.raises(ValueError, match="needs secret_key"):
        Cache(tmp_path / "cache.db", serializer="pickle")
    with pytest.raises(ValueError, match="serializer is"):
        Cache(tmp_path / "cache.db", serializer="yaml")  # type: ignore[arg-type]
    assert not (tmp_path / "cache.db").exists()


def test_the_file_is_its_owners_alone(cache: Cache, tmp_path: Path) -> None:
    cache.set("k", 1)
    with cache.lock("l"):
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert {"cache.db", "cache.db-used", "cache.db-locks"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def test_whoever_can_write_cannot_run_code(tmp_path: Path) -> None:
    ran = tmp_path / "ran"

    class Runs:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(ran),)

    path = tmp_path / "cache.db"
    with Cache(path, serializer="pickle", secret_key="attacker") as theirs:
        theirs.set("k", Runs())
    with Cache(path, serializer="pickle", secret_key="ours") as cache:
        assert cache.get("k", "miss") == "miss"
    with Cache(path) as cache:
        assert cache.get("k", "miss") == "miss"
    assert not ran.exists()


def test_a_value_of_a_former_key_is_there_as_long_as_that_is_given(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    with Cache(path, secret_key="old") as cache:
        cache.set("k", "v")
    with Cache(path, secret_key=["new", "old"]) as cache:
        assert cache.get("k") == "v"
    with Cache(path, secret_key="new") as cache:
        assert cache.get("k") is None


def test_what_is_mixed_up_is_a_miss(cache: Cache, tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    cache.set_many({"a": "one", "b": "two", "n": 5, "m": 6}, timeout=1000)
    other = "(SELECT value FROM oxlite_cache_entry WHERE key = 'a')"
    table(path, f"UPDATE oxlite_cache_entry SET value = {other} WHERE key = 'b'")
    assert cache.get("b") is None
    table(path, "UPDATE oxlite_cache_entry SET expires_at = expires_at + 5 WHERE key IN ('a', 'n')")
    assert cache.get_many(["a", "n"]) == {}
    table(path, "UPDATE oxlite_cache_entry SET value = 7 WHERE key = 'm'")
    assert cache.get("m") is None
    for value in (None, b"", b"x" * 17, b"x" * 500, 1.5, "text"):
        if value is not None:
            table(path, "UPDATE oxlite_cache_entry SET value = ?", value)
        assert cache.get_many(["a", "b", "n", "m"]) == {}
    assert cache.add("a", 1)
    assert cache.get("a") == 1


def test_a_limit_is_kept_and_what_is_used_stays(tmp_path: Path) -> None:
    size = 2 << 20
    with Cache(tmp_path / "cache.db", size=size) as cache:
        cache.set_many({f"used{n}": n for n in range(50)})
        rnd, most = random.Random(1), 0
        for n in range(6_000):
            cache.set(f"k{n}", rnd.randbytes(rnd.randrange(2_000)))
            if n % 20 == 0:
                cache.get_many([f"used{n}" for n in range(50)])
                most = max(most, cache.stats().used_bytes)
        stats = cache.stats()
        assert most <= 1.05 * size
        assert stats.used_bytes >= 0.8 * size
        assert stats.evictions > 3_000
        assert len(cache.get_many([f"used{n}" for n in range(50)])) >= 48
        assert cache.get("k0") is None


def test_the_least_recently_used_goes_as_in_an_exact_lru(tmp_path: Path) -> None:
    # A Zipf trace, with a scan in its midst, against as many entries kept exactly.
    rnd = random.Random(7)
    weights = [1 / (n + 1) ** 0.9 for n in range(5_000)]
    drawn = [f"k{n}" for n in rnd.choices(range(5_000), weights, k=16_000)]
    keys = drawn[:10_000] + [f"scan{n}" for n in range(1_000)] + drawn[10_000:]
    with Cache(tmp_path / "cache.db", size=1 << 20) as cache:
        hits = 0
        for key in keys:
            if cache.get(key) is None:
                cache.set(key, b"x" * 900)
            else:
                hits += 1
        kept = len(cache)
    exact: OrderedDict[str, None] = OrderedDict()
    exact_hits = 0
    for key in keys:
        if key in exact:
            exact.move_to_end(key)
            exact_hits += 1
        else:
            exact[key] = None
            if len(exact) > kept:
                exact.popitem(last=False)
    assert kept < len(set(keys))
    assert hits >= exact_hits - 0.03 * len(keys)


def test_a_cache_without_a_limit_evicts_nothing(tmp_path: Path) -> None:
    with Cache(tmp_path / "cache.db", size=None) as cache:
        for n in range(3_000):
            cache.set(f"k{n}", b"x" * 1_000)
        assert len(cache) == 3_000


def test_a_value_that_is_too_large_is_not_kept(cache: Cache) -> None:
    cache.set("k", "before")
    assert not cache.set("k", os.urandom(2 << 20))
    assert cache.get("k") is None
    assert cache.set_many({"k": os.urandom(2 << 20), "l": 1}) == ["k"]
    assert cache.get_many(["k", "l"]) == {"l": 1}
    assert cache.stats().failures >= 1


def test_what_has_expired_is_pruned(cache: Cache, tmp_path: Path) -> None:
    cache.set_many({f"k{n}": n for n in range(1_200)}, timeout=0.01)
    cache.set("stays", 1)
    time.sleep(0.02)
    assert cache.prune() == 1_200
    assert table(tmp_path / "cache.db", "SELECT count(*) FROM oxlite_cache_entry") == [(1,)]


def test_one_computes_and_the_others_wait(tmp_path: Path) -> None:
    path, computed = tmp_path / "cache.db", tmp_path / "computed"
    computed.mkdir()
    script = f"""
import os, threading, time
from oxlite.cache import Cache
cache = Cache({str(path)!r})
def compute():
    os.mkdir({str(computed)!r} + f"/{{os.getpid()}}-{{threading.get_ident()}}")
    time.sleep(0.3)
    return "value"
def ask():
    assert cache.get_or_set("k", compute, 60) == "value"
threads = [threading.Thread(target=ask) for _ in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    running = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(3)]
    assert [process.wait(30) for process in running] == [0, 0, 0]
    assert len(list(computed.iterdir())) == 1


def test_whoever_may_is_given_what_has_expired(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.db")
    cache.set("k", "old", timeout=0.01)
    time.sleep(0.02)
    began, go_on = threading.Event(), threading.Event()

    def compute() -> str:
        began.set()
        go_on.wait(10)
        return "new"

    thread = threading.Thread(target=lambda: cache.get_or_set("k", compute, 60, stale_for=100))
    thread.start()
    assert began.wait(10)
    assert cache.get_or_set("k", lambda: "other", stale_for=100) == "old"
    go_on.set()
    thread.join()
    assert cache.get("k") == "new"


def test_whoever_computes_may_ask_for_what_he_computes(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.db")
    assert cache.get_or_set("k", lambda: cache.get_or_set("k", lambda: 5)) == 5

    def fails() -> None:
        raise RuntimeError("no value")

    with pytest.raises(RuntimeError, match="no value"):
        cache.get_or_set("l", fails)
    assert cache.get_or_set("l", "not a function") == "not a function"


def test_two_that_compute_for_each_other_do_not_wait_for_ever(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.db")
    both = threading.Barrier(2)
    found: dict[str, Any] = {}

    def compute(mine: str, other: str) -> str:
        both.wait(10)
        return mine + str(cache.get_or_set(other, lambda: other))

    def ask(mine: str, other: str) -> None:
        found[mine] = cache.get_or_set(mine, lambda: compute(mine, other))

    threads = [threading.Thread(target=ask, args=pair) for pair in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert {key[0] for key in found.values()} == {"a", "b"}


def test_a_function_is_remembered(cache: Cache) -> None:
    calls: list[Any] = []

    @cache.memoize(timeout=60)
    def add(one: int, other: int = 0) -> int:
        """Adds."""
        calls.append((one, other))
        return one + other

    assert [add(1, 2), add(1, 2), add(1, other=2), add(2)] == [3, 3, 3, 2]
    assert calls == [(1, 2), (1, 2), (2, 0)]
    assert add.__doc__ == "Adds."


def test_a_lock_ends_with_its_holder(cache: Cache, tmp_path: Path) -> None:
    script = f"""
from oxlite.cache import Cache
import sys, time
with Cache({str(tmp_path / "cache.db")!r}).lock("l"):
    print("held", flush=True)
    time.sleep(60)
"""
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(TimeoutError, match=r"not free within 0\.1 s"), cache.lock("l", timeout=0.1):
        pass
    with cache.lock("another", timeout=0.1):
        pass
    holder.kill()
    holder.wait()
    with cache.lock("l", timeout=10) as lock, pytest.raises(RuntimeError, match="held already"):
        lock.acquire()
    holder.stdout.close()


def test_processes_add_exactly(cache: Cache, tmp_path: Path) -> None:
    script = f"""
from oxlite.cache import Cache
cache = Cache({str(tmp_path / "cache.db")!r}, size=4 << 20)
won = sum(cache.add(f"add{{n}}", 1) for n in range(300))
for n in range(300): cache.incr("n")
print(won)
"""
    cache.set("n", 0)
    running = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) for _ in range(4)
    ]
    won = [int(process.communicate(timeout=60)[0]) for process in running]
    assert sum(won) == 300
    assert cache.get("n") == 1_200


@pytest.mark.parametrize("how", ["deleted", "replaced", "dropped", "overwritten", "no database"])
def test_whatever_becomes_of_the_file_the_cache_goes_on(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oxlite.cache.cache.LOOK_SECONDS", 0.0)
    monkeypatch.setattr("oxlite.cache.cache.LOOK_TO_WRITE_SECONDS", 0.0)
    path = tmp_path / "cache.db"
    with Cache(path) as cache, Cache(path) as other:
        cache.set_many({f"k{n}": "x" * 500 for n in range(200)})
        if how in ("deleted", "replaced"):
            for suffix in ("", "-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)
            if how == "replaced":
                with Cache(tmp_path / "another.db"):
                    pass
                (tmp_path / "another.db").rename(path)
        elif how == "dropped":
            table(path, "DROP TABLE oxlite_cache_entry")
        else:
            table(path, "PRAGMA wal_checkpoint(TRUNCATE)")
            with path.open("r+b") as file:
                file.write(b"\x00" * 100 if how == "no database" else b"")
                file.seek(4096)
                file.write(os.urandom(8 * 4096))
        for one in (cache, other, cache):
            for n in range(3):
                found = one.get(f"k{n}")
                assert found is None or found == "x" * 500
                one.set(f"l{n}", n)
        assert cache.set("k", 1)
        assert other.get("k") == 1
        assert other.get_many(["k", "k0"])["k"] == 1


def test_a_file_that_is_locked_is_a_miss(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    with Cache(path, lock_timeout=0.05) as cache:
        cache.set("k", 1)
        cache.set("n", 1)
        other = stdlib.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert cache.get("k") == 1
        assert not cache.set("k", 2)
        # It is not what it should be, so it is not there.
        assert cache.get("k") is None
        assert not cache.add("l", 2)
        assert cache.set_many({"m": 1}) == ["m"]
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            cache.incr("n")
        assert cache.stats().failures >= 3
        other.execute("ROLLBACK")
        other.close()
        assert cache.set("k", 3)
        assert cache.get("k") == 3


def test_a_forked_child_uses_it(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.db")
    cache.set("k", 1)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if cache.get("k") == 1 and cache.incr("k") == 2:
                code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    assert cache.get("k") == 2


def test_statistics(cache: Cache) -> None:
    cache.set("k", 1)
    cache.get("k")
    cache.get_many(["k", "l"])
    cache.get("m")
    stats = cache.stats()
    assert (stats.entries, stats.hits, stats.misses) == (1, 2, 2)
    assert 0 < stats.used_bytes < stats.size_bytes == 4 << 20


def test_any_program_can_look_at_it(cache: Cache, tmp_path: Path) -> None:
    cache.set("k", {"a": 1})
    [(key, kind)] = table(
        tmp_path / "cache.db", "SELECT key, substr(value, 18) FROM oxlite_cache_entry"
    )
    assert (key, json.loads(kind)) == ("k", {"a": 1})


def test_threads_share_it(cache: Cache) -> None:
    errors: list[BaseException] = []

    def work(call: Callable[[int], object]) -> None:
        try:
            for n in range(300):
                call(n)
        except BaseException as error:
            errors.append(error)

    cache.set("n", 0)
    calls: list[Callable[[int], object]] = [
        lambda n: cache.set(f"k{n % 7}", n),
        lambda n: cache.get(f"k{n % 7}"),
        lambda n: cache.incr("n"),
        lambda n: cache.touch(f"k{n % 7}", 100),
        lambda n: cache.delete(f"k{n % 7}"),
    ]
    threads = [threading.Thread(target=work, args=(call,)) for call in calls * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert cache.get("n") == 600
