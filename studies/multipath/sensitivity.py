"""How many claims of the paper hold when one open choice is another, all else as set.

    python studies/multipath/sensitivity.py [--quick]

Prints a Markdown table. Beside the open parameters of ``study.toml`` it shows choices that stand in several keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anabranch.study import sensitivity
from anabranch.study.parse import load
from anabranch.study.sensitivity import Choice

HERE = Path(__file__).resolve().parent
EVERY = ("jitters", "losses", "both", "alone")
PAIR = ("jitters", "losses", "both")

DECIDED = (
    Choice(
        "acknowledgments meet no jitter and no loss",
        {"link.isp1.reverse.impair": [], "link.isp2.reverse.impair": []},
        EVERY,
    ),
    Choice("packets have jitter of their own", {f"link.{r}.impair.1.every": "0 s" for r in ("isp1", "isp2")}, EVERY),
    Choice(
        "the same, and overtake each other",
        {f"link.{r}.impair.1.{k}": v for r in ("isp1", "isp2") for k, v in (("every", "0 s"), ("reorder", True))},
        EVERY,
    ),
    Choice(
        "every second segment acknowledged at once, buffers of 8 KiB: the system as shipped",
        {
            "flow.main.transport.delayed_ack.segments": 2,
            "flow.main.transport.receive_window": "8576 bytes",
            "flow.main.transport.send_buffer": "8576 bytes",
        },
        EVERY,
    ),
    Choice("method A: whichever comes first", {"gateway.tunnel.restore.release": "either"}, PAIR, ("A",)),
    Choice("method A: nobody waits longer than 1 s", {"gateway.tunnel.restore.silence": "1 s"}, PAIR, ("A",)),
    Choice("NewReno recovery", {"flow.main.transport.recovery": "new-reno"}, EVERY),
    Choice(
        "timers without ticks",
        {"flow.main.transport.timers": "rfc6298", "flow.main.transport.clock_tick": "1 ms"},
        EVERY,
    ),
)


def rows(*, full: bool) -> Iterator[list[str]]:
    """What is different, how many claims hold, and which do not."""
    return sensitivity.rows(load(HERE), DECIDED, full=full)


if __name__ == "__main__":
    sensitivity.main(rows)
