"""Opening: new connections, and the same objects made anew."""

from tests.fuzz.moves.arguments import once
from tests.fuzz.moves.hand import Hand


def connect(hand: Hand, first: bool = False) -> str:
    """A call of ``connect``."""
    options: list[str] = []
    name = hand.one_of(
        "':memory:'", "':memory:'", "path('a.db')", "path('a.db')", "path('b.db')", "''",
        "'file:shared?mode=memory&cache=shared'", "'file:' + path('a.db') + '?mode=ro'",
    )  # fmt: skip
    if "file:" in name:
        options.append("uri=True")
    if "path" in name or "shared" in name:
        options.append(f"timeout={hand.one_of('0', '0', '0.0', '0.005')}")
    if hand.is_rare(0.4):
        level = hand.one_of("None", "''", "'DEFERRED'", "'immediate'", "'EXCLUSIVE'", "'bad'")
        options.append(f"isolation_level={level}")
    if hand.is_rare(0.3):
        options.append(f"cached_statements={hand.one_of('0', '1', '2', '128', '-1')}")
    if hand.is_rare(0.1):
        options.append(f"check_same_thread={hand.one_of('False', '0', 'True')}")
    if hand.is_rare(0.06):
        factory = hand.one_of(
            "MyConnection", "NotingConnection", "OddConnection", "LazyConnection", "None",
            "sqlite3.Connection", "lambda *a, **k: 5",
        )  # fmt: skip
        options.append(f"factory={factory}")
    if "detect_types" in hand.features and hand.is_rare(0.35):
        options.append(f"detect_types={hand.one_of('1', '2', '3', '3')}")
    if "autocommit" in hand.features and hand.is_rare(0.25):
        options.append(f"autocommit={hand.one_of('True', 'False', '-1', 'False')}")
    if not first and hand.is_rare(0.06):
        options.append(
            hand.one_of(
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
    if not first and hand.is_rare(0.06):
        name = hand.one_of(
            "5", "None", "b':memory:'", "path('gone/x.db')", "'\\ud800'", "'a\\0b'",
            "directory", "'file:x?vfs=none'", "bytearray(b':memory:')", "Str(':memory:')",
        )  # fmt: skip
    return f"sqlite3.connect({once(', '.join([name, *options]))})"


def connect_again(hand: Hand) -> str:
    """Another connection, or the same object made anew."""
    which = hand.one_of("c0", "c1", "c2") if hand.is_rare(0.3) else hand.connection_name()
    call = connect(hand)
    if hand.is_rare(0.15):
        return f"{which}.__init__({call.partition('(')[2]}"
    hand.connections.append(which)
    return f"{which} = {call}"
