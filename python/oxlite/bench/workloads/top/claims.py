"""What it may cost writers to be watched; how right top has to be."""

from oxlite.bench.claims import Claim, NoneFail
from oxlite.bench.workloads.top.figures import DISAGREEMENT, RATE
from oxlite.bench.workloads.top.ways import UNWATCHED, WATCHED
from oxlite.bench.workloads.top.work import WRITE

OURS = {"driver": "oxlite"}
NAMED = ("load", "processes")

CLAIMS = (
    Claim(
        "transactions in a second while watched, times those unwatched",
        RATE, 0.99, {**OURS, "way": WATCHED, "load": WRITE}, {"way": UNWATCHED}, named=NAMED,
    ),
    Claim(
        "largest part by which what top tells is wrong",
        DISAGREEMENT, 0.02, {**OURS, "way": WATCHED}, at_least=False, named=NAMED,
    ),
    NoneFail("transactions that failed", RATE, 0.0, OURS, named=("way", *NAMED)),
)  # fmt: skip
