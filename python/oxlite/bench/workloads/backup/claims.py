"""What a backup may cost those who write meanwhile."""

from oxlite.bench.claims import Claim, NoneFail
from oxlite.bench.workloads.backup.figures import COMMITS
from oxlite.bench.workloads.backup.ways import NONE

OURS = {"way": "oxlite"}
NAMED = ("way",)

CLAIMS = (
    Claim(
        "commits per second, times those without a backup",
        COMMITS,
        0.8,
        OURS,
        {"way": NONE},
        named=NAMED,
    ),
    NoneFail("transactions that failed", COMMITS, 0.0, OURS, named=NAMED),
)
