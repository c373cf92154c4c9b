"""The file of a cable: where it is, when it cannot be used, how much waits in it."""

import asyncio
import logging
import os
import shutil
import sqlite3 as stdlib
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.cable.common import received, rows

import oxlite
from oxlite.cable import Cable, QueueFull


def test_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        cable = Cable("cable.db")
        channel = cable.new_channel()
        await cable.group_add("room", channel)
        monkeypatch.chdir(tmp_path / "other")
        await cable.group_send("room", {"is": "there"})
        assert await received(cable, channel) == {"is": "there"}
        await cable.close()

    asyncio.run(main())
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.slow
def test_the_first_receive_waits_for_a_file_that_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"
    script = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(7)
connection.execute("COMMIT")
"""

    async def main() -> None:
        first = Cable(path)
        await first.send("jobs", {"number": 1})
        await first.close()
        command = [sys.executable, "-c", script, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "locked\n"
            cable = Cable(path)
            assert await received(cable, "jobs") == {"number": 1}
            await cable.close()

    asyncio.run(main())


def test_the_first_receive_waits_for_a_folder_that_is_not_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "folder" / "cable.db"

    async def main() -> None:
        cable = Cable(path)
        waiting = asyncio.create_task(received(cable, "jobs"))
        await asyncio.sleep(0.3)
        path.parent.mkdir()
        await cable.send("jobs", {"number": 1})
        assert await waiting == {"number": 1}
        waiting = asyncio.create_task(received(cable, "jobs"))
        await asyncio.sleep(0.1)
        shutil.rmtree(path.parent)
        await asyncio.sleep(0.3)
        path.parent.mkdir()
        await cable.send("jobs", {"number": 2})
        assert await waiting == {"number": 2}
        await cable.close()

    asyncio.run(main())
    assert caplog.text.count("cannot be used for now") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are looked for in /proc")
def test_loops_that_open_it_at_once_leave_nothing_open(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"
    cable = Cable(path)
    together = threading.Barrier(8)

    def use() -> None:
        together.wait()
        asyncio.run(cable.send("jobs", {}))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(cable.close())
    names = [_target(each) for each in Path("/proc/self/fd").iterdir()]
    assert not [name for name in names if name.startswith(str(path))]


def _target(link: Path) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115 - it may be no path
    except OSError:
        return ""


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_capacity_counts_what_was_not_read(tmp_path: Path, is_elsewhere: bool) -> None:
    async def main() -> None:
        cable = Cable(tmp_path / "cable.db", capacity=8)
        channel = cable.new_channel()
        other = Sender(tmp_path / "cable.db") if is_elsewhere else cable
        for _ in range(5):
            await other.send(channel, {})
            await received(cable, channel)
        for _ in range(8):
            await other.send(channel, {})
        with pytest.raises((QueueFull, RuntimeError), match="8 messages wait"):
            await other.send(channel, {})
        await received(cable, channel)
        await other.send(channel, {})
        await cable.close()
        if isinstance(other, Sender):
            other.close()

    asyncio.run(main())


class Sender:
    """A process that sends what it is told to."""

    def __init__(self, path: Path) -> None:
        script = """
import asyncio, sys
from oxlite.cable import Cable, QueueFull
async def main():
    cable = Cable(sys.argv[1], capacity=8)
    for line in sys.stdin:
        try:
            await cable.send(line.strip(), {})
            print(flush=True)
        except QueueFull as error:
            print(error, flush=True)
asyncio.run(main())
"""
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", script, str(path)]
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    async def send(self, channel: str, _message: object) -> None:
        """Have it send."""
        if said := (await asyncio.to_thread(self._send, channel)).strip():
            raise RuntimeError(said)

    def _send(self, channel: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(channel + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def close(self) -> None:
        """End it."""
        self._process.communicate("")


def test_a_member_whose_membership_has_expired_is_not_over_capacity(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "oxlite.cable")

    async def main() -> None:
        short = Cable(tmp_path / "cable.db", group_expiry=0.1)
        await short.group_add("room", "gone")
        await asyncio.sleep(0.2)
        cable = Cable(tmp_path / "cable.db", capacity=1)
        mine = [cable.new_channel() for _ in range(3)]
        for channel in ("here", *mine):
            await cable.group_add("room", channel)
        await cable.group_send("room", {})
        assert caplog.text == ""
        await received(cable, "here")
        # What counts are channels, three of which have one queue.
        await cable.group_send("room", {})
        assert "3 of 4 channels over capacity in group room" in caplog.text
        await cable.close()
        await short.close()

    asyncio.run(main())


def test_what_is_part_of_a_transaction_waits_for_nobody(tmp_path: Path) -> None:
    path = tmp_path / "app.db"

    async def main() -> None:
        cable = Cable(path, profile="web", capacity_of=lambda _: 5)
        channel = cable.new_channel()
        with closing(oxlite.connect(path, isolation_level=None)) as connection:
            # The first thing that is done with the file: its tables are made in the transaction.
            for end, count in (("ROLLBACK", 0), ("COMMIT", 1)):
                connection.execute("BEGIN IMMEDIATE")
                async with asyncio.timeout(4):
                    await cable.group_send("room", {"to": "nobody"}, connection=connection)
                    await cable.group_add("room", "jobs", connection=connection)
                    await cable.group_add("room", channel, connection=connection)
                    await cable.group_discard("room", channel, connection=connection)
                    await cable.group_send("room", {"is": end}, connection=connection)
                connection.execute(end)
                tables = rows(
                    path, "SELECT name FROM sqlite_schema WHERE name LIKE '%cable_member'"
                )
                assert len(tables) == count
            assert await received(cable, "jobs") == {"is": "COMMIT"}
            connection.execute("BEGIN IMMEDIATE")
            await cable.flush(connection=connection)
            connection.execute("COMMIT")
        assert rows(path, "SELECT count(*) FROM oxlite_cable_member") == [(0,)]
        await cable.close()

    asyncio.run(main())


def test_a_transaction_that_only_reads_says_so(tmp_path: Path) -> None:
    path = tmp_path / "app.db"

    async def main() -> None:
        cable = Cable(path, profile="web")
        await cable.send("jobs", {})
        with closing(oxlite.connect(path)) as connection:
            connection.execute("PRAGMA query_only = 1")
            with pytest.raises(oxlite.sqlite3.OperationalError, match="only reads"):
                await cable.send("jobs", {}, connection=connection)
        await cable.close()

    asyncio.run(main())


def test_the_cable_is_read_by_other_programs(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"
    asyncio.run(_sent(path))
    with closing(stdlib.connect(path)) as other:
        assert other.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def _sent(path: Path) -> None:
    cable = Cable(path)
    await cable.send("jobs", {})
    await cable.close()


def test_a_file_that_is_deleted_is_not_made_anew_by_closing(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "cable.db"
    path.parent.mkdir()

    async def main() -> None:
        cable = Cable(path)
        await cable.send("jobs", {"number": 1})
        assert await received(cable, "jobs") == {"number": 1}
        shutil.rmtree(path.parent)
        path.parent.mkdir()
        await cable.close()

    asyncio.run(main())
    assert list(path.parent.iterdir()) == []
