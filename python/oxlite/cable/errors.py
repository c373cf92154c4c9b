"""Why a message was not sent."""

__all__ = ["MessageTooLarge", "QueueFull"]


class QueueFull(Exception):  # noqa: N818 - as Channels calls it ChannelFull, and queue.Full
    """A queue holds as many messages as it may: whoever reads it is slow, or gone."""


class MessageTooLarge(ValueError):  # noqa: N818 - Channels' name
    """A message is longer than a message may be."""
