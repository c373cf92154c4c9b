"""A selection of the kills. The long run is ``make promote-kills``."""

import tempfile
from pathlib import Path

import pytest
from tests.promote_kills.campaign import Campaign

CYCLES = 5


@pytest.mark.slow
def test_however_often_it_is_killed_all_rows_arrive_once(seed: int) -> None:
    # The account that PostgreSQL runs as cannot enter pytest's folders.
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder), seed, rows=5000)
        campaign.run(CYCLES, lambda _tally: None)
    assert campaign.kills > 0
    assert campaign.tally["cut over"] > 0
