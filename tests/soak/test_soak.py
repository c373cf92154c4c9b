"""A selection of the soak: ten seconds in all. The long one is ``make soak``."""

from pathlib import Path

import pytest
from tests.soak.wal import KINDS, WRITERS, Outcome, Readers, soak

LIMIT_BYTES = 4 << 20


@pytest.mark.parametrize("readers", KINDS, ids=lambda kind: kind.name)
def test_the_log_is_bounded_or_its_readers_are_named(tmp_path: Path, readers: Readers) -> None:
    outcome: Outcome = soak(tmp_path, readers, 2.5, LIMIT_BYTES)
    print(outcome)
    assert outcome.writes > 0
    assert not outcome.errors
    assert outcome.largest_bytes <= outcome.bound_bytes or outcome.names
    # Not one for each commit.
    attempts = outcome.checkpoints + outcome.incomplete
    assert attempts <= 50 + outcome.writes // 100
    if readers.longest_seconds > outcome.seconds:
        # Until each writer has seen that he stays.
        assert outcome.waits <= 2 * WRITERS
