"""What another congestion control would bring to a captured connection, and to others on its path."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.errors import UserError
from anabranch.fitted.scenario import FLOW, Fitted, fitted
from anabranch.plans import capture, runs
from anabranch.plans.answer import HARM, Answer, Change, Measure
from anabranch.result.result import RunResult
from anabranch.text.lines import percent

OTHER = "other"
"""The competing flow."""
LEAST_GAIN = 0.02
LEAST_RELIEF = 0.2
LONGEST_S = 60.0
_WARM_UP_S = 1.0
"""The competing flow starts within this time after the connection."""


@dataclass(frozen=True)
class Options:
    """The options of ``plan cc``.

    Attributes:
        control: The control to install.
        now: The connection's present control; that of the diagnosis when left out.
        connection: The connection's number; the one with the most data when left out.
        seeds: Pairs of runs.
    """

    control: str = "cubic-plus"
    now: str | None = None
    connection: int | None = None
    seeds: int = 5


def make(file: Path, options: Options, progress: runs.Progress | None = None) -> Answer:
    """Simulate a captured connection with its present control and with another.

    Raises:
        UserError: It is no capture, has no such connection, or there is no such control.
    """
    runs.check_seeds(options.seeds)
    value, title = capture.control(options.control)
    now = None if options.now is None else capture.control(options.now)
    one = _connection(file, options.connection)
    model = fitted(one, str(file))
    if now is not None:
        model.document["flow"][FLOW]["cc"] = now[0]
    present = capture.registered("cc")[options.now or model.document["flow"][FLOW]["cc"]]
    scenarios = _scenarios(model, value)
    done = runs.simulate(scenarios, options.seeds, progress=progress)
    measures = _measures(done)
    return _answer(measures, title, present, one["id"], model, options, scenarios)


def run_count(options: Options) -> int:
    """Number of runs."""
    return 4 * options.seeds


def _connection(file: Path, number: int | None) -> Any:
    found = capture.connections(file)
    if number is None:
        return found[0]
    for one in found:
        if one["id"] == number:
            return one
    raise UserError(
        f"--connection {number}: {file} has no such connection with data", hint=f"the largest is {found[0]['id']}"
    )


def _scenarios(model: Fitted, value: Any) -> dict[str, dict[str, Any]]:
    made: dict[str, dict[str, Any]] = {}
    for name in ("now", "then"):
        document = copy.deepcopy(model.document)
        duration = min(float(document["duration"].split()[0]), LONGEST_S)
        document["duration"] = f"{duration:.3f} s"
        flow = document["flow"][FLOW]
        if name == "then":
            flow["cc"] = value
        made[name] = document
        beside = copy.deepcopy(document)
        # Both are bulk flows: otherwise one would end first and leave the path to the other.
        beside["flow"][FLOW].pop("workload", None)
        ends = {key: flow[key] for key in ("from", "to")}
        beside["flow"][OTHER] = {**ends, "cc": "cubic", "start_spread": f"{_WARM_UP_S} s"}
        made[f"{name}-beside"] = beside
    return made


def _measures(done: Mapping[str, list[RunResult]]) -> tuple[Measure, ...]:
    def pair(suffix: str, flow: str, read: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return tuple(  # type: ignore[return-value]
            runs.values(done[name + suffix], lambda run: float(read(run.flows[flow]) or 0.0))
            for name in ("now", "then")
        )

    def again(flow: Any) -> float:
        return float(flow["retransmitted_packets"]) / float(flow["sent_packets"] or 1)

    return (
        Measure("goodput_mbit_s", "goodput, Mbit/s", *pair("", FLOW, lambda flow: flow["goodput_mbit_s"])),
        Measure("retransmitted_share", "retransmitted, %", *pair("", FLOW, again), is_relative=False, scale=100.0),
        Measure("rtt_ms", "round trip, ms", *pair("", FLOW, lambda flow: flow["mean_srtt_ms"])),
        Measure(
            "other_goodput_mbit_s",
            "a CUBIC flow beside it, Mbit/s",
            *pair("-beside", OTHER, lambda flow: flow["goodput_mbit_s"]),
        ),
    )


def _answer(
    measures: tuple[Measure, ...],
    title: str,
    present: str,
    number: int,
    model: Fitted,
    options: Options,
    scenarios: dict[str, dict[str, Any]],
) -> Answer:
    goodput, _, rtt, other = (one.change for one in measures)
    helps = goodput.low > LEAST_GAIN or (rtt.high < -LEAST_RELIEF and goodput.low > -HARM)
    harms = other.high < 0 and other.mean <= -HARM
    effect = f"goodput {goodput.percent()}, round trip {percent(rtt.mean, signed=True)}"
    beside = _harm(other)
    if helps and not harms:
        sentence = f"{title} is worth it on the path of connection {number}: {effect}, and {beside}."
    elif helps:
        sentence = f"{title} is not advised on the path of connection {number}: {effect}, but {beside}."
    else:
        sentence = f"{title} is not worth it on the path of connection {number}: {effect}, and {beside}."
    assumptions = [
        f"compared with {present}, {'as given' if options.now else 'as the diagnosis names or assumes it'}",
        *model.assumptions,
        "the network has the properties of the capture; other traffic is part of its rate",
    ]
    if isinstance(scenarios["then"]["flow"][FLOW]["cc"], dict):
        assumptions.append(f"{title} is the eBPF program that `anabranch cc install {options.control}` loads")
    if options.control == "cubic-plus" and model.document["flow"][FLOW]["transport"]["sack"]:
        assumptions.append(
            "with SACK and reordering, Cubic+ had a fifth more goodput on the kernel than in this simulator "
            "(guide of Cubic+)"
        )
    install = _install(options.control)
    return Answer(
        "cc", title, helps and not harms, sentence, measures, tuple(assumptions), options.seeds, scenarios, install
    )


def _install(name: str) -> str:
    """The command that installs a control; a control without a program is the kernel's."""
    ships = isinstance(capture.control(name)[0], dict) or name == "reno"
    return f"anabranch cc install {name} --default" if ships else f"sysctl -w net.ipv4.tcp_congestion_control={name}"


def _harm(change: Change) -> str:
    """The effect on a competing flow."""
    told = f"{change.percent()} for a CUBIC flow beside it"
    return told if change.is_certain or change.low == change.high else f"no certain change ({told})"
