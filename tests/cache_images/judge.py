"""Judges the images of a recording, and adds up what was found."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from tests.cache_images.history import History
from tests.cache_images.recording import Recording
from tests.cache_images.verdict import Opener
from tests.cache_images.workloads import Play
from tests.crash import shapes
from tests.crash.disk import Disk
from tests.crash.log import Kind
from tests.crash.verdict import digest_of

from oxlite._native import Seals

_KEPT: Final = 20
_WITHOUT_SEALS_EACH: Final = 8
"""Of so many images the rows of one are looked at without seals, too."""


class Violation(NamedTuple):
    """An image with which something is wrong."""

    play: Play
    point: int
    image: shapes.Image
    digest: bytes
    what: str


@dataclass
class Tally:
    """What was looked at and found."""

    digests: set[bytes] = field(default_factory=set)
    images: Counter[str] = field(default_factory=Counter)
    """Of each workload: those that were not there before in the same recording."""
    shapes: Counter[str] = field(default_factory=Counter)
    recordings: Counter[str] = field(default_factory=Counter)
    events: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    values: int = 0
    raised: int = 0
    without_seals: int = 0
    """Images whose rows were looked at without seals."""
    wrong_without_seals: int = 0
    """Those of them with a value that its key never had."""
    wrong: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Violations by workload and kind."""
    violations: list[Violation] = field(default_factory=list)
    """The first of them."""

    @property
    def distinct(self) -> int:
        """How many images are different."""
        return len(self.digests)

    def add(self, other: "Tally") -> None:
        """Adds what another has found."""
        self.digests |= other.digests
        for name in ("images", "shapes", "recordings", "outcomes", "wrong"):
            getattr(self, name).update(getattr(other, name))
        for name in ("events", "values", "raised", "without_seals", "wrong_without_seals"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.violations += other.violations[: _KEPT - len(self.violations)]

    def violate(self, violation: Violation) -> None:
        """Notes a violation."""
        self.wrong[violation.play.workload, violation.what.partition(":")[0]] += 1
        if len(self.violations) < _KEPT:
            self.violations.append(violation)


def judge(
    recording: Recording, opener: Opener, random_images: int, share: float | None = None
) -> Tally:
    """Judges a recording: at some moments all systematic images, and so many random ones.

    Args:
        recording: What was done.
        opener: Opens images.
        random_images: How many random ones.
        share: Of the moments, so many are looked at; by default as many as the workload says.
    """
    play = recording.play
    share = play.plan.share if share is None else share
    tally = Tally(recordings=Counter({play.workload: 1}), events=len(recording.events))
    disk = Disk(recording.base)
    history = History(play.seed)
    generator = random.Random(f"{play.seed} images")
    seen: set[tuple[str, bytes]] = set()
    for point, event in enumerate(recording.events, 1):
        if event.kind is Kind.MARK:
            history.apply(event)
            continue
        if not disk.apply(event) or generator.random() >= share:
            continue
        for image in _images(disk, generator, random_images):
            digest = digest_of(image.content)
            if (image.shape, digest) not in seen:
                seen.add((image.shape, digest))
                tally.shapes[image.shape] += 1
            if digest not in tally.digests:
                tally.digests.add(digest)
                _one(tally, opener, history, Violation(play, point, image, digest, ""))
    return tally


def _one(tally: Tally, opener: Opener, history: History, about: Violation) -> None:
    play, image, digest = about.play, about.image, about.digest
    found = opener.find(play, history, image.content, digest)
    tally.images[play.workload] += 1
    tally.values += found.values
    tally.raised += found.raised
    if found.resets:
        tally.outcomes["noticed to be damaged, and emptied"] += 1
    elif found.failures:
        tally.outcomes["a call failed, and the next one did not"] += 1
    else:
        tally.outcomes["read as it is" if found.values else "empty"] += 1
    if found.wrong:
        tally.violate(about._replace(what="; ".join(found.wrong[:3])))
    if digest[2] % _WITHOUT_SEALS_EACH == 0 and not play.has_secret:
        tally.without_seals += 1
        rows = opener.rows(image.content)
        tally.wrong_without_seals += any(_is_mixed_up(history, *row) for row in rows)


def _is_mixed_up(history: History, key: object, expires_at: object, value: object) -> bool:
    """Whether a row has a value that its key never had."""
    if not isinstance(key, str):
        return True
    if isinstance(value, bytes) and isinstance(expires_at, int):
        return Seals([]).open(key, expires_at, value) is None
    return bool(history.wrong(key, value))


def _images(disk: Disk, generator: random.Random, random_images: int) -> Iterator[shapes.Image]:
    yield from shapes.systematic(disk)
    for _ in range(random_images):
        yield shapes.at_random(disk, generator)


def keep(folder: Path, violation: Violation) -> Path:
    """Keeps the files of an image, to be looked at; where."""
    name = f"{violation.play.workload}-{violation.play.seed}-{violation.point}"
    place = folder / f"{name}-{violation.digest.hex()}"
    place.mkdir(parents=True, exist_ok=True)
    for file, content in violation.image.content.items():
        (place / file).write_bytes(content)
    (place / "what").write_text(f"{violation.image.shape}\n{violation.what}\n")
    return place
