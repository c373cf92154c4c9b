"""A process that plays cases on one driver.

``python -m tests.fuzz.child MODULE PROGRESS_FILE`` reads one case a line from its standard input,
as JSON, and answers each with a line of observations. The number of the step it is in stands in the
progress file, for the day it crashes. A case that takes too long ends the process, with every
thread's stack on the error output.
"""

import ast
import contextlib
import faulthandler
import gc
import importlib
import json
import os
import resource
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tests.fuzz.features import probe
from tests.fuzz.observe import Observation, Observer, played

PRELUDE = Path(__file__).with_name("prelude.py")
HANG_EXIT = "Timeout ("  # faulthandler's first word
_MEMORY_BYTES = 4 << 30


def prelude_code() -> CodeType:
    """The prelude without its own ``sqlite3``."""
    tree = ast.parse(PRELUDE.read_text())
    tree.body = [node for node in tree.body if not _imports_driver(node)]
    return compile(tree, str(PRELUDE), "exec")


def _imports_driver(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and any(alias.name == "sqlite3" for alias in node.names)


def _compiled(source: str) -> tuple[CodeType, bool]:
    try:
        return compile(source, "<step>", "eval"), True
    except SyntaxError:
        return compile(source, "<step>", "exec"), False


class Player:
    """Plays cases on a driver."""

    def __init__(self, driver: ModuleType, progress: int) -> None:
        self.driver = driver
        self.progress = progress
        self.prelude = prelude_code()
        self.scratch = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.unraisable: list[str] = []
        self.cases = 0

    def play(self, steps: list[str]) -> list[Observation]:
        """Plays the steps and returns what was seen of each, and of the end."""
        os.pwrite(self.progress, b"-1    ", 0)
        namespace: dict[str, Any] = {"sqlite3": self.driver, "__name__": "case"}
        exec(self.prelude, namespace)
        os.rmdir(namespace["directory"])  # noqa: PTH106
        directory = tempfile.mkdtemp(prefix="oxlite-fuzz-", dir=self.scratch)
        namespace["directory"] = directory
        # What a case leaves in a shared database is nothing to the next one.
        self.cases += 1
        steps = [step.replace("file:shared?", f"file:shared{self.cases}?") for step in steps]
        os.chdir(directory)
        registered = {
            name: dict(table)
            for name in ("adapters", "converters")
            if isinstance(table := getattr(self.driver, name, None), dict)
        }
        observer = Observer(self.driver, directory)
        observations = []
        gc.collect()
        descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        sys.unraisablehook = lambda report: self.unraisable.append(
            f"{type(report.exc_value).__name__} {observer.text(str(report.exc_value))}"
        )
        try:
            for number, step in enumerate(steps):
                os.pwrite(self.progress, b"%-6d" % number, 0)
                observations.append(self.step(step, namespace, observer))
            os.pwrite(self.progress, b"%-6d" % len(steps), 0)
            ending = self.end(namespace, observer)
            del namespace
            gc.collect()
            left = len(os.listdir("/proc/self/fd")) - descriptors  # noqa: PTH208
            ending["descriptors left open"] = str(left)
            observations.append(ending)
        finally:
            sys.unraisablehook = sys.__unraisablehook__
            os.chdir("/")
            for name, table in registered.items():
                getattr(self.driver, name).clear()
                getattr(self.driver, name).update(table)
            shutil.rmtree(directory, ignore_errors=True)
        return observations

    def step(self, step: str, namespace: dict[str, Any], observer: Observer) -> Observation:
        """Plays one step."""
        namespace["log"].clear()
        self.unraisable.clear()
        observation: Observation = {}
        code, is_expression = _compiled(step)
        if is_expression:
            observation["value"] = played(lambda: eval(code, namespace), observer)
        else:
            observation["value"] = played(lambda: exec(code, namespace), observer)
        if namespace["log"]:
            observation["log"] = observer.value(list(namespace["log"]))
        if self.unraisable:
            observation["unraisable"] = str(self.unraisable[:20])
        observation.update(observer.changes(namespace))
        return observation

    def end(self, namespace: dict[str, Any], observer: Observer) -> Observation:
        """Closes what has a name, so that no case leaves its databases open."""
        observation: Observation = {}
        for name, value in list(namespace.items()):
            if name[0] == "c" and name[1:].isdigit() and isinstance(value, self.driver.Connection):
                observation[f"{name}.close"] = played(value.close, observer)
        self.driver.enable_callback_tracebacks(False)
        namespace.clear()
        return observation


def main() -> None:
    """Plays what comes in until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")  # what a newer Python discourages still works
    driver = importlib.import_module(sys.argv[1])
    progress = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT, 0o600)
    player = Player(driver, progress)
    answers.write(json.dumps(probe(driver)) + "\n")
    answers.flush()
    for line in sys.stdin:
        request = json.loads(line)
        faulthandler.dump_traceback_later(request["seconds"], exit=True)
        observations = player.play(request["steps"])
        faulthandler.cancel_dump_traceback_later()
        answers.write(json.dumps(observations) + "\n")
        with contextlib.suppress(BrokenPipeError):
            answers.flush()


if __name__ == "__main__":
    main()
