"""What the workers of most workloads have in common: a scenario, its driver, a database.

Invariants: the driver is loaded when the task is made, so that nothing that is measured loads it;
what is opened by the task itself is closed with it.
"""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.drivers.connections import Place
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.worker import Task
from oxlite.bench.parameters import Parameters
from oxlite.bench.scenarios.scenario import Scenario

P = TypeVar("P", bound=Parameters)


class ScenarioTask(Task, Generic[P]):
    """A task that measures one scenario.

    Attributes:
        parameters_type: the parameters of its workload.
        timeout_seconds: how long a lock is waited for, where the parameters do not say.
        parameters: those of the run.
        scenario: the conditions.
        driver: that of the scenario.
        place: the database.
        failures: the driver's errors.
        digests: of the work, for the session to check.
    """

    parameters_type: ClassVar[type[Any]]
    timeout_seconds: ClassVar[float] = 5.0

    def __init__(self, arguments: Message) -> None:
        self.parameters: P = self.parameters_type(**arguments["parameters"])
        self.scenario = Scenario(**arguments["scenario"])
        self.driver = DRIVERS.get(self.scenario.driver)
        timeout_seconds = getattr(self.parameters, "timeout_seconds", self.timeout_seconds)
        self.place = Place(self.driver, Path(arguments["path"]), self.scenario, timeout_seconds)
        self.failures = self.driver.errors()
        self.digests: Sequence[str] = ()
        self.exits = ExitStack()

    @cached_property
    def measured(self) -> Any:  # noqa: ANN401 - whatever the driver calls a connection
        """The connection that is measured, or one like it; opened when first asked for."""
        return self.exits.enter_context(closing(self.place.opened()))

    def ready(self) -> Message:
        """The digests of the work, and who will do it."""
        return {"digests": list(self.digests), "versions": self.driver.versions()}

    def connection(self) -> tuple[Any, str]:
        """See the base class."""
        return self.measured, str(self.place.path.parent)

    def close(self) -> None:
        """See the base class."""
        self.exits.close()
