"""What a report says besides its tables, as lines of plain text.

The terminal and the Markdown file say the same, each in its own form.

Invariant: whatever is missing from the tables (a failed row, a cell that cannot
exist or was left out, a withheld percentile) is said here, with the reason.
"""

from collections import defaultdict
from typing import Any

from oxlite.bench.harness.model import JsonObject, Result
from oxlite.bench.harness.statistics import SAMPLES_BEYOND
from oxlite.bench.layout import WITHHELD, names, shared
from oxlite.bench.workloads.base import Workload

MULTIPLIED = "\N{MULTIPLICATION SIGN}"
LISTED = 8  # scenarios left out; more are only counted


def head(result: Result, workload: Workload[Any]) -> list[str]:
    """Which workload, with what parameters, measured how."""
    lines = [
        f"{workload.name}: {workload.title}",
        listed(result.parameters),
        f"{result.repeats} interleaved repeats after {result.plan.warm_ups} warm-up, the order "
        f"changing from round to round; figures are medians, ratios are of paired repeats with "
        f"the smallest and largest in brackets",
    ]
    common = shared(result)
    if common:
        lines.append(f"in all rows: {listed(common)}")
    return lines


def listed(values: JsonObject) -> str:
    """``name=value, name=value``."""
    return ", ".join(f"{name}={value}" for name, value in values.items())


def withheld(result: Result, workload: Workload[Any]) -> list[str]:
    """What the mark of a withheld percentile means, if there is one."""
    columns = [column for table in workload.tables for column in table.columns]
    if not any(column.text(result, row) == WITHHELD for column in columns for row in result.rows):
        return []
    return [
        f"{WITHHELD}  withheld: fewer than {SAMPLES_BEYOND} samples lie beyond it; "
        f"latencies are over all repeats together"
    ]


def errors(result: Result) -> list[str]:
    """The operations that failed, by row and message."""
    return [
        f"errors  {row.label}: {count:,} {MULTIPLIED} {text}"
        for row in result.rows
        for text, count in sorted(row.errors().items())
    ]


def failures(result: Result) -> list[str]:
    """The rows that failed."""
    return [f"failed  {row.label}: {row.failure}" for row in result.rows if row.failure is not None]


def absences(result: Result) -> list[str]:
    """The cells that cannot run here, by reason, and those that were left out."""
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for cell in result.impossible:
        by_reason[cell.reason or ""].append(cell.scenario.label)
    lines = [f"not run  {', '.join(labels)}: {reason}" for reason, labels in by_reason.items()]
    if len(result.left) > LISTED:
        lines.append(f"left for --all  {len(result.left)} scenarios, named in the JSON file")
    elif result.left:
        lines.append(f"left for --all  {', '.join(result.left)}")
    return lines


def noise(result: Result, workload: Workload[Any]) -> list[str]:
    """The noise of the workload's first metric."""
    metric = workload.metrics[0]
    called = names(result)
    found = result.noise(metric.name)
    if not found:
        return []
    each = ", ".join(f"{called[label]} {value:.1%}" for label, value in found.items())
    return [
        f"Noise of {metric.title} over the repeats (1.48 {MULTIPLIED} median absolute "
        f"deviation / median): {each}"
    ]


def environment(result: Result) -> list[str]:
    """The drivers with the SQLite that each carries, and the machine."""
    measured = [row for row in result.rows if row.environment is not None]
    if not measured:
        return []
    versions = dict.fromkeys(
        f"{row.scenario.driver} ({row.scenario.build} build): driver {found['driver']}, "
        f"SQLite {found['sqlite']}"
        for row in measured
        if (found := row.samples[0].detail.get("versions"))
    )
    reports = [row.environment or {} for row in measured]
    # The cost of a sync is measured once in a run, by whichever row came first.
    chosen = next((report for report in reports if _syncs(report)), reports[0])
    return [*versions, *_machine(chosen)]


def _syncs(report: JsonObject) -> list[JsonObject]:
    return (report.get("fsync") or {}).get("series") or []


def _machine(report: JsonObject) -> list[str]:
    machine = report["machine"]
    cpu, python, files = machine["cpu"], machine["python"], machine["file_system"]
    system = machine["operating_system"]
    memory_gib = machine["memory_total_bytes"] / (1 << 30)
    lines = [
        f"{cpu['model']}, {cpu['usable_cores']} processors, {memory_gib:.1f} GiB, "
        f"{system['distribution']}, {system['name']} {system['kernel']}",
        f"{python['implementation']} {python['version']}"
        f"{'' if python['gil_enabled'] else ' without the GIL'}, "
        f"{files['type']} ({','.join(files['options'])})",
    ]
    series = _syncs(report)
    if series:
        costs = ", ".join(f"{s['call']} {s['write']} {s['median_us']:.0f} us" for s in series)
        lines.append(f"sync of {report['fsync']['block_bytes']} bytes, median: {costs}")
    return lines


def stamp(result: Result) -> str:
    """The digest of the work, the date and how long it took."""
    return f"work {result.work_digest[:16]}  {result.started_at}  {result.duration_seconds:.0f} s"
