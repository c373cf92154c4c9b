"""How soon, and how surely, a listener has to hear; and what that may cost those who write."""

from oxlite.bench.claims import Claim, NoneFail
from oxlite.bench.harness.model import Metric
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.notify.figures import CALL_P50, P50, P99, WAKEUPS, WRITES

OURS = {"driver": "oxlite", "load": "messages"}
THREAD = {**OURS, "way": "thread", "listeners": "1"}
TASK = {**OURS, "way": "task", "listeners": "1"}
OUTSIDER = {**OURS, "way": "outsider", "listeners": "1"}
PEERS = {
    "Redis": {"driver": "redis"},
    "PostgreSQL": {"driver": "postgresql"},
    "honker": {"driver": "honker", "way": "task"},
}
NAMED = ("way", "listeners", "hertz")
UNHURRIED = 1_000
"""Messages in a second up to which each finds its listeners at rest."""


def _unhurried(scenario: Scenario) -> bool:
    return int(scenario["hertz"]) <= UNHURRIED


def _at_most(metric: Metric, limit_ms: float, rows: dict[str, str]) -> Claim:
    return Claim(
        f"{metric.title}, ms", metric, limit_ms, rows, at_least=False, named=NAMED, only=_unhurried
    )


CLAIMS = (
    _at_most(P50, 0.1, THREAD),
    _at_most(P99, 1.0, THREAD),
    _at_most(P50, 0.2, TASK),
    _at_most(P99, 10.0, {**THREAD, "listeners": "100", "hertz": "100"}),
    _at_most(P99, 10.0, OUTSIDER),
    *(
        Claim(
            f"{metric.title}, times shorter than {name}'s", metric, 1.0, THREAD, changes,
            named=("hertz",), only=_unhurried,
        )
        for metric in (P50, CALL_P50)
        for name, changes in PEERS.items()
    ),
    Claim(
        "wake-ups of an idle listener", WAKEUPS, 0.0, {"driver": "oxlite", "load": "idle"},
        at_least=False, named=("way",),
    ),
    Claim(
        "transactions in a second, times those without listeners", WRITES, 0.98,
        {"load": "writers"}, {"elsewhere": "0"}, named=("elsewhere",),
    ),
    NoneFail(
        "messages lost, doubled or out of order", P50, 0.0, OURS, named=NAMED
    ),
)  # fmt: skip
