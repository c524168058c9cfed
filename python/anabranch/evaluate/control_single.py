"""Checks of a congestion control alone, or beside flows of the same control (RFC 9743 §5.1, §6, §7)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from anabranch.evaluate import measures as m
from anabranch.evaluate.build import Path, Table, files, flow, probes, rate, scenario, udp
from anabranch.evaluate.check import Case, Check, Plan, one
from anabranch.evaluate.judge import Limit, NoWorse
from anabranch.evaluate.measures import Measure
from anabranch.evaluate.subject import Subject

STANDARD = NoWorse(("cubic", "reno"))
"""RFC 9743 §5.2: not more harm than previous standards-track algorithms."""
AS_STANDARD = "Not worse than the worse of CUBIC and Reno in the same scenarios."
COMPARED = "RFC 9743 §5.2: no more harm than previous standards-track algorithms"

BUFFERS = (0.1, 0.5, 1.0, 4.0, 10.0)
PATHS = (Path(10, 20), Path(50, 40), Path(100, 100))
QUICK_BUFFERS = (0.1, 1.0, 10.0)
QUICK_PATHS = (Path(50, 40),)


def grid() -> Iterator[tuple[Path, bool]]:
    """Paths and buffers, and whether the quick set has them."""
    for path in PATHS:
        for bdp in BUFFERS:
            yield Path(path.mbit_s, path.rtt_ms, bdp), path in QUICK_PATHS and bdp in QUICK_BUFFERS


def _alone(path: Path, count: int, control: Subject) -> Table:
    return scenario(path, {"x": flow(control, count=count)}, duration=30, warmup=10)


def _grid(measure: Measure, _plan: Plan) -> list[Case]:
    return [
        Case(
            f"{p.bdp:g} BDP",
            one(partial(_alone, p, 1)),
            measure,
            STANDARD,
            quick,
            f"{p.mbit_s:g} Mbit/s, {p.rtt_ms:g} ms",
        )
        for p, quick in grid()
    ]


def _several(measure: Measure, counts: Sequence[int], buffers: Sequence[float], _plan: Plan) -> list[Case]:
    return [
        Case(
            f"{bdp:g} BDP",
            one(partial(_alone, Path(50, 40, bdp), n)),
            measure,
            STANDARD,
            bdp in QUICK_BUFFERS,
            f"{n} flows",
        )
        for n in counts
        for bdp in buffers
    ]


def _blackout(control: Subject) -> Table:
    down = {"time": "10 s", "set": {"link.bottleneck.up": False}}
    return scenario(Path(10, 100), {"x": flow(control)}, duration=71, warmup=11, at=[down])


def _blackouts(_plan: Plan) -> list[Case]:
    limit = math.log2(60 / 0.1 + 1)
    return [Case("60 s without an answer", one(_blackout), m.sent("x"), Limit(limit))]


def _lossy(share: float, path: Path, control: Subject) -> Table:
    link = path.link(forward={"impair": [{"kind": "bernoulli-loss", "rate": share}]})
    return scenario(None, {"x": flow(control)}, duration=60, warmup=20, links={"bottleneck": link})


def _heavy(_plan: Plan) -> list[Case]:
    return [
        Case(f"{100 * share:g} %", one(partial(_lossy, share, Path(10, 100))), m.packets_per_rtt("x", 100), Limit(1.0))
        for share in (0.5, 0.9)
    ]


def _breakers(_plan: Plan) -> list[Case]:
    return [
        Case(f"{100 * share:g} %", one(partial(_lossy, share, Path(20, 50))), m.breaker("x"), Limit(10.0))
        for share in (0.01, 0.03, 0.1, 0.2)
    ]


def _policed(path: Path, mbit_s: float, burst: str, control: Subject) -> Table:
    link = path.link(forward={"impair": [{"kind": "policer", "rate": rate(mbit_s), "burst": burst}]})
    return scenario(None, {"x": flow(control)}, duration=30, warmup=5, links={"bottleneck": link})


def _policers(measure: Measure, _plan: Plan) -> list[Case]:
    return [
        Case(burst, one(partial(_policed, Path(50, 40), 10, burst)), measure, STANDARD, burst == "64 KiB", "10 Mbit/s")
        for burst in ("16 KiB", "64 KiB", "256 KiB")
    ]


def _many(measure: Measure, _plan: Plan) -> list[Case]:
    def build(count: int, control: Subject) -> Table:
        return scenario(Path(100, 40), {"x": flow(control, count=count)}, duration=20, warmup=10)

    return [Case(f"{n} flows", one(partial(build, n)), measure, STANDARD, n == 50) for n in (50, 150)]


def _late(path: Path, control: Subject) -> Table:
    flows = {"old": flow(control, start_spread="0 s"), "new": flow(control, start="15 s", start_spread="500 ms")}
    return scenario(path, flows, duration=75, warmup=0)


def _convergence(_plan: Plan) -> list[Case]:
    measure = m.convergence("old", "new", 15.0, 0.2)
    return [
        Case(
            f"{p.rtt_ms:g} ms",
            one(partial(_late, p)),
            measure,
            STANDARD,
            p.rtt_ms == 40,
            f"{p.mbit_s:g} Mbit/s, 1 BDP",
            sampled=True,
        )
        for p in (Path(50, 20), Path(50, 40), Path(50, 100))
    ]


def _steady(path: Path, control: Subject) -> Table:
    return scenario(path, {"x": flow(control)}, duration=70, warmup=10)


def _oscillation(_plan: Plan) -> list[Case]:
    return [
        Case(
            f"{bdp:g} BDP",
            one(partial(_steady, Path(50, 40, bdp))),
            m.oscillation("x"),
            STANDARD,
            bdp == 1.0,
            sampled=True,
        )
        for bdp in BUFFERS
    ]


def _two_rtts(extra_ms: float, control: Subject) -> Table:
    access = {"between": ["C", "A"], "rate": "1 Gbit/s", "delay": f"{round(extra_ms * 500)} us"}
    flows = {"short": flow(control), "long": flow(control, source="C")}
    return scenario(Path(50, 20, 2), flows, duration=60, warmup=20, links={"access": access})


def _rtt_fairness(_plan: Plan) -> list[Case]:
    measure = m.log_ratio("long", "short", "distance of the goodput ratio of two round-trip times from 1")
    return [
        Case(f"20 and {20 + extra} ms", one(partial(_two_rtts, extra)), measure, STANDARD, extra == 80)
        for extra in (20, 80, 180)
    ]


def _parking_lot(control: Subject) -> Table:
    def hop(a: str, b: str) -> Table:
        return Path(20, 20).link(between=[a, b])

    links = {"first": hop("A", "B"), "second": hop("B", "C")}
    flows = {
        "through": flow(control, to="C"),
        "one": flow(control),
        "two": flow(control, source="B", to="C"),
    }
    return scenario(None, flows, duration=60, warmup=20, links=links)


def _lots(_plan: Plan) -> list[Case]:
    measure = m.log_ratio("through", "one", "distance of the goodput ratio over two bottlenecks and over one from 1")
    return [Case("two bottlenecks", one(_parking_lot), measure, STANDARD)]


def _short(path: Path, control: Subject) -> Table:
    flows = {"x": flow(control), "files": files(control, path.mbit_s * 0.1, 30)}
    return scenario(path, flows, duration=40, warmup=10)


def _shorts(measure: Measure, _plan: Plan) -> list[Case]:
    return [
        Case(f"{bdp:g} BDP", one(partial(_short, Path(50, 40, bdp))), measure, STANDARD, bdp in QUICK_BUFFERS)
        for bdp in BUFFERS
    ]


def _file(path: Path, kilobytes: float, control: Subject) -> Table:
    workload = {"kind": "file", "size": f"{round(kilobytes * 1000)} bytes"}
    return scenario(path, {"x": flow(control, workload=workload)}, duration=60, warmup=0)


def _startup(_plan: Plan) -> list[Case]:
    paths = (Path(50, 40), Path(100, 100), Path(20, 600))
    return [
        Case(
            f"{kb / 1000:g} MB",
            one(partial(_file, p, kb)),
            m.file_time("x"),
            STANDARD,
            p.rtt_ms == 40,
            f"{p.mbit_s:g} Mbit/s, {p.rtt_ms:g} ms",
        )
        for p in paths
        for kb in (30, 300, 3000, 10000)
    ]


def _loaded(path: Path, control: Subject) -> Table:
    reno = Subject("reno", "control", "reno")
    return scenario(path, {"x": flow(control, count=4), "probe": probes(reno)}, duration=30, warmup=10)


def _rpm(measure: Measure, _plan: Plan) -> list[Case]:
    return [
        Case(f"{bdp:g} BDP", one(partial(_loaded, Path(50, 40, bdp))), measure, STANDARD, bdp in QUICK_BUFFERS)
        for bdp in BUFFERS
    ]


def _ready(name: str, control: Subject) -> Table:
    links = {"bottleneck": {"path": name, "between": ["A", "B"]}}
    return scenario(None, {"x": flow(control)}, duration=40, warmup=5, links=links)


WIRELESS = ("wifi", "lte-drive", "5g-drive", "starlink")


def _wireless(measure: Measure, _plan: Plan) -> list[Case]:
    cases = [
        Case(name, one(partial(_ready, name)), measure, STANDARD, name in ("wifi", "lte-drive")) for name in WIRELESS
    ]
    lossy = one(partial(_lossy, 0.01, Path(50, 40)))
    return [*cases, Case("1 % radio loss", lossy, measure, STANDARD)]


def _varying(path: Path, period_s: float, control: Subject) -> Table:
    """The minimum delay alternates between one and three times that of the path, without congestion."""
    low, high = f"{round(path.rtt_ms * 500)} us", f"{round(path.rtt_ms * 1500)} us"
    at = [
        {"time": f"{period_s / 2:g} s", "every": f"{period_s:g} s", "set": {"link.bottleneck.delay": high}},
        {"time": f"{period_s:g} s", "every": f"{period_s:g} s", "set": {"link.bottleneck.delay": low}},
    ]
    return scenario(path, {"x": flow(control)}, duration=60, warmup=10, at=at)


def _varying_delays(measure: Measure, _plan: Plan) -> list[Case]:
    return [
        Case(f"every {period / 2:g} s", one(partial(_varying, Path(20, 20, 2), period)), measure, STANDARD, period == 4)
        for period in (1, 4, 20)
    ]


def _thing(kbit_s: float, control: Subject) -> Table:
    path = Path(kbit_s / 1000, 300, 4)
    link = path.link(queue={"kind": "drop-tail", "limit": "10 packets"})
    work = files(control, kbit_s / 1000 * 0.3, 4)
    return scenario(None, {"x": work}, duration=300, warmup=10, links={"bottleneck": link})


def _things(measure: Measure, _plan: Plan) -> list[Case]:
    return [Case(f"{k} kbit/s", one(partial(_thing, k)), measure, STANDARD, k == 50) for k in (20, 50, 250)]


def _far(path: Path, control: Subject) -> Table:
    return scenario(path, {"x": flow(control)}, duration=90, warmup=30)


def _high_delay(measure: Measure, _plan: Plan) -> list[Case]:
    return [
        Case(
            f"{bdp:g} BDP",
            one(partial(_far, Path(mbit, rtt, bdp))),
            measure,
            STANDARD,
            mbit == 20,
            f"{mbit} Mbit/s, {rtt} ms",
        )
        for mbit, rtt in ((20, 600), (100, 300))
        for bdp in (0.25, 1.0)
    ]


def _reordered(jitter_ms: float, control: Subject) -> Table:
    impair = [{"kind": "jitter", "mean": f"{jitter_ms:g} ms", "reorder": True}]
    link = Path(50, 40).link(forward={"impair": impair})
    return scenario(None, {"x": flow(control)}, duration=30, warmup=5, links={"bottleneck": link})


def _reordering(measure: Measure, _plan: Plan) -> list[Case]:
    return [Case(f"{j:g} ms", one(partial(_reordered, j)), measure, STANDARD, j == 5) for j in (0.5, 5, 20)]


def _onset(control: Subject) -> Table:
    flows = {"x": flow(control), "cross": udp(37.5, start="20 s")}
    return scenario(Path(50, 40), flows, duration=25, warmup=20)


def _onsets(measure: Measure, _plan: Plan) -> list[Case]:
    return [Case("75 % of the capacity is taken", one(_onset), measure, STANDARD)]


def _outage(length_s: float, control: Subject) -> Table:
    at = [
        {"time": "15 s", "set": {"link.bottleneck.up": False}},
        {"time": f"{15 + length_s:g} s", "set": {"link.bottleneck.up": True}},
    ]
    end = 15 + length_s
    return scenario(Path(50, 40), {"x": flow(control)}, duration=end + 15, warmup=end, at=at)


OUTAGES: dict[str, tuple[float, ...]] = {
    "0.2 s": (0.2,),
    "about 1 s": (0.7, 1, 1.4),
    "about 10 s": (7, 9, 11.5, 14.5),
}
"""Several lengths of each: the backoff of the retransmission timer decides when a sender notices the end."""


def _outages(_plan: Plan) -> list[Case]:
    return [
        Case(
            label,
            {f"{s:g} s": partial(_outage, s) for s in lengths},
            m.mean_goodput("x"),
            STANDARD,
            label == "about 1 s",
        )
        for label, lengths in OUTAGES.items()
    ]


def _changed(key: str, value: str, control: Subject) -> Table:
    at = [{"time": "20 s", "set": {f"link.bottleneck.{key}": value}}]
    return scenario(Path(50, 40), {"x": flow(control)}, duration=30, warmup=20, at=at)


CHANGES = (
    ("rate ÷ 5", "rate", "10 Mbit/s"),
    ("rate × 2", "rate", "100 Mbit/s"),
    ("delay × 4", "delay", "80 ms"),
    ("delay ÷ 4", "delay", "5 ms"),
)


def _changes(measure: Measure, _plan: Plan) -> list[Case]:
    return [Case(label, one(partial(_changed, key, value)), measure, STANDARD) for label, key, value in CHANGES]


def _unresponsive(share: float, control: Subject) -> Table:
    return scenario(Path(50, 40), {"x": flow(control), "cross": udp(50 * share)}, duration=30, warmup=10)


def _misbehaving(measure: Measure, _plan: Plan) -> list[Case]:
    return [Case(f"{100 * s:g} %", one(partial(_unresponsive, s)), measure, STANDARD, s == 0.5) for s in (0.5, 0.9)]


def _both_ways(back_mbit_s: float, control: Subject) -> Table:
    back = {"rate": rate(back_mbit_s), "queue": {"kind": "drop-tail", "limit": "100 packets"}}
    link = Path(20, 40).link(reverse=back)
    other = {"from": "B", "to": "A", "cc": "cubic", "start_spread": "1 s"}
    return scenario(None, {"x": flow(control), "back": other}, duration=40, warmup=10, links={"bottleneck": link})


def _reverse(_plan: Plan) -> list[Case]:
    return [
        Case(f"{20 / mbit:g} : 1", one(partial(_both_ways, mbit)), m.goodput("x"), STANDARD, mbit == 2)
        for mbit in (20, 2)
    ]


def _incast(senders: int, control: Subject) -> Table:
    work = {"kind": "request-response", "response": "64 KiB", "synchronized": True}
    link = {
        "between": ["A", "B"],
        "rate": "1 Gbit/s",
        "delay": "50 us",
        "queue": {"kind": "drop-tail", "limit": "128 packets"},
    }
    flows = {"x": flow(control, count=senders, workload=work, start_spread="0 s")}
    return scenario(None, flows, duration=3, warmup=0.5, links={"bottleneck": link})


def _incasts(_plan: Plan) -> list[Case]:
    measure = m.response("x", "p99_response_time_ms")
    return [Case(f"{n} senders", one(partial(_incast, n)), measure, STANDARD, n == 16) for n in (4, 16, 40)]


def _marked_fabric(control: Subject) -> Table:
    queue = {"kind": "threshold-mark", "threshold": "20 packets", "limit": "256 packets"}
    link = {"between": ["A", "B"], "rate": "1 Gbit/s", "delay": "50 us", "queue": queue}
    return scenario(
        None,
        {"x": flow(control, ecn=True, count=2, start_spread="100 ms")},
        duration=3,
        warmup=1,
        links={"bottleneck": link},
    )


def _fabric(measure: Measure, _plan: Plan) -> list[Case]:
    return [Case("marking at 20 packets", one(_marked_fabric), measure, STANDARD)]


def _check(
    name: str, title: str, about: str, cases: object, criterion: str = AS_STANDARD, source: str = COMPARED
) -> Check:
    return Check(name, title, about, criterion, source, cases)  # type: ignore[arg-type]


_GRID = "One flow on 10, 50 and 100 Mbit/s with round trips of 20, 40 and 100 ms; drop-tail buffers of 0.1 to 10 BDP."
_SELF = "Flows of the control on 50 Mbit/s, 40 ms; drop-tail buffers of 0.1 to 10 BDP."

CHECKS: tuple[Check, ...] = (
    _check("tail-drop-utilization", "Utilization of drop-tail bottlenecks", _GRID, partial(_grid, m.utilization())),
    _check("tail-drop-delay", "Queueing delay in drop-tail bottlenecks", _GRID, partial(_grid, m.queue_delay())),
    _check("tail-drop-loss", "Packet loss in drop-tail bottlenecks", _GRID, partial(_grid, m.loss())),
    _check(
        "blackout",
        "Backoff without any feedback",
        "10 Mbit/s, 100 ms; the path fails after 10 s. Counted from a second later, for 60 s.",
        _blackouts,
        "At most log₂(60 s ÷ RTT + 1) packets: one per round trip at first, then twice the interval each time.",
        "RFC 9743 §5.1.1: one packet per round-trip time, then exponential backoff; §5.2: backoff without feedback. "
        "The number of packets is ours",
    ),
    _check(
        "heavy-loss",
        "Backoff under extreme loss",
        "10 Mbit/s, 100 ms; half and nine tenths of all packets are lost at random.",
        _heavy,
        "At most one packet per round trip.",
        "RFC 9743 §5.1.1: reduce to one packet per round-trip time. The shares of loss at which it counts are ours",
    ),
    _check(
        "breaker",
        "Rate within the envelope of circuit breakers",
        "20 Mbit/s, 50 ms; 1 to 20 % of all packets are lost at random.",
        _breakers,
        "At most ten times the rate of the TCP throughput equation.",
        "RFC 8083 §4.3, which RFC 9743 §5.2.2 cites; RFC 9743 §7.2",
    ),
    _check(
        "loss-of-several",
        "Loss that several flows cause in shallow buffers",
        _SELF,
        partial(_several, m.loss(), (2, 8), (0.1, 0.5, 1.0, 1.5)),
        source="RFC 9743 §5.1.3, and " + COMPARED,
    ),
    _check(
        "policer-loss",
        "Loss at a policer",
        "50 Mbit/s, 40 ms, with a policer of 10 Mbit/s.",
        partial(_policers, m.loss()),
    ),
    _check(
        "policer-goodput",
        "Goodput at a policer",
        "50 Mbit/s, 40 ms, with a policer of 10 Mbit/s.",
        partial(_policers, m.goodput("x")),
    ),
    _check(
        "fairness", "Fairness among flows of the control", _SELF, partial(_several, m.fairness("x"), (2, 8), BUFFERS)
    ),
    _check(
        "many-fairness",
        "Fairness among many flows",
        "50 and 150 flows on 100 Mbit/s, 40 ms, 1 BDP.",
        partial(_many, m.fairness("x")),
    ),
    _check(
        "many-loss",
        "Loss that many flows cause",
        "50 and 150 flows on 100 Mbit/s, 40 ms, 1 BDP.",
        partial(_many, m.loss()),
    ),
    _check(
        "convergence",
        "Convergence of a new flow with an old one",
        "50 Mbit/s, 1 BDP; the second flow begins after 15 s; δ = 0.2.",
        _convergence,
        source="RFC 5166 §2.3.3 (δ-fair convergence time) and §4: compare with the current standards for TCP",
    ),
    _check(
        "oscillation",
        "Oscillation of the goodput",
        "One flow on 50 Mbit/s, 40 ms for 60 s.",
        _oscillation,
        source="RFC 5166 §2.2.2 and §4: compare with the current standards for TCP",
    ),
    _check(
        "rtt-fairness",
        "Fairness between round-trip times",
        "Two flows on 50 Mbit/s with round trips of 20 ms, and of 40 to 200 ms.",
        _rtt_fairness,
        source="RFC 5166 §2.3.3: the RTT-unfairness of standard TCP is the measure",
    ),
    _check(
        "parking-lot",
        "Fairness over several bottlenecks",
        "A flow over two bottlenecks of 20 Mbit/s beside one on each.",
        _lots,
        source="RFC 5166 §2.3.3 and §4: compare with the current standards for TCP",
    ),
    _check(
        "short-time",
        "Short flows beside a long flow of the control",
        "50 Mbit/s, 40 ms; files of 30 kB on average take 10 % of the capacity. All use the control.",
        partial(_shorts, m.completion("files")),
    ),
    _check(
        "short-long",
        "A long flow beside short flows of the control",
        "50 Mbit/s, 40 ms; files of 30 kB on average take 10 % of the capacity. All use the control.",
        partial(_shorts, m.goodput("x")),
    ),
    _check("startup", "Start of a flow", "One file of 30 kB to 10 MB alone.", _startup),
    _check(
        "rpm-foreign",
        "Responsiveness of other connections under load",
        "Four flows on 50 Mbit/s, 40 ms; small requests on one separate Reno connection.",
        partial(_rpm, m.rpm_foreign("probe")),
        source="draft-ietf-ippm-responsiveness (foreign probes), simplified (see the guide); " + COMPARED,
    ),
    _check(
        "rpm-self",
        "Responsiveness of the loaded connections",
        "Four flows on 50 Mbit/s, 40 ms; from their smoothed round-trip times.",
        partial(_rpm, m.rpm_self("x")),
        source="draft-ietf-ippm-responsiveness (self probes), simplified (see the guide); " + COMPARED,
    ),
    _check(
        "wireless-goodput",
        "Goodput on wireless paths",
        "The ready paths wifi, lte-drive, 5g-drive and starlink, and 1 % random loss on 50 Mbit/s, 40 ms.",
        partial(_wireless, m.goodput("x")),
    ),
    _check(
        "wireless-delay",
        "Queueing delay on wireless paths",
        "The ready paths wifi, lte-drive, 5g-drive and starlink, and 1 % random loss on 50 Mbit/s, 40 ms.",
        partial(_wireless, m.queue_delay()),
    ),
    _check(
        "varying-delay",
        "Utilization with a varying minimum delay",
        "20 Mbit/s; the round trip alternates between 20 and 60 ms.",
        partial(_varying_delays, m.utilization()),
    ),
    _check(
        "varying-delay-queue",
        "Queueing delay with a varying minimum delay",
        "20 Mbit/s; the round trip alternates between 20 and 60 ms.",
        partial(_varying_delays, m.queue_delay()),
    ),
    _check(
        "iot-time",
        "Completion time on constrained links",
        "20 to 250 kbit/s, 300 ms, 10 packets of buffer; files of 4 kB take 30 % of the capacity.",
        partial(_things, m.completion("x", "mean_completion_time_s")),
    ),
    _check(
        "iot-packets",
        "Retransmissions on constrained links",
        "20 to 250 kbit/s, 300 ms, 10 packets of buffer; files of 4 kB take 30 % of the capacity.",
        partial(_things, m.retransmitted("x")),
    ),
    _check(
        "high-delay",
        "Utilization of paths with high delay",
        "20 Mbit/s, 600 ms and 100 Mbit/s, 300 ms.",
        partial(_high_delay, m.utilization()),
    ),
    _check(
        "high-delay-queue",
        "Queueing delay on paths with high delay",
        "20 Mbit/s, 600 ms and 100 Mbit/s, 300 ms.",
        partial(_high_delay, m.queue_delay()),
    ),
    _check(
        "reordering",
        "Goodput with extreme reordering",
        "50 Mbit/s, 40 ms; each packet is delayed by 0.5 to 20 ms on average.",
        partial(_reordering, m.goodput("x")),
    ),
    _check(
        "reordering-spurious",
        "Spurious retransmissions with extreme reordering",
        "50 Mbit/s, 40 ms; each packet is delayed by 0.5 to 20 ms on average.",
        partial(_reordering, m.spurious("x")),
    ),
    _check(
        "onset-loss",
        "Loss at the onset of congestion",
        "50 Mbit/s, 40 ms; datagrams take 75 % of the capacity from 20 s on; the 5 s after.",
        partial(_onsets, m.loss()),
    ),
    _check(
        "onset-delay",
        "Queueing delay at the onset of congestion",
        "50 Mbit/s, 40 ms; datagrams take 75 % of the capacity from 20 s on; the 5 s after.",
        partial(_onsets, m.queue_delay(99)),
    ),
    _check(
        "outage",
        "Goodput after an outage",
        "50 Mbit/s, 40 ms; the path fails for 0.2, about 1 and about 10 s. The 15 s after.",
        _outages,
    ),
    _check(
        "change-utilization",
        "Utilization after a change of the path",
        "50 Mbit/s, 40 ms; rate or delay change after 20 s. The 10 s after.",
        partial(_changes, m.utilization()),
    ),
    _check(
        "change-delay",
        "Queueing delay after a change of the path",
        "50 Mbit/s, 40 ms; rate or delay change after 20 s. The 10 s after.",
        partial(_changes, m.queue_delay()),
    ),
    _check(
        "unresponsive-goodput",
        "Goodput beside unresponsive traffic",
        "50 Mbit/s, 40 ms; datagrams take 50 and 90 % of the capacity.",
        partial(_misbehaving, m.goodput("x")),
    ),
    _check(
        "unresponsive-loss",
        "Loss beside unresponsive traffic",
        "50 Mbit/s, 40 ms; datagrams take 50 and 90 % of the capacity.",
        partial(_misbehaving, m.loss()),
    ),
    _check(
        "reverse",
        "Goodput with traffic in the reverse direction",
        "20 Mbit/s, 40 ms; a CUBIC flow in the other direction at 20 and at 2 Mbit/s.",
        _reverse,
        source="RFC 5166 §2.4 (asymmetric paths) and §4: compare with the current standards for TCP",
    ),
    _check(
        "incast",
        "Response time of an incast",
        "1 Gbit/s, 0.1 ms; 4 to 40 servers answer together with 64 KiB each.",
        _incasts,
    ),
    _check(
        "fabric-delay",
        "Queueing delay in a fabric that marks",
        "1 Gbit/s, 0.1 ms; a switch that marks from 20 packets on; two flows with ECN.",
        partial(_fabric, m.queue_delay(99)),
    ),
    _check(
        "fabric-utilization",
        "Utilization of a fabric that marks",
        "1 Gbit/s, 0.1 ms; a switch that marks from 20 packets on; two flows with ECN.",
        partial(_fabric, m.utilization()),
    ),
)
"""The checks of a control alone."""
