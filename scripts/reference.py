#!/usr/bin/env python3
"""Write the sections of the lab's workloads into docs/cli.md, from what the workloads declare."""

from pathlib import Path

from oxlite.bench.report.reference import with_workloads

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"


if __name__ == "__main__":
    PAGE.write_text(with_workloads(PAGE.read_text()))
