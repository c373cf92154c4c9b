"""What processes of Oxlite tell of themselves while somebody watches.

They tell it in a file beside the database, and only then (``oxlite._native.ActivityWatcher``).

Invariants: what they tell is foreign text and made harmless; where it cannot be had, the watch goes
on without it and says why.
"""

import re
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from oxlite import harmless
from oxlite._native import ActivityWatcher
from oxlite.operations.top.sample import GAUGES, Namespace, Statement

__all__ = ["Hold", "Key", "Reading", "Teller", "Told", "ToldView"]

Key = tuple[int, Namespace, int]
"""By what a process is known: its number, whether that is one here, and which of those it is that
have the same number, in several containers."""

_SQL_AT_MOST: Final = 1000

_TELLS_WITHIN_SECONDS: Final = 0.25
"""Who is busy tells ten times a second (``crates/oxlite-core/src/activity.rs``), and has a moment
more: within it, to have told nothing new does not say that he does nothing."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A connection with a snapshot.

    Attributes:
        thread_id: Its thread, as the operating system numbers it.
        held_seconds: For how long it has it, in seconds.
        sql: With which statement; None between two.
    """

    thread_id: int
    held_seconds: float
    sql: str | None


@dataclass(frozen=True, slots=True)
class Hold:
    """What somebody has told that he holds the write lock for.

    Attributes:
        key: The process.
        thread_id: Its thread.
        held_seconds: For how long, in seconds.
        sql: A statement of the transaction.
    """

    key: Key
    thread_id: int
    held_seconds: float
    sql: str


@dataclass(frozen=True, slots=True)
class Teller:
    """A process that tells.

    Attributes:
        key: The process.
        told_ago_seconds: How long ago, in seconds: it tells when it does something.
        counters: What it has counted.
        per_second: The same in each second since the look before; None where that is not known yet.
        readings: Its connections that had a snapshot then, the oldest first.
        statements: Its slowest statements.
    """

    key: Key
    told_ago_seconds: float
    counters: Mapping[str, int]
    per_second: Mapping[str, float] | None
    readings: tuple[Reading, ...]
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """What one look has heard.

    Attributes:
        tellers: Who tells.
        hold: Who has told that he holds the write lock.
        note: Why nobody is heard, in a sentence.
    """

    tellers: tuple[Teller, ...] = ()
    hold: Hold | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class _Telling:
    at_ms: int
    counters: Mapping[str, int]


class ToldView:
    """Asks processes of Oxlite to tell what they do, for as long as it is open."""

    def __init__(self, path: Path) -> None:
        self._watcher: ActivityWatcher | None = None
        self._refusal: str | None = None
        self._before: dict[Key, _Telling] = {}
        self._rates: dict[Key, Mapping[str, float] | None] = {}
        try:
            self._watcher = ActivityWatcher(path)
        except OSError as error:
            reason = harmless(" ".join(str(error).split()))
            reason = re.sub(r" \(os error \d+\)$", "", reason)  # as Rust has it
            self._refusal = f"Oxlite's processes are not asked what they do: {reason}."

    def note_beginnings(self) -> None:
        """Remember what those count who have begun to tell: between two looks, for the second."""
        processes = self._processes()
        self._forget_others(processes.keys())
        for key, one in processes.items():
            self._before.setdefault(key, _telling(one))

    def look(self) -> Told:
        """Look once."""
        if self._watcher is None:
            return Told(note=self._refusal)
        processes = self._processes()
        self._forget_others(processes.keys())
        found = [self._teller(key, one) for key, one in processes.items()]
        told = self._watcher.holder()
        hold = None
        if told is not None:
            hold = Hold(
                (told["process_id"], told["pid_namespace"], 0),
                told["thread_id"],
                told["held_ms"] / 1000,
                _in_a_line(told["sql"]),
            )
        return Told(tuple(found), hold)

    def close(self) -> None:
        """Let them tell no more, if nobody else listens."""
        if self._watcher is not None:
            self._watcher.close()

    def _processes(self) -> dict[Key, Mapping[str, Any]]:
        found: dict[Key, Mapping[str, Any]] = {}
        for one in [] if self._watcher is None else self._watcher.processes():
            # They come in the order of their places, which they keep.
            number, namespace = one["process_id"], one["pid_namespace"]
            before = sum(key[:2] == (number, namespace) for key in found)
            found[number, namespace, before] = one
        return found

    def _forget_others(self, keys: Collection[Key]) -> None:
        """Forget who has gone; of several with one number all: who it was is not known."""
        now, before = (Counter(key[:2] for key in one) for one in (keys, self._before))
        changed = {name for name in before if now[name] < before[name]}
        self._before = {key: one for key, one in self._before.items() if key[:2] not in changed}
        self._rates = {key: one for key, one in self._rates.items() if key in self._before}

    def _teller(self, key: Key, told: Mapping[str, Any]) -> Teller:
        now = _telling(told)
        # What it has told was so then.
        ago = max(0.0, time.clock_gettime(time.CLOCK_MONOTONIC) - now.at_ms / 1000)
        before, self._before[key] = self._before.get(key), now
        is_news = before is None or before.at_ms != now.at_ms
        if is_news or ago > _TELLS_WITHIN_SECONDS or self._rates.get(key) is None:
            self._rates[key] = None if before is None else _per_second(before, now)
        return Teller(
            key=key,
            told_ago_seconds=ago,
            counters=now.counters,
            per_second=self._rates[key],
            readings=tuple(
                sorted(
                    (
                        Reading(one["thread_id"], ago + one["held_ms"] / 1000, _sql(one["sql"]))
                        for one in told["readings"]
                    ),
                    key=lambda reading: -reading.held_seconds,
                )
            ),
            statements=tuple(
                Statement(
                    process_id=key[0],
                    pid_namespace=key[1],
                    sql=_in_a_line(one["sql"]),
                    longest_seconds=one["longest_us"] / 1_000_000,
                    waited_seconds=one["waited_us"] / 1_000_000,
                    count=one["count"],
                    ago_seconds=ago + one["ago_ms"] / 1000,
                )
                for one in told["slowest"]
            ),
        )


def _telling(told: Mapping[str, Any]) -> _Telling:
    return _Telling(
        told["told_ms"], {harmless(name): count for name, count in told["counters"].items()}
    )


def _per_second(before: _Telling, now: _Telling) -> Mapping[str, float] | None:
    """What was counted in each second between two tellings; 0 for who has told nothing new."""
    names = now.counters.keys() - GAUGES
    if now.at_ms == before.at_ms:
        return dict.fromkeys(sorted(names), 0.0)
    seconds = (now.at_ms - before.at_ms) / 1000
    steps = {name: now.counters[name] - before.counters.get(name, 0) for name in sorted(names)}
    if seconds < 0 or any(step < 0 for step in steps.values()):
        return None  # another process has the number now, and has begun to count
    return {name: step / seconds for name, step in steps.items()}


def _sql(text: str | None) -> str | None:
    return None if text is None else _in_a_line(text)


def _in_a_line(text: str) -> str:
    line = harmless(" ".join(text.split()))
    return line if len(line) <= _SQL_AT_MOST else f"{line[: _SQL_AT_MOST - 1]}…"
