"""The charts of the benchmark pages: which figures of which record, drawn as the lab draws them.

A page asks for one by its name: ``<!-- site: chart NAME -->``. No figure stands here, only where it
is to be found; a row that a record no longer has is an error of the build. The drawing and its
colours are the lab's own (``oxlite.bench.report.html``), with the site's light and dark.
"""

import re
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

import jinja2
from scripts.site import records
from scripts.site.declared import CHARTS, Chart

from oxlite.bench.report.charts import Bar, Bars, Ratios
from oxlite.bench.report.html.drawing import Picture, drawn

_FIGURE = """\
{% from "charts.html" import picture %}
<figure class="bench">
<figcaption>{{ title }}</figcaption>
<div class="chart" role="img" aria-label="{{ title }}. {{ said }}">
{% for name, one in parts %}
{% if name %}<p class="part">{{ name }}</p>{% endif %}
{{ picture(one) }}
{% endfor %}
</div>
<p class="hint">{{ hint }} From the record
<a href="../../evidence/{{ record }}/">{{ record }}</a>.</p>
</figure>
"""


@dataclass(frozen=True)
class _Part:
    name: str
    bars: list[Bar]


def figure(name: str) -> str:
    """The HTML of a chart, by its name in ``declared``.

    Raises:
        KeyError: there is no such chart, or its record has no such table or row.
    """
    chart = CHARTS[name.strip()]
    parts = _parts(chart)
    bars = [bar for part in parts for bar in part.bars]
    whole = _drawn(chart, bars)
    lanes = iter(whole.lanes)
    pictures = [
        (part.name, replace(whole, legend=(), hint="", lanes=[next(lanes) for _ in part.bars]))
        for part in parts
    ]
    said = "; ".join(f"{lane.name}: {lane.figure}" for lane in whole.lanes)
    html = _environment().from_string(_FIGURE)
    text = html.render(
        title=chart.title,
        said=said,
        parts=pictures,
        hint=_hint(chart, bars),
        record=chart.record,
    )
    return re.sub(r"\n\s*\n+", "\n", text)


def style() -> str:
    """The colours and forms of the lab's report, for charts within the site's pages.

    What there is about the report as a page does no harm: a chart has no ``body`` within it.
    """
    text = resources.files("oxlite.bench.report.html").joinpath("templates/style.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", text, flags=re.DOTALL)[:2]
    forms = re.sub(r"@media \(prefers-color-scheme: dark\) \{.*?\n\}", "", text, flags=re.DOTALL)
    forms = re.sub(r":root \{.*?\}", "", forms, flags=re.DOTALL)
    # Of 16 pixels there; Material's pages have 20. A window's width is of 16 in both.
    forms = re.sub(
        r"(?<!max-width: )(\d*\.?\d+)rem", lambda size: f"{0.8 * float(size[1]):.3g}rem", forms
    )
    schemes = {"default": light, "slate": dark}
    return "\n".join(
        [
            *(
                f'[data-md-color-scheme="{scheme}"] .bench {{{colours}}}'
                for scheme, colours in schemes.items()
            ),
            f".bench {{{forms}}}\n",
        ]
    )


def _parts(chart: Chart) -> list[_Part]:
    table = records.table(chart.record, chart.table, chart.column)
    groups = chart.groups or {"": {row: row for row in table.rows}}
    found = []
    for group, rows in groups.items():
        bars = []
        for row, name in rows.items():
            summary = table.summary(row, chart.column)
            if summary is not None:
                bars.append(Bar(name, summary, row.split()[0], note=_note(chart, table, row)))
        found.append(_Part(group, bars))
    return found


def _note(chart: Chart, table: records.Table, row: str) -> str:
    """What is said beside a figure: a cell that is not nothing."""
    if chart.note is None:
        return ""
    column, form = chart.note
    cell = table.rows[row][column]
    return "" if cell in {"0", "0.00", "\N{EN DASH}"} else form.format(cell)


def _drawn(chart: Chart, bars: list[Bar]) -> Picture:
    if chart.kind == "ratios":
        return drawn(Ratios(chart.title, bars))
    return drawn(Bars(chart.title, chart.better, bars))


def _hint(chart: Chart, bars: list[Bar]) -> str:
    better = "longer" if chart.better == "higher" else "shorter"
    if chart.kind == "ratios":
        hint = _drawn(chart, bars).hint
    else:
        hint = f"A {better} bar is better."
        if any(bar.summary.count > 1 for bar in bars):
            hint += " The thin line is where the true median lies."
    return f"{hint[0].upper()}{hint[1:].removesuffix('.')}."


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("oxlite.bench.report.html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
