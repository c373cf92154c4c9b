"""``python -m tests.replica_kills --cycles 1000 --seed 1``: kills, and what came of it.

Writes the page of evidence where nothing is wrong; the exit code is 1 if anything is.
"""

import sys

from tests.kill_campaigns import Goal, Run, main
from tests.replica_kills.campaign import Campaign

from oxlite.replication import find_litestream


def page(run: Run) -> str:
    """Kill, and say on a page what came of it."""
    with Campaign(run.folder / "databases", run.seed) as campaign:
        campaign.run(
            run.goals["cycles"],
            lambda tally: run.say(
                lambda: f"{tally['cycles']:6,} cycles  {campaign.kills:6,} kills"
            ),
        )
    table = "\n".join(f"| {what} | {count:,} |" for what, count in sorted(campaign.tally.items()))
    return f"""\
**replica-kills: everything is killed that writes and replicates; each replica is a prefix of what was acknowledged**

- `{run.command}`: in each cycle three processes write, one of them many rows at a time, as the
  application of `oxlite replicate` or beside it, and all are killed at a random moment, in any order. Then
  the replica is restored elsewhere and read by the standard library's SQLite: it is whole, it has the first
  n transactions of all that were committed, and among these each one that was acknowledged before the time
  of which it was said that all before it is in the store. By turns the replica is in a directory and on a
  local server that speaks S3 (moto's, behind a relay that is killed as the store)
- in half of the cycles the database was moved away afterwards, as if the machine were lost: who replicates
  then restores it, and goes on in the same place. In the others the database that has survived goes on
{run.came_to(campaign.kills)}; Litestream {find_litestream().version_text}

| what | how many |
|---|---:|
{table}

What was acknowledged and not in the replica, where one was being made: for how long before the kill, beside processes
that write without a pause, by `--sync-seconds`. Cycles in which the store or Litestream was killed are among them.

| sends every | cycles | median | 99 of 100 | longest |
|---|---:|---:|---:|---:|
{campaign.lost()}
"""  # noqa: E501 - a title is one line


if __name__ == "__main__":
    goals = {"cycles": Goal(1000, "how many cycles")}
    sys.exit(main("replica-kills", __doc__, "replica-kills", goals, page))
