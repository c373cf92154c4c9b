"""What holds for all tests.

- The garbage collector looks at what a test has made, and not at all that others have imported: a
  full collection takes a millisecond then instead of a tenth of a second, and some tests ask for
  hundreds.
- At the end of a run it is said what was left out by a marker, and how that is run.
- A test in which its process dies is no failure like others: the run ends with pytest's status for
  an internal error, and nothing is tried again.
- What is drawn at random is the same in every run, unless ``OXLITE_SEED`` sets another seed.
"""

import gc
import os
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

# In a shell's background it is ignored, and so it would be by all processes that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _own_objects_alone() -> Iterator[None]:
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module", autouse=True)
def _nothing_forgotten_stays_open() -> Iterator[None]:
    # Freezing keeps the collector from what is old, which has hundreds of files open in the end.
    yield
    gc.collect()


@pytest.fixture
def seed() -> int:
    """From which a test draws what it does at random. It is shown with a failure."""
    seed = int(os.environ.get("OXLITE_SEED") or 1)
    print(f"OXLITE_SEED={seed}")
    return seed


_LEFT_OUT = pytest.StashKey[int]()
_DIED = pytest.StashKey[bool]()


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count what the expression of ``-m`` leaves out, in the process that collects."""
    if not items:
        return
    config = items[0].config
    config.stash[_LEFT_OUT] = config.stash.get(_LEFT_OUT, 0) + len(items)


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(sched: Any) -> None:  # noqa: ANN401 - pytest-xdist has no types
    """Remember that a test has ended its process."""
    sched.config.stash[_DIED] = True


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell it to the process that reports, where tests are spread over several."""
    if session.config.stash.get(_DIED, False):
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash.get(_LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:  # noqa: ANN401 - pytest-xdist has no types
    """Hear it: every process has collected all tests."""
    if left_out := getattr(node, "workeroutput", {}).get("left_out"):
        node.config.stash[_LEFT_OUT] = left_out


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out."""
    config = terminalreporter.config
    left_out = config.stash.get(_LEFT_OUT, 0)
    if left_out and config.option.markexpr == "not slow":
        terminalreporter.write_line(f"left out: {left_out} tests marked slow; run: make test-slow")
