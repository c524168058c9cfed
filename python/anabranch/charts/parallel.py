"""Parallel coordinates: an upright axis for every variable, and a line for each point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.charts.heat import colour
from anabranch.text import shown

_GAP = 150
_HEIGHT = 250
_TOP = 46
_MARGIN = 70
_MOST_TICKS = 8
_BRIGHTEST = 0.85
"""Lines in the brightest part of the colours would be invisible on white."""
_LETTERS = 20


@dataclass(frozen=True)
class Upright:
    """One axis.

    Attributes:
        title: Its title, with the unit.
        values: The value of each point; ``None`` for a missing value.
        names: Names of the positions 0, 1, …; empty if the values are quantities.
        is_log: The axis is logarithmic.
    """

    title: str
    values: Sequence[float | None]
    names: Sequence[str] = ()
    is_log: bool = False

    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        known = [value for value in self.values if value is not None]
        if self.names:
            return 0.0, float(max(1, len(self.names) - 1))
        return (min(known), max(known)) if known else (0.0, 1.0)

    def share(self, value: float) -> float:
        """The position of a value between the ends (0‥1)."""
        import math

        low, high = self.ends()
        if self.is_log and low > 0:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low) if high > low else 0.5


def parallel(uprights: Sequence[Upright], labels: Sequence[str], by: int) -> str:
    """A drawing of all points.

    Args:
        uprights: The axes from left to right.
        labels: The name of each point.
        by: The axis whose values colour the lines.
    """
    width, height = _GAP * (len(uprights) - 1) + 2 * _MARGIN, _TOP + _HEIGHT + 14
    lines = []
    for number, label in enumerate(labels):
        value = uprights[by].values[number]
        ink = colour(_BRIGHTEST * uprights[by].share(value)) if value is not None else "var(--chart-soft)"
        places = [
            (i, upright.share(v)) for i, upright in enumerate(uprights) if (v := upright.values[number]) is not None
        ]
        points = " ".join(f"{_x(i):.0f},{_y(share):.1f}" for i, share in places)
        lines.append(
            f"<polyline class='point' points='{points}' fill='none' stroke='{ink}'><title>{shown.html(label)}</title>"
            "</polyline>"
        )
    told = shown.html(f"Parallel coordinates of {len(labels)} points: {', '.join(u.title for u in uprights)}")
    axes = "".join(_axis(i, upright) for i, upright in enumerate(uprights))
    return (
        f"<div class='scroll' tabindex='0' role='group' aria-label='{told}'><svg class='drawing parallel' role='img' "
        f"aria-label='{told}' viewBox='0 0 {width} {height}' width='{width}' style='min-width:{width}px'>"
        f"{''.join(lines)}{axes}</svg></div>"
    )


def _axis(place: int, upright: Upright) -> str:
    x = _x(place)
    low, high = upright.ends()
    if upright.names:
        step = max(1, -(-len(upright.names) // _MOST_TICKS))
        ticks = [(_short(name), float(i)) for i, name in enumerate(upright.names) if i % step == 0]
    else:
        ticks = [(f"{value:.4g}", value) for value in ([low, high] if high > low else [low])]
    marks = "".join(
        f"<text x='{x + 6:.0f}' y='{_y(upright.share(value)) + 4:.1f}'>{shown.html(name)}</text>"
        for name, value in ticks
    )
    words = upright.title.rsplit(" (", 1)
    title = f"<text class='strong' x='{x:.0f}' y='14' text-anchor='middle'>{shown.html(_short(words[0]))}</text>"
    if len(words) > 1:
        title += f"<text class='soft' x='{x:.0f}' y='30' text-anchor='middle'>({shown.html(words[1])}</text>"
    return (
        f"<line x1='{x:.0f}' x2='{x:.0f}' y1='{_TOP}' y2='{_TOP + _HEIGHT}' stroke='currentColor' stroke-width='1.2'/>"
        f"{title}{marks}"
    )


def _x(place: int) -> float:
    return _MARGIN + _GAP * place


def _y(share: float) -> float:
    return _TOP + _HEIGHT * (1 - share)


def _short(text: str) -> str:
    return text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"
