"""How the site's database is configured, by the values of the axis ``settings``.

PostgreSQL, beside them, has its backend and the address of the server. ``shared`` and ``isolated``
are of the other site, which has pools.

Invariant: a row is what a user would write into settings, no more; each step of Django's own
backend keeps what those before it have set.
"""

import json
from pathlib import Path

from oxlite.bench.drivers.postgresql import USER
from oxlite.bench.drivers.pragmas import TUNED
from oxlite.bench.harness.installed import POOLED
from oxlite.bench.scenarios.axes import Axis
from oxlite.bench.scenarios.scenario import Scenario

OWN = "django.db.backends.sqlite3"
OURS = "oxlite.django.sqlite3"
SERVERS = "django.db.backends.postgresql"
TIMEOUT_SECONDS = 20
DEFAULTS = "defaults"
PUBLISHED = "immediate"
"""The step that a published benchmark ended its failures with; rows are compared with it."""

INIT_COMMAND = " ".join(
    ["PRAGMA journal_mode=WAL;", *(f"PRAGMA {name}={value};" for name, value, _ in TUNED)]
)

STEPS: tuple[tuple[str, dict[str, object]], ...] = (
    (DEFAULTS, {}),
    (PUBLISHED, {"transaction_mode": "IMMEDIATE"}),
    ("timeout", {"timeout": TIMEOUT_SECONDS}),
    ("wal", {"init_command": INIT_COMMAND}),
)
"""What each step of Django's own backend adds to its OPTIONS."""

ROLLBACK = "rollback"
ENGINE = "engine"
GATE = "gate"
SHARED, ISOLATED = POOLED
"""The steps of the site in Flask and SQLAlchemy."""

SETTINGS = Axis(
    "settings",
    "how the site's database is configured",
    {
        DEFAULTS: "Django's own backend: a rollback journal, deferred transactions",
        PUBLISHED: "and transaction_mode IMMEDIATE",
        "timeout": "and a timeout of 20 s instead of 5",
        ROLLBACK: "oxlite.django with the profile stock: IMMEDIATE and a rollback journal",
        "wal": "Django's own backend with, by init_command, WAL and the settings of pragmas=tuned",
        ENGINE: "oxlite.django and nothing else; busy=gate is what it does by itself",
        SHARED: "another site, in Flask and SQLAlchemy on oxlite: each process has one pool of "
        "connections, and more threads than those",
        ISOLATED: "and of that pool's connections one alone writes, in a pool of its own",
    },
)

REQUEST = "request"
KEPT = "kept"

CONNECTIONS = Axis(
    "connections",
    "how long a connection of the site is kept",
    {
        REQUEST: "for one request: CONN_MAX_AGE 0, as Django has it by itself",
        KEPT: "as long as its thread lives: CONN_MAX_AGE None; in a pool, as long as that",
    },
)


def options(scenario: Scenario, database: Path) -> dict[str, object]:
    """The OPTIONS of the ``database`` in ``scenario``."""
    if "settings" not in scenario:
        return {"host": str(database.parent), "user": USER}
    if scenario.get("settings") == ROLLBACK:
        return {"profile": "stock", "busy": scenario.get("busy")}
    if scenario.get("settings") == ENGINE:
        return {} if scenario.get("busy") == GATE else {"busy": scenario.get("busy")}
    found: dict[str, object] = {}
    for name, added in STEPS:
        found |= added
        if name == scenario.get("settings"):
            break
    return found


def is_pooled(scenario: Scenario) -> bool:
    """Whether the site is the one that has pools."""
    return scenario.get("settings") in POOLED


def pooled_environment(scenario: Scenario, database: Path, pool: int) -> dict[str, str]:
    """The environment in which the site with pools runs.

    Args:
        scenario: the conditions.
        database: the file.
        pool: how many connections each process has.
    """
    found = {
        "POOLED_POOLS": scenario["settings"],
        "POOLED_DATABASE": str(database),
        "POOLED_SIZE": str(pool),
    }
    return found if scenario["busy"] == GATE else {**found, "POOLED_BUSY": scenario["busy"]}


def environment(scenario: Scenario, database: Path, atomic: str = "views") -> dict[str, str]:
    """The environment in which Django's site runs.

    Args:
        scenario: the conditions.
        database: the file; of PostgreSQL as its driver's ``open`` takes it.
        atomic: what is a transaction: a parameter of the workload.
    """
    engines = {None: SERVERS, ROLLBACK: OURS, ENGINE: OURS}
    return {
        "DJANGO_SETTINGS_MODULE": "oxlite.bench.workloads.web.blog.settings",
        "BLOG_ENGINE": engines.get(scenario.get("settings"), OWN),
        "BLOG_OPTIONS": json.dumps(options(scenario, database)),
        "BLOG_DATABASE": database.name if "settings" not in scenario else str(database),
        "BLOG_ATOMIC_REQUESTS": "1" if atomic == "requests" else "0",
        "BLOG_KEEPS_CONNECTIONS": "1" if scenario.get("connections") == KEPT else "0",
        "BLOG_DEBUG": "0",
    }


def journal_mode(scenario: Scenario) -> str:
    """The journal mode that a file must have in the end."""
    return "wal" if scenario.get("settings") in {"wal", ENGINE, *POOLED} else "delete"
