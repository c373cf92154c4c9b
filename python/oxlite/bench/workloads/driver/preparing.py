"""Statements that have to be prepared, because they are new or the schema has changed."""

import itertools

from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import Handle, Peer

PREPARING = Operations()


class Texts:
    """Look-ups that differ in a comment alone, none of which was ever seen before."""

    def __init__(self, connection: Handle, count: int) -> None:
        self._execute = connection.execute
        self._count = count
        self._numbers = itertools.count()
        self._texts: list[str] = []

    def renew(self) -> None:
        """Make the texts of the next batch."""
        self._texts = [
            f"SELECT a FROM t WHERE a = {n % 100} /* {number:08d} */"
            for n, number in zip(range(self._count), self._numbers, strict=False)
        ]

    def run(self) -> int:
        """Run each once."""
        total = 0
        for text in self._texts:
            total += self._execute(text).fetchone()[0]
        return total

    @property
    def expected(self) -> int:
        """What :meth:`run` gives."""
        return sum(n % 100 for n in range(self._count))


@PREPARING.operation("new SQL text (cache miss)", 3_500)
def cache_miss(peer: Peer, count: int) -> Batch:
    """Texts that no statement cache can know."""
    texts = Texts(peer.table("a INTEGER PRIMARY KEY", ((n,) for n in range(100))), count)
    return Batch(texts.run, texts.expected, texts.renew)


@PREPARING.operation("get after a change of schema", 700)
def schema_change(peer: Peer, count: int) -> Batch:
    """A table is made or dropped, and then a known statement has to be prepared again."""
    execute = peer.table("a INTEGER PRIMARY KEY, b TEXT", ((n, f"{n}") for n in range(100))).execute
    changes = ("CREATE TABLE other(a, b)", "DROP TABLE other")

    def run() -> int:
        total = 0
        for n in range(count):
            execute(changes[n % 2])
            total += execute("SELECT a FROM t WHERE a = ?", (n % 100,)).fetchone()[0]
        return total

    def result(total: int) -> int:
        execute("DROP TABLE IF EXISTS other")
        return total

    return Batch(run, sum(n % 100 for n in range(count)), None, result)
