"""``python -m tests.cache_kills --kills 5000 --seed 1``: kills, and what came of it.

Writes ``docs/evidence/cache-kills.md`` where nothing is wrong; the exit code is 1 if anything is.
"""

import sys

from tests.cache_kills.board import SLOTS, Doing
from tests.cache_kills.campaign import HANGS_AFTER_SECONDS, WAITS_AT_MOST_SECONDS, Campaign
from tests.kill_campaigns import Goal, Run, WrongError, main

_DOINGS = {
    Doing.OPEN: "while they opened it",
    Doing.INCR: "in `incr`",
    Doing.ADD: "in `add`",
    Doing.GET_OR_SET: "in `get_or_set`",
    Doing.SET: "in `set` or `set_many`",
    Doing.DELETE: "in `delete`",
    Doing.TOUCH: "in `touch`",
    Doing.READ: "in `get` or `get_many`",
    Doing.LIMITED_SET: "in `set` or `set_many` of the cache with a limit",
    Doing.LIMITED_READ: "in `get` or `get_many` of the cache with a limit",
    Doing.CLOSE: "while they closed it",
    Doing.NOTHING: "between two calls, or before the first",
}


def page(run: Run) -> str:
    """Kill, and say on a page what came of it."""
    campaign = Campaign(run.folder, run.seed)
    tally = campaign.tally
    try:
        campaign.run(run.goals["kills"], lambda now: run.say(lambda: f"{now.kills:,} kills"))
    except WrongError as error:
        raise WrongError(f"after {tally.kills:,} kills: {error}") from None
    rows = [
        *((f"killed {text}", f"{tally.killed[doing]:,}") for doing, text in _DOINGS.items()),
        ("of all these, while they computed what others waited for", f"{tally.holders:,}"),
        ("times that all were killed at once", f"{tally.all_at_once:,}"),
        ("times that all was looked at", f"{tally.rounds:,}"),
        ("caches that were made anew", f"{tally.caches:,}"),
        ("operations that came to their end", f"{tally.operations:,}"),
        ("of these: steps of the counters, each of which was there", f"{tally.increments:,}"),
        ("steps that nobody was told of, and were there", f"{tally.unanswered:,}"),
        ("the longest `get_or_set`", f"{tally.longest_seconds * 1000:,.0f} ms"),
    ]
    table = "\n".join(f"| {what} | {count} |" for what, count in rows)
    return f"""\
**cache-kills: those who use a cache are killed in the midst of it, and what was acknowledged is there**

- `{run.command}`: {SLOTS} processes call two caches together, one without a limit and one
  of 1 MiB; they are killed at random moments and others come in their places. A third of them uses
  the cache for asyncio
- a counter is at least what was acknowledged, and at most that and one for each kill in `incr`; a key
  is added by one; a value is one of its key, and of the time in which it was read; a key of the cache
  without a limit is there, but where its writer has deleted it; one computes a value, and if he is
  killed the others go on (within {WAITS_AT_MOST_SECONDS:g} s); nobody is without an answer
  for {HANGS_AFTER_SECONDS:g} s; `integrity_check` finds nothing
{run.came_to(tally.kills)}

| what | how many |
|---|---:|
{table}
"""  # noqa: E501 - a title is one line


if __name__ == "__main__":
    goals = {"kills": Goal(5000, "how many")}
    sys.exit(main("cache-kills", __doc__, "cache-kills", goals, page))
