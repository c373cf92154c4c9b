"""Results that were stored, and reports of them: what is done with JSON files after a run.

The command line and tests use it; :mod:`oxlite.bench.lab` makes the files.
"""

from collections.abc import Sequence
from pathlib import Path

from oxlite.bench.conditions import differences, subject
from oxlite.bench.errors import LabError, MalformedRecordError, UsageError
from oxlite.bench.harness import record
from oxlite.bench.harness.files import reserved
from oxlite.bench.harness.model import Result
from oxlite.bench.report import markdown
from oxlite.bench.report.html import page
from oxlite.bench.workloads.catalogue import WORKLOADS

QUICK = ".quick.json"
"""How the names of a quick series' results end."""
PART = ".part.json"
"""How the names of interrupted runs end, if there is a whole one."""


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
        workload = WORKLOADS.get(result.workload)
        for row in result.rows:
            workload.require(row.scenario)
        for cell in result.impossible:
            workload.require(cell.scenario)
        _use(result)
    except UsageError as error:
        raise MalformedRecordError(f"{path}: {error}") from None
    except LabError:
        raise
    except record.MALFORMED as error:
        what = " ".join(f"{type(error).__name__} {error}".split())
        raise MalformedRecordError(f"{path}: the result is malformed: {what}") from None
    return result


def _use(result: Result) -> None:
    """Do with a result what the commands do, to find out here whether that can be done."""
    for text in (markdown.render_all([result]), page.render([result])):
        text.encode()
    differences(result, result)
    subject(result, result)


def read_all(paths: Sequence[Path]) -> list[Result]:
    """The results in files, in their order; one that is named twice is read once.

    Raises:
        UsageError: no file is named, or one cannot be read; the others as :func:`read`.
    """
    if not paths:
        raise UsageError("name at least one JSON file, as `oxlite bench kv --json FILE` writes it")
    return [read(path) for path in {path.resolve(): path for path in paths}.values()]


def stored_in(directory: Path) -> list[Path]:
    """The whole results that series have left in a directory, the quick ones first.

    Raises:
        UsageError: there are none.
    """
    found = [path for path in directory.glob("*.json") if not path.match(f"*{PART}")]
    # Of several results that answer a question, the last does.
    found.sort(key=lambda path: (not path.match(f"*{QUICK}"), path))
    if not found:
        raise UsageError(
            f"no results in {directory}: run `oxlite bench all --quick`, or name JSON files"
        )
    return found


def require_apart(inputs: Sequence[Path], outputs: Sequence[Path | None]) -> None:
    """Refuse to write a report over what it is made of, or over another report.

    Raises:
        UsageError: two paths name the same file.
    """
    read_from = {path.resolve() for path in inputs}
    written: set[Path] = set()
    for path in outputs:
        if path is None:
            continue
        target = path.resolve()
        if target in read_from:
            raise UsageError(f"{path} is a result: name another file for the report")
        if target in written:
            raise UsageError(f"--html and --markdown name the same file: {path}")
        written.add(target)


def write(results: Sequence[Result], *, html: Path | None, markdown_file: Path | None) -> None:
    """Write the reports that are asked for.

    Raises:
        UsageError: a file cannot be written.
    """
    texts = []
    if html is not None:
        texts.append((html, page.render(results)))
    if markdown_file is not None:
        texts.append((markdown_file, markdown.render_all(results)))
    for path, text in texts:
        with reserved(path) as destination:
            try:
                destination.write(text)
            except OSError as error:
                raise UsageError(f"cannot write {path}: {error.strerror}") from None
