"""What was done to whom, and how much arrived all the same."""

from collections import Counter
from dataclasses import dataclass, field

OURS_KILLED = "killed: publishers that are Oxlite's"
OTHERS_KILLED = "killed: publishers that are other programs"
WRITING_KILLED = "of both, in the midst of a transaction or of its answer"
LISTENERS_KILLED = "killed: processes that listen"
WATCHERS_KILLED = "of these, the one that watches the files for all"
MAINTAINERS_KILLED = "killed: other programs in a checkpoint or VACUUM"
STOPS = "stopped for up to 0.8 s: publishers and processes that listen"
WATCHERS_STOPPED = "of these, the one that watches the files"
ENDS = "ended as they should: processes that listen"
CHECKPOINTS = "checkpoints (TRUNCATE) of another program"
VACUUMS = "VACUUM by another program"
REFUSED = "ended by themselves: publishers that share syncs, after a kill in a sync"
ROUNDS = "rounds, after which all had arrived"
CALM = "rounds in which nobody is killed, and other programs notify after a rest"
AWAYS = "lives that stayed away, or took nothing, for 1,500 to 120,000 notifications"
MAINTENANCE = (CHECKPOINTS, VACUUMS)
KILLED = (OURS_KILLED, OTHERS_KILLED, LISTENERS_KILLED, MAINTAINERS_KILLED)


@dataclass
class Tally:
    """What was done."""

    counts: Counter[str] = field(default_factory=Counter)
    notifications: int = 0
    transactions: int = 0
    """How many had them."""
    by_others: int = 0
    """How many of these other programs have committed."""
    delivered: int = 0
    """How many notifications all listeners together were given."""
    losses: int = 0
    """How often a listener was told that it had lost some, each time with reason."""

    @property
    def kills(self) -> int:
        """How many processes were killed."""
        return sum(self.counts[name] for name in KILLED)


_ROWS = (
    ROUNDS,
    CALM,
    OURS_KILLED,
    OTHERS_KILLED,
    WRITING_KILLED,
    LISTENERS_KILLED,
    WATCHERS_KILLED,
    MAINTAINERS_KILLED,
    STOPS,
    WATCHERS_STOPPED,
    ENDS,
    REFUSED,
    CHECKPOINTS,
    VACUUMS,
    AWAYS,
)


def table(tally: Tally) -> str:
    """The counts, as Markdown."""
    lines = ["| what | how many |", "|---|---:|"]
    lines += [f"| {name} | {tally.counts[name]:,} |" for name in _ROWS]
    lines += [
        f"| notifications committed | {tally.notifications:,} |",
        f"| transactions that had them | {tally.transactions:,} |",
        f"| of these, by other programs | {tally.by_others:,} |",
        f"| given to six listeners, each once and in order | {tally.delivered:,} |",
        f"| NotificationsLost, each time with reason | {tally.losses:,} |",
    ]
    return "\n".join(lines)
