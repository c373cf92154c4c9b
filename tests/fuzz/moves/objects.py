"""The life of objects: factories, cursors, closing, letting go, other threads."""

from tests.fuzz.moves.hand import Hand


def factory(hand: Hand) -> str:
    """Row and text factories."""
    owner = hand.one_of(hand.connection_name(), hand.connection_name(), hand.cursor_name())
    if hand.is_rare(0.6):
        factory = hand.one_of(
            "sqlite3.Row", "sqlite3.Row", "None", "as_dict", "lambda c, r: r", "MyRow", "5",
            "raising(KeyError('row'))", "lambda c, r: Row", "lambda c, r: c", "tuple", "dict",
            f"acting(lambda: {hand.values.action()}, 3)", "noting('made')",
            f"lambda c, r: {hand.values.action()}", "lambda c, r: c.fetchone()",
            f"at_call(2, raising(ValueError('second')), {hand.values.value()})",
        )  # fmt: skip
        return f"{owner}.row_factory = {factory}"
    factory = hand.one_of(
        "str", "bytes", "bytearray", "None", "Str", "5", "lambda b: b.decode('latin-1')",
        "lambda b: b.decode('utf-8', 'replace')", "raising(KeyError('text'))", "len",
        f"lambda b: {hand.values.action()}", f"acting(lambda: {hand.values.action()}, 'x')",
        "at_call(2, raising(ValueError('second')), 'fine')", "noting('made')", "int",
    )  # fmt: skip
    return f"{owner}.text_factory = {factory}"


def cursor(hand: Hand) -> str:
    """A new cursor, or the same one made anew."""
    name, connection = hand.new_cursor_name(), hand.connection_name()
    argument = hand.one_of(
        "", "", "", "", "MyCursor", "sqlite3.Cursor", "None", "lambda c: 5", "5",
        "factory=MyCursor", "lambda c: k0", "raising(KeyError('cursor'))",
        "lambda c: c.cursor()",
    )  # fmt: skip
    return hand.one_of(
        f"{name} = {connection}.cursor({argument})",
        f"{name} = {connection}.cursor({argument})",
        f"{name} = sqlite3.Cursor({connection})",
        f"{name}.__init__({connection})",
        f"{name} = {hand.one_of('MyCursor', 'sqlite3.Cursor')}({connection})",
        f"{name}.arraysize = {hand.one_of('0', '1', '3', '-1', '1.5', 'None', 'True')}",
        f"{name}.setinputsizes({hand.one_of('1', '[None]', '')})",
        f"{name}.setoutputsize({hand.one_of('1', '1, 2', '')})",
        f"{name}.connection is {connection}",
        "LazyCursor(c0).fetchone()",
        "LazyCursor(c0).execute('SELECT 1')",
        f"{name} = weakref.ref({name})() and {name}",
        f"sqlite3.Cursor({hand.one_of('5', '', 'None', 'c0, c0')})",
    )


def close(hand: Hand) -> str:
    """Closes something."""
    return hand.one_of(
        f"{hand.cursor_name()}.close()",
        f"{hand.cursor_name()}.close()",
        f"{hand.cursor_name()}.close()",
        f"{hand.connection_name()}.close()",
        f"{hand.connection_name()}.close(); {hand.connection_name()}.close()",
    )


def delete_name(hand: Hand) -> str:
    """Lets go of something, in any order."""
    name = hand.one_of(
        hand.cursor_name(), hand.cursor_name(), hand.connection_name(), "b0", "r0",
    )  # fmt: skip
    return hand.one_of(
        f"{name} = None",
        f"{name} = None",
        "(gc.collect(), None)[1]",
        f"{name} = None; gc.collect()",
        f"del {name}",
        f"k3 = Dying(lambda: {hand.values.action()}); k3.me = k3; k3.c = {name}; k3 = None",
        "k3 = None; gc.collect()",
    )


def thread(hand: Hand) -> str:
    """Something done in another thread."""
    action = hand.one_of(
        hand.execution(hand.cursor_name()) + ".fetchall()",
        hand.execution(hand.connection_name()) + ".fetchall()",
        f"{hand.connection_name()}.{hand.one_of('commit()', 'close()', 'total_changes')}",
        f"{hand.connection_name()}.{hand.one_of('interrupt()', 'in_transaction', 'cursor()')}",
        f"{hand.cursor_name()}.{hand.one_of('fetchall()', 'close()', 'description')}",
        f"{hand.one_of('b0.read()', 'b0.close()', 'b0[0]', 'len(b0)', 'r0[0]')}",
        f"globals().pop({hand.one_of('k0', 'k1', 'c1', 'b0')!r}, None)",
        f"{hand.connection_name()}.{hand.one_of('serialize()', 'rollback()')}",
        f"{hand.connection_name()}.{hand.one_of('__enter__()', 'isolation_level')}",
        f"{hand.connection_name()}.create_function('f', 1, None)",
        hand.values.action(),
    )
    return f"in_thread(lambda: {action})"
