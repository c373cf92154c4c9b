"""What must be left in the caches, whoever was killed.

It runs in a process of its own, which opens the files as anybody does.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from tests.cache_kills.board import KEYS, SLOTS, TARGETS, Adding, Board
from tests.cache_kills.values import (
    COUNTERS,
    added_key,
    computed_key,
    number_in,
    own_key,
    wrong_of,
)
from tests.cache_kills.worker import LIMITED, WITHOUT_LIMIT, AnyCache, opened
from tests.kill_campaigns import WrongError

from oxlite import sqlite3


@dataclass
class Bounds:
    """What is known of those who were killed.

    Attributes:
        least: For each counter, the steps that were acknowledged.
        most: The same, and those that were begun.
        adding: For each key of the round that was added, lives that were killed, and how far they
            had come.
    """

    least: list[int] = field(default_factory=lambda: [0] * len(COUNTERS))
    most: list[int] = field(default_factory=lambda: [0] * len(COUNTERS))
    adding: list[list[tuple[int, Adding]]] = field(
        default_factory=lambda: [[] for _ in range(TARGETS)]
    )


def judge(folder: Path, board: Board, bounds: Bounds) -> None:
    """Look at all while nobody else is there.

    Raises:
        WrongError: Something is not as it should be.
    """
    with opened(folder, WITHOUT_LIMIT) as cache, opened(folder, LIMITED) as limited:
        wrong = [
            *_counters(cache, board, bounds),
            *_added(cache, board, bounds),
            *_computed(cache, board),
            *_own(cache, board, is_limited=False),
            *_own(limited, board, is_limited=True),
            *_listed(cache, board),
        ]
        for statistics in (cache.stats(), limited.stats()):
            if statistics.failures or statistics.resets:
                wrong.append(f"a failure: {statistics}")
    for name in (WITHOUT_LIMIT, LIMITED):
        with closing(sqlite3.connect(folder / name)) as connection:
            checked = connection.execute("PRAGMA integrity_check").fetchall()
            if checked != [("ok",)]:
                wrong.append(f"corrupt: {checked}")
    if wrong:
        raise WrongError("; ".join(wrong[:5]))


def _counters(cache: AnyCache, board: Board, bounds: Bounds) -> Iterator[str]:
    for index, counter in enumerate(COUNTERS):
        # Nobody may have come so far as to add it.
        total = cache.get(counter, 0)
        if not bounds.least[index] <= total <= bounds.most[index]:
            yield f"{counter} is {total}, not {bounds.least[index]} to {bounds.most[index]}"
        board.found[index] = total


def _added(cache: AnyCache, board: Board, bounds: Bounds) -> Iterator[str]:
    for number, killed in enumerate(bounds.adding):
        said = [*killed, *((slot.life, Adding(slot.adding[number])) for slot in board.slots)]
        winners = {life for life, how in said if how is Adding.WON}
        if len(winners) > 1:
            yield f"{added_key(number)!r} was added by {winners}"
        key = added_key(board.target(number))
        value = cache.get(key)
        if value is None:
            if any(how in (Adding.WON, Adding.LOST) for _, how in said):
                yield f"lost: {key!r}"
            continue
        # Nobody else may have, but who was killed before he was told.
        possible = winners or {life for life, how in killed if how is Adding.BEGUN}
        if number_in(key, value) not in possible:
            yield f"{key!r} is {str(value)[:60]!r}, and was added by one of {possible}"


def _computed(cache: AnyCache, board: Board) -> Iterator[str]:
    for number in range(TARGETS):
        key = computed_key(board.target(number))
        authors = {slot.computed[number] for slot in board.slots} - {0}
        if len(authors) > 1:
            yield f"{key!r} was by each of {authors}"
        value = cache.get(key)
        if authors and number_in(key, value) not in authors:
            yield f"{key!r} is {str(value)[:60]!r}, and was by {authors}"
        if value is not None and number_in(key, value) is None:
            yield f"another's: {key!r} has {str(value)[:60]!r}"


def _own(cache: AnyCache, board: Board, *, is_limited: bool) -> Iterator[str]:
    for number, slot in enumerate(board.slots):
        pairs = slot.limited if is_limited else slot.own
        keys = [own_key(number, index) for index in range(KEYS)]
        found = cache.get_many(keys)
        for index, key in enumerate(keys):
            bounds = pairs.acknowledged[index], pairs.begun[index]
            for value in (cache.get(key), found.get(key)):
                if what := wrong_of(key, value, *bounds, may_miss=is_limited):
                    yield what


def _listed(cache: AnyCache, board: Board) -> Iterator[str]:
    """Each key once, and all that have a value."""
    keys = list(cache)
    if len(set(keys)) != len(keys) or len(keys) != len(cache):
        yield f"{len(keys)} keys are listed, {len(set(keys))} of them different, of {len(cache)}"
    possible = {
        *COUNTERS,
        *(own_key(slot, index) for slot in range(SLOTS) for index in range(KEYS)),
        *(
            made(number)
            for made in (added_key, computed_key)
            for number in range(board.target(TARGETS))
        ),
    }
    if not possible >= set(keys):
        yield f"nobody has set {sorted(set(keys) - possible)[:3]}"
