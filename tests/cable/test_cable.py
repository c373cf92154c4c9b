"""Channels, groups and rooms: what is sent arrives once, in order, in whatever process and loop."""

import asyncio
import json
import logging
import os
import signal
import sqlite3 as stdlib
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.wait import LIMIT_SECONDS

import oxlite
from oxlite.cable import Broadcast, Cable, MessageTooLarge, QueueFull

RECEIVES = """
import asyncio, json, sys
from oxlite.cable import Cable
path, clients, messages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
async def main():
    cable = Cable(path, capacity=100_000)
    channels = [cable.new_channel() for _ in range(clients)]
    for channel in channels:
        await cable.group_add("room", channel)
    print("ready", flush=True)
    async def hear(channel):
        return [(await cable.receive(channel))["number"] for _ in range(messages)]
    heard = await asyncio.gather(*map(hear, channels))
    print(json.dumps(heard), flush=True)
asyncio.run(main())
"""


def _receiver(path: Path, clients: int, messages: int) -> "subprocess.Popen[str]":
    arguments = [sys.executable, "-c", RECEIVES, str(path), str(clients), str(messages)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


async def _next(cable: Cable, channel: str) -> object:
    async with asyncio.timeout(LIMIT_SECONDS):
        return await cable.receive(channel)


async def _nothing(cable: Cable, channel: str) -> bool:
    """Whether nothing is there; what is there has been committed before."""
    try:
        async with asyncio.timeout(0.2):
            await cable.receive(channel)
    except TimeoutError:
        return True
    return False


def test_each_member_in_each_process_is_given_each_message_once_and_in_order(
    tmp_path: Path,
) -> None:
    path, messages = tmp_path / "cable.db", 200
    receivers = [_receiver(path, 20, messages) for _ in range(2)]

    async def send() -> None:
        cable = Cable(path, capacity=100_000)
        for number in range(messages):
            await cable.group_send("room", {"number": number})
        await cable.close()

    asyncio.run(send())
    for receiver in receivers:
        said, _ = receiver.communicate(timeout=LIMIT_SECONDS)
        assert json.loads(said) == [list(range(messages))] * 20


def test_a_killed_process_is_in_nobodys_way(tmp_path: Path) -> None:
    path, messages = tmp_path / "cable.db", 60
    killed, stays = _receiver(path, 5, messages), _receiver(path, 5, messages)

    async def send() -> None:
        cable = Cable(path, capacity=30)
        for number in range(messages):
            if number == 10:
                killed.send_signal(signal.SIGKILL)
                killed.communicate()
            await cable.group_send("room", {"number": number})
            await asyncio.sleep(0.005)
        await cable.close()

    asyncio.run(send())
    said, _ = stays.communicate(timeout=LIMIT_SECONDS)
    assert json.loads(said) == [list(range(messages))] * 5


def test_what_another_program_inserts_arrives(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path)
        waiting = asyncio.ensure_future(_next(cable, "orders"))
        await asyncio.sleep(0.1)

        def insert() -> None:
            with closing(stdlib.connect(path)) as other, other:
                other.execute(
                    "INSERT INTO oxlite_cable_message (queue, channel, message)"
                    """ VALUES ('orders', 'orders', '{"from": "the shell"}')"""
                )

        await asyncio.to_thread(insert)
        assert await waiting == {"from": "the shell"}
        await cable.close()

    asyncio.run(main())


def test_what_is_no_message_is_dropped_and_it_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path)
        mine = cable.new_channel()
        for channel in ("orders", mine):
            await cable.group_add("room", channel)
            rows = [
                (channel.partition("!")[0] + ("!" if "!" in channel else ""), channel, content)
                for content in (b"\xc1", b"", b"\x01", "no JSON", "[1]", 7, 0.5, b"\x81" * 9000)
            ]
            with closing(stdlib.connect(path)) as other, other:
                other.executemany(
                    "INSERT INTO oxlite_cable_message (queue, channel, message) VALUES (?, ?, ?)",
                    rows,
                )
            await cable.send(channel, {"is": "one"})
            assert await _next(cable, channel) == {"is": "one"}
        await cable.close()

    asyncio.run(main())
    assert caplog.text.count("is no message") == 16


def test_who_is_cancelled_has_taken_nothing(tmp_path: Path) -> None:
    async def main(channel: str | None) -> None:
        cable = Cable(tmp_path / "cable.db", capacity=1000)
        channel = channel or cable.new_channel()
        given: list[int] = []
        for number in range(60):
            await cable.send(channel, {"number": number})
            waiting = asyncio.ensure_future(cable.receive(channel))
            await asyncio.sleep(number / 50_000)
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                given.append((await waiting)["number"])
        while len(given) < 60:
            async with asyncio.timeout(LIMIT_SECONDS):
                given.append((await cable.receive(channel))["number"])
        if channel.startswith("specific"):
            assert given == list(range(60))
        else:
            assert sorted(given) == list(range(60))
        assert await _nothing(cable, channel)
        await cable.close()

    asyncio.run(main(None))
    asyncio.run(main("orders"))


def test_a_prefix_receives_all_channels_of_its_process(tmp_path: Path) -> None:
    async def main() -> None:
        cable = Cable(tmp_path / "cable.db")
        first, second = cable.new_channel(), cable.new_channel()
        prefix = first.partition("!")[0] + "!"
        await cable.send(first, {"to": 1})
        await cable.send(second, {"to": 2})
        assert [await _next(cable, prefix) for _ in range(2)] == [{"to": 1}, {"to": 2}]
        await cable.close()

    asyncio.run(main())


def test_a_full_queue_refuses_and_a_group_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "oxlite.cable")

    async def main() -> None:
        cable = Cable(tmp_path / "cable.db", capacity=2)
        mine, other = cable.new_channel(), cable.new_channel()
        await cable.send(mine, {"number": 0})
        await cable.group_add("room", other)
        await cable.group_send("room", {"number": 1})
        with pytest.raises(QueueFull, match="2 messages wait"):
            await cable.send(mine, {"number": 2})
        await cable.group_send("room", {"number": 3})
        assert await _next(cable, mine) == {"number": 0}
        assert await _next(cable, other) == {"number": 1}
        assert await _nothing(cable, other)
        await cable.close()

    asyncio.run(main())
    assert "1 of 1 channels over capacity in group room" in caplog.text


def test_who_receives_too_slowly_loses_the_oldest_and_it_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        cable = Cable(tmp_path / "cable.db", capacity=10)
        slow, other = cable.new_channel(), cable.new_channel()
        for number in range(25):
            await cable.send(slow, {"number": number})
            await cable.send(other, {"number": number})
            # Whoever waits for another channel of the process reads for all.
            assert await _next(cable, other) == {"number": number}
        left = [await _next(cable, slow) for _ in range(10)]
        assert left == [{"number": number} for number in range(15, 25)]
        assert await _nothing(cable, slow)
        await cable.close()

    asyncio.run(main())
    assert "reads more slowly than it is sent to" in caplog.text


def test_what_has_expired_is_given_to_nobody(tmp_path: Path) -> None:
    async def main() -> None:
        cable = Cable(tmp_path / "cable.db", expiry=0.2, group_expiry=0.2)
        channel = cable.new_channel()
        await cable.group_add("room", channel)
        await cable.send(channel, {"is": "old"})
        await asyncio.sleep(0.3)
        await cable.group_send("room", {"to": "nobody"})
        await cable.send(channel, {"is": "new"})
        assert await _next(cable, channel) == {"is": "new"}
        assert await _nothing(cable, channel)
        await cable.close()

    asyncio.run(main())


def test_a_member_of_a_process_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path, expiry=0.1)
        await cable.group_add("room", "specific.gone!1")
        await cable.group_send("room", {"number": 0})
        await asyncio.sleep(0.3)
        for number in range(70):
            await cable.send("orders", {"number": number})
        await cable.close()

    asyncio.run(main())
    with closing(stdlib.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM oxlite_cable_member").fetchone() == (0,)


@pytest.mark.parametrize(
    ("message", "error", "said"),
    [
        (["no", "dict"], TypeError, "a message is a dict, not list"),
        ({"when": object()}, TypeError, "isoformat"),
        ({"number": 1 << 64}, ValueError, "at most 64 bits"),
        ({"text": "x" * (5 << 20)}, MessageTooLarge, "into a table or a file"),
    ],
)
def test_what_cannot_be_sent_is_refused(
    tmp_path: Path, message: object, error: type[Exception], said: str
) -> None:
    async def main() -> None:
        cable = Cable(tmp_path / "cable.db")
        with pytest.raises(error, match=said):
            await cable.send("orders", message)  # type: ignore[arg-type]
        with pytest.raises(error, match=said):
            await cable.group_send("room", message)  # type: ignore[arg-type]
        await cable.close()

    asyncio.run(main())


def test_all_types_of_a_message_arrive_as_they_were(tmp_path: Path) -> None:
    message = {
        "bytes": b"\x00\xff",
        "text": "Grüße",
        "numbers": [0, -(1 << 63), (1 << 64) - 1, 0.5],
        "nothing": None,
        "truth": [True, False],
        "dict": {"of": {"dicts": []}},
        "long": "x" * (1 << 20),
    }

    async def main() -> None:
        cable = Cable(tmp_path / "cable.db")
        await cable.send("orders", message)
        assert await _next(cable, "orders") == message
        await cable.close()

    asyncio.run(main())


def test_a_channel_of_another_process_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        cable = Cable(tmp_path / "cable.db")
        with pytest.raises(ValueError, match="of another process"):
            await cable.receive("specific.0123!4567")
        await cable.close()

    asyncio.run(main())


def test_loops_of_one_process_receive_side_by_side(tmp_path: Path) -> None:
    cable = Cable(tmp_path / "cable.db", capacity=1000)
    channels = [cable.new_channel() for _ in range(4)]
    heard: dict[str, list[int]] = {}

    def listen(channel: str) -> None:
        async def main() -> None:
            async with asyncio.timeout(LIMIT_SECONDS):
                heard[channel] = [(await cable.receive(channel))["number"] for _ in range(50)]

        asyncio.run(main())

    threads = [threading.Thread(target=listen, args=(channel,)) for channel in channels]
    for thread in threads:
        thread.start()

    async def send() -> None:
        for number in range(50):
            for channel in channels:
                await cable.send(channel, {"number": number})

    asyncio.run(send())
    for thread in threads:
        thread.join()
    assert heard == {channel: list(range(50)) for channel in channels}
    asyncio.run(cable.close())


def test_a_loop_that_is_closed_under_a_receiver_is_in_nobodys_way(tmp_path: Path) -> None:
    cable = Cable(tmp_path / "cable.db")
    channel = cable.new_channel()
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(cable.receive(channel))
    loop.run_until_complete(asyncio.sleep(0.1))
    loop.stop()
    loop.close()

    async def main() -> None:
        await cable.send(channel, {"number": 1})
        assert await _next(cable, channel) == {"number": 1}
        await cable.close()

    asyncio.run(main())
    setattr(waiting, "_log_destroy_pending", False)  # noqa: B010 - it was meant to be left


def test_a_file_that_is_deleted_is_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path)
        channel = cable.new_channel()
        waiting = asyncio.ensure_future(_next(cable, channel))
        await asyncio.sleep(0.1)
        for each in tmp_path.iterdir():
            each.unlink()
        await cable.send(channel, {"number": 1})
        assert await waiting == {"number": 1}
        await cable.close()

    asyncio.run(main())
    assert "was deleted or replaced" in caplog.text


def test_a_file_that_is_locked_for_a_while_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path)
        await cable.send("other", {"number": 0})
        waiting = asyncio.ensure_future(_next(cable, "orders"))
        with closing(stdlib.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            sending = asyncio.ensure_future(cable.send("orders", {"number": 1}))
            await asyncio.sleep(0.5)
            other.execute("ROLLBACK")
        await sending
        assert await waiting == {"number": 1}
        await cable.close()

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_has_channels_of_its_own(tmp_path: Path) -> None:
    script = """
import asyncio, os, signal, sys
from oxlite.cable import Cable
signal.alarm(60)
cable = Cable(sys.argv[1])
parents = cable.new_channel()
asyncio.run(cable.send(parents, {"to": "parent"}))
child = os.fork()
if child == 0:
    signal.alarm(30)
    mine = cable.new_channel()
    async def main():
        await cable.send(mine, {"to": "child"})
        return await cable.receive(mine)
    print(asyncio.run(main()), flush=True)
    try:
        asyncio.run(cable.receive(parents))
    except ValueError as error:
        print("before a fork" in str(error), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(asyncio.run(cable.receive(parents)))
"""
    command = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "cable.db")]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["{'to': 'child'}", "True", "{'to': 'parent'}"]


def test_a_group_of_ten_thousand_is_sent_to_at_once(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path)
        channels = [cable.new_channel() for _ in range(10_000)]
        await cable.group_add("room", channels[0])
        async with oxlite.aio.Database(path) as db:
            rows = [("room", each.partition("!")[0] + "!", each, 0, 1e12) for each in channels]
            await db.executemany(
                "INSERT OR REPLACE INTO oxlite_cable_member VALUES (?, ?, ?, ?, ?)", rows
            )
        await cable.group_send("room", {"number": 1})
        async with asyncio.timeout(LIMIT_SECONDS):
            heard = await asyncio.gather(*map(cable.receive, channels))
        assert heard == [{"number": 1}] * 10_000
        await cable.close()

    asyncio.run(main())


def test_a_broadcast_reaches_all_who_are_in_the_room(tmp_path: Path) -> None:
    async def main() -> None:
        broadcast = Broadcast(tmp_path / "cable.db")
        async with broadcast.subscribe("chat", "news") as both, broadcast.subscribe("news") as one:
            await broadcast.publish("chat", {"text": "hello"})
            await broadcast.publish("news", {"text": "read all about it"})
            async with asyncio.timeout(LIMIT_SECONDS):
                heard = [await anext(both), await anext(both), await anext(one)]
            assert [each["text"] for each in heard] == ["hello", *["read all about it"] * 2]
        with pytest.raises(TypeError, match="names of rooms"):
            broadcast.subscribe()
        await broadcast.close()

    asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's figures are read from /proc")
def test_whoever_waits_is_not_woken_while_nothing_is_sent(tmp_path: Path) -> None:
    script = """
import asyncio, sys
from oxlite.cable import Cable
async def main():
    cable = Cable(sys.argv[1])
    asyncio.get_running_loop().call_later(7, print, "ready", "", "\\n")
    asyncio.get_running_loop().call_later(7.1, sys.stdout.flush)
    await cable.receive(cable.new_channel())
asyncio.run(main())
"""
    command = [sys.executable, "-c", script, str(tmp_path / "cable.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        time.sleep(0.5)
        before = _switches(process.pid)
        time.sleep(3)
        after = _switches(process.pid)
        process.kill()
    # A worker that has had nothing to do for long has ended meanwhile.
    assert after == {task: before[task] for task in after}


def _switches(pid: int) -> dict[str, str]:
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        found[task.name] = next(line for line in lines if line.startswith("voluntary"))
    return found


def test_a_message_that_is_part_of_a_transaction_leaves_with_its_commit(tmp_path: Path) -> None:
    path = tmp_path / "app.db"

    async def main() -> None:
        cable = Cable(path, profile="web")
        channel = cable.new_channel()
        await cable.group_add("room", channel)
        with closing(oxlite.connect(path, isolation_level=None)) as connection:
            for end in ("ROLLBACK", "COMMIT"):
                connection.execute("BEGIN IMMEDIATE")
                await cable.send(channel, {"sent by": end}, connection=connection)
                await cable.group_send("room", {"sent to all by": end}, connection=connection)
                assert await _nothing(cable, channel)
                connection.execute(end)
        assert await _next(cable, channel) == {"sent by": "COMMIT"}
        assert await _next(cable, channel) == {"sent to all by": "COMMIT"}
        assert await _nothing(cable, channel)
        await cable.close()

    asyncio.run(main())


def test_other_peoples_tables_are_not_risked(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with oxlite.Database(path) as db:
        db.execute("CREATE TABLE orders (id)")

    async def main() -> None:
        with pytest.raises(ValueError, match="holds other tables"):
            await Cable(path).send("orders", {})
        cable = Cable(path, profile="web")
        await cable.send("orders", {})
        await cable.close()

    asyncio.run(main())
