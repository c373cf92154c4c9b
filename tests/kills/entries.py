"""What is written by those who are killed, so that it shows whether anything is missing.

Each writer has entries with numbers of its own, 1, 2, 3, …, a transaction each. A transaction also
replaces the content of one of a few slots, so that the log grows and the database does not.

Invariants of a database, at whatever moment its writers were killed:

- of each writer there is a beginning of its numbers, in their order: all that were acknowledged,
  and at most one more;
- each slot has what the last entry of that slot put there.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence

SCHEMA = """
    CREATE TABLE entry(id INTEGER PRIMARY KEY, writer INTEGER, number INTEGER, slot INTEGER);
    CREATE TABLE slot(id INTEGER PRIMARY KEY, content BLOB NOT NULL);
"""
SLOTS = 48
_SIZES_BYTES = (500, 3_000, 9_000, 20_000)


def slot_of(writer: int, number: int) -> int:
    """Which slot an entry's transaction replaces."""
    return (writer * 31 + number * 7) % SLOTS


def content_of(writer: int, number: int) -> bytes:
    """What it puts there."""
    size_bytes = _SIZES_BYTES[(writer + number) % len(_SIZES_BYTES)]
    stamp = f"{writer}.{number} ".encode()
    return (stamp * (size_bytes // len(stamp) + 1))[:size_bytes]


def transaction(writer: int, number: int) -> Iterator[tuple[str, tuple[object, ...]]]:
    """The statements of one."""
    slot = slot_of(writer, number)
    yield "BEGIN IMMEDIATE", ()
    yield "INSERT INTO entry(writer, number, slot) VALUES (?, ?, ?)", (writer, number, slot)
    yield "INSERT OR REPLACE INTO slot VALUES (?, ?)", (slot, content_of(writer, number))
    yield "COMMIT", ()


def counts(query: Callable[[str], sqlite3.Cursor]) -> list[tuple[int, int]]:
    """The writers of a database, and how many entries each has."""
    return query("SELECT writer, count(*) FROM entry GROUP BY writer").fetchall()


def wrong(query: Callable[[str], sqlite3.Cursor], acknowledged: Sequence[int]) -> list[str]:
    """What is wrong with a database.

    Args:
        query: runs a statement on it.
        acknowledged: by the numbers of the writers, how many entries they were told of.
    """
    found = [f"damaged: {text}" for (text,) in query("PRAGMA integrity_check(3)") if text != "ok"]
    counts = [0] * len(acknowledged)
    last: dict[int, bytes] = {}
    for writer, number, slot in query("SELECT writer, number, slot FROM entry ORDER BY id"):
        counts[writer] += 1
        if number != counts[writer]:
            found.append(f"out of order: entry {number} of writer {writer}")
        last[slot] = content_of(writer, number)
    for writer, (count, told) in enumerate(zip(counts, acknowledged, strict=True)):
        if not told <= count <= told + 1:
            found.append(f"lost: writer {writer} was told of {told} entries, {count} are there")
    if dict(query("SELECT id, content FROM slot")) != last:
        found.append("in part: the slots do not have what the last entries put there")
    return found
