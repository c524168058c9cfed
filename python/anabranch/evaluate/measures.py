"""Figures of runs, from which verdicts are made.

A case has one or more runs, by their roles: ``main`` alone, or for harm ``together`` and ``alone``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.evaluate.build import deviations
from anabranch.statistics.fairness import jain

Summary = Mapping[str, Any]
"""The summary of a run.

If it was sampled, with ``bins`` and ``losses``: goodput and retransmissions of each flow in short intervals.
"""
Runs = Mapping[str, Summary]
"""The summaries of a case, by the roles of the runs."""

BIN_S = 0.1
"""Interval of sampled goodput and retransmissions."""
MAIN = "main"


@dataclass(frozen=True)
class Measure:
    """A figure of a case.

    Attributes:
        name: Its name in reports.
        unit: Its unit, empty for a ratio.
        is_less_better: Whether a smaller value is better.
        floor: The smallest absolute difference that counts, beside :data:`anabranch.evaluate.judge.MARGIN` of the mean.
        of: The figure; ``None`` if the runs have none.
    """

    name: str
    unit: str
    is_less_better: bool
    floor: float
    of: Callable[[Runs], float | None]


def copies(run: Summary, name: str) -> list[Any]:
    """The flows of a table, which may have several copies."""
    flows = run["flows"]
    if name in flows and not any(key.startswith(f"{name}/") for key in flows):
        return [flows[name]]
    return [flow for key, flow in flows.items() if key.startswith(f"{name}/")]


def _said(name: str) -> str:
    """A flow's name in the text of a measure."""
    return {"x": "the control", "other": "others"}.get(name, name)


def total(run: Summary, name: str, key: str) -> float:
    """The sum of a figure over the copies of a flow."""
    return math.fsum(flow[key] or 0.0 for flow in copies(run, name))


def goodput(name: str, role: str = MAIN) -> Measure:
    """The goodput of all copies of a flow."""
    return Measure(
        f"goodput of {_said(name)}", "Mbit/s", False, 0.0, lambda runs: total(runs[role], name, "goodput_mbit_s")
    )


def mean_goodput(name: str) -> Measure:
    """The mean goodput of a flow over all runs of a case."""

    def value(runs: Runs) -> float | None:
        return math.fsum(total(run, name, "goodput_mbit_s") for run in runs.values()) / len(runs)

    return Measure(f"mean goodput of {_said(name)}", "Mbit/s", False, 0.0, value)


def goodput_of_all() -> Measure:
    """The cumulated goodput of all flows."""

    def value(runs: Runs) -> float | None:
        return math.fsum(flow["goodput_mbit_s"] or 0.0 for flow in runs[MAIN]["flows"].values())

    return Measure("goodput of all flows", "Mbit/s", False, 0.0, value)


def _bottleneck(runs: Runs, key: str) -> float | None:
    value = runs[MAIN]["links"]["bottleneck"]["forward"][key]
    return None if value is None else float(value)


def utilization() -> Measure:
    """The utilization of the bottleneck."""
    return Measure("utilization", "", False, 0.01, lambda runs: _bottleneck(runs, "utilization"))


def queue_delay(percentile: int = 95) -> Measure:
    """A percentile of the time in the queue."""
    key = f"p{percentile}_queue_delay_ms"
    return Measure(f"queue delay, {percentile}th percentile", "ms", True, 1.0, lambda runs: _bottleneck(runs, key))


def loss(role: str = MAIN, link: str = "bottleneck") -> Measure:
    """The share of packets that the queue and impairments of the bottleneck lose."""

    def share(runs: Runs) -> float | None:
        one = runs[role]["links"][link]["forward"]
        lost = (one["dropped_packets"] or 0) + (one["lost_packets"] or 0)
        offered = one["sent_packets"] + (one["dropped_packets"] or 0)
        return lost / offered if offered else None

    return Measure("lost packets", "", True, 0.001, share)


def retransmitted(name: str) -> Measure:
    """The share of a flow's packets that are retransmissions."""
    return Measure(f"retransmissions of {_said(name)}", "", True, 0.001, lambda runs: _retransmitted(runs[MAIN], name))


def _retransmitted(run: Summary, name: str) -> float | None:
    sent = total(run, name, "sent_packets")
    return total(run, name, "retransmitted_packets") / sent if sent else None


def spurious(name: str) -> Measure:
    """The share of a flow's packets that repeat data which had arrived."""

    def share(runs: Runs) -> float | None:
        sent = total(runs[MAIN], name, "sent_packets")
        return total(runs[MAIN], name, "spurious_retransmissions") / sent if sent else None

    return Measure(f"spurious retransmissions of {_said(name)}", "", True, 0.001, share)


def fairness(name: str) -> Measure:
    """Jain's index of the copies of a flow."""

    def index(runs: Runs) -> float | None:
        return jain([flow["goodput_mbit_s"] or 0.0 for flow in copies(runs[MAIN], name)])

    return Measure("Jain's index", "", False, 0.02, index)


def completion(name: str, key: str = "p95_completion_time_s") -> Measure:
    """A percentile of the completion times of many files, or the completion time of one."""

    def time(runs: Runs) -> float | None:
        one = copies(runs[MAIN], name)[0]
        transfers = one.get("transfers")
        value = transfers[key] if transfers else one["flow_completion_time_s"]
        return None if value is None else float(value)

    told = {"p95_completion_time_s": ", 95th percentile", "mean_completion_time_s": ", mean"}.get(key, "")
    return Measure(f"completion time of {_said(name)}{told}", "s", True, 0.001, time)


def file_time(name: str) -> Measure:
    """The completion time of one file; of an unfinished file the duration of the run."""

    def time(runs: Runs) -> float | None:
        value = copies(runs[MAIN], name)[0]["flow_completion_time_s"]
        return float(runs[MAIN]["duration_s"]) if value is None else float(value)

    return Measure(f"completion time of {_said(name)}", "s", True, 0.001, time)


def response(name: str, key: str = "p95_response_time_ms") -> Measure:
    """A percentile of the response times of small requests."""

    def time(runs: Runs) -> float | None:
        exchanges = [flow["exchanges"] for flow in copies(runs[MAIN], name)]
        values = [one[key] for one in exchanges if one and one[key] is not None]
        return max(values) if values else None

    told = {"p95_response_time_ms": "95th percentile", "p99_response_time_ms": "99th percentile"}[key]
    return Measure(f"response time of {_said(name)}, {told}", "ms", True, 1.0, time)


def rpm_foreign(name: str) -> Measure:
    """Round trips per minute of small requests on a separate connection."""

    def rounds(runs: Runs) -> float | None:
        exchanges = copies(runs[MAIN], name)[0]["exchanges"]
        mean = exchanges["mean_response_time_ms"] if exchanges else None
        return 60_000 / mean if mean else None

    return Measure("RPM, foreign", "1/min", False, 10.0, rounds)


def rpm_self(name: str) -> Measure:
    """Round trips per minute of the loaded connections themselves, from their smoothed round-trip time."""

    def rounds(runs: Runs) -> float | None:
        values = [flow["mean_srtt_ms"] for flow in copies(runs[MAIN], name) if flow["mean_srtt_ms"]]
        return 60_000 * len(values) / math.fsum(values) if values else None

    return Measure("RPM, self", "1/min", False, 10.0, rounds)


def one_way_delay(name: str) -> Measure:
    """The 95th percentile of the one-way delay of datagrams."""
    return Measure(
        f"one-way delay of {_said(name)}, 95th percentile",
        "ms",
        True,
        1.0,
        lambda runs: copies(runs[MAIN], name)[0]["p95_one_way_delay_ms"],
    )


def datagram_loss(name: str, payload: int) -> Measure:
    """The share of datagrams of a constant rate that did not arrive."""

    def share(runs: Runs) -> float | None:
        flow = copies(runs[MAIN], name)[0]
        sent = flow["sent_packets"]
        return max(0.0, 1 - (flow["delivered_bytes"] or 0) / payload / sent) if sent else None

    return Measure(f"datagrams of {_said(name)} that are lost", "", True, 0.001, share)


def harm_goodput(name: str) -> Measure:
    """Harm of Ware et al. to the goodput of a flow: (alone − together) ÷ alone."""

    def harm(runs: Runs) -> float | None:
        alone = total(runs["alone"], name, "goodput_mbit_s")
        return max(0.0, (alone - total(runs["together"], name, "goodput_mbit_s")) / alone) if alone else None

    return Measure(f"harm to the goodput of {_said(name)}", "", True, 0.05, harm)


def harm_delay(name: str) -> Measure:
    """Harm of Ware et al. to the round-trip time of a flow: (together − alone) ÷ together."""

    def harm(runs: Runs) -> float | None:
        alone, together = _srtt(runs["alone"], name), _srtt(runs["together"], name)
        return max(0.0, (together - alone) / together) if alone and together else None

    return Measure(f"harm to the round-trip time of {_said(name)}", "", True, 0.05, harm)


def _srtt(run: Summary, name: str) -> float | None:
    values = [flow["mean_srtt_ms"] for flow in copies(run, name) if flow["mean_srtt_ms"]]
    return math.fsum(values) / len(values) if values else None


def harm_loss(name: str) -> Measure:
    """The increase of a flow's share of retransmissions beside another flow."""

    def harm(runs: Runs) -> float | None:
        alone, together = _retransmitted(runs["alone"], name), _retransmitted(runs["together"], name)
        return max(0.0, together - alone) if alone is not None and together is not None else None

    return Measure(f"additional retransmissions of {_said(name)}", "", True, 0.005, harm)


def packets_per_rtt(name: str, rtt_ms: float) -> Measure:
    """Packets with data that a flow sends per round trip without queueing."""

    def value(runs: Runs) -> float | None:
        run = runs[MAIN]
        measured = _measured_s(run)
        return total(run, name, "sent_packets") * _rtt_s(run, rtt_ms) / measured

    return Measure(f"packets per round trip of {_said(name)}", "", True, 0.0, value)


def _rtt_s(run: Summary, rtt_ms: float) -> float:
    """The round-trip time of a run without queueing, of the stated one."""
    return rtt_ms / 1000 * deviations(run["seed"])[1]


def _measured_s(run: Summary) -> float:
    return float(run["duration_s"]) - float(run.get("warmup_s", 0.0))


def sent(name: str) -> Measure:
    """Packets with data that a flow sends."""
    return Measure(
        f"packets of {_said(name)}", "packets", True, 0.0, lambda runs: total(runs[MAIN], name, "sent_packets")
    )


def delivered_per_rtt(name: str, rtt_ms: float) -> Measure:
    """Full packets that the slowest copy of a flow delivers per round trip without queueing."""

    def value(runs: Runs) -> float | None:
        run = runs["together"] if "together" in runs else runs[MAIN]
        slowest = min((flow["goodput_mbit_s"] or 0.0) for flow in copies(run, name))
        return slowest * 1e6 * _rtt_s(run, rtt_ms) / 8 / 1448

    return Measure(f"packets per round trip delivered by {_said(name)}", "", False, 0.0, value)


def breaker(name: str) -> Measure:
    """The sending rate over that of the TCP throughput equation s ÷ (R √(2p/3)) of RFC 8083 §4.3."""

    def value(runs: Runs) -> float | None:
        run = runs[MAIN]
        share, srtt = loss().of(runs), _srtt(run, name)
        if not share or not srtt:
            return None
        fair = 1500 * 8 / (srtt / 1000 * math.sqrt(2 * share / 3)) / 1e6
        return total(run, name, "sent_packets") * 1500 * 8 / _measured_s(run) / 1e6 / fair

    return Measure("sending rate ÷ TCP throughput equation", "", True, 0.0, value)


def oscillation(name: str) -> Measure:
    """The coefficient of variation of the goodput of a second."""

    def value(runs: Runs) -> float | None:
        run = runs[MAIN]
        width = round(1 / BIN_S)
        bins = _bins(run, name)[round(float(run.get("warmup_s", 0.0)) / BIN_S) :]
        values = [math.fsum(bins[at : at + width]) for at in range(0, len(bins) - width + 1, width)]
        if len(values) < 2 or not (mean := math.fsum(values) / len(values)):
            return None
        return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)) / mean

    return Measure("coefficient of variation of the goodput", "", True, 0.02, value)


def _rows(run: Summary, table: str, name: str) -> list[list[float]]:
    return [values for key, values in run[table].items() if key == name or key.startswith(f"{name}/")]


def _bins(run: Summary, name: str) -> list[float]:
    return [math.fsum(values) for values in zip(*_rows(run, "bins", name), strict=True)]


def convergence(old: str, new: str, started_s: float, delta: float) -> Measure:
    """The δ-fair convergence time of RFC 5166 §2.3.3: until each of two flows has (1 − δ) ÷ 2 of their goodput or more.

    Shares are of two seconds. Flows that never have it count with the time until the end.
    """

    def value(runs: Runs) -> float | None:
        first, second = _bins(runs[MAIN], old), _bins(runs[MAIN], new)
        begun, width = round(started_s / BIN_S), round(2 / BIN_S)
        for at in range(begun, len(first) - width + 1):
            a, b = math.fsum(first[at : at + width]), math.fsum(second[at : at + width])
            if a + b > 0 and min(a, b) / (a + b) >= (1 - delta) / 2:
                return (at + width) * BIN_S - started_s
        return len(first) * BIN_S - started_s

    return Measure("δ-fair convergence time", "s", True, 0.5, value)


def synchronization(name: str) -> Measure:
    """The global synchronization ratio of RFC 7928 §2.4: the share of flows that lose in an interval with losses."""

    def value(runs: Runs) -> float | None:
        run = runs[MAIN]
        first = round(float(run.get("warmup_s", 0.0)) / BIN_S)
        rows = [values[first:] for values in _rows(run, "losses", name)]
        shares = [sum(v > 0 for v in at) / len(rows) for at in zip(*rows, strict=True) if any(v > 0 for v in at)]
        return math.fsum(shares) / len(shares) if shares else None

    return Measure("global synchronization ratio", "", True, 0.02, value)


def log_ratio(one: str, other: str, name: str) -> Measure:
    """The distance of a ratio of goodputs from 1, as the logarithm of base 2."""

    def value(runs: Runs) -> float | None:
        a, b = total(runs[MAIN], one, "goodput_mbit_s"), total(runs[MAIN], other, "goodput_mbit_s")
        return abs(math.log2(a / b)) if a > 0 and b > 0 else None

    return Measure(name, "", True, 0.1, value)
