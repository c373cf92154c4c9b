"""A selection of the soak: seconds. The long one is ``make cache-soak``."""

import sys
from pathlib import Path

import pytest
from tests.cache_soak.soak import soak
from tests.cache_soak.traces import TRACES, compared

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its locks are Linux's")

LIMIT_BYTES = 4 << 20


@pytest.mark.parametrize("processes", [1, 3])
def test_the_limit_is_kept(tmp_path: Path, seed: int, processes: int) -> None:
    outcome = soak(tmp_path, processes, LIMIT_BYTES, 12_000, seed)
    print(outcome)
    assert outcome.sets >= 12_000
    assert not outcome.refused
    assert outcome.evictions > 0
    assert LIMIT_BYTES // 2 < outcome.used_bytes <= 1.05 * LIMIT_BYTES


@pytest.mark.parametrize("name", TRACES)
def test_about_as_much_is_found_as_by_an_exact_lru(tmp_path: Path, seed: int, name: str) -> None:
    rates = compared(tmp_path, name, 1 << 20, seed)
    print(rates)
    assert rates.share >= rates.exact_share - 0.03
