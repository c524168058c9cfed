"""Pieces of a self-contained HTML page: the frame, tables, and images."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.text import shown

if TYPE_CHECKING:
    from anabranch.charts.model import Chart

_CLASS = " class='wide'"
_WIDE = 5
"""From this number of columns on, a table is too wide for a telephone."""

_GENERATOR = '<meta name="generator" content="Anabranch">'
"""Identifies our pages, so that a later command may replace them."""

_HERE = Path(__file__).resolve().parent


def page(title: str, body: str, *, charts: Sequence[Chart] = (), scripts: Sequence[str] = ()) -> str:
    """A whole page. The chart component and its data are included only with charts, and ``scripts`` come after it."""
    from anabranch.charts.embed import assets, style

    look = (_HERE / "page.css").read_text(encoding="utf-8")
    more, tail = assets(charts) if charts else (style(), "")
    tail += "".join(f"<script>{(_HERE / name).read_text(encoding='utf-8')}</script>\n" for name in scripts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{_GENERATOR}\n"
        f"<title>{text(title)}</title>\n<style>{look}{more}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n{tail}</body>\n</html>\n"
    )


def is_page_of_ours(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a page that :func:`page` made."""
    return _GENERATOR.encode() in head.partition(b"</head>")[0]


def text(value: object) -> str:
    """``value`` as text of the page."""
    return shown.html(value)


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: int = 1,
    raw: bool = False,
    words: Collection[int] = (),
) -> str:
    """A table. The first ``left`` columns and those in ``words`` are left-aligned; cells are HTML if ``raw``.

    On a narrow screen each row of a wide table becomes a block whose lines bear the headings.
    """
    wide = len(headings) >= _WIDE
    labels = [f" data-label='{text(heading)}'" if wide and heading else "" for heading in headings]
    out = [
        f"<div class='scroll' tabindex='0' role='group' aria-label='Table'><table{_CLASS if wide else ''}><thead><tr>"
    ]
    out += [f"<th{_side(i, left, words)}>{text(h)}</th>" for i, h in enumerate(headings)]
    out.append("</tr></thead><tbody>")
    for row in rows:
        cells = (
            f"<td{_side(i, left, words)}{labels[i]}>{cell if raw else text(cell)}</td>" for i, cell in enumerate(row)
        )
        out.append(f"<tr>{''.join(cells)}</tr>")
    out.append("</tbody></table></div>")
    return "".join(out)


def image(svg: bytes, alt: str) -> str:
    """A figure inside the page."""
    return f'<img alt="{shown.html(alt)}" src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}">'


def _side(column: int, left: int, words: Collection[int]) -> str:
    return "" if column < left or column in words else " class='n'"
