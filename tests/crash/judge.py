"""Judges the images of a recording, and adds up what was found."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.crash import kept, shapes
from tests.crash.callers import Play
from tests.crash.disk import Disk, Mercy
from tests.crash.ledger import Found, Promises
from tests.crash.log import Event, Kind
from tests.crash.recording import Recording
from tests.crash.verdict import COPY, DATABASE, Opener, digest_of

_KEPT = 20
_SAVED = 2
"""Violations of one recording that are kept in files."""


class Violation(NamedTuple):
    """An image that does not hold what was promised."""

    play: Play
    point: int
    """After how many events."""
    image: shapes.Image
    what: str

    @property
    def kind(self) -> str:
        """What sort of thing is wrong."""
        return self.what.partition(":")[0]


@dataclass
class Tally:
    """What was looked at and found."""

    images: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By workload and profile: those that were not there before in the same recording."""
    shapes: Counter[str] = field(default_factory=Counter)
    """Different images of each shape; one may have several."""
    digests: set[bytes] = field(default_factory=set)
    """Of all images."""
    judged: int = 0
    """Images, with every moment at which one may be left."""
    recordings: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    """Faults and killings, by their names."""
    events: int = 0
    situations: Counter[str] = field(default_factory=Counter)
    """The same by what was going on."""
    wrong: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Violations by workload, profile and kind."""
    declared: Counter[str] = field(default_factory=Counter)
    """Violations that are known, and not Oxlite's."""
    violations: list[Violation] = field(default_factory=list)
    """The first of them."""

    @property
    def distinct(self) -> int:
        """How many images are different."""
        return len(self.digests)

    def add(self, other: "Tally") -> None:
        """Adds what another has found."""
        self.images += other.images
        self.digests |= other.digests
        self.shapes += other.shapes
        self.judged += other.judged
        self.recordings += other.recordings
        self.points += other.points
        self.events += other.events
        self.situations += other.situations
        self.wrong += other.wrong
        self.declared += other.declared
        self.violations += other.violations[: _KEPT - len(self.violations)]

    def violate(self, violation: Violation) -> None:
        """Notes a violation."""
        play = violation.play
        self.wrong[play.workload, play.profile, violation.kind] += 1
        if len(self.violations) < _KEPT:
            self.violations.append(violation)


class Judge:
    """Judges the images of one recording after the other."""

    def __init__(self, opener: Opener, folder: Path | None = None) -> None:
        self.opener = opener
        self.folder = folder
        """Where violations are kept, if anywhere."""

    def judge(
        self,
        recording: Recording,
        random_images: int,
        points: Callable[[int], bool] = lambda number: True,
        events: Iterable[Event] | None = None,
        is_enough: Callable[[Tally], bool] = lambda tally: False,
        mercy: Mercy = Mercy.NONE,
    ) -> Tally:
        """Judges a recording: at these points all systematic images, and so many random ones.

        The events are the recording's, unless the disk is to do otherwise than it was told.
        """
        play = recording.play
        tally = Tally(recordings=Counter({play.workload: 1}), events=len(recording.events))
        disk = Disk(recording.base, mercy)
        wrong = self.opener.learn(recording.final)
        promises = Promises(self.opener.final, play.is_durable)
        generator = random.Random(f"{play.seed} images")
        found: dict[bytes, tuple[Found, Found]] = {}
        shapes_seen: set[tuple[str, bytes]] = set()
        number = 0
        for number, event in enumerate(recording.events if events is None else events, 1):
            if is_enough(tally):
                break
            changed = promises.apply(event) if event.kind is Kind.MARK else disk.apply(event)
            if not changed or not points(number):
                continue
            for image in _images(disk, generator, random_images):
                tally.judged += 1
                digest = digest_of(image.content)
                if digest not in found:
                    found[digest] = self.opener.find(image.content, digest)
                    tally.images[play.workload, play.profile] += 1
                if (image.shape, digest) not in shapes_seen:
                    shapes_seen.add((image.shape, digest))
                    tally.shapes[image.shape] += 1
                    tally.situations.update(_situations(disk, image))
                ledger, copy = found[digest]
                what = promises.judge(ledger)
                if COPY in image.content:
                    what += promises.judge_copy(copy)
                if what:
                    tally.violate(Violation(play, number, image, "; ".join(what)))
        at_the_end = wrong + promises.at_the_end()
        if at_the_end:
            image = shapes.Image("the end, without a crash", recording.final)
            tally.violate(Violation(play, number, image, "; ".join(at_the_end)))
        tally.digests = set(found)
        return tally

    def keep(self, recording: Recording, tally: Tally) -> None:
        """Keeps the first violations in files."""
        for violation in tally.violations[:_SAVED] if self.folder else ():
            kept.save(self.folder, recording, violation.point, violation.image, violation.what)


def _images(disk: Disk, generator: random.Random, random_images: int) -> Iterator[shapes.Image]:
    yield from shapes.systematic(disk)
    if disk.changes or any(file.is_open for file in disk.names.values()):
        for _ in range(random_images):
            yield shapes.at_random(disk, generator)


def _situations(disk: Disk, image: shapes.Image) -> Iterator[str]:
    if disk.syncs:
        yield "a sync is under way"
    log = f"{DATABASE}-wal"
    if sum(change.name == log for change in disk.changes) > 1:
        yield "the log has gone and come again since the folder was synced"
    if len(image.content.get(log, b"")) > 32 and not disk.names[DATABASE].is_open:
        yield "a log, and a database that is settled"
    if disk.names.get(DATABASE) is not None and disk.names[DATABASE].is_open:
        yield "a checkpoint has not ended"
    if f"{DATABASE}-journal" in image.content:
        yield "a rollback journal"
