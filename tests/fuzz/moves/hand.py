"""What every move draws from: the case's chance, and the names that are bound so far."""

import random

from tests.fuzz.sql import Writer
from tests.fuzz.values import Values


class Hand:
    """The choices of one case. Drawn from in one order, so that a seed stays what it is."""

    def __init__(self, chance: random.Random, features: frozenset[str]) -> None:
        self.chance = chance
        self.features = features
        self.writer = Writer(chance)
        self.values = Values(chance, features)
        # Names that are bound, the favourites several times.
        self.connections = ["c0", "c0", "c0"]
        self.cursors = ["k0", "k0", "k0", "k1", "k1"]

    def one_of(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def is_rare(self, probability: float) -> bool:
        return self.chance.random() < probability

    def cursor_name(self) -> str:
        return self.chance.choice(self.cursors)

    def connection_name(self) -> str:
        return self.chance.choice(self.connections)

    def new_cursor_name(self) -> str:
        """A name for a cursor, bound from now on."""
        self.cursors.append(self.one_of("k0", "k1", "k2", "k3"))
        return self.cursors[-1]

    def execution(self, target: str) -> str:
        """A call of ``execute`` on the target."""
        statement = self.writer.any()
        parameters = self.values.parameters(statement)
        if parameters is None:
            return f"{target}.execute({statement.sql!r})"
        return f"{target}.execute({statement.sql!r}, {parameters})"
