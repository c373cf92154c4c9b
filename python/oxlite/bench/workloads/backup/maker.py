"""The process that makes backups while others write, and then raises the flag.

It begins when they have written for a while, and makes one after the other until the least time is
over; the last one is finished. After one that has failed it makes none any more. It opens no
connection of its own: closing a file that one has open would let go of SQLite's locks on it.
"""

import time
from contextlib import closing
from pathlib import Path
from typing import Any

from oxlite.bench.errors import WorkerError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.outcomes import NS_PER_SECOND
from oxlite.bench.harness.task import ScenarioTask
from oxlite.bench.harness.worker import wait_until
from oxlite.bench.workloads.backup import ways
from oxlite.bench.workloads.backup.flag import Flag
from oxlite.bench.workloads.backup.work import BackupParameters


class MakerTask(ScenarioTask[BackupParameters]):
    """The one that makes them."""

    parameters_type = BackupParameters

    def __init__(self, arguments: Message) -> None:
        super().__init__(arguments)
        self._flag = self.exits.enter_context(closing(Flag(Path(arguments["flag"]))))
        self._way = self.scenario["way"]
        self._facts: Message = {"version": ways.version(self._way)}

    def run(self, turn: Message, start_ns: int) -> None:
        """Make backups, or none for that time."""
        parameters = self.parameters
        wait_until(start_ns + round(parameters.lead_seconds * NS_PER_SECOND))
        begun_ns = time.perf_counter_ns()
        until_ns = begun_ns + round(parameters.least_seconds * NS_PER_SECOND)
        attempts: list[Message] = []
        largest_wal = 0
        while self._way != ways.NONE:
            attempts.append(self._attempt(len(attempts)))
            largest_wal = max(largest_wal, self._wal_bytes())
            if attempts[-1]["why"] is not None or time.perf_counter_ns() >= until_ns:
                break
        wait_until(until_ns)
        ended_ns = time.perf_counter_ns()
        self._flag.lift()
        self._facts |= {
            "begun_ns": begun_ns,
            "ended_ns": ended_ns,
            "attempts": attempts,
            "wal_bytes": max(largest_wal, self._wal_bytes()),
        }

    def _attempt(self, number: int) -> Message:
        target = self.place.path.with_name(f"copy-{number}.db")
        begun = time.perf_counter()
        why = ways.made(self._way, self.place.path, target, self.parameters.limit_seconds)
        return {"path": str(target), "seconds": time.perf_counter() - begun, "why": why}

    def _wal_bytes(self) -> int:
        return Path(f"{self.place.path}-wal").stat().st_size

    def collect(self) -> tuple[Message, bytes]:
        """What was made, and when."""
        return self._facts, b""

    def connection(self) -> tuple[Any, str]:
        """There is none.

        Raises:
            WorkerError: always.
        """
        raise WorkerError("who makes backups has no connection")
