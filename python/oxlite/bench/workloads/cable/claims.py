"""How soon what is said has to arrive, and how surely; and what waiting may cost."""

from oxlite.bench.claims import Claim, NoneFail
from oxlite.bench.workloads.cable.figures import P50, P99, WAKEUPS

OURS = {"driver": "oxlite", "way": "file"}
MESSAGES = {**OURS, "load": "messages"}
PEERS = {
    "channels-redis (core)": {"driver": "channels_redis", "way": "core"},
    "channels-redis (pub/sub)": {"driver": "channels_redis", "way": "pubsub"},
}
NAMED = ("clients", "hertz")

CLAIMS = (
    *(
        Claim(
            f"{metric.title}, times that of {name}",
            metric, limit, MESSAGES, changes, at_least=False, named=NAMED,
        )
        for metric, limit in ((P50, 1.0), (P99, 1.2))
        for name, changes in PEERS.items()
    ),
    Claim(
        "wake-ups of idle members", WAKEUPS, 0.0, {**OURS, "load": "idle"}, at_least=False,
        named=("clients",),
    ),
    NoneFail("messages lost, doubled or out of order", P50, 0.0, MESSAGES, named=NAMED),
)  # fmt: skip
