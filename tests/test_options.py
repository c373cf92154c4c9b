"""The schema of options: declared once, and everything else agrees with it."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_type_hints

import pytest

import oxlite
import oxlite.aio
from oxlite import sqlite3
from oxlite.connection import ConnectOptions, DriverOptions
from oxlite.schema import Option, accepts, read

DOCS = Path(__file__).parents[1] / "docs"

KINDS: dict[str, object] = {
    "boolean": bool,
    "integer": int,
    "number": float,
    "autocommit": bool | Literal[-1],
    "mapping": Mapping[str, bool | int | str],
    "list": Iterable[str | PathLike[str]],
    "class": type[sqlite3.Connection],
}
FUNCTIONS: dict[str, object] = {
    "busy_handler": Callable[[int], object],
    "setup": Callable[[sqlite3.Connection], object],
    "row_factory": Callable[[sqlite3.Cursor, tuple[Any, ...]], object],
}


def annotation(option: Option) -> object:
    """The type that an option has in a signature."""
    if option.choices is not None:
        kind: Any = Literal[option.choices]  # type: ignore[valid-type]
    else:
        kind = FUNCTIONS[option.name] if option.kind == "function" else KINDS[option.kind]
    return kind | None if option.is_optional else kind


def taken(function: Callable[..., Any], *besides: str) -> dict[str, inspect.Parameter]:
    """The parameters that are options."""
    found = inspect.signature(function).parameters
    return {name: one for name, one in found.items() if name not in {"self", *besides}}


def test_connect_takes_what_is_declared() -> None:
    parameters = taken(oxlite.connect, "database")
    declared = oxlite.options()
    assert list(parameters) == [option.name for option in declared]
    hints = get_type_hints(oxlite.connect)
    for option in declared:
        assert parameters[option.name].default == option.default, option
        assert hints[option.name] == annotation(option), option


def test_what_hands_options_on_knows_them_all() -> None:
    declared = {option.name: annotation(option) for option in oxlite.options()}
    assert get_type_hints(ConnectOptions) == declared
    assert get_type_hints(DriverOptions).items() <= declared.items()
    assert oxlite.options.__doc__
    page = oxlite.connect.__doc__ or ""
    missing = [
        name for name in declared if not re.search(rf"^        {name}: ", page, re.MULTILINE)
    ]
    assert missing == []


@pytest.mark.parametrize("database", [oxlite.Database, oxlite.aio.Database])
def test_a_database_takes_what_is_declared(database: type) -> None:
    parameters = taken(database.__init__, "path")  # type: ignore[misc]
    declared = {option.name: option for option in oxlite.options("Database")}
    assert parameters.keys() == declared.keys()
    hints = get_type_hints(database.__init__)  # type: ignore[misc]
    for name, parameter in parameters.items():
        assert parameter.default == declared[name].default, name
        assert hints[name] == annotation(declared[name]), name


def test_the_drop_in_has_the_declared_defaults(tmp_path: Path) -> None:
    """Its own signature is not to be seen behind the standard library's."""
    declared = {option.name: option.default for option in oxlite.options("sqlite3.connect")}
    assert declared.keys() == {option.name for option in oxlite.options()}
    connection = sqlite3.connect(tmp_path / "app.db")
    assert connection.timeout == declared["timeout"]
    assert connection.isolation_level == declared["isolation_level"]
    assert connection.autocommit == declared["autocommit"] == sqlite3.LEGACY_TRANSACTION_CONTROL
    assert connection.profile == declared["profile"]
    connection.close()
    sqlite3.connect(tmp_path / "app.db", **declared).close()


@pytest.mark.parametrize("door", ["connect", "sqlite3.connect"])
def test_each_option_is_read(tmp_path: Path, door: str) -> None:
    connect: Any = oxlite.connect if door == "connect" else sqlite3.connect
    for option in oxlite.options(door):  # type: ignore[arg-type]
        for value in option.choices or (option.default,):
            if (option.name, value) == ("durable_commit", "shared") and door != "connect":
                continue  # it needs a production profile
            connect(tmp_path / "app.db", **{option.name: value}).close()
        if option.kind != "boolean":  # whatever Python finds true or false
            with pytest.raises((TypeError, ValueError)):
                connect(tmp_path / "app.db", **{option.name: object()})


@pytest.mark.parametrize("door", ["connect", "sqlite3.connect", "Database"])
def test_a_word_that_is_none_of_the_choices_is_refused(tmp_path: Path, door: str) -> None:
    for option in oxlite.options(door):  # type: ignore[arg-type]
        if option.choices is not None:
            with pytest.raises(ValueError, match=option.choices[-1]):
                {
                    "connect": oxlite.connect,
                    "sqlite3.connect": sqlite3.connect,
                    "Database": oxlite.Database,
                }[door](tmp_path / "app.db", **{option.name: "quite something else"})
    assert not list(tmp_path.iterdir())


def test_a_number_out_of_range_is_refused(tmp_path: Path) -> None:
    ranges = {
        option.name: (option.at_least, option.more_than)
        for option in (*oxlite.options(), *oxlite.options("Database"))
        if (option.at_least, option.more_than) != (None, None)
    }
    assert ranges == {
        "readers": (1.0, None),
        "slow_statement": (0.0, None),
        "statement_timeout": (None, 0.0),
    }
    with pytest.raises(ValueError, match="readers must be at least 1, not 0"):
        oxlite.Database(tmp_path / "app.db", readers=0)
    for bad in (0, -1, float("nan"), float("inf")):
        with pytest.raises(
            ValueError, match="statement_timeout must be a positive number of seconds or None, not"
        ):
            oxlite.connect(tmp_path / "app.db", statement_timeout=bad)
    assert not list(tmp_path.iterdir())


def test_a_misspelt_option_is_told_the_nearest() -> None:
    for connect in (oxlite.connect, sqlite3.connect):
        with pytest.raises(TypeError, match="profil"):
            connect(":memory:", profil="web")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="keyword argument 'profil'; did you mean 'profile'"):
        sqlite3.connect(":memory:", profil="web")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match=r"connect, sqlite3\.connect, Database"):
        oxlite.options("open")  # type: ignore[arg-type]


def test_a_profile_and_the_choices_are_what_there_is() -> None:
    choices = {option.name: option.choices for option in oxlite.options()}
    assert choices["profile"] == tuple(oxlite.profiles())
    for busy in choices["busy"] or ():
        connection = oxlite.connect(":memory:", busy=busy)  # type: ignore[arg-type]
        assert connection.busy == busy
        connection.close()


def test_values_are_known_by_their_types_and_read_from_text() -> None:
    declared = {option.name: option for option in oxlite.options()}
    assert accepts(declared["timeout"], 1)
    assert accepts(declared["busy"], None)
    assert not accepts(declared["timeout"], None)
    assert not accepts(declared["timeout"], True)
    assert not accepts(declared["factory"], int)
    assert accepts(declared["factory"], oxlite.Connection)
    for option in declared.values():
        assert accepts(option, option.default), option
    assert read(declared["uri"], "On") is True
    assert read(declared["timeout"], "1.5") == 1.5
    assert read(declared["cached_statements"], "7") == 7
    assert read(declared["extensions"], "a,b") == ["a", "b"]
    with pytest.raises(ValueError, match="maybe"):
        read(declared["uri"], "maybe")
    with pytest.raises(TypeError):
        read(declared["factory"], "x")


def table(options: Iterable[Option]) -> list[str]:
    """The rows that docs/profiles.md has of some options."""
    return [
        f"| `{option.name}` | {option.takes}{', or `None`' if option.is_optional else ''} |"
        f" `{option.default!r}` | {option.description} |".replace("`'\"", '`"')
        for option in options
    ]


def test_the_page_lists_the_options_as_they_are_declared() -> None:
    page = (DOCS / "profiles.md").read_text()
    _, _, section = page.partition("\n## Options\n")
    section = section.partition("\n## ")[0]
    rows = [row for row in section.splitlines() if re.match(r"\| `(?!oxlite)", row)]
    own = [one for one in oxlite.options("Database") if one not in oxlite.options()]
    assert rows == table(oxlite.options()) + table(own)


def test_settings_are_named() -> None:
    connection = oxlite.connect(":memory:", pragmas={"cache_size": -5000})
    (setting,) = [one for one in connection.settings if one.name == "cache_size"]
    assert setting == ("cache_size", "-5000", "-5000", None)
    assert isinstance(setting, oxlite.Setting)
    assert setting._fields == ("name", "requested", "effective", "skipped")
    assert (setting.requested, setting.effective, setting.skipped) == ("-5000", "-5000", None)
    connection.close()
