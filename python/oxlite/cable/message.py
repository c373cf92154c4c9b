"""Messages as bytes: MessagePack, which has the types that a message may have.

Invariant: what is decoded is as long and as deep as what was encoded; nobody's objects are built.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import msgpack

from oxlite.cable.errors import MessageTooLarge

__all__ = ["MESSAGE_BYTES_AT_MOST", "decoded", "encoded"]

MESSAGE_BYTES_AT_MOST: Final = 4 << 20
"""How long a message is at most, encoded: any that has a megabyte as JSON is shorter."""


def encoded(message: Mapping[str, Any]) -> bytes:
    """The message as bytes.

    Raises:
        TypeError: It is no dict, or holds what is neither text, bytes, a number, a list, a dict, a
            boolean nor None.
        ValueError: A number has more than 64 bits, or it is nested too deeply.
        MessageTooLarge: It has more than four mebibytes.
    """
    if not isinstance(message, dict):
        raise TypeError(f"a message is a dict, not {type(message).__name__}")
    try:
        content: bytes = msgpack.packb(message)
    except TypeError as error:
        raise TypeError(
            "a message holds text, bytes, numbers, lists, dicts, booleans and None:"
            f" {error}. Convert what else there is before sending, as with str() or isoformat()"
        ) from None
    except (OverflowError, ValueError) as error:
        raise ValueError(
            f"a message holds whole numbers of at most 64 bits, and is not nested deeply: {error}"
        ) from None
    if len(content) > MESSAGE_BYTES_AT_MOST:
        raise MessageTooLarge(
            f"a message has at most {MESSAGE_BYTES_AT_MOST} bytes, not {len(content)}: put what is"
            " larger into a table or a file, and its key into the message"
        )
    return content


def decoded(content: bytes | str) -> dict[str, Any]:
    """The message of bytes; of text, if another program has inserted it as JSON.

    Raises:
        Exception: It is none, in one of msgpack's or json's many ways.
    """
    if isinstance(content, str):
        message = json.loads(content)
    else:
        message = msgpack.unpackb(content, strict_map_key=False)
    if not isinstance(message, dict):
        raise ValueError(f"a message is a dict, not {type(message).__name__}")
    return message
