"""Keys and values that say of themselves what they are.

A value names its key and has a number; all of its content follows from the two. So whoever reads it
sees whether it was ever set for that key, and how old it is.

The operations of a key's only writer have numbers, and which kind each is follows from the number.
"""

import random

COUNTERS = [f"counter {number}" for number in range(3)]
_LENGTHS = (0, 20, 200, 1_000, 4_000, 12_000)
_DELETED_EACH = 7


def own_key(slot: int, index: int) -> str:
    """A key that the processes of one slot alone write, one after the other."""
    return f"own {slot}.{index}"


def added_key(number: int) -> str:
    """A key that all try to add, once."""
    return f"added {number}"


def computed_key(number: int) -> str:
    """A key whose value all ask for, and one computes."""
    return f"computed {number}"


def value_of(key: str, number: int) -> str:
    """What is set for a key at that number."""
    generator = random.Random(f"{key} {number}")
    filler = generator.randbytes(generator.choice(_LENGTHS)).hex()
    return f"{key}|{number}|{filler}"


def number_in(key: str, value: object) -> int | None:
    """The number of a value of that key; ``None`` if it never was one."""
    if not isinstance(value, str):
        return None
    parts = value.split("|")
    if len(parts) != 3 or parts[0] != key or not parts[1].isdecimal():
        return None
    number = int(parts[1])
    return number if value_of(key, number) == value else None


def is_deletion(number: int) -> bool:
    """Whether that operation of a writer deletes his key; before the first one there is none."""
    return number % _DELETED_EACH == 0


def wrong_of(key: str, value: object, first: int, last: int, *, may_miss: bool = False) -> str:
    """What is wrong with what was read while the writer was at these operations; "" if nothing.

    Args:
        key: The key.
        value: What was read, ``None`` if nothing.
        first: The last operation that was acknowledged before it was read.
        last: The last that had begun when it had been read.
        may_miss: Whether it may be missing in any case, since it may have been evicted.
    """
    if value is None:
        if may_miss or any(map(is_deletion, range(first, last + 1))):
            return ""
        return f"lost: {key!r} has no value after {first} of {last}"
    number = number_in(key, value)
    if number is None:
        return f"another's: {key!r} has {str(value)[:60]!r}"
    if not first <= number <= last:
        return f"not of its time: {key!r} has {number}, not {first} to {last}"
    return f"deleted: {key!r} has {number}" if is_deletion(number) else ""
