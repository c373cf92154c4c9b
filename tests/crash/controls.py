"""Ways to do it wrong, each of which must be found out.

Some are mistakes of the process; some are disks that do not do what they say, made by leaving syncs
out of the log.
"""

import errno
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tests.crash.callers import SHARED, Play, Trouble
from tests.crash.judge import Judge, Tally
from tests.crash.log import Event, Kind
from tests.crash.recording import Player
from tests.crash.workloads import PROCESSES

_HEADER_BYTES = 32
_MOST_BYTES = 131_071
"""SQLite's VFS writes no more at once."""

Change = Callable[[list[Event]], list[Event]]


@dataclass(frozen=True)
class Control:
    """A mistake, and what must come of it."""

    name: str
    play: Play
    kinds: frozenset[str]
    """The kinds of violation of which at least one must be found."""
    change: Change = list


def _without_syncs(events: list[Event], is_wanted: Callable[[Event], bool]) -> list[Event]:
    left_out = {e.place for e in events if e.kind is Kind.SYNC_BEGINS and is_wanted(e)}
    return [
        event
        for event in events
        if not (event.kind is Kind.SYNC_BEGINS and event.place in left_out)
        and not (event.kind is Kind.SYNC_ENDS and event.first in left_out)
    ]


def without_syncs_of_headers(events: list[Event]) -> list[Event]:
    """The header of a log that begins again is not synced before the frames are written."""
    last: dict[int, Event] = {}
    headers = set()
    for event in events:
        if event.kind is Kind.WRITE:
            last[event.file] = event
        elif event.kind is Kind.SYNC_BEGINS and event.file in last:
            latest = last[event.file]
            if latest.first == 0 and len(latest.content) == _HEADER_BYTES:
                headers.add(event.place)
    assert headers
    return _without_syncs(events, lambda event: event.place in headers)


def _inodes(events: list[Event], is_named: Callable[[str], bool]) -> set[int]:
    return {e.file for e in events if e.kind is Kind.OPEN and is_named(e.content.decode())}


def without_syncs_of_logs(events: list[Event]) -> list[Event]:
    """No log is ever synced."""
    logs = _inodes(events, lambda name: name.endswith("-wal"))
    return _without_syncs(events, lambda event: event.file in logs)


def without_syncs_of_databases(events: list[Event]) -> list[Event]:
    """No database is ever synced."""
    databases = _inodes(events, lambda name: name.endswith(".db"))
    return _without_syncs(events, lambda event: event.file in databases)


def without_syncs_of_folders(events: list[Event]) -> list[Event]:
    """The folder is never synced."""
    folders = _inodes(events, lambda name: name == ".")
    return _without_syncs(events, lambda event: event.file in folders)


def with_unknown_called_failed(events: list[Event]) -> list[Event]:
    """Where nobody can know whether a transaction will be there, it is called failed."""
    is_any = any(b'"unknown"' in event.content for event in events if event.kind is Kind.MARK)
    assert is_any
    return [
        event._replace(content=event.content.replace(b'"unknown"', b'"failed"'))
        if event.kind is Kind.MARK
        else event
        for event in events
    ]


def with_syncs_that_begin_too_early(events: list[Event]) -> list[Event]:
    """What was committed last before a sync of the log began is taken for synced by it.

    As if the tickets were read once the sync had begun: it begins before the latest write here.
    """
    logs = _inodes(events, lambda name: name.endswith("-wal"))
    changed: list[Event] = []
    for event in events:
        place = len(changed)
        if event.kind is Kind.SYNC_BEGINS and event.file in logs:
            writes = (
                number
                for number in range(len(changed) - 1, -1, -1)
                if changed[number].kind is Kind.WRITE and changed[number].file == event.file
            )
            place = next(writes, place)
        changed.insert(place, event)
    return changed


def with_syncs_of_the_first_log(events: list[Event]) -> list[Event]:
    """The log that was there first is synced, whichever is there now."""
    logs = _inodes(events, lambda name: name.endswith("-wal"))
    first = next(event.file for event in events if event.file in logs)
    assert logs != {first}
    syncs = {Kind.SYNC_BEGINS, Kind.SYNC_ENDS}
    return [
        event._replace(file=first) if event.kind in syncs and event.file in logs else event
        for event in events
    ]


def without_renewals_of_logs(events: list[Event]) -> list[Event]:
    """A log of which a sync has failed is believed by whoever begins anew, as it reads.

    SQLite itself writes nothing but the header to the beginning of a log; the parts of a renewal
    follow one another.
    """
    logs = _inodes(events, lambda name: name.endswith("-wal"))
    renewals = set()
    ends: dict[int, int] = {}
    for event in events:
        if event.kind is not Kind.WRITE or event.file not in logs:
            continue
        length = len(event.content)
        is_first = event.first == 0 and length > _HEADER_BYTES
        if is_first or ends.pop(event.file, None) == event.first:
            renewals.add(event.place)
            ends[event.file] = event.first + length
    assert renewals
    return [event for event in events if event.place not in renewals]


def without_long_renewals_of_logs(events: list[Event]) -> list[Event]:
    """The same, of logs that are written in several parts."""
    changed = without_renewals_of_logs(events)
    logs = _inodes(events, lambda name: name.endswith("-wal"))
    longest = max(e.first + len(e.content) for e in events if e.file in logs and e.content)
    assert longest > _MOST_BYTES
    assert len(events) - len(changed) > 1
    return changed


_LOST = frozenset({"lost"})
_CORRUPT = frozenset({"corrupt", "unreadable"})
# So that a commit is not followed by a checkpoint at once.
_OFF = {"synchronous": "OFF", "wal_autocheckpoint": 40}
_NORMAL = {"synchronous": "NORMAL", "wal_autocheckpoint": 40}
_ENOUGH = 5

_A_COMMIT_IS_NOT_SYNCED = Trouble("sync", 7, False, errno.EIO)
_A_LATER_ONE_IS_NOT = Trouble("sync", 14, False, errno.EIO)

CONTROLS = [
    Control(
        "a commit that is unknown is called failed",
        Play("short", "durable", 9, trouble=_A_COMMIT_IS_NOT_SYNCED),
        frozenset({"failed and there"}),
        with_unknown_called_failed,
    ),
    Control("answered before COMMIT", Play("mixed", "durable", 1, is_answered_early=True), _LOST),
    Control("synchronous OFF", Play("mixed", "durable", 2, pragmas=_OFF), _LOST),
    Control("synchronous OFF corrupts", Play("mixed", "web", 3, pragmas=_OFF), _CORRUPT),
    Control("synchronous NORMAL", Play("mixed", "durable", 4, pragmas=_NORMAL), _LOST),
    Control(
        "the header of a log that begins again is not synced",
        Play("mixed", "web", 5),
        _CORRUPT | {"out of order", "in part"},
        without_syncs_of_headers,
    ),
    Control(
        "syncs of the log do nothing", Play("mixed", "durable", 6), _LOST, without_syncs_of_logs
    ),
    Control(
        "syncs of the database do nothing",
        Play("opened again", "durable", 7),
        _LOST | _CORRUPT,
        without_syncs_of_databases,
    ),
    Control(
        "syncs of the folder do nothing",
        Play("opened again", "durable", 8),
        _LOST,
        without_syncs_of_folders,
    ),
    Control(
        "shared: answered before COMMIT", Play("mixed", SHARED, 9, is_answered_early=True), _LOST
    ),
    Control(
        "shared: answered without a sync", Play("threads", SHARED, 10), _LOST, without_syncs_of_logs
    ),
    Control(
        "shared: tickets read after the sync has begun",
        Play(PROCESSES, SHARED, 11),
        _LOST,
        with_syncs_that_begin_too_early,
    ),
    Control(
        "shared: the log that was there first is synced",
        Play("opened again", SHARED, 12),
        _LOST,
        with_syncs_of_the_first_log,
    ),
    Control(
        "shared: an outsider at synchronous OFF",
        Play("beside an outsider", SHARED, 13),
        _LOST | _CORRUPT,
    ),
    Control(
        "shared: the header of a log that begins again is not synced",
        Play("single statements", SHARED, 21),
        _CORRUPT | {"out of order", "in part", "lost"},
        without_syncs_of_headers,
    ),
    Control(
        "shared: a log whose sync has failed is brought into the database as it reads",
        Play("short", SHARED, 22, trouble=_A_LATER_ONE_IS_NOT),
        _CORRUPT,
        without_renewals_of_logs,
    ),
    Control(
        "shared: the same with a long log",
        Play("begun again", SHARED, 23),
        _CORRUPT,
        without_long_renewals_of_logs,
    ),
    Control(
        "shared: who closes last brings a long log into the database before it is renewed",
        Play("renewed too late", SHARED, 24),
        _CORRUPT,
    ),
]


def judge(player: Player, judge: Judge, control: Control, random_images: int) -> Tally:
    """Does it wrong, and judges that."""
    recording = player.record(control.play)

    def is_enough(tally: Tally) -> bool:
        kinds: Counter[str] = Counter()
        for (_, _, kind), times in tally.wrong.items():
            kinds[kind] += times
        return max((kinds[kind] for kind in control.kinds), default=0) >= _ENOUGH

    events = control.change(recording.events)
    # Where somebody was to leave a log behind, the mistake is made after that.
    lefts = (n for n, e in enumerate(events) if e.kind is Kind.MARK and b'"left"' in e.content)
    first = next(lefts, 0)
    return judge.judge(recording, random_images, lambda number: number > first, events, is_enough)
