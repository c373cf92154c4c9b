"""Writers of ``shared`` that are killed, every other one in the middle of a sync.

As in ``gate``, whose forks and figures these are; but who is killed is chosen by what it does
with the disk. After the signal it is looked at again: if it is still in its sync, the kill has met
it there, and it never tells anybody how the sync went. If not, the kill counts as one that came
at any moment, and another one is made.

Where syncs are shared, whoever syncs for all is the leader. Those who share count the leaders that
have died between the beginning and the end of a sync, because the next one finds it so.
"""

import itertools
from collections.abc import Iterator
from typing import ClassVar

import oxlite
from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Metric
from oxlite.bench.workloads.gate.kills import KillsTask
from oxlite.bench.workloads.gate.victim import ACKNOWLEDGED, ANY
from oxlite.bench.workloads.shared import entries
from oxlite.bench.workloads.shared.entries import Writer
from oxlite.bench.workloads.shared.syncs import is_syncing

SYNCING = "syncing"
"""Whom a kill meets: a process that waits for the disk in a sync."""

KINDS = (SYNCING, ANY)

LEADERS_LOST = Metric("leaders_lost", "leaders killed in a sync for all", "higher")


class SharedKillsTask(KillsTask):
    """The process that forks and kills."""

    kinds: ClassVar = KINDS
    statement: ClassVar = entries.WRITE

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self._told: list[Writer] = []
        self._numbers = [0] * self._writers
        self._acknowledged_before = [0] * self._writers
        self._leaders_lost: int | None = None

    def _meet(self, kind: str, number: int) -> int:
        if self.scenario.get("commit") == "shared":
            self._await(self._have_most_begun, f"the writers do not begin before kill {number}")
        if kind != SYNCING:
            return super()._meet(kind, number)
        self._pause()
        return self._await(self._in_a_sync, f"nobody syncs before kill {number}")

    def _have_most_begun(self) -> bool:
        """Whether most of the writers have written.

        Where fewer are killed before others have begun, the last one dies in its sync when there is
        nobody left who was there before: then all is stopped, as it should be.
        """
        begun = sum(
            self._acknowledged(place) > before
            for place, before in enumerate(self._acknowledged_before)
        )
        return begun > self._writers // 2

    def _in_a_sync(self) -> int | None:
        first = self._any_place()
        for place in range(first, first + self._writers):
            pid = self._pid(place % self._writers)
            if is_syncing(pid):
                return pid
        return None

    def _met(self, kind: str, pid: int) -> str:
        return kind if kind != SYNCING or is_syncing(pid) else ANY

    def _parameters_of(self, place: int) -> Iterator[tuple[int, ...]]:
        writer = self._numbers[place] = len(self._told)
        self._told.append(Writer(0, is_killed=False))
        self._acknowledged_before[place] = self._acknowledged(place)
        return ((writer, number) for number in itertools.count(1))

    def _acknowledged(self, place: int) -> int:
        return self._shared.words[self._shared.at(place, ACKNOWLEDGED)]

    def _gone(self, place: int, *, is_killed: bool) -> None:
        acknowledged = self._acknowledged(place) - self._acknowledged_before[place]
        self._told[self._numbers[place]] = Writer(acknowledged, is_killed)

    def _before_the_end(self) -> None:
        """See the base class.

        Raises:
            VerificationError: those who should share do not, or have been stopped.
        """
        if self.scenario.get("commit") != "shared":
            return
        group = oxlite.shared_commit_group(self.place.path)
        if group is None or group["poisoned"] is not None:
            raise VerificationError(f"the writers do not share their syncs: {group}")
        self._leaders_lost = group["leaders_lost"]

    def collect(self) -> tuple[Message, bytes]:
        """What was measured; see the base class."""
        facts, payload = super().collect()
        return {**facts, "writers": self._told, "leaders_lost": self._leaders_lost}, payload
