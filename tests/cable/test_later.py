"""What is read later than it was sent: for whom it is, and what counts as waiting."""

import asyncio
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.cable.common import received, stop

import oxlite
from oxlite.cable import Cable
from oxlite.cable.mailbox import Message, OwnMailbox

MEMBER = """
import asyncio, sys
from oxlite.cable import Cable
async def hear(cable, name, channel):
    while True:
        print(name, (await cable.receive(channel))["number"], flush=True)
async def main():
    cable = Cable(sys.argv[1])
    first, second = cable.new_channel(), cable.new_channel()
    await cable.group_add("room", first)
    print(first, second, flush=True)
    await asyncio.gather(hear(cable, "first", first), hear(cable, "second", second))
asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="there are no such signals")
def test_members_are_those_of_the_moment_of_sending_whenever_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"
    command = [sys.executable, "-c", MEMBER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as member:
        try:
            assert member.stdout is not None
            first, second = member.stdout.readline().split()

            async def send(*numbers: int) -> None:
                for number in numbers:
                    await cable.group_send("room", {"number": number})

            async def meanwhile() -> None:
                await send(1)
                await cable.group_add("room", second)
                await send(2)
                await cable.group_discard("room", first)
                await send(3)

            cable = Cable(path)
            asyncio.run(send(0))
            assert member.stdout.readline() == "first 0\n"
            stop(member, path)
            asyncio.run(meanwhile())
            member.send_signal(signal.SIGCONT)
            said = [member.stdout.readline() for _ in range(4)]
            assert sorted(said) == ["first 1\n", "first 2\n", "second 2\n", "second 3\n"]
            asyncio.run(send(4))
            assert member.stdout.readline() == "second 4\n"
        finally:
            member.kill()


def test_what_was_given_counts_no_more_although_it_is_there_still(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path, capacity=3)
        channel = cable.new_channel()
        for number in range(3):
            await cable.send(channel, {"number": number})
        with closing(oxlite.connect(path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")  # so nobody can delete
            for number in range(3):
                assert await received(cable, channel) == {"number": number}
            for number in range(3, 6):
                await cable.send(channel, {"number": number}, connection=connection)
            connection.execute("COMMIT")
        for number in range(3, 6):
            assert await received(cable, channel) == {"number": number}
        await cable.close()

    asyncio.run(main())


def test_what_has_expired_since_it_was_read_is_not_given() -> None:
    mailbox = OwnMailbox("jobs!", capacity=10)
    sent = [
        (Message(number, b"", False, 0.0, 0.0, expires), ["jobs!one"])
        for number, expires in ((1, 10.0), (2, 20.0))
    ]
    mailbox.deliver(sent, now=9.0)
    taken = mailbox.take("jobs!one", now=11.0)
    assert taken is not None
    assert taken.number == 2
    assert mailbox.take("jobs!one", now=11.0) is None


@pytest.mark.parametrize("makes", ["row_factory", "text_factory"])
def test_what_a_connection_makes_of_rows_is_nothing_to_the_cable(
    tmp_path: Path, makes: str
) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path)
        channel = cable.new_channel()
        await cable.group_add("room", channel)
        with closing(oxlite.connect(path, isolation_level=None)) as connection:
            if makes == "row_factory":
                connection.row_factory = lambda cursor, row: {"row": row}
            else:
                connection.text_factory = bytes
            waiting = asyncio.create_task(received(cable, channel))
            await asyncio.sleep(0.1)
            connection.execute("BEGIN IMMEDIATE")
            await cable.send(channel, {"number": 1}, connection=connection)
            await cable.group_send("room", {"number": 2}, connection=connection)
            connection.execute("COMMIT")
            assert await waiting == {"number": 1}
            assert await received(cable, channel) == {"number": 2}
            connection.execute("BEGIN IMMEDIATE")
            await cable.flush(connection=connection)
            connection.execute("COMMIT")
        await cable.close()

    asyncio.run(main())
