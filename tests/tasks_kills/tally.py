"""What was done in a campaign, in numbers, and how soon others went on."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tests.tasks_kills.judge import Findings
from tests.tasks_kills.timeline import Recovery

__all__ = ["Tally", "table"]

_SUMS: Final = (
    "tasks",
    "acknowledged",
    "rolled_back",
    "refused",
    "unheard",
    "doubled",
    "exact",
    "poisoned",
    "set_aside",
    "innocent",
    "cancelled",
    "ticks",
)


@dataclass
class Tally:
    """See the module.

    Attributes:
        killed: By what they were.
        killed_stopped: Of these, how many were stopped when they were killed.
        all_at_once: How often all were killed at once.
        stopped: How often one was stopped, and went on.
        ended: How many workers were asked to end.
        gave_up: How many supervisors have ended since none of their processes came to be ready.
        rounds: How often all was looked at.
        files: How many files there were.
        recoveries: Of the tasks that killed processes had.
    """

    killed: Counter[str] = field(default_factory=Counter)
    killed_stopped: int = 0
    all_at_once: int = 0
    stopped: int = 0
    ended: int = 0
    gave_up: int = 0
    rounds: int = 0
    files: int = 0
    recoveries: list[Recovery] = field(default_factory=list)
    _before: Counter[str] = field(default_factory=Counter)
    _of_file: Counter[str] = field(default_factory=Counter)

    @property
    def kills(self) -> int:
        """How many processes were killed."""
        return self.killed.total()

    def count(self, what: str) -> int:
        """The sum of one of the findings."""
        return self._before[what] + self._of_file[what]

    def note(self, findings: Findings) -> None:
        """Note what was found in a file; what was found in it before is part of it."""
        self.rounds += 1
        self._of_file = Counter({name: getattr(findings, name) for name in _SUMS})
        self.recoveries += [Recovery(*each) for each in findings.recoveries]

    def begin_file(self) -> None:
        """Another file."""
        self.files += 1
        self._before.update(self._of_file)
        self._of_file.clear()


def table(tally: Tally) -> str:
    """As Markdown."""
    count = tally.count
    rows = [
        *((f"killed: {what}", f"{killed:,}") for what, killed in sorted(tally.killed.items())),
        ("of these, while they were stopped", f"{tally.killed_stopped:,}"),
        ("times that all were killed at once", f"{tally.all_at_once:,}"),
        ("processes that a task killed", f"{count('poisoned'):,}"),
        ("stopped for a while", f"{tally.stopped:,}"),
        ("workers that were asked to end", f"{tally.ended:,}"),
        (
            "supervisors that gave up, since their processes did not come to be ready",
            f"{tally.gave_up:,}",
        ),
        ("times that all was looked at", f"{tally.rounds:,}"),
        ("files that were made anew", f"{tally.files:,}"),
        ("tasks", f"{count('tasks'):,}"),
        ("of these, acknowledged to who has enqueued them", f"{count('acknowledged'):,}"),
        ("that nobody was told of, and were there", f"{count('unheard'):,}"),
        ("that were rolled back, and were not there", f"{count('rolled_back'):,}"),
        ("that could not be enqueued, and were not there", f"{count('refused'):,}"),
        ("finished with their last write, once each", f"{count('exact'):,}"),
        ("other ones that have run twice, since a process was killed", f"{count('doubled'):,}"),
        ("set aside, as they are to be", f"{count('set_aside'):,}"),
        (
            "of these, that have died with others three times",
            f"{count('innocent'):,}",
        ),
        ("cancelled, and not begun since", f"{count('cancelled'):,}"),
        ("times of a task that recurs each second", f"{count('ticks'):,}"),
        *_recovered("a worker lived all the while", [e for e in tally.recoveries if e[1]]),
        *_recovered("and nobody was stopped", [e for e in tally.recoveries if e[2]]),
        *_recovered("all", tally.recoveries),
    ]
    return "\n".join(
        ["| what | how many |", "|---|---:|", *(f"| {what} | {number} |" for what, number in rows)]
    )


def _recovered(which: str, recoveries: list[Recovery]) -> list[tuple[str, str]]:
    if not recoveries:
        return []
    ordered = sorted(each.seconds for each in recoveries)
    last = len(ordered) - 1
    figures = ", ".join(
        f"{1000 * ordered[round(part * last)]:,.1f}" for part in (0.5, 0.99, 0.999, 1)
    )
    return [
        (
            f"ms from a kill to the next attempt of {len(ordered):,} tasks ({which}):"
            " median, 99 %, 99.9 %, longest",
            figures,
        )
    ]
