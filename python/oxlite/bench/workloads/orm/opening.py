"""The mapper of a scenario, connected to its database with its settings.

Both drivers open their connections as an application would: the stock driver with a listener
that sets the scenario's pragmas on each of them, Oxlite with the profile that has them.
"""

from pathlib import Path
from typing import Any

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.drivers.oxlite import PROFILES
from oxlite.bench.scenarios import pragmas
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.orm.mapper import Mapper

TIMEOUT_SECONDS = 60.0


def opened(scenario: Scenario, path: Path) -> Mapper:
    """The mapper named by ``scenario``."""
    from sqlalchemy import create_engine, event

    from oxlite.bench.workloads.orm.sqlalchemy import SqlAlchemy

    if DRIVERS.get(scenario.driver).name == "oxlite":
        profile = PROFILES.get(scenario.pragmas or "", "stock")
        options = {"profile": profile, "timeout": TIMEOUT_SECONDS}
        return SqlAlchemy(create_engine(f"sqlite+oxlite:///{path}", connect_args=options))
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": TIMEOUT_SECONDS})

    def set_up(connection: Any, _record: object) -> None:  # noqa: ANN401
        pragmas.apply(connection, scenario.pragmas or "stock")

    event.listen(engine, "connect", set_up)
    return SqlAlchemy(engine)
