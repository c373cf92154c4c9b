"""The figures of ``orm``: a time for each operation, and their sum."""

from oxlite.bench.harness.model import Metric
from oxlite.bench.workloads.orm.operations import TIMED

SUM = Metric("sum_ms", "all of them", "lower")
METRICS = (*(Metric(timed.metric, timed.title, "lower") for timed in TIMED), SUM)
