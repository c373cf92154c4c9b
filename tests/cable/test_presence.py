"""Who is in a group: processes that live stay; those that are gone leave."""

import asyncio
import logging
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.cable.common import do, is_nothing_there, received, rows, stop, wait_until_count
from tests.wait import until

import oxlite
from oxlite.cable import Broadcast, Cable

EXPIRY_SECONDS = 0.4


async def _pass_time(path: Path, expiries: float = 2.5) -> None:
    """Long enough for who has messages waiting to be taken for gone; and have it looked for."""
    await asyncio.sleep(expiries * EXPIRY_SECONDS)
    other = Cable(path, expiry=EXPIRY_SECONDS)
    for number in range(130):
        await other.send(f"elsewhere-{number}", {})
    await other.close()


def test_a_process_whose_loop_ends_stays_in_its_groups(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"
    cable = Cable(path, expiry=EXPIRY_SECONDS)
    channel = cable.new_channel()

    async def once() -> object:
        await cable.group_add("room", channel)
        await cable.group_send("room", {"number": 1})
        return await received(cable, channel)

    assert asyncio.run(once()) == {"number": 1}
    # What was received is deleted although that loop is no more.
    wait_until_count(path, "oxlite_cable_message", 0)
    asyncio.run(_pass_time(path))
    assert rows(path, "SELECT channel FROM oxlite_cable_member") == [(channel,)]
    asyncio.run(cable.close())


def test_a_consumer_that_is_busy_for_long_stays_in_its_groups(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path, expiry=EXPIRY_SECONDS)
        other = Cable(path, expiry=EXPIRY_SECONDS)
        channel = cable.new_channel()
        await cable.group_add("room", channel)
        await other.group_send("room", {"number": 1})
        assert await received(cable, channel) == {"number": 1}
        await other.group_send("room", {"number": 2})
        await _pass_time(path)
        await other.group_send("room", {"number": 3})
        assert await received(cable, channel) == {"number": 3}
        await cable.close()
        await other.close()

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="there are no such signals")
def test_a_process_that_stood_still_for_long_is_in_its_groups_again(tmp_path: Path) -> None:
    script = f"""
import asyncio, sys
from oxlite.cable import Cable
async def main():
    cable = Cable(sys.argv[1], expiry={EXPIRY_SECONDS})
    channel = cable.new_channel()
    await cable.group_add("room", channel)
    print("ready", flush=True)
    while True:
        print((await cable.receive(channel))["number"], flush=True)
asyncio.run(main())
"""
    path = tmp_path / "cable.db"
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as member:
        try:
            assert member.stdout is not None
            assert member.stdout.readline() == "ready\n"

            async def send(number: int) -> None:
                cable = Cable(path, expiry=EXPIRY_SECONDS)
                await cable.group_send("room", {"number": number})
                await cable.close()

            asyncio.run(send(1))
            assert member.stdout.readline() == "1\n"
            stop(member, path)
            asyncio.run(send(2))
            asyncio.run(_pass_time(path))
            assert rows(path, "SELECT count(*) FROM oxlite_cable_member") == [(0,)]
            member.send_signal(signal.SIGCONT)
            wait_until_count(path, "oxlite_cable_member", 1)
            asyncio.run(send(3))
            assert member.stdout.readline() == "3\n"
        finally:
            member.kill()


def test_a_process_that_ends_leaves_its_groups(tmp_path: Path) -> None:
    script = """
import asyncio, sys
from oxlite.cable import Cable
async def main():
    cable = Cable(sys.argv[1])
    for number in range(3):
        await cable.group_add("room", cable.new_channel())
    await cable.group_send("room", {})
asyncio.run(main())
"""
    path = tmp_path / "cable.db"
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    assert rows(path, "SELECT count(*) FROM oxlite_cable_member") == [(0,)]
    assert rows(path, "SELECT count(*) FROM oxlite_cable_message") == [(0,)]


def test_who_is_cancelled_leaves_his_rooms(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def follow(broadcast: Broadcast) -> None:
        async with broadcast.subscribe("chat", "news", "more") as messages:
            async for _ in messages:
                pass

    async def main() -> None:
        broadcast = Broadcast(path)
        await broadcast.publish("chat", {})
        for number in range(100):
            following = asyncio.create_task(follow(broadcast))
            await asyncio.sleep(number * 0.0001)
            # As the scopes of anyio do: at whatever it waits for next, it is cancelled again.
            while not following.done():
                following.cancel()
                await asyncio.sleep(0)
        await asyncio.to_thread(wait_until_count, path, "oxlite_cable_member", 0)
        await broadcast.close()

    asyncio.run(main())


def test_channels_that_nobody_receives_for_long_are_in_their_groups_and_keep_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path, capacity=5, expiry=EXPIRY_SECONDS)
        channels = [cable.new_channel() for _ in range(50)]
        for channel in channels:
            await cable.group_add("room", channel)
        for number in range(20):
            await cable.group_send("room", {"number": number})
            await asyncio.sleep(0.001)
        await _pass_time(path)
        assert not caplog.records
        assert rows(path, "SELECT count(*) FROM oxlite_cable_member") == [(50,)]
        assert await is_nothing_there(cable, channels[1])
        await cable.group_send("room", {"number": 20})
        assert [await received(cable, channel) for channel in channels] == [{"number": 20}] * 50
        await cable.close()

    caplog.set_level(logging.WARNING, "oxlite.cable")
    asyncio.run(main())


def test_a_process_that_was_taken_for_gone_is_in_the_groups_in_which_it_was_last(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path, expiry=EXPIRY_SECONDS)
        other = Cable(path, expiry=EXPIRY_SECONDS)
        channel, deaf = cable.new_channel(), cable.new_channel()
        await cable.group_add("before the flush", channel)
        await other.flush()
        for number in range(20):
            await cable.group_add(f"room {number}", channel)
            await cable.group_add("left", channel)
            await cable.group_discard("left", channel)
        await cable.group_add("left later", channel)
        waiting = asyncio.create_task(received(cable, channel))
        await other.group_send("room 7", {"number": 7})
        assert await waiting == {"number": 7}  # so it knows of the flush
        with closing(oxlite.connect(path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            await cable.group_discard("left later", channel, connection=connection)
            connection.execute("COMMIT")
        await other.send(deaf, {})
        # As others do where their clock has gone forward. What it was sent expires then.
        do(path, "DELETE FROM oxlite_cable_member", "DELETE FROM oxlite_cable_reader")
        await asyncio.to_thread(wait_until_count, path, "oxlite_cable_member", 20)
        assert rows(path, "SELECT DISTINCT channel FROM oxlite_cable_member") == [(channel,)]
        found = rows(path, "SELECT count(*) FROM oxlite_cable_member WHERE group_name GLOB 'room*'")
        assert found == [(20,)]
        await cable.close()
        await other.close()

    asyncio.run(main())


def test_no_thread_is_left_of_a_cable_that_is_closed_or_forgotten(tmp_path: Path) -> None:
    def couriers() -> list[str]:
        return [each.name for each in threading.enumerate() if each.name.startswith("oxlite cable")]

    async def main(closes: bool) -> None:
        cable = Cable(tmp_path / "cable.db")
        await cable.send("jobs", {})
        await received(cable, "jobs")
        assert couriers()
        if closes:
            await cable.close()

    for closes in (True, False):
        asyncio.run(main(closes))
        until(lambda: not couriers())


def test_the_process_ends_although_somebody_waits(tmp_path: Path) -> None:
    script = """
import asyncio, sys, threading, time
from oxlite.cable import Cable
cable = Cable(sys.argv[1])
waits = lambda: asyncio.run(cable.receive("jobs"))
threading.Thread(target=waits, daemon=True).start()
loop = asyncio.new_event_loop()
waiting = loop.create_task(cable.receive("others"))
loop.run_until_complete(asyncio.sleep(0.2))
"""
    path = tmp_path / "cable.db"
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, timeout=60)
    assert time.monotonic() - begun < 30
