"""The cable where rows, epochs and the collector come at the wrong moment."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cable.common import do, is_nothing_there, received, rows
from tests.wait import LIMIT_SECONDS

from oxlite.cable import Cable


def test_rows_of_others_with_odd_numbers_and_instants_harm_nobody(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path, expiry=60)
        channel = cable.new_channel("specific")
        await cable.group_add("room", channel)
        waiting = asyncio.create_task(received(cable, channel))
        await asyncio.sleep(0.1)
        queue = channel.partition("!")[0] + "!"
        columns = "(id, queue, channel, message, sent_at)"
        odd = "'{\"n\": 0}', strftime('%s', 'now') * 1000"
        do(
            path,
            # Before all that was read; and in milliseconds, where the table is pruned.
            f"INSERT INTO oxlite_cable_message {columns} VALUES (0, '{queue}', '{channel}', {odd})",
            f"INSERT INTO oxlite_cable_message {columns} VALUES (6400, 'other', 'other', {odd})",
        )
        await cable.group_send("room", {"n": 1})
        assert await waiting == {"n": 1}
        assert rows(path, "SELECT count(*) FROM oxlite_cable_member") == [(1,)]
        await cable.group_send("room", {"n": 2})
        assert await received(cable, channel) == {"n": 2}
        await cable.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "odd",
    [
        "UPDATE oxlite_cable_epoch SET key = CAST(x'ff' AS TEXT)",
        "UPDATE oxlite_cable_epoch SET key = x'ff'",
        "UPDATE oxlite_cable_epoch SET flushes = 'many'",
        "UPDATE oxlite_cable_epoch SET flushes = CAST(x'ff' AS TEXT)",
        "INSERT INTO oxlite_cable_reader VALUES (CAST(x'ff' AS TEXT), 0)",
        "INSERT INTO oxlite_cable_reader VALUES (x'ff', 'x')",
    ],
)
def test_what_others_write_into_the_cables_own_tables_stops_nobody(
    tmp_path: Path, odd: str
) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable, other = Cable(path), Cable(path)
        channel = cable.new_channel("specific")
        await cable.group_add("room", channel)
        await other.group_send("room", {"n": 1})
        assert await received(cable, channel) == {"n": 1}
        do(path, odd)
        await cable.group_add("second", channel)
        for group in ("room", "second"):
            await other.group_send(group, {"to": group})
            assert await received(cable, channel) == {"to": group}
        await cable.flush()
        await cable.group_add("third", channel)
        await other.group_send("third", {"n": 3})
        assert await received(cable, channel) == {"n": 3}
        await cable.close()
        await other.close()

    asyncio.run(main())


def test_there_is_one_epoch_whoever_begins_it(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path)
        channel = cable.new_channel("specific")
        await cable.group_add("room", channel)
        do(path, "DELETE FROM oxlite_cable_epoch")
        await cable.group_send("room", {"n": 1})
        assert await received(cable, channel) == {"n": 1}
        with pytest.raises(sqlite3.IntegrityError):
            do(path, "INSERT INTO oxlite_cable_epoch VALUES (2, 'another', 0)")
        await cable.group_send("room", {"n": 2})
        assert await received(cable, channel) == {"n": 2}
        assert await is_nothing_there(cable, channel)
        await cable.close()

    asyncio.run(main())


def test_what_leaves_a_room_may_be_collected_in_the_midst_of_anything(tmp_path: Path) -> None:
    # Generators that are garbage are closed by the collector, in whatever thread it runs.
    script = """
import asyncio, gc, sys
from oxlite.cable import Broadcast
gc.set_threshold(5)
broadcast = Broadcast(sys.argv[1])
async def listen(room):
    async with broadcast.subscribe(room) as messages:
        async for message in messages:
            pass
async def main():
    tasks = [asyncio.ensure_future(listen(f"room{n % 7}")) for n in range(60)]
    await asyncio.sleep(0.3)
    for n in range(50):
        await broadcast.publish(f"room{n % 7}", {"n": n})
    tasks.clear()
for _ in range(4):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    loop.close()
    del loop
    gc.collect()
asyncio.run(broadcast.close())
print("ended")
"""
    command = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "cable.db")]
    said = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert said.stdout == "ended\n"
