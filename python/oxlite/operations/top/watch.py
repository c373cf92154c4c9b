"""The watch: looks from outside, hears what is told, and joins both.

Invariant: what is not known is None; an age that was seen and not told is a lower bound.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from oxlite import harmless
from oxlite.operations.errors import OperationsError
from oxlite.operations.holders import Holder
from oxlite.operations.top.containers import numbered_here
from oxlite.operations.top.outside import Outside, OutsideView, ReadMark
from oxlite.operations.top.sample import (
    GAUGES,
    Line,
    Process,
    Reader,
    Sample,
    Statement,
    Wal,
    Writer,
)
from oxlite.operations.top.told import Key, Teller, Told, ToldView

__all__ = ["Watch", "check_interval", "watch"]

_INTERVAL_SECONDS: Final = (0.1, 3600.0)
_LISTEN_EVERY_SECONDS: Final = 0.1

# A process that has told of a snapshot and does nothing since may have ended that, unheard.
_BELIEVED_SECONDS: Final = 60.0

# Of all processes together; each tells a few.
_STATEMENTS_AT_MOST: Final = 20


class Watch:
    """Looks at a database again and again, as one process of the machine; it may be in use.

    It reads the WAL's index and header and ``/proc``, and locks nothing. It asks processes of
    Oxlite to tell what they do; they begin within about a second, when they next use the database.

    Args:
        path: An existing file.

    Raises:
        OperationsError: There is no such file, it may not be read, or it is no database.
    """

    def __init__(self, path: Path | str) -> None:
        self._outside = OutsideView(path)
        self._told = ToldView(self._outside.path)
        self._before: Outside | None = None
        self._behind: dict[tuple[object, ...], float] = {}
        self._writing: dict[tuple[object, ...], float] = {}

    def look(self) -> Sample:
        """Look once. The first sample has no rates, since these are between two looks.

        Raises:
            OperationsError: The file is gone, may not be read any more, or is no database now.
        """
        seen = self._outside.look()
        told = numbered_here(self._told.look(), [one.process_id for one in seen.holders or ()])
        now = time.monotonic()
        before = self._before
        elapsed = None if before is None else seen.counted_at - before.counted_at
        changes = seen.index.changes if seen.index else seen.changes
        committed = _committed(self._before, seen)
        readers = self._readers(seen, told, now)
        sample = Sample(
            path=harmless(str(self._outside.path)),
            at_epoch_seconds=time.time(),
            since_before_seconds=elapsed,
            journal_mode=seen.journal_mode,
            size_bytes=seen.size_bytes,
            commits=changes,
            commits_per_second=None if committed is None or not elapsed else committed / elapsed,
            wal=_wal(seen),
            writer=self._writer(seen, told, now),
            line=_line(seen, told),
            readers=readers,
            statements=_statements(told),
            processes=_processes(seen, told),
            counters=_sum(one.counters for one in told.tellers),
            per_second=_rates(told),
            notes=seen.notes + tuple(_notes(seen, told)),
        )
        self._before = seen
        return sample

    def wait(self, seconds: float) -> None:
        """Wait before the next look, and note meanwhile who has begun to tell what he does."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            time.sleep(min(left, _LISTEN_EVERY_SECONDS))
            self._told.note_beginnings()

    def close(self) -> None:
        """End the watch; processes tell nothing more unless somebody else watches."""
        self._told.close()
        self._outside.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def _readers(self, seen: Outside, told: Told, now: float) -> tuple[Reader, ...]:
        commands = _commands(seen)
        tellers = {one.key: one for one in told.tellers}
        behind: dict[tuple[object, ...], float] = {}
        found: list[Reader] = []
        for process_id in dict.fromkeys(mark.process_id for mark in seen.read_marks):
            marks = [mark for mark in seen.read_marks if mark.process_id == process_id]
            for mark in marks:
                if mark.frames_behind:
                    key = process_id, *mark.key
                    behind[key] = self._behind.get(key, now)
            marks = [mark for mark in marks if not mark.is_writers]
            own = tellers.pop((process_id, "own", 0), None)
            if own is not None and own.readings:
                found += _told_readers(own, commands.get(process_id), marks)
                continue
            for mark in marks:
                since = behind.get((process_id, *mark.key))
                found.append(
                    Reader(
                        process_id=process_id,
                        pid_namespace="own",
                        command=commands.get(process_id),
                        thread_id=None,
                        read_mark=mark.number,
                        frames_behind=mark.frames_behind,
                        age_seconds=None if since is None else now - since,
                        is_at_least=since is not None,
                        sql=None,
                    )
                )
        # Whose locks can be seen, and has none, has ended what it told; of others one cannot know.
        for teller in tellers.values():
            is_seen = teller.key[1] == "own" and teller.key[0] in commands
            if not is_seen and teller.told_ago_seconds < _BELIEVED_SECONDS:
                found += _told_readers(teller, None, [])
        self._behind = behind
        return tuple(
            sorted(found, key=lambda one: (-(one.age_seconds or 0), -(one.frames_behind or 0)))
        )

    def _writer(self, seen: Outside, told: Told, now: float) -> Writer | None:
        commands = _commands(seen)
        hold = told.hold
        if hold is not None:
            process_id, namespace, _ = hold.key
            if namespace != "own" and seen.writers:  # its number here, by its lock
                process_id, namespace = seen.writers[0].process_id, "own"
            return Writer(
                process_id=process_id,
                pid_namespace=namespace,
                command=commands.get(process_id) if namespace == "own" else None,
                thread_id=hold.thread_id,
                held_seconds=hold.held_seconds,
                is_at_least=False,
                sql=hold.sql,
            )
        if not seen.writers:
            self._writing = {}
            return None
        writer = seen.writers[0]
        # A commit meanwhile is the end of a transaction: this is another one.
        changes = seen.index.changes if seen.index else seen.changes
        key = writer.process_id, changes
        since = self._writing.get(key, now)
        self._writing = {key: since}
        return Writer(
            process_id=writer.process_id,
            pid_namespace="own",
            command=writer.command,
            thread_id=None,
            held_seconds=now - since,
            is_at_least=True,
            sql=None,
        )


def watch(
    path: Path | str, *, interval_seconds: float = 2.0, count: int | None = None
) -> Iterator[Sample]:
    """Samples of a database, each an interval after the one before.

    The first comes after an interval as well, so that all have rates. The watch ends with the
    iterator.

    Args:
        path: An existing file. It may be in use.
        interval_seconds: From 0.1 to 3600.
        count: How many; None is without end.

    Raises:
        OperationsError: There is no such file, it may not be read, it is no database, or it was
            deleted while it was watched; or the interval is none.
    """
    check_interval(interval_seconds)
    with Watch(path) as one:
        one.look()
        while count is None or count > 0:
            one.wait(interval_seconds)
            yield one.look()
            count = None if count is None else count - 1


def check_interval(seconds: float) -> None:
    """See that it is an interval.

    Raises:
        OperationsError: It is none.
    """
    shortest, longest = _INTERVAL_SECONDS
    if not (math.isfinite(seconds) and shortest <= seconds <= longest):
        raise OperationsError(
            f"an interval is {shortest:g} to {longest:g} seconds, and not {seconds:g}"
        )


def _committed(before: Outside | None, now: Outside) -> int | None:
    """How many transactions were committed between two looks."""
    if before is None:
        return None
    if now.index is not None and before.index is not None:
        return now.index.commits_since(before.index)
    if now.index is not None:
        # Made meanwhile; else it could not be read before.
        return None if before.has_index_file else now.index.changes
    if now.changes is None or before.changes is None:
        return None
    return max(0, now.changes - before.changes)


def _wal(seen: Outside) -> Wal | None:
    if seen.index is None:
        return None
    return Wal(
        size_bytes=seen.wal_bytes,
        page_bytes=seen.index.page_bytes,
        frames=seen.index.frames,
        checkpointed_frames=seen.index.checkpointed_frames,
        begun_anew=seen.sequence,
        is_checkpointing=seen.is_checkpointing,
    )


def _line(seen: Outside, told: Told) -> Line:
    waiting: int | None = None
    if seen.gate is not None:
        writing = {one.process_id for one in seen.writers}
        waiting = len(seen.gate.waiting)
        waiting += seen.gate.head is not None and seen.gate.head not in writing
    return Line(
        processes=waiting,
        threads=sum(one.counters.get("waiting", 0) for one in told.tellers)
        if told.tellers
        else None,
        head_process_id=None if seen.gate is None else seen.gate.head,
    )


def _told_readers(teller: Teller, command: str | None, marks: list[ReadMark]) -> Iterator[Reader]:
    """Its connections; the oldest of them is the one that holds the oldest mark."""
    process_id, namespace, _ = teller.key
    oldest = max(marks, key=lambda mark: mark.frames_behind, default=None)
    for number, reading in enumerate(teller.readings):
        mark = oldest if number == 0 else None
        yield Reader(
            process_id=process_id,
            pid_namespace=namespace,
            command=command if namespace == "own" else None,
            thread_id=reading.thread_id,
            read_mark=mark.number if mark else None,
            frames_behind=mark.frames_behind if mark else None,
            age_seconds=reading.held_seconds,
            is_at_least=False,
            sql=reading.sql,
        )


def _statements(told: Told) -> tuple[Statement, ...]:
    found = [statement for teller in told.tellers for statement in teller.statements]
    found.sort(key=lambda statement: -statement.longest_seconds)
    return tuple(found[:_STATEMENTS_AT_MOST])


def _processes(seen: Outside, told: Told) -> tuple[Process, ...] | None:
    if seen.holders is None and not told.tellers:
        return None
    tellers: dict[Key, Teller] = {one.key: one for one in told.tellers}
    found = []
    for holder in seen.holders or ():
        teller = tellers.pop((holder.process_id, "own", 0), None)
        found.append(
            Process(
                process_id=holder.process_id,
                pid_namespace="own",
                command=holder.command,
                does=tuple(_does(holder, seen)),
                tells=teller is not None,
                told_ago_seconds=teller.told_ago_seconds if teller else None,
                counters=teller.counters if teller else {},
                per_second=teller.per_second if teller else None,
            )
        )
    # Another user's, another container's, or one that has just closed it.
    for (process_id, namespace, _), teller in tellers.items():
        found.append(
            Process(
                process_id=process_id,
                pid_namespace=namespace,
                command=None,
                does=(),
                tells=True,
                told_ago_seconds=teller.told_ago_seconds,
                counters=teller.counters,
                per_second=teller.per_second,
            )
        )
    return tuple(found)


def _does(holder: Holder, seen: Outside) -> Iterator[str]:
    number = holder.process_id
    if any(one.process_id == number for one in seen.writers):
        yield "writes"
    if seen.gate is not None:
        if seen.gate.head == number:
            yield "at the head"
        if number in seen.gate.waiting:
            yield "in line"
    if any(lock.is_checkpoint_lock for lock in holder.locks):
        yield "checkpoints"
    if any(mark.process_id == number and not mark.is_writers for mark in seen.read_marks):
        yield "reads"
    if holder.is_stopped:
        yield "stopped"
    if holder.is_of_deleted:
        yield "deleted file"


def _commands(seen: Outside) -> Mapping[int, str]:
    return {one.process_id: one.command for one in seen.holders or ()}


def _sum(counted: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    total: dict[str, int] = {}
    for counters in counted:
        for name, count in counters.items():
            total[name] = total.get(name, 0) + count
    # Each tells how long the one WAL is.
    total.pop("wal_frames", None)
    return total


def _rates(told: Told) -> Mapping[str, float] | None:
    known = [one.per_second for one in told.tellers if one.per_second is not None]
    if not known:
        return None
    names = sorted({name for rates in known for name in rates} - GAUGES)
    return {name: sum(rates.get(name, 0.0) for rates in known) for name in names}


def _notes(seen: Outside, told: Told) -> Iterator[str]:
    if told.note is not None:
        yield told.note
    elif seen.holders and not told.tellers:
        yield (
            "Nobody tells what he does: these processes have done nothing since this watch has"
            " begun, or use another SQLite, or a profile that tells nothing (stock, untrusted)."
        )
