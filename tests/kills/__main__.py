"""``python -m tests.kills --kills 5000 --seed 1``: kills, and what came of it.

Writes ``docs/evidence/shared-restarts.md`` where nothing is wrong; the exit code is 1 if anything
is.
"""

import sys

from tests.kill_campaigns import Goal, Run, WrongError, main
from tests.kills.campaign import (
    BESIDE,
    LONG,
    LONG_UNKNOWN,
    MET,
    RESTART,
    STARTER,
    UNKNOWN,
    WRITER,
    Campaign,
    Tally,
)

_ROWS = (WRITER, MET, STARTER, RESTART, LONG, UNKNOWN, LONG_UNKNOWN, BESIDE)


def table(tally: Tally) -> str:
    """The counts, as Markdown."""
    lines = ["| what | how many |", "|---|---:|"]
    lines += [f"| {name} | {tally.counts[name]:,} |" for name in _ROWS]
    lines.append(f"| entries acknowledged, each of which was there | {tally.entries:,} |")
    lines.append(f"| the longest log at a new beginning, bytes | {tally.longest_log_bytes:,} |")
    return "\n".join(lines)


def page(run: Run) -> str:
    """Kill, and say on a page what came of it."""

    def progress(tally: Tally) -> None:
        run.say(
            lambda: (
                f"{tally.kills:7,} kills  {tally.counts[RESTART]:6,} new beginnings, "
                f"{tally.counts[LONG_UNKNOWN]:,} of a long log of unknown end"
            )
        )

    campaign = Campaign(run.folder, run.seed)
    try:
        campaign.run(run.goals["kills"], progress)
    except WrongError as error:
        raise WrongError(f"{error}\n{table(campaign.tally)}") from None
    return f"""\
**shared-restarts: all who share their syncs are killed, and others begin anew**

- `{run.command}`: up to four processes share their syncs until their log is
  as long as is drawn, and are killed, at once or one after the other; some of those that then begin
  anew are killed as well, and whoever is let live looks at everything: `integrity_check`, each
  writer's entries in their order, all that were acknowledged, each transaction as a whole
{run.came_to(campaign.tally.kills)}

{table(campaign.tally)}
"""


if __name__ == "__main__":
    goals = {"kills": Goal(5000, "how many processes")}
    sys.exit(main("kills", __doc__, "shared-restarts", goals, page))
