"""Frames arrive whole, however the pipe cuts them."""

import os

from oxlite.bench.harness.channel import Channel, Decoder, encode


def test_frames_survive_any_cut() -> None:
    data = encode({"a": 1}) + encode({"b": "ü"}, bytes(range(256)))
    for step in (1, 3, 7, 1000):
        decoder = Decoder()
        found = []
        for start in range(0, len(data), step):
            decoder.feed(data[start : start + step])
            while (frame := decoder.next()) is not None:
                found.append(frame)
        assert found == [({"a": 1}, b""), ({"b": "ü"}, bytes(range(256)))]


def test_a_channel_ends_when_the_other_side_is_gone() -> None:
    read_end, write_end = os.pipe()
    channel = Channel(read_end, write_end)
    channel.send({"do": "stop"})
    os.close(write_end)
    assert channel.receive() == {"do": "stop"}
    assert channel.receive() is None
    os.close(read_end)
