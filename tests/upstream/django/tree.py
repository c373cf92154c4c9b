"""Runs Django's own tests on the backend that comes with it and on ``oxlite.django``.

    python tree.py [--workers 2] [--evidence FILE] [--reuse] [LABEL ...]

The tree comes from the source distribution of the Django that is installed, and is kept under
``target/django``. Test databases are in memory, as Django has them, and cloned for parallel runs.
The run fails

- for a test that fails on Oxlite and does not on the backend that comes with Django;
- for one that is skipped or missing on Oxlite and is not there,

unless it is declared in tree_declared.toml, with its reason; and for a declaration that is not
needed.

With ``--reuse`` the outcomes of the latest runs are compared again. Status: 0 passed, 1 failed.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT))

from tests.upstream.trees import Comparison, declarations, source  # noqa: E402

CACHE = ROOT / "target" / "django"
DECLARED = HERE / "tree_declared.toml"
SETTINGS = {"stock": "settings_stock", "oxlite": "settings_oxlite"}
OTHER_SETTINGS = {"cache": "settings_cache"}


def run(name: str, release: str, workers: int, labels: Iterable[str]) -> dict[str, str]:
    """Run the tests with the settings of that name; what became of them, by name.

    Raises:
        RuntimeError: It has ended without telling, for example since a worker has died.
    """
    folder = source("django", release) / "tests"
    told = CACHE / f"{name}.json"
    told.unlink(missing_ok=True)
    settings = (SETTINGS | OTHER_SETTINGS)[name]
    print(f"== {name}: {settings}", flush=True)
    with (CACHE / f"{name}.log").open("w") as log:
        subprocess.run(
            [
                *(sys.executable, "-W", "ignore", "runtests.py"),
                *(f"--settings={settings}", f"--parallel={workers}", "--noinput", *labels),
            ],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(HERE)]),
                "OXLITE_OUTCOMES": str(told),
            },
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    if not told.exists():
        tail = (CACHE / f"{name}.log").read_text()[-5000:]
        raise RuntimeError(f"{name} has ended without telling what became of its tests:\n{tail}")
    return outcomes(name)


def outcomes(name: str) -> dict[str, str]:
    """What became of the tests of the latest run with the settings of that name."""
    found = json.loads((CACHE / f"{name}.json").read_text())
    return {test: outcome.partition(":")[0] for test, outcome in found.items()}


def main() -> int:
    """Run both, compare, and say what differs."""
    parser = argparse.ArgumentParser(description="Django's tests, on both backends")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--evidence", type=Path, help="write the comparison to this file")
    parser.add_argument("--reuse", action="store_true", help="compare the latest runs again")
    parser.add_argument("labels", nargs="*", help="as for Django's runtests.py; all of it")
    options = parser.parse_args()
    release = version("django")
    found = {
        name: outcomes(name)
        if options.reuse
        else run(name, release, options.workers, options.labels)
        for name in SETTINGS
    }
    import sqlite3

    import oxlite

    what = " ".join(options.labels) or "its whole tree of tests"
    comparison = Comparison(
        title=f"Django {release}: {what}",
        said=f"CPython {sys.version.split()[0]}. The backend that comes with Django on SQLite"
        f" {sqlite3.sqlite_version}, `oxlite.django` on {oxlite.sqlite_version}; databases in"
        " memory. To repeat it: `make test-django EVIDENCE=docs/evidence/django-upstream.md`.",
        settings=SETTINGS,
        stock=found["stock"],
        oxlite=found["oxlite"],
        declared=declarations(DECLARED, release),
    )
    print(comparison.report())
    if options.evidence:
        options.evidence.write_text(comparison.report())
    complaints = comparison.complaints(is_whole=not options.labels)
    for complaint in complaints:
        print(f"FAILED: {complaint}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
