"""What may stand in ``OPTIONS``, and what belongs elsewhere.

Every option of ``oxlite.connect`` may be given by its own name, beside Django's
``transaction_mode`` and ``init_command``. What is not an option is refused by name, with the
nearest one there is, or with the place where it belongs.

Invariant: nothing is dropped. An option is handed to the driver or to Django, or refused.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from django.core.exceptions import ImproperlyConfigured

from oxlite.django.sqlite3.parked import accepts_pool
from oxlite.schema import URI_PARAMETERS, accepts, options

__all__ = ["OPTIONS", "check_options"]


class _Wanted(NamedTuple):
    """What an option takes: in words, and whether a value is that."""

    takes: str
    accepts: Callable[[Any], bool]


def _of_driver() -> dict[str, _Wanted]:
    """The driver's own options."""
    wanted = {option.name: _Wanted(option.takes, partial(accepts, option)) for option in options()}
    for name in ("autocommit", "isolation_level", "uri"):  # Django has its own words for them
        del wanted[name]
    timeout = wanted["timeout"]
    # The driver takes a negative one for 0, without a word.
    wanted["timeout"] = _Wanted(
        f"{timeout.takes}, 0 or more", lambda value: timeout.accepts(value) and value >= 0
    )
    return wanted


OPTIONS: Final[Mapping[str, _Wanted]] = {
    "init_command": _Wanted(
        "SQL, statements ended by semicolons", lambda value: isinstance(value, str)
    ),
    "transaction_mode": _Wanted(
        "'DEFERRED', 'IMMEDIATE', 'EXCLUSIVE' or None",
        lambda value: value is None or isinstance(value, str),
    ),
    "pool": _Wanted("True, False, or {'max_size': …, 'max_idle': seconds}", accepts_pool),
    **_of_driver(),
}
"""The options there are."""

_OF_THE_DATABASE: Final = {
    "ATOMIC_REQUESTS", "AUTOCOMMIT", "CONN_HEALTH_CHECKS", "CONN_MAX_AGE",
    "DISABLE_SERVER_SIDE_CURSORS", "ENGINE", "HOST", "NAME", "PASSWORD",
    "PORT", "TEST", "TIME_ZONE", "USER",
}  # fmt: skip
_ELSEWHERE: Final[Mapping[str, str]] = {
    "autocommit": "write AUTOCOMMIT beside OPTIONS",
    "conn_max_age": "write CONN_MAX_AGE beside OPTIONS",
    "database": "write NAME beside OPTIONS",
    "isolation_level": "write transaction_mode",
    "read_only": "it is oxlite.django.read_only(), or the middleware"
    " oxlite.django.middleware.ReadOnlyMiddleware",
    "readers": "it is an argument of oxlite.Database; here every thread has its connection",
    "uri": "a NAME that begins with file: is always a URI",
    **dict.fromkeys(_OF_THE_DATABASE, "it stands beside OPTIONS, not in it"),
}


def check_options(alias: str, given: Mapping[str, Any]) -> None:
    """Check the names and types of a database's OPTIONS; the driver checks their values.

    Raises:
        django.core.exceptions.ImproperlyConfigured: An unknown option, one that belongs
            elsewhere, or a value of the wrong type, or one that means nothing.
    """
    for name, value in given.items():
        if not isinstance(name, str):
            raise ImproperlyConfigured(
                f"{_place(alias)}: an option's name is a string, not {name!r}"
                f" ({type(name).__name__})"
            )
        option = OPTIONS.get(name)
        if option is None:
            raise ImproperlyConfigured(f"{_place(alias)}: {_refusal(name)}")
        if not option.accepts(value):
            raise ImproperlyConfigured(
                f"{_place(alias)}[{name!r}] must be {option.takes}, not {value!r}"
                f" ({type(value).__name__})"
            )


def _place(alias: str) -> str:
    return f"settings.DATABASES[{alias!r}]['OPTIONS']"


def _refusal(name: str) -> str:
    """Why an option is refused, and what to write instead."""
    import oxlite

    if name in _ELSEWHERE:
        return f"{name} does not belong here: {_ELSEWHERE[name]}"
    if name in URI_PARAMETERS:
        return f"{name} is a parameter of SQLite's URIs: write NAME as 'file:…?{name}=…'"
    pragmas = {pragma for settings in oxlite.profiles().values() for pragma in settings}
    if name in pragmas:
        return f"{name} is a pragma: write it in pragmas, {{'pragmas': {{{name!r}: …}}}}"
    near = _nearest(name, [*OPTIONS, *_ELSEWHERE, *URI_PARAMETERS, *pragmas])
    return f"unknown option {name!r}; {near}"


def _nearest(name: str, known: Iterable[str]) -> str:
    by_lower_case = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.6)
    return (
        f"did you mean {by_lower_case[near[0]]}?"
        if near
        else f"there are: {', '.join(sorted(OPTIONS))}"
    )
