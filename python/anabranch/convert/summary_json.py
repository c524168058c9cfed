"""Writes a summary with the result names of ``run --json``, to compare other programs' results with runs."""

from __future__ import annotations

from typing import TypedDict

from anabranch.convert.content import Names, Notes, Run, Table, Written

FLOW_KEYS = (
    "goodput_mbit_s", "throughput_mbit_s", "delivered_bytes", "sent_packets", "retransmitted_packets",
    "spurious_retransmissions", "fast_recoveries", "timeouts", "mean_cwnd_packets", "mean_srtt_ms", "min_rtt_ms",
    "flow_completion_time_s", "reordered_ratio", "reordering_extent_p95_packets", "mean_one_way_delay_ms",
)  # fmt: skip
"""Keys of every flow's summary; ``null`` if the other program does not report one."""


Figures = dict[str, float | None]


class OtherSummary(TypedDict):
    """The summary of another program's run: keys of a run's summary."""

    format: int
    scenario: str
    seed: None
    engine: str
    duration_s: float | None
    digest: None
    flows: dict[str, Figures]
    links: dict[str, object]
    groups: dict[str, object]
    fairness: Figures


def write(content: Run | Table, _names: Names, _notes: Notes) -> Written:
    """The summary as one JSON document."""
    from anabranch.files.output import to_json

    return Written(to_json(content.summary))


def summary(title: str, engine: str, duration_s: float | None, flows: dict[str, Figures]) -> OtherSummary:
    """A summary of flows that another program measured."""
    return {
        "format": 1,
        "scenario": title,
        "seed": None,
        "engine": engine,
        "duration_s": duration_s,
        "digest": None,
        "flows": {name: {**dict.fromkeys(FLOW_KEYS), **known} for name, known in flows.items()},
        "links": {},
        "groups": {},
        "fairness": {"jain_index": _jain([flow.get("goodput_mbit_s") for flow in flows.values()])},
    }


def _jain(goodputs: list[float | None]) -> float | None:
    known = [value for value in goodputs if value is not None]
    squares = sum(value * value for value in known)
    if not known or len(known) < len(goodputs) or not squares:
        return None
    return float(sum(known) ** 2 / (len(known) * squares))
