"""The component inside a page: its style and scripts, and the places where it draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from anabranch.charts.model import Chart
from anabranch.charts.pack import packed
from anabranch.text import shown

_HERE = Path(__file__).resolve().parent
_MOST_NAMED = 6
"""Series that the description of a chart names."""


def style() -> str:
    """The style sheet of charts, heat maps and drawings."""
    return _read("chart.css") + _read("vendor/uPlot.min.css")


def scripts() -> str:
    """The drawing library with its licence, then the component."""
    licence = _read("vendor/uPlot-LICENSE").strip()
    return (
        f"<script>/* uPlot 1.6.32\n{licence}\n*/\n{_read('vendor/uPlot.iife.min.js')}</script>\n"
        f"<script>{_read('chart.js')}</script>\n"
    )


def data(charts: Sequence[Chart]) -> str:
    """The columns of all charts of a page."""
    return f'<script type="application/json" id="charts">{shown.script([packed(c) for c in charts])}</script>\n'


def assets(charts: Sequence[Chart]) -> tuple[str, str]:
    """Style sheet and final scripts of a page with ``charts``."""
    return style(), data(charts) + scripts()


def place(chart: Chart) -> str:
    """The element in which the component draws ``chart``; without scripts it shows a description."""
    told = shown.html(description(chart))
    return (
        f"<div class='chart{' strip' if chart.is_strip else ''}' id='chart-{shown.html(chart.name)}' "
        f"role='group' aria-label='{told}'>"
        f"<noscript><p>{told} The drawing needs scripts.</p></noscript></div>"
    )


def place_all(charts: Iterable[Chart], *, level: int = 2) -> str:
    """Every chart below its heading."""
    parts = []
    for chart in charts:
        about = f"<p class='soft'>{shown.html(chart.about)}</p>" if chart.about else ""
        parts.append(f"<h{level}>{shown.html(chart.title)}</h{level}>{about}{place(chart)}")
    return "".join(parts)


def stack(charts: Iterable[Chart], part: tuple[float, float] | None = None) -> str:
    """Charts over time below each other, with one axis of time, one set of buttons and the whole run in small.

    Args:
        charts: The charts; the overview repeats the first.
        part: The part shown at first, from and to (s); by default everything.
    """
    opens = "" if part is None else f" data-from='{part[0]:.6g}' data-to='{part[1]:.6g}'"
    made = []
    for chart in charts:
        about = f" <span class='soft'>{shown.html(chart.about)}</span>" if chart.about else ""
        made.append(f"<h3>{shown.html(chart.title)}{about}</h3>{place(chart)}")
    return f"<section class='stack' aria-label='Charts over time'{opens}>{''.join(made)}</section>" if made else ""


def description(chart: Chart) -> str:
    """Description of a chart for people who cannot see it."""
    names = [series.label for series in chart.series]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{chart.title}: {chart.y_label} over {chart.x_label}. Series: {', '.join(names[:_MOST_NAMED])}{more}."


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
