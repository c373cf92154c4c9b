"""Oxlite's drop-in ``sqlite3``, in the build that the scenario names.

The build is chosen by the worker's bootstrap, before this module is imported.
The profile is ``stock`` nearly always: the scenario's pragmas are applied by the lab,
through SQL, as on every other driver. Where processes share their syncs it is the one
with those pragmas, which are only read back.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from oxlite.bench.drivers import handlers
from oxlite.bench.drivers.base import Connection, Driver, distribution_version
from oxlite.bench.scenarios.axes import HANDLERS
from oxlite.bench.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from oxlite import Database

Busy = Literal["none", "backoff", "fair", "gate"]
BUSY: Mapping[str, Busy] = {policy: policy for policy in get_args(Busy)}
"""The busy policies, by their names on the axis."""

Commit = Literal["group", "each"]
COMMITS: Mapping[str, Commit] = {style: style for style in get_args(Commit)}
"""How a ``Database`` commits, by the styles on the axis."""

PROFILES: Mapping[str, Literal["web", "durable"]] = {"tuned": "web", "durable": "durable"}
"""The profile whose settings are those of a value of the ``pragmas`` axis."""

CACHED_STATEMENTS = 128
"""Its own default."""


class Oxlite(Driver):
    """``oxlite.sqlite3``."""

    name = "oxlite"
    title = "oxlite"
    module = "oxlite.sqlite3"
    install = "pip install oxlite"
    default_build = "tuned"
    builds = ("tuned", "stock", "seed")

    def refusal(self, scenario: Scenario) -> str | None:
        """See the base class."""
        if scenario.get("build") == "own":
            return "oxlite's own build is called tuned"
        return super().refusal(scenario)

    def open(
        self,
        path: Path,
        scenario: Scenario,
        timeout_seconds: float,
        *,
        shared: bool = False,
        prepared: bool = True,
    ) -> Connection:
        """See the base class."""
        from oxlite import connect, sqlite3

        common: dict[str, Any] = {
            "isolation_level": None,
            "check_same_thread": not shared,
            "cached_statements": CACHED_STATEMENTS if prepared else 0,
        }
        busy = scenario.get("busy", "")
        if scenario.get("commit") == "shared":
            return connect(
                path,
                timeout=timeout_seconds,
                busy=BUSY[busy or "gate"],
                profile=PROFILES[scenario.get("pragmas", "durable")],
                durable_commit="shared",
                **common,
            )
        if busy in HANDLERS:
            waiting = handlers.handler(busy, timeout_seconds)
            return sqlite3.connect(path, busy_handler=waiting, profile="stock", **common)
        policy = BUSY[busy or "backoff"]
        return sqlite3.connect(
            path, timeout=timeout_seconds, busy=policy, profile="stock", **common
        )

    def open_database(self, path: Path, scenario: Scenario, timeout_seconds: float) -> "Database":
        """The ``oxlite.Database`` for ``path`` that commits as ``scenario['style']`` says.

        Its profile sets what the scenario's pragmas do, and it waits with the gate always.
        """
        from oxlite import Database

        return Database(
            path,
            PROFILES[scenario["pragmas"]],
            timeout=timeout_seconds,
            durable_commit=COMMITS[scenario["style"]],
        )

    def versions(self) -> dict[str, str]:
        """See the base class."""
        from oxlite import sqlite3

        return {"driver": distribution_version("oxlite"), "sqlite": sqlite3.sqlite_version}
