"""Who receives: whatever becomes of him or of his event loop, no message is lost or given twice."""

import asyncio
import gc
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

from tests.cable.common import do, is_nothing_there, received, rows, wait_until_count

import oxlite
from oxlite.cable import Cable


def test_a_loop_that_ends_takes_no_message_with_it(tmp_path: Path) -> None:
    cable = Cable(tmp_path / "cable.db")

    async def send_and_end(number: int) -> "asyncio.Task[dict[str, int]]":
        receiving = asyncio.create_task(cable.receive("jobs"))
        await asyncio.sleep(0.02)
        await cable.send("jobs", {"number": number})
        for _ in range(number):
            await asyncio.sleep(0)
        return receiving

    for number in range(12):
        receiving = asyncio.run(send_and_end(number))
        is_cancelled = receiving.cancelled()
        got = asyncio.run(received(cable, "jobs")) if is_cancelled else receiving.result()
        assert got == {"number": number}
    asyncio.run(cable.close())


def test_a_receiver_with_a_loop_for_each_call_is_given_each_message(tmp_path: Path) -> None:
    cable, messages = Cable(tmp_path / "cable.db", capacity=1000), 300

    def send() -> None:
        async def main() -> None:
            sender = Cable(tmp_path / "cable.db", capacity=1000)
            for number in range(messages):
                await sender.send("jobs", {"number": number})
                await asyncio.sleep(0.001 * (number % 3))
            await sender.close()

        asyncio.run(main())

    async def take(seconds: float) -> int | None:
        try:
            return int((await asyncio.wait_for(cable.receive("jobs"), seconds))["number"])
        except TimeoutError:
            return None

    sending = threading.Thread(target=send)
    sending.start()
    got = []
    while sending.is_alive():
        got.append(asyncio.run(take(0.001 * (len(got) % 4))))
    sending.join()
    got = [number for number in got if number is not None]
    while len(got) < messages:
        got.append(asyncio.run(received(cable, "jobs"))["number"])
    assert got == list(range(messages))
    asyncio.run(cable.close())


def test_what_a_process_had_taken_goes_back_when_it_ends(tmp_path: Path) -> None:
    script = """
import asyncio, sys
import oxlite
from oxlite.cable import Cable
async def main():
    cable = Cable(sys.argv[1])
    receiving = asyncio.ensure_future(cable.receive("jobs"))
    await asyncio.sleep(0.05)
    await cable.send("jobs", {"is": "kept"})
    for _ in range(int(sys.argv[2])):
        await asyncio.sleep(0)
    return receiving
print(int(not asyncio.run(main()).cancelled()))
"""
    path = tmp_path / "cable.db"
    for turns in (0, 1, 2, 3, 5, 8, 13):
        command = [sys.executable, "-c", script, str(path), str(turns)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        waits = rows(path, "SELECT count(*) FROM oxlite_cable_message")
        assert waits == [(1 - int(said),)]
        for _ in range(1 - int(said)):
            asyncio.run(_taken_and_closed(path))


async def _taken_and_closed(path: Path) -> None:
    cable = Cable(path)
    assert await received(cable, "jobs") == {"is": "kept"}
    await cable.close()


def test_a_member_that_leaves_is_given_what_was_sent_before(tmp_path: Path) -> None:
    async def main() -> None:
        cable, other = Cable(tmp_path / "cable.db"), Cable(tmp_path / "cable.db")
        for returns in (False, True):
            channel = cable.new_channel()
            await cable.group_add("room", channel)
            await other.group_send("room", {"is": "for him"})
            await other.group_discard("room", channel)
            if returns:
                await other.group_add("room", channel)
            else:
                await other.group_send("room", {"is": "for others"})
            assert await received(cable, channel) == {"is": "for him"}
            assert await is_nothing_there(cable, channel)
        await cable.close()
        await other.close()

    asyncio.run(main())


def test_a_message_of_a_process_is_given_once_however_many_queues_it_reads(tmp_path: Path) -> None:
    async def main() -> None:
        cable = Cable(tmp_path / "cable.db")
        channel = cable.new_channel()
        for number in range(70):
            await cable.send(f"queue-{number}", {})
        await cable.send(channel, {"is": "once"})
        for number in range(63):
            await received(cable, f"queue-{number}")
        assert await received(cable, channel) == {"is": "once"}
        for number in range(63, 70):
            await received(cable, f"queue-{number}")
        assert await is_nothing_there(cable, channel)
        await cable.close()

    asyncio.run(main())


def test_a_loop_that_stands_still_is_in_nobodys_way(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"
    cable, other = Cable(path), Cable(path)
    own = cable.new_channel()

    async def begin_to_wait() -> list["asyncio.Task[object]"]:
        tasks = [asyncio.ensure_future(cable.receive(channel)) for channel in (own, "jobs")]
        await asyncio.sleep(0.1)
        return tasks

    async def give_up() -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(cable.receive(own), 0.05)

    async def send_and_receive() -> None:
        await other.send(own, {"number": 1})
        assert await received(cable, own) == {"number": 1}
        # Taken for the one that stands still, it goes to another process.
        await other.send("jobs", {"number": 2})
        assert await received(other, "jobs") == {"number": 2}

    with asyncio.Runner() as still, asyncio.Runner() as running:
        still.run(give_up())
        waiting = still.run(begin_to_wait())
        running.run(send_and_receive())
        for task in waiting:
            task.cancel()
    asyncio.run(cable.close())
    asyncio.run(other.close())


def test_what_goes_back_to_tables_that_were_made_anew_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"
    cable, other = Cable(path), Cable(path)

    async def begin_to_wait() -> "asyncio.Task[object]":
        task = asyncio.ensure_future(cable.receive("jobs"))
        await asyncio.sleep(0.1)
        return task

    async def send_and_receive() -> None:
        await other.send("jobs", {"number": 1})
        await asyncio.to_thread(wait_until_count, path, "oxlite_cable_message", 0)
        # The next one has the number of the one that was taken, and stays until that comes back.
        do(path, "DELETE FROM sqlite_sequence")
        await other.send("jobs", {"number": 2})
        await asyncio.to_thread(wait_until_count, path, "oxlite_cable_message", 2)
        got = [(await received(other, "jobs"))["number"] for _ in range(2)]
        assert sorted(got) == [1, 2]

    with asyncio.Runner() as still, asyncio.Runner() as running:
        waiting = still.run(begin_to_wait())
        running.run(send_and_receive())
        waiting.cancel()
    asyncio.run(cable.close())
    asyncio.run(other.close())


def test_a_loop_that_is_closed_ends_nobody_elses_wait(tmp_path: Path) -> None:
    cable = Cable(tmp_path / "cable.db")
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(cable.receive("jobs"))
    loop.run_until_complete(asyncio.sleep(0.1))
    loop.close()
    setattr(waiting, "_log_destroy_pending", False)  # noqa: B010 - it was meant to be left
    del waiting, loop

    async def main() -> None:
        asyncio.get_running_loop().call_later(0.1, gc.collect)
        receiving = asyncio.ensure_future(received(cable, "jobs"))
        await asyncio.sleep(0.3)
        await cable.send("jobs", {"number": 1})
        assert await receiving == {"number": 1}
        await cable.close()

    asyncio.run(main())


def test_who_is_cancelled_after_he_was_woken_has_another_woken(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable, other = Cable(path), Cable(path)
        channel = cable.new_channel()
        first = asyncio.create_task(received(cable, channel))
        second = asyncio.create_task(received(cable, channel))
        await asyncio.sleep(0.1)
        sender = threading.Thread(target=lambda: asyncio.run(other.send(channel, {"number": 1})))
        sender.start()
        time.sleep(0.5)  # the loop stands still, and is told meanwhile
        first.cancel()
        assert await second == {"number": 1}
        sender.join()
        await cable.close()
        await other.close()

    asyncio.run(main())


def test_who_is_destroyed_while_he_waits_is_in_nobodys_way(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable, other = Cable(path), Cable(path)
        channel = cable.new_channel()
        destroyed = cable.receive(channel)
        destroyed.send(None)
        waiting = asyncio.create_task(received(cable, channel))
        await asyncio.sleep(0.1)
        destroyed.close()
        await other.send(channel, {"number": 1})
        assert await waiting == {"number": 1}
        await cable.close()
        await other.close()

    asyncio.run(main())


def test_receivers_that_are_cancelled_together_leave_the_order(tmp_path: Path) -> None:
    path = tmp_path / "cable.db"

    async def main() -> None:
        cable = Cable(path)
        channel = cable.new_channel()
        with closing(oxlite.connect(path, profile="cache", isolation_level=None)) as connection:
            for turns in range(40):
                receiving = [asyncio.ensure_future(cable.receive(channel)) for _ in range(2)]
                await asyncio.sleep(0.01)
                connection.execute("BEGIN IMMEDIATE")
                for number in range(2):
                    await cable.send(channel, {"number": number}, connection=connection)
                connection.execute("COMMIT")  # both come at once
                for _ in range(turns):
                    await asyncio.sleep(0)
                got = []
                for task in receiving:
                    task.cancel()
                for task in receiving:
                    with suppress(asyncio.CancelledError):
                        got.append((await task)["number"])
                while len(got) < 2:
                    got.append((await received(cable, channel))["number"])
                assert got == [0, 1]
        await cable.close()

    asyncio.run(main())


def test_a_prefix_is_given_what_was_kept_in_the_order_of_sending(tmp_path: Path) -> None:
    async def main() -> None:
        cable = Cable(tmp_path / "cable.db", capacity=1000)
        channels = [cable.new_channel() for _ in range(3)]
        prefix = channels[0].partition("!")[0] + "!"
        for number in range(60):
            await cable.send(channels[number % 3], {"number": number})
        got = [(await received(cable, channels[1]))["number"] for _ in range(5)]
        got += [(await received(cable, prefix))["number"] for _ in range(55)]
        assert got[:5] == [1, 4, 7, 10, 13]
        assert got[5:] == [number for number in range(60) if number not in got[:5]]
        await cable.close()

    asyncio.run(main())
