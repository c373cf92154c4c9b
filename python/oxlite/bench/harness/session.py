"""What the sessions of workloads have in common that measure in worker processes.

Invariants: the disk is measured once in a run, with the first environment report; every sample
says the versions of what was measured; a group of new workers has ended, and nobody has the
database open, before what they did is checked.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.errors import VerificationError, WorkerError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.databases import Database, Databases
from oxlite.bench.harness.model import Sample
from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.bench.harness.processes import Worker, WorkerGroup
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.parameters import Parameters
from oxlite.bench.scenarios.scenario import Scenario

P = TypeVar("P", bound=Parameters)
Found = TypeVar("Found")
HandedOver = tuple[Message, bytes]
"""The facts and the payload of a worker."""

HUNG_BASE_SECONDS = 120.0
"""How much longer than its work a turn may take before it counts as hung."""


class WorkerSession(ABC, Generic[P]):
    """A session whose workers are given parameters, a scenario and the path of a database.

    Attributes:
        task: what a worker does: ``package.module:Class``, a ``ScenarioTask``.
        parameters: those of the run.
        scratch: where everything is written.
        exits: what is to be left at the end of the session.
    """

    task: ClassVar[str]

    def __init__(self, parameters: P, scratch: Scratch, exits: ExitStack) -> None:
        self.parameters = parameters
        self.scratch = scratch
        self.exits = exits
        self._fsync_wanted = True

    @abstractmethod
    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""

    def start(
        self,
        group: WorkerGroup,
        scenario: Scenario,
        path: Path,
        task: str | None = None,
        **arguments: object,
    ) -> Worker:
        """Start a worker on the build and the interpreter of its scenario.

        Args:
            group: where it belongs.
            scenario: the conditions.
            path: the database.
            task: what it does, unless that of the session.
            arguments: what else the task is given.
        """
        given = {
            "parameters": asdict(self.parameters),
            "scenario": dict(scenario),
            "path": str(path),
            **arguments,
        }
        build, interpreter = scenario.get("build", "own"), scenario.get("interpreter")
        return group.start(task or self.task, given, build, interpreter)

    def wait_ready(self, group: WorkerGroup, digests: Sequence[str]) -> None:
        """Wait until all workers are prepared, and see that they have the work asked for.

        Args:
            group: the workers.
            digests: of the work of all of them, in order.

        Raises:
            VerificationError: they have other work.
        """
        group.wait_ready()
        if [one for worker in group.workers for one in worker.facts["digests"]] != list(digests):
            raise VerificationError("the workers' list of work is not the one asked for")

    def describe(
        self, sample: Sample, group: WorkerGroup, scenario: Scenario, *, with_environment: bool
    ) -> None:
        """Add versions, and the environment if it is wanted, as the first worker has them."""
        worker = group.workers[0]
        sample.detail["versions"] = worker.facts["versions"]
        if with_environment:
            sample.environment = group.environment(
                worker, scenario.driver, fsync=self._fsync_wanted
            )
            self._fsync_wanted = False


class DatabaseSession(WorkerSession[P]):
    """A session whose databases are new copies of one that has been filled.

    Attributes:
        name: of the database.
    """

    name: ClassVar[str]

    def __init__(self, parameters: P, scratch: Scratch, exits: ExitStack) -> None:
        super().__init__(parameters, scratch, exits)
        server = exits.enter_context(PostgresServer(scratch))
        self._databases = Databases(scratch, self.name, self.fill, server)

    @abstractmethod
    def fill(self, connection: Connection, driver: Driver) -> None:
        """Make the tables that a measurement starts from; see :data:`~.databases.Fill`."""

    def journal(self, scenario: Scenario) -> str:
        """The journal that the file has from the start: a value of the axis of that name."""
        return scenario.get("journal", "rollback")

    def database(self, scenario: Scenario) -> Database:
        """A new one."""
        return self._databases.start(scenario, self.journal(scenario))


class FreshSession(DatabaseSession[P], Generic[P, Found]):
    """A session in which every measurement has a new database and new workers."""

    @abstractmethod
    def work(self, group: WorkerGroup, database: Database) -> Found:
        """Start the workers, have them do their work, and collect what they hand over."""

    def first_turn(
        self, group: WorkerGroup, digests: Sequence[str], seconds: float
    ) -> tuple[int, list[HandedOver]]:
        """Have the workers that were started do their work.

        Args:
            group: the workers.
            digests: of the work of all of them, in order.
            seconds: how long it may take at the most.

        Returns:
            the instant at which it began, as ``WorkerGroup.release`` does, and what each worker
            hands over.

        Raises:
            VerificationError: they have other work.
        """
        self.wait_ready(group, digests)
        return group.release(HUNG_BASE_SECONDS + seconds), group.collect()

    @abstractmethod
    def sample(self, database: Database, found: Found) -> Sample:
        """The figures of what was collected, now that all workers have ended.

        Raises:
            VerificationError: the work done is not the work asked for.
        """

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        database = self.database(scenario)
        described = Sample({})
        with WorkerGroup(database.directory) as group:
            found = self.work(group, database)
            self.describe(described, group, scenario, with_environment=with_environment)
            group.stop()
        sample = self.sample(database, found)
        sample.detail |= described.detail
        sample.environment = described.environment
        return sample


class KeptSession(DatabaseSession[P]):
    """A session with a worker and a database for each scenario, made when first needed and kept.

    They take turns, so that one alone is at work at any time.
    """

    def __init__(self, parameters: P, scratch: Scratch, exits: ExitStack) -> None:
        super().__init__(parameters, scratch, exits)
        self._groups: dict[Scenario, WorkerGroup] = {}

    @abstractmethod
    def limit_seconds(self) -> float:
        """When this has passed a turn counts as hung."""

    @abstractmethod
    def sample(self, scenario: Scenario, facts: Message, payload: bytes) -> Sample:
        """The figures of what was collected."""

    def rehearse(self, group: WorkerGroup) -> None:
        """Let a new worker do what the first sample would else be the first to do."""

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        """See :class:`~oxlite.bench.harness.run.Session`."""
        group = self._groups.get(scenario) or self._started(scenario)
        with _ended_if_failing(group):
            group.release(self.limit_seconds())
            [(facts, payload)] = group.collect()
        sample = self.sample(scenario, facts, payload)
        self.describe(sample, group, scenario, with_environment=with_environment)
        return sample

    def _started(self, scenario: Scenario) -> WorkerGroup:
        database = self.database(scenario)
        group = self.exits.enter_context(WorkerGroup(database.directory))
        with _ended_if_failing(group):
            self.start(group, scenario, database.path)
            group.wait_ready()
            self.rehearse(group)
        self._groups[scenario] = group
        return group


@contextmanager
def _ended_if_failing(group: WorkerGroup) -> Iterator[None]:
    """End the workers of a turn that fails: with busy threads they would disturb the others'."""
    try:
        yield
    except WorkerError:
        for worker in group.workers:
            worker.process.kill()
        raise
