"""What a campaign has done, in words and in a table."""

import re
from collections import Counter

from tests.fuzz.campaign import Campaign, Statistics


def progress(campaign: Campaign, seconds: float) -> str:
    """One line."""
    done = campaign.statistics
    rate = done.cases / max(seconds, 0.001)
    return (
        f"{seconds:6.0f} s  {done.cases} cases ({rate:.0f}/s)  {done.steps} steps "
        f"({done.steps / max(seconds, 0.001):.0f}/s)  "
        f"{len(campaign.findings)} kinds of difference, "
        f"{sum(finding.times for finding in campaign.findings.values())} cases  "
        f"{done.reference_deaths} deaths of the reference"
    )


def coverage(statistics: Statistics) -> str:
    """Moves by outcomes, the share of steps compared, and the intended differences met."""
    moves = sorted({move for move, _ in statistics.outcomes})
    lines = [f"compared {statistics.compared} of {statistics.steps} steps"]
    for move in moves:
        outcomes = Counter(
            {kind: times for (name, kind), times in statistics.outcomes.items() if name == move}
        )
        listed = ", ".join(f"{kind} {times}" for kind, times in outcomes.most_common())
        lines.append(f"  {move}: {listed}")
    for name, times in statistics.intended.most_common():
        lines.append(f"  intended: {name}: {times}")
    return "\n".join(lines)


def messages(statistics: Statistics) -> list[tuple[str, int]]:
    """The errors seen, particulars aside."""
    kinds: Counter[str] = Counter()
    for message, times in statistics.messages.items():
        kinds[re.sub(r"'[^']*'|\d+", "…", message)] += times
    return kinds.most_common()
