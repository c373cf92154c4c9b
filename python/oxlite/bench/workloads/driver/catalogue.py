"""All operations of ``driver``, in the order of the report."""

from collections.abc import Iterable, Sequence

from oxlite.bench.errors import UsageError
from oxlite.bench.registry import Registry
from oxlite.bench.workloads.driver.blobs import BLOBS
from oxlite.bench.workloads.driver.calling import CALLING
from oxlite.bench.workloads.driver.connecting import CONNECTING
from oxlite.bench.workloads.driver.converting import CONVERTING
from oxlite.bench.workloads.driver.copying import COPYING
from oxlite.bench.workloads.driver.operation import Operation
from oxlite.bench.workloads.driver.preparing import PREPARING
from oxlite.bench.workloads.driver.reading import READING
from oxlite.bench.workloads.driver.shaping import SHAPING
from oxlite.bench.workloads.driver.writing import WRITING

OPERATIONS: Registry[Operation] = Registry("operation")
for group in (
    READING,
    WRITING,
    PREPARING,
    CONNECTING,
    CALLING,
    BLOBS,
    SHAPING,
    CONVERTING,
    COPYING,
):
    for declared in group:
        OPERATIONS.add(declared)


def chosen(words: Iterable[str]) -> Sequence[Operation]:
    """The operations whose name contains one of ``words``; all, without words.

    Raises:
        UsageError: a word is in no name.
    """
    found: dict[str, None] = {}
    for word in words:
        fitting = [name for name in OPERATIONS.names() if word.lower() in name.lower()]
        if not word or not fitting:
            # Semicolons, because there are commas in the names.
            raise UsageError(
                f"no operation is called {word!r}, even in part; "
                f"there are: {'; '.join(OPERATIONS.names())}"
            )
        found |= dict.fromkeys(fitting)
    return [operation for operation in OPERATIONS if not found or operation.name in found]
