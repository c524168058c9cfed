"""How many claims of the report hold when one open choice is another, all else as set.

    python studies/reordering/sensitivity.py [--quick]

Prints a Markdown table. Beside the open parameters of ``study.toml`` it shows three choices that are no open parameters
because the source decides them, and what they would do.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anabranch.study import sensitivity
from anabranch.study.parse import load
from anabranch.study.sensitivity import Choice

HERE = Path(__file__).resolve().parent
EXPERIMENTS = ("reordering", "plain")
CUBICS = ("cubic", "cubic_plus", "timer_alone")

DECIDED = (
    Choice("Reno-friendly region in CUBIC", {"flow.main.cc.tcp_friendly": True}, EXPERIMENTS, CUBICS),
    Choice("HyStart in CUBIC", {"flow.main.cc.hystart": "linux"}, EXPERIMENTS, CUBICS),
    Choice(
        "SACK (RFC 6675)",
        {"flow.main.transport.sack": True, "flow.main.transport.recovery": "rfc6675"},
        EXPERIMENTS,
    ),
)


def rows(*, full: bool) -> Iterator[list[str]]:
    """What is different, how many claims hold, and which do not."""
    return sensitivity.rows(load(HERE), DECIDED, full=full, without=("remedies",))


if __name__ == "__main__":
    sensitivity.main(rows)
