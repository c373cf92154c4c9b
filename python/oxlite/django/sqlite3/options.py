"""What may stand in ``OPTIONS``, and what belongs elsewhere.

Every option of ``oxlite.connect`` may be given by its own name, beside Django's
``transaction_mode`` and ``init_command``. What is not an option is refused by name, with the
nearest one there is, or with the place where it belongs.

Invariant: nothing is dropped. An option is handed to the driver or to Django, or refused.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from django.core.exceptions import ImproperlyConfigured

__all__ = ["OPTIONS", "check_options"]


class _Option(NamedTuple):
    """One option: how it is called in a message, and its types."""

    what: str
    types: tuple[type, ...]


_NUMBER: Final = (int, float)
_NONE: Final = type(None)
OPTIONS: Final[Mapping[str, _Option]] = {
    "allow_no_locking": _Option("True or False", (bool,)),
    "busy": _Option("a busy policy by name", (str, _NONE)),
    "busy_handler": _Option("a function", (Callable, _NONE)),  # type: ignore[arg-type]
    "cached_statements": _Option("a number of statements", (int,)),
    "check_same_thread": _Option("True or False", (bool,)),
    "detect_types": _Option("a number", (int,)),
    "durable_commit": _Option("'each' or 'shared'", (str,)),
    "extensions": _Option("a list of paths or names", (list, tuple, _NONE)),
    "factory": _Option("a subclass of oxlite.Connection", (type, _NONE)),
    "init_command": _Option("SQL, statements ended by semicolons", (str,)),
    "journal": _Option("'profile' or 'keep'", (str,)),
    "pragmas": _Option("a mapping", (Mapping, _NONE)),
    "profile": _Option("a profile by name", (str,)),
    "statement_timeout": _Option("a number of seconds", (*_NUMBER, _NONE)),
    "timeout": _Option("a number of seconds, 0 or more", _NUMBER),
    "transaction_mode": _Option("'DEFERRED', 'IMMEDIATE', 'EXCLUSIVE' or None", (str, _NONE)),
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
    "pool": "every thread has its connection; write CONN_MAX_AGE beside OPTIONS to keep it",
    "read_only": "it is oxlite.django.read_only(), or the middleware"
    " oxlite.django.middleware.ReadOnlyMiddleware",
    "readers": "it is an argument of oxlite.Database; here every thread has its connection",
    "uri": "a NAME that begins with file: is always a URI",
    **dict.fromkeys(_OF_THE_DATABASE, "it stands beside OPTIONS, not in it"),
}
_URI_PARAMETERS: Final = {"cache", "immutable", "mode", "modeof", "nolock", "psow", "vfs"}


def check_options(alias: str, options: Mapping[str, Any]) -> None:
    """Check the names and types of a database's OPTIONS; the driver checks their values.

    Raises:
        django.core.exceptions.ImproperlyConfigured: An unknown option, one that belongs
            elsewhere, or a value of the wrong type, or one that means nothing.
    """
    for name, value in options.items():
        if not isinstance(name, str):
            raise ImproperlyConfigured(
                f"{_place(alias)}: an option's name is a string, not {name!r}"
                f" ({type(name).__name__})"
            )
        option = OPTIONS.get(name)
        if option is None:
            raise ImproperlyConfigured(f"{_place(alias)}: {_refusal(name)}")
        wrong_boolean = isinstance(value, bool) and bool not in option.types
        if (
            wrong_boolean
            or not isinstance(value, option.types)
            or not _means_something(name, value)
        ):
            raise ImproperlyConfigured(
                f"{_place(alias)}[{name!r}] must be {option.what}, not {value!r}"
                f" ({type(value).__name__})"
            )


def _means_something(name: str, value: Any) -> bool:
    """Whether a value is one of those that the driver would take without a word, and should not."""
    import oxlite

    if name == "timeout":
        return bool(value >= 0)
    if name == "factory" and value is not None:
        return issubclass(value, oxlite.Connection)
    return True


def _place(alias: str) -> str:
    return f"settings.DATABASES[{alias!r}]['OPTIONS']"


def _refusal(name: str) -> str:
    """Why an option is refused, and what to write instead."""
    import oxlite

    if name in _ELSEWHERE:
        return f"{name} does not belong here: {_ELSEWHERE[name]}"
    if name in _URI_PARAMETERS:
        return f"{name} is a parameter of SQLite's URIs: write NAME as 'file:…?{name}=…'"
    pragmas = {pragma for settings in oxlite.profiles().values() for pragma in settings}
    if name in pragmas:
        return f"{name} is a pragma: write it in pragmas, {{'pragmas': {{{name!r}: …}}}}"
    near = _nearest(name, [*OPTIONS, *_ELSEWHERE, *_URI_PARAMETERS, *pragmas])
    return f"unknown option {name!r}; {near}"


def _nearest(name: str, known: Iterable[str]) -> str:
    by_lower_case = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.6)
    return f"did you mean {by_lower_case[near[0]]}?" if near else f"there are: {', '.join(OPTIONS)}"
