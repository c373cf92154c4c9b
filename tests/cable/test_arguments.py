"""Names, numbers and messages that cannot be: refused at once; errors say what is taken."""

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
from tests.cable.common import received

from oxlite.cable import Broadcast, Cable

NAMES = {
    "None": (None, TypeError, "is text, not NoneType"),
    "bytes": (b"x", TypeError, "is text, not bytes"),
    "a number": (5, TypeError, "is text, not int"),
    "empty": ("", ValueError, "1 to 255 bytes"),
    "long": ("x" * 10**6, ValueError, "1 to 255 bytes"),
    "NUL": ("a\0b", ValueError, "1 to 255 bytes"),
    "a surrogate": ("\ud800", ValueError, "without surrogates"),
}


@pytest.mark.parametrize(("name", "error", "said"), NAMES.values(), ids=NAMES)
def test_what_is_no_name_is_refused_before_the_file_is_touched(
    tmp_path: Path, name: str, error: type[Exception], said: str
) -> None:
    async def main() -> None:
        cable, broadcast = Cable(tmp_path / "a.db"), Broadcast(tmp_path / "b.db")
        uses: list[Callable[[], Any]] = [
            lambda: cable.send(name, {}),
            lambda: cable.receive(name),
            lambda: cable.group_send(name, {}),
            lambda: cable.group_add(name, "jobs"),
            lambda: cable.group_add("room", name),
            lambda: cable.group_discard(name, "jobs"),
            lambda: cable.group_discard("room", name),
            lambda: broadcast.publish(name, {}),
        ]
        for use in uses:
            with pytest.raises(error, match=said):
                await asyncio.wait_for(use(), 5)
        with pytest.raises(error, match=said):
            broadcast.subscribe("chat", name)

    asyncio.run(main())
    assert list(tmp_path.iterdir()) == []


def test_the_prefix_of_a_channel_makes_a_name_that_its_maker_receives(tmp_path: Path) -> None:
    cable = Cable(tmp_path / "cable.db")
    for prefix, error in (("a!b", ValueError), ("x" * 200, ValueError), (5, TypeError)):
        with pytest.raises(error, match=r"prefix|1 to 255 bytes"):
            cable.new_channel(prefix)  # type: ignore[arg-type]

    async def main() -> None:
        channel = cable.new_channel("x" * 189)
        await cable.send(channel, {"is": "there"})
        assert await received(cable, channel) == {"is": "there"}
        await cable.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"capacity": "5"}, TypeError, "capacity is a whole number of messages, not str"),
        ({"capacity": 1.5}, TypeError, "not float"),
        ({"capacity": True}, TypeError, "not bool"),
        ({"capacity": 2**70}, ValueError, "capacity is a number of messages"),
        ({"capacity": 0}, ValueError, "greater than 0"),
        ({"expiry": "60"}, TypeError, "expiry is a number of seconds, not str"),
        ({"expiry": math.nan}, ValueError, "greater than 0"),
        ({"expiry": math.inf}, ValueError, "greater than 0"),
        ({"group_expiry": 10**400}, ValueError, "greater than 0"),
        ({"group_expiry": -1}, ValueError, "greater than 0"),
        ({"capacity_of": 5}, TypeError, "capacity_of is a function"),
    ],
)
def test_what_is_no_number_is_refused(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        Cable(tmp_path / "cable.db", **options)


@pytest.mark.parametrize(
    ("path", "error"),
    [(None, TypeError), (5, TypeError), (b"x.db", TypeError), ("", ValueError),
     (":memory:", ValueError), ("file:x.db?mode=ro", ValueError)],
)  # fmt: skip
def test_what_is_no_file_is_refused(path: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        Cable(path)


def test_what_capacity_of_says_is_checked(tmp_path: Path) -> None:
    async def main() -> None:
        cable = Cable(tmp_path / "cable.db", capacity_of=lambda _: None)  # type: ignore[arg-type,return-value]
        with pytest.raises(TypeError, match="what capacity_of says of 'jobs' is a whole number"):
            await cable.send("jobs", {})

    asyncio.run(main())


@pytest.mark.parametrize(
    ("message", "error", "said"),
    [
        ({(1, 2): 3}, TypeError, r"keys .* are text, not \(1, 2\)"),
        ({"in": [{5: 1}]}, TypeError, "are text, not 5"),
        ({None: 1}, TypeError, "are text, not None"),
        ({"is": msgpack.ExtType(1, b"x")}, TypeError, "not msgpack.ExtType"),
        ({"is": msgpack.Timestamp(1)}, TypeError, "not msgpack.Timestamp"),
        ({"is": "\ud800"}, ValueError, "without surrogates"),
        ({"\ud800": 1}, ValueError, "without surrogates"),
    ],
)
def test_what_would_not_arrive_is_refused_at_send(
    tmp_path: Path, message: dict[str, Any], error: type[Exception], said: str
) -> None:
    async def main() -> None:
        cable = Cable(tmp_path / "cable.db")
        with pytest.raises(error, match=said):
            await cable.send("jobs", message)
        with pytest.raises(error, match=said):
            await cable.group_send("room", message)

    asyncio.run(main())


def test_what_is_nested_deeply_arrives_or_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        cable = Cable(tmp_path / "cable.db")
        for depth in (10, 400, 1000, 2000, 100_000):
            nested: list[Any] = []
            for _ in range(depth):
                nested = [nested]
            try:
                await cable.send("jobs", {"nested": nested})
            except ValueError as error:
                assert "nested deeply" in str(error)  # noqa: PT017 - it may be sent as well
            else:
                arrived = await received(cable, "jobs")
                for _ in range(depth):
                    (arrived["nested"],) = arrived["nested"]
        await cable.close()

    asyncio.run(main())


def test_a_subscription_is_used_inside_its_block_and_entered_once(tmp_path: Path) -> None:
    async def main() -> None:
        broadcast = Broadcast(tmp_path / "cable.db")
        messages = broadcast.subscribe("chat")
        with pytest.raises(RuntimeError, match="async with"):
            await asyncio.wait_for(anext(messages), 5)
        async with messages:
            await broadcast.publish("chat", {"number": 1})
            assert await asyncio.wait_for(anext(messages), 60) == {"number": 1}
            with pytest.raises(RuntimeError, match="entered once"):
                await messages.__aenter__()
        with pytest.raises(RuntimeError, match="async with"):
            await asyncio.wait_for(anext(messages), 5)
        with pytest.raises(RuntimeError, match="entered once"):
            await messages.__aenter__()
        await broadcast.close()

    asyncio.run(main())
