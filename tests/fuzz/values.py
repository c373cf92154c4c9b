"""Random Python values and parameter containers, as source."""

import random

from tests.fuzz.sql import Statement

PLAIN = [
    "None",
    "0",
    "1",
    "-1",
    "2",
    "3",
    "5",
    "7",
    "True",
    "False",
    "1.5",
    "-0.0",
    "'x'",
    "''",
    "'one'",
    "'text'",
    "'é'",
    "b''",
    "b'x'",
    "b'\\x00\\xff'",
    "13",
    "2**31",
    "2**62",
    "-2**63",
    "2**63-1",
    "1e300",
    "'two\\nlines'",
    "40",
    "41",
    "42",
    "'long'*100",
    "b'long'*2000",
    "'long'*3000",
]

ODD = (
    "2**63-1",
    "2**63", "-2**63-1", "2**200", "10**400", "float('nan')", "float('inf')", "-float('inf')",
    "'\\ud800'", "'a\\0b'", "'\\U0001f600'", "bytearray(b'ba')", "memoryview(b'mv')",
    "memoryview(b'abcdef')[::2]", "array.array('i', [1, 2])", "array.array('u', 'xy')", "Str('s')",
    "Str('\\ud800')", "Int(5)", "Int(2**64)", "Float(2.5)", "Bytes(b'bb')", "object()", "1j", "[1]",
    "(1,)", "{1: 2}", "{1}", "range(3)", "Index(3)", "Truth(True)", "int", "len",
    "decimal.Decimal('1.5')", "Ellipsis", "NotImplemented", "lambda: 1", "c0", "k0", "type",
    "memoryview(b'')", "bytearray()", "memoryview(bytearray(b'xy')).cast('H')", "log",
    "memoryview(b'abc')[::-1]", "memoryview(b'a').cast('B', [])", "buffered(Float)(2.5)",
    "buffered(Int)(6)", "buffered(Str)('bs')", "buffered(Bytes)(b'bb')", "buffered(object)()",
    "enum.IntFlag('Flags', ['A', 'B']).B", "enum.StrEnum('Text', ['A']).A", "uuid.UUID(int=1)",
    "fractions.Fraction(1, 2)", "pathlib.PurePosixPath('/a')", "numpy.float64(1.5)",
    "numpy.str_('ns')", "numpy.bytes_(b'nb')", "numpy.int64(5)", "numpy.float32(0.5)",
    "numpy.bool_(True)", "numpy.datetime64('2020-01-01')", "numpy.arange(3)", "numpy.array(1.5)",
    "numpy.arange(6).reshape(2, 3).T",
)  # fmt: skip

ADAPTED = (
    "datetime.date(2020, 2, 3)", "datetime.datetime(2020, 2, 3, 4, 5, 6)", "Conforming(5)",
    "Conforming(KeyError('conform'))", "Conforming(object())", "Conforming(TypeError('conform'))",
    "Conforming(None)", "Point(1)", "Point('x')", "datetime.datetime(2020, 1, 2, 3, 4, 5, 678)",
    "Conforming(b'x')", "Conforming(2**70)",
)  # fmt: skip


class Values:
    """Writes values."""

    def __init__(self, chance: random.Random, features: frozenset[str]) -> None:
        self.chance = chance
        self.features = features

    def value(self) -> str:
        roll = self.chance.random()
        if roll < 0.85:
            return self.chance.choice(PLAIN)
        if roll < 0.92 and "adapters" in self.features:
            return self.chance.choice(ADAPTED)
        return self.chance.choice(ODD)

    def parameters(self, statement: Statement) -> str | None:
        """Source of the parameters for a statement; None for none at all."""
        count = len(statement.names)
        if count == 0 and self.chance.random() < 0.9:
            return None
        if self.chance.random() < 0.04:
            count = max(0, count + self.chance.choice([-1, 1, 2]))
        if self.chance.random() < 0.05:
            return self.oddity()
        is_named = statement.style in ":@$" and self.chance.random() < 0.93
        if is_named:
            return self.mapping(statement.names)
        return self.sequence(count, count == len(statement.names))

    def sequence(self, count: int, is_right: bool = True) -> str:
        """Source of a sequence; ``is_right`` if the statement takes as many."""
        items = [self.value() for _ in range(count)]
        joined = ", ".join(items)
        as_tuple = f"({joined},)" if count else "()"
        roll = self.chance.random()
        if roll < 0.6:
            return as_tuple
        if roll < 0.8:
            return f"[{joined}]"
        return self.chance.choice(
            (
                f"Tuple({as_tuple})",
                f"List({as_tuple})",
                f"Sequence({joined})",
                f"collections.UserList([{joined}])",
                f"collections.deque([{joined}])",
                f"Liar({count}, {joined})",
                f"Liar({count + 1}, {joined})",
                f"Liar(-1, {joined})",
                f"Liar(KeyError('len'), {joined})",
                f"Liar('x', {joined})",
                f"LyingTuple({as_tuple})",
                f"LyingList({as_tuple})",
                f"items({joined})",
                f"k0.execute('SELECT 1, 2').fetchone() if {count} == 2 else {as_tuple}",
                f"iter([{joined}])",
                f"range({count})",
                f"Asking(lambda: {self.action()})" if is_right and count == 1 else as_tuple,
                f"memoryview(bytes({count}))",
                repr("s" * count),
                repr(b"b" * count),
                f"dict(enumerate({as_tuple}))",
            )
        )

    def mapping(self, names: list[str]) -> str:
        if names and self.chance.random() < 0.05:
            names = names[1:]
        joined = ", ".join(f"{name!r}: {self.value()}" for name in names)
        roll = self.chance.random()
        if roll < 0.7:
            return f"{{{joined}}}"
        return self.chance.choice(
            (
                f"Dict({{{joined}}})",
                f"Missing({{{joined}}})",
                "Missing()",
                f"Mapping(**{{{joined}}})",
                f"Registered(**{{{joined}}})",
                f"LyingDict({{{joined}}})",
                f"collections.ChainMap({{{joined}}})",
                f"collections.OrderedDict({{{joined}}})",
                f"collections.defaultdict(lambda: {self.action()})",
                f"{{'more': 1, {joined}}}",
                f"{{':' + k: v for k, v in {{{joined}}}.items()}}",
            )
        )

    def oddity(self) -> str:
        return self.chance.choice(
            (
                "None", "5", "'ab'", "b'ab'", "object()", "{1, 2}", "k0", "c0", "1.5", "int", "()",
                "{}", "(x for x in (1,))", "iter(())", "set()", "range(2)", "Truth(False)", "''",
                "[]",
            )
        )  # fmt: skip

    def sets(self, statement: Statement) -> str:
        """Source of the parameter sets for executemany."""
        number = self.chance.choice([0, 1, 1, 2, 3, 5])
        sets = [self.parameters(statement) or "()" for _ in range(number)]
        joined = ", ".join(sets)
        asking = f"Asking(lambda: {self.action()})" if len(statement.names) == 1 else "(1,)"
        as_tuple = f"({joined},)" if number else "()"
        roll = self.chance.random()
        if roll < 0.5:
            return f"[{joined}]"
        if roll < 0.6 and number:
            return f"[{sets[0]}] * 70 + [{joined}]"
        return self.chance.choice(
            (
                as_tuple,
                f"items({joined})",
                f"failing({joined})",
                f"iter([{joined}])",
                f"List([{joined}])",
                f"doing(lambda: {self.action()}, {joined})",
                f"doing(lambda: {self.action()}, {joined})",
                f"map(lambda s: s, [{joined}])",
                f"[*{as_tuple}, {asking}]",
                f"{{1: 2}}.items() if {number} else {as_tuple}",
                "5",
                "None",
                "'ab'",
                "{'a': 1}",
                "object()",
                "range(3)",
                "k0",
                "k1.execute('SELECT 1 UNION SELECT 2')",
            )
        )

    def action(self) -> str:
        """Source of an expression that does something to the objects of the case."""
        return self.chance.choice(
            (
                "c0.commit()", "c0.rollback()", "k0.fetchone()", "k1.fetchall()",
                "c0.total_changes", "k0.execute('SELECT 7')", "c0.execute('DELETE FROM t')",
                "c0.in_transaction", "c0.execute('INSERT INTO u VALUES (1, 2, 3)')", "k0.close()",
                "gc.collect()", "c0.execute('SELECT count(*) FROM t').fetchone()[0]",
                "next(k0, None)", "c0.interrupt()", "c0.create_function('f', 1, None)",
                "k0.description", "k0.executemany('INSERT INTO u VALUES (?, 1, 2)', [(1,)])",
                "k0.rowcount", "1/0", "c0.executescript('SELECT 1')",
                "c1.execute('INSERT INTO u VALUES (8, 8, 8)')", "k0.__init__(c0)",
                "in_thread(lambda: k0.fetchone())", "len(list(k1))", "c0.cursor()", "c0.close()",
                "c0.__init__(':memory:')", "k0.lastrowid", "c0.execute('DROP TABLE u')",
                "setattr(c0, 'isolation_level', None)", "c0.set_progress_handler(None, 0)",
                "setattr(k0, 'row_factory', None)", "c0.execute('ROLLBACK')",
                "c0.execute('CREATE TABLE IF NOT EXISTS u(x, y, z)')",
                "c0.backup(c1, progress=patience(5), sleep=0)",
                "k0.execute('SELECT f(1)').fetchall()", "globals().pop('k1', None)",
            )
        )  # fmt: skip
