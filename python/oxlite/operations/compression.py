"""Files compressed with Zstandard (RFC 8878).

Invariant: what is read was checked: it is one frame, whole, with the checksum of what is in it.
"""

from importlib import import_module
from pathlib import Path
from typing import Any, Final

from oxlite.operations.errors import OperationsError, VerificationFailed

__all__ = ["MAGIC", "SUFFIX", "compress", "decompress"]

SUFFIX: Final = ".zst"
MAGIC: Final = b"\x28\xb5\x2f\xfd"
"""How each frame begins (RFC 8878, 3.1.1)."""
_LEVEL: Final = 3
_CHUNK_BYTES: Final = 1 << 20


def _zstandard() -> Any:  # noqa: ANN401 - a module
    try:
        return import_module("zstandard")
    except ModuleNotFoundError:
        raise OperationsError(
            "backups are compressed by zstandard: pip install 'oxlite[operations]'"
        ) from None


def compress(source: Path, target: Path) -> None:
    """Compress a file.

    Raises:
        OperationsError: ``zstandard`` is not installed.
        OSError: It cannot be read or written.
    """
    compressor = _zstandard().ZstdCompressor(level=_LEVEL, write_checksum=True)
    with source.open("rb") as reader, target.open("wb") as writer:
        # In Python, chunk by chunk: so it can be interrupted.
        frame = compressor.compressobj(size=source.stat().st_size)
        while chunk := reader.read(_CHUNK_BYTES):
            writer.write(frame.compress(chunk))
        writer.write(frame.flush())


def decompress(source: Path, target: Path) -> None:
    """Decompress a file.

    Raises:
        OperationsError: ``zstandard`` is not installed.
        VerificationFailed: It is none of that kind, or damaged.
        OSError: It cannot be read or written.
    """
    zstandard = _zstandard()
    try:
        frame = zstandard.ZstdDecompressor().decompressobj()
        with source.open("rb") as reader, target.open("wb") as writer:
            while chunk := reader.read(_CHUNK_BYTES):
                if frame.eof:
                    raise VerificationFailed(f"{source} has more in it than one frame")
                writer.write(frame.decompress(chunk))
        if not frame.eof or frame.unused_data:
            raise VerificationFailed(f"{source} cannot be decompressed: it has no end")
    except zstandard.ZstdError as error:
        raise VerificationFailed(f"{source} cannot be decompressed: {error}") from None
