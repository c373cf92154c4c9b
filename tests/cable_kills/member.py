"""A process with members of a group: ``python -m tests.cable_kills.member PATH MEMBERS EXPIRY``.

Each member sees that what a sender's life has sent to it is without a gap and in order, until it is
told to stop; then the process prints, as JSON, from where to where it has heard each life.
"""

import asyncio
import json
import sys

from tests.kill_campaigns import WrongError

from oxlite.cable import Cable

CAPACITY = 5_000
GROUP = "room"


async def hear(cable: Cable, channel: str) -> dict[str, tuple[int, int]]:
    """Take messages until the last; the first and the latest number of each life.

    What a life had sent before this member was there is not for it.
    """
    heard: dict[str, tuple[int, int]] = {}
    while True:
        message = await cable.receive(channel)
        if message.get("stop"):
            return heard
        life, number = message["life"], message["number"]
        first, latest = heard.get(life, (number, number - 1))
        if number != latest + 1:
            raise WrongError(f"{channel}: {number} of {life} after {latest}")
        heard[life] = (first, number)


async def main() -> None:
    """Be there."""
    path, members, expiry = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    cable = Cable(path, expiry=expiry, capacity=CAPACITY)
    channels = [cable.new_channel() for _ in range(members)]
    for channel in channels:
        await cable.group_add(GROUP, channel)
    print("ready", flush=True)
    print(json.dumps(await asyncio.gather(*(hear(cable, channel) for channel in channels))))
    await cable.close()


if __name__ == "__main__":
    asyncio.run(main())
