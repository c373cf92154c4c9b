"""A selection of the kills, and a look at what judges them.

The long run is ``make cache-kills``.
"""

import sys
from pathlib import Path

import pytest
from tests.cache_kills.campaign import Campaign
from tests.cache_kills.values import is_deletion, own_key, value_of, wrong_of

KILLS = 150


@pytest.mark.skipif(sys.platform != "linux", reason="its locks are Linux's")
def test_what_was_acknowledged_is_there_whoever_is_killed(tmp_path: Path, seed: int) -> None:
    campaign = Campaign(tmp_path, seed)
    campaign.run(KILLS)
    tally = campaign.tally
    assert tally.kills >= KILLS
    assert tally.rounds > 0
    assert tally.holders > 0
    assert tally.increments > 0


def test_what_was_set_is_told_from_what_never_was() -> None:
    key = own_key(0, 1)
    value = value_of(key, 3)
    assert is_deletion(7)
    assert wrong_of(key, value, 3, 3) == wrong_of(key, value, 1, 4) == ""
    assert wrong_of(key, None, 6, 7) == wrong_of(key, None, 3, 3, may_miss=True) == ""
    assert wrong_of(key, None, 3, 4).startswith("lost")
    assert wrong_of(key, value, 4, 5).startswith("not of its time")
    assert wrong_of(key, value_of(key, 7), 7, 8).startswith("deleted")
    assert wrong_of(own_key(0, 2), value, 3, 3).startswith("another's")
    assert wrong_of(key, value_of(key, 2) + "0", 1, 5).startswith("another's")
