"""How late hosts of live runs are: until a flow begins, and until they answer.

    tools/env python tests/live/host_times.py [RUNS]

``anabranch validate`` lets simulated hosts take as long (``anabranch.validate.host_times``). What is seen of a host is
what enters and leaves the network beside it: a flow begins late by the time of its first packet less the time in the
file, and a packet answers the one that came before it. A host that has sent nothing for a while takes longer.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from statistics import mean, quantiles

from capture import SYN, Segment, segments  # type: ignore[import-not-found]

from anabranch.live import prepare, run_audited, taint
from anabranch.scenario import Scenario
from anabranch.validate.host_times import PAUSES_MS

FLOWS = 8

TEXT = """
duration = "4 s"

[link.near]
between = ["A", "M"]

[link.path]
between = ["M", "N"]
rate = "100 Mbit/s"
delay = "20 ms"
{impair}

[link.far]
between = ["N", "B"]
"""

FLOW = """
[flow.f{number}]
from = "A"
to = "B"
cc = "reno"
"""

LOSSY = 'forward.impair = [{ kind = "bernoulli-loss", rate = 0.005 }]'

ANSWERS_S = 0.001
"""What comes later was not sent for the packet before it, as an acknowledgment that waits for a second one."""


def main() -> int:
    """Run live and print what hosts took, in microseconds."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    prepare()
    began: list[float] = []
    apart: list[float] = []
    sender: dict[float, list[float]] = {pause: [] for pause in PAUSES_MS}
    receiver: dict[float, list[float]] = {pause: [] for pause in PAUSES_MS}
    several = TEXT.format(impair="") + "".join(FLOW.format(number=number) for number in range(FLOWS))
    alone = TEXT.format(impair=LOSSY) + FLOW.format(number=0)
    for seed in range(1, runs + 1):
        for text in (several, alone):
            result = run_audited(Scenario.from_text(text), seed=seed, captures=["near", "far"])
            if reasons := taint(result):
                print(f"seed {seed}: left out, {'; '.join(reasons)}")
                continue
            left, to_sender, to_receiver, back = (
                list(segments(result.pcapng(link)))
                for link in ("near.forward", "near.reverse", "far.forward", "far.reverse")
            )
            if text is several:
                syns = sorted(segment.time_s for segment in left if segment.flags == SYN)
                began.append(syns[0])
                apart += [later - earlier for earlier, later in itertools.pairwise(syns)]
            else:
                for found, coming, going in ((sender, to_sender, left), (receiver, to_receiver, back)):
                    for pause, took in _answers(coming, going):
                        found[max(known for known in PAUSES_MS if known <= pause * 1e3)].append(took)
    _print("the first flow begins late by", began)
    _print("the next one later by", apart)
    for who, found in (("sender", sender), ("receiver", receiver)):
        for pause, times in found.items():
            _print(f"a {who} that was silent for {pause} ms answers after", times)
    return 0


def _answers(coming: list[Segment], going: list[Segment]) -> Iterator[tuple[float, float]]:
    """For the first packet after each that came: how long there had been nothing to answer, and how long it took."""
    last, at = 0.0, 0
    for segment in going:
        before = at
        while at < len(coming) and coming[at].time_s <= segment.time_s:
            at += 1
        if at == before:
            continue
        came = coming[at - 1].time_s
        if segment.time_s - came < ANSWERS_S:
            yield came - last, segment.time_s - came
        last = came


def _print(what: str, times: list[float]) -> None:
    parts = quantiles(times, n=20)
    shown = " ".join(f"{1e6 * at:.0f}" for at in parts[::2])
    print(f"{what} {shown} us (quantiles 0.05, 0.15 to 0.95); mean {1e6 * mean(times):.0f} us of {len(times)}")


if __name__ == "__main__":
    sys.exit(main())
