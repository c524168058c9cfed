"""What to do about a connection that a capture shows: the next step that its cause calls for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

FINDINGS = {
    "unanswered": "see whether {receiver} is up and a firewall lets the SYN through; capture there",
    "refused": "see whether a program listens at {receiver}, or a firewall refuses",
    "syn-loss": "see whether {receiver} accepts fast enough (ss -lnt, ListenOverflows), or the path loses",
    "reset-by-middlebox": "look for a firewall or proxy between the hosts; capture on both sides of it",
    "large-segments-lost": "let ICMP pass, or clamp the MSS to what the path carries",
    "window-scaling-ignored": "look for a firewall between the hosts that does not know window scaling (RFC 7323 §2.3)",
    "policer": "ask for the contract's rate; a sender that shapes to it loses nothing",
}
"""Findings that matter more than any limit, the gravest first."""

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

LIMITS = {
    "handshake": "capture at {receiver} as well: is the SYN late, or the answer?",
    "capture-gap": "capture again, headers alone and with a larger buffer (tcpdump -s 96 -B 65536)",
    "zero-window": "see why the program at {receiver} does not read",
    "retransmission-timeout": _LOSSES,
    "receive-window": "enlarge the receive buffer of {receiver} (SO_RCVBUF, tcp_rmem); both SYNs must scale windows",
    "fast-recovery": _LOSSES,
    "delayed-ack-nagle": "set TCP_NODELAY at {sender}, or let its program write whole messages",
    "application": "see why the program at {sender} has nothing to send",
    "pacing": "see what paces {sender}: SO_MAX_PACING_RATE, its congestion control or its program",
    "send-buffer": "enlarge the send buffer of {sender} (SO_SNDBUF, tcp_wmem)",
    "bottleneck": "the path is full: more capacity, or less beside it; CAKE or FQ-CoDel keeps its delay down",
    "congestion-window": "let --advise try other congestion controls of {sender}",
    "reordering": "look for links that packets are spread over; RACK at {sender} waits for late segments",
    "undecidable": "capture nearer to {sender}",
}
"""For each limit what to do if it has most of the time."""

SILENT = 3
"""So many timeouts for one segment mean that the path may have failed (RFC 1122 §4.2.3.5, R1)."""
NEVER = ("left-out", "never-acknowledged")
"""The evidence of data that was never acknowledged."""
SILENCE = (
    "{silent} left {copies} copies of a segment unanswered (frame {frame}): see whether it is up, and whether a NAT or "
    "firewall forgot the connection"
)
WINDOW = ("congestion-window", "fast-recovery", "retransmission-timeout")
"""Limits that losses and reordering lead to."""
ASKING = "see why the program at {receiver} asks late"


def next_step(connection: Mapping[str, Any], direction: Mapping[str, Any], sender: str, receiver: str) -> str | None:
    """What to do next about a connection; none if it took no time."""
    causes = {one["cause"] for one in connection["findings"]}
    text = next((text for cause, text in FINDINGS.items() if cause in causes), None)
    text = text or _silence(connection) or _limit(causes, direction)
    return text and text.format(sender=sender, receiver=receiver)


def _silence(connection: Mapping[str, Any]) -> str | None:
    """Which end left a segment unanswered over several timeouts."""
    for name, silent in (("a_to_b", connection["b"]), ("b_to_a", connection["a"])):
        timeouts = [
            one
            for one in connection["directions"][name]["retransmissions"]
            if one["trigger"] == "rto" and one["evidence"] in NEVER
        ]
        counts = Counter(one["seq"] for one in timeouts if one["bytes"])
        seq, times = max(counts.items(), key=lambda one: one[1], default=(0, 0))
        if times >= SILENT:
            first = next(one for one in timeouts if one["seq"] == seq)
            return SILENCE.format(silent=silent, copies=times + 1, frame=first["earlier"] or first["packet"])
    return None


def _limit(causes: set[str], direction: Mapping[str, Any]) -> str | None:
    limit, time = max(direction["limits_s"].items(), key=lambda one: one[1])
    if time <= 0:
        return None
    if limit == "application" and 2 * direction["receiver_application_s"] > time:
        return ASKING
    if limit not in WINDOW:
        return LIMITS[limit]
    if "loss-before-capture" in causes:
        return _LOSSES_BEFORE
    if causes & {"random-loss", "burst-loss"}:
        return _LOSSES
    return LIMITS["reordering" if "reordering" in causes else limit]
