"""Which values each key has had, in the words of the process that set them.

Invariant: the process says so before it sets one, so what is not known here was never set.
"""

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from tests.crash.log import Event

COUNTERS: Final = [f"counter-{number}" for number in range(4)]


def made(seed: int, key: str, number: int, lengths: Sequence[int]) -> Any:  # noqa: ANN401
    """The value that is set for a key under that number, of any kind.

    Its length lies between the two; half of them are shorter than their geometric mean.
    """
    generator = random.Random(f"{seed} {key} {number}")
    shortest, longest = lengths
    length = round(shortest * (longest / shortest) ** generator.random())
    content = generator.randbytes(length)
    match generator.randrange(5):
        case 0:
            return content
        case 1:
            return content.hex()[:length]
        case 2:
            # So regular that it is compressed where it is long.
            return (content[:8].hex() * (length // 16 + 1))[:length]
        case 3:
            return [key, number, content.hex()[:length]]
        case _:
            return {"key": key, "number": number, "content": content.hex()[:length]}


def counted_from(seed: int, key: str, number: int) -> int:
    """Where a counter begins: each somewhere else, so that no two are ever the same."""
    generator = random.Random(f"{seed} {key} {number}")
    return generator.choice((1, -1)) * generator.getrandbits(generator.choice((34, 48, 62)))


def digest_of(value: Any) -> bytes:  # noqa: ANN401 - of all kinds
    """Tells values apart."""
    return hashlib.blake2b(repr(value).encode(), digest_size=12).digest()


class History:
    """All values that each key has had until some moment of a recording.

    Args:
        seed: That of the play.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.values: dict[str, set[bytes]] = defaultdict(set)
        """The digests of the values of each key."""
        self.expired: dict[str, set[bytes]] = defaultdict(set)
        """Those of them that were set for a moment alone, and whose keys were never touched."""
        self._number = 0

    def apply(self, event: Event) -> None:
        """Hear what the process says."""
        self.hear(json.loads(event.content))

    def hear(self, said: dict[str, Any]) -> None:
        """The same, read."""
        key = said["key"]
        match said["what"]:
            case "sets":
                digest = digest_of(made(self._seed, key, said["number"], said["lengths"]))
                is_new = digest not in self.values[key]
                self.values[key].add(digest)
                if said["is_short"] and is_new:
                    self.expired[key].add(digest)
                elif not said["is_short"]:
                    self.expired[key].discard(digest)
            case "counts":
                self.values[key].add(digest_of(said["value"]))
            case "touches":
                self.expired[key].clear()

    def wrong(self, key: str, value: Any) -> str:  # noqa: ANN401 - of all kinds
        """What is wrong with a value that was read; "" if nothing."""
        digest = digest_of(value)
        if digest not in self.values.get(key, ()):
            others = [other for other, held in self.values.items() if digest in held]
            whose = f"that of {others[0]!r}" if others else "nobody's"
            return f"wrong value: {key!r} has {whose}: {repr(value)[:80]}"
        if digest in self.expired.get(key, ()):
            return f"expired: {key!r} has {repr(value)[:80]}"
        return ""
