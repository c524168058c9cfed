"""What preferential dropping (``share-red``) would bring at the egress of a router: shares, delay, goodput."""

from __future__ import annotations

import copy
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.errors import UserError
from anabranch.fitted.scenario import FLOW, fitted
from anabranch.plans import capture, given, runs
from anabranch.plans.answer import HARM, Answer, Measure
from anabranch.result.result import RunResult
from anabranch.statistics.fairness import jain
from anabranch.text import quantity
from anabranch.text.lines import percent

LEAST_FAIRNESS = 0.02
"""A certain rise of Jain's index from which share-red is advised."""
MOST_FLOWS = 1000
MOST_CONNECTIONS = 64
SECONDS, WARM_UP_S = 40, 10
_PACKET = 1500
_LINK = "egress"
_LOCAL = "10 Gbit/s"


@dataclass(frozen=True)
class Options:
    """The options of ``plan aqm``.

    Attributes:
        rate: The rate of the egress.
        flows: Numbers of flows by control, ``NAME=N``; those of the capture when left out.
        rtt: Their round trip without queues.
        buffer: The egress's buffer, as a limit of a queue.
        seeds: Pairs of runs.
    """

    rate: str
    flows: str = "cubic=2,reno=2"
    rtt: str = "40 ms"
    buffer: str = "1 bdp"
    seeds: int = 10


@dataclass(frozen=True)
class _Flow:
    """A flow of the scenario: its control's name, its keys, and its round trip in seconds."""

    control: str
    keys: dict[str, Any]
    rtt_s: float
    count: int = 1

    @property
    def is_greedy(self) -> bool:
        """Whether it sends as much as it can."""
        return "workload" not in self.keys


def make(file: Path | None, options: Options, progress: runs.Progress | None = None) -> Answer:
    """Simulate an egress with its present queue and with ``share-red``.

    Raises:
        UserError: An option is wrong, or the capture has too little.
    """
    runs.check_seeds(options.seeds)
    rate = given.rate("--rate", options.rate)
    flows, assumptions = _given(options) if file is None else _captured(file)
    longest = max(one.rtt_s for one in flows)
    limit = _packets(options.buffer, rate * longest / 8 / _PACKET)
    scenarios = {name: _scenario(rate, flows, queue) for name, queue in _queues(limit).items()}
    done = runs.simulate(scenarios, options.seeds, progress=progress)
    names = {f"f{number}": one for number, one in enumerate(flows)}
    measures = _measures(done, names)
    assumptions += [
        f"the buffer has {limit} packets; share-red has thresholds of a sixth and a half of it, max_p 0.1, gentle",
        "all bulk flows run at the same time; nothing is ECN-capable",
    ]
    return _answer(measures, names, assumptions, options, scenarios)


def run_count(options: Options) -> int:
    """Number of runs."""
    return 2 * options.seeds


def _packets(text: str, bdp: float) -> int:
    """A buffer in packets."""
    value, _, unit = text.strip().partition(" ")
    try:
        count = float(value)
    except ValueError:
        count = math.nan
    per = {"bdp": bdp, "packets": 1.0, "packet": 1.0}.get(unit.strip())
    if per is None or not 0 < count < 1e6:
        raise UserError(
            f"--buffer {text!r}: bandwidth-delay products or packets were expected", hint="--buffer '1 bdp'"
        )
    return max(12, round(count * per))


def _given(options: Options) -> tuple[list[_Flow], list[str]]:
    """The flows of the options."""
    rtt = given.time("--rtt", options.rtt)
    flows = []
    for word in options.flows.split(","):
        name, _, count = word.strip().partition("=")
        if not re.fullmatch("[0-9]{1,4}", count) or not 1 <= int(count) <= MOST_FLOWS:
            raise UserError(
                f"--flows {options.flows}: NAME=N,NAME=N was expected, N from 1 to {MOST_FLOWS}",
                hint="--flows cubic=2,compound=2",
            )
        capture.control(name)
        flows.append(_Flow(name, {"cc": name}, rtt, int(count)))
    return flows, [f"all flows have a round trip of {options.rtt} without queues"]


def _captured(file: Path) -> tuple[list[_Flow], list[str]]:
    """A flow for each large connection of a capture."""
    found = capture.connections(file)
    large = [one for one in found if capture.size(one) >= capture.LEAST_SHARE * capture.size(found[0])]
    flows, assumed = [], 0
    for one in large[:MOST_CONNECTIONS]:
        try:
            model = fitted(one, str(file))
        except UserError:
            continue
        keys = copy.deepcopy(model.document["flow"][FLOW])
        if keys.get("workload", {}).get("kind") == "file":
            # A connection that ends leaves its share to the others.
            del keys["workload"]
        del keys["from"], keys["to"]
        assumed += one["path"]["flow"]["congestion_control_evidence"].startswith("assumed")
        flows.append(_Flow(keys["cc"], keys, float(one["path"]["base_rtt_ms"]["value"] or 1.0) / 1e3))
    if not flows:
        raise UserError(f"{file}: no connection has enough data for a model", hint="--flows cubic=2,reno=2 --rtt 40ms")
    told = [f"{len(flows)} of {len(found)} connections, those with a hundredth of the largest one's data or more"]
    if assumed:
        told.append(f"the control of {assumed} of them is assumed, not recognized")
    return flows, told


def _queues(limit: int) -> dict[str, dict[str, Any]]:
    return {
        "now": {"kind": "drop-tail", "limit": f"{limit} packets"},
        "then": {
            "kind": "share-red",
            "limit": f"{limit} packets",
            "min_threshold": f"{max(2, limit // 6)} packets",
            "max_threshold": f"{max(6, limit // 2)} packets",
            "max_probability": 0.1,
            "gentle": True,
        },
    }


def _scenario(rate: int, flows: Sequence[_Flow], queue: dict[str, Any]) -> dict[str, Any]:
    links: dict[str, Any] = {
        _LINK: {"between": ["router", "network"], "rate": f"{rate} bit/s", "delay": "1 us", "forward": {"queue": queue}}
    }
    made: dict[str, Any] = {}
    for number, one in enumerate(flows):
        links[f"access{number}"] = {
            "between": [f"sender{number}", "router"],
            "rate": _LOCAL,
            "delay": f"{one.rtt_s / 2 * 1e3:.4f} ms",
        }
        made[f"f{number}"] = {
            **one.keys,
            "from": f"sender{number}",
            "to": "network",
            "count": one.count,
            "start_spread": "1 s",
        }
    return {
        "title": "An egress of a router",
        "duration": f"{SECONDS} s",
        "warmup": f"{WARM_UP_S} s",
        "link": links,
        "flow": made,
    }


def _of(run: RunResult, name: str) -> list[float]:
    """Goodput of the copies of a flow."""
    found = [flow["goodput_mbit_s"] for one, flow in run.flows.items() if one.partition("/")[0] == name]
    return [float(value) for value in found]


def _measures(done: Mapping[str, list[RunResult]], names: Mapping[str, _Flow]) -> tuple[Measure, ...]:
    greedy = {name: one for name, one in names.items() if one.is_greedy}

    def pair(read: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return runs.values(done["now"], read), runs.values(done["then"], read)

    def fairness(run: RunResult) -> float:
        rates = [value for name in greedy for value in _of(run, name)]
        return jain(rates) or 0.0 if len(rates) > 1 else 1.0

    def total(run: RunResult) -> float:
        return sum(sum(_of(run, name)) for name in names)

    def share(control: str) -> Any:
        members = [name for name, one in greedy.items() if one.control == control]

        def read(run: RunResult) -> float:
            whole = sum(sum(_of(run, name)) for name in greedy)
            return sum(sum(_of(run, name)) for name in members) / whole if whole else 0.0

        return read

    shares = tuple(
        Measure(f"share/{one}", f"share of {_count(greedy, one)} {one}, %", *pair(share(one)), False, 100.0)
        for one in dict.fromkeys(flow.control for flow in greedy.values())
    )
    return (
        Measure("jain", "Jain's index of the bulk flows", *pair(fairness), False),
        *shares,
        Measure("goodput_mbit_s", "goodput of all flows, Mbit/s", *pair(total)),
        Measure(
            "p95_queue_delay_ms",
            "delay in the queue, p95, ms",
            *pair(lambda run: float(run.links[_LINK]["forward"]["p95_queue_delay_ms"] or 0.0)),
        ),
    )


def _count(flows: Mapping[str, _Flow], control: str) -> int:
    return sum(one.count for one in flows.values() if one.control == control)


def _answer(
    measures: tuple[Measure, ...],
    names: Mapping[str, _Flow],
    assumptions: Sequence[str],
    options: Options,
    scenarios: dict[str, dict[str, Any]],
) -> Answer:
    by_name = {one.name: one for one in measures}
    fair, total = by_name["jain"].change, by_name["goodput_mbit_s"].change
    helps, harms = fair.low > LEAST_FAIRNESS, total.high < 0 and total.mean <= -HARM
    effect = f"Jain's index {fair.number('').replace('  ', ' ').strip()}"
    poor = _poorest([one for one in measures if one.name.startswith("share/")], names)
    if poor is not None:
        now, then = (percent(sum(values) / len(values)) for values in (poor.now, poor.then))
        effect += f", {poor.name.partition('/')[2]} flows {then} of the goodput in place of {now}"
    effect += f", the queue's delay {percent(by_name['p95_queue_delay_ms'].change.mean, signed=True)}"
    cost = f"the goodput of all flows {total.percent()}"
    word = "is worth it" if helps and not harms else "is not advised" if helps else "is not worth it for fairness"
    sentence = f"share-red at {options.rate} {word}: {effect}, {'but' if harms else 'and'} {cost}."
    return Answer(
        "aqm",
        "share-red",
        helps and not harms,
        sentence,
        measures,
        tuple(assumptions),
        options.seeds,
        scenarios,
        _install(options.rate, scenarios["then"]["link"][_LINK]["forward"]["queue"]),
    )


def _install(rate: str, queue: Mapping[str, Any]) -> str:
    """The command that attaches a queue."""
    given_rate = quantity.rate(given.rate("--rate", rate))
    words = ["anabranch", "aqm", "attach", "DEV", "--kind", queue["kind"], "--rate", given_rate]
    for key, value in queue.items():
        if key != "kind":
            words += ["--set", f"{key}={str(value).lower() if isinstance(value, bool) else value}"]
    return shlex.join(words)


def _poorest(shares: Sequence[Measure], names: Mapping[str, _Flow]) -> Measure | None:
    """The control whose flows have least of their equal share now; none if there is one control."""
    if len(shares) < 2:
        return None
    greedy = {name: one for name, one in names.items() if one.is_greedy}
    return min(shares, key=lambda one: sum(one.now) / _count(greedy, one.name.partition("/")[2]))
