"""A life of a sender: ``python -m tests.cable_kills.sender PATH LIFE FOLDER EXPIRY``.

It sends numbers to the group until its standard input is closed. Which one was sent last stands in
a file of its name, written after ``group_send`` has returned.
"""

import asyncio
import os
import sys
from pathlib import Path

from tests.cable_kills.member import CAPACITY, GROUP

from oxlite.cable import Cable

PAUSE_SECONDS = 0.01


async def main() -> None:
    """Send."""
    path, life, folder, expiry = sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4])
    cable = Cable(path, expiry=expiry, capacity=CAPACITY)
    sent = os.open(folder / life, os.O_CREAT | os.O_WRONLY)
    loop = asyncio.get_running_loop()
    is_over = asyncio.Event()
    loop.add_reader(0, is_over.set)
    number = 0
    while not is_over.is_set():
        await cable.group_send(GROUP, {"life": life, "number": number})
        os.pwrite(sent, b"%d" % number, 0)
        number += 1
        await asyncio.sleep(PAUSE_SECONDS)
    await cable.close()


if __name__ == "__main__":
    asyncio.run(main())
