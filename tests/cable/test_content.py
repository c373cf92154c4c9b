"""What other programs do to the tables: no row keeps the others back, no numbering loses any."""

import asyncio
import sqlite3 as stdlib
from contextlib import closing
from pathlib import Path

import pytest
from tests.cable.common import do, is_nothing_there, received, rows

from oxlite.cable import Cable

INSERT = "INSERT INTO oxlite_cable_message (queue, channel, message"
WRONG = {
    "no UTF-8": INSERT + ") VALUES ('{queue}', '{channel}', CAST(x'ff7b' AS TEXT))",
    "another channel": INSERT + ") VALUES ('{queue}', 'Others', '{{}}')",
    "a BLOB as channel": INSERT + ") VALUES ('{queue}', x'6f', '{{}}')",
    "a channel without UTF-8": INSERT + ") VALUES ('{queue}', CAST(x'ff' AS TEXT), '{{}}')",
    "a number": INSERT + ") VALUES ('{queue}', '{channel}', 5)",
    "an instant as text": INSERT + ", expires_at) VALUES ('{queue}', '{channel}', '{{}}', 'soon')",
    "a group without members": INSERT.replace("channel", "group_name")
    + ") VALUES ('{queue}', 'room', '{{}}')",
}


@pytest.mark.parametrize("statement", WRONG.values(), ids=WRONG)
def test_a_row_that_is_no_message_keeps_no_other_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, statement: str
) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path)
        await cable.send("others", {})
        own = cable.new_channel()
        for channel in ("jobs", own):
            queue = "jobs" if channel == "jobs" else own.partition("!")[0] + "!"
            do(path, statement.format(queue=queue, channel=channel))
            for number in range(3):
                await cable.send(channel, {"number": number})
            receiving = [asyncio.create_task(received(cable, channel)) for _ in range(3)]
            got = await asyncio.gather(*receiving)
            assert sorted(each["number"] for each in got) == [0, 1, 2]
            assert await is_nothing_there(cable, channel)
        await cable.close()

    asyncio.run(main())
    assert len(caplog.records) <= 2  # once for each of the two


def test_tables_that_are_dropped_lose_nothing_that_is_sent_later(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable, other = Cable(path), Cable(path)
        channel = cable.new_channel()
        await cable.group_add("room", channel)
        for number in range(5):
            await cable.send(channel, {"number": number})
            await received(cable, channel)
        do(path, "DROP TABLE oxlite_cable_message", "DROP TABLE oxlite_cable_member")
        for number in range(8):
            await other.send(channel, {"number": number})
        got = [(await received(cable, channel))["number"] for _ in range(8)]
        assert got == list(range(8))
        # And the process is in its groups again.
        await other.group_send("room", {"is": "for all"})
        assert await received(cable, channel) == {"is": "for all"}
        await cable.close()
        await other.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "table", ["message", "member", "past_member", "reader", "epoch"], ids=lambda table: table
)
def test_a_table_that_is_dropped_under_a_member_leaves_it_in_its_group(
    tmp_path: Path, table: str
) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable, other = Cable(path), Cable(path)
        channel = cable.new_channel()
        await cable.group_add("room", channel)
        await other.group_send("room", {"number": 1})
        assert await received(cable, channel) == {"number": 1}
        waiting = asyncio.create_task(received(cable, channel))
        await asyncio.sleep(0.1)
        do(path, f"DROP TABLE oxlite_cable_{table}")
        # Whoever finds it missing makes it anew, and has all look.
        while not waiting.done():
            await other.group_send("room", {"number": 2})
            await asyncio.sleep(0.05)
        assert await waiting == {"number": 2}
        await cable.close()
        await other.close()

    asyncio.run(main())


def test_what_is_read_again_in_another_epoch_is_given_once(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable, other = Cable(path), Cable(path)
        channel, another = cable.new_channel(), cable.new_channel()
        await cable.group_add("room", another)
        await other.send(channel, {"number": 1})
        await asyncio.sleep(0.2)  # it is read, and waits for a receiver
        do(path, "DROP TABLE oxlite_cable_epoch")
        await other.group_send("room", {"number": 2})
        assert await received(cable, another) == {"number": 2}
        assert await received(cable, channel) == {"number": 1}
        assert await is_nothing_there(cable, channel)
        await cable.close()
        await other.close()

    asyncio.run(main())


def test_numbers_that_begin_again_lose_nothing_and_give_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable, other = Cable(path), Cable(path)
        channel, member = cable.new_channel(), cable.new_channel()
        for _ in range(5):
            await cable.send("others", {})
        await cable.group_add("room", member)
        for number in range(5):
            await cable.send(channel, {"number": number})
            await received(cable, channel)
        await asyncio.sleep(0.2)
        do(path, "DELETE FROM oxlite_cable_message", "DELETE FROM sqlite_sequence")
        for number in range(8):
            await other.send(channel, {"number": number})
        await other.group_send("room", {"is": "for all"})
        got = [(await received(cable, channel))["number"] for _ in range(8)]
        assert got == list(range(8))
        assert await received(cable, member) == {"is": "for all"}
        assert await is_nothing_there(cable, channel)
        await cable.close()
        await other.close()

    asyncio.run(main())


def test_a_file_that_is_restored_in_place_loses_nothing_that_is_sent_later(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable, other = Cable(path), Cable(path)
        channel = cable.new_channel()
        await cable.group_add("room", channel)
        for number in range(5):
            await cable.send(channel, {"number": number})
            await received(cable, channel)
        await asyncio.sleep(0.2)

        def restore() -> None:
            with closing(stdlib.connect(":memory:")) as empty, closing(stdlib.connect(path)) as to:
                empty.execute("CREATE TABLE oxlite_earlier (number)")
                empty.backup(to)

        await asyncio.to_thread(restore)
        for number in range(8):
            await other.send(channel, {"number": number})
        got = [(await received(cable, channel))["number"] for _ in range(8)]
        assert got == list(range(8))
        await other.group_send("room", {"is": "for all"})
        assert await received(cable, channel) == {"is": "for all"}
        await cable.close()
        await other.close()

    asyncio.run(main())


def test_flush_drops_what_others_have_kept(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable, other = Cable(path), Cable(path)
        waiting, kept = cable.new_channel(), cable.new_channel()
        await cable.group_add("room", kept)
        receiving = asyncio.create_task(received(cable, waiting))
        await other.send(kept, {"is": "old"})
        await asyncio.sleep(0.1)
        await other.flush()
        await other.send(waiting, {"is": "new"})
        assert await receiving == {"is": "new"}
        assert await is_nothing_there(cable, kept)
        assert rows(path, "SELECT count(*) FROM oxlite_cable_member") == [(0,)]
        await cable.close()
        await other.close()

    asyncio.run(main())
