"""Adapters and converters."""

from tests.fuzz.moves.hand import Hand
from tests.fuzz.sql import SCHEMAS


def adapter(hand: Hand) -> str:
    """An adapter."""
    body = hand.one_of(
        "lambda p: p.x", "raising(KeyError('adapter'))", "lambda p: object()", "lambda p: None",
        "5", f"lambda p: {hand.values.action()}", "lambda p: p", "lambda p: Point(2)", "str",
    )  # fmt: skip
    kind = hand.one_of("Point", "Point", "Point", "Str", "Int", "Float", "Bytes", "5", "List")
    return hand.one_of(
        f"sqlite3.register_adapter({kind}, {body})",
        f"{hand.cursor_name()}.execute('SELECT ?, ?', (Point(3), Str('x'))).fetchone()",
        f"{hand.cursor_name()}.execute('INSERT INTO t(b) VALUES (:p)', {{'p': Point('q')}})",
        f"{hand.cursor_name()}.executemany('INSERT INTO t(b) VALUES (?)', "
        "[(Point(n),) for n in 'xyz'])",
    )


def converter(hand: Hand) -> str:
    """A converter."""
    body = hand.one_of(
        "lambda b: b", "lambda b: b.decode()", "raising(KeyError('converter'))", "int", "len",
        "5", "None", f"lambda b: {hand.values.action()}",
        f"acting(lambda: {hand.values.action()}, 1)", "noting(3)",
        "at_call(2, raising(ValueError('second')), 'first')",
    )  # fmt: skip
    name = hand.one_of(
        "'point'", "'POINT'", "'mine'", "'conv'", "'INT'", "'timestamp'", "5", "'é'", "'x y'"
    )
    sql = hand.one_of(
        "SELECT a, b, c FROM t", 'SELECT 1 AS "n [point]", NULL AS "m [mine]"',
        "SELECT * FROM t", 'SELECT a AS "x [mine]" FROM t',
        "SELECT '2020-02-03' AS \"d [date]\"", 'SELECT 5 AS "[int]"',
        'SELECT \'2020-02-03 04:05:06.7\' AS "d [timestamp]"',
        'SELECT \'x\' AS "d [timestamp]"', 'SELECT 1 AS "a [b"', 'SELECT 1 AS "a]b["',
        "INSERT INTO t VALUES (1, 2, 3) RETURNING a, b", 'SELECT 1 AS "n [point] [mine]"',
        'SELECT 1 AS "x[point]"', "SELECT CAST(1 AS point)",
    )  # fmt: skip
    return hand.one_of(
        f"sqlite3.register_converter({name}, {body})",
        f"sqlite3.register_converter({name}, {body})",
        f"c0 = sqlite3.connect(':memory:', detect_types={hand.one_of('0', '1', '2', '3')}); "
        f"c0.executescript({SCHEMAS[5]!r}); k0 = c0.cursor()",
        f"{hand.cursor_name()}.execute({sql!r}).fetchall()",
        f"{hand.cursor_name()}.execute({sql!r})",
    )
