"""What a value is in the file: its kind, a seal, and its bytes.

Invariants:
- A value is read as what was written under that key with that expiry, or not at all: the seal is
  over all three.
- What is read cannot run code unless it was written by somebody who has the key: pickles are read
  under a keyed seal (a MAC) alone.
- A number is an INTEGER of SQLite's, so that a statement can add to it; its checksum is arithmetic,
  and no MAC.
- What is read becomes no longer than what was written: a compressed value says how long it is.
"""

import json
import pickle
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final, Literal

from oxlite._native import Seals, cache_number

__all__ = ["ABSENT", "Codec", "Serializer", "checked", "number_of"]

Serializer = Literal["json", "pickle"]

ABSENT: Final = object()
"""Where there is no value."""

_LONGEST_KEY: Final = 65_536
"""Bytes of a key in UTF-8."""

_BYTES, _TEXT, _JSON, _PICKLE = range(4)
_COMPRESSED: Final = 0x80
_COMPRESSION_LEVEL: Final = 1
_TRIED_BYTES: Final = 4096
"""So much is compressed first, to see whether it is worth it."""

_LONGEST_EXPANDED: Final = 1 << 28
_LENGTH_BYTES: Final = 4
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_PERSON: Final = b"oxlite.cache"


def checked(key: str) -> str:
    """A key that is one.

    Raises:
        TypeError: It is no text.
        ValueError: It is longer than 65,536 bytes, or is no valid Unicode.
    """
    if not isinstance(key, str):
        raise TypeError(f"a key is a str, not {type(key).__name__}")
    if len(key) * 4 > _LONGEST_KEY:
        length = len(key.encode(errors="surrogatepass"))
        if length > _LONGEST_KEY:
            raise ValueError(f"a key has at most {_LONGEST_KEY:,} bytes, not {length:,}")
    return key


def number_of(key: str) -> int:
    """The number under which a key is looked for: 64 bits, evenly distributed.

    Raises:
        TypeError, ValueError: As ``checked``.
    """
    return cache_number(checked(key))


class Codec:
    """Makes bytes of values, and values of bytes.

    Args:
        serializer: What is neither bytes, text nor a whole number is written as.
        secret_keys: With which values are sealed: the first for what is written, all for what is
            read. Without any, no pickle is read.
        compress_above: Values of more bytes are compressed, if that makes them shorter; never those
            that are bytes. ``None``: none.

    Raises:
        ValueError: ``pickle`` without a key, an empty key, or an unknown serializer.
    """

    def __init__(
        self, serializer: Serializer, secret_keys: Sequence[bytes], compress_above: int | None
    ) -> None:
        if serializer not in ("json", "pickle"):
            raise ValueError(f"serializer is 'json' or 'pickle', not {serializer!r}")
        if serializer == "pickle" and not secret_keys:
            raise ValueError(
                "serializer='pickle' needs secret_key: reading a pickle runs what is in it, so"
                " only what was signed is read"
            )
        if not all(secret_keys):
            raise ValueError("a secret_key is empty: whoever can write the file would know it")
        self._pickles = serializer == "pickle"
        self._reads_pickles = bool(secret_keys)
        seals = Seals(
            [blake2b(key, digest_size=16, person=_PERSON).digest() for key in secret_keys]
        )
        self._seal = seals.seal
        self._open = seals.open
        self._compress_above = _LONGEST_EXPANDED if compress_above is None else compress_above

    def encoded(self, key: str, value: Any, expires_at: int) -> bytes | int:  # noqa: ANN401
        """What is written for a value.

        Raises:
            TypeError, ValueError, pickle.PicklingError: It cannot be serialised.
        """
        kind = type(value)
        if kind is bytes:
            return self._seal(_BYTES, key, expires_at, value)
        if kind is int and _SMALLEST <= value <= _LARGEST:
            whole: int = value
            return whole
        number, content = self._serialised(value)
        if len(content) > self._compress_above and (shorter := _compressed(content)):
            return self._seal(number | _COMPRESSED, key, expires_at, shorter)
        return self._seal(number, key, expires_at, content)

    def decoded(self, key: str, found: Any, expires_at: Any) -> Any:  # noqa: ANN401
        """The value of what was read; ``ABSENT`` if it is not what was written."""
        if type(found) is int:
            return found
        if type(found) is not bytes or type(expires_at) is not int:
            return ABSENT
        opened = self._open(key, expires_at, found)
        if opened is None:
            return ABSENT
        kind, content = opened
        if kind == _BYTES:
            return content
        try:
            if kind & _COMPRESSED:
                kind &= ~_COMPRESSED
                content = _expanded(content)
            if kind == _PICKLE:
                return pickle.loads(content) if self._reads_pickles else ABSENT
            if kind == _TEXT:
                return content.decode()
            return json.loads(content) if kind == _JSON else ABSENT
        except Exception:  # a class that is no more, or another version of it
            return ABSENT

    def resealed(self, key: str, found: Any, was: int, expires_at: int) -> bytes | int | None:  # noqa: ANN401
        """What is written of a value that was read, for another expiry; ``None`` if it is none."""
        if type(found) is int:
            return found
        if type(found) is not bytes:
            return None
        opened = self._open(key, was, found)
        return None if opened is None else self._seal(opened[0], key, expires_at, opened[1])

    def _serialised(self, value: Any) -> tuple[int, bytes]:  # noqa: ANN401
        if type(value) is str:
            try:
                return _TEXT, value.encode()
            except UnicodeEncodeError:
                pass
        if self._pickles:
            return _PICKLE, pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        if isinstance(value, bytes | bytearray | memoryview):
            return _BYTES, bytes(value)
        return _JSON, json.dumps(value, separators=(",", ":")).encode()


def _compressed(content: bytes) -> bytes | None:
    """It, with its length before it; ``None`` if that saves little."""
    if len(content) > _LONGEST_EXPANDED:
        return None
    tried = content[:_TRIED_BYTES]
    if len(zlib.compress(tried, _COMPRESSION_LEVEL)) > len(tried) * 3 // 4:
        return None
    shorter = zlib.compress(content, _COMPRESSION_LEVEL)
    if len(shorter) + _LENGTH_BYTES >= len(content):
        return None
    return len(content).to_bytes(_LENGTH_BYTES, "little") + shorter


def _expanded(content: bytes) -> bytes:
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    if length > _LONGEST_EXPANDED:
        raise ValueError(f"{length} bytes")
    return zlib.decompressobj().decompress(content[_LENGTH_BYTES:], length + 1)
