"""A path model, a replay and advice in words, in lines of at most 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anabranch.diagnosis.controls import TITLES
from anabranch.diagnosis.document import Estimate, Loss, PathModel
from anabranch.diagnosis.simulated import Advice, KernelFigures, Measure, MeasureName, Replay
from anabranch.fitted.scenario import known
from anabranch.text.lines import percent, span, wrapped

MEASURES: dict[MeasureName, str] = {
    "goodput_mbit_s": "goodput, Mbit/s",
    "rtt_min_ms": "least round trip, ms",
    "rtt_median_ms": "median round trip, ms",
    "rtt_p95_ms": "95th percentile, ms",
    "retransmissions": "retransmissions",
}


def path(model: PathModel, assumptions: Sequence[str] = ()) -> Iterator[str]:
    """The model of the path, and its assumptions."""
    yield f"{path_title(model)}:"
    for item in path_items(model, assumptions):
        yield from wrapped(f"  {item}", "    ")


def path_title(model: PathModel) -> str:
    """Title of the path."""
    return f"Path from sender to receiver, bottleneck {model['bottleneck']}"


def path_items(model: PathModel, assumptions: Sequence[str] = ()) -> Iterator[str]:
    """Each estimate of the path, and the assumptions."""
    yield f"base round trip {_estimate(model['base_rtt_ms'], 'ms')}"
    yield f"rate {_estimate(model['rate_mbit_s'], 'Mbit/s')}{_trace(model)}"
    buffer = (_estimate(model["buffer_bytes"], "bytes"), _estimate(model["buffer_ms"], "ms"))
    yield f"buffer {', '.join(dict.fromkeys(buffer))}"
    yield f"random loss {_loss(model['loss'])}"
    if model["policer"]:
        told = _estimate(model["policer"]["rate_mbit_s"], "Mbit/s")
        yield f"policer {told}, burst {_estimate(model['policer']['burst_bytes'], 'bytes')}: it explains the losses"
    ratio = model["reordering"]["ratio"]
    if ratio["value"]:
        late = model["reordering"]["late_ms"]
        yield f"reordered {_estimate(ratio, '%', 100)}" + (f", half of them by more than {late:.3g} ms" if late else "")
    yield f"jitter {_estimate(model['jitter_ms'], 'ms')}"
    flow = model["flow"]
    if name := flow["control"]["name"]:
        yield f"congestion control {TITLES[name]}: {flow['congestion_control_evidence']}"
    else:
        yield f"congestion control {flow['congestion_control']}: {flow['congestion_control_evidence']}"
    yield from (f"assumed: {one}" for one in assumptions)


def replay(found: Replay) -> Iterator[str]:
    """The capture beside the simulation."""
    yield f"{'Replay':<24}{'capture':>12}{'simulation':>12}   95 % of {found['seeds']} runs' mean"
    for name, title in MEASURES.items():
        captured, simulated, interval = replay_cells(found[name])
        yield f"  {title:<22}{captured:>12}{simulated:>12}   {interval}".rstrip()


def replay_cells(row: Measure) -> tuple[str, str, str]:
    """A measure of the capture, of the simulation, and its interval."""
    interval = "" if row["low"] is None else span(number(row["low"]), number(row["high"]))
    return number(row["capture"]), number(row["simulation"]), interval


_WIDTHS = (7, 9, 8, 10)


def advice(rows: Sequence[Advice], verdict: str) -> Iterator[str]:
    """The verdict, then the remedies, best first: figures, the place of the change, and the gain's interval."""
    yield from wrapped(verdict, "  ")
    yield ""
    yield _row("  Advice (* helps)", "Mbit/s", "gain", "RTT ms", "to others")
    for row in rows:
        mark = "*" if row["helps"] else " "
        goodput, gain, interval, rtt, others, place = advice_cells(row)
        yield _row(f"{mark} {row['title']}", goodput, gain, rtt, others)
        if place:
            yield f"    {place}{f'; gain {interval} (95 %)' if interval else ''}"
        for told in by_kernel(row):
            yield f"    with the kernel's TCP: {number(told['goodput_mbit_s'])} Mbit/s, {number(told['rtt_ms'])} ms"


def by_kernel(row: Advice) -> list[KernelFigures]:
    """The figures of a remedy that was repeated with the TCP of a kernel, live or in virtual time."""
    return [row[engine] for engine in ("live", "kernel") if engine in row]


def advice_cells(row: Advice) -> tuple[str, str, str, str, str, str]:
    """A remedy's goodput, gain, interval of the gain, round trip, change of the others, and place of the change."""
    goodput, rtt = number(row["goodput_mbit_s"]["mean"]), number(row["rtt_ms"]["mean"])
    if row["effort"] == "nothing":
        return goodput, "", "", rtt, "", ""
    gain = row["gain"]
    low, high = gain["low"], gain["high"]
    ends = () if low is None or high is None else (percent(low, signed=True), percent(high, signed=True))
    return (
        goodput,
        percent(gain["mean"], signed=True),
        span(*ends) if ends else "",
        rtt,
        percent(-row["cost_to_others"]["mean"], signed=True),
        where(row["effort"]),
    )


def _row(title: str, *cells: str) -> str:
    return " ".join((f"{title:<41}", *map(str.rjust, cells, _WIDTHS))).rstrip()


def where(effort: str) -> str:
    """The place of a change."""
    return {"network": "in the network", "both ends and a second line": "at both ends, with a second line"}.get(
        effort, f"at {effort}" if effort == "both ends" else f"at the {effort}"
    )


def _trace(model: PathModel) -> str:
    points = model.get("rate_trace")
    if not points:
        return ""
    rates = [rate for _, rate in points]
    found = span(f"{min(rates):.3g}", f"{max(rates):.3g}", "Mbit/s")
    return f", not constant: {found} over {len(points)} parts" if found else ""


def _loss(loss: Loss) -> str:
    if loss["kind"] == "none":
        return f"not seen, below {100 * loss['rate']['high']:.2f} %" if loss["rate"]["high"] is not None else "not seen"
    bursts = f", in bursts of {loss['mean_burst']['value']:.3g}" if loss["kind"] == "gilbert-elliott" else ""
    return f"{_estimate(loss['rate'], '%', 100)}{bursts}"


def _estimate(value: Estimate, unit: str, scale: float = 1.0) -> str:
    if value["seen"] == "not-seen":
        return "not seen"
    told = f"{number(known(value['value']) * scale)} {unit}"
    if value["seen"] == "measured":
        ends = span(number(known(value["low"]) * scale), number(known(value["high"]) * scale))
        return f"{told} ({ends})" if ends else told
    return f"{value['seen'].replace('-', ' ')} {told}"


def number(value: float | None) -> str:
    """A figure with four significant digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
