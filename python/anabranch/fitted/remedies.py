"""Remedies for a connection: conditions under which each is relevant, and the effort of the change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from anabranch.diagnosis.document import Connection, Limit, PathModel
from anabranch.fitted.scenario import FLOW, LINK, Fitted, known
from anabranch.keys.component import Component

SENDER, RECEIVER, NETWORK, BOTH_ENDS = "sender", "receiver", "network", "both ends"
SECOND_LINE = "both ends and a second line"
PRICE = {"nothing": 0.0, SENDER: 0.02, RECEIVER: 0.02, NETWORK: 0.05, BOTH_ENDS: 0.1, SECOND_LINE: 1.0}
"""The effort of a change, and the gain that pays for it: a second line costs as much as the first."""

LEAST_SHARE = 0.05
"""Share of the time below which a limit needs no remedy."""
LEAST_LOSS = 2e-4
"""Rate of random loss below which error correction is no remedy."""


@dataclass(frozen=True)
class Remedy:
    """A change of the scenario."""

    name: str
    title: str
    effort: str
    set: Component = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """Properties of a connection for the rules of relevance."""

    path: PathModel
    shares: Mapping[Limit, float]
    control: str
    rate_mbit_s: float
    base_ms: float
    stall_by_rack: bool

    def share(self, *limits: Limit) -> float:
        """The share of the time that these limits took."""
        return sum(self.shares.get(limit, 0.0) for limit in limits)

    @property
    def bdp(self) -> float:
        """The bandwidth-delay product in octets."""
        return self.rate_mbit_s * self.base_ms * 125

    @property
    def is_network(self) -> bool:
        """Whether the network, or the window that reacts to it, was a limit."""
        share = self.share(
            "congestion-window", "bottleneck", "fast-recovery", "retransmission-timeout", "reordering", "pacing"
        )
        return share > LEAST_SHARE


def case(connection: Connection, fitted: Fitted) -> Case:
    """The properties of a connection for the rules."""
    path = connection["path"]
    direction = connection["directions"][path["direction"]]
    duration = connection["duration_s"] or 1.0
    link = fitted.document["link"][LINK]
    return Case(
        path=path,
        shares={name: time / duration for name, time in direction["limits_s"].items()},
        control=fitted.document["flow"][FLOW]["cc"],
        rate_mbit_s=float(link["rate"].split()[0]),
        base_ms=known(path["base_rtt_ms"]["value"]),
        stall_by_rack=fitted.document["flow"][FLOW]["transport"].get("recovery", "rack") == "rack",
    )


def relevant(found: Case) -> Iterator[Remedy]:
    """The relevant remedies, and the unchanged scenario."""
    yield NOTHING
    for rule in RULES:
        yield from rule(found)


NOTHING = Remedy("nothing", "change nothing", "nothing")


def _controls(found: Case) -> Iterator[Remedy]:
    if found.is_network:
        for name, title in (("bbr", "BBR"), ("cubic", "CUBIC"), ("reno", "Reno")):
            if name != found.control:
                yield Remedy(name, f"{title} as congestion control", SENDER, {f"flow.{FLOW}.cc": name})


def _pacing(found: Case) -> Iterator[Remedy]:
    if found.path["loss"]["at_full_buffer"] and found.control != "bbr":
        yield Remedy("pacing", "pacing", SENDER, {f"flow.{FLOW}.transport.pacing": True})


def _windows(found: Case) -> Iterator[Remedy]:
    room = f"{round(max(16 << 20, 4 * found.bdp))} bytes"
    if found.share("receive-window", "zero-window") > LEAST_SHARE:
        yield Remedy(
            "receive-window", "a larger receive window", RECEIVER, {f"flow.{FLOW}.transport.receive_window": room}
        )
    if found.share("send-buffer") > LEAST_SHARE:
        yield Remedy("send-buffer", "a larger send buffer", SENDER, {f"flow.{FLOW}.transport.send_buffer": room})


def _recovery(found: Case) -> Iterator[Remedy]:
    if not found.stall_by_rack:
        yield Remedy("rack", "RACK, which tolerates reordering", SENDER, {f"flow.{FLOW}.transport.recovery": "rack"})


def _buffers(found: Case) -> Iterator[Remedy]:
    if found.path["rate_mbit_s"]["seen"] != "measured" or not found.is_network:
        return
    buffer = found.path["buffer_bytes"]
    queue = f"link.{LINK}.forward.queue"
    one = f"{max(15_000, round(found.bdp))} bytes"
    if buffer["seen"] == "measured" and known(buffer["value"]) < 0.75 * found.bdp:
        yield Remedy(
            "buffer", "a buffer of one bandwidth-delay product", NETWORK, {queue: {"kind": "drop-tail", "limit": one}}
        )
    if found.share("bottleneck") > LEAST_SHARE:
        if (buffer["value"] or 0) > 1.5 * found.bdp:
            yield Remedy(
                "buffer",
                "a buffer of one bandwidth-delay product",
                NETWORK,
                {queue: {"kind": "drop-tail", "limit": one}},
            )
        yield Remedy("fq-codel", "FQ-CoDel at the bottleneck", NETWORK, {queue: {"kind": "fq-codel"}})
        yield Remedy("codel", "CoDel at the bottleneck", NETWORK, {queue: {"kind": "codel"}})


def _codes(found: Case) -> Iterator[Remedy]:
    loss = found.path["loss"]
    if loss["kind"] != "none" and known(loss["rate"]["value"]) >= LEAST_LOSS and found.is_network:
        code = {"kind": "reed-solomon", "redundancy": "loss-adaptive"}
        yield Remedy("fec", "error correction inside the connection", BOTH_ENDS, {f"flow.{FLOW}.fec": code})


def _second_path(found: Case) -> Iterator[Remedy]:
    if found.share("bottleneck") > 0.3 and found.path["rate_mbit_s"]["seen"] == "measured":
        yield Remedy("gateway", "a second such path, bonded by gateways", SECOND_LINE, {"gateway": True})


RULES: tuple[Callable[[Case], Iterator[Remedy]], ...] = (
    _controls,
    _pacing,
    _windows,
    _recovery,
    _buffers,
    _codes,
    _second_path,
)
