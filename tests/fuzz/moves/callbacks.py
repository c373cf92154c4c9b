"""What SQLite calls: functions, aggregates, collations, hooks."""

from tests.fuzz.moves.hand import Hand


def result(hand: Hand) -> str:
    """What a callback gives back."""
    return hand.values.value()


def function(hand: Hand) -> str:
    """An SQL function."""
    name = hand.one_of("'f'", "'f'", "'g'", "'h'", "'abs'", "'length'", "'like'", "'x\\0'", "''")
    count = hand.one_of("1", "1", "-1", "-1", "2", "0", "1000", "-2", "200", "'x'")
    body = hand.one_of(
        "len", "lambda *a: a[0]", "lambda *a: repr(a)", f"lambda *a: {result(hand)}",
        f"lambda *a: {result(hand)}", f"noting({result(hand)})", f"noting({result(hand)})",
        f"acting(lambda: {hand.values.action()}, {result(hand)})",
        f"lambda *a: {hand.values.action()}", "at_call(3, raising(KeyError('f')), 4)",
        "raising(ZeroDivisionError('f'))", "raising(MemoryError())", "raising(OverflowError())",
        "raising(sqlite3.IntegrityError('mine'))", "raising(KeyboardInterrupt())", "None", "5",
        "raising(SystemExit(3))", "lambda a: a",
        "lambda *a: c0.execute('SELECT f(1)').fetchone()", "lambda *a: 'é\\ud800'",
        "lambda *a: 'a\\0b'", "lambda *a: nested(3, lambda: 8)",
        "lambda *a: c0.execute('SELECT g(?)', a[:1]).fetchone()[0]", "max", "type", "hex",
        "lambda *a: in_thread(lambda: 3)", "lambda *a: a[0].decode()", "lambda *a: a[0] + 1",
    )  # fmt: skip
    deterministic = hand.one_of("", "", "", ", deterministic=True", ", deterministic=Truth(1)")
    return f"{hand.connection_name()}.create_function({name}, {count}, {body}{deterministic})"


def aggregate(hand: Hand) -> str:
    """An aggregate or window function."""
    body = hand.one_of(
        "Summing", "Summing", "BadInit", "BadStep", "BadLaterStep", "BadInverse", "BadValue",
        "BadFinalize", "OddResult", "NoFinalize", "NoStep", "Noting", "Noting", "None", "5",
        "lambda: 5", "lambda: Noting()",
    )  # fmt: skip
    name = hand.one_of("'agg'", "'agg'", "'w'", "'f'", "'sum'", "'count'")
    count = hand.one_of("1", "1", "-1", "2", "0", "2000")
    method = hand.one_of("create_aggregate", "create_window_function")
    if hand.is_rare(0.4):
        sql = hand.one_of(
            "SELECT agg(a) FROM t", "SELECT agg(a) FROM t WHERE 0", "SELECT agg(a, b) FROM t",
            "SELECT agg(a) FROM t GROUP BY b", "SELECT a, agg(a) OVER (ORDER BY a) FROM t",
            "SELECT agg(a) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t",
            "SELECT w(a) OVER (ROWS 1 PRECEDING) FROM t",
            "SELECT agg(a) FILTER (WHERE a > 1) " "FROM t",
            "SELECT agg(1), agg(2), agg(a) FROM t",
        )  # fmt: skip
        fetch = hand.one_of(".fetchall()", ".fetchone()", "")
        return f"{hand.cursor_name()}.execute({sql!r}){fetch}"
    return f"{hand.connection_name()}.{method}({name}, {count}, {body})"


def collation(hand: Hand) -> str:
    """A collation, or its use."""
    if hand.is_rare(0.5):
        sql = hand.one_of(
            "SELECT b FROM t ORDER BY b COLLATE mine", "SELECT max(b COLLATE mine) FROM t",
            "SELECT 'a' = 'b' COLLATE mine", "SELECT 'ä' < 'b' COLLATE mine",
            "CREATE INDEX ci ON t(b COLLATE mine)",
            "SELECT CAST(x'ff' AS TEXT) < 'b' COLLATE mine",
        )  # fmt: skip
        return f"{hand.cursor_name()}.execute({sql!r}).fetchall()"
    body = hand.one_of(
        "reverse", "reverse", "None", "noting(0)", "raising(KeyError('c'))", "lambda a, b: 'x'",
        "lambda a, b: None", "lambda a, b: 2**70", "lambda a, b: -2**70", "lambda a, b: 1.5",
        f"acting(lambda: {hand.values.action()}, 1)", "lambda a: 1", "5", "lambda a, b: Int(1)",
        "lambda a, b: Index(1)", "lambda a, b: True",
    )  # fmt: skip
    name = hand.one_of("'mine'", "'mine'", "'mine'", "'nocase'", "'é'", "'\\ud800'", "'a\\0'", "5")
    return f"{hand.connection_name()}.create_collation({name}, {body})"


def authorizer(hand: Hand) -> str:
    """An authorizer."""
    body = hand.one_of(
        "None", "None", "noting(0)", "noting(0)", "lambda *a: 1", "lambda *a: 2",
        "lambda *a: 0", "raising(KeyError('a'))", "lambda *a: None", "lambda *a: 'x'",
        "lambda *a: 2**40", "lambda *a: 2 if a[0] == 20 and a[2] == 'b' else 0",
        "lambda *a: True", "lambda *a: 7", "lambda *a: 1 if a[0] == 22 else 0",
        "lambda *a: 1 if a[0] == 9 else 0", "5", "lambda *a: 0.0", "lambda *a: Int(0)",
        "at_call(3, raising(ValueError('a')), 0)",
    )  # fmt: skip
    return f"{hand.connection_name()}.set_authorizer({body})"


def progress(hand: Hand) -> str:
    """A progress handler."""
    body = hand.one_of(
        "None", "None", "counting(0)", "counting(None)", "lambda: 1", "raising(KeyError('p'))",
        "at_call(5, lambda: True, 0)", "lambda: Truth(KeyError('b'))", "lambda: Truth(False)",
        "lambda *a: ''", "lambda x: 0", "5", "at_call(3, lambda: c0.interrupt(), 0)",
        "at_call(2, raising(KeyboardInterrupt()), 0)",
    )  # fmt: skip
    count = hand.one_of("1", "5", "10", "100", "0", "-1", "3000", "'x'", "2**40")
    return f"{hand.connection_name()}.set_progress_handler({body}, {count})"


def trace(hand: Hand) -> str:
    """A trace callback."""
    body = hand.one_of(
        "None", "noting(None)", "noting(None)", "noting(None)", "raising(KeyError('t'))", "5",
    )  # fmt: skip
    return f"{hand.connection_name()}.set_trace_callback({body})"
