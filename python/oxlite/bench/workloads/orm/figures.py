"""The figures of ``orm``: a time for each operation, their sum, and how they are compared.

How many times faster a row is than another has an interval. Each turn of an operation is paired
with the peer's turn beside it, a moment before or after, and a round has the median of its pairs.
The interval is of the rounds, each of which has processes of its own: pairs of the same processes
have in common by how much those differ.
"""

from statistics import median

from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Summary, improvements, summarise
from oxlite.bench.workloads.orm.operations import TIMED

SUM = Metric("sum_ms", "all of them", "lower")
METRICS = (*(Metric(timed.metric, timed.title, "lower") for timed in TIMED), SUM)

TURNS = "turns_ms"
"""The detail of a sample that has every turn's time, by metric."""


def ratio(result: Result, row: Row, metric: Metric, peer: Row) -> Summary | None:
    """How many times faster ``row`` is than ``peer`` in each round, if that can be said."""
    ratios = result.ratios(row, metric, peer.label)
    if not ratios:
        return None
    rounds = [
        median(found)
        for ours, theirs in zip(_turns(row, metric), _turns(peer, metric), strict=False)
        if (found := improvements(ours, theirs, metric.better))
    ]
    return summarise(rounds or ratios)


def _turns(row: Row, metric: Metric) -> list[list[float]]:
    """The times of all turns of each round, in order."""
    return [sample.detail.get(TURNS, {}).get(metric.name, []) for sample in row.samples]
