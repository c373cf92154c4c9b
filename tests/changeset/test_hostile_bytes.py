"""Bytes that are no changeset are refused, and do no harm."""

import random

import pytest
from tests.changeset.tables import CHANGES, ROWS, Database, content, make

from oxlite import changeset, sqlite3


def is_corrupt(error: sqlite3.DatabaseError) -> bool:
    return error.sqlite_errorcode == sqlite3.SQLITE_CORRUPT and "malformed" in str(error)


@pytest.mark.parametrize(
    "wrong", [b"x", b"T", b"T\0", b"T\x01\0t\0", b"T\x01\x01t", b"\x12\0", b"PT", b"T" * 100]
)
def test_malformed_bytes(target: Database, wrong: bytes) -> None:
    asked: list[str] = []
    for call in (
        lambda: list(changeset.read(wrong)),
        lambda: changeset.invert(wrong),
        lambda: changeset.concat(b"", wrong),
        lambda: target.apply_changeset(wrong, filter=asked.append, on_conflict="omit"),
    ):
        with pytest.raises(sqlite3.DatabaseError) as caught:
            call()
        assert type(caught.value) is sqlite3.DatabaseError
        assert is_corrupt(caught.value)
        assert caught.value.sqlite_errorname == "SQLITE_CORRUPT"
    assert asked == []
    assert not target.in_transaction


@pytest.mark.parametrize("seed", range(4))
def test_hostile_bytes_do_no_harm(seed: int) -> None:
    chance = random.Random(seed)
    source = make(ROWS)
    with source.create_session() as session:
        source.executescript(CHANGES)
        seeds = [session.changeset(), session.patchset()]
    target = make(ROWS, isolation_level="")
    applied = 0
    for _ in range(1500):
        hostile = bytearray(chance.choice(seeds))
        for _ in range(chance.choice((1, 1, 2, 5))):
            at = chance.randrange(len(hostile))
            match chance.randrange(4):
                case 0:
                    hostile[at] = chance.randrange(256)
                case 1:
                    hostile[at] ^= 1 << chance.randrange(8)
                case 2:
                    del hostile[at : at + chance.randrange(1, 5)]
                    hostile += b"\0"
                case 3:
                    hostile[at:at] = hostile[: chance.randrange(8)]
        try:
            for change in changeset.read(hostile):
                assert repr(change)
                assert isinstance(hash(change), int)
                assert len(change.key) == sum(change.primary_key)
            changeset.concat(hostile, hostile)
        except sqlite3.Error:
            pass
        try:
            target.apply_changeset(hostile, on_conflict=lambda conflict: repr(conflict) and "omit")
            applied += 1
        except sqlite3.Error:
            assert not target.in_transaction, bytes(hostile)
        target.rollback()
    assert 0 < applied < 1500, f"seed {seed}"
    assert target.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert content(target) == [(1, "one", 10), (2, "two", 20)]
