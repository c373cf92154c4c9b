"""The manual of the workloads: a section of Markdown for each, made from what it declares."""

from typing import Any

from oxlite.bench.parameters import declared
from oxlite.bench.workloads.base import Workload
from oxlite.bench.workloads.catalogue import WORKLOADS

BEGIN = "<!-- The workloads: made by scripts/reference.py from what they declare. -->"
END = "<!-- The end of the workloads. -->"


def with_workloads(page: str) -> str:
    """A page of Markdown with the sections of all workloads, between its two marks.

    Raises:
        ValueError: it has not both marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the page has no place for the workloads")
    return "\n\n".join([before + BEGIN, *map(section, WORKLOADS), END + after])


def section(workload: Workload[Any]) -> str:
    """The section of a workload, without an empty line at its end."""
    plan, quick = workload.plan, workload.quick_plan
    parameters = declared(workload.parameters_type)
    options = [f"| `{one.option}` | {one.explained()} |" for one in parameters]
    axes = [
        f"| `{axis.name}` | {axis.means}"
        + (": " + "; ".join(f"`{value}` {said}" for value, said in axis.meanings.items()))
        * bool(axis.meanings)
        + " |"
        for axis in workload.axes
    ]
    examples = [f"$ oxlite bench {workload.name} {one}".rstrip() for one in workload.examples]
    return "\n".join(
        [
            f"## `oxlite bench {workload.name}`",
            "",
            workload.about.strip(),
            "",
            f"Rounds: {plan.repeats}, quick {quick.repeats} and no fewer than "
            f"{quick.least_repeats}; none begins after {plan.time_budget_seconds:g} s, quick "
            f"{quick.time_budget_seconds:g}. [What is measured](methodology.md#{workload.name}).",
            "",
            "| option | effect |",
            "|---|---|",
            *options,
            "",
            "| axis | what it is |",
            "|---|---|",
            *axes,
            "",
            "<!-- not run: minutes to hours of measuring; tests/bench plays each workload -->",
            "```console",
            *examples,
            "```",
        ]
    )
