"""What workers hand over of single operations, and what follows from it.

An operation comes to a number: 0 if it succeeded, else that of its error, from 1.
"""

import hashlib
import threading
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.model import Metric
from oxlite.bench.harness.statistics import latencies

NS_PER_MS = 1e6
NS_PER_SECOND = 1e9

LOCKED = "locked"
"""Is in the message of an error that says that nothing was done."""

Of = TypeVar("Of")


def digest(work: object) -> str:
    """The sha256 of what ``repr`` tells of a list of work, in hexadecimal."""
    return hashlib.sha256(repr(work).encode()).hexdigest()


def packed(arrays: Iterable["array[int]"]) -> bytes:
    """The payload that consists of ``arrays``."""
    return b"".join(each.tobytes() for each in arrays)


def unpacked(payload: bytes, shape: Iterable[tuple[str, int]]) -> "list[array[int]]":
    """The arrays of a payload.

    Args:
        payload: see :func:`packed`.
        shape: of each array its type code and its length.

    Raises:
        VerificationError: the payload is of another length.
    """
    found, place = [], 0
    for code, count in shape:
        values = array(code)
        end = place + values.itemsize * count
        if end > len(payload):
            break
        values.frombytes(payload[place:end])
        found.append(values)
        place = end
    else:
        if place == len(payload):
            return found
    raise VerificationError("a worker does not account for what it did")


def kind(error: Exception) -> str:
    """The class and the message of an error."""
    return f"{type(error).__name__}: {error}"


def line(error: Exception) -> str:
    """The same in one line."""
    return " ".join(kind(error).split())


class Errors:
    """The kinds of errors that befell any thread, numbered from 1."""

    def __init__(self, kind: Callable[[Exception], str] = kind) -> None:
        """None yet; ``kind`` says of what kind one is."""
        self._kind = kind
        self._numbers: dict[str, int] = {}
        self._lock = threading.Lock()

    def number(self, error: Exception) -> int:
        """The number of its kind."""
        with self._lock:
            return self._numbers.setdefault(self._kind(error), len(self._numbers) + 1)

    def kinds(self) -> list[str]:
        """All kinds, in order."""
        return list(self._numbers)


@dataclass
class Outcome:
    """What a process or thread did: one entry per operation, in order.

    Attributes:
        times_ns: how long each took.
        numbers: what each came to; see the module.
        errors: their kinds by number.
    """

    times_ns: "array[int]"
    numbers: "array[int]"
    errors: Sequence[str]

    def done(self) -> int:
        """How many succeeded."""
        return self.numbers.count(0)

    def times_of_done_ns(self) -> "array[int]":
        """How long each took that succeeded, for a fast failure must not improve a percentile."""
        every = zip(self.times_ns, self.numbers, strict=True)
        return array("Q", (time_ns for time_ns, number in every if not number))

    def failed(self) -> Counter[str]:
        """How many failed, by the kind of error."""
        return Counter(self.errors[number - 1] for number in self.numbers if number)

    def made(self, work: Iterable[Of]) -> tuple[list[Of], list[Of]]:
        """Of the ``work`` in order: what was done, and what may have been.

        What failed with a lock was not; what failed otherwise (a full disk, say) may have been.
        """
        unknown = {number for number, text in enumerate(self.errors, 1) if LOCKED not in text}
        certain: list[Of] = []
        possible: list[Of] = []
        for one, number in zip(work, self.numbers, strict=False):
            if not number:
                certain.append(one)
            elif number in unknown:
                possible.append(one)
        return certain, possible


def together(arrays: Iterable["array[int]"]) -> "array[int]":
    """All values of ``arrays``, one after the other."""
    every = array("Q")
    for each in arrays:
        every.extend(each)
    return every


def percentiles_ms(values_ns: Iterable[int], percents: Mapping[Metric, float]) -> dict[str, float]:
    """Percentiles in milliseconds by the names of their metrics; absent if there are too few."""
    found = latencies(values_ns, tuple(percents.values())).percentiles
    return {
        metric.name: value_ns / NS_PER_MS
        for metric, percent in percents.items()
        if (value_ns := found[percent]) is not None
    }
