"""What a cache would have that evicts exactly what was used least recently."""

from collections import OrderedDict
from collections.abc import Iterable


def hits(numbers: Iterable[int], entries: int, counted_from: int) -> int:
    """How many requests find their key.

    Args:
        numbers: of the keys, as they are asked for; what is not there is set.
        entries: how many the cache has room for.
        counted_from: the first request that counts.
    """
    kept: OrderedDict[int, None] = OrderedDict()
    found = 0
    for place, number in enumerate(numbers):
        if number in kept:
            kept.move_to_end(number)
            found += place >= counted_from
        else:
            kept[number] = None
            if len(kept) > entries:
                kept.popitem(last=False)
    return found
