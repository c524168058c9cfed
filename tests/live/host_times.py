"""How late hosts of live runs are: until a flow begins, and until they answer.

    tools/env python tests/live/host_times.py [RUNS]

``anabranch validate`` lets simulated hosts take as long (``BEGINNING_US``, ``ANSWERS_US`` of ``anabranch.validate``).
What is seen of a host is what enters and leaves the network in between: a flow begins late by the time of its first
packet less the time in the file, and a packet answers the one that came before it.
"""

from __future__ import annotations

import sys
from statistics import mean, quantiles

from capture import SYN, Segment, segments  # type: ignore[import-not-found]

from anabranch.live import prepare, run_audited, taint
from anabranch.scenario import Scenario

FLOWS = 8
BETWEEN_S = 0.1
RATE_BIT_S = 100e6
DELAY_S = 0.02

TEXT = """
duration = "4 s"

[link.path]
between = ["A", "B"]
rate = "100 Mbit/s"
delay = "20 ms"
"""

FLOW = """
[flow.f{number}]
from = "A"
to = "B"
cc = "reno"
start = "{start} s"
"""

LOSSY = 'forward.impair = [{ kind = "bernoulli-loss", rate = 0.005 }]'

ANSWERS_S = 0.001
"""What comes later was not sent for the packet before it, as an acknowledgment that waits for a second one."""


def main() -> int:
    """Run live and print what hosts took, in microseconds."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    prepare()
    began: list[float] = []
    receiver: list[float] = []
    sender: list[float] = []
    several = TEXT + "".join(FLOW.format(number=number, start=(1 + number) * BETWEEN_S) for number in range(FLOWS))
    alone = TEXT + LOSSY + FLOW.format(number=0, start=0)
    for seed in range(1, runs + 1):
        for text in (several, alone):
            result = run_audited(Scenario.from_text(text), seed=seed, captures=["path"])
            if reasons := taint(result):
                print(f"seed {seed}: left out, {'; '.join(reasons)}")
                continue
            there, back = (list(segments(result.pcapng(f"path.{way}"))) for way in ("forward", "reverse"))
            if text is several:
                syns = sorted(segment.time_s for segment in there if segment.flags == SYN)
                began += [at - (1 + number) * BETWEEN_S for number, at in enumerate(syns)]
            else:
                receiver += _answers([segment for segment in there if segment.payload], back)
                sender += _answers(back, [segment for segment in there if segment.payload])
    _print("a flow begins late by", began)
    _print("a receiver answers after", receiver)
    _print("a sender answers after", sender)
    _print("either answers after", receiver + sender)
    return 0


def _answers(coming: list[Segment], going: list[Segment]) -> list[float]:
    """How long after the last packet that had come each one went. What was lost on the way is taken to have come: it is
    one in two hundred.
    """
    came, free = [], 0.0
    for segment in coming:
        free = max(free, segment.time_s) + segment.size * 8 / RATE_BIT_S
        came.append(free + DELAY_S)
    found, at = [], 0
    for segment in going:
        while at < len(came) and came[at] <= segment.time_s:
            at += 1
        if at and segment.time_s - came[at - 1] < ANSWERS_S:
            found.append(segment.time_s - came[at - 1])
    return found


def _print(what: str, times: list[float]) -> None:
    parts = quantiles(times, n=20)
    shown = " ".join(f"{1e6 * at:.0f}" for at in parts[::2])
    print(f"{what} {shown} us (quantiles 0.05, 0.15 to 0.95); mean {1e6 * mean(times):.0f} us of {len(times)}")


if __name__ == "__main__":
    sys.exit(main())
