"""Transactions: their ends, their levels, context managers."""

from tests.fuzz.moves.hand import Hand


def transaction(hand: Hand) -> str:
    """Commit, rollback, or their SQL."""
    name = hand.connection_name()
    if hand.is_rare(0.65):
        return f"{name}.{hand.one_of('commit()', 'commit()', 'rollback()')}"
    sql = hand.one_of(
        "BEGIN", "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK", "SAVEPOINT s", "RELEASE s",
        "ROLLBACK TO s",
    )  # fmt: skip
    return f"{hand.one_of(name, hand.cursor_name())}.execute({sql!r})"


def isolation_level(hand: Hand) -> str:
    """Another isolation level."""
    level = hand.one_of(
        "None", "''", "'DEFERRED'", "'IMMEDIATE'", "'exclusive'", "'bad'", "5", "b''",
        "Str('DEFERRED')", "'\\ud800'", "'DEFERRED\\0'",
    )  # fmt: skip
    if hand.is_rare(0.05):
        return f"del {hand.connection_name()}.isolation_level"
    return f"{hand.connection_name()}.isolation_level = {level}"


def with_block(hand: Hand) -> str:
    """A context manager."""
    name = hand.connection_name()
    body = hand.one_of(
        hand.execution(hand.cursor_name()), hand.execution(name), "1/0", f"{name}.close()",
        transaction(hand), f"{name}.execute('INSERT INTO t(b) VALUES (77)')",
    )  # fmt: skip
    if hand.is_rare(0.2):
        return f"with {name}:\n    with {name}:\n        {body}\n    1/0"
    if hand.is_rare(0.2):
        return f"{name}.__exit__({hand.one_of('None, None, None', 'KeyError, None, None', '1')})"
    if hand.is_rare(0.3):
        return f"with contextlib.closing({hand.cursor_name()}) as k3:\n    {body}"
    return f"with {name}:\n    {body}"


def autocommit(hand: Hand) -> str:
    """The ``autocommit`` attribute."""
    name = hand.connection_name()
    odd = hand.one_of("-1", "5", "None", "1", "0", "Index(1)")
    usual = hand.one_of("True", "False", "sqlite3.LEGACY_TRANSACTION_CONTROL")
    return hand.one_of(
        f"{name}.autocommit",
        f"{name}.autocommit = {odd}",
        f"{name}.autocommit = {usual}",
    )
