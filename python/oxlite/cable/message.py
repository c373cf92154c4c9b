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

_PLAIN: Final = frozenset({str, bytes, int, float, bool, type(None)})


def encoded(message: Mapping[str, Any]) -> bytes:
    """The message as bytes.

    Raises:
        TypeError: It is no dict, or holds what is neither text, bytes, a number, a list, a dict, a
            boolean nor None; or a dict has a key that is no text.
        ValueError: A number has more than 64 bits, text has surrogates, or it is nested too deeply.
        MessageTooLarge: It has more than four mebibytes.
    """
    if not isinstance(message, dict):
        raise TypeError(f"a message is a dict, not {type(message).__name__}")
    try:
        content: bytes = msgpack.packb(message)
    except UnicodeEncodeError:
        raise ValueError(
            "a message holds text of Unicode, without surrogates such as '\\ud800': text that was"
            " decoded with surrogateescape has them"
        ) from None
    except TypeError as error:
        raise TypeError(
            "a message holds text, bytes, numbers, lists, dicts, booleans and None:"
            f" {error}. Convert what else there is before sending, as with str() or isoformat()"
        ) from None
    except (OverflowError, ValueError) as error:
        raise ValueError(
            f"a message holds whole numbers of at most 64 bits, and is not nested deeply: {error}"
        ) from None
    _refuse_what_is_not_plain(message)
    if len(content) > MESSAGE_BYTES_AT_MOST:
        raise MessageTooLarge(
            f"a message has at most {MESSAGE_BYTES_AT_MOST} bytes, not {len(content)}: put what is"
            " larger into a table or a file, and its key into the message"
        )
    return content


def _refuse_what_is_not_plain(message: dict[str, Any]) -> None:
    """Refuse what MessagePack has and a message has not; what has no end was not packed."""
    rest: list[object] = [message]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    raise TypeError(
                        f"the keys of a message, and of dicts in it, are text, not {key!r}: convert"
                        " it with str()"
                    )
            rest.extend(each for each in value.values() if type(each) not in _PLAIN)
        elif isinstance(value, msgpack.ExtType | msgpack.Timestamp):
            raise TypeError(
                "a message holds text, bytes, numbers, lists, dicts, booleans and None, not"
                f" msgpack.{type(value).__name__}: send what it was made of"
            )
        elif isinstance(value, list | tuple):
            rest.extend(each for each in value if type(each) not in _PLAIN)


def decoded(content: bytes, is_text: bool | None) -> dict[str, Any]:
    """The message of what was stored: bytes, or text if another program has inserted it as JSON.

    Raises:
        Exception: It is none, in one of msgpack's or json's many ways.
    """
    if is_text is None:
        raise ValueError("a message is a BLOB, or text with JSON")
    message = json.loads(content) if is_text else msgpack.unpackb(content, strict_map_key=False)
    if not isinstance(message, dict):
        raise ValueError(f"a message is a dict, not {type(message).__name__}")
    return message
