"""What ``oxlite.django`` has to be worth, and what was published of other sites.

A row of Oxlite is compared with Django's own backend in the published fix, IMMEDIATE transactions,
in the same repeat; that it does not collapse, with itself at 16 clients.
"""

from collections.abc import Mapping, Sequence

from oxlite.bench.claims import Claim, NoneFail, Published
from oxlite.bench.harness.model import Result, Row
from oxlite.bench.layout import ABSENT, Drawing, Line, number
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.web.figures import FAILED_PERCENT, P99, RATE, REQUEST
from oxlite.bench.workloads.web.ladder import ENGINE, GATE, ISOLATED, KEPT, SHARED
from oxlite.bench.workloads.web.ladder import PUBLISHED as FIX
from oxlite.bench.workloads.web.ladder import REQUEST as OPENED

FULL_AT = "16"
TAIL_AT = "32"

SINGLE = "single_insert"
"""The mix of another application than the one of which all this was published."""

_OURS = {"settings": ENGINE, "busy": GATE, "connections": OPENED}
_PEER = {"driver": "stdlib", "busy": "backoff", "settings": FIX, "connections": OPENED}
_KEPT = {"connections": KEPT}
_TUNED = {**_PEER, "settings": "wal"}
_NAMED = ("mix", "clients")


def _of_the_application(scenario: Scenario) -> bool:
    return scenario.get("mix") != SINGLE


def _beyond_full(scenario: Scenario) -> bool:
    return _of_the_application(scenario) and int(scenario["clients"]) > int(FULL_AT)


CLAIMS = (
    NoneFail("failed requests", FAILED_PERCENT, 0.0, _OURS, named=_NAMED, only=_of_the_application),
    Claim("times the requests/s", RATE, 1.0, _OURS, _PEER, named=_NAMED, only=_of_the_application),
    Claim(
        "times shorter p99", P99, 5.0, {**_OURS, "clients": TAIL_AT}, _PEER,
        named=_NAMED, only=_of_the_application, pooled=REQUEST,
    ),
    Claim(
        "times the requests/s of kept connections", RATE, 0.97, _OURS, _KEPT,
        named=_NAMED, only=_of_the_application,
    ),
    Claim(
        "times the requests/s of Django's own backend with WAL", RATE, 1.10, _OURS, _TUNED,
        named=_NAMED, only=_of_the_application,
    ),
    Claim(
        "times those of that with connections kept", RATE, 1.10, _OURS, {**_TUNED, **_KEPT},
        named=_NAMED, only=_of_the_application,
    ),
    # Of the rate at 16 clients, what more of them must leave.
    Claim(
        f"times the requests/s at {FULL_AT}", RATE, 0.9, _OURS, {"clients": FULL_AT},
        named=_NAMED, only=_beyond_full,
    ),
)  # fmt: skip

_SOURCE = "a web application in Ruby on Rails, 100 users and 1,000 posts"

PUBLISHED = (
    # Of p99.99, for which a repeat of some seconds has too few requests: here it is p99.
    Published(
        "the tail at 4, 8, 16, 32 clients (p99.99; here p99): 1 ms against the back-off",
        "0.051, 0.534, 0.472, 0.501 s against 0.211, 0.785, 1.073, 1.525 s", None, _SOURCE,
        (REQUEST, 99.0), {"settings": "rollback", "busy": "fair", "mix": "balanced"},
        {"busy": "backoff"},
    ),
    Published(
        "requests/s, balanced mix: tuned against stock", "660 against 16.5", 660 / 16.5, _SOURCE,
        RATE.name, {"settings": "wal", "mix": "balanced"}, {"settings": "defaults"},
    ),
    # Its four ratios are 1.13, 2.13, 1.54 and 0.96: none is that of all numbers of clients.
    Published(
        "requests/s at 4, 8, 16, 32 clients: isolated pools against a shared one",
        "423, 411, 292, 278 against 374, 193, 190, 289", None,
        f"{_SOURCE}; which pools are which was uncertain there",
        RATE.name, {"settings": ISOLATED, "mix": "balanced"}, {"settings": SHARED},
    ),
    Published(
        "requests/s of single INSERTs: 16 clients against 8", "633 against 2,572", 633 / 2_572,
        "one INSERT for each request, a workshop's application",
        RATE.name, {"mix": SINGLE, "clients": "16"}, {"clients": "8"},
    ),
)  # fmt: skip

PUBLISHED_PERCENT: Mapping[str, Mapping[str, int]] = {
    "defaults": {"1": 35, "2": 39, "4": 55, "8": 78, "16": 100},
    "immediate": {"1": 1, "2": 0, "4": 0, "8": 0, "16": 0},
}
"""Failed requests in percent, by settings and clients, of the published benchmark."""


class PublishedTable:
    """Failed requests beside those that were published, for the rows that have such."""

    def drawings(self, result: Result) -> Sequence[Drawing]:
        """See :class:`~oxlite.bench.layout.Drawable`."""
        lines = [
            Line(
                f"{row.scenario['settings']}, {row.scenario.label_of(_NAMED)}",
                (f"{percent} %", _percent(row)),
                row,
            )
            for row in result.rows
            if (percent := _published(row.scenario)) is not None
        ]
        if not lines:
            return []
        title = "Failed requests of Django's own backend, beside those published of another site"
        return [Drawing(title, "settings", ("published", "here"), lines)]


def _published(scenario: Scenario) -> int | None:
    if not _of_the_application(scenario):
        return None
    return PUBLISHED_PERCENT.get(scenario.get("settings", ""), {}).get(scenario.get("clients", ""))


def _percent(row: Row) -> str:
    found = row.summary(FAILED_PERCENT.name)
    return ABSENT if found is None else f"{number(found.median)} %"
