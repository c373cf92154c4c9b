"""A sample for a terminal, from 40 columns on, as high as that is.

Invariants: values are shown as text, never interpreted as rich's markup, nor obeyed by the
    terminal; what is not known is a dash.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from oxlite.operations.files import size_text
from oxlite.operations.top.sample import Namespace, Process, Reader, Sample, Statement, Writer

__all__ = ["View"]

_WIDE: Final = 100
_MEDIUM: Final = 60

_LABEL: Final = len("rates")

# What a section is given before any other gets more.
_ROWS_EACH: Final = 3

# What takes less is no slow statement.
_SHOWN_SECONDS: Final = 0.0001

# Others wait for a write lock for as long; at so many frames a checkpoint is made.
_LONG_SECONDS: Final = 1.0
_MANY_FRAMES: Final = 1000

_UNKNOWN: Final = "–"  # noqa: RUF001 - a dash


class View:
    """A sample as wide and as high as the place that it is shown in."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lay it out; a height is kept where there is one."""
        sample, width = self._sample, options.max_width
        head = _head(sample, width)
        notes = [Text(f"• {note}", style="dim") for note in sample.notes]
        sections = [one for one in _sections(sample, width) if one.rows]
        shares = [len(one.rows) for one in sections]
        if options.height is not None:

            def lines(parts: Iterable[RenderableType]) -> int:
                free = options.update(height=None)
                return sum(len(console.render_lines(part, free)) for part in parts)

            # Each section has a line above it, and its header; the notes have a line above them.
            left = options.height - lines(head) - 2 * len(sections)
            wanted = sum(min(count, _ROWS_EACH) for count in shares)
            if notes and left - wanted < lines(notes) + 1:
                word = "note" if len(notes) == 1 else "notes"
                notes = [Text(f"• {len(notes)} {word}: see --once", style="dim")]
            left -= lines(notes) + bool(notes)
            while sections and left < len(sections):
                sections.pop()
                left += 2
            shares = _shares([len(one.rows) for one in sections], left)
        parts: list[RenderableType] = [*head]
        for section, share in zip(sections, shares, strict=True):
            parts += [Text(), section.table(share)]
        if notes:
            parts += [Text(), *notes]
        yield Group(*parts)


class _Section:
    """Rows below one another; the last column takes what is left, and is cut there."""

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> None:
        self._columns = columns
        self.rows = list(rows)

    def table(self, at_most: int) -> Table:
        """The first rows, and how many more there are."""
        table = Table(
            box=None, expand=True, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold"
        )
        for name in self._columns[:-1]:
            is_text = name in _TEXTS
            table.add_column(name, justify="left" if is_text else "right", no_wrap=True)
        table.add_column(self._columns[-1], no_wrap=True, overflow="ellipsis", ratio=1)
        is_cut = len(self.rows) > at_most
        # Where there is one line, a row says more than how many there are.
        shown = self.rows[: at_most - 1 if is_cut and at_most > 1 else at_most]
        for row in shown:
            table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
        if is_cut and at_most > 1:
            more = f"and {len(self.rows) - len(shown)} more"
            blanks = [Text() for _ in self._columns[:-1]]
            table.add_row(*blanks, Text(more, style="dim"))
        return table


_TEXTS: Final = frozenset({"does"})


def _head(sample: Sample, width: int) -> list[RenderableType]:
    mode = "WAL mode" if sample.journal_mode == "wal" else "rollback mode"
    clock = f"{datetime.fromtimestamp(sample.at_epoch_seconds):%H:%M:%S}"
    every = (
        f"{sample.since_before_seconds:.1f} s"
        if sample.since_before_seconds is not None
        else "first look"
    )
    title = Text(sample.path.rpartition("/")[2] or sample.path, style="bold")
    facts = f"{mode}, {size_text(sample.size_bytes)}"
    grid = Table.grid(padding=(0, 2), expand=True)
    grid.add_column(style="dim", no_wrap=True, width=_LABEL)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for name, value in _facts(sample, width - _LABEL - 2, is_wide=width >= _MEDIUM):
        grid.add_row(Text(name), value)
    top = Table.grid(padding=(0, 2), expand=True)
    top.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    top.add_column(justify="right", no_wrap=True)
    top.add_row(
        Text.assemble(title, "  ", (facts, "")) if width >= _MEDIUM else title,
        Text(f"{clock}, {every}" if width >= _MEDIUM else clock, style="dim"),
    )
    parts: list[RenderableType] = [top]
    if width < _MEDIUM:
        parts.append(Text(facts, style="dim"))
    return [*parts, grid]


def _facts(sample: Sample, width: int, *, is_wide: bool) -> Iterator[tuple[str, Text]]:
    tells = sample.per_second is not None
    rates = [f"{_rate(sample.commits_per_second)} commits"]
    if tells:
        rates.append(f"{_rate(sample.rate('statements'))} statements")
        if sample.writes_per_batch is not None:
            rates.append(
                f"{_rate(sample.rate('batches'))} batches of {sample.writes_per_batch:.1f} writes"
            )
    yield "rates", _joined(rates, width)
    yield "line", _joined(_line(sample), width)
    yield "lock", _lock(sample.writer)
    if sample.wal is not None:
        yield "WAL", _joined([*_wal(sample, is_wide=is_wide), *_checkpoints(sample)], width)


def _line(sample: Sample) -> Iterator[str]:
    line = sample.line
    known = [
        _count(count, word)
        for count, word in ((line.threads, "thread"), (line.processes, "process"))
        if count
    ]
    if known:
        yield f"{' and '.join(known)} in line"
    elif line.threads is None and line.processes is None:
        yield _UNKNOWN
    else:
        yield "nobody in line"
    if sample.per_second is not None:
        waits = sample.rate("thread_waits") + sample.rate("process_waits")
        yield f"{_rate(waits)} waits"
        yield f"{_rate(sample.rate('turns'))} turns"


def _lock(writer: Writer | None) -> Text:
    if writer is None:
        return Text("free")
    who = f"process {writer.process_id}{_whose(writer.pid_namespace)}"
    said = Text(f"{who}, {_since(writer.held_seconds, is_at_least=writer.is_at_least)}")
    what = writer.sql or _short(writer.command)
    if writer.held_seconds >= _LONG_SECONDS:
        said.stylize("yellow")
    if what:
        said.append(f"\n{what}", style="" if writer.sql else "dim")
    return said


def _wal(sample: Sample, *, is_wide: bool) -> Iterator[str]:
    wal = sample.wal
    assert wal is not None
    yield f"{wal.frames:,} frames" + (f" in {size_text(wal.size_bytes)}" if is_wide else "")
    done = 100 * wal.checkpointed_frames // wal.frames if wal.frames else 100
    yield f"{done} % checkpointed"
    if wal.begun_anew is not None:
        yield {0: "never begun anew", 1: "begun anew once"}.get(
            wal.begun_anew, f"begun anew {wal.begun_anew:,} times"
        )
    if wal.is_checkpointing:
        yield "a checkpoint is being made"


def _checkpoints(sample: Sample) -> Iterator[str]:
    if sample.counters:
        yield f"{sample.counters.get('checkpoints', 0):,} checkpoints"
    for name, word in (
        ("checkpoints_incomplete", "not finished"),
        ("checkpoint_waits", "waited"),
        ("checkpoint_errors", "failed"),
    ):
        if sample.counters.get(name, 0):
            yield f"{sample.counters[name]:,} {word}"


def _sections(sample: Sample, width: int) -> Iterator[_Section]:
    columns: tuple[str, ...] = ("reader", "behind", "age", "reads")
    yield _Section(columns, map(_reader, sample.readers))
    if width >= _MEDIUM:
        columns = ("slowest", "waited", "times", "ago", "statement")
    else:
        columns = ("slowest", "statement")
    yield _Section(columns, (_statement(one, width) for one in _merged(sample.statements)))
    columns = _process_columns(sample, width)
    yield _Section(columns, (_process(one, columns) for one in sample.processes or ()))


def _process_columns(sample: Sample, width: int) -> tuple[str, ...]:
    if not any(one.tells for one in sample.processes or ()):
        return "process", "does", "command"
    if width < _MEDIUM:
        return "process", "commits", "does", "command"
    turns = ("turns",) if width >= _WIDE else ()
    return "process", "commits", "stmts", "waits", *turns, "line", "does", "command"


def _reader(one: Reader) -> tuple[str | Text, ...]:
    behind = _UNKNOWN if one.frames_behind is None else f"{one.frames_behind:,}"
    age = _UNKNOWN
    if one.age_seconds is not None:
        age = _since(one.age_seconds, is_at_least=one.is_at_least)
    number = _number(one.process_id, one.pid_namespace)
    style = "yellow" if (one.frames_behind or 0) >= _MANY_FRAMES else ""
    return number, Text(behind, style), age, one.sql or _short(one.command)


def _merged(statements: Iterable[Statement]) -> list[Statement]:
    """Each text once, of all processes; the slowest comes first."""
    found: dict[str, Statement] = {}
    for one in statements:
        if one.longest_seconds < _SHOWN_SECONDS:
            continue
        known = found.get(one.sql)
        if known is None:
            found[one.sql] = one
        else:
            found[one.sql] = replace(
                known,
                count=known.count + one.count,
                ago_seconds=min(known.ago_seconds, one.ago_seconds),
            )
    return list(found.values())


def _statement(one: Statement, width: int) -> tuple[str, ...]:
    if width < _MEDIUM:
        return _seconds(one.longest_seconds), one.sql
    return (
        _seconds(one.longest_seconds),
        _seconds(one.waited_seconds) if one.waited_seconds >= _SHOWN_SECONDS else "",
        f"{one.count:,}",
        _seconds(one.ago_seconds),
        one.sql,
    )


def _process(one: Process, columns: Sequence[str]) -> tuple[str, ...]:
    def rate(*names: str) -> str:
        if one.per_second is None:
            return _UNKNOWN
        return _rate(sum(one.per_second.get(name, 0.0) for name in names))

    is_narrow = "stmts" not in columns
    cells = {
        "process": _number(one.process_id, one.pid_namespace),
        "commits": rate("commits"),
        "stmts": rate("statements"),
        "waits": rate("thread_waits", "process_waits"),
        "turns": rate("turns"),
        "line": f"{one.counters['waiting']:,}" if "waiting" in one.counters else _UNKNOWN,
        "does": ", ".join(one.does[:1] if is_narrow else one.does),
        "command": _short(one.command),
    }
    return tuple(cells[name] for name in columns)


def _shares(rows: Sequence[int], left: int) -> list[int]:
    """How many lines each section gets of those that are left."""
    shares = [0] * len(rows)
    for most in (*range(1, _ROWS_EACH + 1), max(rows, default=0)):
        for number, count in enumerate(rows):
            more = min(min(count, most) - shares[number], left)
            if more > 0:
                shares[number] += more
                left -= more
    return shares


def _short(command: str | None) -> str:
    """A command line without directories."""
    words = (command or "").split(" ")
    return " ".join(
        (word.rpartition("/")[2] or word) if word.startswith("/") else word for word in words
    )


def _joined(said: Iterable[str], width: int) -> Text:
    """One after the other, in lines; what belongs together stays together where a line ends."""
    lines = [""]
    for one in said:
        if not lines[-1]:
            lines[-1] = one
        elif len(lines[-1]) + len(one) + 3 <= width:  # the comma behind it as well
            lines[-1] += f", {one}"
        else:
            lines[-1] += ","
            lines.append(one)
    return Text("\n".join(lines))


def _number(process_id: int, namespace: Namespace) -> str:
    return f"{process_id}{'' if namespace == 'own' else '*'}"


def _whose(namespace: Namespace) -> str:
    return {"own": "", "another": " of another container", "unknown": " of an unknown container"}[
        namespace
    ]


def _count(count: int, word: str) -> str:
    plural = {"thread": "threads", "process": "processes"}[word]
    return f"{count:,} {word if count == 1 else plural}"


def _rate(per_second: float | None) -> str:
    if per_second is None:
        return _UNKNOWN
    return f"{per_second:,.0f}/s" if per_second >= 10 or not per_second else f"{per_second:.1f}/s"


def _since(seconds: float, *, is_at_least: bool) -> str:
    """For how long something is so; what has just been seen has been so for longer."""
    if seconds < _SHOWN_SECONDS:
        return ">0 s"
    return f"{'>' if is_at_least else ''}{_seconds(seconds)}"


def _seconds(seconds: float) -> str:
    if seconds < _SHOWN_SECONDS:
        return "<0.1 ms"
    if seconds < 0.01:
        return f"{1000 * seconds:.1f} ms"
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 360_000 else f"{seconds / 86400:.0f} days"
