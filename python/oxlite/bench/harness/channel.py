"""Messages between the lab and a worker, over pipes.

A frame is two unsigned 32-bit lengths (big endian), a JSON object of the first
length, and a payload of the second: small facts are JSON, arrays of latencies
are bytes. Both directions use it.

Invariant: this module imports nothing but the standard library, and little of
that, since every worker loads it.
"""

import json
import os
import struct
from typing import Any

Message = dict[str, Any]

HEADER = struct.Struct(">II")


def encode(message: Message, payload: bytes = b"") -> bytes:
    """One frame."""
    text = json.dumps(message, separators=(",", ":")).encode()
    return HEADER.pack(len(text), len(payload)) + text + payload


class Decoder:
    """Collects bytes as they arrive and gives whole frames back."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Add what was read."""
        self._buffer += data

    def next(self) -> tuple[Message, bytes] | None:
        """The next whole frame, or ``None`` while it is incomplete."""
        if len(self._buffer) < HEADER.size:
            return None
        text_length, payload_length = HEADER.unpack_from(self._buffer)
        text_end = HEADER.size + text_length
        frame_end = text_end + payload_length
        if len(self._buffer) < frame_end:
            return None
        message = json.loads(self._buffer[HEADER.size : text_end])
        payload = bytes(self._buffer[text_end:frame_end])
        del self._buffer[:frame_end]
        return message, payload


class Channel:
    """The worker's end: blocking reads and writes on two descriptors."""

    def __init__(self, read_descriptor: int, write_descriptor: int) -> None:
        self._read_descriptor = read_descriptor
        self._write_descriptor = write_descriptor
        self._decoder = Decoder()

    def receive(self) -> Message | None:
        """Wait for the next message; ``None`` when the lab is gone."""
        while True:
            frame = self._decoder.next()
            if frame is not None:
                return frame[0]
            data = os.read(self._read_descriptor, 65536)
            if not data:
                return None
            self._decoder.feed(data)

    def send(self, message: Message, payload: bytes = b"") -> None:
        """Write one frame, all of it."""
        view = memoryview(encode(message, payload))
        while view:
            view = view[os.write(self._write_descriptor, view) :]
