"""Results as one HTML file that opens offline: sentences and a picture, charts, tables, conditions.

The templates beside this module have the form; here it is said what they are given.

Invariants: nothing is fetched and nothing is run (the page's own policy forbids it); text from
results is escaped by the templates; every number that is drawn stands in a table.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from oxlite.bench.contest import Finding
from oxlite.bench.harness.model import Result, Row
from oxlite.bench.layout import ABSENT, interval_of, number
from oxlite.bench.report import charts, facts, published
from oxlite.bench.report.charts import Bar, Bars
from oxlite.bench.report.html.drawing import Picture, drawn
from oxlite.bench.report.summary import VERDICTS, conditions, failed_note, named, summary
from oxlite.bench.report.text import plain
from oxlite.bench.workloads.catalogue import WORKLOADS

JsonObject = Mapping[str, Any]


def _finalized(value: object) -> object:
    # What a macro has made is no longer text from outside.
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("oxlite.bench.report.html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_finalized,
    )
    made.globals["drawn"] = drawn
    return made


def render(results: Sequence[Result]) -> str:
    """The file, ending with a newline.

    Args:
        results: in the order of the report; at least one.
    """
    said = summary(results)
    dates = sorted(result.started_at[:10] for result in results)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    machines = dict.fromkeys(line for result in results for line in _machine(result)[:1])
    return (
        _environment()
        .get_template("report.html")
        .render(
            when=" · ".join([when, *machines]),
            summary=said,
            headline=None if said.pictured is None else _headline(said.pictured),
            cards=[card for one in said.findings if (card := _card(one)) is not None],
            troubles=_troubles(results),
            published_title=published.TITLE,
            caution=published.CAUTION,
            headings=("claim", *published.HEADINGS),
            published=_published(results),
            sections=[_section(index, result) for index, result in enumerate(results)],
            environments=_environments(results),
        )
    )


def _troubles(results: Sequence[Result]) -> list[str]:
    found = []
    for result in results:
        if result.interrupted:
            found.append(f"{result.workload} was interrupted: what follows of it is a part.")
        if result.failed():
            found.append(f"{result.workload}: rows failed; the section says which and why.")
    return found


def _headline(finding: Finding) -> Picture | None:
    """The rows of a finding as bars."""
    metric = finding.contest.metric
    bars = [
        Bar(f"{name}: {row.label}", figure, row.scenario.driver, note=failed_note(row))
        for name, (row, figure) in finding.figures().items()
    ]
    return drawn(Bars(metric.title_with_unit, metric.better, bars)) if bars else None


def _card(finding: Finding) -> JsonObject | None:
    """Oxlite's default beside the best tuned peer; none below the repeats that a verdict takes."""
    if not finding.may_judge():
        return None
    contest = finding.contest
    if contest.counted:
        tally = finding.tally()
        return {
            "figure": f"{len(tally['better'])} of {len(finding.ratios)}",
            "spread": "better",
            "what": f"{named(finding)}: {contest.unit}, by the whole interval",
            "verdict": f"{len(tally['alike'])} as good, {len(tally['worse'])} worse",
            "against": finding.tuned.label,
        }
    ratio = finding.ratios[contest.metric]
    where = f", {found}" if (found := conditions(finding)) else ""
    return {
        "figure": f"{number(ratio.median)}{facts.MULTIPLIED}",
        "spread": f"({interval_of(ratio)})",
        "what": f"{named(finding)}{where}: {contest.unit}",
        "verdict": VERDICTS[finding.verdict(contest.metric)],
        "against": finding.tuned.label,
    }


def _published(results: Sequence[Result]) -> list[JsonObject]:
    return [
        {
            "claim": claim.claim,
            "source": claim.source,
            "figure": claim.figure,
            "ratio": ABSENT if claim.ratio is None else number(claim.ratio),
            "said": [(str(one), f"{one.row} / {one.against}") for one in answers]
            or [(ABSENT, ABSENT)],
        }
        for _, claim, answers in published.answered(results)
    ]


def _section(index: int, result: Result) -> JsonObject:
    workload = WORKLOADS.get(result.workload)
    return {
        "result": result,
        "anchor": f"{result.workload}-{index + 1}",
        "head": facts.head(result, workload),
        "failures": facts.failures(result, workload),
        "charts": charts.charts(result, workload),
        "tables": [drawing for table in workload.tables for drawing in table.drawings(result)],
        "remarks": [
            *facts.withheld(result, workload),
            *facts.errors(result),
            *facts.lacking(result, workload),
            *facts.absences(result),
            *facts.noise(result, workload),
            *(f"Note: {note}" for note in result.notes),
        ],
        "stamp": facts.stamp(result),
    }


def _machine(result: Result) -> list[str]:
    return [line for line in facts.environment(result) if "driver " not in line]


def _environments(results: Sequence[Result]) -> list[JsonObject]:
    """What each result says that none before it has said."""
    said: set[str] = set()
    found: list[JsonObject] = []
    for result in results:
        lines = [line for line in facts.environment(result) if line not in said]
        said.update(lines)
        connections = []
        for row in result.rows:
            connection = (row.environment or {}).get("connection") or {}
            key = f"{row.scenario.driver} {connection.get('sqlite_source_id')}"
            if connection and key not in said:
                said.add(key)
                connections.append(_connection(row, connection))
        if lines or connections:
            found.append({"workload": result.workload, "lines": lines, "connections": connections})
    return found


def _connection(row: Row, connection: JsonObject) -> JsonObject:
    pragmas = connection.get("pragmas") or {}
    return {
        "label": row.label,
        "lines": [
            f"SQLite {connection.get('sqlite_version')}, {connection.get('sqlite_source_id')}",
            "compiled with " + ", ".join(connection.get("compile_options") or ["?"]),
            "pragmas " + ", ".join(f"{name}={value}" for name, value in pragmas.items()),
        ],
    }
