"""Cases from seeds.

Each case draws, for every kind of move, how often it is to come (often not at all), so that some
cases are all about blobs and others mix everything.
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fuzz.sql import SCHEMAS, Writer
from tests.fuzz.values import Values


@dataclass
class Case:
    """A program of steps."""

    steps: list[str]
    moves: list[str] = field(default_factory=list)
    """Which kind of move made each step."""
    seed: int | None = None


class Generator:
    """Writes the steps of one case."""

    def __init__(self, seed: int, features: frozenset[str]) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.features = features
        self.writer = Writer(self.chance)
        self.values = Values(self.chance, features)
        # Names that are bound, the favourites several times.
        self.connections = ["c0", "c0", "c0"]
        self.cursors = ["k0", "k0", "k0", "k1", "k1"]
        self.moves: dict[str, tuple[float, Callable[[], str]]] = {
            "execute": (30, self.execute),
            "connection.execute": (6, self.connection_execute),
            "executemany": (7, self.executemany),
            "executescript": (2, self.executescript),
            "fetch": (24, self.fetch),
            "transaction": (6, self.transaction),
            "isolation level": (1, self.isolation_level),
            "factory": (3, self.factory),
            "cursor": (4, self.cursor),
            "close": (1.5, self.close),
            "connect": (1.5, self.connect_again),
            "delete": (1.5, self.delete_name),
            "with": (2, self.with_block),
            "thread": (1.5, self.thread),
            "loop": (3, self.loop),
            "function": (5, self.function),
            "aggregate": (3, self.aggregate),
            "collation": (2, self.collation),
            "authorizer": (1.5, self.authorizer),
            "progress": (2, self.progress),
            "trace": (1, self.trace),
            "blob": (5, self.blob),
            "backup": (1.5, self.backup),
            "serialize": (1.5, self.serialize),
            "limit": (1, self.limit),
            "row": (4, self.row),
            "misuse": (2, self.misuse),
            "attribute": (1.5, self.attribute),
            "module": (1, self.module),
            "error": (1, self.error),
        }
        if "config" in features:
            self.moves["config"] = (1, self.config)
        if "adapters" in features:
            self.moves["adapter"] = (2, self.adapter)
        if "converters" in features:
            self.moves["converter"] = (3, self.converter)
        if "iterdump" in features:
            self.moves["iterdump"] = (1, self.iterdump)
        if "autocommit" in features:
            self.moves["autocommit"] = (3, self.autocommit)
        if "call" in features:
            self.moves["call"] = (1, self.call)
        if "load_extension" in features:
            self.moves["load extension"] = (0.5, self.load_extension)

    def one_of(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def is_rare(self, probability: float) -> bool:
        return self.chance.random() < probability

    def case(self) -> Case:
        """The case of this seed."""
        schema = self.chance.choice(SCHEMAS)
        steps = [f"c0 = {self.connect(first=True)}"]
        if schema:
            steps.append(f"c0.executescript({schema!r})")
        steps.append("k0 = c0.cursor()")
        steps.append("k1 = c0.cursor()")
        if self.is_rare(0.5):
            steps.append(f"c1 = {self.connect(first=True)}")
            self.connections.append("c1")
            if self.is_rare(0.5):
                steps.append("k2 = c1.cursor()")
                self.cursors.append("k2")
        if self.is_rare(0.15):
            steps.append("c2 = sqlite3.connect(':memory:')")
            self.connections.append("c2")
        weights = self.weights()
        if weights["blob"]:
            steps.append(f"b0 = c0.blobopen('t', {self.one_of('b', 'c')!r}, 1)")
        if weights["row"]:
            steps.append("r0 = sqlite3.Row(c0.execute('SELECT 1 AS a, 2 AS B'), (1, 2)); r1 = r0")
        moves = ["setup"] * len(steps)
        number = min(int(self.chance.expovariate(1 / 25)) + 3, 90)
        for name in self.chance.choices(list(weights), list(weights.values()), k=number):
            steps.append(self.moves[name][1]())
            moves.append(name)
        return Case(steps, moves, self.seed)

    def weights(self) -> dict[str, float]:
        """How often each kind of move is to come in this case."""
        drawn = {
            name: weight * self.chance.choice([0, 0.3, 1, 1, 1, 5])
            for name, (weight, _) in self.moves.items()
        }
        drawn["execute"] += 5
        return drawn

    # Opening.

    def connect(self, first: bool = False) -> str:
        """A call of ``connect``."""
        options: list[str] = []
        name = self.one_of(
            "':memory:'", "':memory:'", "path('a.db')", "path('a.db')", "path('b.db')", "''",
            "'file:shared?mode=memory&cache=shared'", "'file:' + path('a.db') + '?mode=ro'",
        )  # fmt: skip
        if "file:" in name:
            options.append("uri=True")
        if "path" in name or "shared" in name:
            options.append(f"timeout={self.one_of('0', '0', '0.0', '0.005')}")
        if self.is_rare(0.4):
            level = self.one_of("None", "''", "'DEFERRED'", "'immediate'", "'EXCLUSIVE'", "'bad'")
            options.append(f"isolation_level={level}")
        if self.is_rare(0.3):
            options.append(f"cached_statements={self.one_of('0', '1', '2', '128', '-1')}")
        if self.is_rare(0.1):
            options.append(f"check_same_thread={self.one_of('False', '0', 'True')}")
        if self.is_rare(0.06):
            factory = self.one_of(
                "MyConnection", "NotingConnection", "OddConnection", "LazyConnection", "None",
                "sqlite3.Connection", "lambda *a, **k: 5",
            )  # fmt: skip
            options.append(f"factory={factory}")
        if "detect_types" in self.features and self.is_rare(0.35):
            options.append(f"detect_types={self.one_of('1', '2', '3', '3')}")
        if "autocommit" in self.features and self.is_rare(0.25):
            options.append(f"autocommit={self.one_of('True', 'False', '-1', 'False')}")
        if not first and self.is_rare(0.06):
            options.append(
                self.one_of(
                    "bad=1",
                    "timeout='x'",
                    "isolation_level=5",
                    "cached_statements=2**40",
                    "detect_types='x'",
                    "timeout=-1",
                    "uri=Truth(True)",
                    "uri=Truth(KeyError())",
                    "check_same_thread=Truth(ValueError('t'))",
                    "isolation_level=b''",
                    "isolation_level='x\\0y'",
                    "isolation_level='\\ud800'",
                )
            )
        if not first and self.is_rare(0.06):
            name = self.one_of(
                "5", "None", "b':memory:'", "path('gone/x.db')", "'\\ud800'", "'a\\0b'",
                "directory", "'file:x?vfs=none'", "bytearray(b':memory:')", "Str(':memory:')",
            )  # fmt: skip
        return f"sqlite3.connect({once(', '.join([name, *options]))})"

    def connect_again(self) -> str:
        """Another connection, or the same object made anew."""
        which = self.one_of("c0", "c1", "c2") if self.is_rare(0.3) else self.connection_name()
        call = self.connect()
        if self.is_rare(0.15):
            return f"{which}.__init__({call.partition('(')[2]}"
        self.connections.append(which)
        return f"{which} = {call}"

    # Executing and fetching.

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

    def execute(self) -> str:
        """``Cursor.execute``, sometimes with its rows."""
        text = self.execution(self.cursor_name())
        if self.is_rare(0.25):
            text += self.one_of(".fetchall()", ".fetchone()", ".fetchmany(2)")
        return text

    def connection_execute(self) -> str:
        """``Connection.execute``."""
        text = self.execution(self.connection_name())
        if self.is_rare(0.4):
            return f"{self.new_cursor_name()} = {text}"
        return text + self.one_of("", ".fetchall()", ".fetchone()")

    def executemany(self) -> str:
        """``executemany`` on a cursor or connection."""
        statement = self.writer.data_modification() if self.is_rare(0.9) else self.writer.any()
        target = self.cursor_name() if self.is_rare(0.8) else self.connection_name()
        return f"{target}.executemany({statement.sql!r}, {self.values.sets(statement)})"

    def executescript(self) -> str:
        """``executescript`` on a cursor or connection."""
        target = self.cursor_name() if self.is_rare(0.6) else self.connection_name()
        return f"{target}.executescript({self.writer.script()!r})"

    def fetch(self) -> str:
        """Rows of a cursor."""
        name = self.cursor_name()
        return f"{name}." + self.one_of(
            "fetchone()", "fetchone()", "fetchone()", "fetchall()", "fetchmany()", "fetchmany(2)",
            "fetchmany(0)", "fetchmany(-1)", "fetchmany(size=3)", "__next__()", "__next__()",
            "fetchmany(2**40)", "fetchmany('x')", "fetchmany(Index(2))", "fetchmany(None)",
            "fetchmany(2**64)", "fetchmany(1.0)", "fetchmany(True)", "__iter__()",
        )  # fmt: skip

    def loop(self) -> str:
        """A loop that stops half-way, or that does something meanwhile."""
        name = self.cursor_name()
        action = self.values.action()
        return self.one_of(
            f"for row in {name}:\n    break",
            f"for row in {name}:\n    note(row)\n    if len(log) > 2: break",
            f"for row in {name}:\n    note(shape({action}))\n    if len(log) > 3: break",
            f"for row in {name}:\n    {action}",
            f"[row for _, row in zip(range(2), {name})]",
            f"list({name})",
            f"list(zip({name}, {self.cursor_name()}))",
            f"list({self.execution(name)})",
            f"[({action}, row) for row in {self.execution(name)}][-1:]",
        )

    # Transactions.

    def transaction(self) -> str:
        """Commit, rollback, or their SQL."""
        name = self.connection_name()
        if self.is_rare(0.65):
            return f"{name}.{self.one_of('commit()', 'commit()', 'rollback()')}"
        sql = self.one_of(
            "BEGIN", "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK", "SAVEPOINT s", "RELEASE s",
            "ROLLBACK TO s",
        )  # fmt: skip
        return f"{self.one_of(name, self.cursor_name())}.execute({sql!r})"

    def isolation_level(self) -> str:
        """Another isolation level."""
        level = self.one_of(
            "None", "''", "'DEFERRED'", "'IMMEDIATE'", "'exclusive'", "'bad'", "5", "b''",
            "Str('DEFERRED')", "'\\ud800'", "'DEFERRED\\0'",
        )  # fmt: skip
        if self.is_rare(0.05):
            return f"del {self.connection_name()}.isolation_level"
        return f"{self.connection_name()}.isolation_level = {level}"

    def with_block(self) -> str:
        """A context manager."""
        name = self.connection_name()
        body = self.one_of(
            self.execution(self.cursor_name()), self.execution(name), "1/0", f"{name}.close()",
            self.transaction(), f"{name}.execute('INSERT INTO t(b) VALUES (77)')",
        )  # fmt: skip
        if self.is_rare(0.2):
            return f"with {name}:\n    with {name}:\n        {body}\n    1/0"
        if self.is_rare(0.2):
            return (
                f"{name}.__exit__({self.one_of('None, None, None', 'KeyError, None, None', '1')})"
            )
        if self.is_rare(0.3):
            return f"with contextlib.closing({self.cursor_name()}) as k3:\n    {body}"
        return f"with {name}:\n    {body}"

    # Objects.

    def factory(self) -> str:
        """Row and text factories."""
        owner = self.one_of(self.connection_name(), self.connection_name(), self.cursor_name())
        if self.is_rare(0.6):
            factory = self.one_of(
                "sqlite3.Row", "sqlite3.Row", "None", "as_dict", "lambda c, r: r", "MyRow", "5",
                "raising(KeyError('row'))", "lambda c, r: Row", "lambda c, r: c", "tuple", "dict",
                f"acting(lambda: {self.values.action()}, 3)", "noting('made')",
                f"lambda c, r: {self.values.action()}", "lambda c, r: c.fetchone()",
                f"at_call(2, raising(ValueError('second')), {self.values.value()})",
            )  # fmt: skip
            return f"{owner}.row_factory = {factory}"
        factory = self.one_of(
            "str", "bytes", "bytearray", "None", "Str", "5", "lambda b: b.decode('latin-1')",
            "lambda b: b.decode('utf-8', 'replace')", "raising(KeyError('text'))", "len",
            f"lambda b: {self.values.action()}", f"acting(lambda: {self.values.action()}, 'x')",
            "at_call(2, raising(ValueError('second')), 'fine')", "noting('made')", "int",
        )  # fmt: skip
        return f"{owner}.text_factory = {factory}"

    def cursor(self) -> str:
        """A new cursor, or the same one made anew."""
        name, connection = self.new_cursor_name(), self.connection_name()
        argument = self.one_of(
            "", "", "", "", "MyCursor", "sqlite3.Cursor", "None", "lambda c: 5", "5",
            "factory=MyCursor", "lambda c: k0", "raising(KeyError('cursor'))",
            "lambda c: c.cursor()",
        )  # fmt: skip
        return self.one_of(
            f"{name} = {connection}.cursor({argument})",
            f"{name} = {connection}.cursor({argument})",
            f"{name} = sqlite3.Cursor({connection})",
            f"{name}.__init__({connection})",
            f"{name} = {self.one_of('MyCursor', 'sqlite3.Cursor')}({connection})",
            f"{name}.arraysize = {self.one_of('0', '1', '3', '-1', '1.5', 'None', 'True')}",
            f"{name}.setinputsizes({self.one_of('1', '[None]', '')})",
            f"{name}.setoutputsize({self.one_of('1', '1, 2', '')})",
            f"{name}.connection is {connection}",
            "LazyCursor(c0).fetchone()",
            "LazyCursor(c0).execute('SELECT 1')",
            f"{name} = weakref.ref({name})() and {name}",
            f"sqlite3.Cursor({self.one_of('5', '', 'None', 'c0, c0')})",
        )

    def close(self) -> str:
        """Closes something."""
        return self.one_of(
            f"{self.cursor_name()}.close()",
            f"{self.cursor_name()}.close()",
            f"{self.cursor_name()}.close()",
            f"{self.connection_name()}.close()",
            f"{self.connection_name()}.close(); {self.connection_name()}.close()",
        )

    def delete_name(self) -> str:
        """Lets go of something, in any order."""
        name = self.one_of(
            self.cursor_name(), self.cursor_name(), self.connection_name(), "b0", "r0",
        )  # fmt: skip
        return self.one_of(
            f"{name} = None",
            f"{name} = None",
            "(gc.collect(), None)[1]",
            f"{name} = None; gc.collect()",
            f"del {name}",
            f"k3 = Dying(lambda: {self.values.action()}); k3.me = k3; k3.c = {name}; k3 = None",
            "k3 = None; gc.collect()",
        )

    def thread(self) -> str:
        """Something done in another thread."""
        action = self.one_of(
            self.execution(self.cursor_name()) + ".fetchall()",
            self.execution(self.connection_name()) + ".fetchall()",
            f"{self.connection_name()}.{self.one_of('commit()', 'close()', 'total_changes')}",
            f"{self.connection_name()}.{self.one_of('interrupt()', 'in_transaction', 'cursor()')}",
            f"{self.cursor_name()}.{self.one_of('fetchall()', 'close()', 'description')}",
            f"{self.one_of('b0.read()', 'b0.close()', 'b0[0]', 'len(b0)', 'r0[0]')}",
            f"globals().pop({self.one_of('k0', 'k1', 'c1', 'b0')!r}, None)",
            f"{self.connection_name()}.{self.one_of('serialize()', 'rollback()')}",
            f"{self.connection_name()}.{self.one_of('__enter__()', 'isolation_level')}",
            f"{self.connection_name()}.create_function('f', 1, None)",
            self.values.action(),
        )
        return f"in_thread(lambda: {action})"

    # Callbacks.

    def result(self) -> str:
        """What a callback gives back."""
        return self.values.value()

    def function(self) -> str:
        """An SQL function."""
        name = self.one_of(
            "'f'", "'f'", "'g'", "'h'", "'abs'", "'length'", "'like'", "'x\\0'", "''"
        )
        count = self.one_of("1", "1", "-1", "-1", "2", "0", "1000", "-2", "200", "'x'")
        body = self.one_of(
            "len", "lambda *a: a[0]", "lambda *a: repr(a)", f"lambda *a: {self.result()}",
            f"lambda *a: {self.result()}", f"noting({self.result()})", f"noting({self.result()})",
            f"acting(lambda: {self.values.action()}, {self.result()})",
            f"lambda *a: {self.values.action()}", "at_call(3, raising(KeyError('f')), 4)",
            "raising(ZeroDivisionError('f'))", "raising(MemoryError())", "raising(OverflowError())",
            "raising(sqlite3.IntegrityError('mine'))", "raising(KeyboardInterrupt())", "None", "5",
            "raising(SystemExit(3))", "lambda a: a",
            "lambda *a: c0.execute('SELECT f(1)').fetchone()", "lambda *a: 'é\\ud800'",
            "lambda *a: 'a\\0b'", "lambda *a: nested(3, lambda: 8)",
            "lambda *a: c0.execute('SELECT g(?)', a[:1]).fetchone()[0]", "max", "type", "hex",
            "lambda *a: in_thread(lambda: 3)", "lambda *a: a[0].decode()", "lambda *a: a[0] + 1",
        )  # fmt: skip
        deterministic = self.one_of("", "", "", ", deterministic=True", ", deterministic=Truth(1)")
        return f"{self.connection_name()}.create_function({name}, {count}, {body}{deterministic})"

    def aggregate(self) -> str:
        """An aggregate or window function."""
        body = self.one_of(
            "Summing", "Summing", "BadInit", "BadStep", "BadLaterStep", "BadInverse", "BadValue",
            "BadFinalize", "OddResult", "NoFinalize", "NoStep", "Noting", "Noting", "None", "5",
            "lambda: 5", "lambda: Noting()",
        )  # fmt: skip
        name = self.one_of("'agg'", "'agg'", "'w'", "'f'", "'sum'", "'count'")
        count = self.one_of("1", "1", "-1", "2", "0", "2000")
        method = self.one_of("create_aggregate", "create_window_function")
        if self.is_rare(0.4):
            sql = self.one_of(
                "SELECT agg(a) FROM t", "SELECT agg(a) FROM t WHERE 0", "SELECT agg(a, b) FROM t",
                "SELECT agg(a) FROM t GROUP BY b", "SELECT a, agg(a) OVER (ORDER BY a) FROM t",
                "SELECT agg(a) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t",
                "SELECT w(a) OVER (ROWS 1 PRECEDING) FROM t",
                "SELECT agg(a) FILTER (WHERE a > 1) " "FROM t",
                "SELECT agg(1), agg(2), agg(a) FROM t",
            )  # fmt: skip
            fetch = self.one_of(".fetchall()", ".fetchone()", "")
            return f"{self.cursor_name()}.execute({sql!r}){fetch}"
        return f"{self.connection_name()}.{method}({name}, {count}, {body})"

    def collation(self) -> str:
        """A collation, or its use."""
        if self.is_rare(0.5):
            sql = self.one_of(
                "SELECT b FROM t ORDER BY b COLLATE mine", "SELECT max(b COLLATE mine) FROM t",
                "SELECT 'a' = 'b' COLLATE mine", "SELECT 'ä' < 'b' COLLATE mine",
                "CREATE INDEX ci ON t(b COLLATE mine)",
                "SELECT CAST(x'ff' AS TEXT) < 'b' COLLATE mine",
            )  # fmt: skip
            return f"{self.cursor_name()}.execute({sql!r}).fetchall()"
        body = self.one_of(
            "reverse", "reverse", "None", "noting(0)", "raising(KeyError('c'))", "lambda a, b: 'x'",
            "lambda a, b: None", "lambda a, b: 2**70", "lambda a, b: -2**70", "lambda a, b: 1.5",
            f"acting(lambda: {self.values.action()}, 1)", "lambda a: 1", "5", "lambda a, b: Int(1)",
            "lambda a, b: Index(1)", "lambda a, b: True",
        )  # fmt: skip
        name = self.one_of(
            "'mine'", "'mine'", "'mine'", "'nocase'", "'é'", "'\\ud800'", "'a\\0'", "5"
        )
        return f"{self.connection_name()}.create_collation({name}, {body})"

    def authorizer(self) -> str:
        """An authorizer."""
        body = self.one_of(
            "None", "None", "noting(0)", "noting(0)", "lambda *a: 1", "lambda *a: 2",
            "lambda *a: 0", "raising(KeyError('a'))", "lambda *a: None", "lambda *a: 'x'",
            "lambda *a: 2**40", "lambda *a: 2 if a[0] == 20 and a[2] == 'b' else 0",
            "lambda *a: True", "lambda *a: 7", "lambda *a: 1 if a[0] == 22 else 0",
            "lambda *a: 1 if a[0] == 9 else 0", "5", "lambda *a: 0.0", "lambda *a: Int(0)",
            "at_call(3, raising(ValueError('a')), 0)",
        )  # fmt: skip
        return f"{self.connection_name()}.set_authorizer({body})"

    def progress(self) -> str:
        """A progress handler."""
        body = self.one_of(
            "None", "None", "counting(0)", "counting(None)", "lambda: 1", "raising(KeyError('p'))",
            "at_call(5, lambda: True, 0)", "lambda: Truth(KeyError('b'))", "lambda: Truth(False)",
            "lambda *a: ''", "lambda x: 0", "5", "at_call(3, lambda: c0.interrupt(), 0)",
            "at_call(2, raising(KeyboardInterrupt()), 0)",
        )  # fmt: skip
        count = self.one_of("1", "5", "10", "100", "0", "-1", "3000", "'x'", "2**40")
        return f"{self.connection_name()}.set_progress_handler({body}, {count})"

    def trace(self) -> str:
        """A trace callback."""
        body = self.one_of(
            "None", "noting(None)", "noting(None)", "noting(None)", "raising(KeyError('t'))", "5",
        )  # fmt: skip
        return f"{self.connection_name()}.set_trace_callback({body})"

    # Blobs, copies, settings.

    def blob(self) -> str:
        """A blob or its use."""
        name = self.one_of("b0", "b0", "b1")
        if self.is_rare(0.3):
            table = self.one_of("t", "t", "t", "u", "gone", "v", "x\\0")
            column = self.one_of("a", "b", "b", "c", "c", "gone")
            row = self.one_of("1", "1", "2", "3", "99", "-1", "2**63", "'x'", "True")
            options = self.one_of(
                "", "", "", ", readonly=True", ", name='main'", ", name='temp'", ", name='gone'",
                ", readonly=Truth(1)",
            )  # fmt: skip
            connection = self.connection_name()
            return f"{name} = {connection}.blobopen('{table}', '{column}', {row}{options})"
        if self.is_rare(0.1):
            return (
                f"c0.execute('INSERT OR REPLACE INTO t(a, b, c) VALUES (?, ?, ?)', "
                f"({self.chance.randrange(1, 4)}, b'0123456789', 'abcdef'))"
            )
        index = self.one_of(
            "0", "1", "-1", "5", "9", "10", "-10", "-11", "2**70", "-2**70", "True", "Index(2)",
            "'x'", "1.5", "None", ":", "1:3", "3:1", "::2", "::-1", "-3:", "5:100", "1:9:3",
            "8:2:-2", "::0", "'a':", "Index(1):Index(4)", "...",
        )  # fmt: skip
        value = self.one_of(
            "65", "0", "255", "256", "-1", "b'x'", "b'ab'", "b'0123456789'", "b'abcde'",
            "bytearray(2)", "'x'", "None", "1.5", "2**70", "Int(66)", "True", "Index(67)", "b''",
            "memoryview(b'xy')", "array.array('H', [1])", "memoryview(b'abcdefghij')[::2]",
            "b'xyz'",
        )  # fmt: skip
        number = self.one_of(
            "0", "1", "3", "-1", "100", "-5", "2**40", "2**31-1", "'x'", "None", "True"
        )
        return self.one_of(
            f"{name}[{index}]",
            f"{name}[{index}]",
            f"{name}[{index}] = {value}",
            f"{name}[{index}] = {value}",
            f"{name}.read({number})",
            f"{name}.read()",
            f"{name}.write({value})",
            f"{name}.write({value})",
            f"{name}.seek({number})",
            f"{name}.seek({number}, {self.one_of('0', '1', '2', '3', '-1')})",
            f"{name}.tell()",
            f"len({name})",
            f"{name}.close()",
            f"with {name}:\n    {name}.read(1)",
            f"{name}.__exit__(None, None, None)",
            f"{name}.__enter__() is {name}",
            f"del {name}[{self.one_of('0', '1:2')}]",
            f"{self.one_of('1', 'None')} in {name}",
            f"list({name})",
            f"bool({name})",
            f"bytes({name})",
            f"iter({name})",
            f"hash({name}) and None",
            f"{name} == {name}",
            "sqlite3.Blob()",
        )

    def backup(self) -> str:
        """A backup between connections."""
        source, target = self.connection_name(), self.one_of("c0", "c1", "c1", "c2", "5", "None")
        options = "".join(
            self.chance.choices(
                (
                    "", ", pages=1", ", pages=0", ", pages=-1", ", progress=noting(None), pages=1",
                ", progress=raising(KeyError('p'))", ", progress=5", ", pages=2", ", name='main'",
                    ", name='temp'", ", name='gone'", ", name='other'", ", sleep=0", ", sleep=-1",
                    ", sleep='x'", f", progress=acting(lambda: {self.values.action()}, 0)",
                    ", pages='x'", ", sleep=float('nan')", ", pages=2**40",
                    ", progress=acting(lambda: c1.close(), 0), pages=1",
                    ", progress=acting(lambda: c0.execute('DELETE FROM t'), 0), pages=1",
                ),
                k=self.chance.choice([0, 1, 1, 2]),
            )
        )  # fmt: skip
        if "progress" not in options:
            options += ", progress=patience(20)"
        if "sleep" not in options:
            options += ", sleep=0.001"
        return f"{source}.backup({once(f'{target}{options}')})"

    def serialize(self) -> str:
        """Databases as bytes."""
        name = self.connection_name()
        schema = self.one_of(
            "", "", "", "name='main'", "name='temp'", "name='gone'", "name='other'"
        )
        other = self.connection_name()
        junk = self.one_of("b''", "b'junk' * 300", "5", "None", "'x'")
        wrong = self.one_of("5", "name=5", "name=None", "'main'", "x=1")
        return self.one_of(
            f"len({name}.serialize({schema}))",
            f"{name}.deserialize({other}.serialize({schema}))",
            f"{name}.deserialize({other}.serialize())",
            f"{name}.deserialize({other}.serialize(), name={self.one_of('main', 'temp', 'x')!r})",
            f"{name}.deserialize({junk})",
            f"{name}.deserialize(bytearray({other}.serialize()))",
            f"{name}.deserialize(memoryview({other}.serialize())[::2])",
            f"{name}.serialize({wrong})",
            f"{name}.execute('SELECT * FROM t').fetchone()",
        )

    def limit(self) -> str:
        """Run-time limits."""
        category = self.one_of(
            "0", "1", "2", "3", "7", "8", "9", "10", "11", "12", "-1", "'x'", "2**40"
        )
        value = self.one_of("10", "100", "-1", "5", "1000000", "2**40", "'x'", "0", "30")
        return self.one_of(
            f"{self.connection_name()}.getlimit({category})",
            f"{self.connection_name()}.setlimit({category}, {value})",
            "c0.setlimit(9, 2)",
            "c0.setlimit(1, 40)",
            "c0.setlimit(0, 1000)",
        )

    def config(self) -> str:
        """SQLite's switches."""
        switch = self.one_of(
            "1002", "1003", "1007", "1010", "1011", "1013", "1014", "1017", "5", "'x'"
        )
        value = self.one_of("", ", True", ", False", ", 0", ", Truth(True)", ", Truth(KeyError())")
        return self.one_of(
            f"{self.connection_name()}.getconfig({switch})",
            f"{self.connection_name()}.setconfig({switch}{value})",
        )

    # Rows, errors, the module.

    def row(self) -> str:
        """A ``Row`` and its operations."""
        if self.is_rare(0.4):
            return self.one_of(
                f"{self.cursor_name()}.row_factory = sqlite3.Row",
                f"r0 = {self.cursor_name()}.fetchone()",
                f"r1 = {self.cursor_name()}.fetchone()",
                "c0.row_factory = sqlite3.Row; r0 = c0.execute('SELECT 1 AS a, 3 AS é').fetchone()",
                "r1 = sqlite3.Row(c0.execute('SELECT 1 AS a, 2 AS B'), (1, 2))",
                "r0 = sqlite3.Row(k0, (1, 2, 3))",
                "r0 = sqlite3.Row(k0, ())",
                "r1 = MyRow(c0.execute('SELECT 1 AS x'), ([],))",
                "sqlite3.Row(5, ())",
                "sqlite3.Row(k0, [1])",
                "sqlite3.Row()",
            )
        key = self.one_of(
            "0", "1", "-1", "5", "-9", "2**70", "'a'", "'A'", "'b'", "'é'", "'É'", "'gone'", "1.5",
            "None", ":", "::-1", "0:1", "True", "Index(0)", "'a\\0'", "b'a'", "'\\ud800'",
            "Str('a')", "(1,)",
        )  # fmt: skip
        name = self.one_of("r0", "r0", "r1")
        return self.one_of(
            f"{name}[{key}]",
            f"{name}[{key}]",
            f"{name}[{key}]",
            f"{name}.keys()",
            f"len({name})",
            f"list({name})",
            f"tuple({name})",
            f"dict({name})",
            "r0 == r1",
            "r0 != r1",
            "r0 < r1",
            f"{name} == tuple({name})",
            f"hash({name}) == hash({name})",
            "hash(r0) == hash(r1)",
            f"{{{name}: 1}}[{name}]",
            f"1 in {name}",
            f"{name}.gone",
            f"{name}[0] = 1",
            f"del {name}[0]",
            f"isinstance({name}, collections.abc.Sequence)",
            f"copy.copy({name})",
            f"list(reversed({name}))",
            f"{name} + {name}",
            f"{name} * 2",
            f"{name}.index(1)",
            f"{name}.count(1)",
            f"k0.execute('SELECT ?, ?', {name}).fetchone()",
            f"operator.index({name})",
            f"(lambda a, *b: b)(*{name})",
        )

    def misuse(self) -> str:
        """Calls with wrong arguments."""
        name = self.one_of(self.cursor_name(), self.connection_name())
        call = self.one_of(
            "execute()", "execute(5)", "execute(None)", "execute(b'SELECT 1')",
            "execute('SELECT 1', 1, 2)", "execute(sql='SELECT 1')", "executemany('SELECT 1')",
            "executemany()", "executescript()", "executescript(b'')",
            "executescript('SELECT 1\\0')", "executescript('\\ud800')", "executemany(5, [])",
            "executemany('DELETE FROM t', parameters=[])", "fetchone(1)",
            "execute(Str('SELECT 1'))", "executescript(Str('SELECT 1'))", "executescript(None)",
            "create_function('f')", "create_function()", "create_function('f', 1, len, True)",
            "create_function(name='f', narg=1, func=len)", "create_aggregate('f', 1)",
            "create_aggregate(name='f', n_arg=1, aggregate_class=Summing)", "create_collation('f')",
            "create_collation(name='f', callback=len)", "set_authorizer()",
            "set_authorizer(len, 1)", "set_authorizer(authorizer_callback=None)",
            "set_progress_handler(None)", "set_trace_callback()",
            "set_progress_handler(progress_handler=None, n=1)",
            "set_trace_callback(trace_callback=None)", "commit(1)", "rollback(x=1)", "close(1)",
            "interrupt(1)", "cursor(1, 2)", "backup()", "backup(target=5)", "blobopen()",
            "blobopen('t', 'a')", "blobopen(table='t', column='a', row=1)", "serialize(1)",
            "deserialize()", "getlimit()", "setlimit(1)", "setlimit(1, 2, 3)", "fetchmany(1, 2)",
            "fetchmany(x=1)", "setinputsizes()", "gone", "gone()", "__init__()", "__init__(5)",
            "__enter__(1)", "__exit__()", "isolation_level = 'x'", "total_changes = 1",
            "in_transaction = 1", "rowcount = 1", "description = 1", "lastrowid = 1",
            "connection = 1", "new_attribute = 1", "Error is sqlite3.Error",
            "execute('SELECT ?', parameters=(1,))", "create_function('f', 1, len, deterministic=1)",
            "create_window_function('w', 1)", "create_window_function('w', 1, Summing, 2)",
        )  # fmt: skip
        return f"{name}.{call}"

    def attribute(self) -> str:
        """Reads something."""
        name = self.one_of(self.cursor_name(), self.connection_name())
        return f"{name}." + self.one_of(
            "total_changes", "in_transaction", "isolation_level", "row_factory", "text_factory",
            "description", "rowcount", "lastrowid", "arraysize", "connection", "__class__.__name__",
            "__doc__ is None", "OperationalError.__name__", "interrupt()", "__sizeof__() > 0",
        )  # fmt: skip

    def module(self) -> str:
        """The module's own functions."""
        choices = [
            "sqlite3.enable_callback_tracebacks(True)",
            "sqlite3.enable_callback_tracebacks(True)",
            "sqlite3.enable_callback_tracebacks(False)",
            "sqlite3.apilevel, sqlite3.paramstyle",
            "sqlite3.Binary(b'x')",
            "sqlite3.DateFromTicks(5)",
            "sqlite3.TimestampFromTicks('x')",
            "sqlite3.connect()",
            "sqlite3.Connection()",
            "sqlite3.Connection.__new__(sqlite3.Connection).cursor()",
            "pickle.dumps(c0)",
            "copy.copy(k0)",
            "sqlite3.Date is datetime.date",
        ]
        if "complete_statement" in self.features:
            text = self.one_of(
                "'SELECT 1;'", "'SELECT'", "'CREATE TRIGGER x BEGIN SELECT 1;'", "5", "''"
            )
            choices.append(f"sqlite3.complete_statement({text})")
        if "adapt" in self.features:
            choices += [
                f"sqlite3.adapt({self.values.value()})",
                f"sqlite3.adapt({self.values.value()}, sqlite3.PrepareProtocol, 5)",
                f"sqlite3.adapt({self.values.value()}, None)",
            ]
        if "constants" in self.features:
            choices += [
                "sqlite3.SQLITE_BUSY_SNAPSHOT, sqlite3.SQLITE_DENY, sqlite3.SQLITE_IGNORE",
                "sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, sqlite3.PARSE_COLNAMES",
            ]
        return self.chance.choice(choices)

    def error(self) -> str:
        """What an error carries."""
        action = self.execution("c0")
        return self.one_of(
            f"outcome_of(lambda: {action})",
            f"try:\n    {action}\nexcept sqlite3.Error as e:\n"
            "    note(e.args, getattr(e, 'sqlite_errorcode', 0), hasattr(e, 'sqlite_errorname'))",
            f"try:\n    {action}\nexcept sqlite3.Error as e:\n"
            "    note(shape(pickle.loads(pickle.dumps(e))))",
            "[e.__mro__[1].__name__ for e in (sqlite3.Error, sqlite3.DataError, sqlite3.Warning)]",
        )

    # What may not exist yet.

    def adapter(self) -> str:
        """An adapter."""
        body = self.one_of(
            "lambda p: p.x", "raising(KeyError('adapter'))", "lambda p: object()", "lambda p: None",
            "5", f"lambda p: {self.values.action()}", "lambda p: p", "lambda p: Point(2)", "str",
        )  # fmt: skip
        kind = self.one_of("Point", "Point", "Point", "Str", "Int", "Float", "Bytes", "5", "List")
        return self.one_of(
            f"sqlite3.register_adapter({kind}, {body})",
            f"{self.cursor_name()}.execute('SELECT ?, ?', (Point(3), Str('x'))).fetchone()",
            f"{self.cursor_name()}.execute('INSERT INTO t(b) VALUES (:p)', {{'p': Point('q')}})",
            f"{self.cursor_name()}.executemany('INSERT INTO t(b) VALUES (?)', "
            "[(Point(n),) for n in 'xyz'])",
        )

    def converter(self) -> str:
        """A converter."""
        body = self.one_of(
            "lambda b: b", "lambda b: b.decode()", "raising(KeyError('converter'))", "int", "len",
            "5", "None", f"lambda b: {self.values.action()}",
            f"acting(lambda: {self.values.action()}, 1)", "noting(3)",
            "at_call(2, raising(ValueError('second')), 'first')",
        )  # fmt: skip
        name = self.one_of(
            "'point'", "'POINT'", "'mine'", "'conv'", "'INT'", "'timestamp'", "5", "'é'", "'x y'"
        )
        sql = self.one_of(
            "SELECT a, b, c FROM t", 'SELECT 1 AS "n [point]", NULL AS "m [mine]"',
            "SELECT * FROM t", 'SELECT a AS "x [mine]" FROM t',
            "SELECT '2020-02-03' AS \"d [date]\"", 'SELECT 5 AS "[int]"',
            'SELECT \'2020-02-03 04:05:06.7\' AS "d [timestamp]"',
            'SELECT \'x\' AS "d [timestamp]"', 'SELECT 1 AS "a [b"', 'SELECT 1 AS "a]b["',
            "INSERT INTO t VALUES (1, 2, 3) RETURNING a, b", 'SELECT 1 AS "n [point] [mine]"',
            'SELECT 1 AS "x[point]"', "SELECT CAST(1 AS point)",
        )  # fmt: skip
        return self.one_of(
            f"sqlite3.register_converter({name}, {body})",
            f"sqlite3.register_converter({name}, {body})",
            f"c0 = sqlite3.connect(':memory:', detect_types={self.one_of('0', '1', '2', '3')}); "
            f"c0.executescript({SCHEMAS[5]!r}); k0 = c0.cursor()",
            f"{self.cursor_name()}.execute({sql!r}).fetchall()",
            f"{self.cursor_name()}.execute({sql!r})",
        )

    def iterdump(self) -> str:
        """SQL that makes the database again."""
        name = self.connection_name()
        return self.one_of(
            f"list({name}.iterdump())",
            f"'\\n'.join({name}.iterdump())",
            f"next({name}.iterdump())",
            f"c2 = sqlite3.connect(':memory:'); c2.executescript(''.join({name}.iterdump()))",
            f"list({name}.iterdump(filter='t%'))" if "iterdump_filter" in self.features else "1",
        )

    def autocommit(self) -> str:
        """The ``autocommit`` attribute."""
        name = self.connection_name()
        odd = self.one_of("-1", "5", "None", "1", "0", "Index(1)")
        usual = self.one_of("True", "False", "sqlite3.LEGACY_TRANSACTION_CONTROL")
        return self.one_of(
            f"{name}.autocommit",
            f"{name}.autocommit = {odd}",
            f"{name}.autocommit = {usual}",
        )

    def call(self) -> str:
        """A connection that is called."""
        sql = self.one_of(
            "'SELECT 1'", "'nonsense'", "''", "'SELECT 1; SELECT 2'", "5", "'SELECT ?'"
        )
        name = self.connection_name()
        return self.one_of(
            f"shape({name}({sql}))", f"{self.cursor_name()}.execute({name}({sql}))", f"{name}()",
            f"{name}({sql}, 1)",
        )  # fmt: skip

    def load_extension(self) -> str:
        """Loading of extensions, which always fails here."""
        return f"{self.connection_name()}." + self.one_of(
            "enable_load_extension(True)", "enable_load_extension(False)",
            "load_extension('/gone')", "enable_load_extension(Truth(KeyError()))",
            "load_extension(5)", "load_extension('x\\0')",
        )  # fmt: skip


def once(arguments: str) -> str:
    """The arguments without a keyword's repetitions, which would not compile."""
    if compiles(arguments):
        return arguments
    kept: dict[str, str] = {}
    for part in re.split(r", (?=\w+=)", arguments):
        keyword, equals, _ = part.partition("=")
        kept[keyword if equals and keyword.isidentifier() else part] = part
    return ", ".join(kept.values())


def compiles(arguments: str) -> bool:
    """Whether these are arguments of a call."""
    try:
        compile(f"f({arguments})", "arguments", "eval")
    except SyntaxError:
        return False
    return True


def case_of(seed: int, features: frozenset[str]) -> Case:
    """The case of a seed, for drivers with these features."""
    return Generator(seed, features).case()
