"""The ways of listening to a connection, and how one is opened for each.

Oxlite's is opened as an application does, with the profile ``web``; its pragmas are those of the
set ``tuned``, which the others are given. What is called for each statement does nothing: what is
measured is the price of being told.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from oxlite.bench.drivers import pragmas
from oxlite.bench.drivers.connections import Place

UNWATCHED, WATCHED, SLOW_LOG, ALL_LOGGED = "unwatched", "watched", "slow_log", "all_logged"
TRACED, PROFILED = "traced", "profiled"
"""The values of the axis ``way``."""

WAYS: Mapping[str, Sequence[str]] = {
    "oxlite": (UNWATCHED, WATCHED, SLOW_LOG, ALL_LOGGED),
    "stdlib": (UNWATCHED, TRACED),
    "apsw": (UNWATCHED, PROFILED),
}
"""Those that there are, by driver."""

SLOW_STATEMENT_SECONDS: Mapping[str, float] = {SLOW_LOG: 10.0, ALL_LOGGED: 0.0}
"""From when on a statement is logged; with the first nothing is."""

LOGGER = "oxlite.slow_statements"


def opened(place: Place) -> Any:  # noqa: ANN401 - whatever the driver calls a connection
    """A connection that is listened to in the way of its scenario, in autocommit mode.

    Raises:
        VerificationError: a setting did not take effect.
    """
    way = place.scenario["way"]
    if place.driver.name == "oxlite":
        return _of_oxlite(place, SLOW_STATEMENT_SECONDS.get(way))
    connection: Any = place.opened()
    if way == TRACED:
        connection.set_trace_callback(_hear_of)
    elif way == PROFILED:
        connection.set_profile(_hear_of)
    return connection


def _of_oxlite(place: Place, slow_seconds: float | None) -> Any:  # noqa: ANN401
    import oxlite

    if slow_seconds is not None:
        # With a handler of its own a record is made, and goes no further.
        logger = logging.getLogger(LOGGER)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    connection = oxlite.connect(
        place.path,
        place.timeout_seconds,
        isolation_level=None,
        profile="web",
        slow_statement=slow_seconds,
    )
    pragmas.check_journal(connection, place.scenario["journal"])
    pragmas.check(connection, pragmas.SETS[place.scenario["pragmas"]])
    return connection


def _hear_of(*_: object) -> None:
    """Do nothing with the statement, and what else is told."""
