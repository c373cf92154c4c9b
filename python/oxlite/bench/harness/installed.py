"""What is there to be measured: drivers, mappers and builds, here and on other Pythons.

Workers run on the lab's own Python unless the scenario names another: its executable, as the user
wrote it. What is installed is asked there, by running :func:`describe` on it. A build is the same
driver and the same SQLite version compiled with other flags; it is made for development only and
never part of a wheel, so it may be absent.

Invariant: an interpreter that cannot run workers at all is an error before anything is measured;
one that merely lacks a driver has cells with that reason.
"""

import functools
import json
import shutil
import subprocess
from collections.abc import Mapping
from importlib import util
from typing import Any

import oxlite
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.errors import UsageError
from oxlite.bench.harness.bootstrap import INSTALLED_BUILDS, build_path
from oxlite.bench.scenarios.axes import BUILD
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.operations import compression

PROBE = "from oxlite.bench.harness.installed import describe; print(describe())"
PROBE_SECONDS = 60.0
NEEDED = ("psutil",)
"""What a worker needs besides Oxlite, for the environment report."""

MAPPERS: Mapping[str, str] = {"sqlalchemy": "SQLAlchemy", "django": "Django"}
"""The titles of the object-relational mappers, by the name of their module and on the axis."""

POOLED = ("shared", "isolated")
"""The settings of a site in Flask and SQLAlchemy, which has pools of connections."""
POOLED_NEEDED = ("flask", "sqlalchemy")

SHELL = "sqlite3"
"""SQLite's own program."""


def missing_build(build: str) -> str | None:
    """Why ``build`` cannot be loaded here, or ``None`` if it can."""
    if build in INSTALLED_BUILDS or build_path(build).is_file():
        return None
    return "not built; run `make builds`"


def missing_mapper(mapper: str) -> str | None:
    """Why ``mapper`` is not available here, or ``None`` if it is."""
    if util.find_spec(mapper) is not None:
        return None
    return f"{MAPPERS[mapper]} is not installed; run `pip install {mapper}`"


def missing_way(way: str) -> str | None:
    """Why backups cannot be made in that way here, or ``None`` if they can."""
    if way == "shell" and shutil.which(SHELL) is None:
        return f"the program {SHELL} is not on the PATH; run `apt install {SHELL}`"
    return compression.missing() if way == "oxlite_zstd" else None


def missing_pools(settings: str) -> str | None:
    """Why a site with those settings has no pools here, or ``None`` if it has, or wants none."""
    if settings not in POOLED:
        return None
    absent = [name for name in POOLED_NEEDED if util.find_spec(name) is None]
    if not absent:
        return None
    names = " ".join(absent)
    return f"the site with pools needs {names}; run `pip install {names}`"


def missing(scenario: Scenario) -> str | None:
    """Why something of ``scenario`` is not where it is to run, or ``None`` if all is there.

    Raises:
        UsageError: its interpreter cannot run workers.
    """
    if "interpreter" in scenario:
        found = _found(scenario["interpreter"])
        reason: str | None = found["drivers"].get(scenario.driver)
        return reason or found["builds"].get(scenario.get("build", "own"))
    return (
        DRIVERS.get(scenario.driver).missing()
        or (missing_mapper(scenario["mapper"]) if "mapper" in scenario else None)
        or (missing_mapper("django") if scenario.get("interface") == "django" else None)
        or missing_way(scenario.get("way", ""))
        or missing_pools(scenario.get("settings", ""))
        or missing_build(scenario.get("build", "own"))
    )


def describe() -> str:
    """What is there on the Python that runs this, as JSON."""
    return json.dumps(
        {
            "oxlite": oxlite.__version__,
            "needed": [name for name in NEEDED if util.find_spec(name) is None],
            "drivers": {driver.name: driver.missing() for driver in DRIVERS},
            "builds": {build: missing_build(build) for build in BUILD.values},
        }
    )


@functools.cache
def _found(interpreter: str) -> Mapping[str, Any]:
    """What :func:`describe` says on ``interpreter``.

    Raises:
        UsageError: it is no Python, or Oxlite or something that workers need is not there.
    """
    try:
        done = subprocess.run(
            [interpreter, "-P", "-c", PROBE],
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except OSError as error:
        raise UsageError(f"cannot run {interpreter!r}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"{interpreter} does not answer") from None
    if done.returncode:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "")
        raise UsageError(f"{interpreter} cannot run oxlite's lab: {last.strip()}")
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise UsageError(f"{interpreter} is not a Python") from None
    if found["oxlite"] != oxlite.__version__:
        raise UsageError(
            f"{interpreter} has oxlite {found['oxlite']}, and the lab is {oxlite.__version__}"
        )
    if found["needed"]:
        needed = " ".join(found["needed"])
        raise UsageError(
            f"{interpreter} lacks {needed}; run `{interpreter} -m pip install {needed}`"
        )
    return found
