"""What a driver must leave to the other threads, against the standard library."""

from oxlite.bench.claims import Claim
from oxlite.bench.harness.model import Metric
from oxlite.bench.workloads.gil import turns

OURS = {"driver": "oxlite"}
PEER = {"driver": "stdlib"}
NAMED = ("driver", "build", "interpreter")


def _of_peer(metric: Metric, limit: float, *, at_least: bool = True) -> Claim:
    title = f"{metric.title}, times the standard library's"
    return Claim(title, metric, limit, OURS, PEER, at_least, NAMED)


CLAIMS = (
    _of_peer(turns.LOOKUPS_BESIDE[1], 100.0),
    _of_peer(turns.LOOKUPS_BESIDE[8], 20.0),
    *(_of_peer(metric, 0.5) for metric in turns.CPU_KEPT.values()),
    _of_peer(turns.WAKE_P99[4], 2.0, at_least=False),
    Claim(turns.SCALING.title, turns.SCALING, 1.8, OURS, named=NAMED),
)
