"""Figures that people know, in words: responsiveness, the use of the path's rate, Jain's index; and QUIC packets."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.diagnosis.document import Connection, Document, Fairness, OneWay, QuicFlow
from anabranch.text.lines import amount, number, percent, wrapped

MOST_QUIC = 10
"""Connections of QUIC that the screen lists."""
MOST_FAIRNESS = 1
"""Groups of connections whose Jain's index the screen lists."""
MOST_NAMED = 8
"""Connections that a group names."""


def figures_text(connection: Connection, direction: OneWay) -> str:
    """Responsiveness, idle and under load, and the share of the path's rate; empty if none is known."""
    found = direction["responsiveness"]
    idle, loaded = found["idle_rpm"], found["loaded_rpm"]
    parts = []
    if idle is not None:
        parts.append(f"{round(idle):,} RPM idle")
    if loaded is not None:
        parts.append(f"{round(loaded):,} under load")
    told = [", ".join(parts)] if parts else []
    used = connection["rate_used"]
    path = connection["path"]
    if used is not None and path:
        rate = path["rate_mbit_s"]["value"]
        told.append(f"goodput {percent(used)} of the path's {number(rate)} Mbit/s")
    return "; ".join(told)


def fairness_text(one: Fairness) -> str:
    """Jain's index of a group of connections."""
    ids = one["connections"]
    named = ", ".join(map(str, ids[:MOST_NAMED]))
    more = f" and {len(ids) - MOST_NAMED:,} more" if len(ids) > MOST_NAMED else ""
    way = "to" if one["receives"] else "from"
    return (
        f"Jain's index {one['jain']:.3f}: connections {named}{more} {way} {one['host']}, "
        f"{number(one['duration_s'])} s together"
    )


def fairness_lines(document: Document) -> Iterator[str]:
    """Jain's index of the largest groups."""
    for one in document["fairness"][:MOST_FAIRNESS]:
        yield from wrapped(fairness_text(one), "  ")


def quic_text(flow: QuicFlow) -> Iterator[str]:
    """A connection of QUIC: rates, handshake, round trips."""
    ways = [flow["directions"]["a_to_b"], flow["directions"]["b_to_a"]]
    client, server = (f"{amount(way['bytes'])} at {number(way['mbit_s'])} Mbit/s" for way in ways)
    retry = ", with a Retry" if flow["retry"] else ""
    negotiated = ", after version negotiation" if flow["version_negotiation"] else ""
    yield f"{flow['a']} > {flow['b']}, QUIC version {flow['version']}{negotiated}{retry}"
    yield f"client {client}, server {server} in {number(flow['duration_s'])} s"
    yield _handshake(flow)
    rtt = flow["spin_rtt_ms"]
    if flow["spin"] == "used":
        least, median, high = (number(rtt[name]) for name in ("min", "median", "p95"))
        yield f"spin bit: round trip {least} / {median} / {high} ms (least, median, 95 %)"
    else:
        reason = {
            "constant": "it does not change",
            "random": "it changes faster than the path permits",
            "unknown": "too few packets",
        }[flow["spin"]]
        yield f"spin bit: not used ({reason})" if flow["spin"] != "unknown" else f"spin bit: {reason}"


def _handshake(flow: QuicFlow) -> str:
    times = flow["handshake"]
    answered, ready = times["answered_ms"], times["client_ready_ms"]
    if answered is None:
        datagrams = times["unanswered_datagrams"]
        return f"handshake: no answer to {datagrams} datagram{'' if datagrams == 1 else 's'} of the client"
    told = f"handshake: answered after {number(answered)} ms"
    return told + (f", client's first 1-RTT packet after {number(ready)} ms" if ready is not None else "")


def quic_lines(document: Document) -> Iterator[str]:
    """The connections of QUIC with the most octets, by their headers."""
    flows = document["quic"]
    if not flows:
        return
    yield ""
    told = "By unencrypted headers alone: for limits and retransmissions, diagnose a qlog of one end."
    yield from wrapped(told, "  ")
    ranked = sorted(flows, key=lambda one: -sum(octets(one)))
    for flow in ranked[:MOST_QUIC]:
        first, *rest = quic_text(flow)
        yield from wrapped(first, "  ")
        for line in rest:
            yield from wrapped(f"  {line}", "    ")
    if len(flows) > MOST_QUIC:
        yield f"  {len(flows) - MOST_QUIC:,} more; --json lists them"


def octets(flow: QuicFlow) -> tuple[int, int]:
    """Octets of the client and of the server."""
    return flow["directions"]["a_to_b"]["bytes"], flow["directions"]["b_to_a"]["bytes"]
