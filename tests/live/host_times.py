"""How late hosts of live runs are: until a flow begins, and until they answer.

    tools/env python tests/live/host_times.py [RUNS] [--write [FILE]]

``anabranch validate`` lets simulated hosts take as long (``anabranch.validate.host_times``); what it reads is written
anew by ``--write``, and ``--host-times FILE`` lets it read another file. What is seen of a host is
what enters and leaves the network beside it: a flow begins late by the time of its first packet less the time in the
file, and a packet answers the one that came before it. A host that has sent nothing for a while takes longer, an
application that has to be told of its connection leaves its first data for later than the acknowledgment that makes it,
and a host to which data makes the connection, because it has overtaken that acknowledgment, takes longer to answer it.

Where a host sends as well, what came before may be an acknowledgment, which is no matter of its receiver; there an
acknowledgment answers the segment that ends where it does. It may leave after data that was called for later: a reading
thread sends it, and data leaves as soon as an acknowledgment comes. What a reading thread acknowledges was due when a
second segment was there: where it is late its acknowledgment ends with a later one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from statistics import mean, quantiles

from capture import SYN, Segment, segments  # type: ignore[import-not-found]

from anabranch.live import prepare, run_audited, taint
from anabranch.output import write_whole
from anabranch.scenario import Scenario
from anabranch.validate.host_times import MEASURED, PAUSES_MS, READERS, HostTimes

PARTS = 40
"""So many quantiles are kept, in the middle of as many equal parts: two in a hundred times decide how clumps form."""

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


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What hosts of live runs take.")
    parser.add_argument("runs", nargs="?", type=int, default=12, metavar="RUNS", help="rounds of runs (12)")
    parser.add_argument(
        "--write",
        nargs="?",
        type=Path,
        const=MEASURED,
        metavar="FILE",
        help="write it into this file, for `anabranch validate --host-times FILE`; without one, into the package's own",
    )
    options = parser.parse_args()
    if options.write is not None:
        if options.write.name.isdigit():
            parser.error(f"--write {options.write}: a file was expected; the rounds come before --write")
        # What cannot be written is told before five minutes are spent.
        if options.write.is_dir() or not os.access(options.write.parent, os.W_OK):
            parser.error(f"--write {options.write}: it cannot be written")
    return options


def main() -> int:
    """Run live and print what hosts took, in microseconds."""
    options = _options()
    prepare()
    began: list[float] = []
    apart: list[float] = []
    sender: dict[float, list[float]] = {pause: [] for pause in PAUSES_MS}
    receiver: dict[float, list[float]] = {pause: [] for pause in PAUSES_MS}
    acknowledged: dict[tuple[str, bool], list[float]] = {}
    by_idle_reader: list[float] = []
    first_data: list[float] = []
    first_answer: list[float] = []
    pair = _text(0.5, 100, "", [("A", "B", "0 ms")] * 2)
    alone = _text(8, 100, LOSSY, [("A", "B", "0 ms")])
    both_ways = _text(8, 20, LIMITED, [("A", "B", "100 ms"), ("B", "A", "100 ms")])
    for seed in range(1, options.runs + 1):
        for text in (alone, both_ways, *([pair, OVERTAKEN] * BEGUN)):
            result = run_audited(Scenario.from_text(text), seed=seed, captures=["near", "far"])
            if reasons := taint(result):
                print(f"seed {seed}: left out, {'; '.join(reasons)}")
                continue
            left, to_sender, to_receiver, back = (
                list(segments(result.pcapng(link)))
                for link in ("near.forward", "near.reverse", "far.forward", "far.reverse")
            )
            if text is pair:
                syns = sorted((segment.time_s, segment.source) for segment in left if segment.flags == SYN)
                began.append(syns[0][0])
                apart.append(syns[1][0] - syns[0][0])
                for _, source in syns:
                    own = [segment for segment in left if segment.source == source]
                    first_data.append(_first(own, data=True) - _first(own, data=False))
                continue
            if text is OVERTAKEN:
                first_answer.append(_first(back, data=False) - _first(to_receiver, data=True))
                continue
            ways = [("alone", to_receiver, back)]
            if text is both_ways:
                ways = [("beside a sender", to_sender, left), ("beside a sender", to_receiver, back)]
            for which, coming, going in ways:
                for pause, took, by_reader in _acknowledgments(coming, going):
                    if _pause(pause) == 0:
                        acknowledged.setdefault((which, by_reader), []).append(took)
                    elif _pause(pause) == PAUSES_MS[-1] and by_reader and text is alone:
                        by_idle_reader.append(took)
            if text is alone:
                for found, coming, going in ((sender, to_sender, left), (receiver, to_receiver, back)):
                    for pause, took in _answers(coming, going):
                        found[_pause(pause)].append(took)
    readers = {which: acknowledged.get((which, True), []) for which in READERS}
    times = {
        "the first of two flows begins late by": began,
        "the other one later by": apart,
        "their first data leaves after the acknowledgment that makes the connection by": first_data,
        "data that makes the connection is answered after": first_answer,
        "data is acknowledged by the kernel at once after": acknowledged.get(("alone", False), []),
        "the same, beside a sender": acknowledged.get(("beside a sender", False), []),
        **{f"data is acknowledged by a reading thread {which} after": found for which, found in readers.items()},
        f"the same by one alone where none had come for {PAUSES_MS[-1]} ms after": by_idle_reader,
        **{f"a sender that was silent for {pause} ms answers after": found for pause, found in sender.items()},
        **{f"a receiver that was silent for {pause} ms answers after": found for pause, found in receiver.items()},
    }
    for what, taken in times.items():
        print(
            f"{what} {_shown(taken)} us (quantiles 0.05, 0.15 to 0.95); mean {1e6 * mean(taken):.0f} us of {len(taken)}"
        )
    if options.write and any(len(taken) < PARTS for taken in times.values()):
        sys.exit(f"too few: {PARTS} of each are asked for")
    if options.write:
        kept = HostTimes(
            beginnings=_table(began),
            next=_table(apart),
            first_data=_table(first_data),
            data_makes_connection=_table(first_answer),
            acknowledged_at_once={which: _table(acknowledged[which, False]) for which in readers},
            acknowledged_by_reader={which: _table(found) for which, found in readers.items()},
            acknowledged_by_idle_reader=_table(by_idle_reader),
            answers={
                "sender": [_table(sender[pause]) for pause in PAUSES_MS],
                # What a reader acknowledges is told by itself.
                "receiver": [
                    _table(acknowledged["alone", False]),
                    *(_table(receiver[pause]) for pause in PAUSES_MS[1:]),
                ],
            },
        )
        document = kept.document()
        HostTimes.of(document)
        write_whole(options.write, (json.dumps(document) + "\n").encode())
    return 0


def _table(times_s: list[float]) -> list[int]:
    """Microseconds in the middle of equal parts."""
    return [round(1e6 * at) for at in quantiles(times_s, n=2 * PARTS, method="inclusive")[::2]]


def _shown(times_s: list[float]) -> str:
    return " ".join(f"{1e6 * at:.0f}" for at in quantiles(times_s, n=20, method="inclusive")[::2])


def _text(duration: float, rate: int, more: str, flows: list[tuple[str, str, str]]) -> str:
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
    """For the first packet after each that came: how long there had been nothing to answer, and how long it took.

    Without what reports gaps or answers such a report: those wait for timers.
    """
    last, at = 0.0, 0
    for segment in going:
        before = at
        while at < len(coming) and coming[at].time_s <= segment.time_s:
            at += 1
        if at == before:
            continue
        latest = coming[at - 1]
        if segment.time_s - latest.time_s < ANSWERS_S and not (segment.sack or latest.sack):
            yield latest.time_s - last, segment.time_s - latest.time_s
        last = latest.time_s


def _acknowledgments(coming: list[Segment], going: list[Segment]) -> Iterator[tuple[float, float, bool]]:
    """For each acknowledgment without data: how long no data had come, how long it took, and whether a reader sent it.

    It is left to the reading thread where it could not offer as much as the last one did, because what it acknowledges
    has not been read. So they are if the last one offered the whole buffer; if that offered a segment less, none is.
    The first one to offer the whole buffer comes after a loss; acknowledgments have offered a segment less until then.
    """
    came: dict[int, tuple[float, float]] = {}
    before = 0.0
    data = [segment for segment in coming if segment.payload]
    # Another connection sends the other way; and numbers begin anew behind 2³².
    others = {segment.source for segment in going if segment.payload}
    pure = [segment for segment in going if segment.source not in others and not segment.flags & SYN]
    if not pure or not data:
        return
    first = data[0].seq
    for segment in data:
        came.setdefault((segment.end - first) % 2**32, (segment.time_s - before, segment.time_s))
        before = segment.time_s
    ends = sorted(came)
    most = max(segment.window for segment in pure)
    full = max(Counter(segment.payload for segment in coming if segment.payload).items(), key=itemgetter(1))[0]
    below = Counter(segment.window for segment in pure if segment.window < most)
    # In units of a kibibyte, up or down.
    whole = below and most - below.most_common(1)[0][0] in (full >> 10, (full >> 10) + 1)
    told, offered = 0, 0
    for segment in pure:
        acknowledged = (segment.ack - first) % 2**32
        fresh = ends[bisect_right(ends, told) : bisect_right(ends, acknowledged)]
        told = max(told, acknowledged)
        by_reader = bool(whole) and offered == segment.window == most
        offered = segment.window
        # Whoever acknowledges again answers something else.
        if fresh and fresh[-1] == acknowledged and not segment.sack:
            pause, at = sorted((came[end] for end in fresh), key=itemgetter(1))[1 if by_reader and fresh[1:] else -1]
            if 0 <= segment.time_s - at < ANSWERS_S:
                yield pause, segment.time_s - at, by_reader


if __name__ == "__main__":
    sys.exit(main())
