"""Incremental input and output on one blob of a mebibyte, in pieces of 4 KiB."""

from collections.abc import Callable

from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import Handle, Peer

BLOBS = Operations()

PIECE = 4096
PIECES = 256
CONTENT = b"".join(bytes([number]) * PIECE for number in range(PIECES))


def _blob(peer: Peer) -> Handle:
    return peer.keep(peer.blob(peer.table("b", [(CONTENT,)]), "t", "b", 1))


def _offsets(count: int) -> list[int]:
    return [n % PIECES * PIECE for n in range(count)]


def _first_bytes(count: int) -> int:
    return sum(n % PIECES for n in range(count))


def _written(blob: Handle, count: int) -> Callable[[object], bool]:
    """Whether every piece that was written is there; they are put back."""
    pieces = min(count, PIECES)

    def result(_: object) -> bool:
        blob.seek(0)
        found: bytes = blob.read(pieces * PIECE)
        blob.seek(0)
        blob.write(CONTENT)
        return found == b"w" * PIECE * pieces

    return result


@BLOBS.operation("blob: open, close", 12_000)
def opening(peer: Peer, count: int) -> Batch:
    """``blobopen`` of a row by its number."""
    connection = peer.table("b", [(CONTENT,)])

    def run() -> int:
        done = 0
        for _ in range(count):
            peer.blob(connection, "t", "b", 1).close()
            done += 1
        return done

    return Batch(run, count)


@BLOBS.operation("blob: seek, read", 32_000)
def read(peer: Peer, count: int) -> Batch:
    """One piece."""
    blob, offsets = _blob(peer), _offsets(count)

    def run() -> int:
        total = 0
        for offset in offsets:
            blob.seek(offset)
            total += blob.read(PIECE)[0]
        return total

    return Batch(run, _first_bytes(count))


@BLOBS.operation("blob: seek, write", 40_000)
def write(peer: Peer, count: int) -> Batch:
    """One piece."""
    blob, offsets, piece = _blob(peer), _offsets(count), b"w" * PIECE

    def run() -> None:
        for offset in offsets:
            blob.seek(offset)
            blob.write(piece)

    return Batch(run, True, None, _written(blob, count))


@BLOBS.operation("blob: slice", 30_000)
def slicing(peer: Peer, count: int) -> Batch:
    """``blob[a:b]``."""
    peer.standard("slices of a blob", "blobopen")
    blob, offsets = _blob(peer), _offsets(count)

    def run() -> int:
        total = 0
        for offset in offsets:
            total += blob[offset : offset + PIECE][0]
        return total

    return Batch(run, _first_bytes(count))


@BLOBS.operation("blob: slice assignment", 35_000)
def slice_assignment(peer: Peer, count: int) -> Batch:
    """``blob[a:b] = data``."""
    peer.standard("slices of a blob", "blobopen")
    blob, offsets, piece = _blob(peer), _offsets(count), b"w" * PIECE

    def run() -> None:
        for offset in offsets:
            blob[offset : offset + PIECE] = piece

    return Batch(run, True, None, _written(blob, count))
