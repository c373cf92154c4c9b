"""A sample on a terminal of any size."""

import dataclasses
import io
import re

import pytest
from rich.console import Console
from tests.operations.top.conftest import Stage

from oxlite.operations.top import Process, Reader, Sample, Statement, Watch, Writer, render

TEXT = "SELECT '[red]', name FROM article WHERE id IN (SELECT max(id) FROM article) ORDER BY name"


@pytest.fixture
def crowded(stage: Stage) -> Sample:
    """A sample of a database that more use than a terminal has lines."""
    stage.own()
    stage.stranger()
    with Watch(stage.path) as watch:
        sample = watch.look()
    readers = [
        Reader(5000 + number, "own", "python app.py", 1, 2, 100 * number, 61.0, True, TEXT)
        for number in range(50)
    ]
    statements = [
        Statement(5000, "own", f"{TEXT}, {number}", 0.5 / (number + 1), 0.01, 1000, 3.0)
        for number in range(50)
    ]
    counters = {"waiting": 3, "commits": 100_000}
    rates = {"commits": 12.5, "statements": 12_345.0, "turns": 1.0}
    processes = [
        Process(number, "own", "/bin/python [red]x", ("writes",), True, 0.1, counters, rates)
        for number in range(100_000, 100_060)
    ]
    return dataclasses.replace(
        sample,
        readers=tuple(readers),
        statements=tuple(statements),
        processes=tuple(processes),
        notes=("Something was not seen, and this is why it was not seen.",),
        per_second=rates | {"batches": 2.0, "batched_writes": 5.0},
    )


def printed(sample: Sample, width: int, height: int | None = None) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height or 25)
    options = console.options if height is None else console.options.update(height=height)
    lines = console.render_lines(render(sample), options.update(height=height), pad=False)
    return ["".join(segment.text for segment in line) for line in lines]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_it_fits_into_any_width(crowded: Sample, width: int) -> None:
    lines = printed(crowded, width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "app.db" in text
    assert "[red]" in text
    assert text.count("SELECT '") == 100
    if width >= 80:
        assert "batches of 2.5 writes" in text


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("height", [10, 24, 50])
def test_it_is_no_higher_than_the_terminal(crowded: Sample, width: int, height: int) -> None:
    # rich cuts what is too high: what is last would be gone.
    lines = printed(crowded, width, height)
    shown = [line for line in lines if line.strip()]
    assert len(lines) <= height
    text = "\n".join(shown)
    assert "app.db" in text
    if height >= 24:
        assert " 5000 " in text
        assert " 500 ms " in text
        assert "100000" in text
    if height == 50:
        assert text.count(" more") == 3
    if height == 50 or (height == 24 and width >= 80):
        assert "why it was not" in text
    else:
        assert "• 1 note: see --once" in text


def test_what_is_not_known_is_a_dash(stage: Stage) -> None:
    with Watch(stage.path) as watch:
        lines = printed(watch.look(), 80)
    assert any(line.split() == ["rates", "–", "commits"] for line in lines)  # noqa: RUF001 - a dash


@pytest.mark.parametrize("is_at_least", [True, False])
def test_what_has_just_been_seen_has_been_so_for_longer(crowded: Sample, is_at_least: bool) -> None:
    reader = dataclasses.replace(crowded.readers[0], age_seconds=0.0, is_at_least=is_at_least)
    writer = Writer(5000, "own", "python app.py", None, 0.0, True, None)
    text = "\n".join(printed(dataclasses.replace(crowded, readers=(reader,), writer=writer), 80))
    assert "process 5000, >0 s" in text
    assert re.search(r"5000 +0 +>0 s  SELECT", text), text
    assert "<0.1 ms" not in text
