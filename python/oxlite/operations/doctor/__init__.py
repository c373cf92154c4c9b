"""Whether a database is well: what is found, why it matters, and how it is mended.

::

    examination.py   the examination, and what comes of it
    cure.py          what can be mended without a thought
    report.py        illnesses, findings, the report
    checks/          one module for each family of checks, and the list of all
    subject.py       what checks are given
    place.py         the file as it lies there; file_bytes.py: how it begins
    content.py       the database opened; schema.py: its tables
    tables.py        the report for a terminal (the only module that needs rich)

Invariants: an examination only reads; what a file contains is data of a stranger, which is neither
    run
nor believed; importing this room imports neither rich nor psutil.
"""

from typing import TYPE_CHECKING

from oxlite.operations.doctor.checks import ILLNESSES
from oxlite.operations.doctor.cure import mend
from oxlite.operations.doctor.examination import examine
from oxlite.operations.doctor.report import SCHEMA, Finding, Illness, Report, Severity
from oxlite.operations.errors import OperationsError

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "ILLNESSES",
    "SCHEMA",
    "Finding",
    "Illness",
    "OperationsError",
    "Report",
    "Severity",
    "examine",
    "mend",
    "render",
]


def render(report: Report) -> "RenderableType":
    """The report for a terminal of 40 columns or more.

    Print it with ``crop=False``: a command that is longer than a line is one line all the same.

    Raises:
        OperationsError: rich is not installed.
    """
    try:
        from oxlite.operations.doctor.tables import tables
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "rich":
            raise
        raise OperationsError("this needs rich: pip install 'oxlite[cli]'") from error
    return tables(report)
