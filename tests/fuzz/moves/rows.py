"""``Row`` and its operations."""

from tests.fuzz.moves.hand import Hand


def row(hand: Hand) -> str:
    """A ``Row`` and its operations."""
    if hand.is_rare(0.4):
        return hand.one_of(
            f"{hand.cursor_name()}.row_factory = sqlite3.Row",
            f"r0 = {hand.cursor_name()}.fetchone()",
            f"r1 = {hand.cursor_name()}.fetchone()",
            "c0.row_factory = sqlite3.Row; r0 = c0.execute('SELECT 1 AS a, 3 AS é').fetchone()",
            "r1 = sqlite3.Row(c0.execute('SELECT 1 AS a, 2 AS B'), (1, 2))",
            "r0 = sqlite3.Row(k0, (1, 2, 3))",
            "r0 = sqlite3.Row(k0, ())",
            "r1 = MyRow(c0.execute('SELECT 1 AS x'), ([],))",
            "sqlite3.Row(5, ())",
            "sqlite3.Row(k0, [1])",
            "sqlite3.Row()",
        )
    key = hand.one_of(
        "0", "1", "-1", "5", "-9", "2**70", "'a'", "'A'", "'b'", "'é'", "'É'", "'gone'", "1.5",
        "None", ":", "::-1", "0:1", "True", "Index(0)", "'a\\0'", "b'a'", "'\\ud800'",
        "Str('a')", "(1,)",
    )  # fmt: skip
    name = hand.one_of("r0", "r0", "r1")
    return hand.one_of(
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
