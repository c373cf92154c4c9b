"""A selection of the kills, and a look at what judges them. The long run is ``make notify-kills``.

Who is killed and how is drawn from the seed.
"""

import sys
from pathlib import Path

import pytest
from tests.kill_campaigns import WrongError
from tests.notify_kills.campaign import Campaign
from tests.notify_kills.chain import KEPT, Chain
from tests.notify_kills.history import NEVER, History, Row
from tests.notify_kills.tally import ROUNDS, STOPS, WATCHERS_KILLED

KILLS = 60
NOTIFICATIONS = 5_000

EPOCH = "0123456789abcdef"
ROWS = [
    Row(1, "a", "0.1.1.1."),
    Row(2, "b.1", "1.1.1.2."),
    Row(3, "a", "1.1.2.2."),
    Row(4, "c", "0.2.1.1."),
    Row(5, "b.2", "1.2.1.1."),
]
GIVEN = [2, 3, 5]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="notifications are for Linux only")
def test_nothing_is_lost_doubled_or_out_of_order(tmp_path: Path, seed: int) -> None:
    campaign = Campaign(tmp_path, seed)
    campaign.run(KILLS, NOTIFICATIONS)
    tally = campaign.tally
    assert tally.kills >= KILLS
    assert tally.delivered > tally.notifications >= NOTIFICATIONS
    assert tally.transactions > tally.by_others > 0
    assert min(tally.counts[what] for what in (ROUNDS, STOPS, WATCHERS_KILLED)) > 0


def _history(rows: list[Row]) -> History:
    history = History()
    history.add(rows)
    return history


def test_a_table_that_is_right_is_not_called_wrong() -> None:
    history = _history(ROWS)
    for writer, acknowledged in ((0, 2), (0, 1), (1, 2), (1, 1), (2, 0)):
        history.check(writer, acknowledged)
    assert history.latest == 5


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([ROWS[0], ROWS[2]], "after notification 1 comes"),
        ([Row(1, "a", f"{NEVER}.0")], "rolled back"),
        (ROWS[:2], "in part"),
        ([*ROWS[:2], Row(3, "a", "0.2.1.1.")], "in part"),
        ([Row(1, "a", "0.2.1.1.")], "out of order"),
        ([ROWS[0], Row(2, "a", "0.1.1.1.")], "out of order"),
    ],
)
def test_a_table_that_is_wrong_is_found_out(rows: list[Row], says: str) -> None:
    with pytest.raises(WrongError, match=says):
        _history(rows)


@pytest.mark.parametrize("acknowledged", [0, 3])
def test_what_was_told_of_and_is_not_there_is_found_out(acknowledged: int) -> None:
    with pytest.raises(WrongError, match="lost"):
        _history(ROWS).check(0, acknowledged)


def _notes(*numbers: int) -> list[str]:
    return [f"N {EPOCH}-{n} {ROWS[n - 1].channel} {ROWS[n - 1].payload}" for n in numbers]


def _chain() -> Chain:
    return Chain(("b.*", "a"), f"{EPOCH}-1")


def test_a_log_that_is_right_is_not_called_wrong() -> None:
    history, chain = _history(ROWS), _chain()
    assert chain.missing(history) == ROWS[1]
    chain.follow([f"S {EPOCH}-1", *_notes(2)], history)
    chain.stay()
    chain.follow([f"S {EPOCH}-2", *_notes(3, 5)], history)
    assert chain.missing(history) is None
    assert (chain.delivered, chain.position) == (3, f"{EPOCH}-5")


@pytest.mark.parametrize("first", [2, 3])
def test_whoever_begins_anew_may_be_given_what_came_while_it_began(first: int) -> None:
    chain = _chain()
    rest = [number for number in GIVEN if number >= first]
    chain.follow(["F 1 3", *_notes(*rest)], _history(ROWS))
    assert chain.delivered == len(rest)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (_notes(3), "follows"),
        (_notes(2, 5), "follows"),
        (_notes(2, 2), "doubled"),
        (_notes(2, 3, 2), "doubled"),
        (_notes(2, 3, 4), "follows"),
        ([f"N {EPOCH}-2 b.1 1.1.1.1."], "follows"),
        (["N fedcba9876543210-2 b.1 1.1.1.2."], "epoch"),
        ([f"S {EPOCH}-2"], "goes on from"),
        (["F 1 2", *_notes(5)], "follows"),
        (["F 2 3", *_notes(2)], "before it listened"),
        ([f"L {EPOCH}-3"], "all is kept"),
        ([f"L {EPOCH}-1"], "lost nothing"),
    ],
)
def test_a_log_that_is_wrong_is_found_out(lines: list[str], says: str) -> None:
    with pytest.raises(WrongError, match=says):
        _chain().follow(lines, _history(ROWS))


def test_what_is_not_kept_any_more_may_be_lost() -> None:
    rows = [Row(number, "a", f"0.{number}.1.1.") for number in range(1, KEPT + 11)]
    history, chain = _history(rows), _chain()
    chain.follow([f"L {EPOCH}-10"], history)
    assert chain.losses == 1
    assert chain.missing(history) == rows[10]
