"""Many writers at once, some killed, some stopped, some who know of no queue.

No acknowledged write is lost, and nobody who stands in line fails. What is random follows
from the seed.
"""

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.process.actors import locked, rows
from tests.wait import until

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes stand in line on Linux alone"
)

# Nobody stops for longer than some tenths of a second; a writer that waits for this long hangs.
LONGEST_WAIT = 50

# Each writer writes rows "name number" and, after each, a byte into the file of its name.
_WRITERS = """
import os, random, sys, threading, time, traceback
path, folder, name, driver, writes, threads, forks, seed = sys.argv[1:]
writes, threads, forks = int(writes), int(threads), int(forks)

def write(name, driver, choose):
    acknowledged = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    connection = connect(driver)
    for number in range(writes):
        row = f"{name} {number}"
        while True:
            try:
                write_one(connection, row, choose.random())
                break
            except Exception as error:
                # Who knows of no queue and does not wait tries again by himself.
                if driver != "impatient" or "locked" not in str(error):
                    raise
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                time.sleep(0.0005)
        os.write(acknowledged, b".")
        if driver != "oxlite" and number % 10 == 0:
            mode = choose.choice(["PASSIVE", "RESTART", "TRUNCATE"])
            try:
                connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
            except Exception as error:
                if "locked" not in str(error):
                    raise
    connection.close()

if driver == "oxlite":
    import oxlite
else:
    import sqlite3

def connect(driver):
    if driver == "oxlite":
        return oxlite.connect(path, isolation_level=None, timeout=TIMEOUT)
    timeout = {"patient": TIMEOUT, "impatient": 0}[driver]
    return sqlite3.connect(path, isolation_level=None, timeout=timeout)

def write_one(connection, row, way):
    if way < 0.6:
        connection.execute("INSERT INTO t VALUES (?)", (row,))
    elif way < 0.9:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (?)", (row,))
        if way > 0.85:
            time.sleep(0.005)
        connection.execute("COMMIT")
    else:
        connection.execute("INSERT INTO t VALUES (?) RETURNING x", (row,)).fetchall()

def guarded(*arguments):
    try:
        write(*arguments)
    except BaseException:
        traceback.print_exc()
        os._exit(1)

def main(name, forks):
    workers = [
        threading.Thread(target=guarded, args=(f"{name}.{n}", driver, random.Random(seed + name)))
        for n in range(threads)
    ]
    for worker in workers:
        worker.start()
    children = []
    for fork in range(forks):
        time.sleep(0.02)
        child = os.fork()
        if child == 0:
            main(f"{name}-{fork}", 0)
            os._exit(0)
        children.append(child)
    for worker in workers:
        worker.join()
    statuses = [os.waitpid(child, 0)[1] for child in children]
    if any(statuses):
        os._exit(1)

while not os.path.exists(f"{folder}/../go"):
    time.sleep(0.001)
main(name, forks)
"""


@dataclass
class Crowd:
    """Writers of one database."""

    path: Path
    folder: Path
    seed: int

    def start(
        self, name: str, driver: str = "oxlite", writes: int = 400, threads: int = 1, forks: int = 0
    ) -> subprocess.Popen[bytes]:
        script = _WRITERS.replace("TIMEOUT", str(LONGEST_WAIT))
        rest = [self.path, self.folder, name, driver, writes, threads, forks, self.seed]
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", script, *map(str, rest)],
            start_new_session=True,
        )

    def go(self) -> None:
        """Has all begin at once, when they have been started."""
        time.sleep(0.3)
        (self.folder.parent / "go").touch()

    def check(self, killed: set[str]) -> None:
        """Each writer's rows are those it was told of; one that was killed may have one more."""
        found: dict[str, int] = {}
        for row in rows(self.path):
            name, number = str(row).split()
            assert int(number) == found.get(name, 0), f"{row}: not the next one"
            found[name] = int(number) + 1
        for file in self.folder.iterdir():
            acknowledged = file.stat().st_size
            written = found.pop(file.name, 0)
            is_killed = file.name.partition(".")[0].partition("-")[0] in killed
            assert written - acknowledged in ({0, 1} if is_killed else {0}), file.name
        assert found == {}
        until(lambda: not locked(self.path))


def end(process: subprocess.Popen[bytes]) -> None:
    """Kills a process and those it has forked: the group is its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def crowd(path: Path, tmp_path: Path, seed: int) -> Crowd:
    folder = tmp_path / "acknowledged"
    folder.mkdir()
    return Crowd(path, folder, seed)


def test_half_of_the_writers_know_of_no_queue(crowd: Crowd) -> None:
    drivers = ["oxlite"] * 6 + ["patient"] * 3 + ["impatient"] * 3
    processes = [crowd.start(f"{n}", driver) for n, driver in enumerate(drivers)]
    try:
        crowd.go()
        assert [process.wait(LONGEST_WAIT) for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            end(process)
    crowd.check(killed=set())


def test_threads_processes_and_forks_with_kills_and_stops(crowd: Crowd) -> None:
    choose = random.Random(crowd.seed)
    processes = {
        f"{n}": crowd.start(f"{n}", writes=400, threads=choose.choice([1, 3]), forks=n % 3)
        for n in range(8)
    }
    processes["outsider"] = crowd.start("outsider", "patient")
    killed = set()
    try:
        crowd.go()
        for _ in range(16):
            name = choose.choice(sorted(processes))
            process = processes[name]
            time.sleep(choose.random() / 20)
            with contextlib.suppress(ProcessLookupError):
                if choose.random() < 0.4 and name not in killed and len(killed) < 5:
                    os.killpg(process.pid, signal.SIGKILL)
                    killed.add(name)
                else:
                    os.killpg(process.pid, signal.SIGSTOP)
                    time.sleep(choose.random() / 5)
                    os.killpg(process.pid, signal.SIGCONT)
        for name, process in processes.items():
            status = process.wait(LONGEST_WAIT)
            assert status == 0 or name in killed, name
    finally:
        for process in processes.values():
            end(process)
    crowd.check(killed)


# Writes long transactions, one right after the other, until the other one has written enough too.
_LONG_TRANSACTIONS = """
import sys, time, oxlite
path, name, other, enough = sys.argv[1:]
connection = oxlite.connect(path, isolation_level=None, timeout=TIMEOUT)
written = {name: 0, other: 0}
while min(written.values()) < int(enough):
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO t VALUES (?)", (name,))
    time.sleep(0.01)
    written |= connection.execute("SELECT x, count(*) FROM t GROUP BY x").fetchall()
    connection.execute("COMMIT")
connection.close()
"""


def test_who_writes_long_transactions_one_after_the_other_lets_others_in(path: Path) -> None:
    script = _LONG_TRANSACTIONS.replace("TIMEOUT", str(LONGEST_WAIT))
    command = [sys.executable, "-c", script, str(path)]
    processes = [subprocess.Popen([*command, *names, "30"]) for names in ("ab", "ba")]
    try:
        assert [process.wait(LONGEST_WAIT) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    names = "".join(map(str, rows(path)))
    # As long as both write: from the first row of the later one to the last of who ended first.
    both = names[max(map(names.index, "ab")) : min(map(names.rindex, "ab"))]
    changes = sum(one != other for one, other in itertools.pairwise(both))
    assert changes > len(both) / 4, names


def unlink(gate: Path) -> None:
    gate.unlink(missing_ok=True)


def replace(gate: Path) -> None:
    gate.with_name("new").write_bytes(b"something else")
    gate.with_name("new").rename(gate)


def truncate(gate: Path) -> None:
    with gate.open("wb"):
        pass


def fill(gate: Path) -> None:
    gate.write_bytes(b"\xff" * 8192)


def make_unwritable(gate: Path) -> None:
    gate.chmod(0)


def make_a_folder(gate: Path) -> None:
    if gate.is_file():
        gate.unlink()
    gate.mkdir(exist_ok=True)


@pytest.mark.parametrize(
    "tamper", [unlink, replace, truncate, fill, make_unwritable, make_a_folder]
)
def test_the_gates_file_is_tampered_with_while_it_is_in_use(
    crowd: Crowd, tamper: Callable[[Path], None]
) -> None:
    gate = crowd.path.with_name("app.db-gate")
    processes = [crowd.start(f"{n}", writes=1000, threads=2) for n in range(5)]
    try:
        crowd.go()
        while any(process.poll() is None for process in processes):
            with contextlib.suppress(OSError):
                tamper(gate)
            time.sleep(0.05)
        assert [process.returncode for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            end(process)
    if gate.is_dir():
        gate.rmdir()
    gate.touch()
    gate.chmod(0o644)
    crowd.check(killed=set())
