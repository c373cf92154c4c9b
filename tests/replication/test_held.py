"""What a place holds, and whether a restore reaches its end: as Litestream itself decides it."""

import json
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.operations.databases import filled
from tests.replication.conftest import add
from tests.wait import until

from oxlite.replication import Held, Litestream, held, store_of
from oxlite.replication.replica import Span

File = tuple[int, int, int]
"""Its level, its first and its last transaction."""


def listed(directory: Path, files: Sequence[File]) -> Held:
    """What is found where Litestream lists these files."""
    said = [
        {
            "level": level,
            "min_txid": f"{first:016x}",
            "max_txid": f"{last:016x}",
            "size": 100,
            "timestamp": "2026-01-01T00:00:00Z",
        }
        for level, first, last in files
    ]
    path = directory / "litestream"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(said)}\nEND\n")
    path.chmod(0o755)
    found = held(Litestream(str(path), (9, 9, 9)), store_of(str(directory / "s")))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("files", "gap"),
    [
        ([(0, 1, 1)], None),
        ([(0, 1, 1), (0, 2, 2), (0, 3, 3)], None),
        ([(0, 1, 1), (0, 3, 3)], 2),
        ([(0, 1, 1), (0, 2, 2), (0, 5, 5), (0, 9, 9)], 3),
        ([(0, 2, 2), (0, 3, 3)], 1),
        # A whole copy, and what came after it; what it replaces is deleted.
        ([(0, 7, 7), (0, 8, 8), (9, 1, 6)], None),
        ([(0, 8, 8), (9, 1, 6)], 7),
        ([(9, 1, 6)], None),
        ([(9, 1, 16), (0, 255, 255), (0, 17, 17)], 18),
        # Files that overlap, of several levels.
        ([(0, 6, 6), (0, 7, 7), (1, 1, 4), (1, 4, 6), (2, 1, 3)], None),
        ([(0, 9, 9), (1, 5, 8), (2, 1, 5), (9, 1, 2)], None),
        ([(0, 9, 9), (1, 6, 8), (2, 1, 4), (9, 1, 2)], 5),
        ([(1, 1, 9), (2, 1, 3), (0, 10, 10)], None),
        # An older whole copy from which a longer way leads: it is not taken, nor needed.
        ([(9, 1, 3), (0, 4, 4), (0, 5, 5), (0, 6, 6), (0, 8, 8), (9, 1, 5)], 7),
        ([(9, 1, 3), (1, 4, 8), (9, 1, 7)], None),
    ],
)
def test_a_gap_is_found_where_a_restore_ends(
    tmp_path: Path, files: list[File], gap: int | None
) -> None:
    random.Random(1).shuffle(files)
    found = listed(tmp_path, files)
    assert found.gap == gap
    assert found.spans == tuple(sorted(Span(*one) for one in files))


def begin(
    litestream: Litestream, database: Path, store: Path, **more: object
) -> "subprocess.Popen[bytes]":
    """Litestream itself, which puts files together as is said."""
    path = database.with_name("litestream.yml")
    document = {
        "dbs": [
            {
                "path": str(database),
                "monitor-interval": "100ms",
                "replica": {"url": f"file://{store}", "sync-interval": "100ms"},
            }
        ],
        **more,
    }
    path.write_text(json.dumps(document))
    return subprocess.Popen(
        [litestream.path, "replicate", "-config", path],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextmanager
def frozen(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """While it does nothing: after an error it looks at its store again, and mends it."""
    time.sleep(0.5)  # what it has sent last is there before it has done with it
    process.send_signal(signal.SIGSTOP)
    yield
    process.send_signal(signal.SIGCONT)


def end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    process.wait(60)


def files_of(store: Path, level: str = "0") -> list[Path]:
    return sorted(store.glob(f"ltx/{level}/*.ltx"))


def commit(database: Path, store: Path, count: int) -> None:
    """Commit so often, each sent by itself."""
    for _ in range(count):
        last = files_of(store)[-1:]
        add(database, time.monotonic_ns())
        until(lambda last=last: files_of(store)[-1:] != last)


def settle(database: Path, store: Path) -> None:
    """Wait until it has put a whole copy there, as it does soon after it has begun."""
    until(lambda: files_of(store))
    commit(database, store, 1)
    until(lambda: files_of(store, "9"))


def restores(litestream: Litestream, store: Path, copy: Path) -> bool:
    done = subprocess.run(
        [litestream.path, "restore", "-o", copy, f"file://{store}"], capture_output=True
    )
    for path in copy.parent.glob(f"{copy.name}*"):
        path.unlink()
    return done.returncode == 0


_RARELY = {"levels": [{"interval": "24h"}]}


def test_files_that_are_missing_are_seen(litestream: Litestream, tmp_path: Path) -> None:
    database, store = filled(tmp_path / "app.db", 10), tmp_path / "store"
    process = begin(litestream, database, store, **_RARELY)
    try:
        settle(database, store)
        commit(database, store, 5)
    finally:
        end(process)
    place = store_of(str(store))
    found = held(litestream, place)
    assert found is not None
    assert found.gap is None
    assert restores(litestream, store, tmp_path / "copy")
    last = found.last_transaction
    for number in (last - 2, last - 1):
        for path in store.glob(f"ltx/*/*-{number:016x}.ltx"):
            path.unlink()
    found = held(litestream, place)
    assert found is not None
    assert found.gap == last - 2
    assert not restores(litestream, store, tmp_path / "copy")


def test_a_store_that_is_set_back_is_seen(litestream: Litestream, tmp_path: Path) -> None:
    """As it was some transactions ago; Litestream goes on after its last one, and says nothing."""
    database, store = filled(tmp_path / "app.db", 10), tmp_path / "store"
    process = begin(litestream, database, store, **_RARELY)
    try:
        settle(database, store)
        commit(database, store, 2)
        shutil.copytree(store, tmp_path / "then")
        last = len(files_of(tmp_path / "then"))
        commit(database, store, 2)
        with frozen(process):
            store.rename(tmp_path / "later")
            (tmp_path / "then").rename(store)
        commit(database, store, 1)
        found = held(litestream, store_of(str(store)))
        assert found is not None
        assert found.gap == last + 1
        # And one that is deleted: what comes then begins with no first transaction.
        with frozen(process):
            store.rename(tmp_path / "deleted")
        add(database, 2000)
        until(lambda: files_of(store))
        found = held(litestream, store_of(str(store)))
        assert found is not None
        assert found.gap == 1
    finally:
        end(process)


def test_it_is_whole_if_and_only_if_litestream_restores_it(
    litestream: Litestream, tmp_path: Path
) -> None:
    """With whole copies and files that were put together, and any of them missing."""
    database, store = filled(tmp_path / "app.db", 10), tmp_path / "store"
    process = begin(
        litestream,
        database,
        store,
        levels=[{"interval": "1s"}, {"interval": "3s"}],
        snapshot={"interval": "2s", "retention": "24h"},
    )
    try:
        until(lambda: files_of(store))
        for number in range(400):
            add(database, 1000 + number)
            if all(len(files_of(store, level)) > 1 for level in ("1", "2", "9")):
                break
            time.sleep(0.1)
    finally:
        end(process)
    place = store_of(str(store))
    found = held(litestream, place)
    assert found is not None
    assert {0, 1, 9} <= {span.level for span in found.spans}
    assert found.gap is None
    chance = random.Random(7)
    seen = set()
    for turn in range(24):
        changed = tmp_path / f"changed-{turn}"
        shutil.copytree(store, changed)
        gone = chance.choice(([], ["9"], ["9", "2"], ["9", "2", "1"], ["2", "1"]))
        for path in [one for level in gone for one in files_of(changed, level)]:
            path.unlink()
        every = files_of(changed, "*")
        for path in chance.sample(every, chance.randint(0, 2 + len(every) // 8)):
            with suppress(FileNotFoundError):
                path.unlink()
        if (found := held(litestream, store_of(str(changed)))) is None:
            continue
        seen.add(found.gap is None)
        assert (found.gap is None) == restores(litestream, changed, tmp_path / "copy"), found.spans
    assert seen == {True, False}
