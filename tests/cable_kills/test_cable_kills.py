"""A selection of the kills. The long run is ``make cable-kills``."""

import sys
from pathlib import Path

import pytest
from tests.cable_kills.campaign import Campaign

KILLS = 20


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the cable is for Linux only")
def test_nobody_loses_a_message_but_those_who_are_killed(tmp_path: Path, seed: int) -> None:
    campaign = Campaign(tmp_path, seed)
    campaign.run(KILLS)
    assert sum(campaign.killed.values()) >= KILLS
    assert campaign.delivered >= campaign.messages > 0
