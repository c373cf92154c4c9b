"""The lab: benchmarks that run on the user's own machine and can be repeated.

Everything measured by Oxlite is a row of a workload here. The package is used
through :mod:`oxlite.bench.lab`; this module stays light because every worker
process imports it before it measures.

Invariants: the lab uses public names of ``oxlite`` only and nothing of its
command line; importing ``oxlite`` does not import the lab; nothing imported by
a worker imports the terminal library.
"""

from oxlite.bench.errors import (
    FutureRecordError,
    LabError,
    MalformedRecordError,
    UsageError,
    VerificationError,
    WorkerError,
)

__all__ = [
    "FutureRecordError",
    "LabError",
    "MalformedRecordError",
    "UsageError",
    "VerificationError",
    "WorkerError",
]
