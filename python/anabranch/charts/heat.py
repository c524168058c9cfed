"""A heat map as a table with the figures in its cells, so that it needs neither scripts nor a second table."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.text import shown

_STOPS = ((0x44, 0x01, 0x54), (0x3B, 0x52, 0x8B), (0x21, 0x91, 0x8C), (0x5E, 0xC9, 0x62), (0xFD, 0xE7, 0x25))
"""Viridis at equal steps: its brightness rises evenly, which suits greyscale print and colour blindness."""
_NONE = "–"


def heat_map(
    caption: str,
    across: tuple[str, Sequence[str]],
    down: tuple[str, Sequence[str]],
    cells: Sequence[Sequence[float | None]],
    ends: tuple[float, float] | None = None,
) -> str:
    """A table whose cells are coloured by their value.

    Args:
        caption: Description of the values, with their unit.
        across: The axis to the right: its name, and the names of its values.
        down: The axis downwards, likewise.
        cells: The values row by row; ``None`` for a missing value.
        ends: The darkest and the brightest value; by default the range of the cells.
    """
    values = [value for row in cells for value in row if value is not None]
    low, high = ends or ((min(values), max(values)) if values else (0.0, 0.0))
    corner = f"{down[0]} \\ {across[0]}"
    told = f"{caption}, from {low:.4g} (dark) to {high:.4g} (bright); {down[0]} downwards, {across[0]} to the right"
    head = "".join(f"<th scope='col'>{shown.html(name)}</th>" for name in across[1])
    rows = [
        f"<tr><th scope='row'>{shown.html(name)}</th>{''.join(_cell(value, low, high) for value in row)}</tr>"
        for name, row in zip(down[1], cells, strict=True)
    ]
    return (
        f"<div class='scroll' tabindex='0' role='group' aria-label='{shown.html(caption)}'>"
        f"<table class='heat'><caption>{shown.html(told)}</caption>"
        f"<thead><tr><th>{shown.html(corner)}</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def colour(share: float) -> str:
    """The colour of a value at ``share`` (0‥1) of the range, as ``#rrggbb``."""
    return "#" + "".join(f"{part:02x}" for part in _rgb(share))


def _cell(value: float | None, low: float, high: float) -> str:
    if value is None:
        return f"<td class='none'>{_NONE}</td>"
    share = (value - low) / (high - low) if high > low else 0.5
    red, green, blue = _rgb(share)
    return f"<td style='background:{colour(share)};color:{ink(red, green, blue)}'>{value:.4g}</td>"


def ink(red: int, green: int, blue: int) -> str:
    """Black or white, whichever has more contrast with this background (WCAG 2.2): at least 4.58 to 1."""
    luminance = sum(
        w * _linear(part / 255) for w, part in zip((0.2126, 0.7152, 0.0722), (red, green, blue), strict=True)
    )
    # (L + 0.05) / 0.05 for black is larger than 1.05 / (L + 0.05) for white.
    return "#000" if (luminance + 0.05) ** 2 > 0.05 * 1.05 else "#fff"


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def _rgb(share: float) -> tuple[int, int, int]:
    place = min(max(share, 0.0), 1.0) * (len(_STOPS) - 1)
    at = min(int(place), len(_STOPS) - 2)
    part = place - at
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(_STOPS[at], _STOPS[at + 1], strict=True))
    return red, green, blue
