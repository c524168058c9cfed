"""How many claims of the paper hold when one choice is another, all else as set.

    python studies/fec/sensitivity.py [--quick] [--only TEXT]

Prints a Markdown table. Beside the open parameters of ``study.toml``, which are the points of our reading, it shows
choices that the paper or ns-2 decides, and what they would do.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anabranch.study import sensitivity
from anabranch.study.parse import load
from anabranch.study.sensitivity import Choice

HERE = Path(__file__).resolve().parent
EXPERIMENTS = ("delays", "losses", "fmax_delays", "fmax_losses")

DECIDED = (
    Choice(
        "recoveries by RFC 6675, not by ns-2's counted pipe", {"flow.main.transport.recovery_pace": "pipe"}, EXPERIMENTS
    ),
    Choice("a clock of 1 ms", {"flow.main.transport.clock_tick": "1 ms"}, EXPERIMENTS),
    Choice("a timeout of at least 3 s", {"flow.main.transport.min_rto": "3 s"}, EXPERIMENTS),
    Choice("no limited transmit", {"flow.main.transport.limited_transmit": False}, EXPERIMENTS),
    # The times of ns-2's sink of that kind.
    Choice(
        "every second packet acknowledged",
        {"flow.main.transport.delayed_ack": {"segments": 2, "timeout": "100 ms"}},
        EXPERIMENTS,
    ),
)


def rows(*, full: bool, only: str = "") -> Iterator[list[str]]:
    """What is different, how many claims hold, and which do not; ``only`` of choices with that in their title."""
    return sensitivity.rows(load(HERE), DECIDED, full=full, only=only)


if __name__ == "__main__":
    sensitivity.main(rows)
