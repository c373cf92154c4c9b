"""Signals are raised, or held until it is safe."""

import os
import signal

import pytest

from oxlite.bench.errors import Interrupted
from oxlite.bench.harness import interrupts


@pytest.mark.parametrize("number", interrupts.SIGNALS)
def test_a_signal_becomes_one_exception(number: signal.Signals) -> None:
    with pytest.raises(Interrupted) as caught, interrupts.handled():
        os.kill(os.getpid(), number)
    assert caught.value.signal_number == number


def test_a_held_signal_waits_for_the_outermost_section() -> None:
    reached = []

    def hold() -> None:
        with interrupts.handled(), interrupts.held():
            with interrupts.held():
                os.kill(os.getpid(), signal.SIGTERM)
                reached.append("inner")
            reached.append("outer")

    with pytest.raises(Interrupted):
        hold()
    assert reached == ["inner", "outer"]


def test_a_second_signal_does_not_cut_cleaning_short() -> None:
    cleaned = []

    def clean() -> None:
        with interrupts.handled():
            try:
                os.kill(os.getpid(), signal.SIGINT)
            finally:
                os.kill(os.getpid(), signal.SIGINT)
                cleaned.append(True)

    with pytest.raises(Interrupted):
        clean()
    assert cleaned


def test_the_former_handlers_return() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupts.handled():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
