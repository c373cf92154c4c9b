"""From what the clients saw, and the server's account, to the figures of a sample.

The rate is of requests that succeeded while the clients were asking; latencies are of all that
succeeded, because a fast failure must not improve a percentile. What failed is counted beside
them.
"""

from oxlite.bench.harness.model import Metric, Sample
from oxlite.bench.harness.statistics import latencies
from oxlite.bench.workloads.web.generator import Load
from oxlite.bench.workloads.web.server import Account

NS_PER_MS = 1e6
REQUEST, FAILED = "request", "failed request"

# Not ``of_all_work``: every row has the same time, and the rate is of what succeeded in it.
RATE = Metric("requests_per_second", "successful requests per second", "higher")
FAILED_PERCENT = Metric("failed_percent", "failed requests in percent", "lower")
P50 = Metric("p50_ms", "50th percentile of the latency", "lower")
P99 = Metric("p99_ms", "99th percentile of the latency", "lower")

METRICS = (RATE, FAILED_PERCENT, P50, P99)
PERCENTILES = {50.0: P50, 99.0: P99}


def sample(load: Load, account: Account, duration_seconds: float) -> Sample:
    """The figures of one run."""
    asked = load.statuses.total() + load.unanswered.total()
    errors = account.failures + load.unanswered
    figures = {
        RATE.name: load.done / duration_seconds,
        FAILED_PERCENT.name: 100.0 * errors.total() / asked,
    }
    found = latencies(load.latencies_ns, tuple(PERCENTILES)).percentiles
    for percent, metric in PERCENTILES.items():
        value_ns = found[percent]
        if value_ns is not None:
            figures[metric.name] = value_ns / NS_PER_MS
    kinds = {REQUEST: load.latencies_ns, FAILED: load.failed_ns}
    detail = {
        "statuses": {str(status): count for status, count in sorted(load.statuses.items())},
        "endpoints": dict(sorted(account.endpoints.items())),
        "changes": dict(account.changes),
    }
    return Sample(figures, asked, dict(errors), kinds, detail)
