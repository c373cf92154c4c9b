"""The pragma sets of the ``pragmas`` axis, applied through SQL and read back.

Invariants: the same statements run on every driver, so that a difference
between drivers is never one of settings; a setting that did not take effect
fails the row. ``stock`` sets nothing: not even what it could confirm, because
what a build's defaults are is what the build axis asks.

``tuned`` is what Rails sets since 7.1. Its journal mode is not here: that is
the ``journal`` axis, a property of the file, made before the run.
"""

from collections.abc import Mapping, Sequence

from oxlite.bench.drivers.base import Connection
from oxlite.bench.errors import VerificationError

Setting = tuple[str, str, object]
"""A pragma's name, the value as written, and the value read back."""

TUNED: tuple[Setting, ...] = (
    ("synchronous", "NORMAL", 1),
    ("journal_size_limit", "67108864", 67108864),
    ("mmap_size", "134217728", 134217728),
    ("cache_size", "2000", 2000),
    ("foreign_keys", "ON", 1),
)

SETS: Mapping[str, tuple[Setting, ...]] = {
    "stock": (),
    "tuned": TUNED,
    "durable": (*TUNED[1:], ("synchronous", "FULL", 2)),
}

JOURNAL_MODES: Mapping[str, str] = {"rollback": "delete", "wal": "wal"}
"""SQLite's own word for each value of the ``journal`` axis."""


def shared(pragmas: str) -> tuple[Setting, ...]:
    """What must be in force of the set ``pragmas`` where processes share their syncs.

    Oxlite sets ``synchronous`` by itself there, and refuses to have it set.
    """
    others = [setting for setting in SETS[pragmas] if setting[0] != "synchronous"]
    return (*others, ("synchronous", "NORMAL", 1))


def read(connection: Connection, pragma: str) -> object:
    """The effective value of ``pragma`` on this connection."""
    row = connection.execute(f"PRAGMA {pragma}", ()).fetchone()
    return None if row is None else row[0]


def apply(connection: Connection, pragmas: str) -> None:
    """Set everything of the set ``pragmas``, then read all of it back.

    Raises:
        VerificationError: a setting did not take effect.
    """
    apply_settings(connection, SETS[pragmas])


def apply_settings(connection: Connection, settings: Sequence[Setting]) -> None:
    """Set all of ``settings`` in order, then read all of them back.

    Raises:
        VerificationError: one did not take effect.
    """
    for name, written, _ in settings:
        connection.execute(f"PRAGMA {name}={written}", ()).fetchall()
    check(connection, settings)


def check(connection: Connection, settings: Sequence[Setting]) -> None:
    """Assert that all of ``settings`` are in force, without setting any.

    Raises:
        VerificationError: one is not.
    """
    for name, written, expected in settings:
        effective = read(connection, name)
        if effective != expected:
            raise VerificationError(
                f"PRAGMA {name}={written} did not take effect: it reads {effective!r}"
            )


def check_journal(connection: Connection, journal: str) -> None:
    """Assert that the file has the journal mode of the scenario.

    Raises:
        VerificationError: it has another one.
    """
    effective = read(connection, "journal_mode")
    if effective != JOURNAL_MODES[journal]:
        raise VerificationError(
            f"the journal mode is {effective!r}, the scenario asks for {JOURNAL_MODES[journal]!r}"
        )
