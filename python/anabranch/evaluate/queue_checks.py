"""Checks of a queue: the scenarios of RFC 7928, each with the queue and with drop-tail in the same place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from anabranch.evaluate import measures as m
from anabranch.evaluate.build import Path, Table, call, files, flow, rate, scenario, udp
from anabranch.evaluate.check import Case, Check, Plan, one
from anabranch.evaluate.judge import NoWorse
from anabranch.evaluate.measures import Measure
from anabranch.evaluate.subject import QUEUE, Subject

PLAIN = NoWorse(("drop-tail",))
CRITERION = "Not worse than a drop-tail queue of the same buffer in the same scenarios."
SOURCE = "RFC 7928 §8.2.6 (compare with drop-tail) and §3.2 (buffer); it states no target"
PATH = Path(50, 40)
LARGEST_RTT_MS = 100.0
"""Buffers are the rate times this: the largest round-trip time of the considered network (RFC 7928 §3.2)."""
RENO = Subject("reno", "control", "reno")
CUBIC = Subject("cubic", "control", "cubic")


def buffer_packets(path: Path = PATH, bdp: float | None = None) -> int:
    """The buffer of all queues: the rate times the largest round-trip time, or a multiple of the path's BDP."""
    times = LARGEST_RTT_MS / path.rtt_ms if bdp is None else bdp
    return max(2, round(path.bdp_packets * times))


def table_of(queue: Subject, path: Path = PATH, bdp: float | None = None, *, ecn: bool = False) -> Table:
    """The queue's table for a path: with the buffer of all queues, unless the subject has its own limit."""
    value: Table = dict(queue.value)
    if ecn and _has(str(value["kind"]), "ecn"):
        value["ecn"] = True
    if ("limit" not in value or bdp is not None) and _has(str(value["kind"]), "limit"):
        value["limit"] = f"{buffer_packets(path, bdp)} packets"
    return value


def _has(kind: str, parameter: str) -> bool:
    """Whether a kind of queue has a parameter."""
    from anabranch.keys.registry import engine_registry

    found = [item for item in engine_registry() if item["kind"] == "queue" and item["name"] == kind]
    return any(one["name"] == parameter for item in found for one in item["parameters"])


Flows = Callable[[], Mapping[str, Table]]


def _run(
    flows: Flows,
    queue: Subject,
    *,
    path: Path = PATH,
    bdp: float | None = None,
    ecn: bool = False,
    warmup: float = 10,
    duration: float = 40,
    **more: Any,
) -> Table:
    link = path.link(queue=table_of(queue, path, bdp, ecn=ecn))
    links = {"bottleneck": link, **more.pop("links", {})}
    return scenario(None, flows(), duration=duration, warmup=warmup, links=links, **more)


def _bulk(control: Subject, count: int = 1, *, ecn: bool = False, **more: Any) -> Mapping[str, Table]:
    return {"x": flow(control, count=count, ecn=ecn, **more)}


def _case(
    label: str,
    flows: Flows,
    measure: Measure,
    group: str = "",
    *,
    quick: bool = True,
    sampled: bool = False,
    **more: Any,
) -> Case:
    return Case(label, one(partial(_run, flows, **more)), measure, PLAIN, quick, group, sampled)


def level_counts() -> dict[str, int]:
    """Flows of the congestion levels of RFC 7928 §8.2: shares of S, the BDP and the buffer in packets."""
    s = PATH.bdp_packets + buffer_packets(PATH)
    return {"mild": round(0.036 * s), "medium": round(0.081 * s), "heavy": round(0.114 * s)}


def _baseline(measure: Measure, _plan: Plan) -> list[Case]:
    return [
        _case(
            f"{p.rtt_ms:g} ms", partial(_bulk, RENO, 5), measure, f"{p.mbit_s:g} Mbit/s", quick=p.mbit_s == 50, path=p
        )
        for p in (Path(5, 20), Path(5, 100), Path(50, 20), Path(50, 100), Path(200, 20), Path(200, 100))
    ]


def _levels(measure: Measure, names: tuple[str, ...], _plan: Plan) -> list[Case]:
    counts = level_counts()
    return [_case(f"{name}: {counts[name]} flows", partial(_bulk, RENO, counts[name]), measure) for name in names]


def _buffers(measure: Measure, _plan: Plan) -> list[Case]:
    return [_case(f"{bdp:g} BDP", partial(_bulk, RENO, 5), measure, quick=bdp == 4, bdp=bdp) for bdp in (0.5, 1, 4, 10)]


def _controls(measure: Measure, _plan: Plan) -> list[Case]:
    controls = ("reno", "cubic", "bbr3", "westwood-plus")
    return [
        _case(name, partial(_bulk, Subject(name, "control", name), 2), measure, quick=name in ("reno", "cubic"))
        for name in controls
    ]


def _friendly(measure: Measure, _plan: Plan) -> list[Case]:
    return [_case("one Reno flow", partial(_bulk, RENO, transport={"initial_cwnd": 3}), measure)]


def _aggressive(measure: Measure, _plan: Plan) -> list[Case]:
    return [_case("one CUBIC flow", partial(_bulk, CUBIC), measure)]


def _ecn(measure: Measure, _plan: Plan) -> list[Case]:
    return [_case(f"{n} flows", partial(_bulk, RENO, n, ecn=True), measure, quick=n == 5, ecn=True) for n in (2, 5)]


def _with_files(kilobytes: float) -> Mapping[str, Table]:
    return {"x": flow(RENO, count=2), "files": files(RENO, 5, kilobytes)}


def _files(_plan: Plan) -> list[Case]:
    return [
        _case(f"{kb} kB", partial(_with_files, kb), m.completion("files"), quick=kb == 30, duration=60)
        for kb in (10, 30, 300)
    ]


def _with_requests() -> Mapping[str, Table]:
    return {"x": flow(RENO, count=2), "files": files(RENO, 1, 1)}


def _requests(_plan: Plan) -> list[Case]:
    return [_case("requests of 1 kB", _with_requests, m.completion("files"), duration=60)]


def _synchronization(_plan: Plan) -> list[Case]:
    measure = m.synchronization("x")
    return [_case(f"{n} flows", partial(_bulk, RENO, n), measure, quick=n == 10, sampled=True) for n in (5, 10)]


def _with_call() -> Mapping[str, Table]:
    return {"x": flow(RENO, count=2), "call": call()}


def _calls(measure: Measure, _plan: Plan) -> list[Case]:
    return [_case("a call beside two flows", _with_call, measure)]


def _packet_sizes(_plan: Plan) -> list[Case]:
    half = level_counts()["mild"] // 2

    def flows() -> Mapping[str, Table]:
        return {"large": flow(RENO, count=half), "small": flow(RENO, count=half, transport={"mss": "460 bytes"})}

    measure = m.log_ratio("small", "large", "distance of the goodput ratio of small and large packets from 1")
    return [_case(f"{half} + {half} flows", flows, measure)]


def _windows(_plan: Plan) -> list[Case]:
    def flows(window: int) -> Mapping[str, Table]:
        short = files(RENO, 2, 90, transport={"initial_cwnd": window})
        return {"x": flow(RENO), "files": short}

    return [
        _case(
            f"initial window {w}",
            partial(flows, w),
            m.completion("files", "mean_completion_time_s"),
            quick=w == 10,
            duration=60,
        )
        for w in (3, 10)
    ]


def _unresponsive(measure: Measure, _plan: Plan) -> list[Case]:
    def flows(share: float) -> Mapping[str, Table]:
        cross = {"cross": udp(PATH.mbit_s * share)}
        return {"x": flow(RENO), **cross} if share < 1 else cross

    return [_case(f"{100 * share:g} % of the capacity", partial(flows, share), measure) for share in (0.7, 1.2)]


def _unresponsive_goodput(_plan: Plan) -> list[Case]:
    def flows() -> Mapping[str, Table]:
        return {"x": flow(RENO), "cross": udp(PATH.mbit_s * 0.7)}

    return [_case("70 % of the capacity", flows, m.goodput("x"))]


def _rtt_fairness(_plan: Plan) -> list[Case]:
    measure = m.log_ratio("second", "first", "distance of the goodput ratio of two round-trip times from 1")

    def run(rtt_ms: float, queue: Subject) -> Table:
        base = min(rtt_ms, 100.0)
        path = Path(50, base)
        far = {"between": ["C", "A"], "rate": "1 Gbit/s", "delay": f"{round(abs(rtt_ms - 100) * 500)} us"}
        longer = "C"
        flows = {
            "first": flow(RENO, source=longer if rtt_ms < 100 else "A"),
            "second": flow(RENO, source=longer if rtt_ms > 100 else "A"),
        }
        return _run(lambda: flows, queue, path=path, links={"far": far}, warmup=30, duration=90)

    return [
        Case(f"100 and {rtt} ms", one(partial(run, rtt)), measure, PLAIN, rtt in (5, 560)) for rtt in (5, 50, 200, 560)
    ]


def _web() -> Table:
    """Pages of objects over six connections with an initial window of ten packets."""
    work = {"kind": "request-response", "response": "75 kB", "think": "500 ms", "synchronized": True}
    return flow(RENO, count=6, workload=work, transport={"initial_cwnd": 10})


def _video() -> Table:
    """Frames that are sent as bursts: 25 a second, 4 Mbit/s, over TCP."""
    return flow(RENO, workload={"kind": "paced", "rate": "4000000 bit/s", "payload": "20 kB"})


BURSTS = {"I": (False, False), "II": (False, True), "III": (True, False), "IV": (True, True)}
"""The cases of RFC 7928 figure 2: video, and bulk traffic, beside web traffic and a constant rate."""


def _burst_flows(video: bool, bulk: bool) -> Mapping[str, Table]:
    flows = {"web": _web(), "cross": udp(5)}
    if video:
        flows["video"] = _video()
    if bulk:
        flows["x"] = flow(RENO)
    return flows


def _bursts(measure: Measure, _plan: Plan) -> list[Case]:
    return [
        _case(f"case {name}", partial(_burst_flows, *which), measure, quick=name in ("I", "IV"))
        for name, which in BURSTS.items()
    ]


def _varying_level(measure: Measure, _plan: Plan) -> list[Case]:
    counts = level_counts()

    def flows() -> Mapping[str, Table]:
        found = {"x": flow(RENO, count=counts["mild"])}
        for name, start in (("medium", 20), ("heavy", 40)):
            more = counts[name] - (counts["mild"] if name == "medium" else counts["medium"])
            found[name] = flow(RENO, count=max(1, more), start=f"{start} s", stop="60 s")
        return found

    return [_case("mild, medium, heavy, mild", flows, measure, duration=80)]


def _capacity(measure: Measure, _plan: Plan) -> list[Case]:
    path = Path(100, 40)

    def changes(period_s: float) -> list[Table]:
        key = "link.bottleneck.rate"
        half = {"time": f"{period_s / 2:g} s", "every": f"{period_s:g} s", "set": {key: rate(10)}}
        return [half, {"time": f"{period_s:g} s", "every": f"{period_s:g} s", "set": {key: rate(100)}}]

    return [
        _case(label, partial(_bulk, RENO, 5), measure, path=path, at=changes(period), duration=85, warmup=5)
        for label, period in (("every 20 s", 40.0), ("every 0.1 s", 0.2))
    ]


def _mix() -> Mapping[str, Table]:
    return {"x": flow(RENO, count=5), "web": _web(), "call": call(), "cross": udp(1), "video": _video()}


def _mixes(measure: Measure, _plan: Plan) -> list[Case]:
    return [_case("the mix of RFC 7928 §9.1", _mix, measure)]


def _two_way(measure: Measure, _plan: Plan) -> list[Case]:
    count = level_counts()["mild"]

    def flows() -> Mapping[str, Table]:
        back = {"from": "B", "to": "A", "cc": "reno", "count": count, "start_spread": "1 s"}
        return {"x": flow(RENO, count=count), "back": back}

    return [_case(f"{count} flows each way", flows, measure)]


def _two_queues(measure: Measure, _plan: Plan) -> list[Case]:
    count = level_counts()["mild"] // 2

    def run(queue: Subject) -> Table:
        table = table_of(queue)
        first = {"between": ["C", "A"], "rate": rate(50), "delay": "1 ms", "queue": table}
        flows = {"x": flow(RENO, count=count, source="C"), "other": flow(RENO, count=count)}
        return _run(lambda: flows, queue, links={"first": first})

    return [Case("two queues in a row", one(run), measure, PLAIN)]


def _pair(name: str, title: str, about: str, cases: Callable[[Measure, Plan], list[Case]]) -> tuple[Check, Check]:
    """A check of the delay and one of the goodput in the same scenarios."""
    return (
        Check(f"q-{name}-delay", f"{title}: queueing delay", about, CRITERION, SOURCE, partial(cases, m.queue_delay())),
        Check(f"q-{name}-goodput", f"{title}: goodput", about, CRITERION, SOURCE, partial(cases, m.goodput_of_all())),
    )


def _level(name: str, measure: Measure, plan: Plan) -> list[Case]:
    return _levels(measure, (name,), plan)


def _single(name: str, title: str, about: str, cases: Callable[[Plan], list[Case]]) -> Check:
    return Check(f"q-{name}", title, about, CRITERION, SOURCE, cases)


_ALL = ("mild", "medium", "heavy")
_BASE = "Five Reno flows on 5, 50 and 200 Mbit/s with round trips of 20 and 100 ms."
_LEVELS = "Reno flows on 50 Mbit/s, 40 ms; their numbers follow from RFC 7928 §8.2: 0.036, 0.081 and 0.114 of S."
_BURST = "The cases of RFC 7928 figure 2 on 50 Mbit/s, 40 ms: web pages, constant rate, video frames, bulk."
_MIX = "Five Reno flows, web pages, a call, a constant rate and video frames on 50 Mbit/s, 40 ms."

CHECKS: tuple[Check, ...] = (
    *_pair("baseline", "Baseline", _BASE, _baseline),
    _single("baseline-loss", "Baseline: packet loss", _BASE, partial(_baseline, m.loss())),
    _single(
        "files-time",
        "Completion time of files beside bulk flows",
        "Files of 10 to 300 kB on average beside two Reno flows on 50 Mbit/s, 40 ms.",
        _files,
    ),
    _single(
        "requests",
        "Time of handshake and short answer beside bulk flows",
        "New connections for 1 kB beside two Reno flows on 50 Mbit/s, 40 ms.",
        _requests,
    ),
    _single(
        "synchronization",
        "Global synchronization of losses",
        "Five and ten Reno flows on 50 Mbit/s, 40 ms; loss events of 0.1 s.",
        _synchronization,
    ),
    _single(
        "call-delay",
        "Delay of a call",
        "A call beside two Reno flows on 50 Mbit/s, 40 ms.",
        partial(_calls, m.one_way_delay("call")),
    ),
    *_pair("buffers", "Buffer sizes", "Five Reno flows on 50 Mbit/s, 40 ms; both queues have 0.5 to 10 BDP.", _buffers),
    *_pair(
        "controls",
        "Congestion controls",
        "Two flows of Reno, CUBIC, BBRv3 and Westwood+ on 50 Mbit/s, 40 ms.",
        _controls,
    ),
    *_pair("levels", "Congestion levels", _LEVELS, lambda measure, plan: _levels(measure, _ALL, plan)),
    _single("levels-loss", "Congestion levels: packet loss", _LEVELS, lambda plan: _levels(m.loss(), _ALL, plan)),
    _single(
        "packet-sizes",
        "Bias by packet size",
        "Half of the flows have 500-byte packets; mild congestion on 50 Mbit/s, 40 ms.",
        _packet_sizes,
    ),
    *_pair("ecn", "ECN", "Two and five Reno flows with ECN (RFC 3168) on 50 Mbit/s, 40 ms.", _ecn),
    *_pair(
        "friendly",
        "TCP-friendly sender",
        "One Reno flow with an initial window of 3 packets on 50 Mbit/s, 40 ms.",
        _friendly,
    ),
    _single(
        "windows",
        "Short flows with different initial windows",
        "Files of 90 kB on average with initial windows of 3 and 10 beside one Reno flow.",
        _windows,
    ),
    *_pair("aggressive", "Aggressive sender", "One CUBIC flow on 50 Mbit/s, 40 ms.", _aggressive),
    _single(
        "unresponsive-delay",
        "Unresponsive sender: queueing delay",
        "Datagrams of 70 % of the capacity beside a Reno flow, and of 120 % alone.",
        partial(_unresponsive, m.queue_delay()),
    ),
    _single(
        "unresponsive-goodput",
        "Unresponsive sender: goodput of a Reno flow",
        "Datagrams of 70 % of the capacity beside a Reno flow.",
        _unresponsive_goodput,
    ),
    _single(
        "rtt-fairness",
        "Fairness between round-trip times",
        "Two Reno flows on 50 Mbit/s, one with 100 ms and one with 5 to 560 ms.",
        _rtt_fairness,
    ),
    _single("burst-time", "Bursts: response time of pages", _BURST, partial(_bursts, m.response("web"))),
    _single("burst-loss", "Bursts: packet loss", _BURST, partial(_bursts, m.loss())),
    _single("burst-delay", "Bursts: queueing delay", _BURST, partial(_bursts, m.queue_delay(99))),
    *(
        check
        for name in _ALL
        for check in _pair(name, f"{name.capitalize()} congestion", _LEVELS, partial(_level, name))
    ),
    *_pair(
        "varying-level",
        "Varying congestion level",
        "Mild, medium, heavy and mild congestion for 20 s each on 50 Mbit/s, 40 ms.",
        _varying_level,
    ),
    *_pair(
        "capacity", "Varying capacity", "Five Reno flows; the capacity alternates between 100 and 10 Mbit/s.", _capacity
    ),
    _single("mix-call", "Traffic mix: delay of the call", _MIX, partial(_mixes, m.one_way_delay("call"))),
    _single("mix-web", "Traffic mix: response time of pages", _MIX, partial(_mixes, m.response("web"))),
    _single("mix-goodput", "Traffic mix: goodput of bulk flows", _MIX, partial(_mixes, m.goodput("x"))),
    *_pair(
        "two-way",
        "Bidirectional traffic",
        "Mild congestion in both directions on 50 Mbit/s, 40 ms; both ends have the queue.",
        _two_way,
    ),
    *_pair(
        "two-queues",
        "Two queues in a row",
        "Mild congestion; half of the flows pass two of the queues on 50 Mbit/s.",
        _two_queues,
    ),
)
"""The checks of a queue."""

REFERENCES = {"drop-tail": Subject("drop-tail", QUEUE, {"kind": "drop-tail"})}
