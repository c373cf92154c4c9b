"""A runner for Django's own tests that writes down what became of each.

Django's, with another class of results; in parallel runs what the workers report is replayed to it.
The file to write is named by OXLITE_OUTCOMES.
"""

import json
import os
import unittest
from pathlib import Path
from typing import Any

from django.test.runner import DiscoverRunner


class Recorded(unittest.TextTestResult):
    """Results that are remembered by the name of the test."""

    found: dict[str, str] = {}  # noqa: RUF012 - one run for a process

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        super().addSuccess(test)
        self.found.setdefault(test.id(), "passed")

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addError(test, err)
        self.found[test.id()] = "failed"

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addFailure(test, err)
        self.found[test.id()] = "failed"

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.found[test.id()] = "failed"

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self.found.setdefault(test.id(), f"skipped: {reason}")

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addExpectedFailure(test, err)
        self.found.setdefault(test.id(), "passed")

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        super().addUnexpectedSuccess(test)
        self.found[test.id()] = "failed"


class Runner(DiscoverRunner):
    """Runs tests as Django does, and writes their outcomes."""

    def get_resultclass(self) -> type[unittest.TextTestResult]:
        return Recorded

    def suite_result(self, suite: Any, result: Any, **kwargs: Any) -> int:
        Path(os.environ["OXLITE_OUTCOMES"]).write_text(json.dumps(Recorded.found, indent=0))
        failures: int = super().suite_result(suite, result, **kwargs)
        return failures
