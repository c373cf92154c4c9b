"""The steps that an operation of the cache asks for, and whoever runs it does.

An operation is a generator: it yields steps, is given what came of each, and returns its result.
``Cache`` does them by calling, ``aio.Cache`` by awaiting. So there is one cache and not two.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

__all__ = ["Blocking", "Compute", "Many", "Pause", "Read", "Step", "Steps", "Write"]

_T = TypeVar("_T")


class Read(NamedTuple):
    """Run a query; its rows. The file is opened before, if it is not."""

    sql: str
    parameters: Sequence[Any] = ()


class Write(NamedTuple):
    """Run a statement that writes; the rows that it returns.

    The file is opened before, also if it is another one by now than was opened.
    """

    sql: str
    parameters: Sequence[Any] = ()


class Many(NamedTuple):
    """Run a statement with each set of parameters in one transaction; the file as for ``Write``."""

    sql: str
    sets: Sequence[Sequence[Any]]


class Blocking(NamedTuple):
    """Call what may take some time and does not concern the event loop."""

    function: Callable[[], Any]


class Compute(NamedTuple):
    """Call a function of the user's; what it returns, awaited where that is done."""

    function: Callable[[], Any]


class Pause(NamedTuple):
    """Wait for so many seconds."""

    seconds: float


Step: TypeAlias = Read | Write | Many | Blocking | Compute | Pause
Steps: TypeAlias = Generator[Step, Any, _T]
