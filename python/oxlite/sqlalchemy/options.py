"""What may stand in the query of a URL and in ``connect_args``, and of which type.

Every option of ``oxlite.connect`` may be given in either place, by its own name. In a URL all
values are text, so they are read here; in ``connect_args`` they have a type, which is checked here.
What is not an option is refused by name, with the nearest one there is, or with the place where it
belongs.

Invariant: nothing is dropped. An option is handed to the driver, or refused.
"""

import difflib
import os
import sys
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import exc
from sqlalchemy.engine import URL

from oxlite.schema import URI_PARAMETERS, Option, accepts, options, read
from oxlite.sqlalchemy.isolation import LEVELS

__all__ = ["Opening", "check_arguments", "level_name", "read_url", "refuse_drivers_word"]


class Opening(NamedTuple):
    """How a URL says that a database is to be opened.

    Attributes:
        database: The path, ``":memory:"``, or a ``file:`` URI with its own parameters.
        arguments: Keyword arguments of ``oxlite.connect``, and ``isolation_level`` by SQLAlchemy's
            name.
    """

    database: str
    arguments: dict[str, Any]


# SQLAlchemy has its own words for who begins transactions.
_OPTIONS: Final[Mapping[str, Option]] = {
    option.name: option for option in sorted(options()) if option.name != "autocommit"
}

_PRAGMA: Final = "pragma."

# It makes the engines of a Flask application, and looks at the names of their drivers.
_FLASK_SQLALCHEMY: Final = "flask_sqlalchemy.extension"

# How the driver's ``isolation_level`` calls what begins in the same way.
_MEANT: Final[Mapping[str, str]] = {
    "NONE": "AUTOCOMMIT",
    "": "SNAPSHOT",
    "DEFERRED": "SNAPSHOT",
    "IMMEDIATE": "SERIALIZABLE",
    "EXCLUSIVE": "SERIALIZABLE",
}

_OF_CREATE_ENGINE: Final = {
    "connect_args", "creator", "echo", "echo_pool", "execution_options", "hide_parameters",
    "insertmanyvalues_page_size", "json_deserializer", "json_serializer", "label_length",
    "logging_name", "max_identifier_length", "max_overflow", "native_datetime", "paramstyle",
    "pool_logging_name", "pool_pre_ping", "pool_recycle", "pool_reset_on_return", "pool_size",
    "pool_timeout", "pool_use_lifo", "poolclass", "query_cache_size", "skip_autocommit_rollback",
}  # fmt: skip

_ELSEWHERE: Final[Mapping[str, str]] = {
    "autocommit": "write isolation_level=AUTOCOMMIT",
    "transaction_mode": "write isolation_level: SERIALIZABLE begins IMMEDIATE, SNAPSHOT DEFERRED",
    "sqlite_read_only": "it is an execution option:"
    ' create_engine(execution_options={"sqlite_read_only": True})',
    "readers": "it is an argument of oxlite.sqlalchemy.create_engines()",
    **dict.fromkeys(_OF_CREATE_ENGINE, "it is an argument of create_engine()"),
}


def read_url(url: URL) -> Opening:
    """Read what a URL says about opening a database.

    ``pragma.NAME=VALUE`` sets one pragma. With ``uri=true`` the parameters of SQLite's own URIs are
    handed on to it, and any others too where a ``vfs`` is named, which may have some of its own.

    Args:
        url: ``sqlite+oxlite:///relative.db``, ``sqlite+oxlite:////absolute.db``,
            ``sqlite+oxlite://`` (in memory), or with ``uri=true``
            ``sqlite+oxlite:///file:path?mode=ro&uri=true``.

    Returns:
        The database and the keyword arguments for ``oxlite.connect``.

    Raises:
        sqlalchemy.exc.ArgumentError: An unknown option, one that belongs elsewhere, or a value that
            cannot be read; or the URL names a host or a user; or Flask-SQLAlchemy makes the engine,
            and the path is relative.

    Sources: https://docs.sqlalchemy.org/en/20/core/engines.html#sqlite, https://sqlite.org/uri.html
    """
    if url.username or url.password or url.host or url.port:
        raise exc.ArgumentError(
            f"Invalid SQLite URL: {url!r}. A file has no host, port or user: write"
            f" {url.drivername}:///relative/path.db, {url.drivername}:////absolute/path.db,"
            f" or {url.drivername}:// for a database in memory."
        )
    query = dict(url.query)
    is_uri = bool(_read("uri", query["uri"])) if "uri" in query else False
    own_vfs = is_uri and "vfs" in query
    arguments: dict[str, Any] = {}
    pragmas: dict[str, str] = {}
    parameters: dict[str, str] = {}
    for name, value in query.items():
        if name.startswith(_PRAGMA):
            pragmas[name.removeprefix(_PRAGMA)] = _single(name, value)
        elif name in _OPTIONS:
            arguments[name] = _read(name, value)
        elif is_uri and (name in URI_PARAMETERS or own_vfs):
            parameters[name] = _single(name, value)
        else:
            raise exc.ArgumentError(_refusal(name, "the URL"))
    _refuse_another_folder(url, is_uri, parameters)
    if pragmas:
        arguments["pragmas"] = {name: _number_or_text(value) for name, value in pragmas.items()}
    return Opening(_database(url, is_uri, parameters), arguments)


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """Check the names and types of keyword arguments for ``oxlite.connect``.

    Args:
        arguments: What ``connect_args`` and the URL came to.

    Raises:
        sqlalchemy.exc.ArgumentError: An unknown option, one that belongs elsewhere, or a value of
            the wrong type. No file has been touched.
    """
    for name, value in arguments.items():
        option = _OPTIONS.get(name)
        if option is None:
            raise exc.ArgumentError(_refusal(name, "connect_args"))
        if name == "isolation_level":
            level_name(value)
        elif not accepts(option, value):
            raise exc.ArgumentError(
                f"connect_args: {name} must be {option.takes}, not {value!r}"
                f" ({type(value).__name__})"
            )


def level_name(level: object) -> str:
    """An isolation level as SQLAlchemy writes it: upper case, with spaces.

    Raises:
        sqlalchemy.exc.ArgumentError: There is no such level.
    """
    refuse_drivers_word(level)
    name = str(level).replace("_", " ").upper()
    if name in LEVELS:
        return name
    near = difflib.get_close_matches(name, LEVELS, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(LEVELS)}"
    raise exc.ArgumentError(f"unknown isolation_level {level!r}; {hint}")


def refuse_drivers_word(level: object) -> None:
    """Refuse what the driver's own ``isolation_level`` takes: how SQLite begins a transaction.

    Raises:
        sqlalchemy.exc.ArgumentError: It is such a word; the message says which level is meant.
    """
    meant = _MEANT.get("NONE" if level is None else str(level).upper())
    if meant is not None:
        raise exc.ArgumentError(
            f"isolation_level={level!r} is the driver's word; SQLAlchemy's level is {meant!r}"
        )


def _database(url: URL, is_uri: bool, parameters: Mapping[str, str]) -> str:
    """What is opened: an absolute path, ``":memory:"``, or a URI with its parameters."""
    database = url.database or ":memory:"
    if is_uri:
        if not parameters:
            return database
        joint = "&" if "?" in database else "?"
        return database + joint + "&".join(f"{key}={parameters[key]}" for key in sorted(parameters))
    # As of now: a process that changes its folder keeps its database.
    return database if database == ":memory:" else os.path.abspath(database)  # noqa: PTH100


def _refuse_another_folder(url: URL, is_uri: bool, parameters: Mapping[str, str]) -> None:
    """Refuse a relative path where Flask-SQLAlchemy makes the engine.

    It puts one into the folder of the application's instance for the drivers whose names it knows,
    ``sqlite`` and ``sqlite+pysqlite``. For any other it is one of the folder that the process was
    started in: whoever changes the URL would get a new, empty database, and not be told.
    """
    path = url.database or ":memory:"
    if is_uri:
        path = path.removeprefix("file:").partition("?")[0]
    in_memory = path == ":memory:" or parameters.get("mode") == "memory" or "vfs" in parameters
    if in_memory or os.path.isabs(path) or not _is_called_by(_FLASK_SQLALCHEMY):  # noqa: PTH117
        return
    raise exc.ArgumentError(
        f"{url.drivername}:///{url.database}: Flask-SQLAlchemy puts a relative path into the"
        " instance folder for the standard library's driver only; with this one the file would be"
        f" {os.path.abspath(path)}. Write the path that is meant, an absolute one:"  # noqa: PTH100
        f' f"{url.drivername}:///{{app.instance_path}}/{path}", for the file that sqlite:/// opens'
    )


def _is_called_by(module: str) -> bool:
    """Whether a function of a module is waiting for this one to return."""
    if module not in sys.modules:
        return False
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == module:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _single(name: str, value: str | tuple[str, ...]) -> str:
    if isinstance(value, str):
        return value
    raise exc.ArgumentError(f"{name} stands {len(value)} times in the URL; say it once")


def _read(name: str, value: str | tuple[str, ...]) -> Any:
    """The value of an option in a URL."""
    option = _OPTIONS[name]
    if name == "extensions" and not isinstance(value, str):
        return list(value)
    text = _single(name, value)
    if name == "isolation_level":
        return level_name(text)
    try:
        return read(option, text)
    except TypeError:
        how = f"write {_PRAGMA}NAME=VALUE" if name == "pragmas" else "it belongs in connect_args"
        raise exc.ArgumentError(f"{name} cannot be written in the URL: {how}") from None
    except ValueError:
        raise exc.ArgumentError(f"{name}={text} in the URL: {option.takes} is wanted") from None


def _number_or_text(text: str) -> int | str:
    """A pragma's value as the driver takes it: numbers as numbers, words as words."""
    try:
        return int(text)
    except ValueError:
        return text


def _refusal(name: str, where: str) -> str:
    """Why an option is refused, and what to write instead."""
    if name in _ELSEWHERE:
        return f"{name} does not belong in {where}: {_ELSEWHERE[name]}"
    if name in URI_PARAMETERS:
        place = "the URL with uri=true" if where == "the URL" else "a URL with uri=true"
        return f"{name} is a parameter of SQLite's URIs, which are read from {place} only"
    known = [*_OPTIONS, *_ELSEWHERE, *URI_PARAMETERS]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(_OPTIONS)}"
    return f"unknown option {name!r} in {where}{hint}"
