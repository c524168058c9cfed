"""Figures as text for people: few digits, and a dash for a missing figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from anabranch.statistics.bounds import within

if TYPE_CHECKING:
    from anabranch.result.result import RunResult
    from anabranch.result.summary import FlowSummary
    from anabranch.sweep.sweep import Estimate, SweepResult

NONE = "–"
MEAN_OF_COPIES = "mean over the copies of the flow (count)"
"""Explains a figure of a flow with several copies."""


def figure(value: float | None, *, ratio: bool = False) -> str:
    """A number with about four significant digits; whole numbers whole; ratios (0‥1) as per cent."""
    if value is None:
        return NONE
    if ratio:
        return f"{100 * value:.3g} %"
    if float(value).is_integer() and abs(value) < 1e12:
        return f"{int(value):,}"
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"


MOST_LINES = 10
"""Largest number of flows, or axes, in the text of a result."""


def made_by(summary: Mapping[str, Any]) -> str:
    """The engine of a run, in words that follow its duration."""
    if summary.get("engine") == "kernel":
        return f"in Linux {summary['live']['machine']['kernel']}, virtual time"
    return "live" if summary.get("engine") == "live" else "simulated"


def run_text(result: RunResult) -> str:
    """A run on a few lines: its scenario, the recorded tables, and each flow's goodput."""
    from anabranch.result.summary import TABLES
    from anabranch.text.shown import plain

    summary = result.summary
    recorded = [name for name in TABLES[2:] if result.recorded(name) and result.plain(name).height]
    title = plain(repr(summary.get("scenario")))
    lines = [
        f"<RunResult of {title}, seed {summary.get('seed')}, {figure(summary.get('duration_s'))} s {made_by(summary)}; "
        f"recorded: {', '.join(recorded) or 'no tables'}"
    ]
    for name, flow in list(result.flows.items())[:MOST_LINES]:
        lines.append(
            f"  {plain(name)}: {figure(flow.get('goodput_mbit_s'))} Mbit/s goodput, "
            f"{figure(flow.get('retransmitted_packets'))} retransmitted, {figure(flow.get('mean_srtt_ms'))} ms srtt"
        )
    if len(result.flows) > MOST_LINES:
        lines.append(f"  and {len(result.flows) - MOST_LINES} more flows")
    return "\n".join(lines) + ">"


def sweep_text(result: SweepResult) -> str:
    """A sweep on a few lines: its axes, and the number of their values."""
    from anabranch.text.shown import plain

    lines = [f"<SweepResult of {result.plain.height} runs, {len(result.figures())} figures each"]
    lines += [f"  {plain(axis)}: {len(result.plain.unique(axis))} values" for axis in result.axes]
    return "\n".join(lines) + ">"


BROKEN = {"reset": "was reset", "gave-up": "gave up", "refused": "was refused"}
"""Abnormal ends of a connection, in words."""


ENDINGS = {"completed": "finished", "running": "still running", **BROKEN}
"""All ends of a connection, in words."""


def end(flow: FlowSummary) -> str:
    """How a flow ended, and the time in seconds from the start of the run."""
    ended, at = flow.get("ended"), flow.get("ended_at_s")
    if ended is None:
        return NONE
    return ended if at is None else f"{ended} {figure(at)} s"


def ending(flow: FlowSummary) -> str:
    """How a flow ended, in words: "finished at 4.2 s", "gave up at 131 s", "still running"; "" if unknown."""
    ended, at = flow.get("ended"), flow.get("ended_at_s")
    if ended is None:
        return ""
    word = ENDINGS.get(ended, ended)
    return word if at is None else f"{word} at {figure(at)} s"


def spread(value: float, half: float, digits: int | None = None) -> str:
    """A value and its spread, both rounded to the spread's second digit or to units: "477 ± 278", "0.35 ± 0.12".

    Args:
        value: The value.
        half: Its spread, half of an interval.
        digits: Decimal places, if a table prescribes them; its numbers have no separators.
    """
    if digits is not None:
        return f"{value:.{digits}f} ± {half:.{digits}f}"
    if half < LEAST_SPREAD * abs(value):
        half = 0.0
    places = _places(half)
    if half == 0 or places > MAX_PLACES:
        return f"{figure(value)} ± {half:.1g}"
    return f"{value:,.{places}f} ± {half:,.{places}f}"


LEAST_SPREAD = 1e-12
"""As a ratio to the value: a smaller spread is rounding error."""
MAX_PLACES = 9
"""Largest number of decimal places; a smaller spread is written with an exponent."""


def _places(half: float) -> int:
    """The decimal places at which a spread has two digits."""
    # Round first: 0.0996 has two digits as 0.10, not as 0.100.
    rounded = float(f"{half:.1e}")
    return max(0, 1 - math.floor(math.log10(rounded))) if rounded > 0 else 0


def interval(estimate: Estimate | None, name: str, scale: float = 1.0) -> str:
    """A mean with half of its interval, if it has one. If a bound cuts the interval off, both ends are shown instead.

    Args:
        estimate: The mean and its interval.
        name: The figure, which determines the bounds.
        scale: Factor from the figure to its displayed value.
    """
    if estimate is None:
        return NONE
    value = estimate.interval
    mean = value.mean * scale
    if value.lower is None:
        return figure(mean)
    shown = within(value, name)
    low, high = (
        unbounded if cut == end or cut is None else cut * scale
        for cut, end, unbounded in ((shown.lower, value.lower, -math.inf), (shown.upper, value.upper, math.inf))
    )
    return spread_within(mean, mean - value.lower * scale, low, high)


def spread_within(value: float, half: float, low: float, high: float, digits: int | None = None) -> str:
    """Like :func:`spread`. If one end of the interval is beyond a bound, both ends are shown instead of the half.

    Args:
        value: The value.
        half: Half of its interval.
        low: The lower bound.
        high: The upper bound.
        digits: Decimal places, if a table prescribes them.
    """
    ends = (max(value - half, low), min(value + half, high))
    if ends == (value - half, value + half) or not low <= value <= high:
        return spread(value, half, digits)
    places = min(_places(half), MAX_PLACES) if digits is None else digits
    told = (figure(end) if end in (low, high) else f"{end:,.{places}f}" for end in ends)
    return f"{value:,.{places}f} ({' to '.join(told)})"


def share(value: float | None, *, stale: bool = False) -> str:
    """A share (0‥1) as per cent; marked if it was computed before the last change."""
    if value is None:
        return NONE
    return f"{100 * value:.0f} %{' (stale)' if stale else ''}"
