"""A scenario that reproduces a captured connection: the fitted path, and a closed loop over it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.diagnosis.controls import TITLES
from anabranch.diagnosis.document import Connection, PathModel
from anabranch.errors import UserError
from anabranch.keys.component import Component, Value
from anabranch.text import toml_text

LINK = "path"
REST = "rest"
"""The link after the capture point, if the bottleneck is before it."""
FLOW = "main"

BEFORE = "before the capture point"

UNSEEN_FACTOR = 10
"""Ratio of an assumed rate to the connection's, if the connection never reached the path's rate."""
MOST_OF_RTT = 0.02
"""Share of the base round trip in which a path of an assumed rate carries a response, at most: a longer time would have
shown the rate."""
LEAST_WINDOW = 0.02
"""A receive window that was the limit for a smaller share of the time is not modelled: it may grow."""
LEAST_JITTER = 0.02
"""Jitter below this share of the base round trip is left out."""
APPLICATION = 0.5
"""An application that was the limit for a larger share of the time is modelled as a paced sender."""
LEAST_REQUESTS = 3
"""Least number of packets with data from the receiver for a request-response workload."""
MOST_TABLE = 10_000
"""Entries of a table of delays, at most."""


def known(figure: float | None) -> float:
    """A figure of an estimate that has one: not of the kind ``not-seen``.

    Raises:
        ValueError: It has none.
    """
    if figure is None:
        raise ValueError("the estimate has no figure")
    return figure


@dataclass(frozen=True)
class Fitted:
    """A connection's scenario, and its assumptions."""

    document: dict[str, Any]
    assumptions: tuple[str, ...]
    origin: str

    @property
    def capture_point(self) -> str:
        """The link at which a simulation is captured, to match the capture of the connection."""
        return REST if REST in self.document["link"] else LINK

    @property
    def text(self) -> str:
        """The file's content."""
        remarks = [
            f"# Fitted to {self.origin} by anabranch diagnose.",
            *(f"# Assumed: {one}." for one in self.assumptions),
        ]
        return "\n".join(remarks) + "\n" + toml_text.write_document(self.document)


def fitted(connection: Connection, file: str) -> Fitted:
    """The scenario of a connection of a diagnosis.

    Raises:
        UserError: The capture has too little of it for a model of its path.
    """
    path = connection["path"]
    origin = f"connection {connection['id']} of {Path(file).name}"
    if not path:
        raise UserError(
            f"{file}: connection {connection['id']} has too little data for a model of its path",
            hint="--connection N chooses another",
        )
    base = path["base_rtt_ms"]["value"]
    if base is None:
        raise UserError(
            f"{file}: connection {connection['id']} shows no round trip",
            hint="a capture with both directions is needed",
        )
    flow, duration, more = _flow(connection, path)
    workload: Any = flow.get("workload", {})
    links, assumptions = _links(path, base, _number(workload.get("response", "0 bytes")))
    document: dict[str, Any] = {
        "title": f"Fitted to {origin}",
        "duration": f"{duration:.3f} s",
        "link": links,
        "flow": {FLOW: flow},
    }
    changes: list[dict[str, Any]] = [
        {"time": f"{time:.3f} s", "set": {f"link.{LINK}.rate": f"{rate:.4f} Mbit/s"}}
        for time, rate in path.get("rate_trace", ())
        if 0 < time < duration
    ]
    link: Any = links[LINK]
    changes += _route_changes(connection, path, link)
    if changes:
        document["at"] = sorted(changes, key=lambda change: _number(change["time"]))
    return Fitted(document, (*assumptions, *more), origin)


def _number(quantity: Value) -> float:
    """The number of a quantity with a unit."""
    return float(str(quantity).split()[0])


def _route_changes(connection: Connection, path: PathModel, link: dict[str, Any]) -> list[dict[str, Any]]:
    """The delays of the routes before the last one, which the model describes. `link` begins with the first route."""
    found = connection["directions"][path["direction"]]["route_changes"]
    last_ms = _number(link["delay"])
    changes: list[dict[str, Any]] = []
    for change in reversed(found):
        time = f"{max(0.0, change['time_s'] - connection['start_s']):.3f} s"
        changes.append({"time": time, "set": {f"link.{LINK}.delay": f"{last_ms:.4f} ms"}})
        last_ms = max(0.0, last_ms + (change["before_ms"] - change["after_ms"]) / 2)
    link["delay"] = f"{last_ms:.4f} ms"
    return changes


def _links(path: PathModel, base_ms: float, response_bytes: float) -> tuple[Component, list[str]]:
    """The bottleneck, and the link after the capture point if the bottleneck is before it."""
    assumptions: list[str] = []
    mbit_s = _rate(path, response_bytes * 8e-3 / (MOST_OF_RTT * base_ms) if base_ms else 0.0, assumptions)
    forward: Component = {"queue": {"kind": "drop-tail", "limit": _limit(path, mbit_s, base_ms, assumptions)}}
    impairments = list(_impairments(path, base_ms))
    if impairments:
        forward["impair"] = impairments
    is_before = path["bottleneck"] == BEFORE
    rest_ms = min(path["reverse"]["to_receiver_ms"] or 0, base_ms) if is_before else 0
    link: Component = {
        "between": ["sender", "middle" if is_before else "receiver"],
        "rate": f"{mbit_s:.5g} Mbit/s",
        "delay": f"{(base_ms - rest_ms) / 2:.4f} ms",
        "forward": forward,
    }
    if not is_before:
        return {LINK: link}, assumptions
    rest: Component = {"between": ["middle", "receiver"], "delay": f"{rest_ms / 2:.4f} ms"}
    return {LINK: link, REST: rest}, assumptions


def _rate(path: PathModel, least: float, assumptions: list[str]) -> float:
    """The bottleneck's rate in Mbit/s; `least` is the least one that is assumed if the capture does not show it."""
    rate = path["rate_mbit_s"]
    if path.get("rate_trace"):
        return float(path["rate_trace"][0][1])
    if rate["value"] is None:
        raise UserError("the connection has no duration, so that no rate is known")
    if rate["seen"] == "at-least":
        told = f"the path was never filled (its rate is at least {rate['value']:.4g} Mbit/s)"
        if least > UNSEEN_FACTOR * rate["value"]:
            assumptions.append(f"{told}; a response takes {MOST_OF_RTT:.0%} of the least round trip")
            return least
        assumptions.append(f"{told}; {UNSEEN_FACTOR} times as much")
        return float(UNSEEN_FACTOR * rate["value"])
    return float(rate["value"])


def _limit(path: PathModel, mbit_s: float, base_ms: float, assumptions: list[str]) -> str:
    buffer = path["buffer_bytes"]
    if buffer["seen"] == "measured":
        return f"{round(known(buffer['value']))} bytes"
    seen = buffer["value"] or 0
    size = f" (at least {seen:,.0f} bytes); it is twice that, or" if seen else "; it is"
    assumptions.append(f"the buffer was never full{size} a bandwidth-delay product")
    return f"{round(max(2 * seen, mbit_s * base_ms * 125))} bytes"


def _impairments(path: PathModel, base_ms: float) -> Iterator[Component]:
    loss = path["loss"]
    if path["policer"]:
        # It causes the losses.
        yield {
            "kind": "policer",
            "rate": f"{known(path['policer']['rate_mbit_s']['value']):.5g} Mbit/s",
            "burst": f"{round(known(path['policer']['burst_bytes']['value']))} bytes",
        }
    elif loss["kind"] == "bernoulli":
        yield {"kind": "bernoulli-loss", "rate": _rounded(known(loss["rate"]["value"]))}
    elif loss["kind"] == "gilbert-elliott":
        yield {
            "kind": "gilbert-elliott",
            "loss_rate": _rounded(known(loss["rate"]["value"])),
            "mean_burst": _rounded(known(loss["mean_burst"]["value"])),
        }
    jitter = path["jitter_ms"]
    if jitter["seen"] == "measured" and known(jitter["value"]) > LEAST_JITTER * base_ms:
        yield {"kind": "jitter", "distribution": "exponential", "mean": f"{jitter['value']:.4g} ms"}
    late, ratio = path["reordering"]["late_ms"], path["reordering"]["ratio"]["value"]
    if ratio and late:
        entries = min(MOST_TABLE, max(2, round(1 / ratio)))
        table = [f"{late:.4g} ms", *["0 ms"] * (entries - 1)]
        yield {"kind": "jitter", "distribution": "table", "table": table, "reorder": True}


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


def _flow(connection: Connection, path: PathModel) -> tuple[Component, float, list[str]]:
    """The flow, the time to simulate, and the assumptions."""
    seen = path["flow"]
    assumptions: list[str] = []
    if seen["congestion_control_evidence"].startswith("assumed"):
        lacks = seen["control"]["name"]
        of_named = f", in place of {TITLES[lacks]}, which the simulator lacks" if lacks else ""
        assumptions.append(f"the congestion control is {seen['congestion_control']}{of_named}")
    if not seen["is_from_start"]:
        assumptions.append("the connection begins where the capture does, with slow start")
    transport: Component = {
        "mss": f"{seen['mss_bytes']} bytes",
        "sack": seen["sack"],
        "timestamps": seen["timestamps"],
    }
    direction = connection["directions"][path["direction"]]
    limits = direction["limits_s"]
    duration = max(connection["duration_s"], 0.1)
    if seen["receive_window_bytes"] and limits["receive-window"] + limits["zero-window"] > LEAST_WINDOW * duration:
        transport["receive_window"] = f"{seen['receive_window_bytes']} bytes"
    if seen["send_buffer_bytes"]:
        transport["send_buffer"] = f"{seen['send_buffer_bytes']} bytes"
    # The application may have caused a smaller first flight.
    if (first := seen["initial_window_packets"] or 0) > 10:
        transport["initial_cwnd"] = first
    per_ack = seen["segments_per_ack"]
    if per_ack is not None and per_ack < 1.2:
        transport["delayed_ack"] = "off"
    flow: Component = {
        "from": "sender",
        "to": "receiver",
        "cc": seen["congestion_control"],
        "transport": transport,
    }
    workload = _workload(connection, path, assumptions)
    if workload is not None:
        flow["workload"] = workload
        if workload["kind"] == "file":
            # A run ends with its file; a remedy that fails takes longer.
            duration = 4 * duration + 10
        elif "think" in workload:
            # The last response is followed by a pause as well, which the capture lacks.
            duration += _number(workload["think"]) / 1e3
    return flow, duration, assumptions


def _workload(connection: Connection, path: PathModel, assumptions: list[str]) -> Component | None:
    """The application's workload, unless it sends as much as it can."""
    direction = connection["directions"][path["direction"]]
    asking = connection["directions"]["b_to_a" if path["direction"] == "a_to_b" else "a_to_b"]
    duration = max(connection["duration_s"], 1e-3)
    limits, waiting = direction["limits_s"], direction["receiver_application_s"]
    requests = asking["data_packets"]
    if requests >= LEAST_REQUESTS and asking["bytes"] <= requests * path["flow"]["mss_bytes"]:
        # Before the first request nothing is waited for.
        think_ms = waiting / (requests - 1) * 1e3
        assumptions.append(f"{requests} requests of the same size, each asked when the one before is answered")
        return {
            "kind": "request-response",
            "request": f"{max(1, asking['bytes'] // requests)} bytes",
            "response": f"{max(1, direction['bytes'] // requests)} bytes",
            "think": f"{think_ms:.4g} ms",
        }
    if limits["application"] + limits["round-trips"] > APPLICATION * duration and direction["goodput_mbit_s"]:
        assumptions.append("the application sends evenly, as fast as it did on average")
        return {"kind": "paced", "rate": f"{direction['goodput_mbit_s']:.5g} Mbit/s"}
    if path["flow"]["is_closed"] and path["flow"]["is_from_start"]:
        return {"kind": "file", "size": f"{path['flow']['bytes']} bytes"}
    return None
