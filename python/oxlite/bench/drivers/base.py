"""What the lab needs of a driver, and no more.

The connection protocol is the common part of the standard library's, apsw's
and Oxlite's: ``execute`` with positional parameters returning a cursor, and
autocommit. Workloads use nothing else, so that every driver runs the same code.

Invariants: ``open`` sets nothing but what the scenario's ``busy`` axis says;
whatever a driver cannot do is said by ``refusal``, never found out by a row.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module, metadata, util
from pathlib import Path
from typing import Any, ClassVar, Protocol

from oxlite.bench.scenarios.scenario import Scenario


class Cursor(Protocol):
    """The rows of one statement."""

    def fetchone(self) -> Any:  # noqa: ANN401 (a row's values have any SQLite type)
        """The next row or ``None``."""
        ...

    def fetchall(self) -> list[Any]:
        """All remaining rows."""
        ...


class Connection(Protocol):
    """A connection in autocommit mode."""

    def execute(self, sql: str, parameters: Sequence[object], /) -> Cursor:
        """Run one statement with positional parameters."""
        ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[object]], /) -> object:
        """Run one statement once for each sequence of parameters."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Driver(ABC):
    """One driver under measurement.

    Attributes:
        name: its name in scenarios and rows.
        title: its name in a sentence.
        module: of DB-API 2.0; its presence says whether the driver is installed.
        install: the command that installs it.
        default_build: its value on the ``build`` axis unless chosen.
        builds: the values of the ``build`` axis that exist for it.
        refused_busy: the values of the ``busy`` axis that do not, with reasons.
        is_server: whether its databases are a server's, and not files.
        bytes_type: what it calls a column of bytes.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    module: ClassVar[str]
    install: ClassVar[str]
    default_build: ClassVar[str] = "own"
    builds: ClassVar[tuple[str, ...]] = ("own",)
    refused_busy: ClassVar[Mapping[str, str]] = {}
    is_server: ClassVar[bool] = False
    bytes_type: ClassVar[str] = "BLOB"

    def missing(self) -> str | None:
        """Why the driver is not available here, or ``None`` if it is."""
        try:
            found = util.find_spec(self.module) is not None
        except ModuleNotFoundError:
            found = False
        return None if found else f"{self.title} is not installed; run `{self.install}`"

    def refusal(self, scenario: Scenario) -> str | None:
        """Why ``scenario`` cannot exist for this driver, or ``None`` if it can."""
        if "build" in scenario and scenario.get("build") not in self.builds:
            return f"{self.title} brings its own SQLite; only oxlite can be built differently"
        return self.refused_busy.get(scenario.get("busy", ""))

    @abstractmethod
    def open(
        self,
        path: Path,
        scenario: Scenario,
        timeout_seconds: float,
        *,
        shared: bool = False,
        prepared: bool = True,
    ) -> Connection:
        """A new connection to ``path`` that waits for locks as ``scenario['busy']`` says.

        Args:
            path: the file.
            scenario: the conditions.
            timeout_seconds: how long a lock is waited for, where it is.
            shared: whether several threads will use it, one at a time.
            prepared: whether it keeps prepared statements, as many as it does by itself.
        """

    def errors(self) -> tuple[type[Exception], ...]:
        """The exceptions by which the driver reports a failed statement."""
        return (import_module(self.module).Error,)

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """``driver`` and ``sqlite`` versions, as strings; of a server ``postgresql``."""

    def describe(self, connection: Any) -> dict[str, Any]:  # noqa: ANN401 - of whichever driver
        """What a measured connection says about itself, for the environment report."""
        from oxlite.environment import connection_report

        return connection_report(connection)


def distribution_version(name: str) -> str:
    """The installed version of the distribution ``name``, or ``unknown``."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"
