"""How fairly flows share a link: max-min shares, the worst of them, and Jain's index.

A flow that asks for less than an equal share gets what it asks for, and the others share what that leaves: the max-min
fair allocation (Bertsekas and Gallager, Data Networks, 2nd edition, §6.5.2), for one link by filling.
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
        capacity: What there is to share, in the unit of ``demands``.
        demands: What each flow asks for; infinite for one that takes what it gets.

    Returns:
        What each flow ought to get, in the order of ``demands``.
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
        goodputs: What each flow got. A flow that asks for something unknown (see :func:`demands_of`) is not judged:
            what it got is taken off the capacity.
        capacity: What the link carries, in the same unit.
        demands: What each flow asks for.
    """
    judged = [name for name in goodputs if not math.isnan(demands.get(name, math.inf))]
    others = math.fsum(value for name, value in goodputs.items() if name not in judged)
    shares = max_min(capacity - others, [demands.get(name, math.inf) for name in judged])
    return [goodputs[name] / share for name, share in zip(judged, shares, strict=True) if share > 0]


def jain(values: Sequence[float]) -> float | None:
    """Jain's index, 1 ÷ n to 1 (Jain, Chiu and Hawe, DEC-TR-301, 1984); ``None`` where nothing was got."""
    squares = math.fsum(v * v for v in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares > 0 else None


def demands_of(resolved: Mapping[str, Any], flows: Sequence[str]) -> dict[str, float]:
    """What each flow of a run asks for, in Mbit/s.

    Args:
        resolved: The scenario as it was run, every default written out.
        flows: Names of the summary: ``"main"``, or ``"main/0"`` of several copies.

    Returns:
        The rate of a workload that has one of its own (``paced``); not-a-number for workloads of many transfers
        and those that vary, whose load at a time is not known; infinite for all others.
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
