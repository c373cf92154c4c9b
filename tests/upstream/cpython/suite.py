"""Runs the test modules of one package in this interpreter; what run.py starts.

What happens is written to a file as it happens, one JSON object a line, because this process may
crash or hang in any test::

    {"python": "3.12.1", "sqlite": "3.40.1"}      always the first
    {"absent": true}                              there is no such package; nothing follows
    {"loaded": ["package.module.Class.test", …]}
    {"started": "package.module.Class.test"}
    {"test": …, "outcome": …, "detail": traceback or reason, "subtests": 0}
    {"finished": true, "children": 2, "substituted": 2}

A module that cannot be imported is written as a test of the module's name with the outcome error.

It needs nothing but the standard library.
"""

import argparse
import faulthandler
import importlib
import importlib.util
import json
import os
import pkgutil
import platform
import sys
import sysconfig
import tempfile
import traceback
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, TextIO

Failure = (
    tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]
)  # what unittest calls exc_info
Write = Callable[..., None]

# A test that is several of these, by its subtests or its clean-up, is the last of them.
OUTCOMES = ["passed", "expected failure", "skipped", "unexpected success", "failed", "error"]


class Recorder(unittest.TestResult):
    """Writes the start and the outcome of each test."""

    def __init__(self, write: Write) -> None:
        super().__init__()
        self._write = write
        self._running = False
        self._outcome = "passed"
        self._details: list[str] = []
        self._subtests = 0

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        super().startTest(test)
        self._running, self._outcome, self._details, self._subtests = True, "passed", [], 0
        self._write(started=test.id())

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().stopTest(test)
        if self._running:  # Python 3.12.1 stops a skipped test that it has not started
            self._running = False
            self._end(test, self._outcome, self._details, self._subtests)

    def addError(self, test: unittest.TestCase, err: Failure) -> None:  # noqa: N802
        super().addError(test, err)
        self._note(test, "error", self.errors[-1][1])

    def addFailure(self, test: unittest.TestCase, err: Failure) -> None:  # noqa: N802
        super().addFailure(test, err)
        self._note(test, "failed", self.failures[-1][1])

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self._note(test, "skipped", reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: Failure) -> None:  # noqa: N802
        super().addExpectedFailure(test, err)
        self._note(test, "expected failure", self.expectedFailures[-1][1])

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().addUnexpectedSuccess(test)
        self._note(test, "unexpected success", "expected to fail, and passed")

    def addSubTest(  # noqa: N802
        self, test: unittest.TestCase, subtest: unittest.TestCase, err: Failure | None
    ) -> None:
        super().addSubTest(test, subtest, err)
        self._subtests += 1
        if err is not None and err[0] is not None:
            is_failure = issubclass(err[0], test.failureException)
            kept = self.failures if is_failure else self.errors
            self._note(test, "failed" if is_failure else "error", f"{subtest}\n{kept[-1][1]}")

    def _note(self, test: unittest.TestCase, outcome: str, detail: str) -> None:
        if not self._running:  # a skipped test as above; the set-up of a class or a module
            self._end(test, outcome, [detail], 0)
            return
        self._outcome = max(self._outcome, outcome, key=OUTCOMES.index)
        self._details.append(detail)

    def _end(
        self, test: unittest.TestCase, outcome: str, details: list[str], subtests: int
    ) -> None:
        detail = "\n".join(details)
        self._write(test=test.id(), outcome=outcome, detail=detail, subtests=subtests)


class Children:
    """Counts child interpreters whose program names sqlite3, and those that found Oxlite there."""

    def __init__(self, log: Path) -> None:
        self.started = 0
        self._log = log
        log.touch()
        os.environ["OXLITE_SUBSTITUTED"] = str(log)
        sys.addaudithook(self._see)

    @property
    def substituted(self) -> int:
        """How many of them have told by themselves (see sitecustomize.py)."""
        return len(self._log.read_text().splitlines())

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" and "sqlite3" in str(arguments[1]):
            self.started += 1


def imported(name: str, write: Write) -> ModuleType | None:
    """The module, or None after writing why there is none."""
    try:
        return importlib.import_module(name)
    except unittest.SkipTest as skip:
        write(test=name, outcome="skipped", detail=str(skip), subtests=0)
    except Exception as error:
        write_error(name, error, write)
    return None


def write_error(name: str, error: Exception, write: Write) -> None:
    """Writes why there is no such module, without the import system's own frames."""
    told = traceback.TracebackException.from_exception(error)
    frames = [f for f in told.stack if f.filename != __file__ and "importlib" not in f.filename]
    told.stack = traceback.StackSummary.from_list(frames)
    write(test=name, outcome="error", detail="".join(told.format()), subtests=0)


def check_substitution(write: Write) -> None:
    """Writes an error for every name of the standard library's driver that is not Oxlite's."""
    for name, ours in importlib.import_module("sitecustomize").NAMES.items():
        module = imported(ours, write)
        if module is not None and sys.modules[name] is not module:
            write(test=ours, outcome="error", detail=f"{name} is not {ours}", subtests=0)


def add_the_shell(write: Write) -> None:
    """Makes ``sqlite3.__main__`` the standard library's, on the driver that is under test.

    It is a program that uses the driver and no part of it; where Oxlite has one, that is taken.
    """
    name = "sqlite3.__main__"
    file = Path(sysconfig.get_path("stdlib"), "sqlite3", "__main__.py")
    if sys.modules.get("sqlite3") is None or importlib.util.find_spec(name) or not file.exists():
        return
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        write_error(name, error, write)
    else:
        sys.modules[name] = module


def load(name: str, only: list[str], write: Write) -> unittest.TestSuite:
    """The tests of every module ``test_*`` of a package, or those that are named."""
    loader = unittest.TestLoader()
    suite = unittest.TestSuite()
    package = imported(name, write)
    if package is None:
        return suite
    if only:
        return loader.loadTestsFromNames(only)
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        if info.name.startswith("test_"):
            module = imported(f"{name}.{info.name}", write)
            if module is not None:
                suite.addTest(loader.loadTestsFromModule(module))
    return suite


def each(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    """The tests in a suite, however deep."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


def exists(name: str) -> bool:
    """Whether this Python has the package."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def run(package: str, only: list[str], substitute: bool, file: TextIO) -> None:
    """Runs the tests and writes what happens to the file."""

    def write(**fields: object) -> None:
        print(json.dumps(fields), file=file, flush=True)

    try:
        sqlite = importlib.import_module("sqlite3").sqlite_version
    except ImportError:
        sqlite = "missing"
    write(python=platform.python_version(), sqlite=sqlite)
    if not exists(package):
        write(absent=True)
        return
    if package.startswith("test."):
        # As Python's own test runner sets it; a package prints more otherwise.
        vars(importlib.import_module("test.support"))["verbose"] = 0
    if substitute:
        check_substitution(write)
        add_the_shell(write)
    suite = load(package, only, write)
    write(loaded=[test.id() for test in each(suite)])
    with tempfile.TemporaryDirectory() as folder:
        children = Children(Path(folder, "substituted"))
        suite.run(Recorder(write))
        write(finished=True, children=children.started, substituted=children.substituted)


def main() -> None:
    """Reads the command line that run.py writes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("events", type=Path)
    parser.add_argument("package")
    parser.add_argument("only", nargs="*")
    parser.add_argument("--substitute", action="store_true")
    arguments = parser.parse_args()
    faulthandler.enable()
    with arguments.events.open("w") as file:
        run(arguments.package, arguments.only, arguments.substitute, file)


if __name__ == "__main__":
    main()
