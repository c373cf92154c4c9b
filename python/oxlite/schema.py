"""The options of ``connect`` and of both ``Database``s, as the driver declares them.

Invariant: nothing is declared here. What is checked, read from text, or said in a message is made
from the declaration in ``oxlite-core``; so are the options of SQLAlchemy's URLs and of Django.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from oxlite import _native

__all__ = ["URI_PARAMETERS", "Door", "Option", "accepts", "options", "read", "require_range"]

URI_PARAMETERS: Final = frozenset({"cache", "immutable", "mode", "modeof", "nolock", "psow", "vfs"})
"""What SQLite itself reads in a ``file:`` URI: https://sqlite.org/uri.html"""


Door: TypeAlias = Literal["connect", "sqlite3.connect", "Database"]
"""Where options are given."""


class Option(NamedTuple):
    """One option of an opening.

    Attributes:
        name: Its name.
        kind: What sort of value it takes.
        takes: The same in words, for a message: ``a number of seconds``, ``'each' or 'shared'``.
        default: What it is where nothing is said.
        is_optional: Whether it takes ``None`` as well.
        choices: The words it takes, if it takes one of several; else ``None``.
        at_least: The least number it takes; ``None`` if there is none.
        more_than: A number that it takes only more than; ``None`` if there is none.
        description: What it is for, in one sentence.
    """

    name: str
    kind: Literal[
        "boolean",
        "integer",
        "number",
        "choice",
        "autocommit",
        "mapping",
        "list",
        "function",
        "class",
    ]
    takes: str
    default: object
    is_optional: bool
    choices: tuple[str, ...] | None
    at_least: float | None
    more_than: float | None
    description: str


def options(
    of: Door = "connect",
) -> tuple[Option, ...]:
    """Every option of an opening, with its type, default and range.

    >>> {option.name: option.default for option in oxlite.options()}["busy"]
    >>> [option.choices for option in oxlite.options("Database") if option.name == "busy"]
    [('none', 'backoff', 'fair', 'gate')]

    Args:
        of: Whose: ``oxlite.connect``'s, ``oxlite.sqlite3.connect``'s, or those that
            ``oxlite.Database`` and ``oxlite.aio.Database`` have alike.

    Returns:
        The options, but for the database itself, in the order of the signature.

    Raises:
        ValueError: There is no such door.
    """
    return tuple(Option(*declared) for declared in _native.options(of))


_TYPES: Final[Mapping[str, tuple[Any, ...]]] = {
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "choice": (str,),
    "autocommit": (int,),
    "mapping": (Mapping,),
    "list": (list, tuple),
    "function": (Callable,),
}


def accepts(option: Option, value: object) -> bool:
    """Whether a value has the type of an option; the driver looks at what it is.

    Args:
        option: The option.
        value: What is given for it. ``True`` is no number.
    """
    if value is None:
        return option.is_optional
    if option.kind == "class":
        return isinstance(value, type) and issubclass(value, _native.Connection)
    types = _TYPES[option.kind]
    is_wrong_boolean = isinstance(value, bool) and option.kind not in {"boolean", "autocommit"}
    return isinstance(value, types) and not is_wrong_boolean


def read(option: Option, text: str) -> object:
    """The value of an option that is written as text, as in a URL.

    Raises:
        ValueError: The text cannot be read so.
        TypeError: No text says what this option takes.
    """
    match option.kind:
        case "boolean":
            if text.lower() in {"true", "1", "yes", "on"}:
                return True
            if text.lower() in {"false", "0", "no", "off"}:
                return False
            raise ValueError(text)
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "choice":
            return text
        case "list":
            return text.split(",")
        case _:
            raise TypeError(option.name)


def require_range(of: Door, name: str, value: float) -> None:
    """Refuse a number that is out of an option's range.

    Args:
        of: As for ``options``.
        name: The option's name.
        value: The number.

    Raises:
        ValueError: It is out of range.
    """
    option = next(option for option in options(of) if option.name == name)
    if option.at_least is not None and not value >= option.at_least:
        raise ValueError(f"{name} must be at least {option.at_least:g}, not {value}")
    if option.more_than is not None and not value > option.more_than:
        raise ValueError(f"{name} must be more than {option.more_than:g}, not {value}")
