"""What a controller that sleeps members would bring on a link group: link hours, energy, delay, loss."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.errors import UserError, nearest
from anabranch.plans import capture, given, runs, traffic
from anabranch.plans.answer import HARM, Answer, Change, Measure
from anabranch.plans.traffic import Load
from anabranch.result.result import RunResult
from anabranch.text.lines import percent

LEAST_SAVING = 0.05
"""A certain saving of energy from which a controller is advised."""
MOST_LOST = 0.001
"""A certain rise of the share of lost packets from which it is not."""
MOST_MEMBERS = 64
NAMES = {"dynamic-lacp": "peak-percentile"}
"""The study's name of a controller."""
_NOT_INSTALLABLE = ("always-on", "oracle", "lpi")
_GROUP, _TRAFFIC, _BULK = "group", "traffic", "bulk"
_RTT_MS = 10
_LEAST_SECONDS = 10.0
"""The least load: two control intervals."""
_BULK_PACKETS, _LEAST_BULK_SECONDS = 1_000_000, 20.0
"""Packets that a run with the bulk flow may have, and its least duration: four control intervals."""
_BULK_START_S = 10
"""Start of the bulk flow, of a long load: links sleep by then."""
_LEAD, _INTERVAL = "2500 ms", "5 s"
"""Time from setting a member up to its first frame over the kernel's bonding driver, and time between decisions:
the defaults of ``anabranch group control``."""
_WITH_INTERVAL = ("peak-percentile", "moving-average", "ewma-hysteresis")


@dataclass(frozen=True)
class Options:
    """The options of ``plan group``.

    Attributes:
        members: Links of the group.
        rate: The rate of each.
        method: The controller.
        senders: Only the packets of a capture from this address or network.
        seeds: Pairs of runs.
    """

    members: int
    rate: str
    method: str = "dynamic-lacp"
    senders: str | None = None
    seeds: int = 5


def make(file: Path, options: Options, progress: runs.Progress | None = None) -> Answer:
    """Simulate a group under its load with all members on, and with a controller.

    Raises:
        UserError: An option is wrong, or the file has too little.
    """
    runs.check_seeds(options.seeds)
    control = _control(options.method)
    rate = given.rate("--rate", options.rate)
    if not 2 <= options.members <= MOST_MEMBERS:
        raise UserError(f"--members {options.members}: a whole number from 2 to {MOST_MEMBERS} was expected")
    load = traffic.read(file, options.seeds, options.senders)
    if load.mean_mbit_s > options.members * rate / 1e6:
        raise UserError(
            f"{file}: its mean rate, {load.mean_mbit_s:.4g} Mbit/s, exceeds {options.members} links of {options.rate}",
            hint="give the members and the rate of the group that carries it",
        )
    if load.seconds < _LEAST_SECONDS:
        raise UserError(
            f"{file}: it has {load.seconds:.3g} s of load; a controller that decides every {_INTERVAL} "
            f"needs {_LEAST_SECONDS:.0f} s",
            hint="record the group for some minutes",
        )
    scenarios = {
        f"{name}{'-bulk' if has_bulk else ''}": _scenario(
            load, options, round(rate * load.scale), used, has_bulk=has_bulk
        )
        for name, used in (("now", "always-on"), ("then", control))
        for has_bulk in (False, True)
    }
    done = runs.simulate(scenarios, options.seeds, files=load.files, progress=progress)
    return _answer(_measures(done, options, load.scale), load, options, scenarios)


def run_count(options: Options) -> int:
    """Number of runs."""
    return 4 * options.seeds


def _control(name: str) -> str | dict[str, str]:
    """The controller of a scenario, with the parameters of the daemon."""
    titles = capture.registered("control")
    valid = [one for one in (*NAMES, *titles) if one not in _NOT_INSTALLABLE]
    if name not in valid:
        raise UserError(f"--method {name}: there is no such controller to install", hint=nearest(name, valid))
    kind = NAMES.get(name, name)
    return {"kind": kind, "interval": _INTERVAL} if kind in _WITH_INTERVAL else kind


def _scenario(load: Load, options: Options, rate: int, control: Any, *, has_bulk: bool) -> dict[str, Any]:
    replay: dict[str, Any] = {"kind": "replay", "file": load.name}
    if load.senders is not None:
        replay["from"] = load.senders
    seconds = load.seconds
    # The bulk flow ends with the load: beside no load the group sleeps.
    start = min(_BULK_START_S, seconds / 2)
    if has_bulk:
        whole = _BULK_PACKETS * 12_000 / rate
        seconds = min(seconds, start + max(_LEAST_BULK_SECONDS, whole))
    delay = f"{_RTT_MS / 4} ms"
    access = {"rate": f"{options.members * rate} bit/s", "delay": delay}
    links = {"near": {"between": ["A", "SW1"], **access}, "far": {"between": ["SW2", "B"], **access}}
    if has_bulk:
        # A bond gives one member to a flow: it is never faster than that.
        links["host"] = {"between": ["C", "SW1"], "rate": f"{rate} bit/s", "delay": delay}
    flows: dict[str, Any] = {
        # The controller's sections begin at another time of the load in each run.
        _TRAFFIC: {"from": "A", "to": "B", "protocol": "udp", "workload": replay, "start_spread": "1 s"}
    }
    if has_bulk:
        flows[_BULK] = {"from": "C", "to": "B", "cc": "cubic", "start": f"{start:.3f} s", "start_spread": "1 s"}
    return {
        "title": "A link group under a recorded load",
        "duration": f"{seconds:.3f} s",
        "warmup": f"{start if has_bulk else 0:.3f} s",
        "link": links,
        "group": {
            _GROUP: {
                "between": ["SW1", "SW2"],
                "members": options.members,
                "rate": f"{rate} bit/s",
                "delay": "0 ms",
                "spread": "per-packet",
                "queue": {"kind": "drop-tail", "limit": "1000 packets"},
                "control": control,
                "wake_time": _LEAD,
            }
        },
        "flow": flows,
    }


def _measures(done: Mapping[str, list[RunResult]], options: Options, scale: float) -> tuple[Measure, ...]:
    def pair(read: Any, suffix: str = "") -> tuple[tuple[float, ...], tuple[float, ...]]:
        return runs.values(done[f"now{suffix}"], read), runs.values(done[f"then{suffix}"], read)

    def lost(run: RunResult) -> float:
        sent = run.flows[_TRAFFIC]["sent_packets"] or 1
        return run.links[_GROUP]["forward"]["dropped_packets"] / sent

    def hours(run: RunResult) -> float:
        asleep = run.groups[_GROUP]["member_seconds_off"] / (options.members * _seconds(run))
        return 24 * options.members * (1 - asleep)

    def delay(run: RunResult) -> float:
        return float(run.flows[_TRAFFIC]["mean_one_way_delay_ms"] or 0.0)

    return (
        Measure("link_hours_per_day", "link hours awake a day", *pair(hours)),
        Measure(
            "power_w", "power of all ports, W", *pair(lambda run: run.groups[_GROUP]["energy_joules"] / _seconds(run))
        ),
        Measure("mean_delay_ms", "mean delay, ms", *pair(delay), is_relative=False),
        Measure("lost_share", "lost packets, %", *pair(lost), is_relative=False, scale=100.0),
        Measure(
            "bulk_goodput_mbit_s",
            "a bulk CUBIC flow beside it, Mbit/s",
            *pair(lambda run: float(run.flows[_BULK]["goodput_mbit_s"] or 0.0) / scale, "-bulk"),
        ),
    )


def _seconds(run: RunResult) -> float:
    """Measured time of a run."""
    return float(json.loads(run.summary_json)["duration_s"])


def _answer(
    measures: tuple[Measure, ...],
    load: Load,
    options: Options,
    scenarios: dict[str, dict[str, Any]],
) -> Answer:
    by_name = {one.name: one for one in measures}
    power, lost = by_name["power_w"].change, by_name["lost_share"].change
    delay, bulk = by_name["mean_delay_ms"].change, by_name["bulk_goodput_mbit_s"].change
    helps = -power.high > LEAST_SAVING
    harms = lost.low > MOST_LOST or (bulk.high < 0 and bulk.mean <= -HARM)
    word = "is worth it" if helps and not harms else "is not advised" if helps else "is not worth it"
    effect = f"power {power.percent()}"
    if helps:
        hours = by_name["link_hours_per_day"]
        saved = Change.of([old - new for old, new in zip(hours.now, hours.then, strict=True)])
        effect += f", {saved.mean:.3g} link hours a day asleep of {24 * options.members}"
    harm = f"a mean delay of {delay.number('ms')}, lost packets {percent(max(0.0, lost.mean), signed=True)}, "
    harm += f"and {bulk.percent()} for a bulk CUBIC flow"
    sentence = f"{options.method} {word} on {options.members} links of {options.rate}: {effect}, at {harm}."
    return Answer(
        "group",
        options.method,
        helps and not harms,
        sentence,
        measures,
        (
            f"the load has {load.mean_mbit_s:.4g} Mbit/s on average",
            *load.told,
            f"the load does not react to delay and loss; the bulk flow does, with a round trip of {_RTT_MS} ms",
            "packets are spread over all members individually; the bulk flow is no faster than one member",
            f"a member needs {_LEAD} to return, as over the kernel's bonding driver (--lead of the daemon)",
            "power of gigabit ports of 2010: 500 mW awake, 50 mW asleep, two ports a link",
        ),
        options.seeds,
        scenarios,
        _install(options.method),
        load.files,
    )


def _install(method: str) -> str:
    """The command that starts the daemon with the simulated parameters."""
    own = f' --set "interval={_INTERVAL}"' if method in _WITH_INTERVAL else ""
    return f"anabranch group control DEV --method {method}{own}"
