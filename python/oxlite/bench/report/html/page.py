"""The report of one or several results as an HTML file.

From the top: the ratios that matter, what was published beside what was measured, a section for
each workload (charts, each with its table; then the tables of the terminal and everything it says
around them), and the environment at the end.
"""

from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Any

from oxlite.bench import published
from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Summary
from oxlite.bench.layout import ABSENT, Drawing, interval_of, number
from oxlite.bench.report import charts, facts
from oxlite.bench.report.html.drawing import drawn, summary_of
from oxlite.bench.report.html.markup import Markup, element, empty, joined
from oxlite.bench.workloads.base import Workload
from oxlite.bench.workloads.catalogue import WORKLOADS

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
TITLE = "oxlite bench"
HEADLINES = 2
"""Ratios of one result that the summary shows."""

WORDS = ("published", "by")
"""Columns of words, which stand on the left."""

BATCHES = ("by_10", "by_100", "at_once")
"""Steps that change what a transaction is, so that their ratios are no news."""

Rows = Sequence[Sequence[str]]


def render(results: Sequence[Result]) -> str:
    """The file, ending with a newline.

    Args:
        results: in the order of the report; at least one.
    """
    style = resources.files("oxlite.bench.report.html").joinpath("style.css").read_text("utf-8")
    names = ", ".join(dict.fromkeys(result.workload for result in results))
    head = element(
        "head",
        empty("meta", charset="utf-8"),
        empty("meta", http_equiv="Content-Security-Policy", content=POLICY),
        empty("meta", name="viewport", content="width=device-width, initial-scale=1"),
        empty("meta", name="color-scheme", content="light dark"),
        element("title", f"{TITLE}: {names}"),
        element("style", Markup(style)),
    )
    sections = [_section(number, result) for number, result in enumerate(results)]
    body = element(
        "body",
        _top(results),
        element("main", _summary(results), _published(results), *sections, _environment(results)),
        element("footer", element("p", f"Written by {TITLE}. Complete figures: the JSON files.")),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _top(results: Sequence[Result]) -> Markup:
    dates = sorted(result.started_at[:10] for result in results)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    machines = dict.fromkeys(line for result in results for line in _machine(result)[:1])
    links = [
        element("li", element("a", result.workload, href=f"#{_anchor(index, result)}"))
        for index, result in enumerate(results)
    ]
    links.append(element("li", element("a", "environment", href="#environment")))
    return element(
        "header",
        element("h1", "What SQLite does on this machine"),
        element("p", " · ".join([when, *machines]), class_="quiet"),
        element("nav", element("ul", *links), aria_label="Sections"),
        class_="top",
    )


def _summary(results: Sequence[Result]) -> Markup:
    cards = [card for result in results for card in _headlines(result)]
    content = [element("h2", "Summary", id="summary")]
    for result in results:
        if result.interrupted:
            content.append(
                element("p", f"{result.workload} was interrupted: what follows of it is a part.",
                        class_="failed")
            )  # fmt: skip
        if result.failed():
            content.append(
                element("p", f"{result.workload}: rows failed; the section says which and why.",
                        class_="failed")
            )  # fmt: skip
    if cards:
        content.append(
            element(
                "p",
                "How many times better, as the median of paired repeats; in brackets where the "
                "true median lies.",
                class_="quiet",
            )
        )
        content.append(element("ul", *cards, class_="ratios"))
    else:
        content.append(element("p", "No row has another beside it that it can be compared with."))
    return element("section", *content, aria_labelledby="summary")


def _headlines(result: Result) -> list[Markup]:
    """The largest ratio of Oxlite's rows against each baseline, of the largest the first few."""
    workload = WORKLOADS.get(result.workload)
    metric = _headline_metric(workload)
    if metric is None:
        return _counted(result, workload)
    found: dict[str, tuple[Row, str, Summary]] = {}
    for row in result.rows:
        if row.scenario.driver != "oxlite" or row.scenario.step in BATCHES:
            continue
        for baseline in result.compared_with(row):
            times = result.improvement(row, metric, baseline)
            known = found.get(baseline)
            base = result.row(baseline)
            # Failing is fast, and leaves the others more of the machine.
            if base is None or not (row.did_its_work() and base.did_its_work()):
                continue
            # What is not so in the whole interval is no headline.
            if times is None or times.interval.low <= 1:
                continue
            if known is None or times.median > known[2].median:
                found[baseline] = (row, baseline, times)
    best = sorted(found.values(), key=lambda one: -one[2].median)[:HEADLINES]
    return [
        _card(
            f"{number(times.median)}{facts.MULTIPLIED}",
            f"({interval_of(times)})" if times.count > 1 else "one repeat",
            f"{result.workload}: {metric.title}",
            row.label,
            f"against {baseline}",
        )
        for row, baseline, times in best
    ]


def _counted(result: Result, workload: Workload[Any]) -> list[Markup]:
    """Of a workload with many metrics: in how many a row is better by the whole interval."""
    cards = []
    for row in result.rows:
        for baseline in result.compared_with(row):
            every = [result.improvement(row, metric, baseline) for metric in workload.metrics]
            known = [times for times in every if times is not None and times.count > 1]
            if row.scenario.driver == "oxlite" and known:
                better = sum(times.interval.low > 1 for times in known)
                worse = sum(times.interval.high < 1 for times in known)
                cards.append(
                    _card(
                        f"{better} of {len(known)}",
                        "" if not worse else f"{worse} worse",
                        f"{result.workload}: better, by the whole interval",
                        row.label,
                        f"against {baseline}",
                    )
                )
    return cards[:HEADLINES]


def _card(figure: str, beside: str, what: str, which: str, against: str) -> Markup:
    return element(
        "li",
        element("b", figure, *([Markup(" "), element("small", beside)] if beside else [])),
        element("span", what),
        element("span", which),
        element("span", against, class_="quiet"),
    )


def _headline_metric(workload: Workload[Any]) -> Metric | None:
    """The metric that sums a workload up; of many, their sum, if there is one."""
    sums = [metric for metric in workload.metrics if metric.name.startswith("sum_")]
    if sums:
        return sums[0]
    return workload.metrics[0] if len(workload.metrics) <= charts.FEW_METRICS else None


def _published(results: Sequence[Result]) -> Markup:
    claims = published.answered(results)
    if not claims:
        return Markup("")
    rows = [row for claim, answers in claims for row in _claim_rows(claim, answers)]
    head = element(
        "tr",
        *(
            element("th", heading, scope="col", class_="words" if heading in WORDS else None)
            for heading in ("claim", *published.HEADINGS)
        ),
    )
    table = element("table", element("thead", head), element("tbody", *rows), class_="claims")
    return element(
        "section",
        element("h2", published.TITLE, id="published"),
        element("p", published.CAUTION, class_="quiet"),
        _scrolled(table, "Published figures beside measured ones"),
        aria_labelledby="published",
    )


def _claim_rows(claim: published.Published, answers: Sequence[published.Measured]) -> list[Markup]:
    said = [(str(one), f"{one.row} / {one.against}") for one in answers]
    name = element("th", claim.claim, element("small", claim.source), scope="row")
    ratio = ABSENT if claim.ratio is None else number(claim.ratio)
    return [
        element(
            "tr",
            # Of several answers the first line says of what.
            name if index == 0 else element("th", element("small", "also"), scope="row"),
            element("td", claim.figure if index == 0 else "", class_="words"),
            element("td", ratio if index == 0 else ""),
            element("td", times),
            element("td", rows, class_="words"),
        )
        for index, (times, rows) in enumerate(said or [(ABSENT, ABSENT)])
    ]


def _section(index: int, result: Result) -> Markup:
    workload = WORKLOADS.get(result.workload)
    anchor = _anchor(index, result)
    title, *settings = facts.head(result, workload)
    tables = [drawing for table in workload.tables for drawing in table.drawings(result)]
    remarks = [
        *facts.withheld(result, workload),
        *facts.errors(result),
        *facts.lacking(result, workload),
        *facts.absences(result),
        *facts.noise(result, workload),
        *(f"Note: {note}" for note in result.notes),
    ]
    return element(
        "section",
        element("h2", title, id=anchor),
        *(element("p", line, class_="quiet") for line in settings),
        _list(facts.failures(result, workload), "remarks failed"),
        *(_figure(f"{anchor}-{n}", one) for n, one in enumerate(charts.charts(result, workload))),
        *(_details(drawing.title, _table(drawing), drawing.remarks) for drawing in tables),
        _list(remarks, "remarks"),
        element("p", facts.stamp(result), class_="hint"),
        element("pre", f"$ {result.command}"),
        aria_labelledby=anchor,
    )


def _anchor(index: int, result: Result) -> str:
    return f"{result.workload}-{index + 1}"


def _figure(anchor: str, chart: charts.Chart) -> Markup:
    table = chart.table()
    return element(
        "figure",
        element("figcaption", table.title, id=anchor),
        element("div", drawn(chart), role="img", aria_label=summary_of(chart),
                class_=f"chart {type(chart).__name__.lower()}"),
        _details("The numbers as a table", _table(table), ()),
        aria_labelledby=anchor,
    )  # fmt: skip


def _details(title: str, table: Markup, remarks: Iterable[str]) -> Markup:
    return element(
        "details", element("summary", title), _scrolled(table, title), _list(remarks, "remarks")
    )


def _scrolled(table: Markup, title: str) -> Markup:
    # Wide tables scroll by themselves, with the keyboard too; the page never does.
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=title)


def _table(drawing: Drawing) -> Markup:
    headings = (drawing.heading, *drawing.headings)
    head = element("tr", *(element("th", heading, scope="col") for heading in headings))
    rows = [
        element(
            "tr",
            element("th", line.name, scope="row"),
            *(element("td", cell) for cell in line.cells),
        )
        for line in drawing.lines
    ]
    return element(
        "table",
        element("caption", drawing.title),
        element("thead", head),
        element("tbody", *rows),
    )


def _list(lines: Iterable[str], classes: str) -> Markup:
    items = [element("li", line) for line in lines]
    return element("ul", *items, class_=classes) if items else Markup("")


def _machine(result: Result) -> list[str]:
    lines = facts.environment(result)
    return [line for line in lines if "driver " not in line]


def _environment(results: Sequence[Result]) -> Markup:
    content: list[Markup] = []
    said: set[str] = set()
    for result in results:
        lines = [line for line in facts.environment(result) if line not in said]
        said.update(lines)
        if lines:
            content += [element("h3", result.workload), _list(lines, "remarks")]
        for row in result.rows:
            connection = (row.environment or {}).get("connection") or {}
            key = f"{row.scenario.driver} {connection.get('sqlite_source_id')}"
            if connection and key not in said:
                said.add(key)
                content.append(_connection(row, connection))
    return element(
        "section",
        element("h2", "Environment", id="environment"),
        joined(content) or element("p", "No row was measured, so nothing is known of it."),
        element(
            "p", "Complete, for every row, in the JSON files: pragmas, options, versions.",
            class_="hint",
        ),
        aria_labelledby="environment",
    )  # fmt: skip


def _connection(row: Row, connection: dict[str, Any]) -> Markup:
    pragmas = connection.get("pragmas") or {}
    said = [f"SQLite {connection.get('sqlite_version')}, {connection.get('sqlite_source_id')}"]
    said.append("compiled with " + ", ".join(connection.get("compile_options") or ["?"]))
    said.append("pragmas " + ", ".join(f"{name}={value}" for name, value in pragmas.items()))
    title = f"The connection of {row.label}: SQLite, compile-time options, pragmas"
    return element("details", element("summary", title), _list(said, "remarks"))
