"""Incremental input and output on one blob of a mebibyte, in pieces of 4 KiB."""

from collections.abc import Callable

from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import Handle, Peer

BLOBS = Operations()

PIECE = 4096
PIECES = 256
CONTENT = b"".join(bytes([number]) * PIECE for number in range(PIECES))
WRITTEN = b"w" * PIECE


def _blob(peer: Peer, count: int) -> tuple[Handle, list[int]]:
    """An open blob, and where each of so many pieces begins."""
    blob = peer.keep(peer.blob(peer.table("b", [(CONTENT,)]), "t", "b", 1))
    return blob, [n % PIECES * PIECE for n in range(count)]


def _read(run: Callable[[], int], count: int) -> Batch:
    """A batch that adds up the first bytes of the pieces."""
    return Batch(run, sum(n % PIECES for n in range(count)))


def _written(blob: Handle, run: Callable[[], None], count: int) -> Batch:
    """A batch after which every piece must have been written; they are put back."""
    pieces = min(count, PIECES)

    def result(_: object) -> bool:
        blob.seek(0)
        found: bytes = blob.read(pieces * PIECE)
        blob.seek(0)
        blob.write(CONTENT)
        return found == WRITTEN * pieces

    return Batch(run, True, result=result)


@BLOBS.operation("blob: open, close", 12_000)
def opened(peer: Peer, count: int) -> Batch:
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
    blob, offsets = _blob(peer, count)

    def run() -> int:
        total = 0
        for offset in offsets:
            blob.seek(offset)
            total += blob.read(PIECE)[0]
        return total

    return _read(run, count)


@BLOBS.operation("blob: seek, write", 40_000)
def write(peer: Peer, count: int) -> Batch:
    """One piece."""
    blob, offsets = _blob(peer, count)

    def run() -> None:
        for offset in offsets:
            blob.seek(offset)
            blob.write(WRITTEN)

    return _written(blob, run, count)


@BLOBS.operation("blob: slice", 30_000)
def read_slice(peer: Peer, count: int) -> Batch:
    """``blob[a:b]``."""
    peer.standard("slices of a blob", "blobopen")
    blob, offsets = _blob(peer, count)

    def run() -> int:
        total = 0
        for offset in offsets:
            total += blob[offset : offset + PIECE][0]
        return total

    return _read(run, count)


@BLOBS.operation("blob: slice assignment", 35_000)
def write_slice(peer: Peer, count: int) -> Batch:
    """``blob[a:b] = data``."""
    peer.standard("slices of a blob", "blobopen")
    blob, offsets = _blob(peer, count)

    def run() -> None:
        for offset in offsets:
            blob[offset : offset + PIECE] = WRITTEN

    return _written(blob, run, count)
