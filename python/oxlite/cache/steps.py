"""The steps that an operation of the cache asks for, and whoever runs it does.

An operation is a generator: it yields steps, is given what came of each, and returns its result.
``Cache`` does them by calling, ``aio.Cache`` by awaiting. So there is one cache and not two.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

__all__ = ["Blocking", "Compute", "Many", "Open", "Pause", "Read", "Step", "Steps", "Write"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Read:
    """Run a query; its rows."""

    sql: str
    parameters: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Write:
    """Run a statement that writes; the rows that it returns."""

    sql: str
    parameters: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Many:
    """Run a statement with each set of parameters, in one transaction."""

    sql: str
    sets: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Open:
    """Open the file, if it is not open, or is another one by now; looked at before each write."""

    is_to_write: bool


@dataclass(frozen=True, slots=True)
class Blocking:
    """Call what may take some time and does not concern the event loop."""

    function: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Compute:
    """Call a function of the user's; what it returns, awaited where that is done."""

    function: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for so many seconds."""

    seconds: float


Step: TypeAlias = Read | Write | Many | Open | Blocking | Compute | Pause
Steps: TypeAlias = Generator[Step, Any, _T]
