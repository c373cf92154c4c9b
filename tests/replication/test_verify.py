"""``oxlite replicate verify`` finds damage of each kind, made on purpose, and nothing else."""

import errno
import json
import os
import re
import shutil
import signal
import sqlite3 as stdlib
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.operations.databases import filled
from tests.replication.conftest import S3, Run, Start, add
from tests.wait import until

import oxlite
from oxlite import operations, sqlite3
from oxlite.replication import (
    Litestream,
    NotProved,
    StoreUnreachable,
    proof,
    prove,
    read_state,
    store_of,
)

Damage = Callable[[Path], None]


def newest(store: Path, level: str = "0") -> Path:
    return sorted(store.glob(f"ltx/{level}/*.ltx"))[-1]


def of_all_levels(store: Path, number: int) -> list[Path]:
    return list(store.glob(f"ltx/*/*{number:016x}.ltx"))


def every_file(change: Callable[[Path], object]) -> Damage:
    def do(store: Path) -> None:
        for path in store.glob("ltx/*/*.ltx"):
            change(path)

    return do


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip(at: float) -> Callable[[Path], None]:
    def do(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[min(int(len(content) * at), len(content) - 1)] ^= 0x55
        path.write_bytes(content)

    return do


def one(change: Callable[[Path], object]) -> Damage:
    return lambda store: [change(path) for path in of_all_levels(store, 1)] and None


def swap(store: Path) -> None:
    """Two files have each other's names."""
    first, second = sorted(store.glob("ltx/0/*.ltx"))[1:3]
    other = first.with_name("other")
    first.rename(other)
    second.rename(first)
    other.rename(second)


def gap(store: Path) -> None:
    for path in of_all_levels(store, 2):
        path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


DAMAGES: dict[str, Damage] = {
    "all is gone": lambda store: shutil.rmtree(store / "ltx"),
    "every file is cut": every_file(cut),
    "every file is empty": every_file(empty),
    "every file is zeros": every_file(zeros),
    "a bit of the beginning": every_file(flip(0)),
    "a bit of the header": every_file(lambda path: flip(30 / path.stat().st_size)(path)),
    "a bit of a page": every_file(flip(0.5)),
    "a bit of the end": every_file(flip(1)),
    "the first file is cut": one(cut),
    "the first file is gone": one(Path.unlink),
    "a file in the midst is gone": gap,
    "two files are swapped": swap,
    "the newest is gone": lambda store: newest(store).unlink(),
    "another name": lambda store: newest(store).rename(newest(store).with_suffix(".old")),
}


@pytest.fixture(scope="module")
def replicated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a database and its replica of several transactions; nobody is at it."""
    from oxlite.replication import find_litestream

    directory = tmp_path_factory.mktemp("replicated")
    database = filled(directory / "app.db", 200)
    program = find_litestream().path
    process = subprocess.Popen(
        [program, "replicate", str(database), f"file://{directory}/store"],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    for number in range(4):
        until(lambda n=number: len(list(directory.glob("store/ltx/0/*.ltx"))) > n)
        add(database, 1000 + number)
    until(lambda: len(list(directory.glob("store/ltx/0/*.ltx"))) > 4)
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    # What Litestream has put together of them would stand in for one that is damaged.
    for path in directory.glob("store/ltx/*"):
        if path.name != "0":
            shutil.rmtree(path)
    return directory


_ONLY_OLDER = {"the newest is gone", "another name"}


@pytest.mark.parametrize("kind", DAMAGES)
def test_each_damage_is_found(replicated: Path, tmp_path: Path, run: Run, kind: str) -> None:
    """Nobody sends: what is not proved by this is proved by nothing."""
    shutil.copytree(replicated, tmp_path / "it")
    database, store = tmp_path / "it" / "app.db", tmp_path / "it" / "store"
    DAMAGES[kind](store)
    done = run("replicate", "verify", database, store, "--within", "0")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("Not proved: ")
    if kind not in _ONLY_OLDER:
        assert re.search("does not restore|is damaged|holds no replica", done.stdout), done.stdout
    restored = run("restore", "--from", store, tmp_path / "copy.db")
    if restored.returncode == 0:  # an older state, and whole
        with closing(stdlib.connect(tmp_path / "copy.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    else:
        assert not (tmp_path / "copy.db").exists()


def test_a_row_that_is_missing_in_the_midst_is_found(
    database: Path, tmp_path: Path, start: Start, run: Run
) -> None:
    """As where the WAL was begun anew before it was read: the replica is whole by other checks."""
    (tmp_path / "s").mkdir()
    replicator = start(database, "--to", tmp_path / "s" / "app")
    done = run("replicate", "verify", database, "--json")
    assert json.loads(done.stdout)["every_row_compared"], done.stdout
    replicator.end()
    # The database is changed where nobody looks: the replica lacks it, and has all tokens.
    changed = tmp_path / "changed.db"
    with (
        closing(stdlib.connect(database)) as connection,
        closing(stdlib.connect(changed)) as other,
    ):
        connection.backup(other)
        other.execute("UPDATE t SET filling = zeroblob(199) WHERE x = 50")
        other.commit()
    with (
        closing(oxlite.connect(changed, isolation_level=None)) as connection,
        pytest.raises(NotProved, match="t has other rows than in the database"),
    ):
        proof.compare_rows(
            connection,
            connection.execute("PRAGMA data_version").fetchone()[0],
            database,
            store_of(str(tmp_path)),
            operations.verification.contents(connection),
        )


def test_the_replica_of_another_database_is_found(
    replicated: Path, tmp_path: Path, start: Start, run: Run
) -> None:
    (tmp_path / "s").mkdir()
    other = filled(tmp_path / "other.db", 3)
    start(other, "--to", tmp_path / "s" / "other")
    assert run("replicate", "verify", other).returncode == 0
    shutil.copy(replicated / "app.db", tmp_path / "app.db")
    done = run("replicate", "verify", tmp_path / "app.db", tmp_path / "s" / "other", "--within=0")
    assert done.returncode == 1
    assert "another database's" in done.stdout


def test_what_is_behind_is_found_and_said(replicated: Path, tmp_path: Path, run: Run) -> None:
    shutil.copytree(replicated, tmp_path / "it")
    done = run(
        "replicate", "verify", tmp_path / "it/app.db", tmp_path / "it/store", "--within=0", "--json"
    )
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert said["proved"] is False
    assert "never had what is written to prove it" in said["why"]


def test_what_cannot_be_found_out_is_neither(
    database: Path, tmp_path: Path, s3: S3, keys: Path, run: Run
) -> None:
    for where in (tmp_path / "no" / "directory", s3.url("x", "missing")):
        done = run("replicate", "verify", database, where, "--credentials", keys)
        assert done.returncode == 2, done.stdout
    done = run("replicate", "verify", database)
    assert done.returncode == 2
    assert "has not been replicated from here" in done.stderr
    done = run("replicate", "verify", tmp_path / "none.db", tmp_path)
    assert done.returncode == 2
    assert "there is no database" in done.stderr


def test_a_schedule_ends_with_the_first_failure(
    database: Path, tmp_path: Path, start: Start
) -> None:
    (tmp_path / "s").mkdir()
    replicator = start(database, "--to", tmp_path / "s" / "app")
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "oxlite.cli",
            "replicate",
            "verify",
            str(database),
            "--every",
            "0.001",
            "--within",
            "5",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("Proved: ")
        replicator.end()
        shutil.rmtree(tmp_path / "s" / "app" / "ltx")
        assert process.stdout.readline().startswith("Not proved: ")
        assert process.wait(60) == 1
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("ends", [True, False])
def test_a_schema_that_is_changed_meanwhile_is_no_damage(
    database: Path, store: Path, start: Start, litestream: Litestream, ends: bool
) -> None:
    """The copy has a table that was made after the token, and dropped before anybody looked."""
    replicator = start(database, "--to", store)
    frozen: list[int] = []
    tries = 0

    def run_sql(sql: str) -> None:
        with closing(oxlite.connect(database, isolation_level=None)) as connection:
            connection.execute(sql)

    def migrate(what: str, _done: int, _of: int) -> None:
        nonlocal tries
        tries += what == "writing"
        if what == "sending" and (tries == 1 or not ends):
            run_sql(f"CREATE TABLE made_{tries} (x)")
            made = time.time()
            until(lambda: (state := read_state(database)) and (state.sent_at or 0) > made)
            frozen.append(replicator.litestream())
            os.kill(frozen[-1], signal.SIGSTOP)
            run_sql(f"DROP TABLE made_{tries}")
        if what == "verifying" and frozen:
            os.kill(frozen.pop(), signal.SIGCONT)

    if ends:
        assert prove(litestream, database, stage=migrate).contents.rows["t"] == 100
        assert tries == 2
    else:
        with pytest.raises(proof.Undecided, match=r"could not be decided: that of .* in each of 5"):
            prove(litestream, database, stage=migrate)


def test_another_schema_is_found(
    database: Path, store: Path, tmp_path: Path, start: Start, litestream: Litestream
) -> None:
    """Also while others write rows."""
    start(database, "--to", store)

    def damage(what: str, _done: int, _of: int) -> None:
        if what == "verifying":
            add(database, 1000)
            [copy] = (tmp_path / "scratch").glob("*/restored")
            with closing(stdlib.connect(copy)) as connection:
                connection.execute("CREATE TABLE alien (x)")

    (tmp_path / "scratch").mkdir()
    with pytest.raises(NotProved, match="has another schema: table alien"):
        prove(litestream, database, scratch=tmp_path / "scratch", stage=damage)


def test_what_sqlite_takes_for_text_is_compared_byte_by_byte(
    database: Path, store: Path, tmp_path: Path, start: Start, run: Run
) -> None:
    with closing(stdlib.connect(database)) as connection:
        connection.execute("CREATE TABLE odd (x)")
        connection.execute("INSERT INTO odd VALUES (CAST(x'ff00fe' AS TEXT)), (x'ff00fe')")
        connection.commit()
    start(database, "--to", store)
    done = run("replicate", "verify", database, "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    assert json.loads(done.stdout)["every_row_compared"]
    other = tmp_path / "other.db"
    with (
        closing(stdlib.connect(database)) as connection,
        closing(stdlib.connect(other)) as changed,
    ):
        connection.backup(changed)
        changed.execute("UPDATE odd SET x = CAST(x AS BLOB)")
        changed.commit()
    with closing(oxlite.connect(other, isolation_level=None)) as opened:
        version = opened.execute("PRAGMA data_version").fetchone()[0]
        before = operations.verification.contents(opened)
        with pytest.raises(NotProved, match="odd has other rows"):
            proof.compare_rows(opened, version, database, store_of(str(tmp_path)), before)


def test_a_table_that_only_the_application_can_read_is_left_out(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    with closing(stdlib.connect(database)) as connection:
        connection.create_function("twice", 1, lambda x: 2 * x, deterministic=True)
        connection.execute("CREATE TABLE made (x, y GENERATED ALWAYS AS (twice(x)))")
        connection.execute("INSERT INTO made VALUES (1)")
        connection.commit()
    start(database, "--to", store)
    done = run("replicate", "verify", database, "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    assert not json.loads(done.stdout)["every_row_compared"]


def test_what_is_found_later_than_allowed_is_too_far_behind(
    database: Path, store: Path, start: Start, litestream: Litestream
) -> None:
    start(database, "--to", store)

    def wait(what: str, _done: int, _of: int) -> None:
        if what == "restoring":
            time.sleep(1.5)

    with pytest.raises(NotProved, match=r"only after [1-9][0-9.]* s, and 1 s are allowed"):
        prove(litestream, database, seconds=1, stage=wait)


def test_waiting_until_it_is_sent_is_a_part_of_the_time(
    database: Path, store: Path, start: Start, litestream: Litestream
) -> None:
    replicator = start(database, "--to", store)
    said = []
    frozen = [replicator.process.pid, replicator.litestream()]
    for one in frozen:
        os.kill(one, signal.SIGSTOP)
    try:
        with pytest.raises(NotProved, match="never had what is written"):
            prove(litestream, database, seconds=2, stage=lambda what, *_: said.append(what))
    finally:
        for one in frozen:
            os.kill(one, signal.SIGCONT)
    assert said.count("restoring") == 1


def test_a_full_scratch_directory_is_no_damage(
    database: Path, store: Path, tmp_path: Path, start: Start, litestream: Litestream
) -> None:
    start(database, "--to", store)
    script = tmp_path / "litestream"
    script.write_text(
        f'#!/bin/sh\n[ "$1" = restore ] || exec {litestream.path} "$@"\n'
        "echo 'write /tmp/x: no space left on device' >&2; exit 1\n"
    )
    script.chmod(0o755)
    with pytest.raises(OSError, match="No space left") as caught:
        prove(Litestream(str(script), litestream.version), database)
    assert caught.value.errno == errno.ENOSPC


def test_a_schedule_goes_on_while_nothing_can_be_found_out(
    database: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        closing(sqlite3.connect(database, isolation_level=None)) as writer,
        closing(oxlite.connect(database, timeout=0.01)) as other,
    ):
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError) as locked:
            other.execute("BEGIN IMMEDIATE")
    slept: list[float] = []
    sleep = time.sleep
    # Other threads, of the progress that is shown, sleep for less.
    monkeypatch.setattr(
        time, "sleep", lambda seconds: slept.append(seconds) if seconds > 1 else sleep(seconds)
    )
    passing: list[Exception] = [
        StoreUnreachable("no answer"),
        locked.value,
        proof.Undecided("a migration"),
        OSError(errno.ENOSPC, "no room"),
    ]
    for error in passing:
        failures = [error, NotProved("it is damaged")]

        def fail(*_arguments: object, **_more: object) -> None:
            raise failures.pop(0)  # noqa: B023 - used in this turn alone

        monkeypatch.setattr("oxlite.replication.prove", fail)
        done = run("replicate", "verify", database, "--every", "0.001")
        assert done.returncode == 1, done.stderr
        assert done.stdout == "Not proved: it is damaged\n"
        assert f"Not proved yet: {error}" in done.stderr
        assert failures == []
        assert slept == [3.6]
        slept.clear()
        failures = [error]
        assert run("replicate", "verify", database).returncode == 2
    for error in (sqlite3.OperationalError("no such table"), FileNotFoundError(2, "none")):
        failures = [error]
        assert run("replicate", "verify", database, "--every", "0.001").returncode == 2


def test_a_schedule_outlasts_a_store_that_is_away(
    database: Path, store: Path, start: Start, tmp_path: Path
) -> None:
    replicator = start(database, "--to", store)
    replicator.end()
    store.parent.rename(tmp_path / "away")
    words = ["replicate", "verify", str(database), "--every", "0.001", "--within", "1"]
    with subprocess.Popen(
        [sys.executable, "-m", "oxlite.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            assert "Not proved yet: there is no directory" in process.stderr.readline()
            (tmp_path / "away").rename(store.parent)
            assert process.wait(60) == 1  # nobody sends: it is found too far behind
        finally:
            process.kill()
