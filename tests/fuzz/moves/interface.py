"""The interface itself: wrong arguments, attributes, the module, errors."""

from tests.fuzz.moves.hand import Hand


def misuse(hand: Hand) -> str:
    """Calls with wrong arguments."""
    name = hand.one_of(hand.cursor_name(), hand.connection_name())
    call = hand.one_of(
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


def attribute(hand: Hand) -> str:
    """Reads something."""
    name = hand.one_of(hand.cursor_name(), hand.connection_name())
    return f"{name}." + hand.one_of(
        "total_changes", "in_transaction", "isolation_level", "row_factory", "text_factory",
        "description", "rowcount", "lastrowid", "arraysize", "connection", "__class__.__name__",
        "__doc__ is None", "OperationalError.__name__", "interrupt()", "__sizeof__() > 0",
    )  # fmt: skip


def module(hand: Hand) -> str:
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
    if "complete_statement" in hand.features:
        text = hand.one_of(
            "'SELECT 1;'", "'SELECT'", "'CREATE TRIGGER x BEGIN SELECT 1;'", "5", "''"
        )
        choices.append(f"sqlite3.complete_statement({text})")
    if "adapt" in hand.features:
        choices += [
            f"sqlite3.adapt({hand.values.value()})",
            f"sqlite3.adapt({hand.values.value()}, sqlite3.PrepareProtocol, 5)",
            f"sqlite3.adapt({hand.values.value()}, None)",
        ]
    if "constants" in hand.features:
        choices += [
            "sqlite3.SQLITE_BUSY_SNAPSHOT, sqlite3.SQLITE_DENY, sqlite3.SQLITE_IGNORE",
            "sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, sqlite3.PARSE_COLNAMES",
        ]
    return hand.chance.choice(choices)


def error(hand: Hand) -> str:
    """What an error carries."""
    action = hand.execution("c0")
    return hand.one_of(
        f"outcome_of(lambda: {action})",
        f"try:\n    {action}\nexcept sqlite3.Error as e:\n"
        "    note(e.args, getattr(e, 'sqlite_errorcode', 0), hasattr(e, 'sqlite_errorname'))",
        f"try:\n    {action}\nexcept sqlite3.Error as e:\n"
        "    note(shape(pickle.loads(pickle.dumps(e))))",
        "[e.__mro__[1].__name__ for e in (sqlite3.Error, sqlite3.DataError, sqlite3.Warning)]",
    )
