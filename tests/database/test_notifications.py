"""NOTIFY and LISTEN: what is committed arrives once, in order, wherever it comes from."""

import re
import sqlite3 as other_sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.database.conftest import On
from tests.database.faces import Either, Face
from tests.pages import signals_page_of
from tests.wait import LIMIT_SECONDS

import oxlite
from oxlite import sqlite3


async def taken(listener: Either, count: int) -> list[tuple[str, Any]]:
    """Channel and payload of the next ones."""
    notes = []
    while len(notes) < count:
        note = await listener.__anext__()
        notes.append((note.channel, note.payload))
    return notes


def test_what_is_notified_arrives_in_order_at_whoever_listens_to_it(on: On) -> None:
    async def case(db: Either) -> None:
        orders = db.listen("orders", timeout=LIMIT_SECONDS)
        chat = db.listen("chat.*", "orders", timeout=LIMIT_SECONDS)
        for number in range(3):
            await db.notify("orders", f"o{number}")
            await db.notify("chat.7", f"c{number}")
            await db.notify("else", "")
        assert await taken(orders, 3) == [("orders", f"o{number}") for number in range(3)]
        expected = [(c, f"{c[0]}{n}") for n in range(3) for c in ("orders", "chat.7")]
        assert await taken(chat, 6) == expected
        await orders.aclose()
        await chat.aclose()

    on(case)


def test_payloads_come_as_they_went_and_what_else_there_is_as_json(on: On) -> None:
    async def case(db: Either) -> None:
        listener = db.listen("*", timeout=LIMIT_SECONDS)
        for payload in ("text é", b"\x00\xff", None, {"a": [1, None]}, [True], 7):
            await db.notify("all", payload)
        notes = [await listener.__anext__() for _ in range(6)]
        assert [note.payload for note in notes[:4]] == [
            "text é",
            b"\x00\xff",
            None,
            '{"a":[1,null]}',
        ]
        assert [note.json() for note in notes[2:]] == [None, {"a": [1, None]}, [True], 7]
        await listener.aclose()

    on(case)


def test_it_is_part_of_the_transaction_that_is_named(on: On) -> None:
    async def case(db: Either) -> None:
        listener = db.listen("orders", timeout=LIMIT_SECONDS)
        with suppress(ZeroDivisionError):
            async with db.write() as connection:
                await db.notify("orders", "never", connection=connection)
                raise ZeroDivisionError
        async with db.write() as connection:
            await connection.execute("INSERT INTO t VALUES (1, 'one')")
            await db.notify("orders", "one", connection=connection)
        assert await taken(listener, 1) == [("orders", "one")]
        await listener.aclose()

    on(case)


def test_in_a_transaction_of_ones_own_it_is_refused_without_its_connection(on: On) -> None:
    async def case(db: Either) -> None:
        async with db.write():
            with pytest.raises(sqlite3.ProgrammingError, match="would wait for itself"):
                await db.notify("orders", "x")

    on(case)


def test_a_connection_to_another_file_is_refused(on: On, tmp_path: Path) -> None:
    async def case(db: Either) -> None:
        other = oxlite.connect(tmp_path / "other.db")
        try:
            with pytest.raises((sqlite3.ProgrammingError, TypeError), match="connection="):
                await db.notify("orders", "x", connection=other)
        finally:
            other.close()

    on(case)


def test_listening_begins_at_the_call_and_goes_on_after_a_position(on: On) -> None:
    async def case(db: Either) -> None:
        await db.notify("orders", "before")
        listener = db.listen("orders", timeout=LIMIT_SECONDS)
        for number in range(3):
            await db.notify("orders", str(number))
        first = await listener.__anext__()
        assert first.payload == "0"
        assert re.fullmatch(r"[0-9a-f]{16}-\d+", first.position)
        await listener.aclose()
        again = db.listen("orders", since=first.position, timeout=LIMIT_SECONDS)
        assert await taken(again, 2) == [("orders", "1"), ("orders", "2")]
        await again.aclose()

    on(case)


def test_what_is_not_kept_any_more_is_said_with_where_to_go_on(on: On) -> None:
    async def case(db: Either) -> None:
        listener = db.listen("orders", timeout=LIMIT_SECONDS)
        for number in range(5):
            await db.notify("orders", str(number))
        first = await listener.__anext__()
        await listener.aclose()
        await db.execute("DELETE FROM oxlite_notification WHERE id <= 3")
        with pytest.raises(oxlite.NotificationsLost, match="Read the state") as caught:
            db.listen("orders", since=first.position)
        error: Any = caught.value
        again = db.listen("orders", since=error.resume_from, timeout=LIMIT_SECONDS)
        assert await taken(again, 2) == [("orders", "3"), ("orders", "4")]
        await again.aclose()

    on(case)


def test_a_listener_that_waits_too_long_comes_to_its_end(on: On) -> None:
    async def case(db: Either) -> None:
        listener = db.listen("orders", timeout=0.01)
        assert [note async for note in listener] == []

    on(case)


@pytest.mark.parametrize(
    ("channel", "payload", "kind", "says"),
    [
        ("", "x", ValueError, "has a name"),
        ("a*", "x", ValueError, "only listeners use"),
        ("x" * 256, "x", ValueError, "at most 255 bytes"),
        ("a\0b", "x", ValueError, "null character"),
        ("a", "x" * (2**20 + 1), ValueError, "at most 1048576 bytes, not 1048577"),
        ("a", "é" * 2**19 + "x", ValueError, "not 1048577"),
        ("a", {1, 2}, TypeError, "not JSON serializable"),
    ],
)
def test_what_cannot_be_notified_is_refused(
    on: On, channel: str, payload: Either, kind: type[Exception], says: str
) -> None:
    async def case(db: Either) -> None:
        with pytest.raises(kind, match=says):
            await db.notify(channel, payload)

    on(case)


@pytest.mark.parametrize(
    ("channels", "since", "kind", "says"),
    [
        ((), None, TypeError, "takes the names of channels"),
        ((7,), None, TypeError, "is text, not int"),
        (("a*b",), None, ValueError, "at the end of a pattern"),
        (("a",), "yesterday", ValueError, "position of a notification"),
    ],
)
def test_what_cannot_be_listened_to_is_refused(
    on: On, channels: tuple[Any, ...], since: str | None, kind: type[Exception], says: str
) -> None:
    async def case(db: Either) -> None:
        with pytest.raises(kind, match=says):
            db.listen(*channels, since=since)

    on(case)


def test_other_programs_and_triggers_are_heard(on: On, path: Path) -> None:
    async def case(db: Either) -> None:
        listener = db.listen("rows", "shell", timeout=LIMIT_SECONDS)
        await db.notify("else")  # the table is there from here on
        await db.execute(
            "CREATE TRIGGER tell AFTER INSERT ON t BEGIN"
            " INSERT INTO oxlite_notification (channel, payload) VALUES ('rows', new.id); END"
        )
        await db.execute("INSERT INTO t VALUES (41, 'x')")
        assert await taken(listener, 1) == [("rows", "41")]
        outside = other_sqlite3.connect(path)
        with outside:
            outside.execute("INSERT INTO oxlite_notification (channel) VALUES ('shell')")
        outside.close()
        assert await taken(listener, 1) == [("shell", None)]
        await listener.aclose()

    on(case)


_PUBLISHER = """
import sys
import oxlite
with oxlite.Database(sys.argv[1]) as db:
    for number in range(100):
        db.notify("orders", str(number))
"""


def test_another_process_is_heard(on: On, path: Path) -> None:
    async def case(db: Either) -> None:
        listener = db.listen("orders", timeout=LIMIT_SECONDS)
        with subprocess.Popen([sys.executable, "-c", _PUBLISHER, str(path)]) as publisher:
            expected = [("orders", str(number)) for number in range(100)]
            assert await taken(listener, 100) == expected
        assert publisher.returncode == 0
        await listener.aclose()

    on(case)


@pytest.mark.skipif(sys.platform != "linux", reason="notifications are for Linux only")
def test_whoever_notifies_keeps_the_page_until_the_database_is_closed(
    face: Face, path: Path
) -> None:
    async def main() -> None:
        db = await face.open(path)
        await db.notify("orders")
        page = signals_page_of(path)
        made = page.stat()
        for channel in ("orders", "chat"):
            await db.notify(channel)
            async with db.write() as connection:
                await db.notify(channel, connection=connection)
        assert page.stat().st_ino == made.st_ino
        assert page.stat().st_ctime_ns == made.st_ctime_ns
        await db.close()
        assert not page.exists()

    face.run(main)


def test_a_listener_of_a_database_that_is_closed_is_told(face: Face, path: Path) -> None:
    async def main() -> None:
        db = await face.open(path)
        listener = db.listen("orders", timeout=LIMIT_SECONDS)
        await db.close()
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            await listener.__anext__()
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            db.listen("orders")

    face.run(main)
