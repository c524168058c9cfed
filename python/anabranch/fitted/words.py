"""A path model, a replay and advice in words, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MEASURES = {
    "goodput_mbit_s": "goodput, Mbit/s",
    "rtt_min_ms": "least round trip, ms",
    "rtt_median_ms": "median round trip, ms",
    "rtt_p95_ms": "95th percentile, ms",
    "retransmissions": "retransmissions",
}


def path(model: Mapping[str, Any]) -> Iterator[str]:
    """The model of the path."""
    yield f"Path from sender to receiver, bottleneck {model['bottleneck']}:"
    yield f"  base round trip {_estimate(model['base_rtt_ms'], 'ms')}"
    yield f"  rate {_estimate(model['rate_mbit_s'], 'Mbit/s')}{_trace(model)}"
    yield f"  buffer {_estimate(model['buffer_bytes'], 'bytes')}, {_estimate(model['buffer_ms'], 'ms')}"
    yield f"  random loss {_loss(model['loss'])}"
    if model["policer"]:
        told = _estimate(model["policer"]["rate_mbit_s"], "Mbit/s")
        yield f"  policer {told}, burst {_estimate(model['policer']['burst_bytes'], 'bytes')}: it explains the losses"
    ratio = model["reordering"]["ratio"]
    if ratio["value"]:
        late = model["reordering"]["late_ms"]
        yield f"  reordered {_estimate(ratio, '', 100)} %" + (
            f", half of them by more than {late:.3g} ms" if late else ""
        )
    yield f"  jitter {_estimate(model['jitter_ms'], 'ms')}"
    flow = model["flow"]
    yield f"  congestion control {flow['congestion_control']}: {flow['congestion_control_evidence']}"


def replay(found: Mapping[str, Any]) -> Iterator[str]:
    """The capture beside the simulation."""
    yield f"{'Replay':<24}{'capture':>12}{'simulation':>12}   95 % of {found['seeds']} runs' mean"
    for name, title in MEASURES.items():
        row = found[name]
        interval = "" if row["low"] is None else f"   {number(row['low'])} to {number(row['high'])}"
        yield f"  {title:<22}{number(row['capture']):>12}{number(row['simulation']):>12}{interval}"


def advice(rows: Sequence[Mapping[str, Any]], verdict: str) -> Iterator[str]:
    """Remedies, best first."""
    yield f"{'Advice':<44}{'Mbit/s':>8}{'gain':>9}{'95 %':>16}{'RTT ms':>8}{'to others':>11}  changed at"
    for row in rows:
        gain, cost = row["gain"], row["cost_to_others"]["mean"]
        interval = "" if gain["low"] is None else f"{gain['low']:+.0%} to {gain['high']:+.0%}"
        mark = "*" if row["helps"] else " "
        effort = "" if row["effort"] == "nothing" else row["effort"]
        yield (
            f"{mark} {row['title']:<42}{number(row['goodput_mbit_s']['mean']):>8}{gain['mean']:>+9.1%}{interval:>16}"
            f"{number(row['rtt_ms']['mean']):>8}{-cost:>+11.0%}  {effort}".rstrip()
        )
        if "live" in row:
            told = row["live"]
            yield f"    with the kernel's TCP: {number(told['goodput_mbit_s'])} Mbit/s, {number(told['rtt_ms'])} ms"
    yield verdict


def _trace(model: Mapping[str, Any]) -> str:
    points = model.get("rate_trace")
    if not points:
        return ""
    rates = [rate for _, rate in points]
    return f", not constant: {min(rates):.3g} to {max(rates):.3g} Mbit/s over {len(points)} parts"


def _loss(loss: Mapping[str, Any]) -> str:
    if loss["kind"] == "none":
        return f"not seen, below {loss['rate']['high']:.2%}" if loss["rate"]["high"] is not None else "not seen"
    bursts = f", in bursts of {loss['mean_burst']['value']:.3g}" if loss["kind"] == "gilbert-elliott" else ""
    return f"{_estimate(loss['rate'], '', 100)} %{bursts}"


def _estimate(value: Mapping[str, Any], unit: str, scale: float = 1.0) -> str:
    if value["seen"] == "not-seen":
        return "not seen"
    told = f"{number(value['value'] * scale)} {unit}".rstrip()
    if value["seen"] == "measured":
        return f"{told} ({number(value['low'] * scale)} to {number(value['high'] * scale)})"
    return f"{value['seen'].replace('-', ' ')} {told}"


def number(value: float | None) -> str:
    """Four digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
