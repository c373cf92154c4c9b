"""``python -m tests.cable_kills --kills 1000 --seed 1``: kills, and what came of it.

Writes ``docs/evidence/cable-kills.md`` where nothing is wrong; the exit code is 1 if anything is.
"""

import sys

from tests.cable_kills.campaign import MEMBERS, STAYING, Campaign
from tests.kill_campaigns import Goal, Run, main


def page(run: Run) -> str:
    """Kill, and say on a page what came of it."""
    campaign = Campaign(run.folder, run.seed)
    campaign.run(
        run.goals["kills"], lambda now: run.say(lambda: f"{sum(now.killed.values()):,} kills")
    )
    rows = [
        *((f"killed: {what}", count) for what, count in campaign.killed.items()),
        ("stopped for a moment: processes that stay", campaign.stopped),
        ("messages that were sent to the group", campaign.messages),
        (f"given to the {STAYING * MEMBERS} members that stay, each once and in order",
         campaign.delivered),
    ]  # fmt: skip
    table = "\n".join(f"| {what} | {count:,} |" for what, count in rows)
    return f"""\
**cable-kills: those who send to a group and those who are in it are killed, and nobody else loses a message**

- `{run.command}`: two processes send to a group, two have members in it, and
  both are killed at random moments; two others have {MEMBERS} members each and stay. Each of these must
  have heard every message of each life of a sender, from the first to the last that was
  acknowledged, once and in order
{run.came_to(sum(campaign.killed.values()))}

| what | how many |
|---|---:|
{table}
"""  # noqa: E501 - a title is one line


if __name__ == "__main__":
    goals = {"kills": Goal(1000, "how many")}
    sys.exit(main("cable-kills", __doc__, "cable-kills", goals, page))
