"""The next step for a connection of a capture, by the cause of its slowness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from anabranch.diagnosis.diagnosis import directions, ends_of, main_direction, shares

FINDINGS = {
    "unanswered": "find out whether {receiver} is up and a firewall lets the SYN through; capture there",
    "refused": "find out whether a program listens at {receiver}, or a firewall refuses",
    "one-sided-capture": "capture where the packets of both ends pass: at one of the hosts, or on both of their ways",
    "syn-loss": "find out whether {receiver} accepts fast enough (ss -lnt, ListenOverflows), or the path loses",
    "reset-by-middlebox": "look for a firewall or proxy between the hosts; capture on both sides of it",
    "sequence-randomiser": "let the firewall before {receiver} keep sequence numbers, or rewrite SACK options as well",
    "large-segments-lost": "let ICMP pass, or clamp the MSS to the path's MTU",
    "window-scaling-ignored": "look for a firewall between the hosts that ignores window scaling (RFC 7323 §2.3)",
    "policer": "ask for the contract's rate; a sender that shapes to it loses nothing",
}
"""Findings that matter more than any limit, the gravest first."""

OF_CONNECTION = ("unanswered", "refused", "syn-loss")
"""Findings about the host that was called."""

FAILURES = (
    "unanswered",
    "refused",
    "syn-loss",
    "reset-by-middlebox",
    "reset",
    "large-segments-lost",
    "window-scaling-ignored",
)
"""Findings of connections that failed or began late."""

_LOSSES = "find where the segments are lost: capture at {receiver} as well"
_LOSSES_BEFORE = "find where the segments are lost: between {sender} and the capture point"

COMMANDS = ("tcpdump -s 96 -B 65536", "ss -lnt")
"""Parts of the texts that a user types unchanged."""

LIMITS = {
    "handshake": "capture at {receiver} as well: is the SYN late, or the answer?",
    "capture-gap": "capture again, headers alone and with a larger buffer (tcpdump -s 96 -B 65536)",
    "zero-window": "find out why the program at {receiver} does not read",
    "retransmission-timeout": _LOSSES,
    "receive-window": "enlarge the receive buffer of {receiver} (SO_RCVBUF, tcp_rmem); both SYNs must scale windows",
    "fast-recovery": _LOSSES,
    "delayed-ack-nagle": "set TCP_NODELAY at {sender}, or let its program write whole messages",
    "round-trips": (
        "send requests together or without waiting for each answer (batch, pipeline), keep connections open, or move "
        "the programs closer to each other"
    ),
    "application": "find out why the program at {sender} had nothing to send",
    "pacing": "find the cause of the pacing of {sender}: SO_MAX_PACING_RATE, its congestion control or its program",
    "send-buffer": "enlarge the send buffer of {sender} (SO_SNDBUF, tcp_wmem)",
    "bottleneck": "the path is full: more capacity, or less beside it; CAKE or FQ-CoDel keeps its delay down",
    "congestion-window": "let --advise try other congestion controls of {sender}",
    "reordering": "look for links that packets are spread over; RACK at {sender} waits for late segments",
    "undecidable": "capture nearer to {sender}",
}
"""The next step for each limit, if that limit has the largest share of the time."""

WINDOW = ("congestion-window", "fast-recovery", "retransmission-timeout")
"""Limits that are consequences of loss and reordering."""
ANSWERING = "find out why the program at {sender} takes so long to answer"
TIMES = {
    **LIMITS,
    "slow-client": "find out why the client at {receiver} sends its requests late",
    "slow-reader": LIMITS["zero-window"],
    "bufferbloat": LIMITS["bottleneck"],
}
"""The next step for each finding whose share is a share of the time."""

TROUBLES = (
    "handshake", "zero-window", "retransmission-timeout", "receive-window", "fast-recovery", "delayed-ack-nagle",
    "send-buffer", "reordering",
)  # fmt: skip
"""Limits that cost a connection time. Other limits are usual in a transfer, or there was no data."""
LEAST_LOST_S, LEAST_LOST_SHARE = 0.25, 0.2
"""A connection fared badly if these limits took this time and this share of its time."""

LEAST_SHARE = 0.05
"""The handshake's share of the time below which a retransmitted SYN is no next step."""

SILENT = 3
"""Timeouts for one segment that indicate a failed path (RFC 1122 §4.2.3.5, R1)."""
NEVER = ("left-out", "never-acknowledged")
"""The evidence of data that was never acknowledged."""
SILENCE = (
    "{silent} left {copies} copies of a segment unanswered (frame {frame}): find out whether it is up, and whether a "
    "NAT or firewall dropped the connection"
)


def next_step(connection: Mapping[str, Any]) -> str | None:
    """The next step for a connection, by its slower direction; none if it took no time."""
    return next(_steps(connection), None)


def lost_s(connection: Mapping[str, Any]) -> float:
    """Seconds that a connection lost to :data:`TROUBLES`, in the direction that lost more."""
    ways = [way for _, way in directions(connection) if way["data_packets"] or way["bytes"]]
    troubles = [sum(way["limits_s"][limit] for limit in TROUBLES) for way in ways]
    turns = [way["turns_s"] + way["answering_s"] for way in ways]
    # A connection that was never opened has no data.
    unopened = connection["directions"]["a_to_b"]["limits_s"]["handshake"]
    lost: float = max([unopened, *map(sum, zip(troubles, turns, strict=True))])
    active = connection["duration_s"] - connection["quiet_s"]
    return lost if lost >= max(LEAST_LOST_S, LEAST_LOST_SHARE * active) else 0.0


def _steps(connection: Mapping[str, Any]) -> Iterator[str]:
    found = {one["cause"]: one for one in reversed(connection["findings"])}
    for cause, text in FINDINGS.items():
        is_small = cause == "syn-loss" and cause in found and found[cause]["share"] < LEAST_SHARE
        if cause in found and not is_small:
            way = "a_to_b" if cause in OF_CONNECTION else found[cause]["direction"]
            yield _filled(text, connection, way)
    if silence := _silence(connection):
        yield silence
    times = [one for one in connection["findings"] if one["cause"] in TIMES]
    for one in sorted(times, key=lambda one: -_weight(one, connection)):
        yield _filled(_text(one["cause"], connection, one["direction"]), connection, one["direction"])
    name, direction = main_direction(connection)
    limit, share = next(iter(shares(connection, direction).items()))
    if share > 0:
        yield _filled(_text(limit, connection, name), connection, name)


def _filled(text: str, connection: Mapping[str, Any], way: str) -> str:
    sender, receiver = ends_of(connection, way)
    return text.format(sender=sender, receiver=receiver)


def _weight(finding: Mapping[str, Any], connection: Mapping[str, Any]) -> float:
    """The share that only this finding explains: Nagle's algorithm may also have delayed a request."""
    share: float = finding["share"]
    if finding["cause"] != "slow-client":
        return share
    held: Iterator[float] = (
        one["share"]
        for one in connection["findings"]
        if one["cause"] == "delayed-ack-nagle" and one["direction"] != finding["direction"]
    )
    return share - sum(held)


def _silence(connection: Mapping[str, Any]) -> str | None:
    """The host that left a segment unanswered over several timeouts."""
    if connection["not_captured"] is not None:
        return None
    for name, direction in directions(connection):
        timeouts = [one for one in direction["retransmissions"] if one["trigger"] == "rto" and one["evidence"] in NEVER]
        counts = Counter(one["seq"] for one in timeouts if one["bytes"])
        seq, times = max(counts.items(), key=lambda one: one[1], default=(0, 0))
        if times >= SILENT:
            first = next(one for one in timeouts if one["seq"] == seq)
            silent = ends_of(connection, name)[1]
            return SILENCE.format(silent=silent, copies=times + 1, frame=first["earlier"] or first["packet"])
    return None


def _text(cause: str, connection: Mapping[str, Any], way: str) -> str:
    """The next step for a cause in a direction."""
    direction = connection["directions"][way]
    own = direction["limits_s"]["application"] - direction["closing_s"]
    if cause == "application" and 2 * direction["receiver_application_s"] > own:
        return TIMES["slow-client"]
    if cause == "application" and 2 * direction["answering_s"] > own:
        return ANSWERING
    if cause not in WINDOW:
        return TIMES[cause]
    causes = {one["cause"] for one in connection["findings"] if one["direction"] == way}
    if "loss-before-capture" in causes:
        return _LOSSES_BEFORE
    if causes & {"random-loss", "burst-loss"}:
        return _LOSSES
    return LIMITS["reordering" if "reordering" in causes else cause]
