"""A file as a disk may hold it when the power fails.

A sync settles what was written before it began. What was written since stays open: each sector of
512 bytes holds any version that it has had, independently of all others, and the size is any that
the file has had. A sector holds a version whole: that is the powersafe overwrite that SQLite, on
this system, takes for granted (https://sqlite.org/psow.html).

A file that is cut loses what was behind the cut in one go: either the disk has noticed, and reads
zeros there until something is written again, or it has not, and none of what was written there
later is there yet. File systems free the blocks, and give others, together with the size.

A sync that fails settles nothing, and nothing that was written before it is settled by a later
one: the kernel reports a failed write-back once and forgets what it was about. Only what is written
again can be synced again.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

SECTOR_BYTES = 512


class Version(NamedTuple):
    """What a sector has held since some event; ``None`` for what is settled."""

    number: int
    content: bytes | None


class Size(NamedTuple):
    """How long the file was since some event, and from which sector on it was cut then."""

    number: int
    size_bytes: int
    cut: int | None = None


SETTLED = Version(0, None)

Choices = Mapping[int, list[Version]]
"""What each open sector may hold, the oldest first."""


class File:
    """A file's settled content, and what is open."""

    def __init__(self, content: bytes = b"") -> None:
        self.settled = bytearray(content)
        self.current = bytearray(content)
        """What a process reads from it."""
        self.versions: dict[int, list[Version]] = {}
        """What is open, by the number of the sector; the oldest first."""
        self.sizes: list[Size] = []
        self._failed_before = 0

    def write(self, number: int, offset: int, content: bytes) -> None:
        """Somebody writes."""
        end = offset + len(content)
        if len(self.current) < end:
            self.current.extend(bytes(end - len(self.current)))
            self.sizes.append(Size(number, end))
        self.current[offset:end] = content
        self._note(number, offset // SECTOR_BYTES, -(-end // SECTOR_BYTES))

    def truncate(self, number: int, size_bytes: int) -> None:
        """Somebody makes it shorter, or longer."""
        before = len(self.current)
        self.current[size_bytes:] = bytes(max(0, size_bytes - before))
        if size_bytes < before:
            first = size_bytes // SECTOR_BYTES
            # It may have been longer before, and cut already.
            known = max(self.versions, default=-1) + 1
            self._note(number, first, max(-(-before // SECTOR_BYTES), known))
            self.sizes.append(Size(number, size_bytes, first))
        else:
            self.sizes.append(Size(number, size_bytes))

    def _note(self, number: int, first: int, behind: int) -> None:
        for sector in range(first, behind):
            start = sector * SECTOR_BYTES
            content = bytes(self.current[start : start + SECTOR_BYTES])
            version = Version(number, content.ljust(SECTOR_BYTES, b"\0"))
            self.versions.setdefault(sector, []).append(version)

    def sync(self, begun: int) -> None:
        """A sync that began there has succeeded."""
        while self.sizes and self.sizes[0].number < begun:
            number, size_bytes, cut = self.sizes.pop(0)
            self.settled[size_bytes:] = bytes(max(0, size_bytes - len(self.settled)))
            if cut is not None:
                self._forget(number, cut)
        for sector, versions in list(self.versions.items()):
            written = [version for version in versions if version.number < begun]
            if written and written[-1].number >= self._failed_before:
                content = written[-1].content or b""
                start = sector * SECTOR_BYTES
                room = max(0, min(SECTOR_BYTES, len(self.settled) - start))
                self.settled[start : start + room] = content[:room]
                del versions[: len(written)]
                if not versions:
                    del self.versions[sector]

    def _forget(self, number: int, cut: int) -> None:
        """What was behind a cut that is settled cannot come back."""
        for sector, versions in self.versions.items():
            if sector >= cut:
                versions[:] = [version for version in versions if version.number >= number]

    def fail_sync(self, begun: int) -> None:
        """A sync that began there has failed."""
        self._failed_before = max(self._failed_before, begun)

    @property
    def is_open(self) -> bool:
        """Whether anything of it is open."""
        return bool(self.versions or self.sizes)

    def choices(self, moment: float = math.inf) -> Choices:
        """What the open sectors may hold where the disk has noticed the size of some moment."""
        cuts = [size for size in self.sizes if size.cut is not None]
        if not cuts:
            return {sector: [SETTLED, *found] for sector, found in self.versions.items()}
        choices = {}
        for sector, found in self.versions.items():
            numbers = [size.number for size in cuts if size.cut is not None and sector >= size.cut]
            first = max((number for number in numbers if number <= moment), default=0)
            behind = min((number for number in numbers if number > moment), default=math.inf)
            settled = [] if first else [SETTLED]
            choices[sector] = settled + [one for one in found if first <= one.number < behind]
        return choices

    def image(self, chosen: Mapping[int, Version], size_bytes: int) -> bytes:
        """The content with these versions of sectors, at this size."""
        room = max(size_bytes, len(self.settled))
        image = self.settled.ljust(-(-room // SECTOR_BYTES) * SECTOR_BYTES, b"\0")
        for sector, version in chosen.items():
            start = sector * SECTOR_BYTES
            if start < size_bytes and version.content is not None:
                image[start : start + SECTOR_BYTES] = version.content
        return bytes(image[:size_bytes])
