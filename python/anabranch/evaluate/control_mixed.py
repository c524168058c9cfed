"""Checks of a congestion control beside other traffic and on queues with AQM (RFC 9743 §5.2, §7.1)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from anabranch.evaluate import measures as m
from anabranch.evaluate.build import Build, Path, Table, call, files, flow, scenario
from anabranch.evaluate.check import Case, Check, Plan, one
from anabranch.evaluate.control_single import AS_STANDARD, BUFFERS, COMPARED, QUICK_BUFFERS, STANDARD
from anabranch.evaluate.judge import Limit, NoWorse
from anabranch.evaluate.measures import Measure
from anabranch.evaluate.subject import Subject

CUBIC = Subject("cubic", "control", "cubic")
HARM = "Not more harm to the other flow than another flow of the same kind does in the same place."
WARE = "Ware et al., Beyond Jain's Fairness Index (HotNets 2019) §5: harm(α, β) ≤ harm(β, β)"

Together = Callable[[Subject, Subject], Table]
"""The scenario of the subject beside another control."""


def _pair(path: Path, other: Subject, control: Subject) -> Table:
    flows = {"x": flow(control), "other": flow(other)}
    return scenario(path, flows, duration=60, warmup=20)


def _without(path: Path, other: Subject, _control: Subject) -> Table:
    return scenario(path, {"other": flow(other)}, duration=60, warmup=20)


def _both(path: Path, other: Subject) -> dict[str, Build]:
    return {"together": partial(_pair, path, other), "alone": partial(_without, path, other)}


def _harms(measure: Callable[[str], Measure], is_ware: bool, plan: Plan) -> list[Case]:
    return [
        Case(
            f"{bdp:g} BDP",
            _both(Path(50, rtt, bdp), other),
            measure("other"),
            NoWorse((other.name,)) if is_ware else STANDARD,
            rtt == 40 and bdp in QUICK_BUFFERS,
            f"beside {other.name}, {rtt} ms",
        )
        for other in plan.against
        for rtt in (20, 40, 100)
        for bdp in BUFFERS
    ]


def _starved(plan: Plan) -> list[Case]:
    return [
        Case(
            f"{bdp:g} BDP",
            {"together": partial(_pair, Path(50, 40, bdp), other)},
            m.delivered_per_rtt("other", 40),
            Limit(1.0, is_most=False),
            bdp in QUICK_BUFFERS,
            f"beside {other.name}",
        )
        for other in plan.against
        for bdp in BUFFERS
    ]


def _crowd(path: Path, count: int, other: Subject, control: Subject) -> Table:
    flows = {"x": flow(control), "other": flow(other, count=count)}
    return scenario(path, flows, duration=60, warmup=20)


def _crowd_alone(path: Path, count: int, other: Subject, _control: Subject) -> Table:
    return scenario(path, {"other": flow(other, count=count)}, duration=60, warmup=20)


def _crowds(plan: Plan) -> list[Case]:
    path = Path(50, 40)
    return [
        Case(
            f"{n} flows",
            {"together": partial(_crowd, path, n, other), "alone": partial(_crowd_alone, path, n, other)},
            m.harm_goodput("other"),
            STANDARD,
            n == 10 and other.name == "cubic",
            f"beside {other.name}",
        )
        for other in plan.against
        for n in (4, 10)
    ]


def _call(path: Path, control: Subject) -> Table:
    return scenario(path, {"x": flow(control), "call": call()}, duration=40, warmup=10)


def _calls(measure: Measure, _plan: Plan) -> list[Case]:
    return [
        Case(f"{bdp:g} BDP", one(partial(_call, Path(20, 40, bdp))), measure, STANDARD, bdp in QUICK_BUFFERS)
        for bdp in BUFFERS
    ]


def _short_cubic(path: Path, control: Subject) -> Table:
    flows = {"x": flow(control), "files": files(CUBIC, path.mbit_s * 0.1, 30)}
    return scenario(path, flows, duration=40, warmup=10)


def _short_cubics(_plan: Plan) -> list[Case]:
    return [
        Case(f"{bdp:g} BDP", one(partial(_short_cubic, Path(50, 40, bdp))), m.completion("files"), STANDARD, bdp == 1.0)
        for bdp in BUFFERS
    ]


def _long_cubic(path: Path, control: Subject) -> Table:
    flows = {"long": flow(CUBIC), "files": files(control, path.mbit_s * 0.1, 30)}
    return scenario(path, flows, duration=40, warmup=10)


def _long_cubics(_plan: Plan) -> list[Case]:
    return [
        Case(f"{bdp:g} BDP", one(partial(_long_cubic, Path(50, 40, bdp))), m.goodput("long"), STANDARD, bdp == 1.0)
        for bdp in BUFFERS
    ]


QUEUES: dict[str, str] = {
    "FQ-CoDel": "fq-codel",
    "CoDel": "codel",
    "PIE": "pie",
    "DualPI2": "dualpi2",
    "CAKE": "cake",
}
"""The queues that RFC 9743 §7.1 names, and further common ones."""
NEEDS_ECN = ("codel", "pie")
"""Queues that mark only if they are told to."""
QUICK_QUEUES = ("FQ-CoDel", "PIE", "DualPI2")


def marking(queue: str) -> Table | str:
    """The queue with ECN."""
    return {"kind": queue, "ecn": True} if queue in NEEDS_ECN else queue


def _managed(queue: str, count: int, ecn: bool, control: Subject) -> Table:
    link = Path(50, 40).link(queue=marking(queue) if ecn else queue)
    flows = {"x": flow(control, ecn=ecn, count=count)}
    return scenario(None, flows, duration=30, warmup=10, links={"bottleneck": link})


def _aqms(measure: Measure, _plan: Plan) -> list[Case]:
    return [
        Case(
            name,
            one(partial(_managed, queue, 2, ecn)),
            measure,
            STANDARD,
            name in QUICK_QUEUES,
            "with ECN" if ecn else "without ECN",
        )
        for ecn in (False, True)
        for name, queue in QUEUES.items()
    ]  # fmt: skip


def _shared(queue: str, control: Subject) -> Table:
    link = Path(50, 40).link(queue=marking(queue))
    flows = {"x": flow(control, ecn=True), "other": flow(CUBIC, ecn=True)}
    return scenario(None, flows, duration=60, warmup=20, links={"bottleneck": link})


def _shared_alone(queue: str, _control: Subject) -> Table:
    link = Path(50, 40).link(queue=marking(queue))
    return scenario(None, {"other": flow(CUBIC, ecn=True)}, duration=60, warmup=20, links={"bottleneck": link})


def _aqm_harms(_plan: Plan) -> list[Case]:
    return [
        Case(
            name,
            {"together": partial(_shared, queue), "alone": partial(_shared_alone, queue)},
            m.harm_goodput("other"),
            NoWorse(("cubic",)),
            name in QUICK_QUEUES,
        )
        for name, queue in QUEUES.items()
    ]


def _l4s(rtt_ms: float, mbit_s: float, bursts: bool, alone: bool, control: Subject) -> Table:
    """The subject beside CUBIC on DualPI2; bursts come from a Wi-Fi hop upstream."""
    path = Path(mbit_s, rtt_ms)
    links: dict[str, Table] = {"bottleneck": path.link(queue="dualpi2")}
    source = "A"
    if bursts:
        source = "C"
        queue = {"kind": "drop-tail", "limit": "1000 packets"}
        service = {"kind": "wifi", "stations": 2}
        links["hop"] = {"between": ["C", "A"], "rate": "300 Mbit/s", "service": service, "queue": queue}
    flows = {"other": flow(CUBIC, ecn=True, source=source)}
    if not alone:
        flows["x"] = flow(control, ecn=True, source=source)
    return scenario(None, flows, duration=60, warmup=20, links=links)


def _l4s_harms(bursts: bool, _plan: Plan) -> list[Case]:
    return [
        Case(
            f"{rtt} ms",
            {
                "together": partial(_l4s, rtt, mbit_s, bursts, False),
                "alone": partial(_l4s, rtt, mbit_s, bursts, True),
            },
            m.harm_goodput("other"),
            NoWorse(("cubic",)),
            mbit_s == 50 and rtt == 20,
            f"{mbit_s} Mbit/s",
        )
        for mbit_s in (20, 50)
        for rtt in (10, 20, 80)
    ]


def _l4s_share(bursts: bool, _plan: Plan) -> list[Case]:
    measure = m.goodput("x")
    return [
        Case(
            f"{rtt} ms",
            one(partial(_l4s, rtt, mbit_s, bursts, False)),
            measure,
            STANDARD,
            mbit_s == 50 and rtt == 20,
            f"{mbit_s} Mbit/s",
        )
        for mbit_s in (20, 50)
        for rtt in (10, 20, 80)
    ]


_PAIR = (
    "One flow of the control beside one other flow on 50 Mbit/s with round trips of 20, 40 and 100 ms; "
    "drop-tail buffers of 0.1 to 10 BDP."
)
_CALL = "A call of 64 kbit/s beside one flow on 20 Mbit/s, 40 ms."
_AQM = "Two flows on 50 Mbit/s, 40 ms, with and without ECN (RFC 3168)."
_L4S = "One flow of the control beside CUBIC with ECN on DualPI2 at 20 and 50 Mbit/s."
_BURSTS = _L4S + " A Wi-Fi hop upstream of the queue sends in bursts (heistp/l4s-tests, issue 1)."

CHECKS: tuple[Check, ...] = (
    Check(
        "harm-goodput",
        "Harm to the goodput of other flows",
        _PAIR,
        AS_STANDARD,
        COMPARED,
        partial(_harms, m.harm_goodput, False),
    ),
    Check(
        "harm-delay",
        "Harm to the delay of other flows",
        _PAIR,
        AS_STANDARD,
        COMPARED,
        partial(_harms, m.harm_delay, False),
    ),
    Check(
        "harm-loss", "Harm by loss to other flows", _PAIR, AS_STANDARD, COMPARED, partial(_harms, m.harm_loss, False)
    ),
    Check(
        "harm-crowd",
        "Harm to the goodput of several other flows",
        "One flow of the control beside 4 and 10 flows on 50 Mbit/s, 40 ms, 1 BDP.",
        AS_STANDARD,
        COMPARED,
        _crowds,
    ),
    Check(
        "ware-goodput",
        "Harm to the goodput of other flows, beside the harm among themselves",
        _PAIR,
        HARM,
        WARE,
        partial(_harms, m.harm_goodput, True),
    ),
    Check(
        "ware-delay",
        "Harm to the delay of other flows, beside the harm among themselves",
        _PAIR,
        HARM,
        WARE,
        partial(_harms, m.harm_delay, True),
    ),
    Check(
        "starvation",
        "Starvation of other flows",
        "One flow of the control beside one other flow on 50 Mbit/s, 40 ms; drop-tail buffers of 0.1 to 10 BDP.",
        "The other flow delivers at least one packet per round trip.",
        "RFC 9743 §5.2: starvation. The number is ours: one packet per round trip begins full backoff in §5.1.1",
        _starved,
    ),
    Check(
        "call-delay",
        "Delay of a call beside a flow",
        _CALL,
        AS_STANDARD,
        COMPARED,
        partial(_calls, m.one_way_delay("call")),
    ),
    Check(
        "call-loss",
        "Loss of a call beside a flow",
        _CALL,
        AS_STANDARD,
        COMPARED,
        partial(_calls, m.datagram_loss("call", 160)),
    ),
    Check(
        "cubic-short-time",
        "Short CUBIC flows beside a long flow",
        "50 Mbit/s, 40 ms; CUBIC files of 30 kB on average take 10 % of the capacity.",
        AS_STANDARD,
        COMPARED,
        _short_cubics,
    ),
    Check(
        "cubic-long",
        "A long CUBIC flow beside short flows",
        "50 Mbit/s, 40 ms; files of 30 kB on average take 10 % of the capacity.",
        AS_STANDARD,
        COMPARED,
        _long_cubics,
    ),
    Check("aqm-utilization", "Utilization with AQM", _AQM, AS_STANDARD, COMPARED, partial(_aqms, m.utilization())),
    Check("aqm-delay", "Queueing delay with AQM", _AQM, AS_STANDARD, COMPARED, partial(_aqms, m.queue_delay(99))),
    Check(
        "aqm-harm",
        "Harm to CUBIC on a queue with AQM",
        "One flow of the control beside CUBIC, both with ECN, on 50 Mbit/s, 40 ms.",
        HARM,
        WARE,
        _aqm_harms,
    ),
    Check("l4s-harm", "Harm to CUBIC on DualPI2", _L4S, HARM, WARE, partial(_l4s_harms, False)),
    Check("l4s-share", "Goodput beside CUBIC on DualPI2", _L4S, AS_STANDARD, COMPARED, partial(_l4s_share, False)),
    Check("l4s-burst-harm", "Harm to CUBIC on DualPI2 under bursts", _BURSTS, HARM, WARE, partial(_l4s_harms, True)),
    Check(
        "l4s-burst-share",
        "Goodput beside CUBIC on DualPI2 under bursts",
        _BURSTS,
        AS_STANDARD,
        COMPARED,
        partial(_l4s_share, True),
    ),
)
"""The checks of a control beside other traffic."""
