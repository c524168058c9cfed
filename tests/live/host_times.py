"""How late hosts of live runs are: until a flow begins, and until they answer.

    tools/env python tests/live/host_times.py [RUNS]

``anabranch validate`` lets simulated hosts take as long (``anabranch.validate.host_times``). What is seen of a host is
what enters and leaves the network beside it: a flow begins late by the time of its first packet less the time in the
file, and a packet answers the one that came before it. A host that has sent nothing for a while takes longer, an
application that has to be told of its connection leaves its first data for later than the acknowledgment that makes it,
and a host to which data makes the connection, because it has overtaken that acknowledgment, takes longer to answer it.

Where a host sends as well, what came before may be an acknowledgment, which is no matter of its receiver; there an
acknowledgment answers the segment that ends where it does. It may leave after data that was called for later: a reading
thread sends it, and data leaves as soon as an acknowledgment comes.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from statistics import mean, quantiles

from capture import SYN, Segment, segments  # type: ignore[import-not-found]

from anabranch.live import prepare, run_audited, taint
from anabranch.scenario import Scenario
from anabranch.validate.host_times import PAUSES_MS

FLOWS = 8

TEXT = """
duration = "{duration} s"

[link.near]
between = ["A", "M"]

[link.path]
between = ["M", "N"]
rate = "{rate} Mbit/s"
delay = "20 ms"
{more}

[link.far]
between = ["N", "B"]
"""

FLOW = """
[flow.f{number}]
from = "{source}"
to = "{sink}"
cc = "reno"
start_spread = "{spread}"
"""

OVERTAKEN = """
duration = "0.5 s"

[link.near]
between = ["A", "M"]

[link.fast]
between = ["M", "N"]
rate = "10 Mbit/s"
delay = "15 ms"

[link.slow]
between = ["M", "N"]
rate = "10 Mbit/s"
delay = "25 ms"

[gateway.pair]
between = ["M", "N"]
routes = ["fast", "slow"]
split = "weighted-round-robin"
restore = "none"

[link.far]
between = ["N", "B"]

[flow.only]
from = "A"
to = "B"
cc = "reno"
"""

BEGUN = 4
"""Runs of a flow's beginning in each round; one has a single first answer."""

LIMITED = 'queue = { kind = "drop-tail", limit = "1 bdp" }'
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
    acknowledged: dict[tuple[str, bool], list[float]] = {}
    first_data: list[float] = []
    first_answer: list[float] = []
    several = _text(4, 100, "", [("A", "B", "0 ms")] * FLOWS)
    alone = _text(8, 100, LOSSY, [("A", "B", "0 ms")])
    both_ways = _text(8, 20, LIMITED, [("A", "B", "100 ms"), ("B", "A", "100 ms")])
    for seed in range(1, runs + 1):
        for text in (several, alone, both_ways, *([OVERTAKEN] * BEGUN)):
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
                continue
            if text is OVERTAKEN:
                first_data.append(_first(left, data=True) - _first(left, data=False))
                first_answer.append(_first(back, data=False) - _first(to_receiver, data=True))
                continue
            ways = [("alone", to_receiver, back)]
            if text is both_ways:
                ways = [("beside a sender", to_sender, left), ("beside a sender", to_receiver, back)]
            for which, coming, going in ways:
                for pause, took, by_reader in _acknowledgments(coming, going):
                    if _pause(pause) == 0:
                        acknowledged.setdefault((which, by_reader), []).append(took)
            if text is alone:
                for found, coming, going in ((sender, to_sender, left), (receiver, to_receiver, back)):
                    for pause, took in _answers(coming, going):
                        found[_pause(pause)].append(took)
    _print("the first flow begins late by", began)
    _print("the next one later by", apart)
    _print("the first data leaves after the acknowledgment that makes the connection by", first_data)
    _print("data that makes the connection is answered after", first_answer)
    for (which, by_reader), times in sorted(acknowledged.items()):
        who = "the reading thread" if by_reader else "the kernel at once"
        _print(f"a receiver {which}: acknowledged by {who} after", times)
    for who, found in (("sender", sender), ("receiver", receiver)):
        for pause, times in found.items():
            _print(f"a {who} that was silent for {pause} ms answers after", times)
    return 0


def _text(duration: int, rate: int, more: str, flows: list[tuple[str, str, str]]) -> str:
    return TEXT.format(duration=duration, rate=rate, more=more) + "".join(
        FLOW.format(number=number, source=source, sink=sink, spread=spread)
        for number, (source, sink, spread) in enumerate(flows)
    )


def _first(passing: list[Segment], *, data: bool) -> float:
    """When the first segment of the open connection came that has data, or none."""
    return next(float(s.time_s) for s in passing if not s.flags & SYN and bool(s.payload) == data)


def _pause(silent_s: float) -> float:
    return max(known for known in PAUSES_MS if known <= silent_s * 1e3)


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


def _acknowledgments(coming: list[Segment], going: list[Segment]) -> Iterator[tuple[float, float, bool]]:
    """For each acknowledgment without data: how long no data had come, how long it took, and whether a reader sent it.

    It is left to the reading thread where it could not offer as much as the last one did, because what it acknowledges
    has not been read. So they are if the last one offered the whole buffer; if that offered a segment less, none is.
    The first one to offer the whole buffer comes after a loss; acknowledgments have offered a segment less until then.
    """
    came: dict[int, tuple[float, float]] = {}
    before = 0.0
    for segment in coming:
        if segment.payload:
            came.setdefault(segment.end, (segment.time_s - before, segment.time_s))
            before = segment.time_s
    pure = [segment for segment in going if not segment.payload and not segment.flags & SYN]
    if not pure:
        return
    most = max(segment.window for segment in pure)
    full = max(Counter(segment.payload for segment in coming if segment.payload).items(), key=itemgetter(1))[0]
    steps = [full / (1 << scale) for scale in range(11)]
    below = Counter(segment.window for segment in pure if segment.window < most)
    whole = below and any(abs(most - below.most_common(1)[0][0] - step) <= 1 for step in steps)
    last = 0
    for segment in pure:
        # Whoever acknowledges again answers something else.
        pause, at = came.pop(segment.ack, (0.0, -ANSWERS_S))
        if segment.time_s - at < ANSWERS_S:
            yield pause, segment.time_s - at, bool(whole) and last == segment.window == most
        last = segment.window


def _print(what: str, times: list[float]) -> None:
    if len(times) < 5:
        print(f"{what}: {len(times)} times are too few")
        return
    parts = quantiles(times, n=20)
    shown = " ".join(f"{1e6 * at:.0f}" for at in parts[::2])
    print(f"{what} {shown} us (quantiles 0.05, 0.15 to 0.95); mean {1e6 * mean(times):.0f} us of {len(times)}")


if __name__ == "__main__":
    sys.exit(main())
