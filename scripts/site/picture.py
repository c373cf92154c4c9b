"""The picture of README and of the site's first page, from a stored record.

    .venv/bin/python -m scripts.site.picture

writes it; a test sees that it is as current as the record. It is in the common style of
``docs/pictures``: 400 units wide, on a panel of its own, since the page may be light or dark.
"""

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from scripts.site import records

FILE = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "django-under-load.svg"

_RECORD, _TABLE = "web-connections", "Successful requests"
_ROWS = {
    "stdlib backoff defaults request 8 clients": ("Django's own backend, as it is", "grey"),
    "stdlib backoff immediate request 8 clients": ("… with IMMEDIATE", "grey"),
    "stdlib backoff wal kept 8 clients": ("… and WAL, connections kept", "grey"),
    "oxlite gate engine request 8 clients": ("oxlite.django", "orange"),
}
_PANELS = {
    "requests/s": "Requests answered in a second",
    "p99": "One request in a hundred takes longer than, ms",
    "max": "The longest request, ms",
}
_WIDTH, _LEFT, _BAR = 400, 218, 104

_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="560" \
height="{tall}" role="img" aria-labelledby="title description">
  <!-- Written by `python -m scripts.site.picture` from docs/evidence/{record}.md. -->
  <title id="title">A Django site with eight clients</title>
  <desc id="description">{said}</desc>
  <style>
    .panel {{ fill: #ffffff; stroke: #e2e4e8; }}
    .orange {{ fill: #b8541a; }}
    .grey {{ fill: #8b95a1; }}
    text {{ fill: #1c1f23; font: 14px system-ui, -apple-system, "Segoe UI", Roboto, \
"Helvetica Neue", Arial, sans-serif; }}
    .small {{ font-size: 13px; }}
    .quiet {{ fill: #5c646e; }}
    .red {{ fill: #b3382c; }}
    .strong {{ font-weight: 600; }}
  </style>
  <rect class="panel" x="0.5" y="0.5" width="{edge}" height="{bottom}" rx="8"/>
"""


def drawing() -> str:
    """The picture, as the record is now."""
    lines = list(_lines())
    height = 10 + max(down for down, _ in lines)
    said = "; ".join(_said())
    head = _HEAD.format(
        width=_WIDTH,
        height=height,
        tall=round(height * 1.4),
        edge=_WIDTH - 1,
        bottom=height - 1,
        record=_RECORD,
        said=escape(said),
    )
    return head + "".join(f"  {text}\n" for _, text in lines) + "</svg>\n"


def _said() -> Iterator[str]:
    for column, title in _PANELS.items():
        table = records.table(_RECORD, _TABLE, column)
        figures = [f"{name} {table.rows[row][column]}" for row, (name, _) in _ROWS.items()]
        yield f"{title}: {', '.join(figures)}"


def _lines() -> Iterator[tuple[int, str]]:
    """The elements, each with how far down it goes."""
    yield 28, _text(12, 24, "A Django site, eight clients, two processors", "strong")
    down = 34
    for column, title in _PANELS.items():
        down += 22
        yield down, _text(12, down, title, "strong small")
        down += 4
        for element in _panel(column, down):
            yield down + 20 * len(_ROWS), element
        down += 20 * len(_ROWS) + 6
    said = f"Captured from oxlite bench web, {records.day(_RECORD)}"
    yield down + 18, _text(12, down + 14, said, "small quiet")


def _panel(column: str, down: int) -> Iterator[str]:
    """The bars of one figure, below one another."""
    table = records.table(_RECORD, _TABLE, column)
    medians = {row: _median(table, row, column) for row in _ROWS}
    for at, (row, (name, colour)) in enumerate(_ROWS.items()):
        top = down + 20 * at
        wide = round(_BAR * medians[row] / max(medians.values()), 1)
        yield _text(12, top + 15, name, "small")
        yield (
            f'<rect class="{colour}" x="{_LEFT}" y="{top + 4}" width="{wide}" height="14" rx="2"/>'
        )
        figure, failed = table.rows[row][column].partition(" (")[0], table.rows[row]["failed %"]
        fails = column == "requests/s" and float(failed) > 0
        note = f" · {failed} % fail" if fails else ""
        said = "small red" if fails else "small quiet"
        yield _text(round(_LEFT + wide + 5, 1), top + 15, figure + note, said)


def _median(table: records.Table, row: str, column: str) -> float:
    one = table.summary(row, column)
    if one is None:
        raise ValueError(f"docs/evidence/{_RECORD}.md has no {column} of {row}")
    return one.median


def _text(x: float, y: float, text: str, classes: str) -> str:
    return f'<text class="{classes}" x="{x}" y="{y}">{escape(text)}</text>'


if __name__ == "__main__":
    FILE.write_text(drawing())
