"""The functions that every system runs as tasks.

Invariant: the first thing that a task does is to look at the clock.
"""

import time

from oxlite.bench.workloads.tasks.ledger import opened, pass_gate
from oxlite.bench.workloads.tasks.systems.base import told

MS_PER_SECOND = 1000


def run(number: int, milliseconds: int) -> None:
    """Note that it runs, and sleep, if it is to."""
    instant_ns = time.monotonic_ns()
    ledger = opened(told().ledger)
    ledger.begin(number, instant_ns)
    if milliseconds:
        time.sleep(milliseconds / MS_PER_SECOND)
    ledger.end(number)


def hold(number: int) -> None:
    """Note that it runs, and keep its worker until the gate is open."""
    instant_ns = time.monotonic_ns()
    ledger = opened(told().ledger)
    ledger.begin(number, instant_ns)
    pass_gate(told().ledger)
    ledger.end(number)
