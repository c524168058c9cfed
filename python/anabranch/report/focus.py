"""The part of a run shown first in its report: around the first loss, or the first change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.result.remarks import seconds

if TYPE_CHECKING:
    from anabranch.charts.scan import Scan
    from anabranch.result.result import RunResult

_ROUND_TRIPS = 20
"""Length of the part in round-trip times: detection, recovery and the growth after it."""
_LEAST = 0.02
"""Smallest length of the part, as a share of the run."""
_MOST = 0.5
"""Largest length of the part, as a share of the run; beyond it the whole run is shown."""
_BEFORE = 0.3
"""Share of the part that precedes the event."""


def part(result: RunResult, scan: Scan) -> tuple[float, float] | None:
    """From and to (s) of the part around the first event; ``None`` if the whole run is shown."""
    time = scan.first_retransmission_s if scan.first_loss_s is None else scan.first_loss_s
    if time is None:
        time = _first_change(result)
    end = float(result.summary.get("duration_s") or 0.0)
    if time is None or end <= 0:
        return None
    round_trips = [flow.get("mean_srtt_ms") or 0.0 for flow in result.flows.values()]
    length = max(_ROUND_TRIPS * max(round_trips, default=0.0) / 1e3, _LEAST * end)
    if length >= _MOST * end:
        return None
    first = min(max(time - _BEFORE * length, 0.0), end - length)
    return first, first + length


def _first_change(result: RunResult) -> float | None:
    """Time of the scenario's first change of the path."""
    changes = result.summary.get("resolved_scenario", {}).get("at", [])
    times = [seconds(str(change.get("time"))) for change in changes]
    return min((time for time in times if time is not None), default=None)
