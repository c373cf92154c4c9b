"""``oxlite replicate verify`` finds damage of each kind, made on purpose."""

import json
import os
import re
import shutil
import signal
import sqlite3 as stdlib
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.operations.databases import filled
from tests.replication.conftest import S3, Run, Start, add

import oxlite
from oxlite import operations

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
    from tests.wait import until

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
    from oxlite.replication import NotProved, proof, store_of

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
            "1",
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


def test_a_schema_that_changes_meanwhile_is_no_other_one(
    database: Path, tmp_path: Path, start: Start, run: Run
) -> None:
    (tmp_path / "s").mkdir()
    start(database, "--to", tmp_path / "s" / "app")
    is_over = threading.Event()

    def migrate() -> None:
        with closing(oxlite.connect(database, isolation_level=None)) as connection:
            while not is_over.is_set():
                connection.execute("CREATE TABLE scratch (a)")
                connection.execute("DROP TABLE scratch")

    migrating = threading.Thread(target=migrate)
    migrating.start()
    try:
        for _ in range(3):
            done = run("replicate", "verify", database)
            assert done.returncode == 0, done.stdout + done.stderr
    finally:
        is_over.set()
        migrating.join()


def test_what_only_the_application_can_read_is_proved_as_far_as_can_be(
    database: Path, tmp_path: Path, start: Start, run: Run
) -> None:
    with closing(stdlib.connect(database)) as connection:
        connection.create_function("own", 1, str, deterministic=True)
        connection.execute("CREATE TABLE made (a, b AS (own(a)))")
        connection.execute("INSERT INTO made VALUES (1)")
        connection.execute("CREATE TABLE bytes (a)")
        connection.execute("INSERT INTO bytes VALUES (CAST(x'ff41' AS TEXT))")
        connection.commit()
    (tmp_path / "s").mkdir()
    start(database, "--to", tmp_path / "s" / "app")
    done = run("replicate", "verify", database, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["every_row_compared"] is False
