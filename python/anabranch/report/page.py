"""Pieces of a self-contained HTML page: the frame, tables, and columns as compressed binary."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from anabranch.report.columns import Chart, SeriesColumns

_CLASS = " class='wide'"
_WIDE = 5
"""Columns from which on a telephone has no room for a table."""

_HERE = Path(__file__).resolve().parent


def page(title: str, body: str, *, charts: Sequence[Chart] = ()) -> str:
    """A whole page; scripts and chart data only where there are charts."""
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    tail = ""
    if charts:
        vendor = _HERE / "vendor"
        style += (vendor / "uPlot.min.css").read_text(encoding="utf-8")
        licence = (vendor / "uPlot-LICENSE").read_text(encoding="utf-8").strip()
        library = (vendor / "uPlot.iife.min.js").read_text(encoding="utf-8")
        data = shown.script([_chart(c) for c in charts])
        tail = (
            f'<script type="application/json" id="charts">{data}</script>\n'
            f"<script>/* uPlot 1.6.32\n{licence}\n*/\n{library}</script>\n"
            f"<script>{(_HERE / 'charts.js').read_text(encoding='utf-8')}</script>\n"
        )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n{tail}</body>\n</html>\n"
    )


def text(value: object) -> str:
    """``value`` as text of the page."""
    return shown.html(value)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1, raw: bool = False) -> str:
    """A table; the first ``left`` columns stand left, figures right. ``raw`` cells are HTML already.

    On a narrow screen each row of a wide table becomes a block whose lines bear the headings.
    """
    wide = len(headings) >= _WIDE
    labels = [f" data-label='{text(heading)}'" if wide and heading else "" for heading in headings]
    out = [f"<div class='scroll'><table{_CLASS if wide else ''}><thead><tr>"]
    out += [f"<th{_side(i, left)}>{text(h)}</th>" for i, h in enumerate(headings)]
    out.append("</tr></thead><tbody>")
    for row in rows:
        cells = (f"<td{_side(i, left)}{labels[i]}>{cell if raw else text(cell)}</td>" for i, cell in enumerate(row))
        out.append(f"<tr>{''.join(cells)}</tr>")
    out.append("</tbody></table></div>")
    return "".join(out)


def image(svg: bytes, alt: str) -> str:
    """A figure inside the page."""
    return f'<img alt="{shown.html(alt)}" src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}">'


def pack_times(times: NDArray[np.float64]) -> tuple[str, float]:
    """Ascending times (s) as deflated base64 of their 32-bit differences, and the unit of those in s.

    The unit is 1 µs unless a gap is too long for it (over an hour). Regular times shrink to nothing.
    """
    import numpy as np

    longest = float(np.max(np.diff(times, prepend=0.0), initial=0.0))
    unit = max(1e-6, longest / 2**31)
    ticks = np.rint(times / unit).astype(np.int64)
    return _deflate(np.diff(ticks, prepend=0).astype("<u4").tobytes()), unit


def pack_values(values: NDArray[np.float64]) -> str:
    """Values as deflated base64 of 32-bit floats; missing ones are NaN."""
    return _deflate(values.astype("<f4").tobytes())


def _deflate(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw, 6)).decode()


def _chart(chart: Chart) -> dict[str, Any]:
    return {"name": chart.name, "y_label": chart.y_label, "series": [_series(s) for s in chart.series]}


def _series(series: SeriesColumns) -> dict[str, Any]:
    times, unit = pack_times(series.x)
    return {
        "label": series.label,
        "kind": series.kind,
        "faint": series.faint,
        "unit_s": unit,
        "x": times,
        "y": pack_values(series.y),
    }


def _side(column: int, left: int) -> str:
    return "" if column < left else " class='n'"
