"""Bounds of figures: counts, rates and times are at least 0, shares at most 1. Displayed intervals end there.

Tables and JSON contain the ends of Student's interval as computed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anabranch.statistics.statistics import Interval

_SHARE = re.compile(r"(^|[._])(utilization|share|ratio|rate|jain_index)$")
"""Figures of a summary from 0 to 1."""

CUT = "(A to B) in place of ±: the interval, cut off where the figure cannot be: below 0, a share above 1"
"""Explains an interval with its ends in place of ±."""


def is_share(figure: str) -> bool:
    """Whether a figure of a summary is from 0 to 1."""
    return _SHARE.search(figure) is not None


def within(interval: Interval, figure: str) -> Interval:
    """The interval of a figure with its ends at the figure's bounds."""
    lower, upper = interval.lower, interval.upper
    if lower is None or upper is None:
        return interval
    if interval.mean >= 0:
        lower = max(lower, 0.0)
    if is_share(figure) and interval.mean <= 1:
        upper = min(upper, 1.0)
    return replace(interval, lower=lower, upper=upper)


def is_cut(interval: Interval, figure: str) -> bool:
    """Whether an end is beyond a bound of the figure."""
    return within(interval, figure) != interval
