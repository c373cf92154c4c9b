"""What SQLite calls in Python: functions, collations, and the hooks."""

from oxlite.bench.workloads.driver.bodies import fetches, sums
from oxlite.bench.workloads.driver.connections import Texts
from oxlite.bench.workloads.driver.operation import Batch, Operations
from oxlite.bench.workloads.driver.peers import Call, Handle, Peer

CALLBACKS = Operations()

SORTED = 1_000
SUMMED = 1_000
SQLITE_OK = 0
PROGRESS_INSTRUCTIONS = 10
WINDOW = (
    "SELECT sum(w) FROM (SELECT f(a) OVER "
    "(ORDER BY a ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS w FROM t)"
)
COUNTING = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT ?) SELECT sum(x) FROM c"
)


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
        """The sum of the window, or of all."""
        return self.total

    final = finalize = value


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


def _function(
    name: str, count: int, method: str, arguments: int, function: Call, sql: str, total: Call
) -> None:
    """Declare calls of a ``function`` called ``f``, for each row of a table."""

    @CALLBACKS.operation(name, count)
    def prepare(peer: Peer, count: int) -> Batch:
        connection = _numbers(peer, count)
        peer.method(connection, method)("f", arguments, function)
        return Batch(lambda: connection.execute(sql).fetchone()[0], total(count))


_function(
    "create_function, 1 argument, a call", 75_000,
    "create_function", 1, lambda a: a + 1, "SELECT sum(f(a)) FROM t",
    lambda count: sum(range(count)) + count,
)  # fmt: skip
_function(
    "create_function, 3 arguments, a call", 65_000,
    "create_function", 3, lambda a, b, c: a, "SELECT sum(f(a, 1.5, 'text')) FROM t",
    lambda count: sum(range(count)),
)  # fmt: skip
# One group: its ``step``.
_function(
    "create_aggregate, a row", 70_000,
    "create_aggregate", 1, Sum, "SELECT f(a) FROM t",
    lambda count: sum(range(count)),
)  # fmt: skip
# A window of ten rows: ``step``, ``inverse`` and ``value``.
_function(
    "create_window_function, a row", 12_000,
    "create_window_function", 1, Sum, WINDOW,
    lambda count: sum(sum(range(max(0, n - 9), n + 1)) for n in range(count)),
)  # fmt: skip


@CALLBACKS.operation("create_collation, sort of 1,000", 5)
def collation(peer: Peer, count: int) -> Batch:
    """Some nine thousand comparisons of two texts."""
    words = [f"word {n:06d}" for n in peer.numbers("words", SORTED, 1_000_000)]
    connection = peer.table("w TEXT", ((word,) for word in words))
    connection.create_collation("backwards", lambda a, b: (a < b) - (a > b))
    run = fetches(connection, "SELECT w FROM t ORDER BY w COLLATE backwards", count)
    return Batch(run, [(word,) for word in sorted(words, reverse=True)])


@CALLBACKS.operation("authorizer, a new statement", 2_500)
def authorizer(peer: Peer, count: int) -> Batch:
    """It is asked while a statement is prepared, so every text is new."""
    connection, calls = _numbers(peer, 100), Calls()

    def allow(*_: object) -> int:
        calls.count += 1
        return SQLITE_OK

    connection.set_authorizer(allow)
    texts = Texts(connection, count)
    expected = (texts.expected, True)
    return Batch(texts.run, expected, texts.renew, lambda total: (total, calls.taken() >= count))


@CALLBACKS.operation("trace callback, a statement", 8_000)
def trace(peer: Peer, count: int) -> Batch:
    """It is given the text with the parameters written in."""
    connection, calls = _numbers(peer, 100), Calls()

    def traced(_: object) -> None:
        calls.count += 1

    peer.method(connection, "set_trace_callback")(traced)
    keys = [(n % 100,) for n in range(count)]
    run = sums(connection.execute, "SELECT a FROM t WHERE a = ?", keys)
    expected = (sum(n % 100 for n in range(count)), count)
    return Batch(run, expected, result=lambda total: (total, calls.taken()))


@CALLBACKS.operation("progress handler, 1,000 calls or so", 25)
def progress(peer: Peer, count: int) -> Batch:
    """Every ten instructions of a query that counts to a thousand."""
    connection, calls = peer.memory(), Calls()

    def going() -> int:
        calls.count += 1
        return 0

    connection.set_progress_handler(going, PROGRESS_INSTRUCTIONS)
    run = sums(connection.execute, COUNTING, [(SUMMED,)] * count)
    expected = (count * sum(range(SUMMED + 1)), True)
    return Batch(run, expected, result=lambda total: (total, calls.taken() > count * SUMMED // 4))
