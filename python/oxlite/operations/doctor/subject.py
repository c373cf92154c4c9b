"""What checks are given: the file as it lies there, who has it open, and its content.

A lock or a read mark that is seen once says little, since each statement takes one. So where any is
seen, it is looked at once more a moment later, and only what stays counts.
"""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from oxlite.operations.doctor.content import Content
from oxlite.operations.doctor.place import Place
from oxlite.operations.doctor.report import Finding
from oxlite.operations.doctor.schema import Schema, read_schema
from oxlite.operations.holders import Holder

__all__ = ["Check", "Inside", "Outside", "Subject"]


@dataclass(frozen=True)
class Subject:
    """A database, looked at from outside.

    Attributes:
        place: The file, and what is around it.
        profile: The profile that it is compared with.
        holders: Who has it open; None if that cannot be seen.
        place_later: The same a moment later, where somebody had locked something; else None.
        holders_later: The same.
        backups: The directory of its backups, if one is named.
    """

    place: Place
    profile: str
    holders: tuple[Holder, ...] | None
    place_later: Place | None = None
    holders_later: tuple[Holder, ...] | None = None
    backups: Path | None = None

    @property
    def is_open_elsewhere(self) -> bool:
        """Whether somebody may have it open: also where that cannot be seen."""
        return self.holders is None or bool(self.holders)

    @property
    def name(self) -> str:
        """The path as a shell takes it."""
        return shlex.quote(str(self.place.path))

    def beside(self, suffix: str) -> str:
        """The path of a file beside it, as a shell takes it."""
        return shlex.quote(str(self.place.beside(suffix)))


@dataclass(frozen=True)
class Inside(Subject):
    """A database that is open.

    Attributes:
        content: What can be asked of it.
    """

    content: Content = field(kw_only=True)

    @cached_property
    def schema(self) -> Schema:
        """Its tables and indexes, read once."""
        return read_schema(self.content)


Outside = Callable[[Subject], Iterator[Finding]]
"""A check that needs no content."""

Check = Callable[[Inside], Iterator[Finding]]
"""A check of the content."""
