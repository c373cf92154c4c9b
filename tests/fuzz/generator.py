"""Cases from seeds.

Each case draws, for every kind of move, how often it is to come (often not at all), so that some
cases are all about blobs and others mix everything. What a move writes stands in ``moves``, by
subject.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fuzz.moves import (
    callbacks,
    connections,
    content,
    conversions,
    execution,
    interface,
    objects,
    rows,
    settings,
    transactions,
)
from tests.fuzz.moves.hand import Hand
from tests.fuzz.sql import SCHEMAS


@dataclass
class Case:
    """A program of steps."""

    steps: list[str]
    moves: list[str] = field(default_factory=list)
    """Which kind of move made each step."""
    seed: int | None = None


@dataclass(frozen=True)
class Move:
    """A kind of move."""

    weight: float
    """How often it comes, beside the others, before the case has drawn its own weights."""
    write: Callable[[Hand], str]
    feature: str = ""
    """What both drivers must have; see ``features``."""


# In the order in which weights are drawn: a new move goes to the end, or all seeds change.
MOVES: dict[str, Move] = {
    "execute": Move(30, execution.execute),
    "connection.execute": Move(6, execution.connection_execute),
    "executemany": Move(7, execution.executemany),
    "executescript": Move(2, execution.executescript),
    "fetch": Move(24, execution.fetch),
    "transaction": Move(6, transactions.transaction),
    "isolation level": Move(1, transactions.isolation_level),
    "factory": Move(3, objects.factory),
    "cursor": Move(4, objects.cursor),
    "close": Move(1.5, objects.close),
    "connect": Move(1.5, connections.connect_again),
    "delete": Move(1.5, objects.delete_name),
    "with": Move(2, transactions.with_block),
    "thread": Move(1.5, objects.thread),
    "loop": Move(3, execution.loop),
    "function": Move(5, callbacks.function),
    "aggregate": Move(3, callbacks.aggregate),
    "collation": Move(2, callbacks.collation),
    "authorizer": Move(1.5, callbacks.authorizer),
    "progress": Move(2, callbacks.progress),
    "trace": Move(1, callbacks.trace),
    "blob": Move(5, content.blob),
    "backup": Move(1.5, content.backup),
    "serialize": Move(1.5, content.serialize),
    "limit": Move(1, settings.limit),
    "row": Move(4, rows.row),
    "misuse": Move(2, interface.misuse),
    "attribute": Move(1.5, interface.attribute),
    "module": Move(1, interface.module),
    "error": Move(1, interface.error),
    "config": Move(1, settings.config, "config"),
    "adapter": Move(2, conversions.adapter, "adapters"),
    "converter": Move(3, conversions.converter, "converters"),
    "iterdump": Move(1, content.iterdump, "iterdump"),
    "autocommit": Move(3, transactions.autocommit, "autocommit"),
    "call": Move(1, execution.call, "call"),
    "load extension": Move(0.5, settings.load_extension, "load_extension"),
}


class Generator:
    """Writes the steps of one case."""

    def __init__(self, seed: int, features: frozenset[str]) -> None:
        self.seed = seed
        self.hand = Hand(random.Random(seed), features)

    def case(self) -> Case:
        """The case of this seed."""
        schema = self.hand.chance.choice(SCHEMAS)
        steps = [f"c0 = {connections.connect(self.hand, first=True)}"]
        if schema:
            steps.append(f"c0.executescript({schema!r})")
        steps.append("k0 = c0.cursor()")
        steps.append("k1 = c0.cursor()")
        if self.hand.is_rare(0.5):
            steps.append(f"c1 = {connections.connect(self.hand, first=True)}")
            self.hand.connections.append("c1")
            if self.hand.is_rare(0.5):
                steps.append("k2 = c1.cursor()")
                self.hand.cursors.append("k2")
        if self.hand.is_rare(0.15):
            steps.append("c2 = sqlite3.connect(':memory:')")
            self.hand.connections.append("c2")
        weights = self.weights()
        if weights["blob"]:
            steps.append(f"b0 = c0.blobopen('t', {self.hand.one_of('b', 'c')!r}, 1)")
        if weights["row"]:
            steps.append("r0 = sqlite3.Row(c0.execute('SELECT 1 AS a, 2 AS B'), (1, 2)); r1 = r0")
        moves = ["setup"] * len(steps)
        number = min(int(self.hand.chance.expovariate(1 / 25)) + 3, 90)
        for name in self.hand.chance.choices(list(weights), list(weights.values()), k=number):
            steps.append(MOVES[name].write(self.hand))
            moves.append(name)
        return Case(steps, moves, self.seed)

    def weights(self) -> dict[str, float]:
        """How often each kind of move is to come in this case."""
        drawn = {
            name: move.weight * self.hand.chance.choice([0, 0.3, 1, 1, 1, 5])
            for name, move in MOVES.items()
            if not move.feature or move.feature in self.hand.features
        }
        drawn["execute"] += 5
        return drawn


def case_of(seed: int, features: frozenset[str]) -> Case:
    """The case of a seed, for drivers with these features."""
    return Generator(seed, features).case()
