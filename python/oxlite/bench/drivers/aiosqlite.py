"""aiosqlite: the standard library's ``sqlite3`` in a thread of its own, for asyncio."""

from oxlite.bench.drivers.base import distribution_version
from oxlite.bench.drivers.stdlib import StandardLibrary
from oxlite.bench.scenarios.scenario import Scenario


class Aiosqlite(StandardLibrary):
    """``aiosqlite``; its connections are opened as the standard library's are."""

    name = "aiosqlite"
    title = "aiosqlite"
    module = "aiosqlite"
    install = "pip install aiosqlite"

    def refusal(self, scenario: Scenario) -> str | None:
        """See the base class."""
        if scenario.tasks is None:
            return "aiosqlite is for asyncio: oxlite bench async measures it"
        if scenario.call == "database":
            return "aiosqlite has connections, no database of readers and a writer"
        return super().refusal(scenario)

    def versions(self) -> dict[str, str]:
        """See the base class."""
        return {**super().versions(), "driver": distribution_version("aiosqlite")}
