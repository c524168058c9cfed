"""Lost SYNs, SYN-ACKs and first data segments: both engines complete a file at the same time, with equal counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from .conftest import simulation_of, summary_of

SHARE, SLACK_S = 0.08, 0.15
"""Tolerances of completion times: relative to the simulator's, and absolute."""
SEGMENT = 1448


@dataclass(frozen=True)
class Case:
    """The packets lost first on a separate path, and the file transferred over it."""

    what: str
    lost: int
    rtt_ms: int

    @property
    def name(self) -> str:
        """The name of its link and its flow."""
        return f"{self.what}-{self.lost}-{self.rtt_ms}ms"

    def text(self) -> str:
        """Its link and its flow. Two packets of the handshake precede the data: a SYN and an acknowledgment."""
        way = "reverse" if self.what == "syn-acks" else "forward"
        first = 2 if self.what == "data" else 0
        # The list must not be empty; the last number never occurs.
        lost = [*range(first, first + self.lost), 1_000_000]
        # Two initial windows of data: with one, the FIN, which is a separate segment live, would
        # affect the first window.
        segments = 20 if self.what == "data" else 10
        return f"""
[link.{self.name}]
between = ["A", "B"]
rate = "100 Mbit/s"
delay = "{self.rtt_ms / 2} ms"
{way}.impair = [{{ kind = "loss-list", packets = {lost} }}]

[flow.{self.name}]
from = "A"
to = "B"
route = ["{self.name}"]
return_route = ["{self.name}"]
workload = {{ kind = "file", size = "{segments * SEGMENT} bytes" }}
"""


def also_possible(case: Case, simulated: Any) -> list[float]:
    """Other completion times of the simulator that are also right.

    The kernel's SYN-ACK timer may expire up to a tick of 32 ms before or after the arrival of the
    next SYN: either two SYN-ACKs are sent, one for each event, or only the SYN's. In the second
    case the next SYN-ACK gets through a second later.
    """
    later = Case(case.what, case.lost + 1, case.rtt_ms).name
    return [simulated[later]["flow_completion_time_s"]] if case.what == "syn-acks" else []


def compare(cases: Iterable[Case], duration_s: int) -> None:
    """Run all cases at once live, and compare with the simulator."""
    cases = list(cases)
    head = f'title = "openings"\nduration = "{duration_s} s"\n'
    later = [Case(case.what, case.lost + 1, case.rtt_ms) for case in cases if case.what == "syn-acks"]
    simulated: Any = simulation_of(head + "".join(case.text() for case in {*cases, *later}))["flows"]
    live = summary_of(head + "".join(case.text() for case in cases))["flows"]
    wrong = []
    for case in cases:
        ours, theirs = simulated[case.name], live[case.name]
        times = ours["flow_completion_time_s"], theirs["flow_completion_time_s"]
        expected = [times[0], *also_possible(case, simulated)]
        if None in times or not any(abs(time - times[1]) <= max(SHARE * time, SLACK_S) for time in expected):
            wrong.append(f"{case.name}: {times[0]} s simulated, {times[1]} s live")
            continue
        assert (ours["ended"], theirs["ended"]) == ("completed", "completed")
        if case.what == "syns":
            counts = [flow["retransmitted_packets"] for flow in (ours, theirs)]
            if counts[0] != counts[1]:
                wrong.append(f"{case.name}: {counts[0]} retransmissions simulated, {counts[1]} live")
    assert not wrong, "\n".join(wrong)


def test_first_losses_cost_the_same_time() -> None:
    """Detects a SYN that backs off at once, a full initial window, and a timeout of 3 s after a lost SYN."""
    rtts = (1, 100, 600)
    few = [Case("syns", lost, rtt) for lost in range(6) for rtt in rtts]
    few += [Case("data", lost, rtt) for lost in (1, 2, 5, 7) for rtt in rtts]
    few += [Case("syn-acks", lost, 100) for lost in (0, 1, 2, 3)]
    compare(few, 9)


@pytest.mark.slow
def test_all_first_losses_cost_the_same_time() -> None:
    """0 to 7 losses of each kind, at round trips from 1 to 600 ms."""
    rtts = (1, 10, 40, 100, 250, 600)
    every = [Case(what, lost, rtt) for what in ("syns", "syn-acks", "data") for lost in range(8) for rtt in rtts]
    compare(every, 20)
