"""Asks whether something that we use has a known vulnerability: crates, and packages of Python.

    .venv/bin/python scripts/advisories.py CARGO_DENY

The crates of ``Cargo.lock`` are looked up in RustSec's database, which is a repository on GitHub,
and the packages of the environment in which this runs in PyPI's. Both change without us, so this is
no part of ``make lint``: ``make audit`` runs it, and a workflow does each day.

Exit codes: 0, both have answered and nothing is known; 1, something is known; 3, nothing is known
and a database could not be asked. What could not be asked is never taken for an answer.
"""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]

IGNORED: Final[dict[str, str]] = {}
"""Advisories about packages of Python that do not concern us, each with the reason. Those about
crates are in ``deny.toml``."""

FOUND: Final = 1
NOT_ASKED: Final = 3

_OUT_OF_REACH: Final = ("failed to fetch advisory database", "failed to open advisory database")


def crates(deny: str) -> int:
    """Asks about the crates; prints what is known of them."""
    command = [deny, "--locked", "check", "advisories"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        print("crates: RustSec knows of nothing")
        return 0
    print(done.stderr.strip())
    if any(words in done.stderr for words in _OUT_OF_REACH):
        print("crates: NOT ASKED, RustSec's database cannot be reached from here")
        return NOT_ASKED
    print("crates: see above")
    return FOUND


def judged(report: dict[str, Any]) -> tuple[list[str], list[str]]:
    """What a report of pip-audit says: what is known, and of what it could not ask.

    A package that PyPI does not have is skipped there. That is right for this project's own one
    alone: of all the others it says that PyPI has not answered.
    """
    found, not_asked = [], []
    for package in report["dependencies"]:
        if "skip_reason" in package:
            if package["name"] != "oxlite":
                not_asked.append(package["name"])
            continue
        for advisory in package["vulns"]:
            mended = ", ".join(advisory["fix_versions"]) or "no release"
            found.append(
                f"{package['name']} {package['version']}: {advisory['id']}, mended in {mended}"
            )
    return found, not_asked


def packages() -> int:
    """Asks about the packages of this environment; prints what is known of them."""
    command = [
        *(sys.executable, "-m", "pip_audit", "--path", sysconfig.get_path("purelib")),
        *("--format=json", "--progress-spinner=off"),
        *(f"--ignore-vuln={name}" for name in IGNORED),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        print(done.stderr.strip()[-2000:])
        print("packages of Python: NOT ASKED, pip-audit has no answer")
        return NOT_ASKED
    found, not_asked = judged(report)
    for line in found:
        print(line)
    if not_asked:
        print(
            f"packages of Python: NOT ASKED about {len(not_asked)}, PyPI does not answer for them"
        )
        return FOUND if found else NOT_ASKED
    print("packages of Python: see above" if found else "packages of Python: PyPI knows of nothing")
    return FOUND if found else 0


def main() -> int:
    """Asks about both, and says what is to be done."""
    if len(sys.argv) != 2:
        print("usage: scripts/advisories.py CARGO_DENY", file=sys.stderr)
        return 2
    outcomes = {crates(sys.argv[1]), packages()}
    return FOUND if FOUND in outcomes else max(outcomes)


if __name__ == "__main__":
    sys.exit(main())
