"""A registry: the one way in which workloads and drivers are added by name.

Invariants: a name is registered once (a second one is a mistake of the
programmer, so a ``ValueError``); iteration follows the order of registration,
which is the order of rows in a report; an unknown name asked for by the user
is a :class:`~oxlite.bench.errors.UsageError` with the nearest name suggested.
"""

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from oxlite.bench.errors import unknown


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """The name, unique in its registry."""
        ...


Entry = TypeVar("Entry", bound=Named)


class Registry(Generic[Entry]):
    """Entries of one kind by name, in order of registration."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, Entry] = {}

    def add(self, entry: Entry) -> Entry:
        """Register ``entry`` under its own name and return it.

        Raises:
            ValueError: the name is taken.
        """
        if entry.name in self._entries:
            raise ValueError(f"the {self.kind} {entry.name!r} is registered twice")
        self._entries[entry.name] = entry
        return entry

    def get(self, name: str) -> Entry:
        """The entry called ``name``.

        Raises:
            UsageError: nothing is called so; the message suggests the nearest name.
        """
        try:
            return self._entries[name]
        except KeyError:
            raise unknown(self.kind, name, self._entries) from None

    def names(self) -> tuple[str, ...]:
        """All names, in order of registration."""
        return tuple(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        """The entries, in order of registration."""
        return iter(self._entries.values())

    def __contains__(self, name: object) -> bool:
        """Whether something is registered under ``name``."""
        return name in self._entries
