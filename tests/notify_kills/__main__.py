"""``python -m tests.notify_kills --kills 2000 --seed 1``: kills, and what came of it.

Writes ``docs/evidence/notify-kills.md`` where nothing is wrong; the exit code is 1 if anything is.
"""

import sqlite3
import sys

from tests.kill_campaigns import Goal, Run, WrongError, main
from tests.notify_kills.campaign import Campaign
from tests.notify_kills.tally import ROUNDS, WATCHERS_KILLED, Tally, table


def page(run: Run) -> str:
    """Kill, and say on a page what came of it."""

    def progress(tally: Tally) -> None:
        run.say(
            lambda: (
                f"{tally.counts[ROUNDS]:6,} rounds  {tally.kills:6,} kills, "
                f"{tally.counts[WATCHERS_KILLED]:,} of whom watched  {tally.notifications:9,} "
                f"notifications  {tally.delivered:10,} given  {tally.losses} times lost"
            )
        )

    campaign = Campaign(run.folder, run.seed)
    try:
        campaign.run(run.goals["kills"], run.goals["notifications"], progress)
    except WrongError as error:
        raise WrongError(f"{error}\n{table(campaign.tally)}") from None
    return f"""\
**notify-kills: those who notify and those who listen are killed, and nothing is lost**

- `{run.command}`: four processes notify, half of
  them another program with the standard library's SQLite, and four listen; they are killed and
  stopped at random moments. After each round all must have come to all who listen: each
  notification of their channels once and in the order of the commits, through all of their lives,
  nothing that was rolled back, and all that was acknowledged
{run.came_to(campaign.tally.kills, f" beside {sqlite3.sqlite_version}")}

{table(campaign.tally)}
"""


if __name__ == "__main__":
    goals = {
        "kills": Goal(2000, "how many at least"),
        "notifications": Goal(1_000_000, "how many at least"),
    }
    sys.exit(main("notify-kills", __doc__, "notify-kills", goals, page))
