"""The arguments of a call, put together by chance, made to compile."""

import re


def once(arguments: str) -> str:
    """The arguments without a keyword's repetitions, which would not compile."""
    if compiles(arguments):
        return arguments
    kept: dict[str, str] = {}
    for part in re.split(r", (?=\w+=)", arguments):
        keyword, equals, _ = part.partition("=")
        kept[keyword if equals and keyword.isidentifier() else part] = part
    return ", ".join(kept.values())


def compiles(arguments: str) -> bool:
    """Whether these are arguments of a call."""
    try:
        compile(f"f({arguments})", "arguments", "eval")
    except SyntaxError:
        return False
    return True
