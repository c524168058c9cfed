"""Applications with unlimited data: how they wait for buffer space does not affect the segments that TCP sends."""

from __future__ import annotations

from typing import Any

import pytest

from anabranch.scenario import Scenario
from anabranch.validate.segments import segments

from .conftest import kernel_run

LOSES_ONE = """
title = "the seventh segment is lost"
duration = "400 ms"

[link.path]
between = ["A", "B"]
rate = "100 Mbit/s"
delay = "50 ms"
forward.impair = [{ kind = "loss-list", packets = [8] }]

[flow.main]
from = "A"
to = "B"
cc = "cubic"
"""


def until_sent_again(capture: bytes) -> list[int]:
    """Numbers of the segments in the order of sending, up to the first retransmission."""
    sent: list[int] = []
    data = [segment for segment in segments(capture) if segment.payload]
    for segment in data:
        number = (segment.seq - data[0].seq) % 2**32 // 1448
        if number in sent:
            return [*sent, number]
        sent.append(number)
    pytest.fail(f"nothing of {sent} is retransmitted")


def test_growth_of_the_buffer_sends_no_segment() -> None:
    """The kernel holds a lone segment back after the first SACK of a gap, and sends it with the next one.

    Detects a buffer that begins with 16 KiB: it grows at that moment and wakes the application. The
    application's write sends the lone segment, so that the next one waits until recovery begins,
    and one segment less is sent before that.
    """
    scenario = Scenario.from_text(LOSES_ONE)
    simulated = until_sent_again(scenario.run(captures=["path.forward"]).pcapng("path.forward"))
    assert simulated[-1] == 6
    run = kernel_run(scenario, captures=["path.forward"])
    assert until_sent_again(run.pcapng("path.forward")) == simulated


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        # Four times the sum of a bandwidth-delay product of 125 kB and an equal queue.
        ({}, 1_000_000),
        # On a fast path, at most the usual maximum of a buffer.
        ({"link.path.rate": "1 Gbit/s"}, 4 << 20),
        # 128 connections share 256 MiB.
        ({"link.path.rate": "1 Gbit/s", "flow.main.count": 128}, 2 << 20),
        # A user's program has the machine's default.
        ({"host.A.exec": ["true"]}, 16_384),
    ],
)
def test_the_initial_buffer_matches_the_path(changes: dict[str, Any], first: int) -> None:
    scenario = Scenario.from_text(LOSES_ONE)
    for key, value in {
        "duration": "100 ms",
        "link.path.rate": "10 Mbit/s",
        "link.path.forward.queue": {"kind": "drop-tail", "limit": "1 bdp"},
        "link.path.reverse.queue": {"kind": "drop-tail", "limit": "1 bdp"},
        "flow.main.workload": {"kind": "file", "size": "1 kB"},
        **changes,
    }.items():
        scenario = scenario.set(key, value)
    live = kernel_run(scenario).live
    assert live is not None
    assert int(live["machine"]["applied_settings"]["net/ipv4/tcp_wmem"].split()[1]) == first
