"""A cable whose file cannot be used, or that is closed: nobody waits for ever, nothing lives on."""

import asyncio
import shutil
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.cable.common import do, received, rows, wait_until_count
from tests.wait import until

import oxlite
from oxlite import sqlite3
from oxlite.cable import Broadcast, Cable

SOON_SECONDS = 15.0


def _couriers(path: Path) -> list[str]:
    name = f"oxlite cable {path.name}"
    return [each.name for each in threading.enumerate() if each.name == name]


def test_who_enters_a_group_is_told_where_the_file_cannot_be_opened(tmp_path: Path) -> None:
    async def main(path: Path, at_least: float) -> None:
        cable = Cable(path)
        begun = time.monotonic()
        async with asyncio.timeout(SOON_SECONDS):
            with pytest.raises(sqlite3.Error):
                await cable.group_add("room", cable.new_channel())
            assert time.monotonic() - begun > at_least
            with pytest.raises(sqlite3.Error):
                await cable.flush()
        await cable.close()

    no_database = tmp_path / "text.db"
    no_database.write_text("this is no database, and waiting does not mend that\n" * 100)
    asyncio.run(main(no_database, 0.0))
    # Somebody may make the folder yet.
    asyncio.run(main(tmp_path / "missing" / "cable.db", 2.0))


def test_all_who_enter_groups_are_told_together_that_the_file_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path)
        broadcast = Broadcast(path)
        async with broadcast.subscribe("chat"):
            await cable.group_add("room", cable.new_channel())
            lock = oxlite.connect(path, isolation_level=None)
            with closing(lock):
                lock.execute("BEGIN IMMEDIATE")
                waiting = [cable.group_add("room", cable.new_channel()) for _ in range(20)]
                async with asyncio.timeout(SOON_SECONDS):
                    told = await asyncio.gather(*waiting, return_exceptions=True)
                assert all(isinstance(each, sqlite3.OperationalError) for each in told)
                lock.execute("ROLLBACK")
            # Those who were told are in no group.
            await cable.group_add("room", cable.new_channel())
        await asyncio.to_thread(wait_until_count, path, "oxlite_cable_member", 2)
        await broadcast.close()
        await cable.close()

    asyncio.run(main())


def test_who_leaves_while_the_file_is_locked_keeps_nobody_waiting(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        broadcast = Broadcast(path)
        async with broadcast.subscribe("chat"):
            lock = oxlite.connect(path, isolation_level=None)
            lock.execute("BEGIN IMMEDIATE")
        with closing(lock):
            async with asyncio.timeout(SOON_SECONDS):
                with pytest.raises(sqlite3.OperationalError):
                    await broadcast.subscribe("chat").__aenter__()
        await asyncio.to_thread(wait_until_count, path, "oxlite_cable_member", 0)
        await broadcast.close()

    asyncio.run(main())


def test_a_broadcast_that_is_closed_under_subscribers_stays_closed(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "closed.db"
    path.parent.mkdir()

    async def main() -> None:
        broadcast = Broadcast(path)

        async def follow() -> None:
            async with broadcast.subscribe("chat") as messages:
                async for _ in messages:
                    pass

        await broadcast.publish("chat", {})
        following = [asyncio.create_task(follow()) for _ in range(5)]
        await asyncio.to_thread(wait_until_count, path, "oxlite_cable_member", 5)
        await broadcast.close()
        for each in following:
            with suppress(asyncio.CancelledError):
                await each
        await asyncio.to_thread(wait_until_count, path, "oxlite_cable_member", 0)
        await asyncio.to_thread(until, lambda: not _couriers(path))
        shutil.rmtree(path.parent)
        path.parent.mkdir()
        await asyncio.sleep(0.3)
        assert list(path.parent.iterdir()) == []
        # It lives again when it is used.
        async with broadcast.subscribe("chat") as messages:
            await broadcast.publish("chat", {"number": 1})
            assert await anext(messages) == {"number": 1}
        await broadcast.close()

    asyncio.run(main())


def test_a_process_that_has_closed_its_cable_leaves_its_groups_when_it_ends(tmp_path: Path) -> None:
    script = """
import asyncio, sys
from oxlite.cable import Cable
async def main():
    cable = Cable(sys.argv[1])
    await cable.group_add("room", cable.new_channel())
    await cable.close()
asyncio.run(main())
"""
    path = tmp_path / "cable.db"
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    assert rows(path, "SELECT count(*) FROM oxlite_cable_member") == [(0,)]
    assert rows(path, "SELECT count(*) FROM oxlite_cable_reader") == [(0,)]


def test_who_was_flushed_out_of_a_group_does_not_come_back(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path)
        channel = cable.new_channel()
        await asyncio.gather(cable.group_add("flushed", channel), cable.flush())
        await cable.group_add("room", channel)
        await asyncio.to_thread(wait_until_count, path, "oxlite_cable_reader", 1)
        do(path, "DELETE FROM oxlite_cable_member", "DELETE FROM oxlite_cable_reader")
        await cable.send(channel, {"number": 1})
        assert await received(cable, channel) == {"number": 1}
        await asyncio.to_thread(wait_until_count, path, "oxlite_cable_reader", 1)
        assert rows(path, "SELECT group_name FROM oxlite_cable_member") == [("room",)]
        await cable.close()

    asyncio.run(main())
