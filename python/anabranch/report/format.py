"""Figures as text for people: few digits, a dash where there is no figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anabranch.summary import FlowSummary
    from anabranch.sweep import Estimate

NONE = "–"


def figure(value: float | None, *, ratio: bool = False) -> str:
    """A number with about four significant digits; whole numbers whole; ratios (0‥1) as per cent."""
    if value is None:
        return NONE
    if ratio:
        return f"{100 * value:.3g} %"
    if float(value).is_integer() and abs(value) < 1e12:
        return f"{int(value):,}"
    return f"{value:.4g}" if abs(value) < 1e5 else f"{value:,.0f}"


BROKEN = {"reset": "was reset", "gave-up": "gave up", "refused": "was refused"}
"""How a connection ended badly, in words."""


def end(flow: FlowSummary) -> str:
    """How a flow ended, and when in seconds from the start of the run."""
    ended, at = flow.get("ended"), flow.get("ended_at_s")
    if ended is None:
        return NONE
    return ended if at is None else f"{ended} {figure(at)} s"


def interval(estimate: Estimate | None) -> str:
    """A mean with half of its interval, where it has one."""
    if estimate is None:
        return NONE
    value = estimate.interval
    if value.lower is None:
        return figure(value.mean)
    return f"{figure(value.mean)} ± {half_width(value.mean - value.lower)}"


def half_width(value: float) -> str:
    """Half of an interval, with two significant digits."""
    rounded = f"{value:.2g}"
    return f"{float(rounded):,.0f}" if 100 <= value < 1e12 else rounded


def share(value: float | None, *, stale: bool = False) -> str:
    """A share (0‥1) as per cent; marked when it was computed before the last change."""
    if value is None:
        return NONE
    return f"{100 * value:.0f} %{' (stale)' if stale else ''}"
