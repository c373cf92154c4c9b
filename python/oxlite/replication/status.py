"""How the replication of a database is: for people, for a program, for Prometheus."""

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from oxlite.replication.claim import is_claimed, read_state
from oxlite.replication.errors import ReplicationError
from oxlite.replication.proof import last_proof
from oxlite.replication.store import Store

__all__ = ["Health", "Status", "replication_status", "status_as_prometheus", "status_as_text"]

Health: TypeAlias = Literal["well", "unproved", "behind", "failing", "stopped", "never"]
"""How it is, from good to bad."""

_BEHIND_SECONDS: Final = 60.0
_DAY_SECONDS: Final = 86400.0
_FUTURE_SECONDS: Final = 5.0
"""A time that is later than now by more was noted by a clock that has been set back since: how long
ago that was is not known. By less, clocks are corrected while they run."""


@dataclass(frozen=True, slots=True)
class Status:
    """How the replication of a database is.

    Attributes:
        database: Its file.
        health: ``"well"``; ``"unproved"``: no restore was proved for too long; ``"behind"``: what
            is in the store is older than it may be; ``"failing"``: it runs and cannot send;
            ``"stopped"``: nobody replicates it now; ``"never"``: nobody has from here.
        store: Where to.
        behind_seconds: All that was committed so long ago is in the store; less may be missing.
            ``None`` if that is not known: nothing was sent yet, or the clock was set back since.
        failure: Why it cannot send.
        failing_seconds: Since when, if it cannot.
        restarts: How often Litestream was begun again since it was last well for a minute.
        process_id: Of who replicates.
        proved_at: When a restore was last proved (``oxlite replicate verify``), in seconds since
            1970. ``None`` if none was, or if that time is in the future: the clock was set back.
        proved_behind_seconds: How far behind the replica was then.
    """

    database: Path
    health: Health
    store: Store | None = None
    behind_seconds: float | None = None
    failure: str | None = None
    failing_seconds: float | None = None
    restarts: int = 0
    process_id: int | None = None
    proved_at: float | None = None
    proved_behind_seconds: float | None = None

    @property
    def is_well(self) -> bool:
        """Whether nobody has to do anything."""
        return self.health == "well"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "database": str(self.database),
            "health": self.health,
            "replica": None if self.store is None else self.store.shown,
            "behind_seconds": self.behind_seconds,
            "failure": self.failure,
            "failing_seconds": self.failing_seconds,
            "restarts": self.restarts,
            "process_id": self.process_id,
            "proved_at": self.proved_at,
            "proved_behind_seconds": self.proved_behind_seconds,
        }


def replication_status(
    database: Path,
    *,
    behind_seconds: float = _BEHIND_SECONDS,
    proved_days: float | None = None,
) -> Status:
    """How the replication of a database is. It asks no store.

    Args:
        database: Its file.
        behind_seconds: More than this is ``"behind"``.
        proved_days: A proof that is older, or none, is ``"unproved"``.

    Raises:
        ReplicationError: There is no database, or what is known of it cannot be read.
        oxlite.sqlite3.Error: The database cannot be read.
    """
    path = database.resolve()
    if not path.is_file():
        raise ReplicationError(f"there is no database {path}")
    proved = last_proof(path)
    now = time.time()
    if proved is None or _ago_of(proved[0], now) is None:
        proved_at, proved_behind = None, None
    else:
        proved_at, proved_behind = proved
    state = read_state(path)
    if state is None:
        return Status(path, "never", proved_at=proved_at, proved_behind_seconds=proved_behind)
    behind = None if state.sent_at is None else _ago_of(state.sent_at, now)
    is_running = is_claimed(path)
    health: Health = "well"
    if not is_running:
        health = "stopped"
    elif state.failing_since is not None:
        health = "failing"
    elif behind is None or behind > behind_seconds:
        health = "behind"
    elif proved_days is not None and (
        proved_at is None or now - proved_at > proved_days * _DAY_SECONDS
    ):
        health = "unproved"
    return Status(
        path,
        health,
        Store(state.url),
        behind,
        state.failure,
        None if state.failing_since is None else max(0.0, now - state.failing_since),
        state.restarts,
        state.process_id if is_running else None,
        proved_at,
        proved_behind,
    )


def status_as_text(status: Status) -> str:
    """For people: a few lines."""
    now = time.time()
    where = "" if status.store is None else f" to {status.store.shown}"
    first = {
        "well": f"replicated{where}",
        "unproved": f"replicated{where}, and no restore was proved lately",
        "behind": f"replicated{where}, too far behind",
        "failing": f"not replicated{where}: {status.failure}",
        "stopped": f"not replicated{where}: nobody does it now",
        "never": "never replicated from here",
    }[status.health]
    lines = [f"{status.database}: {first}"]
    if status.behind_seconds is not None:
        lines.append(f"All that was committed {_ago(status.behind_seconds)} is in the store.")
    elif status.health == "behind":
        lines.append("How far is not known: nothing was sent yet, or the clock was set back.")
    if status.failing_seconds is not None:
        lines.append(f"It has failed since {_ago(status.failing_seconds)}.")
    if status.restarts:
        lines.append(f"Litestream was begun again {status.restarts} times.")
    if status.proved_at is None:
        lines.append(f"Not proved yet: oxlite replicate verify {shlex.quote(str(status.database))}")
    else:
        lines.append(
            f"A restore was proved {_ago(max(0.0, now - status.proved_at))},"
            f" {status.proved_behind_seconds or 0:.1f} s behind."
        )
    return "\n".join(lines)


def status_as_prometheus(status: Status) -> str:
    """As https://prometheus.io/docs/instrumenting/exposition_formats/ has it."""
    label = str(status.database).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    lines = []
    for name, what, value in (
        ("well", "Whether nobody has to do anything.", float(status.is_well)),
        ("running", "Whether somebody replicates it.", float(status.process_id is not None)),
        (
            "behind_seconds",
            "All that was committed so long ago is in the store.",
            status.behind_seconds,
        ),
        ("failing_seconds", "For how long nothing could be sent.", status.failing_seconds or 0.0),
        ("restarts", "How often Litestream was begun again.", float(status.restarts)),
        (
            "proved_timestamp_seconds",
            "When a restore was last proved, since 1970.",
            status.proved_at,
        ),
    ):
        if value is not None:
            full = f"oxlite_replication_{name}"
            lines += [f"# HELP {full} {what}", f"# TYPE {full} gauge"]
            lines.append(f'{full}{{database="{label}"}} {value}')
    return "\n".join(lines) + "\n"


def _ago_of(moment: float, now: float) -> float | None:
    """How long ago a moment was, in seconds; ``None`` if it is in the future."""
    return None if moment > now + _FUTURE_SECONDS else max(0.0, now - moment)


def _ago(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.1f} s ago"
