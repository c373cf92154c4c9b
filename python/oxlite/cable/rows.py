"""Rows of messages, of which other programs may have written any: what is none is sorted out.

Invariant: nothing that a row holds raises an error.
"""

import json
import time
from typing import Any

from oxlite.cable import store
from oxlite.cable.mailbox import Message

__all__ = ["read_rows"]


def read_rows(
    queue: str, rows: list[Any]
) -> tuple[list[tuple[Message, list[str]]], dict[int, str]]:
    """The messages of rows, with the channels that they are for; what is wrong with the others.

    Args:
        queue: In which they were.
        rows: Number, channel and its type, message and its type, instants, seconds left, members.

    Returns:
        The messages, in order; by number, why one is dropped.
    """
    now = time.monotonic()
    messages: list[tuple[Message, list[str]]] = []
    wrong: dict[int, str] = {}
    for row in sorted(rows, key=lambda row: row[0]):
        number, channel, channel_type, content, content_type, sent_at, expires_at, left, members = (
            row
        )
        is_text = {"text": True, "blob": False}.get(content_type)
        message = Message(number, content, is_text, sent_at, expires_at, now + left)
        if channel_type == "null":
            if not queue.endswith("!"):
                wrong[number] = "it has no channel"
                continue
            messages.append((message, _members(members)))
            continue
        name = _text(channel) if channel_type == "text" else None
        if name is None:
            wrong[number] = "its channel is no text"
        elif store.queue_of(name) != queue:
            wrong[number] = f"its channel {name!r} is of another queue"
        else:
            messages.append((message, [name]))
    return messages, wrong


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _members(members: bytes | None) -> list[str]:
    # One may be there twice: by a membership that is over, and by the one that followed.
    found: list[str] = json.loads((members or b"[]").decode(errors="replace"))
    return list(dict.fromkeys(found))
