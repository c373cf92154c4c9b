"""Opening a connection for a scenario, in the process that will measure it.

Opening is not what is measured. When many processes open one file at once, the
first of them sets the shared memory of the write-ahead log up under an
exclusive lock, and a scenario that does not wait (``busy=none``) would fail
there by chance. So opening is tried again until a deadline.
"""

import time
from pathlib import Path

from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.scenarios import pragmas
from oxlite.bench.scenarios.scenario import Scenario

PATIENCE_SECONDS = 10.0
PAUSE_SECONDS = 0.005


def open_connection(
    driver: Driver,
    path: Path,
    scenario: Scenario,
    timeout_seconds: float,
    *,
    shared: bool = False,
    prepared: bool = True,
) -> Connection:
    """A connection with the scenario's settings applied and read back.

    Args:
        driver: the registered driver named by the scenario.
        path: an existing database with the scenario's journal mode.
        scenario: the conditions.
        timeout_seconds: how long a statement waits for a lock, where it waits.
        shared: whether several threads will use it, one at a time.
        prepared: whether it keeps prepared statements.

    Raises:
        VerificationError: a setting did not take effect.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        connection = None
        try:
            connection = driver.open(
                path, scenario, timeout_seconds, shared=shared, prepared=prepared
            )
            if scenario.journal is not None:
                pragmas.check_journal(connection, scenario.journal)
            if scenario.pragmas is not None and scenario.commit == "shared":
                pragmas.check(connection, pragmas.shared(scenario.pragmas))
            elif scenario.pragmas is not None:
                pragmas.apply(connection, scenario.pragmas)
        except driver.errors() as error:
            if connection is not None:
                connection.close()
            if "locked" not in str(error) or time.monotonic() >= deadline:
                raise
            time.sleep(PAUSE_SECONDS)
        else:
            return connection
