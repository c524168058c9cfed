"""How many claims of the paper hold when one open choice is another, all else as set.

    python studies/fairness/sensitivity.py [--quick]

Prints a Markdown table. Beside the open parameters of ``study.toml`` it shows choices that are no open parameters
because the paper, its emulator or its hosts decide them, and what they would do.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anabranch.study import sensitivity
from anabranch.study.parse import load
from anabranch.study.sensitivity import Choice

HERE = Path(__file__).resolve().parent
TOGETHER = ("pair", "many")
QUEUE = "link.bottleneck.forward.queue"
REDS = ("red", "static", "dynamic", "static_many", "dynamic_many")

INTEGER_SLOPE = Choice(
    "dummynet's slope in integers: max_p 0.153 (RED, dynamic), 0.458 (static), 0.092 (static, sixteen flows)",
    {f"{QUEUE}.max_probability": 0.153},
    TOGETHER,
    ("red", "dynamic", "dynamic_many"),
    also=(
        Choice("static", {f"{QUEUE}.max_probability": 0.458}, ("pair",), ("static",)),
        Choice("static, sixteen flows", {f"{QUEUE}.max_probability": 0.092}, ("many",), ("static_many",)),
    ),
)
"""`c_1 = max_p / (max_th - min_th)` in fixed point."""

DECIDED = (
    INTEGER_SLOPE,
    Choice("every packet has a random number of its own", {f"{QUEUE}.spacing": "uniform"}, TOGETHER, REDS),
    Choice("drops are not spaced", {f"{QUEUE}.spacing": "geometric"}, TOGETHER, REDS),
    Choice("n of the dynamic method, one flow each: 10", {f"{QUEUE}.multiplier": 10}, ("pair",), ("dynamic",)),
    Choice("Compound TCP's γ stays", {"flow.compound.cc.gamma_tuning": False}, TOGETHER),
    Choice("Compound TCP's loss window grows by bytes", {"flow.compound.cc.avoidance": "bytes"}, TOGETHER),
    Choice("Compound TCP takes the mean of a round trip's RTTs", {"flow.compound.cc.rtt": "mean"}, TOGETHER),
    Choice("CUBIC without HyStart", {"flow.cubic.cc.hystart": "off"}, TOGETHER),
    Choice(
        "windows of 16 MB",
        {"flow.cubic.transport.send_buffer": "16 MiB", "flow.compound.transport.send_buffer": "16 MiB"},
        TOGETHER,
    ),
)


def rows(*, full: bool) -> Iterator[list[str]]:
    """What is different, how many claims hold, and which do not."""
    return sensitivity.rows(load(HERE), DECIDED, full=full)


if __name__ == "__main__":
    sensitivity.main(rows)
