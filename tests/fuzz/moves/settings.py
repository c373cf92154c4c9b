"""Limits, switches, extensions."""

from tests.fuzz.moves.hand import Hand


def limit(hand: Hand) -> str:
    """Run-time limits."""
    category = hand.one_of(
        "0", "1", "2", "3", "7", "8", "9", "10", "11", "12", "-1", "'x'", "2**40"
    )
    value = hand.one_of("10", "100", "-1", "5", "1000000", "2**40", "'x'", "0", "30")
    return hand.one_of(
        f"{hand.connection_name()}.getlimit({category})",
        f"{hand.connection_name()}.setlimit({category}, {value})",
        "c0.setlimit(9, 2)",
        "c0.setlimit(1, 40)",
        "c0.setlimit(0, 1000)",
    )


def config(hand: Hand) -> str:
    """SQLite's switches."""
    switch = hand.one_of("1002", "1003", "1007", "1010", "1011", "1013", "1014", "1017", "5", "'x'")
    value = hand.one_of("", ", True", ", False", ", 0", ", Truth(True)", ", Truth(KeyError())")
    return hand.one_of(
        f"{hand.connection_name()}.getconfig({switch})",
        f"{hand.connection_name()}.setconfig({switch}{value})",
    )


def load_extension(hand: Hand) -> str:
    """Loading of extensions, which always fails here."""
    return f"{hand.connection_name()}." + hand.one_of(
        "enable_load_extension(True)", "enable_load_extension(False)",
        "load_extension('/gone')", "enable_load_extension(Truth(KeyError()))",
        "load_extension(5)", "load_extension('x\\0')",
    )  # fmt: skip
