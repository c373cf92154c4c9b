"""What has run, and when: memory that all processes of a measurement share.

Each task has a place of its own, where whoever runs it writes; so nobody waits for anybody, and
what is written outlasts the process that is killed. Beside it is a file with a lock, the *gate*:
who is held back waits for it in the kernel, until the lab opens the gate.

Invariant: instants are ``time.monotonic_ns``, which all processes share; 0 stands for never.
"""

import fcntl
import mmap
import os
import time
from functools import cache
from pathlib import Path
from typing import Self

FIRST, LATEST, ENDED, PID, RUNS = COLUMNS = range(5)
"""Of each task: when it began first and last, when it ended, in which process, and how often it
began."""

WORD_BYTES = 8
GATE_SUFFIX = ".gate"


class Ledger:
    """The memory; see the module."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._words = memoryview(self._memory).cast("Q")
        self.count = len(self._words) // len(COLUMNS)

    @classmethod
    def made(cls, path: Path, count: int) -> Self:
        """A new one for so many tasks, with its gate."""
        with path.open("wb") as file:
            file.truncate(count * len(COLUMNS) * WORD_BYTES)
        gate_of(path).touch()
        return cls(path)

    def begin(self, number: int, instant_ns: int) -> None:
        """Note that a task has begun, in this process."""
        words, count = self._words, self.count
        if not words[FIRST * count + number]:
            words[FIRST * count + number] = instant_ns
        words[LATEST * count + number] = instant_ns
        words[PID * count + number] = os.getpid()
        words[RUNS * count + number] += 1

    def end(self, number: int) -> None:
        """Note that it has ended."""
        self._words[ENDED * self.count + number] = time.monotonic_ns()

    def column(self, column: int, numbers: range) -> list[int]:
        """What stands in one of ``COLUMNS`` of consecutive tasks."""
        start = column * self.count
        return self._words[start + numbers.start : start + numbers.stop].tolist()

    def value(self, column: int, number: int) -> int:
        """What stands there of one task."""
        return self._words[column * self.count + number]

    def have(self, column: int, numbers: range) -> int:
        """Of how many of the tasks something stands there."""
        return len(numbers) - self.column(column, numbers).count(0)

    def close(self) -> None:
        """Let the memory go."""
        self._words.release()
        self._memory.close()


class Gate:
    """The gate, for who opens and shuts it: shut until ``open``, and again from ``shut`` on."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(gate_of(path), os.O_RDWR | os.O_CLOEXEC)
        self.shut()

    def shut(self) -> None:
        """Hold back whoever comes to it from now on, once those in it have passed."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def open(self) -> int:
        """Let all pass; the instant just before."""
        instant_ns = time.monotonic_ns()
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return instant_ns

    def close(self) -> None:
        """Leave it open."""
        os.close(self._descriptor)


@cache
def opened(path: str) -> Ledger:
    """That of this process."""
    return Ledger(Path(path))


def gate_of(path: Path) -> Path:
    """The file of the gate beside a ledger."""
    return path.with_name(path.name + GATE_SUFFIX)


def pass_gate(path: str) -> None:
    """Wait until the gate is open."""
    descriptor = os.open(gate_of(Path(path)), os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)
