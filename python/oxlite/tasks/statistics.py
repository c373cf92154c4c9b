"""How a queue stands: what waits, runs and has failed, and how long that takes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from oxlite.tasks import store

__all__ = ["QueueStatistics", "statistics"]

_COUNTS: Final = "SELECT queue, status, count(*) FROM oxlite_task GROUP BY queue, status"

_OLDEST: Final = f"""SELECT queue, {store.NOW} - min(max(enqueued_at, coalesce(run_after, 0)))
FROM oxlite_task WHERE status = 'ready' GROUP BY queue"""

_LATEST: Final = """SELECT queue, attempted_at - max(enqueued_at, coalesce(run_after, 0)),
  finished_at - attempted_at
FROM oxlite_task
WHERE id > (SELECT coalesce(max(id), 0) FROM oxlite_task) - 10000
  AND status IN ('successful', 'failed') AND attempted_at IS NOT NULL"""


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """How the queues of a file stand.

    Attributes:
        counts: How many tasks there are, by queue and status.
        oldest_seconds: For how long the one has been ready that was so first, by queue.
        waited_seconds: How long those of the latest 10,000 that have ended had waited: median and
            99th percentile, by queue.
        took_seconds: How long they took, likewise.
        paused: The queues that are paused.
        workers: How many workers there are.
    """

    counts: dict[str, dict[str, int]]
    oldest_seconds: dict[str, float]
    waited_seconds: dict[str, tuple[float, float]]
    took_seconds: dict[str, tuple[float, float]]
    paused: list[str] = field(default_factory=list)
    workers: int = 0


def statistics(query: Callable[[str, tuple[Any, ...]], list[Any]]) -> QueueStatistics:
    """Read them. It looks at every task that is kept."""
    counts: dict[str, dict[str, int]] = {}
    for queue, status, count in query(_COUNTS, ()):
        counts.setdefault(queue, {})[status] = count
    waited: dict[str, list[float]] = {}
    took: dict[str, list[float]] = {}
    for queue, waiting, taking in query(_LATEST, ()):
        waited.setdefault(queue, []).append(waiting)
        took.setdefault(queue, []).append(taking)
    return QueueStatistics(
        counts=counts,
        oldest_seconds={queue: max(0.0, oldest) for queue, oldest in query(_OLDEST, ())},
        waited_seconds={queue: _summary(found) for queue, found in waited.items()},
        took_seconds={queue: _summary(found) for queue, found in took.items()},
        paused=[queue for (queue,) in query("SELECT queue FROM oxlite_task_pause ORDER BY 1", ())],
        workers=len(query("SELECT name FROM oxlite_task_worker", ())),
    )


def _summary(seconds: list[float]) -> tuple[float, float]:
    ordered = sorted(max(0.0, one) for one in seconds)
    last = len(ordered) - 1
    return ordered[last // 2], ordered[round(0.99 * last)]
