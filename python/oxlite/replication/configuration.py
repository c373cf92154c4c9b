"""What Litestream is told: settings that fit ours, and nothing that a stranger may not read.

Litestream makes the checkpoints while it replicates (``guard``): a passive one where we would
(docs/wal.md). It makes no truncating one: that keeps all writers out for as long as anybody reads,
each second again, and sends the whole database after it. It does not recover by itself: it would
forget how far it has read, and go on in another WAL without what lies between
(``replicator`` has all sent anew instead).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from oxlite.replication.replica import Replica

__all__ = ["Settings", "configuration"]

_NEVER: Final = -1
_NEVER_SECONDS: Final = 86400.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How it replicates.

    Attributes:
        sync_seconds: What was committed is sent after so long at the most, if the store keeps up.
        snapshot_hours: How often a whole copy is put there, from which a restore begins.
        keep_hours: How long what has been is kept, for a restore of a point in time.
    """

    sync_seconds: float = 1.0
    snapshot_hours: float = 24.0
    keep_hours: float = 72.0


def configuration(
    replicas: Sequence[Replica],
    socket: Path,
    settings: Settings | None = None,
    *,
    only_when_asked: bool = False,
) -> dict[str, Any]:
    """The document of https://litestream.io/reference/config/.

    Args:
        replicas: What goes where.
        socket: Where Litestream is to answer; a path in a directory of this user's alone.
        settings: How.
        only_when_asked: It reads only when it is asked to, and all that there is as one
            transaction of its own.
    """
    how = settings or Settings()
    pace: dict[str, Any] = {"min-checkpoint-page-count": 1000}
    if only_when_asked:
        pace = {
            "monitor-interval": _duration(_NEVER_SECONDS),
            "checkpoint-interval": _duration(_NEVER_SECONDS),
            "min-checkpoint-page-count": 1 << 30,
            "max-sync-wal-bytes": 1 << 40,
        }
    return {
        "socket": {"enabled": True, "path": str(socket), "permissions": 0o600},
        "logging": {"type": "json", "level": "info", "stderr": True},
        "snapshot": {
            "interval": _duration(how.snapshot_hours * 3600),
            "retention": _duration(how.keep_hours * 3600),
        },
        "dbs": [
            {
                "path": str(replica.database),
                "busy-timeout": "1s",
                **pace,
                "truncate-page-n": _NEVER,
                "replica": {
                    "url": replica.store.url,
                    "sync-interval": _duration(how.sync_seconds),
                    "auto-recover": False,
                },
            }
            for replica in replicas
        ],
    }


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
