"""``python -m tests.backup_kills --cycles 2000 --seed 1``: kills, and what came of it.

Writes ``docs/evidence/backup-kills.md`` where nothing is wrong; the exit code is 1 if anything is.
"""

import sys

from tests.backup_kills.campaign import Campaign
from tests.kill_campaigns import Goal, Run, main


def page(run: Run) -> str:
    """Kill, and say on a page what came of it."""
    campaign = Campaign(run.folder / "databases", run.seed)
    campaign.run(
        run.goals["cycles"],
        lambda tally: run.say(
            lambda: (
                f"{tally['cycles']:6,} cycles  {campaign.kills:6,} kills"
                f"  {tally['restored: backups and snapshots']:6,} restored"
            )
        ),
    )
    table = "\n".join(f"| {what} | {count:,} |" for what, count in sorted(campaign.tally.items()))
    return f"""\
**backup-kills: those who write, back up and restore are killed; each backup is a prefix of what was acknowledged**

- `{run.command}`: in each cycle two processes write, a third makes backups and
  snapshots, and all are killed at random moments. Then each backup is restored into a new file and read by
  the standard library's SQLite: of each writer it has all numbers up to one, which is not less than
  what was acknowledged when it began, and not more than there is. In three of ten cycles one is
  restored in place, by a process that is killed, too: the database is the one or the other then
{run.came_to(campaign.kills)}

| what | how many |
|---|---:|
{table}
"""  # noqa: E501 - a title is one line


if __name__ == "__main__":
    goals = {"cycles": Goal(2000, "how many cycles")}
    sys.exit(main("backup-kills", __doc__, "backup-kills", goals, page))
