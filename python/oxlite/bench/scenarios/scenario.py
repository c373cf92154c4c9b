"""A scenario: one value on each axis that a workload uses.

Invariants: a value is always one of :data:`AXES`, but for the axes that are
open (a driver must be registered, an interpreter be there); ``None`` means that the
workload does not use that axis. The label names every used axis and so is
unique within a workload; a build is named, with the driver (``oxlite-seed``),
only where it is not the driver's default one.

The axes:

``driver``
    who talks to SQLite: a name of :mod:`oxlite.bench.drivers.catalogue`.
``journal``
    ``rollback`` (SQLite's DELETE) or ``wal``.
``pragmas``
    ``stock`` (nothing set), ``tuned``, ``durable``: see
    :mod:`oxlite.bench.scenarios.pragmas`.
``busy``
    how a lock is waited for: ``none`` (not at all), ``backoff`` (SQLite's own
    table of growing sleeps), ``fair`` (a constant millisecond, native),
    ``gate`` (Oxlite's queue); and three that are handlers of the lab, in Python:
    ``jitter``, ``reversed`` and ``held`` (``backoff`` without letting go of the GIL), see
    :mod:`oxlite.bench.drivers.handlers`.
``build``
    the flags SQLite was compiled with: ``own`` (whatever the driver brings),
    or, for Oxlite, ``tuned`` (the project's), ``stock`` (the crate's), ``seed``
    (those of the benchmarks this lab replicates); the same SQLite version.
``disturbance``
    what else goes on: ``calm`` (nothing), ``outsiders`` (half of the processes
    use the standard library's SQLite), ``kills`` (writers are killed).
``style``
    how threads come by a connection for one write: ``own`` (each has one),
    ``reconnect`` (opened for it), ``mutex`` (one connection behind one lock),
    ``pool`` (a few, lent), ``explicit`` (its own, in an explicit transaction),
    ``group`` and ``each`` (Oxlite's ``Database``, many writes in a commit, or one).
``step``
    how far up the ladder of settings: see
    :mod:`oxlite.bench.workloads.inserts.steps`.
``commit``
    how a commit becomes durable: ``each`` (by itself, as the pragmas say) or
    ``shared`` (Oxlite's processes share their syncs).
``operation``
    what each task does: ``read`` (a row by its key) or ``insert`` (a row, durably).
``call``
    how a task calls for it: ``database`` (Oxlite's ``aio.Database``), or one connection
    for all tasks, by a ``cursor`` or by ``fetchall`` (``execute_fetchall``).
``settings``
    how a Django site's database is configured: see :mod:`oxlite.bench.workloads.web.ladder`.
``mix``
    how often each thing is asked of a web application: see
    :mod:`oxlite.bench.workloads.web.parameters`.
``mapper``
    the object-relational mapper above the driver: ``sqlalchemy`` or ``django``.
``processes``
    how many processes, as the user named.
``threads``
    how many threads in each of them, likewise.
``tasks``
    how many tasks of one event loop, likewise.
``clients``
    how many clients of a server, likewise.
``long``
    how many long transactions are run beside them, likewise.
``interpreter``
    the Python that workers run on, as the user named it: see
    :mod:`oxlite.bench.scenarios.interpreters`.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, fields

from oxlite.bench.errors import UsageError, unknown

POLICIES = ("none", "backoff", "fair", "gate")
"""The values of the ``busy`` axis that are policies of a driver."""

WAITING = tuple(policy for policy in POLICIES if policy != "none")
"""Those that wait."""

HANDLERS = ("jitter", "reversed", "held")
"""The values of the ``busy`` axis that are handlers of the lab."""

AXES: Mapping[str, tuple[str, ...]] = {
    "journal": ("rollback", "wal"),
    "pragmas": ("stock", "tuned", "durable"),
    "busy": (*POLICIES, *HANDLERS),
    "build": ("own", "tuned", "stock", "seed"),
    "disturbance": ("calm", "outsiders", "kills"),
    "style": ("own", "reconnect", "mutex", "pool", "explicit", "group", "each"),
    "step": (
        "defaults",
        "wal",
        "normal",
        "temp_store",
        "exclusive",
        "cache",
        "prepared",
        "by_10",
        "by_100",
        "at_once",
    ),
    "commit": ("each", "shared"),
    "operation": ("read", "insert"),
    "call": ("database", "cursor", "fetchall"),
    "settings": ("defaults", "immediate", "timeout", "rollback", "wal", "engine"),
    "mix": ("read_heavy", "write_heavy", "balanced", "single_insert"),
    "mapper": ("sqlalchemy", "django"),
}
"""The values of every axis that is not open."""

COUNTS = ("processes", "threads", "tasks", "clients", "long")
"""The axes whose values are numbers, chosen for a run; a label says of what."""

OPEN_AXES = ("driver", *COUNTS, "interpreter")
"""The axes whose values are known elsewhere: the registered drivers, what the run names."""

UNNAMED_BUILDS = ("own", "tuned")

ANY = "any"
"""Stands in a filter for every value: the axis must be there."""


@dataclass(frozen=True)
class Scenario:
    """One combination of conditions; compare and hash by value."""

    driver: str
    journal: str | None = None
    pragmas: str | None = None
    busy: str | None = None
    build: str | None = None
    disturbance: str | None = None
    style: str | None = None
    step: str | None = None
    commit: str | None = None
    operation: str | None = None
    call: str | None = None
    settings: str | None = None
    mix: str | None = None
    mapper: str | None = None
    processes: str | None = None
    threads: str | None = None
    tasks: str | None = None
    clients: str | None = None
    long: str | None = None
    interpreter: str | None = None

    def __post_init__(self) -> None:
        """Refuse values that are not of the axis."""
        for axis, value in self.used().items():
            if axis not in OPEN_AXES and value not in AXES[axis]:
                raise unknown(f"value of the axis {axis}", value, AXES[axis])

    def used(self) -> dict[str, str]:
        """The axes in use and their values, in the order of the fields."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {axis: value for axis, value in values if value is not None}

    @property
    def label(self) -> str:
        """The name of the row: ``oxlite wal tuned fair``."""
        return self.label_of(self.used())

    def label_of(self, axes: Container[str]) -> str:
        """The label with some of the axes alone."""
        used = {axis: value for axis, value in self.used().items() if axis in axes}
        build = used.pop("build", "own")
        if build not in UNNAMED_BUILDS:
            used["driver"] = f"{self.driver}-{build}"
        return " ".join(
            f"{value} {axis}" if axis in COUNTS else value for axis, value in used.items()
        )


def parse_filter(text: str) -> dict[str, str]:
    """Read ``axis=value,axis=value`` as the user writes it after ``--scenario``.

    ``axis=any`` chooses the scenarios that have the axis. Values of the open axes are
    checked where they are known.

    Raises:
        UsageError: no such axis or value, an axis given twice, or not of this form.
    """
    chosen: dict[str, str] = {}
    for part in text.split(","):
        axis, separator, value = (word.strip() for word in part.partition("="))
        if not separator or not value:
            raise UsageError(
                f"a scenario is written axis=value,axis=value (driver=oxlite,journal=wal), "
                f"not {text!r}"
            )
        if axis not in OPEN_AXES and axis not in AXES:
            raise unknown("axis", axis, [*OPEN_AXES, *AXES])
        if axis in chosen:
            raise UsageError(f"the axis {axis!r} is given twice in {text!r}")
        if axis in AXES and value not in {ANY, *AXES[axis]}:
            raise unknown(f"value of the axis {axis}", value, AXES[axis])
        chosen[axis] = value
    return chosen
