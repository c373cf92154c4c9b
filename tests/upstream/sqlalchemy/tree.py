"""Runs SQLAlchemy's whole tree of tests on the standard library's driver and on Oxlite.

    python tree.py [--workers 2] [--evidence FILE] [--reuse] [TEST ...]

The tree comes from the source distribution of the SQLAlchemy that is installed, and is kept under
``target/sqlalchemy``. Both runs have a file each, in the same interpreter; Oxlite's with the
profile ``stock``, which sets nothing, since the tests take SQLite's own settings for granted. The
run fails

- for a test that fails on Oxlite and does not on the standard library's driver;
- for one that is skipped or missing on Oxlite and is not on the standard library's driver,

unless it is declared in tree_declared.toml, with its reason; and for a declaration that is not
needed.

With ``--reuse`` the reports of the latest runs are compared again. Status: 0 passed, 1 failed.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT))

from tests.upstream.trees import Comparison, declarations, source  # noqa: E402

CACHE = ROOT / "target" / "sqlalchemy"
DECLARED = HERE / "tree_declared.toml"

# A class of tests is named after the driver and SQLite's version as well.
_OF_THE_DRIVER = re.compile(r"_sqlite\+[a-z_]+?(_async)?_\d+_\d+_\d+")


@dataclass(frozen=True)
class Driver:
    """One of the two runs.

    Attributes:
        name: How it is called in what is printed.
        url: Its database.
        options: What pytest is told beside that.
    """

    name: str
    url: str
    options: tuple[str, ...] = ()

    @property
    def report(self) -> Path:
        """Where its outcomes are written."""
        return CACHE / f"{self.name}.xml"


STOCK = Driver("stock", "sqlite:///tree.db")
OXLITE = Driver(
    "oxlite",
    "sqlite+oxlite:///tree.db?profile=stock",
    ("-p", "tree_plugin"),
)


def run(driver: Driver, folder: Path, workers: int, tests: Iterable[str]) -> None:
    """Run the tests on one driver; what became of them is in its report."""
    for left in folder.glob("*.db*"):
        left.unlink()
    paths = [str(ROOT / "python"), str(HERE), str(folder)]
    print(f"== {driver.name}: {driver.url}", flush=True)
    with (CACHE / f"{driver.name}.log").open("w") as log:
        subprocess.run(
            [
                *(sys.executable, "-s", "-m", "pytest", *driver.options, f"-n{workers}"),
                *("--nomemory", "--notimingintensive", "--nomypy", "-p", "no:cacheprovider"),
                *("-q", "--tb=short", "--maxfail=1000000", f"--junit-xml={driver.report}"),
                *("--dburi", driver.url, *(tests or ["test"])),
            ],
            cwd=folder,
            # Without it the tree's own conftest would import SQLAlchemy from the tree.
            env={
                **os.environ,
                "PYTHONNOUSERSITE": "1",
                "PYTHONPATH": os.pathsep.join(paths),
            },
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def outcomes(report: Path) -> dict[str, str]:
    """What became of each test by its name on any driver: passed, failed or skipped."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = _OF_THE_DRIVER.sub("", f"{case.get('classname')}::{case.get('name')}")
        tags = {child.tag for child in case}
        outcome = "failed" if tags & {"failure", "error"} else "skipped" if tags else "passed"
        if outcome == "skipped" and any(
            child.get("type") == "pytest.xfail" for child in case if child.tag == "skipped"
        ):
            outcome = "passed"  # it was expected to fail, and did
        # A test whose teardown fails is there twice.
        if found.get(name) != "failed":
            found[name] = outcome
    return found


def main() -> int:
    """Run both, compare, and say what differs."""
    parser = argparse.ArgumentParser(description="SQLAlchemy's tests, on both drivers")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--evidence", type=Path, help="write the comparison to this file")
    parser.add_argument("--reuse", action="store_true", help="compare the latest runs again")
    parser.add_argument("tests", nargs="*", help="files or folders of the tree; all of it")
    options = parser.parse_args()
    release = version("sqlalchemy")
    if not options.reuse:
        folder = source("sqlalchemy", release)
        for driver in (STOCK, OXLITE):
            driver.report.unlink(missing_ok=True)
            run(driver, folder, options.workers, options.tests)
    for driver in (STOCK, OXLITE):
        if not driver.report.exists():
            log = CACHE / f"{driver.name}.log"
            print(f"{driver.name} has ended without a report:\n{log.read_text()[-5000:]}")
            return 1
    import sqlite3

    import oxlite

    comparison = Comparison(
        title=f"SQLAlchemy {release}: its whole tree of tests",
        said=f"CPython {sys.version.split()[0]}. The standard library's driver on SQLite"
        f" {sqlite3.sqlite_version}, Oxlite on {oxlite.sqlite_version}; a database file each."
        " In these tests Oxlite's dialect has the other driver's name, so those for that one alone"
        " run as well. To repeat it:"
        " `make test-upstream EVIDENCE=docs/evidence/sqlalchemy-upstream.md`.",
        settings={driver.name: driver.url for driver in (STOCK, OXLITE)},
        stock=outcomes(STOCK.report),
        oxlite=outcomes(OXLITE.report),
        declared=declarations(DECLARED, release),
    )
    print(comparison.report())
    if options.evidence:
        options.evidence.write_text(comparison.report())
    complaints = comparison.complaints(is_whole=not options.tests)
    for complaint in complaints:
        print(f"FAILED: {complaint}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
