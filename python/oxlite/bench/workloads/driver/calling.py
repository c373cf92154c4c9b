"""What SQLite calls in Python: functions, collations, and the hooks."""

from collections.abc import Callable

from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import Handle, Peer
from oxlite.bench.workloads.driver.preparing import Texts

CALLING = Operations()

SORTED = 1_000
SUMMED = 1_000
SQLITE_OK = 0
PROGRESS_INSTRUCTIONS = 10


class Sum:
    """A sum as an aggregate and as a window function; apsw says ``final``."""

    def __init__(self) -> None:
        self.total = 0

    def step(self, value: int) -> None:
        """Take a row in."""
        self.total += value

    def inverse(self, value: int) -> None:
        """Take a row out."""
        self.total -= value

    def value(self) -> int:
        """The sum of the window."""
        return self.total

    def finalize(self) -> int:
        """The sum of all."""
        return self.total

    final = finalize


class Calls:
    """How often a hook was called, since last asked."""

    def __init__(self) -> None:
        self.count = 0

    def taken(self) -> int:
        """The count, which begins anew."""
        count, self.count = self.count, 0
        return count


def _numbers(peer: Peer, count: int) -> Handle:
    return peer.table("a INTEGER PRIMARY KEY", ((n,) for n in range(count)))


def _query(connection: Handle, sql: str) -> Callable[[], object]:
    return lambda: connection.execute(sql).fetchone()[0]


@CALLING.operation("create_function, 1 argument, a call", 75_000)
def one_argument(peer: Peer, count: int) -> Batch:
    """For each row of a table, as all of these."""
    connection = _numbers(peer, count)
    peer.create_function(connection, "f", 1, lambda a: a + 1)
    return Batch(_query(connection, "SELECT sum(f(a)) FROM t"), sum(range(count)) + count)


@CALLING.operation("create_function, 3 arguments, a call", 65_000)
def three_arguments(peer: Peer, count: int) -> Batch:
    """An integer, a float and a text."""
    connection = _numbers(peer, count)
    peer.create_function(connection, "f", 3, lambda a, b, c: a)
    return Batch(_query(connection, "SELECT sum(f(a, 1.5, 'text')) FROM t"), sum(range(count)))


@CALLING.operation("create_aggregate, a row", 70_000)
def aggregate(peer: Peer, count: int) -> Batch:
    """One group: its ``step``."""
    connection = _numbers(peer, count)
    peer.create_aggregate(connection, "total_of", 1, Sum)
    return Batch(_query(connection, "SELECT total_of(a) FROM t"), sum(range(count)))


@CALLING.operation("create_window_function, a row", 12_000)
def window(peer: Peer, count: int) -> Batch:
    """A window of ten rows: ``step``, ``inverse`` and ``value``."""
    connection = _numbers(peer, count)
    peer.create_window_function(connection, "total_of", 1, Sum)
    sql = (
        "SELECT sum(w) FROM (SELECT total_of(a) OVER "
        "(ORDER BY a ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS w FROM t)"
    )
    return Batch(
        _query(connection, sql), sum(sum(range(max(0, n - 9), n + 1)) for n in range(count))
    )


@CALLING.operation("create_collation, sort of 1,000", 5)
def collation(peer: Peer, count: int) -> Batch:
    """Some nine thousand comparisons of two texts."""
    words = [f"word {n:06d}" for n in peer.numbers("words", SORTED, 1_000_000)]
    connection = peer.table("w TEXT", ((word,) for word in words))
    connection.create_collation("backwards", lambda a, b: (a < b) - (a > b))

    def run() -> list[tuple[str]]:
        fetched = []
        for _ in range(count):
            fetched = connection.execute("SELECT w FROM t ORDER BY w COLLATE backwards").fetchall()
        return fetched

    return Batch(run, [(word,) for word in sorted(words, reverse=True)])


@CALLING.operation("authorizer, a new statement", 2_500)
def authorizer(peer: Peer, count: int) -> Batch:
    """It is asked while a statement is prepared, so every text is new."""
    connection = _numbers(peer, 100)
    calls = Calls()

    def allow(*_: object) -> int:
        calls.count += 1
        return SQLITE_OK

    connection.set_authorizer(allow)
    texts = Texts(connection, count)
    return Batch(
        texts.run,
        (texts.expected, True),
        texts.renew,
        lambda total: (total, calls.taken() >= count),
    )


@CALLING.operation("trace callback, a statement", 8_000)
def trace(peer: Peer, count: int) -> Batch:
    """It is given the text with the parameters written in."""
    connection = _numbers(peer, 100)
    calls = Calls()

    def traced(_: object) -> None:
        calls.count += 1

    keys = [(n % 100,) for n in range(count)]

    def run() -> int:
        execute, total = connection.execute, 0
        for key in keys:
            total += execute("SELECT a FROM t WHERE a = ?", key).fetchone()[0]
        return total

    peer.set_trace_callback(connection, traced)
    return Batch(
        run,
        (sum(n % 100 for n in range(count)), count),
        None,
        lambda total: (total, calls.taken()),
    )


@CALLING.operation("progress handler, 1,000 calls or so", 25)
def progress(peer: Peer, count: int) -> Batch:
    """Every ten instructions of a query that counts to a thousand."""
    connection = peer.memory()
    calls = Calls()

    def going() -> int:
        calls.count += 1
        return 0

    connection.set_progress_handler(going, PROGRESS_INSTRUCTIONS)
    sql = (
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT ?) "
        "SELECT sum(x) FROM c"
    )

    def run() -> int:
        total = 0
        for _ in range(count):
            total += connection.execute(sql, (SUMMED,)).fetchone()[0]
        return total

    expected = (count * sum(range(SUMMED + 1)), True)
    return Batch(run, expected, None, lambda total: (total, calls.taken() > count * SUMMED // 4))
