"""``python -m tests.promote_kills --cycles 100 --seed 1``: promotions, killed on either side.

Writes ``docs/evidence/promote-kills.md`` where nothing is wrong; the exit code is 1 if anything is.
"""

import statistics
import sys

from tests.kill_campaigns import Goal, Run, main
from tests.promote_kills.campaign import Campaign


def page(run: Run) -> str:
    """Kill, and say on a page what came of it."""
    campaign = Campaign(run.folder / "databases", run.seed, run.goals["rows"])
    run.folder.chmod(0o711)  # PostgreSQL has an account of its own
    campaign.run(
        run.goals["cycles"],
        lambda tally: run.say(lambda: f"{tally['cycles']:6,} cycles  {campaign.kills:6,} kills"),
    )
    table = "\n".join(f"| {what} | {count:,} |" for what, count in sorted(campaign.tally.items()))
    return f"""\
**promote-kills: promotions are killed on either side while others write; PostgreSQL has what the file has**

- `{run.command}`: in each cycle a new file with {run.goals["rows"]:,} rows in each of four tables is promoted,
  while three processes write, one of them by the standard library's SQLite: single statements and
  transactions, REPLACE, deletions that cascade, unique values that move. The promotion is killed up to five
  times at random moments, or its process in PostgreSQL is, which ends all of PostgreSQL's others; in one of
  five cycles it is taken back then, and begun anew. In half of the cycles it ends with a cut-over while
  they write. Then each row of both sides is compared, by the standard library's SQLite and psycopg
{run.came_to(campaign.kills)}
- writers waited {statistics.median(campaign.pauses) * 1000:,.0f} ms in the median cut-over, and {max(campaign.pauses) * 1000:,.0f} ms in the longest

| what | how many |
|---|---:|
{table}
"""  # noqa: E501 - a title is one line


if __name__ == "__main__":
    goals = {"cycles": Goal(100, "how many cycles"), "rows": Goal(20000, "in each table")}
    sys.exit(main("promote-kills", __doc__, "promote-kills", goals, page))
