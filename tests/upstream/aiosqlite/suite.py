"""Runs aiosqlite's own tests with ``oxlite.aio`` in its place; prints what became of each as JSON.

Started by test_suite.py in an interpreter of its own. The tests are those that the installed
aiosqlite ships. ``sqlite3`` means Oxlite there as well, for the tests compare its exceptions and
hand its connections over.

Invariant: aiosqlite's own code is never imported, but for its tests.
"""

import importlib.util
import json
import sys
import types
import unittest
from pathlib import Path

TESTS = ("helpers", "smoke")


def substitute() -> Path:
    """Put Oxlite under the names that the tests import; where the tests are."""
    specification = importlib.util.find_spec("aiosqlite")
    if specification is None or specification.origin is None:
        raise SystemExit("aiosqlite is not installed")
    import oxlite.aio
    import oxlite.sqlite3

    sys.modules["sqlite3"] = oxlite.sqlite3
    sys.modules["aiosqlite"] = oxlite.aio
    return Path(specification.origin).parent / "tests"


def load(folder: Path) -> types.ModuleType:
    """Import the tests as the package that they are, without the one they belong to."""
    package = types.ModuleType("aiosqlite.tests")
    package.__path__ = [str(folder)]
    sys.modules["aiosqlite.tests"] = package
    for name in TESTS:
        full_name = f"aiosqlite.tests.{name}"
        specification = importlib.util.spec_from_file_location(full_name, folder / f"{name}.py")
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        sys.modules[full_name] = module
        specification.loader.exec_module(module)
    return module


class Result(unittest.TestResult):
    """Notes what became of each test."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: dict[str, tuple[str, str]] = {}

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's
        """It passes unless something else is said."""
        super().startTest(test)
        self.outcomes[test.id().rpartition(".")[2]] = ("passed", "")

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's
        """Whatever was said, by the name of the test."""
        super().stopTest(test)
        name = test.id().rpartition(".")[2]
        for outcome, said in (
            ("failed", self.failures + self.errors),
            ("skipped", self.skipped),
        ):
            for other, detail in said:
                if other.id().split(" ")[0].rpartition(".")[2] == name:
                    self.outcomes[name] = (outcome, detail)


def main() -> None:
    """Run them."""
    module = load(substitute())
    result = Result()
    unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    print("\n" + json.dumps(result.outcomes))


if __name__ == "__main__":
    main()
