"""What ``oxlite.django`` has to be worth, and that the rows below it fail as published.

A row of Oxlite is compared with Django's own backend in the published fix, IMMEDIATE
transactions, in the same repeat; that it does not collapse, with itself at 16 clients. The median
decides.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from oxlite.bench.harness import statistics
from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Summary
from oxlite.bench.layout import ABSENT, Drawing, Line, number, spread_of
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.verdict import judged
from oxlite.bench.workloads.web.figures import FAILED_PERCENT, P99, RATE, REQUEST
from oxlite.bench.workloads.web.ladder import ENGINE, GATE, PUBLISHED

FULL_AT = "16"
TAIL_AT = "32"
TAIL_TIMES = 5.0
KEPT = 0.9
"""Of the rate at 16 clients, what more of them must leave."""

PUBLISHED_PERCENT = {
    "defaults": {"1": 35, "2": 39, "4": 55, "8": 78, "16": 100},
    "immediate": {"1": 1, "2": 0, "4": 0, "8": 0, "16": 0},
}
"""Failed requests in percent, by settings and clients, of the published benchmark."""

CLIENTS = {"1": "1 client"}

SINGLE = "single_insert"
"""The mix of another application than the one of which all this was published."""


@dataclass(frozen=True)
class Bar:
    """The least that a ratio may be."""

    limit: float

    def beyond(self, value: float) -> bool:
        """Whether ``value`` is too little."""
        return value < self.limit


def peer(scenario: Scenario) -> Scenario:
    """The same with Django's own backend and IMMEDIATE transactions."""
    return replace(scenario, driver="stdlib", build="own", busy="backoff", settings=PUBLISHED)


def _ours(result: Result) -> Iterator[Row]:
    for row in result.rows:
        if row.scenario.mix != SINGLE and (
            (row.scenario.settings, row.scenario.busy) == (ENGINE, GATE)
        ):
            yield row


def _clients(row: Row) -> str:
    count = row.scenario.clients or ""
    return f"{row.scenario.mix}, {CLIENTS.get(count, f'{count} clients')}"


class ClaimsTable:
    """Every bar of which there are the rows."""

    def drawings(self, result: Result) -> Sequence[Drawing]:
        """See :class:`~oxlite.bench.layout.Drawable`."""
        lines = [line for row in _ours(result) for line in self._of(result, row)]
        if not lines:
            return []
        title = "oxlite.django against Django's own backend with IMMEDIATE"
        return [Drawing(title, "claim", ("bar", "measured", "verdict"), lines)]

    def _of(self, result: Result, row: Row) -> Iterator[Line]:
        clients = _clients(row)
        yield _failures(row, clients)
        base = peer(row.scenario).label
        if result.row(base) is not None:
            found = result.improvement(row, RATE, base)
            yield _ratio(f"{clients}: times the requests/s", Bar(1.0), found)
            if row.scenario.clients == TAIL_AT:
                found = _tail(result, row, base)
                title = f"{clients}: times shorter p99"
                yield _ratio(title, Bar(TAIL_TIMES), found, result.repeats)
        full = result.row(replace(row.scenario, clients=FULL_AT).label)
        if full is not None and int(row.scenario.clients or 0) > int(FULL_AT):
            found = _between(row, full, RATE)
            yield _ratio(f"{clients}: times the requests/s at {FULL_AT}", Bar(KEPT), found)


def _failures(row: Row, clients: str) -> Line:
    title = f"{clients}: failed requests"
    if row.failure is not None:
        return Line(title, ("0", ABSENT, "not known"))
    failed, asked = sum(row.errors().values()), sum(sample.asked for sample in row.samples)
    return Line(title, ("0", f"{failed:,} of {asked:,}", "missed" if failed else "held"))


def _ratio(title: str, bar: Bar, found: Summary | None, repeats: int | None = None) -> Line:
    if found is None:
        measured = ABSENT
    elif found.count == 1 and (repeats or 1) > 1:
        measured = f"{number(found.median)} (repeats together)"
    else:
        measured = spread_of(found)
    return Line(title, (f"≥ {number(bar.limit)}", measured, judged(bar, found, repeats)))


def _tail(result: Result, row: Row, base: str) -> Summary | None:
    """How many times shorter the 99th percentile is than that of the row ``base``.

    Where a repeat has too few requests for one, of all repeats together; then it has no spread.
    """
    found = result.improvement(row, P99, base)
    other = result.row(base)
    if row.failure is not None or other is None:
        return None
    if found is not None and found.count == result.repeats:
        return found
    mine, its = (each.percentile_ns(REQUEST, 99.0) for each in (row, other))
    return statistics.summarise([its / mine]) if mine and its else None


def _between(row: Row, other: Row, metric: Metric) -> Summary | None:
    if row.failure is not None:
        return None
    figures, others = row.figures(metric.name), other.figures(metric.name)
    return statistics.summarise(statistics.improvements(figures, others, metric.better))


class PublishedTable:
    """Failed requests beside those that were published, for the rows that have such."""

    def drawings(self, result: Result) -> Sequence[Drawing]:
        """See :class:`~oxlite.bench.layout.Drawable`."""
        lines = [
            Line(f"{row.scenario.settings}, {_clients(row)}", (f"{percent} %", _percent(row)), row)
            for row in result.rows
            if (percent := _published(row.scenario)) is not None
        ]
        if not lines:
            return []
        title = "Failed requests of Django's own backend, beside those published of another site"
        return [Drawing(title, "settings", ("published", "here"), lines)]


def _published(scenario: Scenario) -> int | None:
    if scenario.mix == SINGLE:
        return None
    return PUBLISHED_PERCENT.get(scenario.settings or "", {}).get(scenario.clients or "")


def _percent(row: Row) -> str:
    found = row.summary(FAILED_PERCENT.name)
    return ABSENT if found is None else f"{number(found.median)} %"
