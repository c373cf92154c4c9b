"""Rounds: writers share their syncs until their log is long, and are killed; others begin anew.

This process has no connection, so its forks may have theirs. What they were told of stands in
memory that all share, written by a writer when its COMMIT has returned.

What is drawn follows from the seed: how many write, how long the log is to be, whom the first kill
meets (one that waits for the disk in a sync, or anybody), whether all are killed at once or one
after the other, whether somebody who is not in the group has the file open meanwhile, and whether
those who begin anew are killed as well.

Invariant: nothing waits without a limit, and no child outlives this process.
"""

import itertools
import json
import mmap
import os
import random
import signal
import sqlite3
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TypeVar

from tests.kill_campaigns import WrongError
from tests.kills import entries
from tests.pages import has_unknown_end, remove_page_of

import oxlite
from oxlite.bench.harness.bootstrap import die_with_parent
from oxlite.bench.workloads.shared.syncs import is_syncing

LONG_LOG_BYTES = (1 << 17) - 1
"""SQLite's VFS for Unix writes no more at once: a longer log is written again in parts."""

_DEADLINE_SECONDS = 40.0
_LOOK_SECONDS = 0.0002
_LONGEST_DELAY_SECONDS = 0.003
_LONGEST_START_SECONDS = 0.012
_MOST_WRITERS = 4
_MOST_STARTS_KILLED = 3
_ROUNDS_OF_A_DATABASE = 150
_LOGS_BYTES = (0, 200_000, 200_000, 400_000, 1_000_000, 3_000_000)
_CHECKPOINTS = (
    {},
    {"wal_autocheckpoint": 0},
    {"wal_autocheckpoint": 0},
    {"wal_autocheckpoint": 60},
)

Found = TypeVar("Found")


@dataclass
class Tally:
    """What was done."""

    counts: Counter[str] = field(default_factory=Counter)
    entries: int = 0
    """How many were acknowledged."""
    longest_log_bytes: int = 0

    @property
    def kills(self) -> int:
        """How many processes were killed."""
        return self.counts[WRITER] + self.counts[STARTER]


WRITER = "writers killed"
MET = "first kills of a round that met somebody in a sync"
STARTER = "processes killed while they began anew, or just after"
RESTART = "new beginnings after all were killed"
LONG = "of these with a log of more than 131,071 bytes"
UNKNOWN = "of these after a sync that nobody knows the end of"
LONG_UNKNOWN = "of these with both"
BESIDE = "of these beside somebody who is not in the group"


class Campaign:
    """Kills, round by round."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.tally = Tally()
        self._folder = folder
        self._source = random.Random(seed)
        self._words = memoryview(mmap.mmap(-1, 8 * (_MOST_WRITERS + 1))).cast("Q")
        self._children: dict[int, set[int]] = {}
        """Those that run, and how each may end by itself."""
        self._acknowledged: list[int] = []
        self._path = folder / "kills.db"

    def run(self, kills: int, progress: Callable[[Tally], None] = lambda tally: None) -> None:
        """Goes on until so many have been killed.

        Raises:
            WrongError: something is missing, or somebody fails or hangs.
        """
        try:
            for number in itertools.count():
                if number % _ROUNDS_OF_A_DATABASE == 0:
                    self._make_database(number // _ROUNDS_OF_A_DATABASE)
                self._round()
                progress(self.tally)
                if self.tally.kills >= kills:
                    return
        finally:
            for pid in tuple(self._children):
                self._kill(pid)
            remove_page_of(self._path)

    def _make_database(self, number: int) -> None:
        remove_page_of(self._path)
        self._path = self._folder / f"{number}.db"
        self._acknowledged = []
        with closing(sqlite3.connect(self._path)) as connection:
            connection.executescript(f"PRAGMA journal_mode = WAL; {entries.SCHEMA}")

    def _round(self) -> None:
        source = self._source
        outsider = self._fork_outsider() if source.random() < 0.25 else None
        self._write_and_kill()
        for _ in range(source.choice((0, 0, 1, 1, 2, _MOST_STARTS_KILLED))):
            self._kill_a_start()
        log_bytes = self._log_bytes()
        is_unknown = has_unknown_end(self._path)
        is_long = log_bytes > LONG_LOG_BYTES
        self._begin_anew()
        counts = self.tally.counts
        counts[RESTART] += 1
        counts[LONG] += is_long
        counts[UNKNOWN] += is_unknown
        counts[LONG_UNKNOWN] += is_long and is_unknown
        counts[BESIDE] += outsider is not None
        self.tally.longest_log_bytes = max(self.tally.longest_log_bytes, log_bytes)
        if outsider is not None:
            self._kill(outsider)

    def _write_and_kill(self) -> None:
        source = self._source
        pragmas = source.choice(_CHECKPOINTS)
        wanted_bytes = source.choice(_LOGS_BYTES) if pragmas.get("wal_autocheckpoint") != 60 else 0
        places = range(source.randint(1, _MOST_WRITERS))
        first = len(self._acknowledged)
        for place in places:
            self._words[place] = 0
        writers = {
            self._fork(lambda place=place: self._write(place, first + place, pragmas)): place
            for place in places
        }
        # Whoever is there before the first kill can vouch for what a leader has died in.
        self._await(lambda: all(self._words[place] for place in places), "somebody does not write")
        self._await(lambda: self._log_bytes() >= wanted_bytes, "the log does not grow")
        is_one_by_one = source.random() < 0.3
        victims = list(writers)
        source.shuffle(victims)
        if source.random() < 0.7:
            first_victim = self._in_a_sync(victims)
            self.tally.counts[MET] += self._kill(first_victim, asks=True)
            victims.remove(first_victim)
        else:
            time.sleep(source.random() * _LONGEST_DELAY_SECONDS)
        while is_one_by_one and victims:
            self._await_progress([writers[pid] for pid in victims])
            self._kill(victims.pop())
        # All have the signal before any of them is waited for.
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        for pid in victims:
            self._kill(pid)
        self._acknowledged += [self._words[place] for place in places]
        self.tally.entries += sum(self._words[place] for place in places)
        self.tally.counts[WRITER] += len(writers)

    def _await_progress(self, places: list[int]) -> None:
        """Waits until somebody there has written once more."""
        before = [self._words[place] for place in places]
        self._await(lambda: before != [self._words[place] for place in places], "nobody goes on")

    def _in_a_sync(self, pids: list[int]) -> int:
        return self._await(
            lambda: next((pid for pid in pids if is_syncing(pid)), None), "nobody syncs"
        )

    def _kill_a_start(self) -> None:
        """Somebody begins anew, and is killed at some moment of that."""
        ready = _MOST_WRITERS
        self._words[ready] = 0

        def begin() -> None:
            self._connect({})
            self._words[ready] = 1
            time.sleep(_DEADLINE_SECONDS)

        pid = self._fork(begin)
        time.sleep(self._source.random() * _LONGEST_START_SECONDS)
        self._kill(pid)
        self.tally.counts[STARTER] += 1

    def _begin_anew(self) -> None:
        """Somebody begins anew, and all must be there."""
        counts = self._folder / "counts"
        closes = self._source.random() < 0.5

        def begin() -> None:
            connection = self._connect({})
            if wrong := entries.wrong(connection.execute, self._acknowledged):
                raise WrongError("; ".join(wrong[:5]))
            counts.write_text(json.dumps(entries.counts(connection.execute)))
            if closes:
                connection.close()

        pid = self._fork(begin, {0})
        self._await(lambda: pid not in self._children, "nobody can begin anew")
        # A killed writer may have committed one more, which is as good as told of from now on.
        for writer, count in json.loads(counts.read_text()):
            self._acknowledged[writer] = count

    def _fork_outsider(self) -> int:
        """Somebody who is not in the group has the file open, and does nothing."""
        connect = self._source.choice((sqlite3.connect, oxlite.connect))
        ready = _MOST_WRITERS
        self._words[ready] = 0

        def idle() -> None:
            connection = connect(self._path)
            connection.execute("SELECT count(*) FROM entry").fetchall()
            self._words[ready] = 1
            signal.pause()

        pid = self._fork(idle)
        self._await(lambda: self._words[ready], "an outsider cannot read")
        return pid

    def _connect(self, pragmas: dict[str, int]) -> oxlite.sqlite3.Connection:
        return oxlite.connect(
            self._path,
            isolation_level=None,
            timeout=30,
            durable_commit="shared",
            pragmas=pragmas,
        )

    def _write(self, place: int, writer: int, pragmas: dict[str, int]) -> None:
        connection = self._connect(pragmas)
        for number in itertools.count(1):
            for sql, parameters in entries.transaction(writer, number):
                connection.execute(sql, parameters)
            self._words[place] = number

    def _log_bytes(self) -> int:
        try:
            return Path(f"{self._path}-wal").stat().st_size
        except FileNotFoundError:
            return 0

    def _fork(self, work: Callable[[], object], ends: set[int] | None = None) -> int:
        parent = os.getpid()
        pid = os.fork()
        if not pid:
            self._in_the_child(parent, work)
        self._children[pid] = ends or set()
        return pid

    def _in_the_child(self, parent: int, work: Callable[[], object]) -> NoReturn:
        code = 1
        try:
            die_with_parent()
            if os.getppid() == parent:
                work()
            code = 0
        except BaseException:
            text = "".join(traceback.format_exception_only(*sys.exc_info()[:2]))
            self._complaint(os.getpid()).write_text(text)
        finally:
            os._exit(code)

    def _complaint(self, pid: int) -> Path:
        return self._folder / f"{pid}.complaint"

    def _kill(self, pid: int, *, asks: bool = False) -> bool:
        """Kills a child; whether it was in a sync, of which it cannot come back."""
        os.kill(pid, signal.SIGKILL)
        was_syncing = asks and is_syncing(pid)
        del self._children[pid]
        _, status = os.waitpid(pid, 0)
        self._judge(pid, os.waitstatus_to_exitcode(status), {-signal.SIGKILL})
        return was_syncing

    def _judge(self, pid: int, code: int, expected: set[int]) -> None:
        if code not in expected:
            complaint = self._complaint(pid)
            why = complaint.read_text() if complaint.exists() else "for no reason given"
            raise WrongError(f"a process ended with {code}: {why}")

    def _await(self, look: Callable[[], Found | None], complaint: str) -> Found:
        ends = time.monotonic() + _DEADLINE_SECONDS
        while not (found := look()):
            if time.monotonic() > ends:
                raise WrongError(f"{complaint} for {_DEADLINE_SECONDS:g} s")
            for pid in tuple(self._children):
                gone, status = os.waitpid(pid, os.WNOHANG)
                if gone:
                    expected = self._children.pop(pid)
                    self._judge(pid, os.waitstatus_to_exitcode(status), expected)
            time.sleep(_LOOK_SECONDS)
        return found
