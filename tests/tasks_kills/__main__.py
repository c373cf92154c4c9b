"""``python -m tests.tasks_kills --kills 10000 --tasks 1000000 --seed 1``: kills, and their effects.

Writes ``docs/evidence/tasks-kills.md`` where nothing is wrong; the exit code is 1 if anything is.
"""

import sqlite3
import sys

from tests.kill_campaigns import Goal, Run, WrongError, main
from tests.tasks_kills.campaign import Campaign
from tests.tasks_kills.tally import Tally, table


def page(run: Run) -> str:
    """Kill, and say on a page what came of it."""

    def progress(tally: Tally) -> None:
        run.say(
            lambda: (
                f"{tally.rounds:6,} rounds  {tally.kills:6,} kills  {tally.count('tasks'):9,}"
                f" tasks  {tally.count('doubled'):6,} doubled  {len(tally.recoveries):6,} recovered"
            )
        )

    campaign = Campaign(run.folder, run.seed, ends=bool(run.goals["ends"]))
    try:
        campaign.run(run.goals["kills"], run.goals["tasks"], progress)
    except WrongError as error:
        raise WrongError(f"{error}\n{table(campaign.tally)}") from None
    return f"""\
**tasks-kills: those who enqueue tasks and those who run them are killed, and nothing is lost or done twice**

- `{run.command}`: four processes enqueue, each task by
  itself, many at once, as a part of the application's transaction, and as another program with the
  standard library's SQLite; up to eight run tasks, in 1 to 8 threads, some of them under a supervisor.
  They are killed, stopped and asked to end at random moments
- after each round all has come to rest: what was acknowledged has run, or was set aside as it is to
  be; of what was rolled back there is nothing; what is finished with its last write is so once;
  what has run twice had a process that was killed; what was cancelled has not begun since; limits
  and unique keys are kept; each time of what recurs is enqueued once; nothing is stuck, and no dead
  worker stands in the file; `integrity_check` finds nothing
{run.came_to(campaign.tally.kills, f" beside {sqlite3.sqlite_version}")}

{table(campaign.tally)}
"""  # noqa: E501 - a title is one line


if __name__ == "__main__":
    goals = {
        "kills": Goal(10_000, "how many at least"),
        "tasks": Goal(1_000_000, "how many at least"),
        "ends": Goal(1, "0: no worker is asked to end"),
    }
    sys.exit(main("tasks-kills", __doc__, "tasks-kills", goals, page))
