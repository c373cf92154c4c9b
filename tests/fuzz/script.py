"""A case as a program that runs by itself: ``python case.py`` or ``python case.py oxlite``."""

import ast
from pathlib import Path

from tests.fuzz.generator import Case

_PRELUDE = Path(__file__).with_name("prelude.py")

_HEAD = '''"""{heading}

Run with the argument ``oxlite`` for Oxlite, without one for the standard library.
"""

import sys
import warnings

if sys.argv[1:] == ["oxlite"]:
    from oxlite import sqlite3
else:
    import sqlite3
warnings.simplefilter("ignore")
'''

_TAIL = """

STEPS = [
{steps}
]

for number, step in enumerate(STEPS):
    print(f"{number}: {{step}}", flush=True)
    log.clear()
    try:
        try:
            code = compile(step, "step", "eval")
        except SyntaxError:
            code = compile(step, "step", "exec")
        print("   ", ascii(eval(code)))
    except BaseException as error:
        code = getattr(error, "sqlite_errorname", "")
        print("    !", type(error).__name__, code, ascii(str(error)))
    if log:
        print("    log:", ascii(log))
    for name, value in list(globals().items()):
        if name[0] in "ck" and name[1:].isdigit():
            for attribute in ("in_transaction", "total_changes", "rowcount", "lastrowid"):
                if hasattr(type(value), attribute):
                    try:
                        print(f"    {name}.{attribute} = {getattr(value, attribute)}", end="")
                    except Exception as error:
                        print(f"    {name}: {type(error).__name__}", end="")
            print()
"""


def definitions(steps: list[str]) -> str:
    """What the steps use of the prelude, and what that uses."""
    source = _PRELUDE.read_text()
    tree = ast.parse(source)
    imports: list[str] = []
    nodes: dict[str, ast.stmt] = {}
    for node in tree.body:
        match node:
            case ast.Import() | ast.ImportFrom():
                if not any(alias.name == "sqlite3" for alias in node.names):
                    imports.append(ast.unparse(node))
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                nodes[name] = node
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                nodes[name] = node
    wanted = {"log"}
    pending: list[ast.AST] = [*map(ast.parse, steps), nodes["log"]]
    while pending:
        for part in ast.walk(pending.pop()):
            if isinstance(part, ast.Name) and part.id in nodes and part.id not in wanted:
                wanted.add(part.id)
                pending.append(nodes[part.id])
    chosen = [ast.unparse(node) for name, node in nodes.items() if name in wanted]
    return "\n".join(imports) + "\n\n" + "\n\n".join(chosen)


def as_script(case: Case, heading: str = "") -> str:
    """The program of a case."""
    safe = heading.replace("\\", "\\\\").replace('"""', "'''").rstrip('"')
    steps = "\n".join(f"    {step!r}," for step in case.steps)
    return (
        _HEAD.replace("{heading}", safe)
        + definitions(case.steps)
        + _TAIL.replace("{steps}", steps).replace("{{step}}", "{step}")
    )
