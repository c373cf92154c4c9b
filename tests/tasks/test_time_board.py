"""What a process says of its tasks' deadlines, and when its supervisor is woken for it."""

import select
import time
from collections.abc import Iterator

import pytest

from oxlite.tasks.time_board import TimeBoard


@pytest.fixture
def board() -> Iterator[TimeBoard]:
    board = TimeBoard()
    yield board
    board.forked()
    board.close()


def is_rung(board: TimeBoard) -> bool:
    return bool(select.select([board.changed], [], [], 0)[0])


def test_deadlines_are_read_the_first_first(board: TimeBoard) -> None:
    now = time.monotonic()
    for number, deadline in ((7, now + 30), (8, now + 10), (9, float("inf"))):
        board.write(number, deadline)
    assert board.read() == (now + 10, [(now + 10, 8), (now + 30, 7), (float("inf"), 9)])
    board.write(8, None)
    board.write(99, None)
    assert [number for _, number in board.read()[1]] == [7, 9]
    board.write(10, now + 20)
    assert [number for _, number in board.read()[1]] == [10, 7, 9]


def test_the_supervisor_is_woken_for_what_is_sooner_than_he_looks(board: TimeBoard) -> None:
    now = time.monotonic()
    board.write(1, float("inf"))
    assert not is_rung(board)
    board.write(2, now + 60)
    assert is_rung(board)
    board.read()
    for number in range(3, 100):
        board.write(number, now + 60 + number)
        board.write(number, None)
    assert not is_rung(board)
    # He looks then, although the task for which he was to look has ended.
    board.write(2, None)
    assert board.read()[0] == now + 60
    board.write(100, now + 30)
    assert is_rung(board)


def test_of_very_many_the_first_are_watched(board: TimeBoard) -> None:
    for number in range(5000):
        board.write(number, 1e9 + number)
    found = board.read()[1]
    assert [number for _, number in found] == list(range(len(found)))
    assert len(found) > 4000
    for number in range(5000):
        board.write(number, None)
    assert board.read()[1] == []
