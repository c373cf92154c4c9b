"""A selection of the kills, and a look at what judges them. The long run is ``make kills``.

Which kills they are follows from the seed.
"""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.kills import entries
from tests.kills.campaign import LONG, LONG_UNKNOWN, RESTART, Campaign

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="syncs are shared on Linux only")

KILLS = 60


def test_whoever_begins_anew_finds_what_was_acknowledged(tmp_path: Path, seed: int) -> None:
    campaign = Campaign(tmp_path, seed)
    campaign.run(KILLS)
    tally = campaign.tally
    assert tally.kills >= KILLS
    assert tally.entries > 0
    assert tally.counts[RESTART] >= tally.counts[LONG] >= tally.counts[LONG_UNKNOWN] > 0


@pytest.fixture
def written(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A database in which two writers have ten entries each."""
    with closing(sqlite3.connect(tmp_path / "kills.db", isolation_level=None)) as connection:
        connection.executescript(entries.SCHEMA)
        for number in range(1, 11):
            for writer in (0, 1):
                for sql, parameters in entries.transaction(writer, number):
                    connection.execute(sql, parameters)
        yield connection


@pytest.mark.parametrize("acknowledged", [[10, 10], [9, 10], [9, 9]])
def test_what_is_right_is_not_called_wrong(
    written: sqlite3.Connection, acknowledged: list[int]
) -> None:
    assert entries.wrong(written.execute, acknowledged) == []
    assert entries.counts(written.execute) == [(0, 10), (1, 10)]


@pytest.mark.parametrize(
    ("damage", "acknowledged", "kind"),
    [
        ("SELECT 1", [11, 10], "lost"),
        ("SELECT 1", [8, 10], "lost"),
        ("DELETE FROM entry WHERE writer = 1 AND number = 10", [10, 10], "lost"),
        ("DELETE FROM entry WHERE writer = 1 AND number = 10", [10, 9], "in part"),
        ("UPDATE entry SET number = 3 WHERE number = 4", [10, 10], "out of order"),
        ("UPDATE slot SET content = x'00' WHERE id = 7", [10, 10], "in part"),
    ],
)
def test_what_is_wrong_is_found_out(
    written: sqlite3.Connection, damage: str, acknowledged: list[int], kind: str
) -> None:
    written.execute(damage)
    found = entries.wrong(written.execute, acknowledged)
    assert any(text.startswith(kind) for text in found), found
