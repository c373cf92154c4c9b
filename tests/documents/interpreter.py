"""The interpreter into which the Python of a page is pasted, a block at a time.

It is a program of its own and not imported: it imports little, so that the page finds as much. On
the descriptor that its first argument names it is told of each block as a line of JSON; on the
second it answers with the block's status. A line of a traceback is that of the page.
"""

import ast
import json
import linecache
import os
import sys
import traceback
import types


def _paste(told: dict[str, object], main: types.ModuleType) -> int:
    os.chdir(str(told["directory"]))
    target = os.open(str(told["output"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(target, standard)
    os.close(target)
    page = str(told["page"])
    try:
        source = "\n" * (int(str(told["line"])) - 1) + str(told["text"])
        linecache.cache[page] = (len(source), None, source.splitlines(keepends=True), page)
        tree = ast.Interactive(ast.parse(source, page).body)
        exec(compile(tree, page, "single"), main.__dict__)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    return 0


def _serve() -> None:
    reads, answers = (int(argument) for argument in sys.argv[1:3])
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.path[0] = ""
    sys.argv = [""]
    # What has a value is asked for its text, as it would be shown: a query that nobody looks at is
    # not made. It is not shown, so that a page shows what it prints.
    sys.displayhook = repr
    with open(reads, encoding="utf-8") as asked, open(answers, "w", encoding="utf-8") as told:  # noqa: PTH123 - descriptors
        for line in asked:
            status = _paste(json.loads(line), main)
            told.write(f"{status}\n")
            told.flush()


_serve()
