"""Calls that fail, and processes that are killed, at every place of the short workloads.

A fault is looked at in three ways: by what the callers were told, by what the files hold at the
end, and by what they may hold if the power fails soon after. A killed process leaves the page cache
behind, so its files must hold all that was acknowledged, whatever the profile.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from tests.crash.callers import SHARED, Play, Trouble
from tests.crash.disk import Mercy
from tests.crash.judge import Judge, Tally
from tests.crash.log import Kind
from tests.crash.recording import Player, Recording
from tests.crash.workloads import PROCESSES, SHORT, profiles_of
from tests.faults.kinds import FAULTS, Fault

KILL = -2
_NEVER = 1 << 40
_AT_ONCE = 6
"""Events after the fault behind each of which the power fails."""
_AFTER_A_FAILED_SYNC = 100
"""The same after a sync that has failed: what is wrong then shows when somebody begins anew."""
_NOW_AND_THEN = 25

# A lock that is never had makes each writer wait until its time is up, and nothing is written.
_ONCE_ONLY = {"lock", "shm-lock", "unlock", "shm-unlock"}

# Memory that is refused concerns no file; it has its own campaign.
_FAULTS = [fault for fault in FAULTS.values() if fault.call != "malloc"]
CALLS = sorted({fault.call for fault in _FAULTS})


class Declared(NamedTuple):
    """Something that SQLite does after a fault, and a disk that is merciful enough for it."""

    name: str
    calls: set[str]
    profiles: set[str]
    mercy: Mercy


DECLARED = [
    # unixSync: whatever keeps the folder from being opened or synced is passed over.
    Declared(
        "SQLite passes over a folder that cannot be opened or synced",
        {"open", "sync"},
        {"web", "durable", SHARED},
        Mercy.JOURNAL,
    ),
    # walCheckpoint: a log whose sync has failed is synced again by the next checkpoint, and then
    # believed. Where each commit is synced there is nothing in it that a checkpoint must settle.
    Declared(
        "SQLite syncs a log again whose sync has failed, and takes it for settled",
        {"sync"},
        {"web"},
        Mercy.RETRY,
    ),
    Declared("both of these", {"sync"}, {"web"}, Mercy.JOURNAL | Mercy.RETRY),
    # hasHotJournal: where the database has no pages the journal is deleted, whether or not the
    # rollback that cut it to nothing could be synced. A failed backup into a new file leaves that.
    Declared(
        "SQLite deletes the journal of an empty database that could not be synced",
        {"sync"},
        {"web", "durable", SHARED},
        Mercy.JOURNAL | Mercy.EMPTY,
    ),
]


def name_of(trouble: Trouble) -> str:
    """What it is called in a report."""
    if trouble.effect == KILL:
        return f"killed before {trouble.call}"
    (fault,) = (f for f in _FAULTS if (f.call, f.effect) == (trouble.call, trouble.effect))
    return f"{fault.name}, {'persistent' if trouble.is_persistent else 'once'}"


def _modes(fault: Fault) -> list[bool]:
    return [False] if fault.transient_only or fault.call in _ONCE_ONLY else [False, True]


def plays(player: Player, seed: int) -> Iterator[Play]:
    """Every fault and every killing at every place."""
    for workload in SHORT:
        for profile in profiles_of(workload):
            play = Play(workload, profile, seed)
            counts = counts_of(player, play)
            for call in CALLS:
                for first in range(1, counts[call] + 1):
                    yield replace(play, trouble=Trouble(call, first, False, KILL))
            for fault in _FAULTS:
                for is_persistent in _modes(fault):
                    for first in range(1, counts[fault.call] + 1):
                        trouble = Trouble(fault.call, first, is_persistent, fault.effect)
                        yield replace(play, trouble=trouble)


def killings_among(player: Player, seed: int, count: int) -> Iterator[Play]:
    """One of several processes is killed somewhere, while the others go on."""
    generator = random.Random(f"{seed} killings")
    for profile in ("durable", "web", SHARED):
        play = Play(PROCESSES, profile, seed)
        counts = counts_of(player, play)
        # The last calls may not come, depending on who meets whom.
        possible = [
            (call, first) for call in CALLS for first in range(1, counts[call] * 9 // 10 + 1)
        ]
        for call, first in generator.sample(possible, min(count, len(possible))):
            yield replace(play, trouble=Trouble(call, first, False, KILL))


def counts_of(player: Player, play: Play) -> dict[str, int]:
    """How many calls of each kind a workload makes."""
    recording = player.record(replace(play, trouble=Trouble("write", _NEVER, False, KILL)))
    # Of several processes, one counts.
    counts: Counter[str] = Counter()
    for said in recording.said("over"):
        assert isinstance(said["counts"], dict)
        counts.update(said["counts"])
    return counts


def judge(player: Player, judge: Judge, play: Play, random_images: int) -> Tally:
    """Plays with a fault, and judges what became of it."""
    assert play.trouble is not None
    recording = player.record(play)
    struck = _struck(recording)
    if struck is None:
        return Tally(points=Counter({"not met": 1}))

    has_failed = play.trouble.call == "sync" and play.trouble.effect != KILL
    at_once = _AFTER_A_FAILED_SYNC if has_failed else _AT_ONCE

    def points(number: int) -> bool:
        since = number - struck
        return since >= -1 and (since <= at_once or since % _NOW_AND_THEN == 0)

    tally = judge.judge(recording, random_images, points)
    for known in DECLARED if tally.wrong else ():
        if known.calls >= {play.trouble.call} and known.profiles >= {play.profile}:
            other = judge.judge(recording, random_images, points, mercy=known.mercy)
            if not other.wrong:
                tally.declared[known.name] += tally.wrong.total()
                tally.wrong.clear()
                tally.violations.clear()
                break
    tally.points[name_of(play.trouble)] += 1
    judge.keep(recording, tally)
    return tally


def _struck(recording: Recording) -> int | None:
    """After how many events the trouble began; not that of who was to leave a log behind."""
    struck = None
    for number, event in enumerate(recording.events, 1):
        if event.kind is not Kind.MARK:
            continue
        match json.loads(event.content)["what"]:
            case "left":
                struck = None
            case "struck" if struck is None:
                struck = number
    return struck
