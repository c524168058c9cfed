"""Lost SYNs, answers and first data segments: both engines complete a file at the same time, and count alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from .conftest import simulation_of, summary_of

SHARE, SLACK_S = 0.08, 0.15
"""So far apart completion times may be: a share of the simulator's, or so much."""
SEGMENT = 1448


@dataclass(frozen=True)
class Case:
    """What is lost first on a path of its own, and the file that is transferred over it."""

    what: str
    lost: int
    rtt_ms: int

    @property
    def name(self) -> str:
        """Of its link and its flow."""
        return f"{self.what}-{self.lost}-{self.rtt_ms}ms"

    def text(self) -> str:
        """Its link and its flow. The handshake's own packets come before the data: a SYN and an acknowledgment."""
        way = "reverse" if self.what == "syn-acks" else "forward"
        first = 2 if self.what == "data" else 0
        # A list names something; so many packets never come.
        lost = [*range(first, first + self.lost), 1_000_000]
        # Two initial windows of data: the FIN, which leaves by itself live, tells nothing of the first.
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
    """Times of the simulator that are right, too.

    The kernel's timer of an answer ends with the arrival of the next SYN, give or take a tick of 32 ms: two answers
    leave, one for each, or only the SYN's. In the second case the next one gets through a second later.
    """
    later = Case(case.what, case.lost + 1, case.rtt_ms).name
    return [simulated[later]["flow_completion_time_s"]] if case.what == "syn-acks" else []


def compare(cases: Iterable[Case], duration_s: int) -> None:
    """One live run of all cases at once, beside the simulator's."""
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
    """Detects a SYN that backs off at once, for a full initial window, for 3 s after a lost SYN."""
    rtts = (1, 100, 600)
    few = [Case("syns", lost, rtt) for lost in range(6) for rtt in rtts]
    few += [Case("data", lost, rtt) for lost in (1, 2, 5, 7) for rtt in rtts]
    few += [Case("syn-acks", lost, 100) for lost in (0, 1, 2, 3)]
    compare(few, 9)


@pytest.mark.slow
def test_first_losses_cost_the_same_time_all() -> None:
    """0 to 7 of each lost, at round trips from 1 to 600 ms."""
    rtts = (1, 10, 40, 100, 250, 600)
    every = [Case(what, lost, rtt) for what in ("syns", "syn-acks", "data") for lost in range(8) for rtt in rtts]
    compare(every, 20)
