"""Results that were stored, and reports of them: what is done with JSON files after a run.

The command line and tests use it; :mod:`oxlite.bench.lab` makes the files.
"""

from collections.abc import Sequence
from pathlib import Path

from oxlite.bench.errors import LabError, MalformedRecordError, UsageError
from oxlite.bench.harness import record
from oxlite.bench.harness.files import reserved
from oxlite.bench.harness.model import Result
from oxlite.bench.report import facts, markdown
from oxlite.bench.report.html import page
from oxlite.bench.workloads.catalogue import WORKLOADS


def read(path: Path) -> Result:
    """The result in a file, known to be one that can be reported.

    Raises:
        UsageError: the file cannot be read.
        FutureRecordError: a later lab wrote it.
        MalformedRecordError: it is no result, or one of a workload that this lab does not have.
    """
    result = record.read(path)
    if result.workload not in WORKLOADS:
        raise MalformedRecordError(
            f"{path}: no workload of this oxlite is called {result.workload!r}; it has "
            f"{', '.join(WORKLOADS.names())}"
        )
    try:
        facts.environment(result)
        facts.withheld(result, WORKLOADS.get(result.workload))
    except LabError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        what = f"{type(error).__name__} {error}"
        raise MalformedRecordError(f"{path}: the result is malformed: {what}") from None
    return result


def read_all(paths: Sequence[Path]) -> list[Result]:
    """The results in files, in their order.

    Raises:
        UsageError: no file is named, or one cannot be read; the others as :func:`read`.
    """
    if not paths:
        raise UsageError("name at least one JSON file, as `oxlite bench kv --json FILE` writes it")
    return [read(path) for path in paths]


def stored_in(directory: Path) -> list[Path]:
    """The JSON files that a series has left in a directory.

    Raises:
        UsageError: there are none.
    """
    found = sorted(directory.glob("*.json"))
    if not found:
        raise UsageError(
            f"no results in {directory}: run `oxlite bench all --quick`, or name JSON files"
        )
    return found


def write(results: Sequence[Result], *, html: Path | None, markdown_file: Path | None) -> None:
    """Write the reports that are asked for.

    Raises:
        UsageError: a file cannot be written.
    """
    texts = []
    if html is not None:
        texts.append((html, page.render(results)))
    if markdown_file is not None:
        texts.append((markdown_file, "\n".join(map(markdown.render, results))))
    for path, text in texts:
        with reserved(path) as destination:
            try:
                destination.write(text)
            except OSError as error:
                raise UsageError(f"cannot write {path}: {error.strerror}") from None
