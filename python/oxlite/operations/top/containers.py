"""Processes of containers by the numbers that they have here.

A process tells the number that it has in its own PID namespace. Seen from a host it has another
one, and ``/proc`` knows both (``NSpid``, https://man7.org/linux/man-pages/man5/proc_pid_status.5.html).

Invariant: where two of them have the same number in their containers, neither is renamed.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from oxlite.operations.top.told import Key, Told

__all__ = ["numbered_here"]


def numbered_here(told: Told, process_ids: Collection[int]) -> Told:
    """What was told, by the numbers of those processes here that have told it.

    Args:
        told: By the numbers that they have where they are.
        process_ids: Of the processes that have the database open, as they are seen here.
    """
    elsewhere = [one.key for one in told.tellers if one.key[1] != "own"]
    if not elsewhere:
        return told
    there = {process_id: _number_there(process_id) for process_id in process_ids}
    numbers = Counter(there.values())
    keys = Counter(key[0] for key in elsewhere)
    here: dict[Key, Key] = {}
    for key in elsewhere:
        if numbers[key[0]] == keys[key[0]] == 1:
            (process_id,) = (one for one, number in there.items() if number == key[0])
            here[key] = process_id, "own", 0
    tellers = tuple(
        replace(
            one,
            key=here.get(one.key, one.key),
            statements=tuple(
                replace(
                    statement,
                    process_id=here.get(one.key, one.key)[0],
                    pid_namespace=here.get(one.key, one.key)[1],
                )
                for statement in one.statements
            ),
        )
        for one in told.tellers
    )
    hold = told.hold and replace(told.hold, key=here.get(told.hold.key, told.hold.key))
    return replace(told, tellers=tellers, hold=hold)


def _number_there(process_id: int) -> int | None:
    """The number of a process in its own PID namespace; None if that is this one, or unknown."""
    try:
        text = (Path("/proc") / str(process_id) / "status").read_text(errors="replace")
    except OSError:
        return None
    numbers = next(
        (line.split()[1:] for line in text.splitlines() if line.startswith("NSpid:")), []
    )
    return int(numbers[-1]) if len(numbers) > 1 else None
