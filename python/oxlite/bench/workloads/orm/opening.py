"""The mapper of a scenario, connected to its database with its settings.

Both drivers open their connections as an application would: the stock driver with a listener
that sets the scenario's pragmas on each of them, Oxlite with the profile that has them.
"""

from pathlib import Path

from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.orm.mapper import Mapper


def opened(scenario: Scenario, path: Path) -> Mapper:
    """The mapper named by ``scenario``."""
    from oxlite.bench.workloads.orm.sqlalchemy import SqlAlchemy, engine

    return SqlAlchemy(engine(scenario, path))
