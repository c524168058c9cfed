"""Pieces of the scenarios of an evaluation: paths, flows and cross traffic, as tables of the scenario format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from anabranch.evaluate.subject import Subject
from anabranch.text.quantity import read

Table = dict[str, Any]
Build = Callable[[Subject], Table]
"""The scenario of a subject."""


@dataclass(frozen=True)
class Path:
    """A bottleneck: its rate, the round-trip time without queueing, and the buffer in bandwidth-delay products."""

    mbit_s: float
    rtt_ms: float
    bdp: float = 1.0

    @property
    def bdp_packets(self) -> float:
        """The bandwidth-delay product in packets of 1,500 bytes."""
        return self.mbit_s * 1e6 * self.rtt_ms / 1000 / 8 / 1500

    @property
    def label(self) -> str:
        """Its name in figures."""
        return f"{self.mbit_s:g} Mbit/s, {self.rtt_ms:g} ms, {self.bdp:g} BDP"

    def link(self, **more: Any) -> Table:
        """The link between the two ends of the bottleneck. The reverse direction has a buffer that never drops."""
        packets = max(2, round(self.bdp_packets * self.bdp))
        table: Table = {
            "between": ["A", "B"],
            "rate": rate(self.mbit_s),
            "delay": ms(self.rtt_ms / 2),
            "queue": {"kind": "drop-tail", "limit": f"{packets} packets"},
        }
        table.update(more)
        return table


SPREAD = 0.05
"""Largest deviation of a seed's path, as a share of the stated rate and delay."""


def deviations(seed: int) -> tuple[float, float]:
    """Factors of all rates and of all delays of the path of a seed."""
    random = Random(f"path {seed}")  # noqa: S311 - no secret
    return random.uniform(1 - SPREAD, 1 + SPREAD), random.uniform(1 - SPREAD, 1 + SPREAD)


def nearby(table: Table, seed: int) -> Table:
    """The scenario with the path of a seed.

    Drop-tail queues have phase effects (Floyd and Jacobson 1992): the figure of one exact path says little about paths
    nearby. All rates have the same factor, so that the shares of a bottleneck stay. Buffers keep their size.
    """
    by_rate, by_delay = deviations(seed)
    return {key: _scaled(key, value, {"rate": by_rate, "delay": by_delay}) for key, value in table.items()}


def _scaled(key: str, value: Any, factors: Mapping[str, float]) -> Any:
    # The evaluated control or queue stays as it is, and a call has the rate of its codec.
    if key in ("cc", "queue") or (isinstance(value, Mapping) and "payload" in value):
        return value
    if isinstance(value, Mapping):
        return {name: _scaled(name, one, factors) for name, one in value.items()}
    if isinstance(value, list):
        return [_scaled(key, one, factors) for one in value]
    factor = factors.get(key.rpartition(".")[2])
    found = read(value) if factor is not None and isinstance(value, str) else None
    if found is None or factor is None:
        return value
    if found.dimension == "rate":
        return f"{round(found.size * factor)} bit/s"
    return f"{round(found.size * factor * 1_000_000_000)} ns" if found.dimension == "time" else value


def rate(mbit_s: float) -> str:
    """A rate of the scenario format, in whole bits per second."""
    return f"{round(mbit_s * 1e6)} bit/s"


def ms(value: float) -> str:
    """A duration of the scenario format, in microseconds."""
    return f"{round(value * 1000)} us"


def seconds(value: float) -> str:
    """A duration of the scenario format."""
    return f"{value:g} s"


def flow(control: Subject, *, ecn: bool = False, source: str = "A", **more: Any) -> Table:
    """A flow of a control from A to B.

    Args:
        control: The control.
        ecn: Whether a control that needs no ECN uses that of RFC 3168.
        source: The node that sends.
        more: Further keys of the flow.
    """
    table: Table = {"from": source, "to": "B", "cc": control.value, "start_spread": "1 s"}
    used = control.ecn or ("rfc3168" if ecn else None)
    transport = dict(more.pop("transport", {}))
    if used is not None:
        transport["ecn"] = used
    if transport:
        table["transport"] = transport
    table.update(more)
    return table


def udp(mbit_s: float, **more: Any) -> Table:
    """Datagrams at a constant rate, which do not react to congestion."""
    return {
        "from": "A",
        "to": "B",
        "protocol": "udp",
        "start_spread": "20 ms",
        "workload": {"kind": "paced", "rate": rate(mbit_s)},
        **more,
    }


def call(**more: Any) -> Table:
    """A call: 160 bytes every 20 ms, as G.711 has."""
    workload = {"kind": "paced", "rate": "64000 bit/s", "payload": "160 bytes"}
    return {"from": "A", "to": "B", "protocol": "udp", "start_spread": "20 ms", "workload": workload, **more}


def files(control: Subject, mbit_s: float, kilobytes: float, **more: Any) -> Table:
    """Files of exponential size that arrive as a Poisson process, each on its own connection."""
    sizes = {"kind": "exponential", "mean": f"{round(kilobytes * 1000)} bytes"}
    workload = {"kind": "poisson", "rate": rate(mbit_s), "sizes": sizes}
    table = flow(control, workload=workload, **more)
    del table["start_spread"]
    return table


def probes(control: Subject, **more: Any) -> Table:
    """Small requests on a separate connection, one after the other."""
    return flow(control, workload={"kind": "request-response", "think": "50 ms"}, **more)


def scenario(
    path: Path | None,
    flows: Mapping[str, Table],
    *,
    duration: float = 30,
    warmup: float = 5,
    links: Mapping[str, Table] | None = None,
    at: Sequence[Table] = (),
) -> Table:
    """A scenario over the bottleneck ``path``, and further links."""
    table: Table = {"duration": seconds(duration), "warmup": seconds(warmup), "link": {}, "flow": dict(flows)}
    if path is not None:
        table["link"]["bottleneck"] = path.link()
    for name, link in (links or {}).items():
        table["link"][name] = link
    if at:
        table["at"] = list(at)
    return table
