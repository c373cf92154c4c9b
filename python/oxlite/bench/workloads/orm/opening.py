"""The mapper of a scenario, connected to its database with its settings.

Every driver opens its connections as an application would: the stock driver with what the mapper
has for pragmas (a listener, ``init_command``), Oxlite with the profile that sets them.
"""

from pathlib import Path

from oxlite.bench.scenarios import pragmas
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.orm.mapper import Mapper


def opened(scenario: Scenario, path: Path) -> Mapper:
    """The mapper named by ``scenario``.

    Raises:
        VerificationError: a setting did not take effect.
    """
    mapper = _mapper(scenario, path)
    if scenario.journal is not None:
        connection = mapper.connection()
        pragmas.check_journal(connection, scenario.journal)
        pragmas.check(connection, pragmas.SETS[scenario.pragmas or "stock"])
    return mapper


def _mapper(scenario: Scenario, path: Path) -> Mapper:
    if scenario.mapper == "django":
        from oxlite.bench.workloads.orm.django import Django, database

        return Django(database(scenario, path))
    from oxlite.bench.workloads.orm.sqlalchemy import SqlAlchemy, engine

    return SqlAlchemy(engine(scenario, path))
