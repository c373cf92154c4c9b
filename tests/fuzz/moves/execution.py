"""Executing and fetching."""

from tests.fuzz.moves.hand import Hand


def execute(hand: Hand) -> str:
    """``Cursor.execute``, sometimes with its rows."""
    text = hand.execution(hand.cursor_name())
    if hand.is_rare(0.25):
        text += hand.one_of(".fetchall()", ".fetchone()", ".fetchmany(2)")
    return text


def connection_execute(hand: Hand) -> str:
    """``Connection.execute``."""
    text = hand.execution(hand.connection_name())
    if hand.is_rare(0.4):
        return f"{hand.new_cursor_name()} = {text}"
    return text + hand.one_of("", ".fetchall()", ".fetchone()")


def executemany(hand: Hand) -> str:
    """``executemany`` on a cursor or connection."""
    statement = hand.writer.data_modification() if hand.is_rare(0.9) else hand.writer.any()
    target = hand.cursor_name() if hand.is_rare(0.8) else hand.connection_name()
    return f"{target}.executemany({statement.sql!r}, {hand.values.sets(statement)})"


def executescript(hand: Hand) -> str:
    """``executescript`` on a cursor or connection."""
    target = hand.cursor_name() if hand.is_rare(0.6) else hand.connection_name()
    return f"{target}.executescript({hand.writer.script()!r})"


def fetch(hand: Hand) -> str:
    """Rows of a cursor."""
    name = hand.cursor_name()
    return f"{name}." + hand.one_of(
        "fetchone()", "fetchone()", "fetchone()", "fetchall()", "fetchmany()", "fetchmany(2)",
        "fetchmany(0)", "fetchmany(-1)", "fetchmany(size=3)", "__next__()", "__next__()",
        "fetchmany(2**40)", "fetchmany('x')", "fetchmany(Index(2))", "fetchmany(None)",
        "fetchmany(2**64)", "fetchmany(1.0)", "fetchmany(True)", "__iter__()",
    )  # fmt: skip


def loop(hand: Hand) -> str:
    """A loop that stops half-way, or that does something meanwhile."""
    name = hand.cursor_name()
    action = hand.values.action()
    return hand.one_of(
        f"for row in {name}:\n    break",
        f"for row in {name}:\n    note(row)\n    if len(log) > 2: break",
        f"for row in {name}:\n    note(shape({action}))\n    if len(log) > 3: break",
        f"for row in {name}:\n    {action}",
        f"[row for _, row in zip(range(2), {name})]",
        f"list({name})",
        f"list(zip({name}, {hand.cursor_name()}))",
        f"list({hand.execution(name)})",
        f"[({action}, row) for row in {hand.execution(name)}][-1:]",
    )


def call(hand: Hand) -> str:
    """A connection that is called."""
    sql = hand.one_of("'SELECT 1'", "'nonsense'", "''", "'SELECT 1; SELECT 2'", "5", "'SELECT ?'")
    name = hand.connection_name()
    return hand.one_of(
        f"shape({name}({sql}))", f"{hand.cursor_name()}.execute({name}({sql}))", f"{name}()",
        f"{name}({sql}, 1)",
    )  # fmt: skip
