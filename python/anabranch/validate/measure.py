"""The compared figures of a run, and the distance between two runs.

Copies of one flow (``count``) are one group, because copies in two engines cannot be matched. A group's figure is the
mean of its copies, or the sum for retransmissions and goodput.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from anabranch.result.result import RunResult

ALL = "all"
"""The single group of a figure of all flows together."""

BIN_S = 0.25
"""Windows are compared in bins of this length, in seconds."""

Values: TypeAlias = "Mapping[str, float]"
Windows: TypeAlias = "Mapping[str, Mapping[int, float]]"


@dataclass(frozen=True)
class Metric:
    """One figure.

    Attributes:
        name: The name in JSON.
        unit: The unit for people.
        is_count: Whether differences are in square roots of the count, the distance between counts of rare independent
            events (the standard deviation of a Poisson count).
        is_share: Whether the groups' figures are parts of one whole.
        is_rate: Whether a formula could predict it: rates, times and shares.
    """

    name: str
    unit: str
    is_count: bool = False
    is_share: bool = False
    is_rate: bool = True


GOODPUT = Metric("goodput_mbit_s", "Mbit/s")
SRTT = Metric("mean_srtt_ms", "ms")
RETRANSMITTED = Metric("retransmitted_packets", "packets", is_count=True, is_rate=False)
SHARES = Metric("shares", "of the sum", is_share=True)
COMPLETION = Metric("completion_time_s", "s")
METRICS = (GOODPUT, SRTT, RETRANSMITTED, SHARES, COMPLETION)


@dataclass(frozen=True)
class Figures:
    """One run: by metric and group; ``None`` for a figure that the run should have but lacks."""

    values: Mapping[str, Mapping[str, float | None]]
    windows: Windows = field(default_factory=dict)
    """The mean window in packets, by group and bin."""


def measure(run: RunResult) -> Figures:
    """The figures of a run."""
    tables = run.summary["resolved_scenario"]["flow"]

    def group(flow: str) -> str:
        return flow if flow in tables else flow.rpartition("/")[0]

    members: dict[str, list[Mapping[str, Any]]] = {}
    for name, flow in run.flows.items():
        members.setdefault(group(name), []).append(flow)

    def each(key: str, kind: str) -> dict[str, float | None]:
        return {name: _gather([flow.get(key) for flow in flows], kind) for name, flows in members.items()}

    goodputs = each("goodput_mbit_s", "sum")
    total = _gather(list(goodputs.values()), "sum")
    shares: dict[str, float | None] = {}
    if len(goodputs) > 1 and total:
        shares = {name: None if value is None else value / total for name, value in goodputs.items()}
    completion: dict[str, float | None] = {}
    for name, flows in members.items():
        if _kind(tables[name].get("workload")) in ("file", "request-response"):
            completion[name] = _gather([_completion(flow) for flow in flows], "mean")
    return Figures(
        {
            GOODPUT.name: {ALL: total},
            SRTT.name: each("mean_srtt_ms", "mean"),
            RETRANSMITTED.name: each("retransmitted_packets", "sum"),
            SHARES.name: shares,
            COMPLETION.name: completion,
        },
        _windows(run, group),
    )


def _kind(workload: Any) -> Any:
    return workload.get("kind") if isinstance(workload, Mapping) else workload


def _completion(flow: Mapping[str, Any]) -> float | None:
    """A file's time, or the median time of a response."""
    exchanges = flow.get("exchanges")
    if exchanges:
        time = exchanges.get("p50_response_time_ms")
        return None if time is None else time / 1e3
    time = flow.get("flow_completion_time_s")
    return None if time is None else float(time)


def _gather(values: Sequence[Any], kind: str) -> float | None:
    """The sum or mean; ``None`` if any value is missing, because a partial sum is meaningless."""
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    if not numbers or len(numbers) < len(values):
        return None
    return sum(numbers) / (len(numbers) if kind == "mean" else 1)


def _windows(run: RunResult, group: Any) -> dict[str, dict[int, float]]:
    if not run.has_table("samples"):
        return {}
    table = run.plain("samples")
    found: dict[str, dict[int, list[float]]] = {}
    for name, time, window in zip(table["flow"], table["time_s"], table["cwnd_packets"], strict=True):
        if window is not None:
            found.setdefault(group(name), {}).setdefault(int(time / BIN_S), []).append(window)
    return {name: {at: sum(part) / len(part) for at, part in bins.items()} for name, bins in found.items()}


def mean_figures(metric: Metric, runs: Sequence[Figures]) -> dict[str, float]:
    """The mean over runs by group; groups without a figure in some run are left out."""
    found: dict[str, float] = {}
    for group in {name: None for run in runs for name in run.values[metric.name]}:
        value = _gather([run.values[metric.name].get(group) for run in runs], "mean")
        if value is not None:
            found[group] = value
    return found


def one_sided(metric: Metric, simulated: Sequence[Figures], live: Sequence[Figures]) -> set[str]:
    """Figures that only some runs of a seed have, or that are 0 in only some of them."""
    found = set()
    runs = (*simulated, *live)
    for group in {name: None for run in runs for name in run.values[metric.name]}:
        values = [run.values[metric.name].get(group) for run in runs]
        missing = any(value is None for value in values) and any(value is not None for value in values)
        nothing = not metric.is_count and 0 in values and any(values)
        if missing or nothing:
            found.add(f"{metric.name} of {'all flows' if group == ALL else f'flow {group}'}")
    return found


def distance(metric: Metric, a: Values, b: Values) -> float | None:
    """The distance of ``a`` from ``b``, over their common groups; ``None`` if there are none.

    For shares: the part of the whole that belongs to another flow. For counts: in square roots of the count. Otherwise:
    as a share of ``b``. Over several groups it is the mean. Two figures that are both 0 have distance 0; if only one is
    0, they have the largest distance, 1.
    """
    groups = [group for group in b if group in a]
    if not groups:
        return None
    if metric.is_share:
        return sum(abs(a[group] - b[group]) for group in groups) / 2
    return sum(_apart(metric, a[group], b[group]) for group in groups) / len(groups)


def _apart(metric: Metric, a: float, b: float) -> float:
    if metric.is_count:
        return abs(a - b) / math.sqrt(max(a, b, 1.0))
    if b == 0:
        return 0.0 if a == 0 else 1.0
    return abs(a - b) / b


def window_distance(a: Windows, b: Windows) -> float | None:
    """Mean difference of windows at the same time over the mean of ``b``; the mean over groups."""
    found = []
    for group, theirs in b.items():
        bins = [at for at in theirs if at in a.get(group, {})]
        below = sum(theirs[at] for at in bins)
        if below:
            found.append(sum(abs(a[group][at] - theirs[at]) for at in bins) / below)
    return sum(found) / len(found) if found else None
