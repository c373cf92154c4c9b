"""The Pythons that workers run on, and what is there to be measured.

Workers run on the lab's own Python unless the scenario names another: its
executable, as the user wrote it. What is installed is asked there, by running
this module's :func:`describe` on it.

Invariant: an interpreter that cannot run workers at all is an error before
anything is measured; one that merely lacks a driver has cells with that reason.
"""

import functools
import json
import subprocess
from collections.abc import Mapping
from importlib import util
from typing import Any

import oxlite
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.errors import UsageError
from oxlite.bench.scenarios import builds, mappers
from oxlite.bench.scenarios.scenario import AXES, Scenario

PROBE = "from oxlite.bench.scenarios.interpreters import describe; print(describe())"
PROBE_SECONDS = 60.0
NEEDED = ("psutil",)
"""What a worker needs besides Oxlite, for the environment report."""


def missing(scenario: Scenario) -> str | None:
    """Why something of ``scenario`` is not where it is to run, or ``None`` if all is there.

    Raises:
        UsageError: its interpreter cannot run workers.
    """
    if scenario.interpreter is None:
        absent = DRIVERS.get(scenario.driver).missing()
        absent = absent or (mappers.missing(scenario.mapper) if scenario.mapper else None)
        return absent or (builds.missing(scenario.build) if scenario.build else None)
    found = _found(scenario.interpreter)
    reason: str | None = found["drivers"].get(scenario.driver)
    return reason or found["builds"].get(scenario.build or "own")


def describe() -> str:
    """What is there on the Python that runs this, as JSON."""
    return json.dumps(
        {
            "oxlite": oxlite.__version__,
            "needed": [name for name in NEEDED if util.find_spec(name) is None],
            "drivers": {driver.name: driver.missing() for driver in DRIVERS},
            "builds": {build: builds.missing(build) for build in AXES["build"]},
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
        raise UsageError(f"cannot run {interpreter}: {error.strerror}") from None
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
