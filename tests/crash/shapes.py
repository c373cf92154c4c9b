"""Which of the images that a disk may hold are looked at: systematic ones, and random ones.

There are too many to look at all. The systematic ones are those by which a log or a database has
been lost before: a hole, a header without its frames, frames without their header, one file
without the other.
"""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from tests.crash.disk import Content, Disk
from tests.crash.files import File, Size, Version


class Kept(NamedTuple):
    """What of a file is on the disk."""

    sectors: Mapping[int, Version]
    size_bytes: int


class Image(NamedTuple):
    """What the disk may hold."""

    shape: str
    content: Content


Keep = Callable[[str, File], Kept]


def nothing(file: File) -> Kept:
    """What is settled alone."""
    return Kept({}, len(file.settled))


def everything(file: File) -> Kept:
    """The file as the process saw it."""
    return _some(file, lambda _: True)


def _some(file: File, is_kept: Callable[[int], bool]) -> Kept:
    """The size as the process saw it, and some sectors; the others hold the oldest they may."""
    choices = file.choices()
    sectors = {n: found[-1] if is_kept(n) else found[0] for n, found in choices.items()}
    return Kept(sectors, len(file.current))


def _until(file: File, is_kept: Callable[[int], bool]) -> Kept:
    """The youngest versions and the youngest size of the events that are kept."""
    size = next((size for size in reversed(file.sizes) if is_kept(size.number)), None)
    sectors = {}
    for sector, found in file.choices(size.number if size else 0).items():
        if found:
            wanted = [version for version in found if is_kept(version.number)]
            sectors[sector] = wanted[-1] if wanted else found[0]
    return Kept(sectors, size.size_bytes if size else len(file.settled))


def _image(disk: Disk, shape: str, changes: int, keep: Keep) -> Image:
    content = {}
    for name, file in disk.listing(changes).items():
        kept = keep(name, file)
        content[name] = file.image(kept.sectors, kept.size_bytes)
    return Image(shape, content)


def systematic(disk: Disk) -> Iterator[Image]:
    """The images that are always looked at."""
    every = len(disk.changes)
    yield _image(disk, "everything lost", 0, lambda _, file: nothing(file))
    yield _image(disk, "everything kept", every, lambda _, file: everything(file))
    for changes in range(every):
        yield _image(disk, "files not noticed", changes, lambda _, file: everything(file))
        yield _image(disk, "files not removed", changes, lambda _, file: nothing(file))
    if every:
        yield _image(disk, "everything lost, files noticed", every, lambda _, file: nothing(file))
    for wanted, file in list(disk.names.items()):
        if not file.is_open:
            continue

        def with_this(
            shape: str, this: Kept, others: Callable[[File], Kept], wanted: str = wanted
        ) -> Image:
            def keep(name: str, one: File) -> Kept:
                return this if name == wanted else others(one)

            return _image(disk, shape, every, keep)

        yield with_this("this file alone", everything(file), nothing)
        yield with_this("all files but this", nothing(file), everything)
        yield with_this("size alone", _some(file, lambda _: False), everything)
        sectors = sorted(file.versions)
        if not sectors:
            continue
        first, second = sectors[0], sectors[min(1, len(sectors) - 1)]
        latest = max(versions[-1].number for versions in file.versions.values())
        last = [n for n in sectors if file.versions[n][-1].number == latest]
        beginning, end = set(last[: len(last) // 2]), set(last[len(last) // 2 :])
        for other in (everything, nothing):
            hole = _some(file, lambda n, first=first: n != first)
            yield with_this("hole at the first sector", hole, other)
            alone = _some(file, lambda n, last=last: n == last[-1])
            yield with_this("last sector alone", alone, other)
        torn = _some(file, lambda n, end=end: n not in end)
        yield with_this("torn, its beginning", torn, everything)
        torn = _some(file, lambda n, beginning=beginning: n not in beginning)
        yield with_this("torn, its end", torn, everything)
        if first == 0 and second != 0:
            old = _some(file, lambda n: n != 0)
            yield with_this("old header", old, everything)
            yield with_this("new header alone", _some(file, lambda n: n == 0), everything)
            alone = _some(file, lambda n, second=second: n == second)
            yield with_this("old header, one sector alone", alone, everything)


def at_random(disk: Disk, generator: random.Random) -> Image:
    """One of the others."""
    changes = generator.randint(0, len(disk.changes))
    match generator.randrange(4):
        case 0:
            return _image(
                disk, "sectors at random", changes, lambda _, file: _any(file, generator, None)
            )
        case 1:
            share = generator.choice((0.05, 0.3, 0.7, 0.95))
            return _image(
                disk, "sectors at random", changes, lambda _, file: _any(file, generator, share)
            )
        case 2:
            share = generator.random()
            lost: dict[int, bool] = {}
            return _image(
                disk,
                "writes at random",
                changes,
                lambda _, file: _until(
                    file, lambda n: lost.setdefault(n, generator.random() < share)
                ),
            )
        case _:
            # Each file by itself is as it was at some moment.
            return _image(
                disk, "files of other moments", changes, lambda _, file: _moment(file, generator)
            )


def _any(file: File, generator: random.Random, share: float | None) -> Kept:
    """Any version of each sector; or its youngest, with a probability."""
    # A file that is cut off early has little that could be wrong.
    size_bytes, moment = len(file.current), math.inf
    if generator.random() < 0.4:
        possible = [Size(0, len(file.settled)), *file.sizes]
        moment, size_bytes, _ = generator.choice(possible)
    sectors = {}
    for sector, found in file.choices(moment).items():
        if not found:
            continue
        if share is None:
            sectors[sector] = generator.choice(found)
        else:
            sectors[sector] = found[-1] if generator.random() < share else found[0]
    return Kept(sectors, size_bytes)


def _moment(file: File, generator: random.Random) -> Kept:
    numbers = {version.number for found in file.versions.values() for version in found}
    numbers |= {size.number for size in file.sizes}
    moment = generator.choice([0, *sorted(numbers)])
    return _until(file, lambda number: number <= moment)
