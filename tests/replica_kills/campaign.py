"""The cycles: writers under load, a replicator, SIGKILL of everything, and a restore elsewhere.

Invariants that are looked at:
- The database has what was acknowledged.
- What the replica restores to is whole, and a prefix of what was committed, over all writers.
- It has each transaction that was acknowledged before the time of which it was said that all
  before it is in the store: in the file beside the database, by ``replication_status``, and to
  whoever has asked for a sending.
- It never has less than it had before.
- Who replicates does not end by himself, and begins a Litestream again that was killed.
"""

import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.kill_campaigns import WrongError
from tests.replica_kills import ledger
from tests.replica_kills.crowd import Crowd
from tests.replica_kills.s3 import CREDENTIALS, S3, moto_server
from tests.replica_kills.writers import slip_path

from oxlite import sqlite3
from oxlite.operations import OperationsError
from oxlite.replication import (
    LitestreamFailed,
    NoReplica,
    find_litestream,
    is_claimed,
    read_state,
    replication_status,
    restore_from,
    store_of,
)
from oxlite.replication.health import send_now

__all__ = ["Campaign"]

_CYCLE_SECONDS = (0.2, 2.4)
"""It takes about one until the first sending: in many cycles all are killed before."""
_CYCLES_OF_ONE = (4, 24)
"""Then database and replica are begun anew, so that they stay small enough for many cycles."""
_SYNC_SECONDS = (0.1, 0.3, 1.0)
_EVENTS_SECONDS = 60.0
_LOOK_SECONDS = 0.02
_SAID_AT_MOST = 3000


class Campaign:
    """See the module.

    Args:
        folder: Where its files are.
        seed: Of what is drawn.
        mistake: Called with the directory of a replica before it is restored, to see that damage is
            found.
        with_s3: Whether half of it is against a server that speaks S3.

    Attributes:
        tally: How many of what.
        lost_seconds: For how long before the kill what was acknowledged is not in the replica,
            where it was replicated at all.
    """

    def __init__(
        self,
        folder: Path,
        seed: int,
        *,
        mistake: Callable[[Path], None] | None = None,
        with_s3: bool = True,
    ) -> None:
        self.folder = folder
        self.choice = random.Random(seed)
        self.mistake = mistake
        self._with_s3 = with_s3
        self.litestream = find_litestream(credentials=CREDENTIALS)
        self.s3: S3 | None = None
        self._cycles_of_kind: Counter[str] = Counter()
        self._number = 0
        self._left = 0
        self.tally: Counter[str] = Counter()
        self.lost_seconds: dict[float, list[float]] = {one: [] for one in _SYNC_SECONDS}

    def __enter__(self) -> Self:
        """Begin the server."""
        self.folder.mkdir(parents=True)
        self._stack = ExitStack()
        if self._with_s3:
            if (program := moto_server()) is None:
                raise WrongError("moto_server is not installed: pip install 'moto[server]'")
            self.s3 = self._stack.enter_context(S3(program, self.folder / "s3.log"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it."""
        self._stack.close()

    @property
    def kills(self) -> int:
        """How many were killed."""
        return sum(count for what, count in self.tally.items() if what.startswith("killed"))

    def lost(self) -> str:
        """The lines of a table: what of the acknowledged was not in the replica."""
        lines = []
        for sync_seconds, found in self.lost_seconds.items():
            if len(found) > 1:
                most = statistics.quantiles(found, n=100, method="inclusive")
                lines.append(
                    f"| {sync_seconds:g} s | {len(found):,} | {statistics.median(found):.2f} s"
                    f" | {most[98]:.2f} s | {max(found):.2f} s |"
                )
        return "\n".join(lines)

    def run(self, cycles: int, progress: Callable[[Counter[str]], None]) -> None:
        """Do so many.

        Raises:
            WrongError: Something is not as it should be.
        """
        for _ in range(cycles):
            if self._left == 0:
                self._begin_anew()
            self._left -= 1
            _Cycle(self).run()
            self.tally["cycles"] += 1
            progress(self.tally)

    def _begin_anew(self) -> None:
        """An empty database, and an empty place for its replica."""
        self._number += 1
        self._left = self.choice.randint(*_CYCLES_OF_ONE)
        shutil.rmtree(self.folder / "one", ignore_errors=True)
        self.here = self.folder / "one" / "here"
        self.here.mkdir(parents=True)
        is_s3 = self.s3 is not None and (
            self._cycles_of_kind["S3"] < self._cycles_of_kind["directory"]
        )
        self.kind = "S3" if is_s3 else "directory"
        self._cycles_of_kind[self.kind] += self._left
        if is_s3:
            assert self.s3 is not None
            self.s3.forget_all()
            self.to = self.s3.url(f"app-{self._number}")
        else:
            self.to = str(self.folder / "one" / "replica")
        ledger.create(self.here / "app.db")
        self.tally[f"databases, each with a replica in {self.kind_text}"] += 1
        self.had: list[int] | None = None
        """What the replica had the last time."""
        self.reached: list[set[int]] = [{0} for _ in range(ledger.WRITERS)]
        """To which numbers a transaction has brought a writer, or might have."""

    @property
    def kind_text(self) -> str:
        return "a server that speaks S3" if self.kind == "S3" else "a directory"


class _Cycle:
    """One of them."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._choice = campaign.choice
        self._tally = campaign.tally
        self._database = campaign.here / "app.db"
        self._slips = campaign.folder / "slips"
        self._log = campaign.folder / "replicator.log"
        self._crowd = Crowd(f"{os.getpid()}-{self._choice.getrandbits(64):x}")
        self._sync_seconds = self._choice.choice(_SYNC_SECONDS)
        self._begun: list[subprocess.Popen[bytes]] = []
        self._replicator: subprocess.Popen[bytes] | None = None
        self._sent_at: float | None = None
        """All that was acknowledged before this is said to be in the store."""

    def run(self) -> None:
        shutil.rmtree(self._slips, ignore_errors=True)
        self._slips.mkdir()
        is_parent = self._choice.random() < 0.5
        self._writers = [
            *(sys.executable, "-m", "tests.replica_kills.writers"),
            *(str(self._database), str(self._slips), str(self._choice.getrandbits(32))),
        ]
        s3 = self._campaign.s3 if self._campaign.kind == "S3" else None
        try:
            if not is_parent:
                self._begin(self._writers)
            self._replicate(self._writers if is_parent else [])
            event = self._choice.random()
            if event < 0.08:
                self._kill_litestream()
            elif event < 0.16 and not is_parent:
                self._kill_replicator()
            elif event < 0.3 and s3 is not None:
                self._kill_s3(s3)
            else:
                self._live(self._choice.uniform(*_CYCLE_SECONDS))
        finally:
            killed_at = time.time()
            pause = self._choice.choice((0.0, 0.0, 0.02, 0.2))
            killed = self._crowd.kill_all(self._choice, pause)
            for one in self._begun:
                one.wait()
            if s3 is not None and not s3.is_there:
                s3.begin_relay()
        for what in killed:
            self._tally[f"killed: {what}"] += 1
        self._hear_state()
        self._look(killed_at)

    def _begin(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                command,
                env=self._crowd.environment | CREDENTIALS,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._begun.append(process)
        return process

    def _replicate(self, application: list[str]) -> None:
        self._log.write_bytes(b"")
        options = ["--to", self._campaign.to, "--sync-seconds", str(self._sync_seconds)]
        command = [sys.executable, "-m", "oxlite.cli", "replicate", str(self._database), *options]
        self._replicator = self._begin([*command, *(["--", *application] if application else [])])

    def _live(self, seconds: float) -> None:
        """Let them work for so long; ask now and then for a sending."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self._all_well()
            if self._choice.random() < 0.1:
                self._ask()
            time.sleep(_LOOK_SECONDS)

    def _all_well(self) -> None:
        for one in self._begun:
            is_killed = one is not self._replicator and one.args[3:4] == ["replicate"]  # type: ignore[index]
            if one.poll() is not None and not is_killed:
                raise WrongError(f"somebody has ended by himself, {one.returncode}: {self._said()}")

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-_SAID_AT_MOST:]

    def _hear_state(self) -> None:
        """What stands in the file beside the database, if one of ours has written it."""
        state = read_state(self._database)
        ours = {one.pid for one in self._begun}
        if state is not None and state.process_id in ours and state.sent_at is not None:
            self._claim(state.sent_at, "in the file")

    def _claim(self, sent_at: float, where: str) -> None:
        self._tally[f"said to be in the store: {where}"] += 1
        self._sent_at = max(sent_at, self._sent_at or 0.0)

    def _ask(self) -> bool:
        """Have all sent that is committed now, or ask how the replication is."""
        state = read_state(self._database)
        if state is None or self._replicator is None or state.process_id != self._replicator.pid:
            return False
        if not self._database.exists():  # it is about to be restored
            return False
        before = time.time()
        if self._choice.random() < 0.2:
            status = replication_status(self._database)
            if status.behind_seconds is not None:
                self._claim(before - status.behind_seconds, "by the status")
            return False
        try:
            send_now(state.socket, self._database, seconds=5)
        except LitestreamFailed:
            return False
        self._claim(before, "to who has asked for a sending")
        return True

    def _until(self, what: str, is_so: Callable[[], bool]) -> None:
        ends = time.monotonic() + _EVENTS_SECONDS
        while not is_so():
            self._all_well()
            if time.monotonic() > ends:
                raise WrongError(f"not within {_EVENTS_SECONDS:g} s: {what}. {self._said()}")
            time.sleep(_LOOK_SECONDS)

    def _has_sent(self) -> bool:
        state = read_state(self._database)
        assert self._replicator is not None
        return (
            state is not None
            and state.process_id == self._replicator.pid
            and state.sent_at is not None
        )

    def _kill_litestream(self) -> None:
        """It is begun again, and sends again."""
        self._until("something is sent", self._has_sent)
        self._live(self._choice.uniform(0, 0.3))
        if not self._crowd.kill("litestream"):
            raise WrongError("there is no Litestream")
        self._tally["killed: Litestream alone, and begun again"] += 1
        self._until(
            "Litestream is begun again", lambda: "litestream" in self._crowd.members().values()
        )
        self._until("something is sent again", self._ask)
        self._live(self._choice.uniform(0, 0.5))

    def _kill_replicator(self) -> None:
        """Litestream ends with it, and another one can begin."""
        self._until("something is sent", self._has_sent)
        self._live(self._choice.uniform(0, 0.3))
        assert self._replicator is not None
        self._replicator.kill()
        self._replicator.wait()
        self._begun.remove(self._replicator)
        self._tally["killed: who replicates alone, and another one begun"] += 1
        self._replicator = None
        self._until("the claim is let go", lambda: not is_claimed(self._database))
        self._replicate([])
        self._until("the other one sends", self._has_sent)
        self._live(self._choice.uniform(0, 0.5))

    def _kill_s3(self, s3: S3) -> None:
        """The store does not answer, for a time or until the end."""
        self._until("something is sent", self._has_sent)
        self._live(self._choice.uniform(0, 0.3))
        s3.kill_relay()
        self._tally["killed: the store"] += 1
        self._live(self._choice.uniform(0, 0.8))
        if self._choice.random() < 0.7:
            s3.begin_relay()
            if self._choice.random() < 0.5:
                self._until("something is sent again", self._ask)
            self._live(self._choice.uniform(0, 0.5))

    def _look(self, killed_at: float) -> None:
        """Restore, and compare with what was acknowledged; then draw how it goes on."""
        said = [ledger.said(slip_path(self._slips, one)) for one in range(ledger.WRITERS)]
        for numbers, one in zip(self._campaign.reached, said, strict=True):
            numbers.update(one.begun)
        self._tally["transactions acknowledged"] += sum(len(one.acknowledged) for one in said)
        self._look_at_survivor(said)
        if self._campaign.kind == "directory" and self._campaign.mistake is not None:
            self._campaign.mistake(Path(self._campaign.to))
        restored = self._restored(said)
        if restored is None:
            return
        if self._sent_at is not None:
            self._measure(said, restored, killed_at)
        self._campaign.had = restored
        if self._choice.random() < 0.5:
            # As on a new machine.
            shutil.rmtree(self._campaign.here)
            self._campaign.here.mkdir()
            self._campaign.reached = [
                {number for number in numbers if number <= count}
                for numbers, count in zip(self._campaign.reached, restored, strict=True)
            ]
            self._tally["the database moved away, and restored by who replicates"] += 1

    def _look_at_survivor(self, said: list[ledger.Said]) -> None:
        """A copy is looked at: who closes a database takes its WAL away."""
        if not self._database.exists():
            return
        copy = self._campaign.folder / "survivor.db"
        shutil.copy(self._database, copy)
        with suppress(FileNotFoundError):
            shutil.copy(f"{self._database}-wal", f"{copy}-wal")
        found = ledger.found(copy)
        for writer, one in enumerate(said):
            least = one.acknowledged[-1][0] if one.acknowledged else 0
            if found[writer] < least or found[writer] not in self._campaign.reached[writer]:
                raise WrongError(
                    f"the database has {found[writer]} of writer {writer}, {least} acknowledged"
                )
        for path in self._campaign.folder.glob("survivor.db*"):
            path.unlink()

    def _restored(self, said: list[ledger.Said]) -> list[int] | None:
        folder = self._campaign.folder / "elsewhere"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        target = folder / "app.db"
        try:
            restore_from(self._campaign.litestream, store_of(self._campaign.to), target)
        except NoReplica:
            if self._sent_at is not None or self._campaign.had is not None:
                raise WrongError("there was a replica, and there is none") from None
            self._tally["killed before there was a replica: cycles"] += 1
            return None
        except (OperationsError, sqlite3.Error) as error:
            raise WrongError(f"it does not restore: {error}. {self._said()}") from error
        restored = ledger.found(target)
        before = self._campaign.had or [0] * ledger.WRITERS
        for writer, one in enumerate(said):
            claimed = [number for number, at in one.acknowledged if at < (self._sent_at or 0.0)]
            least = max([before[writer], *claimed])
            has = restored[writer]
            if has < least or has not in self._campaign.reached[writer]:
                last = one.acknowledged[-1:] or ["nothing"]
                raise WrongError(
                    f"the replica has {has} of writer {writer}: at least {least} was to be there,"
                    f" {last[0]} was acknowledged at last; all before {self._sent_at} was said to"
                    f" be in the store. {self._said()}"
                )
            self._tally["acknowledged before what was said"] += len(claimed)
        self._tally[f"restored from {self._campaign.kind_text}"] += 1
        return restored

    def _measure(self, said: list[ledger.Said], restored: list[int], killed_at: float) -> None:
        missing = [
            at
            for count, one in zip(restored, said, strict=True)
            for number, at in one.acknowledged
            if number > count
        ]
        self._tally["acknowledged, and not in the replica"] += len(missing)
        lost = max(0.0, killed_at - min(missing)) if missing else 0.0
        self._campaign.lost_seconds[self._sync_seconds].append(lost)
