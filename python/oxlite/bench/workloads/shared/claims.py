"""What shared syncs must be worth, against the same processes with syncs of their own."""

from oxlite.bench.claims import Claim
from oxlite.bench.harness.model import Metric
from oxlite.bench.workloads.gate.figures import JAIN, LONGEST, WRITES

SHARED = {"commit": "shared", "busy": "gate", "disturbance": "calm"}


def _against(busy: str, processes: str, metric: Metric, limit: float) -> Claim:
    return Claim(
        f"{metric.title}, times better than each by itself, {busy}",
        metric,
        limit,
        {**SHARED, "processes": processes},
        {"commit": "each", "busy": busy},
        named=("processes",),
    )


CLAIMS = (
    _against("gate", "25", WRITES, 5.0),
    _against("backoff", "25", LONGEST, 50.0),
    Claim(JAIN.title, JAIN, 0.99, {**SHARED, "processes": "25"}, named=("processes",)),
    _against("gate", "4", WRITES, 1.6),
    _against("gate", "1", WRITES, 0.97),
)
