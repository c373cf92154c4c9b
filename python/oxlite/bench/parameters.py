"""Parameters of a workload: declared once, with what the command line and the papers say of them.

::

    @dataclass(frozen=True)
    class KvParameters(Parameters):
        queries: int = parameter(2_000, "Statements of each process", quick=500, least=1)

The option is called after the field, without its unit: ``timeout_seconds`` is ``--timeout``.

Invariants: what is constructed is within its range; a field of several values has each once, and
has one at least if it has any by default.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin, get_type_hints

from oxlite.bench.errors import UsageError, require_between, unknown

MOST = 10_000_000
"""Of anything that is counted, unless the parameter says otherwise."""

LONGEST_SECONDS = 86_400
"""Of anything that waits."""

SHORTEST_SECONDS = 0.01
"""Of anything that is measured for a time."""

UNITS = ("_seconds",)

_UNSAID: Any = object()


@dataclass(frozen=True)
class Parameter:
    """What is known of one parameter.

    Attributes:
        name: of the field.
        kind: the type of one value.
        is_many: whether it takes several, as a tuple.
        default: its value unless another one is given.
        quick: the same of ``--quick``.
        published: the value of the published figures.
        help: what it is, in a few words, with a capital letter and no full stop.
        least: its smallest value.
        most: its largest.
        choices: its values, if it is one of several words.
        option: of the command line.
    """

    name: str
    kind: type[Any]
    is_many: bool
    default: Any
    quick: Any
    published: Any
    help: str
    least: float
    most: float
    choices: Sequence[str]
    option: str

    def explained(self) -> str:
        """Its help with its values: ``Statements of each process (default 2000, quick 500).``"""  # noqa: D415
        said = [f"default {_shown(self.default)}"] if self.default not in ((), "") else []
        if self.quick != self.default:
            said.append(f"quick {_shown(self.quick)}")
        values = f" ({', '.join(said)})" if said else ""
        return f"{self.help}{values}.{' Repeatable.' if self.is_many else ''}"

    def check(self, value: Any) -> None:  # noqa: ANN401 - of whatever type
        """Refuse a value that is out of range.

        Raises:
            UsageError: it is.
        """
        if self.choices and value not in self.choices:
            raise unknown(f"value of {self.option}", value, self.choices)
        if self.kind in {int, float}:
            require_between(self.option, value, self.least, self.most)


def parameter(
    default: Any,  # noqa: ANN401 - of whatever type
    help: str,
    *,
    quick: Any = _UNSAID,  # noqa: ANN401
    published: Any = _UNSAID,  # noqa: ANN401
    least: float = 0,
    most: float = MOST,
    choices: Sequence[str] = (),
    option: str | None = None,
) -> Any:  # noqa: ANN401 - dataclasses' own field() has no type either
    """A field of a :class:`Parameters`; the arguments are attributes of :class:`Parameter`."""
    told = {
        "help": help,
        "quick": default if quick is _UNSAID else quick,
        "published": default if published is _UNSAID else published,
        "least": least,
        "most": most,
        "choices": choices,
        "option": option,
    }
    return field(default=default, metadata=told)


def seed(help: str = "Of all random streams") -> Any:  # noqa: ANN401
    """The parameter ``seed``."""
    return parameter(1, help, least=-(2**63), most=2**63)


def timeout(what: str = "Seconds to wait for a lock, where waiting") -> Any:  # noqa: ANN401
    """The parameter ``timeout_seconds``; the drivers count milliseconds in 32 bits."""
    return parameter(5.0, what, most=LONGEST_SECONDS)


def interpreters() -> Any:  # noqa: ANN401
    """The parameter ``interpreter``: the Pythons that workers run on."""
    return parameter((), "Measure on this Python, which has Oxlite")


@dataclass(frozen=True)
class Parameters:
    """What shapes a run of a workload; each workload has its own."""

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        for one in declared(type(self)):
            value = getattr(self, one.name)
            if not one.is_many:
                one.check(value)
                continue
            every = tuple(dict.fromkeys(value))
            object.__setattr__(self, one.name, every)
            if one.default and not every:
                raise UsageError(f"{one.option} must be at least one number")
            for each in every:
                one.check(each)


def declared(type_: type[Parameters]) -> list[Parameter]:
    """Every parameter of a workload, in order."""
    hints = get_type_hints(type_)
    found = []
    for one in dataclasses.fields(type_):
        hint = hints[one.name]
        is_many = get_origin(hint) is not None
        told = dict(one.metadata)
        told["option"] = told["option"] or f"--{_without_unit(one.name).replace('_', '-')}"
        kind = get_args(hint)[0] if is_many else hint
        found.append(Parameter(one.name, kind, is_many, one.default, **told))
    return found


def values(type_: type[Parameters], which: str) -> Mapping[str, object]:
    """The values of every parameter in ``quick`` or ``published`` runs, by name."""
    return {one.name: getattr(one, which) for one in declared(type_)}


def _without_unit(name: str) -> str:
    for unit in UNITS:
        name = name.removesuffix(unit)
    return name


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
