"""Files compressed with Zstandard (RFC 8878), by Python's own module or by ``zstandard``.

Python has ``compression.zstd`` from 3.14 on, unless it was built without; what the two call their
objects' methods is the same.

Invariant: what is read was checked: it is one frame, whole, with the checksum of what is in it.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from oxlite.operations.errors import OperationsError, VerificationFailed

__all__ = ["MAGIC", "SUFFIX", "compress", "decompress", "missing"]

SUFFIX: Final = ".zst"
MAGIC: Final = b"\x28\xb5\x2f\xfd"
"""How each frame begins (RFC 8878, 3.1.1)."""
_LEVEL: Final = 3
_CHUNK_BYTES: Final = 1 << 20


def _library() -> Any:  # noqa: ANN401 - a module
    for name in ("compression.zstd", "zstandard"):
        try:
            return import_module(name)
        except ImportError:
            continue
    # The extra leaves it out where Python is to have a module of its own.
    wanted = "zstandard" if sys.version_info >= (3, 14) else "'oxlite[operations]'"
    raise OperationsError(f"backups are compressed by zstandard: pip install {wanted}")


def missing() -> str | None:
    """Why nothing can be compressed here; ``None`` if it can."""
    try:
        _library()
    except OperationsError as error:
        return str(error)
    return None


def _compressor(size: int) -> Any:  # noqa: ANN401 - of either library
    """What compresses so many bytes, and writes their number and their checksum."""
    library = _library()
    if hasattr(library, "CompressionParameter"):
        parameter = library.CompressionParameter
        compressor = library.ZstdCompressor(
            options={parameter.compression_level: _LEVEL, parameter.checksum_flag: 1}
        )
        compressor.set_pledged_input_size(size)
        return compressor
    return library.ZstdCompressor(level=_LEVEL, write_checksum=True).compressobj(size=size)


def _decompressor() -> Any:  # noqa: ANN401 - of either library
    library = _library()
    decompressor = library.ZstdDecompressor()
    if hasattr(library, "CompressionParameter"):
        return decompressor
    return decompressor.decompressobj()


def compress(source: Path, target: Path) -> None:
    """Compress a file.

    Raises:
        OperationsError: Python has no such module, and ``zstandard`` is not installed.
        OSError: It cannot be read or written.
    """
    with source.open("rb") as reader, target.open("wb") as writer:
        # In Python, chunk by chunk: so it can be interrupted.
        frame = _compressor(source.stat().st_size)
        while chunk := reader.read(_CHUNK_BYTES):
            writer.write(frame.compress(chunk))
        writer.write(frame.flush())


def decompress(source: Path, target: Path) -> None:
    """Decompress a file.

    Raises:
        OperationsError: Python has no such module, and ``zstandard`` is not installed.
        VerificationFailed: It is none of that kind, or damaged.
        OSError: It cannot be read or written.
    """
    errors = _library().ZstdError
    try:
        frame = _decompressor()
        with source.open("rb") as reader, target.open("wb") as writer:
            while chunk := reader.read(_CHUNK_BYTES):
                if frame.eof:
                    raise VerificationFailed(f"{source} has more in it than one frame")
                writer.write(frame.decompress(chunk))
        if not frame.eof or frame.unused_data:
            raise VerificationFailed(f"{source} cannot be decompressed: it has no end")
    except errors as error:
        raise VerificationFailed(f"{source} cannot be decompressed: {error}") from None
