"""Fairness among flows on a link: max-min shares, the smallest of them, and Jain's index.

A flow that demands less than an equal share receives its demand, and the other flows share the rest: the max-min fair
allocation (Bertsekas and Gallager, Data Networks, 2nd edition, §6.5.2), for one link by filling.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

_RATE = re.compile(r"([0-9.eE+_-]+)\s*(k|[KMGT]i|[MGT])?bit/s\Z")
_PREFIX = {
    None: 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
}  # fmt: skip
_RATE_OF_ITS_OWN = "paced"
_RANDOM_LOAD = ("poisson", "request-response", "on-off", "replay")


def max_min(capacity: float, demands: Sequence[float]) -> list[float]:
    """The max-min fair allocation of a link.

    Args:
        capacity: The capacity to share, in the unit of ``demands``.
        demands: The demand of each flow; infinite for a greedy flow.

    Returns:
        The fair share of each flow, in the order of ``demands``.
    """
    shares = [0.0] * len(demands)
    left = max(capacity, 0.0)
    order = sorted(range(len(demands)), key=lambda i: demands[i])
    for n, i in enumerate(order):
        shares[i] = min(demands[i], left / (len(order) - n))
        left -= shares[i]
    return shares


def of_max_min(goodputs: Mapping[str, float], capacity: float, demands: Mapping[str, float]) -> list[float]:
    """Each flow's goodput over its max-min fair share of a link.

    Args:
        goodputs: The goodput of each flow. A flow with an unknown demand (see :func:`demands_of`) is not judged: its
            goodput is subtracted from the capacity.
        capacity: The capacity of the link, in the same unit.
        demands: The demand of each flow.
    """
    judged = [name for name in goodputs if not math.isnan(demands.get(name, math.inf))]
    others = math.fsum(value for name, value in goodputs.items() if name not in judged)
    shares = max_min(capacity - others, [demands.get(name, math.inf) for name in judged])
    return [goodputs[name] / share for name, share in zip(judged, shares, strict=True) if share > 0]


def jain(values: Sequence[float]) -> float | None:
    """Jain's index, 1 ÷ n to 1 (Jain, Chiu and Hawe, DEC-TR-301, 1984); ``None`` if all values are 0."""
    squares = math.fsum(v * v for v in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares > 0 else None


def demands_of(resolved: Mapping[str, Any], flows: Sequence[str]) -> dict[str, float]:
    """The demand of each flow of a run, in Mbit/s.

    Args:
        resolved: The resolved scenario of the run, with all defaults.
        flows: Names of the summary: ``"main"``, or ``"main/0"`` if a flow has several copies.

    Returns:
        The rate of a workload with a constant rate (``paced``); not-a-number for workloads of many transfers and
        variable workloads, whose momentary load is unknown; infinite for all others.
    """
    out: dict[str, float] = {}
    for name in flows:
        workload = resolved.get("flow", {}).get(name.split("/")[0], {}).get("workload", {})
        kind = workload.get("kind")
        if kind == _RATE_OF_ITS_OWN and "profile" not in workload:
            out[name] = _mbit_s(workload["rate"])
        else:
            out[name] = math.nan if kind in (*_RANDOM_LOAD, _RATE_OF_ITS_OWN) else math.inf
    return out


def _mbit_s(rate: str) -> float:
    match = _RATE.match(rate)
    if match is None:
        raise ValueError(f"{rate} is no rate")
    return float(match[1].replace("_", "")) * _PREFIX[match[2]] / 1e6
