"""Measures the delays of hosts in live runs on this machine.

Packets that enter and leave the network at a host are captured. A flow's beginning is late by the time of its first
packet minus the time in the file. A packet answers the packet before it. A host takes longer to answer if it has sent
nothing for a while. An application sends its first data later than the acknowledgment that establishes the connection.
A host takes longer to answer first data that has overtaken that acknowledgment and so establishes the connection.

On a host that also sends, an acknowledgment answers the segment whose end it acknowledges: a reading thread sends it,
so it may leave after data that was due later. An acknowledgment by a reading thread was due when a second segment came.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from statistics import quantiles
from typing import TYPE_CHECKING

from anabranch.validate.host_times import PAUSES_MS, READERS, HostTimes
from anabranch.validate.segments import SYN, Segment, segments

if TYPE_CHECKING:
    from anabranch.scenario import Scenario

PARTS = 40
"""Number of stored quantiles, in the middle of equal parts: two of a hundred delays decide how clumps form."""

MOST_ROUNDS = 20
"""A machine is too busy if this number of rounds does not give :data:`PARTS` values of each figure."""

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

BEGUN = 14
"""Runs of a flow's beginning in each round; each has a single first answer."""

LIMITED = 'queue = { kind = "drop-tail", limit = "1 bdp" }'
LOSSY = 'forward.impair = [{ kind = "bernoulli-loss", rate = 0.005 }]'

ANSWERS_S = 0.001
"""A later packet was not sent in answer to the packet before it, but for example as a delayed acknowledgment."""


@dataclass
class _Seen:
    """Delays of hosts in seconds, by kind."""

    began: list[float] = field(default_factory=list)
    apart: list[float] = field(default_factory=list)
    first_data: list[float] = field(default_factory=list)
    first_answer: list[float] = field(default_factory=list)
    sender: dict[int, list[float]] = field(default_factory=lambda: {pause: [] for pause in PAUSES_MS})
    receiver: dict[int, list[float]] = field(default_factory=lambda: {pause: [] for pause in PAUSES_MS})
    acknowledged: dict[tuple[str, bool], list[float]] = field(
        default_factory=lambda: {(which, by_reader): [] for which in READERS for by_reader in (False, True)}
    )
    by_idle_reader: list[float] = field(default_factory=list)

    def beginnings_seen(self) -> float:
        """The share of :data:`PARTS` reached by the rarer figure of short runs."""
        return min(1.0, min(len(self.began), len(self.first_answer)) / PARTS)

    def answers_seen(self) -> float:
        """The share of :data:`PARTS` reached by the rarest figure of long runs."""
        lists = [self.by_idle_reader, *self.sender.values(), *self.receiver.values(), *self.acknowledged.values()]
        return min(1.0, min(map(len, lists)) / PARTS)

    def times(self) -> HostTimes:
        """The quantiles of the delays."""
        return HostTimes(
            beginnings=_table(self.began),
            next=_table(self.apart),
            first_data=_table(self.first_data),
            made_by_data=_table(self.first_answer),
            at_once={which: _table(self.acknowledged[which, False]) for which in READERS},
            by_reader={which: _table(self.acknowledged[which, True]) for which in READERS},
            by_idle_reader=_table(self.by_idle_reader),
            answers={
                "sender": [_table(self.sender[pause]) for pause in PAUSES_MS],
                # Acknowledgments by a reader are measured separately.
                "receiver": [
                    _table(self.acknowledged["alone", False]),
                    *(_table(self.receiver[pause]) for pause in PAUSES_MS[1:]),
                ],
            },
        )


def measure_hosts(progress: Callable[[float], None] | None = None) -> HostTimes:
    """Run live for about two minutes, and return the delays of this machine's hosts.

    Raises:
        UserError: This machine cannot run live.
        RunFailedError: It is too busy.
    """
    from anabranch.errors import RunFailedError
    from anabranch.live import prepare
    from anabranch.scenario import Scenario

    prepare()
    seen = _Seen()
    pair = Scenario.from_text(_text(0.5, 100, "", [("A", "B", "0 ms")] * 2))
    overtaken = Scenario.from_text(OVERTAKEN)
    alone = Scenario.from_text(_text(8, 100, LOSSY, [("A", "B", "0 ms")]))
    both_ways = Scenario.from_text(_text(8, 20, LIMITED, [("A", "B", "100 ms"), ("B", "A", "100 ms")]))

    def update() -> None:
        if progress is not None:
            progress((seen.beginnings_seen() + seen.answers_seen()) / 2)

    for seed in range(1, MOST_ROUNDS + 1):
        for _ in range(BEGUN if seen.beginnings_seen() < 1.0 else 0):
            _see_beginnings(seen, pair, seed)
            _see_first_answer(seen, overtaken, seed)
            update()
        if seen.answers_seen() < 1.0:
            _see_answers(seen, alone, seed)
            _see_answers_beside_a_sender(seen, both_ways, seed)
            update()
        if seen.beginnings_seen() == seen.answers_seen() == 1.0:
            return seen.times()
    raise RunFailedError(
        "this machine is too busy to measure how late its hosts are\n"
        "  validate when it is less busy, or give an earlier measurement with --host-times"
    )


def _captured(scenario: Scenario, seed: int) -> tuple[list[Segment], ...] | None:
    """Segments that left the sender's host, reached it, reached the receiver's and left that; ``None`` if tainted."""
    from anabranch.live import run_audited, taint

    result = run_audited(scenario, seed=seed, captures=["near", "far"])
    if taint(result):
        return None
    links = ("near.forward", "near.reverse", "far.forward", "far.reverse")
    return tuple(list(segments(result.pcapng(link))) for link in links)


def _see_beginnings(seen: _Seen, pair: Scenario, seed: int) -> None:
    captured = _captured(pair, seed)
    if captured is None:
        return
    left = captured[0]
    syns = sorted((segment.time_s, segment.source) for segment in left if segment.flags == SYN)
    seen.began.append(syns[0][0])
    seen.apart.append(syns[1][0] - syns[0][0])
    for _, source in syns:
        own = [segment for segment in left if segment.source == source]
        seen.first_data.append(_first(own, data=True) - _first(own, data=False))


def _see_first_answer(seen: _Seen, overtaken: Scenario, seed: int) -> None:
    captured = _captured(overtaken, seed)
    if captured is not None:
        _, _, to_receiver, back = captured
        seen.first_answer.append(_first(back, data=False) - _first(to_receiver, data=True))


def _see_answers(seen: _Seen, alone: Scenario, seed: int) -> None:
    captured = _captured(alone, seed)
    if captured is None:
        return
    left, to_sender, to_receiver, back = captured
    for pause, took, by_reader in _acknowledgments(to_receiver, back):
        if _pause(pause) == 0:
            seen.acknowledged["alone", by_reader].append(took)
        elif _pause(pause) == PAUSES_MS[-1] and by_reader:
            seen.by_idle_reader.append(took)
    for found, coming, going in ((seen.sender, to_sender, left), (seen.receiver, to_receiver, back)):
        for pause, took in _answers(coming, going):
            found[_pause(pause)].append(took)


def _see_answers_beside_a_sender(seen: _Seen, both_ways: Scenario, seed: int) -> None:
    captured = _captured(both_ways, seed)
    if captured is None:
        return
    left, to_sender, to_receiver, back = captured
    for coming, going in ((to_sender, left), (to_receiver, back)):
        for pause, took, by_reader in _acknowledgments(coming, going):
            if _pause(pause) == 0:
                seen.acknowledged["beside a sender", by_reader].append(took)


def _table(times_s: list[float]) -> list[int]:
    """Quantiles in the middle of equal parts, in microseconds."""
    return [round(1e6 * at) for at in quantiles(times_s, n=2 * PARTS, method="inclusive")[::2]]


def _text(duration: float, rate: int, more: str, flows: list[tuple[str, str, str]]) -> str:
    return TEXT.format(duration=duration, rate=rate, more=more) + "".join(
        FLOW.format(number=number, source=source, sink=sink, spread=spread)
        for number, (source, sink, spread) in enumerate(flows)
    )


def _first(passing: list[Segment], *, data: bool) -> float:
    """Time of the first segment of the open connection with data, or without."""
    return next(float(s.time_s) for s in passing if not s.flags & SYN and bool(s.payload) == data)


def _pause(silent_s: float) -> int:
    return max(known for known in PAUSES_MS if known <= silent_s * 1e3)


def _answers(coming: list[Segment], going: list[Segment]) -> Iterator[tuple[float, float]]:
    """For the first packet after each arrival: the time without input before, and the delay of the answer.

    Packets that report gaps or answer such a report are left out, because they wait for timers.
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
    """For each acknowledgment without data: the time without data before, its delay, and whether a reader sent it.

    The kernel leaves an acknowledgment to the reading thread if it could not advertise the window of the previous one,
    because the acknowledged data has not been read. That is the case if the previous one advertised the whole buffer,
    and never if it advertised a segment less. Until a loss, acknowledgments advertise a segment less; the first to
    advertise the whole buffer comes after it.
    """
    came: dict[int, tuple[float, float]] = {}
    before = 0.0
    data = [segment for segment in coming if segment.payload]
    # Another connection sends in the other direction, and sequence numbers wrap at 2³².
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
    # In units of 1 KiB, rounded up or down.
    whole = below and most - below.most_common(1)[0][0] in (full >> 10, (full >> 10) + 1)
    told, offered = 0, 0
    for segment in pure:
        acknowledged = (segment.ack - first) % 2**32
        fresh = ends[bisect_right(ends, told) : bisect_right(ends, acknowledged)]
        told = max(told, acknowledged)
        by_reader = bool(whole) and offered == segment.window == most
        offered = segment.window
        # A duplicate acknowledgment answers another packet.
        if fresh and fresh[-1] == acknowledged and not segment.sack:
            pause, at = sorted((came[end] for end in fresh), key=itemgetter(1))[1 if by_reader and fresh[1:] else -1]
            if 0 <= segment.time_s - at < ANSWERS_S:
                yield pause, segment.time_s - at, by_reader
