"""The files of a folder as a disk may hold them when the power fails, event by event.

What a folder lists is settled by a sync of the folder. Since then, files have come and gone in an
order, and the disk has noticed a beginning of it.
"""

import enum
from typing import NamedTuple

from tests.crash.files import File
from tests.crash.log import Event, Kind

THE_FOLDER = "."

Content = dict[str, bytes]
"""The files of a folder by name."""


class UnknowableError(Exception):
    """The recording does not say all that must be known."""


class Change(NamedTuple):
    """A file has come (``file``) or gone (``None``)."""

    number: int
    name: str
    file: File | None


class Mercy(enum.Flag):
    """What a disk may do beyond its duty."""

    NONE = 0
    JOURNAL = enum.auto()
    """A file's sync settles what came and went before it began as well.

    A file system with a journal does so; no standard says that it must.
    """
    RETRY = enum.auto()
    """What could not be synced is not forgotten: the next sync writes it."""
    EMPTY = enum.auto()
    """A file that was cut to nothing stays so, though its sync has failed."""


class Disk:
    """A folder, and what of it is settled."""

    def __init__(self, content: Content, mercy: Mercy = Mercy.NONE) -> None:
        self.names = {name: File(found) for name, found in content.items()}
        """What a process finds."""
        self.settled_names = dict(self.names)
        self.changes: list[Change] = []
        self.syncs = 0
        """How many syncs have begun and not ended."""
        self._by_inode: dict[int, File] = {}
        self._inodes: dict[str, int] = {}
        self._mercy = mercy
        self._folder_inode: int | None = None
        self._begun: dict[int, int] = {}
        self._number = 0

    def apply(self, event: Event) -> bool:
        """Has an event happen; whether that changes what the disk may hold."""
        self._number += 1
        match event.kind:
            case Kind.OPEN:
                return self._open(event)
            case Kind.WRITE:
                self._file(event).write(self._number, event.first, event.content)
            case Kind.TRUNCATE:
                self._file(event).truncate(self._number, event.first)
            case Kind.SYNC_BEGINS:
                self._begun[event.place] = self._number
                self.syncs += 1
                return False
            case Kind.SYNC_ENDS:
                self._end_sync(event)
            case Kind.UNLINK:
                name = event.content.decode()
                if self.names.pop(name, None) is None:
                    raise UnknowableError(f"{name} was removed, but nobody had made it")
                del self._inodes[name]
                self.changes.append(Change(self._number, name, None))
            case Kind.WRITABLE_MAP:
                raise UnknowableError("a file is written to through a mapping")
            case Kind.MARK:
                return False
        return True

    def _open(self, event: Event) -> bool:
        name = event.content.decode()
        if name == THE_FOLDER:
            self._folder_inode = event.file
            return False
        is_new = name not in self.names
        if is_new:
            if event.first:
                raise UnknowableError(f"{name} was made, but it is not empty")
            self.names[name] = File()
            self.changes.append(Change(self._number, name, self.names[name]))
        elif self._inodes.get(name, event.file) != event.file:
            raise UnknowableError(f"{name} is another file than before")
        self._inodes[name] = event.file
        self._by_inode[event.file] = self.names[name]
        return is_new

    def _file(self, event: Event) -> File:
        try:
            return self._by_inode[event.file]
        except KeyError:
            raise UnknowableError(f"what is inode {event.file}?") from None

    def _end_sync(self, event: Event) -> None:
        begun = self._begun.pop(event.first)
        self.syncs -= 1
        succeeded = event.second == 0
        is_of_folder = event.file == self._folder_inode
        if not is_of_folder:
            file = self._file(event)
            if succeeded or (Mercy.EMPTY in self._mercy and not file.current):
                file.sync(begun)
            elif Mercy.RETRY not in self._mercy:
                file.fail_sync(begun)
        if succeeded and (is_of_folder or Mercy.JOURNAL in self._mercy):
            while self.changes and self.changes[0].number < begun:
                self._settle(self.settled_names, self.changes.pop(0))

    @staticmethod
    def _settle(names: dict[str, File], change: Change) -> None:
        if change.file is None:
            names.pop(change.name, None)
        else:
            names[change.name] = change.file

    def listing(self, changes: int) -> dict[str, File]:
        """What the folder lists when the disk has noticed so many of the open changes."""
        if changes == len(self.changes):
            return self.names
        names = dict(self.settled_names)
        for change in self.changes[:changes]:
            self._settle(names, change)
        return names

    def current(self) -> Content:
        """What a process finds in the files."""
        return {name: bytes(file.current) for name, file in self.names.items()}
