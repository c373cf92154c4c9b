"""A selection of the kills. The long run is ``make backup-kills``."""

import sys
from pathlib import Path

import pytest
from tests.backup_kills.campaign import Campaign

CYCLES = 24


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="who has a file open is known on Linux only")
def test_each_backup_is_a_prefix_of_what_was_acknowledged(tmp_path: Path, seed: int) -> None:
    campaign = Campaign(tmp_path / "databases", seed)
    campaign.run(CYCLES, lambda _tally: None)
    assert campaign.kills >= 3 * CYCLES
    assert campaign.tally["restored: backups and snapshots"] > 0
