"""Opening a connection for a scenario, in the process that will measure it.

Opening is not what is measured. When many processes open one file at once, the
first of them sets the shared memory of the write-ahead log up under an
exclusive lock, and a scenario that does not wait (``busy=none``) would fail
there by chance. So opening is tried again until a deadline.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from oxlite.bench.drivers import pragmas
from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.scenarios.scenario import Scenario

PATIENCE_SECONDS = 10.0
PAUSE_SECONDS = 0.005


@dataclass(frozen=True)
class Place:
    """A database, and the conditions under which connections to it are opened.

    Attributes:
        driver: that of the scenario.
        path: an existing database with the scenario's journal mode.
        scenario: the conditions.
        timeout_seconds: how long a statement waits for a lock, where it waits.
    """

    driver: Driver
    path: Path
    scenario: Scenario
    timeout_seconds: float

    def opened(self, *, shared: bool = False, prepared: bool = True) -> Connection:
        """A connection with the scenario's settings applied and read back.

        Args:
            shared: whether several threads will use it, one at a time.
            prepared: whether it keeps prepared statements.

        Raises:
            VerificationError: a setting did not take effect.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            connection = None
            try:
                connection = self.driver.open(
                    self.path, self.scenario, self.timeout_seconds, shared=shared, prepared=prepared
                )
                self._set(connection)
            except self.driver.errors() as error:
                if connection is not None:
                    connection.close()
                if "locked" not in str(error) or time.monotonic() >= deadline:
                    raise
                time.sleep(PAUSE_SECONDS)
            else:
                return connection

    def _set(self, connection: Connection) -> None:
        scenario = self.scenario
        if "journal" in scenario:
            pragmas.check_journal(connection, scenario["journal"])
        if "pragmas" in scenario and scenario.get("commit") == "shared":
            pragmas.check(connection, pragmas.shared(scenario["pragmas"]))
        elif "pragmas" in scenario:
            pragmas.apply(connection, scenario["pragmas"])
