"""The ladder: settings added one after the other, each step on top of those before it.

Every step is climbed by one thread with one connection. Until ``prepared`` the driver
keeps no statement, so each insert prepares its own; from ``by_10`` on, several rows
share a transaction, which no setting replaces.

The published figures are from another machine and another language.

Invariant: the steps are those of the axis ``step``, in its order.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from oxlite.bench.drivers.pragmas import Setting

FULL: Setting = ("synchronous", "FULL", 2)
GIBIBYTE_IN_KIB = 1 << 20


@dataclass(frozen=True)
class Step:
    """A step, with everything that the ones before it have added.

    Attributes:
        name: its name on the axis.
        added: what it adds, for a reader.
        journal: the journal that the file has.
        settings: the pragmas, in the order in which they are set.
        prepared: whether prepared statements are kept.
        rows: how many make a transaction; ``None`` for all there is time for.
        published: inserts per second, where that was published.
    """

    name: str
    added: str
    journal: str = "rollback"
    settings: tuple[Setting, ...] = ()
    prepared: bool = False
    rows: int | None = 1
    published: str = ""

    def expected(self) -> tuple[Setting, ...]:
        """What must be in force; SQLite's own default too, where the ladder relies on it."""
        is_set = any(name == FULL[0] for name, _, _ in self.settings)
        return self.settings if is_set else (FULL, *self.settings)

    def then(self, name: str, added: str, *settings: Setting, **changes: object) -> "Step":
        """The step above this one."""
        fresh = {"name": name, "added": added, "published": ""}
        return replace(
            self,
            settings=(*self.settings, *settings),
            **{**fresh, **changes},  # type: ignore[arg-type]
        )


def _ladder() -> tuple[Step, ...]:
    defaults = Step("defaults", "SQLite's own settings", published="756")
    wal = defaults.then("wal", "journal_mode=WAL", journal="wal", published="~2,500")
    normal = wal.then(
        "normal", "synchronous=NORMAL", ("synchronous", "NORMAL", 1), published="~25,000"
    )
    temp_store = normal.then("temp_store", "temp_store=MEMORY", ("temp_store", "MEMORY", 2))
    exclusive = temp_store.then(
        "exclusive", "locking_mode=EXCLUSIVE", ("locking_mode", "EXCLUSIVE", "exclusive")
    )
    cache = exclusive.then(
        "cache", "cache_size of 1 GiB", ("cache_size", f"-{GIBIBYTE_IN_KIB}", -GIBIBYTE_IN_KIB)
    )
    prepared = cache.then("prepared", "prepared statements", prepared=True)
    by_10 = prepared.then("by_10", "transactions of 10", rows=10)
    by_100 = by_10.then("by_100", "transactions of 100", rows=100)
    at_once = by_100.then("at_once", "one transaction", rows=None)
    return (
        defaults, wal, normal, temp_store, exclusive, cache, prepared, by_10, by_100, at_once,
    )  # fmt: skip


LADDER: Mapping[str, Step] = {step.name: step for step in _ladder()}
"""All steps by name, from the bottom."""


def below(name: str) -> str | None:
    """The step below; ``None`` at the bottom."""
    names = list(LADDER)
    place = names.index(name)
    return names[place - 1] if place else None


def published() -> dict[str, float]:
    """The published inserts per second of the steps, where there are some."""
    return {
        step.name: float(step.published.strip("~").replace(",", ""))
        for step in LADDER.values()
        if step.published
    }
