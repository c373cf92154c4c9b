"""The operations of ``driver``, timed in batches in one worker process.

Six operations on one connection to a file: a row by text key and by integer
key (each its own implicit transaction, which locks the file and lets it go), by
text key in one transaction (the driver and the look-up alone), a fetch of
100 rows of an integer and a text, single-row inserts in one explicit
transaction, and ``executemany`` in one. What is inserted is rolled back, and
beginning and ending a transaction is not timed.

Invariants: the same statements with the same parameters on every driver; what
comes back is counted and summed, and asserted.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.errors import VerificationError, require_between
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.worker import Task
from oxlite.bench.scenarios.opening import open_connection
from oxlite.bench.scenarios.scenario import Scenario

ROWS = 10_000
FETCHED = 100
FETCHES_PER_OPERATIONS = 40
MAXIMUM_OPERATIONS = 10_000_000
TIMEOUT_SECONDS = 5.0
NANOSECONDS_PER_MICROSECOND = 1e3

SCHEMA = (
    "CREATE TABLE by_text(k TEXT PRIMARY KEY, v TEXT)",
    "CREATE TABLE by_integer(k INTEGER PRIMARY KEY, v TEXT)",
    "CREATE TABLE inserted(a INTEGER, b TEXT)",
)


@dataclass(frozen=True)
class DriverParameters:
    """What shapes the work.

    Attributes:
        operations: statements (or rows) in a batch; fetches of 100 rows are a fortieth.
        seed: of the random order of keys.
    """

    operations: int = 20_000
    seed: int = 1

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        require_between("--operations", self.operations, FETCHES_PER_OPERATIONS, MAXIMUM_OPERATIONS)


def text_key(number: int) -> str:
    """The text key of row ``number``."""
    return f"key:{number:08d}"


def text_value(number: int) -> str:
    """The value of row ``number``: 64 characters."""
    return f"{number:064x}"


def keys(parameters: DriverParameters) -> list[int]:
    """The rows that are looked up, in order."""
    source = random.Random(f"{parameters.seed}:driver")
    return [int(source.random() * ROWS) for _ in range(parameters.operations)]


def require(what: str, found: int, expected: int) -> None:
    """Assert that work was done.

    Raises:
        VerificationError: ``found`` is not ``expected``.
    """
    if found != expected:
        raise VerificationError(f"{what}: {found} instead of {expected}")


class DriverTask(Task):
    """One driver's connection and its batches."""

    def __init__(self, arguments: Message) -> None:
        self._parameters = DriverParameters(**arguments["parameters"])
        scenario = Scenario(**arguments["scenario"])
        self._path = Path(arguments["path"])
        self._driver = DRIVERS.get(scenario.driver)
        self._numbers = keys(self._parameters)
        self._text_keys = [(text_key(number),) for number in self._numbers]
        self._integer_keys = [(number,) for number in self._numbers]
        self._rows = [(number, text_value(number)) for number in self._numbers]
        self._figures: dict[str, float] = {}
        self._connection = open_connection(self._driver, self._path, scenario, TIMEOUT_SECONDS)

    def ready(self) -> Message:
        """Who is measured."""
        return {"versions": self._driver.versions()}

    def run(self, turn: Message, start_ns: int) -> None:
        """Every batch once."""
        operations: dict[str, Callable[[], int]] = {
            "get_by_text_key_us": self._get_by_text_key,
            "get_by_integer_key_us": self._get_by_integer_key,
            "get_in_transaction_us": self._get_in_transaction,
            "fetch_100_rows_us": self._fetch,
            "insert_us": self._insert,
            "executemany_us_per_row": self._executemany,
        }
        for name, operation in operations.items():
            count = len(self._numbers)
            if name == "fetch_100_rows_us":
                count //= FETCHES_PER_OPERATIONS
            self._figures[name] = operation() / count / NANOSECONDS_PER_MICROSECOND

    def _get_by_text_key(self) -> int:
        return self._get("SELECT v FROM by_text WHERE k = ?", self._text_keys)

    def _get_by_integer_key(self) -> int:
        return self._get("SELECT v FROM by_integer WHERE k = ?", self._integer_keys)

    def _get_in_transaction(self) -> int:
        self._connection.execute("BEGIN", ())
        elapsed_ns = self._get_by_text_key()
        self._connection.execute("COMMIT", ())
        return elapsed_ns

    def _get(self, sql: str, parameters: list[Any]) -> int:
        execute = self._connection.execute
        characters = 0
        begun_ns = time.perf_counter_ns()
        for key in parameters:
            characters += len(execute(sql, key).fetchone()[0])
        elapsed_ns = time.perf_counter_ns() - begun_ns
        require("characters read", characters, 64 * len(parameters))
        return elapsed_ns

    def _fetch(self) -> int:
        execute = self._connection.execute
        sql = "SELECT k, v FROM by_integer WHERE k >= ? ORDER BY k LIMIT 100"
        count = len(self._numbers) // FETCHES_PER_OPERATIONS
        starts = [(number % (ROWS - FETCHED),) for number in self._numbers[:count]]
        rows = 0
        begun_ns = time.perf_counter_ns()
        for start in starts:
            rows += len(execute(sql, start).fetchall())
        elapsed_ns = time.perf_counter_ns() - begun_ns
        require("rows fetched", rows, FETCHED * count)
        return elapsed_ns

    def _insert(self) -> int:
        execute = self._connection.execute
        execute("BEGIN", ())
        begun_ns = time.perf_counter_ns()
        for row in self._rows:
            execute("INSERT INTO inserted VALUES(?,?)", row)
        return self._roll_back(time.perf_counter_ns() - begun_ns)

    def _executemany(self) -> int:
        self._connection.execute("BEGIN", ())
        begun_ns = time.perf_counter_ns()
        self._connection.executemany("INSERT INTO inserted VALUES(?,?)", self._rows)
        return self._roll_back(time.perf_counter_ns() - begun_ns)

    def _roll_back(self, elapsed_ns: int) -> int:
        row = self._connection.execute("SELECT count(*), sum(a) FROM inserted", ()).fetchone()
        require("rows inserted", row[0], len(self._rows))
        require("sum of what was inserted", row[1], sum(self._numbers))
        self._connection.execute("ROLLBACK", ())
        return elapsed_ns

    def collect(self) -> tuple[Message, bytes]:
        """Microseconds per operation."""
        return {"figures": self._figures}, b""

    def connection(self) -> tuple[Any, str]:
        """See the base class."""
        return self._connection, str(self._path.parent)

    def close(self) -> None:
        """See the base class."""
        self._connection.close()
