"""``python -m tests.replica_kills.relay PORT TO``: passes connections on, until it is killed.

So a store can die in the midst of a request, and what it holds is there when it comes back.
"""

import asyncio
import sys
from contextlib import suppress

_BYTES = 1 << 16


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _relay(port: int, to: int) -> None:
    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))

    server = await asyncio.start_server(take, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_relay(int(sys.argv[1]), int(sys.argv[2])))
