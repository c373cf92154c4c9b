"""A database's content as a whole: blobs, backups, bytes, SQL text."""

from tests.fuzz.moves.arguments import once
from tests.fuzz.moves.hand import Hand


def blob(hand: Hand) -> str:
    """A blob or its use."""
    name = hand.one_of("b0", "b0", "b1")
    if hand.is_rare(0.3):
        table = hand.one_of("t", "t", "t", "u", "gone", "v", "x\\0")
        column = hand.one_of("a", "b", "b", "c", "c", "gone")
        row = hand.one_of("1", "1", "2", "3", "99", "-1", "2**63", "'x'", "True")
        options = hand.one_of(
            "", "", "", ", readonly=True", ", name='main'", ", name='temp'", ", name='gone'",
            ", readonly=Truth(1)",
        )  # fmt: skip
        connection = hand.connection_name()
        return f"{name} = {connection}.blobopen('{table}', '{column}', {row}{options})"
    if hand.is_rare(0.1):
        return (
            f"c0.execute('INSERT OR REPLACE INTO t(a, b, c) VALUES (?, ?, ?)', "
            f"({hand.chance.randrange(1, 4)}, b'0123456789', 'abcdef'))"
        )
    index = hand.one_of(
        "0", "1", "-1", "5", "9", "10", "-10", "-11", "2**70", "-2**70", "True", "Index(2)",
        "'x'", "1.5", "None", ":", "1:3", "3:1", "::2", "::-1", "-3:", "5:100", "1:9:3",
        "8:2:-2", "::0", "'a':", "Index(1):Index(4)", "...",
    )  # fmt: skip
    value = hand.one_of(
        "65", "0", "255", "256", "-1", "b'x'", "b'ab'", "b'0123456789'", "b'abcde'",
        "bytearray(2)", "'x'", "None", "1.5", "2**70", "Int(66)", "True", "Index(67)", "b''",
        "memoryview(b'xy')", "array.array('H', [1])", "memoryview(b'abcdefghij')[::2]",
        "b'xyz'",
    )  # fmt: skip
    number = hand.one_of(
        "0", "1", "3", "-1", "100", "-5", "2**40", "2**31-1", "'x'", "None", "True"
    )
    return hand.one_of(
        f"{name}[{index}]",
        f"{name}[{index}]",
        f"{name}[{index}] = {value}",
        f"{name}[{index}] = {value}",
        f"{name}.read({number})",
        f"{name}.read()",
        f"{name}.write({value})",
        f"{name}.write({value})",
        f"{name}.seek({number})",
        f"{name}.seek({number}, {hand.one_of('0', '1', '2', '3', '-1')})",
        f"{name}.tell()",
        f"len({name})",
        f"{name}.close()",
        f"with {name}:\n    {name}.read(1)",
        f"{name}.__exit__(None, None, None)",
        f"{name}.__enter__() is {name}",
        f"del {name}[{hand.one_of('0', '1:2')}]",
        f"{hand.one_of('1', 'None')} in {name}",
        f"list({name})",
        f"bool({name})",
        f"bytes({name})",
        f"iter({name})",
        f"hash({name}) and None",
        f"{name} == {name}",
        "sqlite3.Blob()",
    )


def backup(hand: Hand) -> str:
    """A backup between connections."""
    source, target = hand.connection_name(), hand.one_of("c0", "c1", "c1", "c2", "5", "None")
    options = "".join(
        hand.chance.choices(
            (
                "", ", pages=1", ", pages=0", ", pages=-1", ", progress=noting(None), pages=1",
            ", progress=raising(KeyError('p'))", ", progress=5", ", pages=2", ", name='main'",
                ", name='temp'", ", name='gone'", ", name='other'", ", sleep=0", ", sleep=-1",
                ", sleep='x'", f", progress=acting(lambda: {hand.values.action()}, 0)",
                ", pages='x'", ", sleep=float('nan')", ", pages=2**40",
                ", progress=acting(lambda: c1.close(), 0), pages=1",
                ", progress=acting(lambda: c0.execute('DELETE FROM t'), 0), pages=1",
            ),
            k=hand.chance.choice([0, 1, 1, 2]),
        )
    )  # fmt: skip
    if "progress" not in options:
        options += ", progress=patience(20)"
    if "sleep" not in options:
        options += ", sleep=0.001"
    return f"{source}.backup({once(f'{target}{options}')})"


def serialize(hand: Hand) -> str:
    """Databases as bytes."""
    name = hand.connection_name()
    schema = hand.one_of("", "", "", "name='main'", "name='temp'", "name='gone'", "name='other'")
    other = hand.connection_name()
    junk = hand.one_of("b''", "b'junk' * 300", "5", "None", "'x'")
    wrong = hand.one_of("5", "name=5", "name=None", "'main'", "x=1")
    return hand.one_of(
        f"len({name}.serialize({schema}))",
        f"{name}.deserialize({other}.serialize({schema}))",
        f"{name}.deserialize({other}.serialize())",
        f"{name}.deserialize({other}.serialize(), name={hand.one_of('main', 'temp', 'x')!r})",
        f"{name}.deserialize({junk})",
        f"{name}.deserialize(bytearray({other}.serialize()))",
        f"{name}.deserialize(memoryview({other}.serialize())[::2])",
        f"{name}.serialize({wrong})",
        f"{name}.execute('SELECT * FROM t').fetchone()",
    )


def iterdump(hand: Hand) -> str:
    """SQL that makes the database again."""
    name = hand.connection_name()
    return hand.one_of(
        f"list({name}.iterdump())",
        f"'\\n'.join({name}.iterdump())",
        f"next({name}.iterdump())",
        f"c2 = sqlite3.connect(':memory:'); c2.executescript(''.join({name}.iterdump()))",
        f"list({name}.iterdump(filter='t%'))" if "iterdump_filter" in hand.features else "1",
    )
