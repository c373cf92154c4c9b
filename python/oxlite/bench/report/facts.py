"""What a report says besides its tables, as lines of plain text.

The terminal and the Markdown file say the same, each in its own form.

Invariant: whatever is missing from the tables (a failed row, a cell that cannot
exist or was left out, a withheld percentile) is said here, with the reason.
"""

from collections import defaultdict
from collections.abc import Mapping
from statistics import median
from typing import Any

from oxlite.bench.harness.model import JsonObject, Result
from oxlite.bench.harness.statistics import SAMPLES_BEYOND, median_interval
from oxlite.bench.layout import ABSENT, WITHHELD, brackets, names, shared
from oxlite.bench.workloads.base import Workload

MULTIPLIED = "\N{MULTIPLICATION SIGN}"
SERVER_SETTINGS = ("fsync", "synchronous_commit", "shared_buffers")
MAPPERS = {"flask": "Flask", "sqlalchemy": "SQLAlchemy", "django": "Django"}
LISTED = 8  # scenarios left out; more are only counted
NOISES = 40  # rows whose noise is listed; of more it is summed up


def head(result: Result, workload: Workload[Any]) -> list[str]:
    """Which workload, with what parameters, measured how."""
    warm_ups = result.plan.warm_ups
    after = f" after {warm_ups} warm-up" if warm_ups else ""
    # Of a run in which nothing worked there are no ratios.
    worked = any(row.samples and row.failure is None for row in result.rows)
    interval = median_interval([0.0] * result.repeats) if worked else None
    plural = "" if result.repeats == 1 else "s"
    how = (
        f"{result.repeats} interleaved repeat{plural}{after}, the order changing from round to "
        f"round; figures are medians, ratios are of paired repeats"
        f"{brackets(() if interval is None else (interval.confidence,))}"
    )
    if result.rows and all(row.failure is not None for row in result.rows):
        how = f"all rows have failed, in {result.repeats} of {result.plan.repeats} repeats{after}"
    lines = [f"{workload.name}: {workload.title}", listed(result.parameters), how]
    common = shared(result)
    if common:
        lines.append(f"in all rows: {listed(common)}")
    return lines


def listed(values: JsonObject) -> str:
    """``name=value, name=value``, without the empty lists."""
    texts = {
        name: "|".join(map(str, value)) if isinstance(value, list | tuple) else value
        for name, value in values.items()
    }
    return ", ".join(f"{name}={text}" for name, text in texts.items() if text != "")


def withheld(result: Result, workload: Workload[Any]) -> list[str]:
    """What the mark of a withheld percentile means, if there is one."""
    drawings = [drawing for table in workload.tables for drawing in table.drawings(result)]
    if not any(WITHHELD in line.cells for drawing in drawings for line in drawing.lines):
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


def failures(result: Result, workload: Workload[Any]) -> list[str]:
    """The rows that failed, and the single figures of others."""
    rows = [f"failed  {row.label}: {row.failure}" for row in result.rows if row.failure is not None]
    return [
        *rows,
        *(
            f"failed  {row.label}: {title}: {reason}"
            for row in result.rows
            for title, reason in _titled(row.failed_figures(), workload)
        ),
    ]


def lacking(result: Result, workload: Workload[Any]) -> list[str]:
    """The figures that cannot exist, by reason, with the rows that lack them."""
    called = names(result)
    rows: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in result.rows:
        by_reason: defaultdict[str, list[str]] = defaultdict(list)
        for title, reason in _titled(row.absent_figures(), workload):
            by_reason[reason].append(title)
        for reason, titles in by_reason.items():
            rows[reason, "; ".join(titles)].append(called[row.label])
    return [
        f"{ABSENT}  {', '.join(labels)}: {reason}: {titles}"
        for (reason, titles), labels in rows.items()
    ]


def _titled(reasons: Mapping[str, str], workload: Workload[Any]) -> list[tuple[str, str]]:
    titles = {metric.name: metric.title for metric in workload.metrics}
    return [(titles.get(name, name), reason) for name, reason in reasons.items()]


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
    if len(found) > NOISES:
        noisiest = max(found, key=lambda label: found[label])
        each = (
            f"of {len(found)} rows the median {median(found.values()):.1%}, the largest "
            f"{called[noisiest]} {found[noisiest]:.1%}; every row's in the JSON file"
        )
    else:
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
        f"{row.scenario.driver} ({row.scenario.get('build', 'own')} build): "
        f"driver {found['driver']}, {_database(found, row.environment)}{_mappers(found)}"
        for row in measured
        if (found := row.samples[0].detail.get("versions"))
    )
    reports = [row.environment or {} for row in measured]
    # The cost of a sync is measured once in a run, by whichever row came first.
    chosen = next((report for report in reports if _syncs(report)), reports[0])
    pythons = dict.fromkeys(_python(report) for report in reports)
    return [*versions, *_machine(chosen, ", ".join(pythons))]


def _mappers(versions: Mapping[str, str]) -> str:
    """What stands between the workload and the driver."""
    return "".join(
        f", {shown} {versions[name]}" for name, shown in MAPPERS.items() if name in versions
    )


def _database(versions: Mapping[str, str], report: JsonObject | None) -> str:
    """What the driver talks to; of a server also the settings that its durability rests on."""
    if "sqlite" in versions:
        return f"SQLite {versions['sqlite']}"
    connection = (report or {}).get("connection", {})
    if "sqlite_version" in connection:
        return f"SQLite {connection['sqlite_version']}"
    server = connection.get("server", "PostgreSQL")
    settings = connection.get("settings", {})
    told = SERVER_SETTINGS if server == "PostgreSQL" else settings
    chosen = ", ".join(f"{name}={settings[name]}" for name in told if name in settings)
    version = connection.get("server_version", versions.get("postgresql"))
    return f"{server} {version}{f' ({chosen})' if chosen else ''}"


def _syncs(report: JsonObject) -> list[JsonObject]:
    return (report.get("fsync") or {}).get("series") or []


def _python(report: JsonObject) -> str:
    python = report["machine"]["python"]
    without = "" if python["gil_enabled"] else " without the GIL"
    return f"{python['implementation']} {python['version']}{without}"


def _machine(report: JsonObject, pythons: str) -> list[str]:
    machine = report["machine"]
    cpu, files = machine["cpu"], machine["file_system"]
    system = machine["operating_system"]
    memory_gib = machine["memory_total_bytes"] / (1 << 30)
    lines = [
        f"{cpu['model']}, {cpu['usable_cores']} processors, {memory_gib:.1f} GiB, "
        f"{system['distribution']}, {system['name']} {system['kernel']}",
        f"{pythons}, {files['type']} ({','.join(files['options'])})",
    ]
    series = _syncs(report)
    if series:
        costs = ", ".join(f"{s['call']} {s['write']} {s['median_us']:.0f} us" for s in series)
        lines.append(f"sync of {report['fsync']['block_bytes']} bytes, median: {costs}")
    return lines


def stamp(result: Result) -> str:
    """The digest of the work, the date and how long it took."""
    return f"work {result.work_digest[:16]}  {result.started_at}  {result.duration_seconds:.0f} s"
