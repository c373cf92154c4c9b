"""Django's SQL functions on a connection: days and times, statistics, texts, without Python.

Invariants:
- The driver answers where its answer is certainly that of Django's own function, which it calls
  everywhere else: for texts in another form than Django's, unknown zones, statistics of what is no
  number, and all errors.
- A function is created once: Django is kept from creating those that the driver has.
"""

import sys
import zoneinfo
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import django
from django.db.backends.sqlite3 import _functions as stock
from django.db.backends.utils import split_tzname_delta

import oxlite
from oxlite._native import (
    ClockChange,
    connect,
    create_any_value_function,
    create_date_functions,
    create_pattern_function,
    create_small_functions,
    create_statistic_functions,
)
from oxlite.connection import driver_connection
from oxlite.patterns import pattern_of

COMPARED: Final = frozenset({(5, 2), (6, 0), (6, 1)})
"""The versions of Django whose functions are those that the driver has; others keep their own."""

ORIGINALS: Final[Mapping[str, Callable[..., Any]]] = {
    "django_date_extract": stock._sqlite_datetime_extract,
    "django_date_trunc": stock._sqlite_date_trunc,
    "django_datetime_cast_date": stock._sqlite_datetime_cast_date,
    "django_datetime_cast_time": stock._sqlite_datetime_cast_time,
    "django_datetime_extract": stock._sqlite_datetime_extract,
    "django_datetime_trunc": stock._sqlite_datetime_trunc,
    "django_time_extract": stock._sqlite_time_extract,
    "django_time_trunc": stock._sqlite_time_trunc,
    "django_time_diff": stock._sqlite_time_diff,
    "django_timestamp_diff": stock._sqlite_timestamp_diff,
    "django_format_dtdelta": stock._sqlite_format_dtdelta,
}
"""Django's functions of days and times, by their names in SQL."""


REGEXP: Final[Callable[..., Any]] = stock._sqlite_regexp
"""Django's function for regular expressions."""

EXACT: Final = frozenset({(3, 11), (3, 12), (3, 13)})
"""The versions of Python whose ``statistics`` round exact fractions, once."""

STATISTICS: Final[Mapping[str, type]] = {
    "STDDEV_POP": stock.StdDevPop,
    "STDDEV_SAMP": stock.StdDevSamp,
    "VAR_POP": stock.VarPop,
    "VAR_SAMP": stock.VarSamp,
}
"""Django's statistical aggregates, by their names in SQL."""


SMALL: Final[Mapping[str, Callable[..., Any]]] = {
    "BITXOR": stock._sqlite_bitxor,
    "LPAD": stock._sqlite_lpad,
    "REPEAT": stock._sqlite_repeat,
    "REVERSE": stock._sqlite_reverse,
    "RPAD": stock._sqlite_rpad,
    "SIGN": stock._sqlite_sign,
}
"""Django's small functions of texts and integers, by their names in SQL.

``COT`` is not among them: nothing says that the tangent of the driver's C library is the one that
Python's ``math`` was linked with.
"""

ANY_VALUE: Final[type | None] = getattr(stock, "AnyValue", None)
"""Django's aggregate for any value of a group, which it has since 6.0."""


Creation = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A method of a connection, and what it is called with."""


def register_functions(connection: oxlite.Connection) -> None:
    """Create Django's functions on a connection, or on the one that someone has wrapped."""
    is_compared = django.VERSION[:2] in COMPARED
    # Somebody may have put another function there, which does as it likes.
    is_known = is_compared and getattr(stock.register, "__globals__", None) is vars(stock)
    if not is_known:
        stock.register(connection)
    if not is_compared:
        return
    own = driver_connection(connection)
    create_date_functions(own, ORIGINALS, clock_change)
    create_pattern_function(own, REGEXP, pattern_of, searches_integers=True)
    create_small_functions(own, SMALL)
    if ANY_VALUE is not None:
        create_any_value_function(own, ANY_VALUE)
    if sys.version_info[:2] in EXACT:
        create_statistic_functions(own, STATISTICS)
    if is_known:
        for method, arguments, options in other_creations():
            getattr(connection, method)(*arguments, **options)


@cache
def other_creations() -> tuple[Creation, ...]:
    """What Django creates of which the driver has nothing. It is the same on all connections."""
    native = {"regexp", *ORIGINALS, *SMALL}
    if ANY_VALUE is not None:
        native.add("ANY_VALUE")
    if sys.version_info[:2] in EXACT:
        native.update(STATISTICS)
    connection = connect(":memory:")  # not the one of the module, which somebody may have wrapped
    try:
        creations = Creations(connection)
        stock.register(creations)
    finally:
        connection.close()
    return tuple(creation for creation in creations.noted if creation[1][0] not in native)


class Creations:
    """A connection for ``stock.register`` on which nothing is created: it is noted.

    Args:
        connection: One that can be asked what its SQLite has.

    Attributes:
        noted: What would have been created.
    """

    def __init__(self, connection: oxlite.Connection) -> None:
        self.execute = connection.execute
        self.noted: list[Creation] = []

    def __getattr__(self, method: str) -> Callable[..., None]:
        """Any method by which something is created."""

        def note(*arguments: Any, **options: Any) -> None:
            self.noted.append((method, arguments, options))

        return note


@lru_cache(maxsize=256)
def clock_change(tzname: str | None, conn_tzname: str | None) -> ClockChange | None:
    """What Django's functions do to a time before they look at it.

    Args:
        tzname: A zone, an offset such as ``+05:30``, or both.
        conn_tzname: The zone of what is in the database.

    Returns:
        ``None`` where Django's functions are to be asked: for what is no zone, which they refuse.
    """
    if not conn_tzname:
        return None  # without it nothing can be converted
    try:
        source = zone_file(conn_tzname)
        if tzname is None or tzname == conn_tzname:
            return ClockChange(source, 0, None)
        name, sign, offset = split_tzname_delta(tzname)
        shift = 0
        if offset:
            hours, minutes = map(int, offset.split(":"))
            shift = (hours * 60 + minutes) * 60_000_000
            shift = shift if sign == "+" else -shift
        same = name in ("", conn_tzname)
        return ClockChange(source, shift, None if same else zone_file(name))
    except Exception:  # whatever it is, Django's function raises it again
        return None


def zone_file(name: str) -> bytes:
    """The file of a zone, which is the one that ``zoneinfo`` reads.

    Raises:
        Exception: What ``zoneinfo`` raises for a name that is none.
    """
    zoneinfo.ZoneInfo(name)
    for folder in zoneinfo.TZPATH:
        path = Path(folder, name)
        if path.is_file():
            return path.read_bytes()
    *packages, file = name.split("/")
    package = ".".join(["tzdata.zoneinfo", *packages])
    return resources.files(package).joinpath(file).read_bytes()
