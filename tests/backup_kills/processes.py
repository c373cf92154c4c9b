"""Processes that are forked, say what they have done, and are killed.

Invariant: what one says has happened.
"""

import os
import random
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tests.backup_kills.ledger import append

from oxlite import Database, operations

__all__ = ["Process", "backs_up", "restores", "writes"]

Say = Callable[[str], None]


class Process:
    """One that has begun."""

    def __init__(self, work: Callable[[Say], None]) -> None:
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            _run(work, writing)
        os.close(writing)
        os.set_blocking(reading, False)
        self._reading = reading
        self._rest = b""

    def said(self) -> list[str]:
        """What it has said since the last time."""
        while True:
            try:
                found = os.read(self._reading, 1 << 16)
            except BlockingIOError:
                break
            if not found:
                break
            self._rest += found
        *lines, self._rest = self._rest.split(b"\n")
        return [line.decode() for line in lines]

    def kill(self) -> int:
        """Kill it and wait for its end; how it has ended, as ``waitpid`` has it."""
        os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def wait(self) -> int:
        """Wait for its end."""
        return os.waitpid(self.pid, 0)[1]

    def close(self) -> None:
        """It has ended, and all that it has said was heard."""
        os.close(self._reading)


def _run(work: Callable[[Say], None], writing: int) -> NoReturn:
    try:
        work(lambda text: os.write(writing, f"{text}\n".encode()) and None)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def writes(path: Path, writer: int) -> Callable[[Say], None]:
    """Write without a pause; says each number that is committed."""

    def work(say: Say) -> None:
        with Database(path) as db:
            while True:
                say(str(append(db, writer)))

    return work


def backs_up(path: Path, directory: Path, seed: int) -> Callable[[Say], None]:
    """Make backups and snapshots without a pause; says when one begins, and its name."""

    def work(say: Say) -> None:
        choice = random.Random(seed)
        while True:
            say("begins")
            if choice.random() < 0.5:
                made = operations.create_snapshot(path)
            else:
                compress = choice.random() < 0.3
                made = operations.backup(path, directory, compress=compress)
            say(str(made.path))

    return work


def restores(backup: Path, path: Path) -> Callable[[Say], None]:
    """Put a backup in the place of the database."""

    def work(say: Say) -> None:
        operations.restore(backup, path)
        say("done")

    return work
