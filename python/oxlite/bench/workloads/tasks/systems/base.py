"""What a system does in a process, and what a process of it is told.

A process has one system, because Django has one configuration; it is told of it in the environment,
so that the workers, which are the system's own programs, hear of it too.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

VARIABLE = "OXLITE_BENCH_TASKS"
QUEUE = "lab"


class Told(NamedTuple):
    """What a process is told.

    Attributes:
        way: where the tasks wait: a value of that axis.
        path: the file, the server's socket, or the server's database.
        ledger: the file in which tasks note that they run.
        load: what is measured: a value of that axis.
    """

    way: str
    path: str
    ledger: str
    load: str

    @property
    def place(self) -> Path:
        """The path as one."""
        return Path(self.path)

    def environment(self) -> dict[str, str]:
        """The variables by which a process is told."""
        return {VARIABLE: json.dumps(self)}


@cache
def told() -> Told:
    """What this process was told."""
    return Told(*json.loads(os.environ[VARIABLE]))


class System(ABC):
    """A system, as whoever enqueues has it."""

    def prepare(self) -> None:  # noqa: B027 - nothing is to be done by most
        """Make what must be there before several processes use it, and leave no task in it."""

    @abstractmethod
    def enqueue(self, number: int, milliseconds: int) -> object:
        """Enqueue one task, in a transaction of its own."""

    @abstractmethod
    def hold(self, number: int, place: int) -> object:
        """Enqueue a task that holds a worker back: one of the program at that place.

        A system whose programs take no more tasks than they run needs not know the place.
        """

    def enqueue_all(self, numbers: Iterable[int], milliseconds: int) -> None:
        """Enqueue many, in whatever way is fast."""
        for number in numbers:
            self.enqueue(number, milliseconds)

    def flood(self, first: int, counted: int) -> None:
        """Enqueue so many at once; only the first of them are counted, all others are one task."""
        raise NotImplementedError

    @abstractmethod
    def waiting(self) -> int:
        """How many tasks wait."""

    @abstractmethod
    def connection(self) -> Any:  # noqa: ANN401 - of whichever driver
        """A connection with the settings of those that are measured."""

    @abstractmethod
    def close(self) -> None:
        """Leave it."""
