"""Simulates a configuration of the gateway, each of its paths alone, and the failure of each path.

The simulator's ``[gateway.NAME] kind = "tunnel"`` runs the daemon's protocol. A host is attached to
each end of the gateway. Each figure is the median, the minimum and the maximum over all seeds.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from anabranch.convert.content import Side
from anabranch.errors import UserError, nearest
from anabranch.files import owner
from anabranch.gateway.classes import Packets, PlannedClass
from anabranch.gateway.config import Config
from anabranch.gateway.document import (
    PlanClass,
    PlanComparison,
    PlanDirection,
    PlanDocument,
    PlanFigure,
    PlanPath,
    PlanSide,
)
from anabranch.gateway.lines import DIRECTIONS, Line, delay_ms, mbit_s
from anabranch.keys.component import Component
from anabranch.result.result import RunResult
from anabranch.text import toml_text

if TYPE_CHECKING:
    from anabranch._engine import Run

START_S = 1
"""Start of the flows: the path MTU is known by then."""
WARM_UP_S = 3
"""Start of the measurement."""
SAMPLE_MS = 1.0
"""Sampling interval of delivered data while a path fails, in milliseconds."""
LEAST_SECONDS, MOST_SECONDS = 6, 600
MOST_FLOWS = 1000
MOST_SEEDS = 100

IDLE_WARM_UP_S, IDLE_S = 300, 1200
"""Start and length of the measurement without traffic: ten changes of the session's keys."""
MONTH_S = 30 * 86_400

REQUEST = {"kind": "request-response", "request": "200 bytes", "response": "1 kB", "think": "50 ms"}
"""The small flow beside the bulk."""
CALL_BYTES = 160
CALL = {"kind": "paced", "rate": "64 kbit/s", "payload": f"{CALL_BYTES} bytes"}
"""A call: a packet every 20 ms, as of G.711 (RFC 3551 §4.5.14)."""
_SITE, _HUB = "site", "hub"
_HOSTS = ("lan", "server")
_CLASSED = "classed"
"""The far end of a class's flow: the class's networks contain this host's address, and no other."""
_GATEWAY, _ACCESS, _EXIT, _TO_CLASSED = "the-tunnel", "the-lan", "the-servers", "the-classed"
"""Names of gateway and links; paths have numbers, because some names of the daemon are no link names."""
_LOCAL = {"rate": "10 Gbit/s", "delay": "10 us"}


@dataclass(frozen=True)
class Options:
    """The options of a plan.

    Attributes:
        flows: Number of simultaneous flows, in addition to runs with one.
        control: Their congestion control.
        seconds: Measured time of each run.
        seeds: Runs for each figure.
    """

    flows: int = 8
    control: str = "cubic"
    seconds: int = 12
    seeds: int = 3

    def check(self) -> None:
        """Refuse values out of range.

        Raises:
            UserError: A value is out of range, or there is no such congestion control.
        """
        ranges = (
            ("flows", self.flows, 2, MOST_FLOWS),
            ("seconds", self.seconds, LEAST_SECONDS, MOST_SECONDS),
            ("seeds", self.seeds, 1, MOST_SEEDS),
        )
        for name, value, least, most in ranges:
            if not least <= value <= most:
                raise UserError(f"--{name} {value}: a whole number from {least} to {most} was expected")
        from anabranch import _engine

        names = [item["name"] for item in json.loads(_engine.registry()) if item["kind"] == "cc"]
        if self.control not in names:
            raise UserError(f'there is no congestion control "{self.control}"', hint=nearest(self.control, names))


@dataclass(frozen=True)
class Figure:
    """A figure over all seeds."""

    median: float
    min: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        """The figure of one value per seed."""
        return cls(median(values), min(values), max(values))

    def document(self) -> PlanFigure:
        """Its JSON."""
        return {"median": self.median, "min": self.min, "max": self.max}


Figures = dict[str, "Figure | None"]


@dataclass(frozen=True)
class Case:
    """One simulated case.

    Attributes:
        direction: The direction of the bulk flow, one of :data:`DIRECTIONS`.
        alone: The only path, without a gateway; ``None`` for the gateway over all.
        fails: The path that fails.
        many: Whether there are many flows instead of one.
    """

    direction: str
    alone: str | None = None
    fails: str | None = None
    many: bool = False


@dataclass(frozen=True)
class ClassCase:
    """One simulated case with packets of a class.

    Attributes:
        direction: The direction of the packets, one of :data:`DIRECTIONS`.
        of: The class; ``None`` for packets of none.
        is_call: Whether they are a call instead of one bulk flow.
        fails: The path that fails meanwhile; the call is then alone, and otherwise beside one bulk flow.
    """

    direction: str
    of: str | None
    is_call: bool = False
    fails: str | None = None


@dataclass(frozen=True)
class IdleCase:
    """The gateway without traffic of users.

    Attributes:
        is_absent: Whether the other end is absent, so that there is no session.
    """

    is_absent: bool = False


@dataclass(frozen=True)
class Plan:
    """The predicted effect of a configuration.

    Attributes:
        config: The configuration.
        lines: The properties of its paths.
        options: The options of the simulation.
        figures: The figures of each case, by name.
        idle_mb_month: Traffic of each path in 30 days without traffic of users, in MB.
        absent_mb_month: The same while the other end is absent.
        remarks: Omissions and assumptions of the simulation.
    """

    config: Config
    lines: Mapping[str, Line]
    options: Options
    figures: Mapping[Case | ClassCase, Figures]
    idle_mb_month: Mapping[str, float]
    absent_mb_month: Mapping[str, float]
    remarks: tuple[str, ...] = field(default=())

    def document(self) -> PlanDocument:
        """The plan as the JSON document of ``anabranch gateway plan --json``."""
        from anabranch import _engine

        paths: dict[str, PlanPath] = {
            name: {
                "policy": path.policy,
                "source": self.lines[name].source,
                "idle_mb_month": self.idle_mb_month[name],
                "absent_mb_month": self.absent_mb_month[name],
                "up": _side(self.lines[name].sides["up"]),
                "down": _side(self.lines[name].sides["down"]),
            }
            for name, path in self.config.paths.items()
        }
        return {
            "format": 1,
            "file": self.config.file,
            "anabranch_version": _engine.version(),
            "cc": self.options.control,
            "flows": self.options.flows,
            "seconds": self.options.seconds,
            "seeds": self.options.seeds,
            "paths": paths,
            "directions": {direction: self._direction(direction) for direction in DIRECTIONS},
            "remarks": list(self.remarks),
        }

    def _direction(self, direction: str) -> PlanDirection:
        def compared(*, many: bool) -> PlanComparison:
            return {
                "together": self._figures(Case(direction, many=many)),
                "alone": {name: self._figures(Case(direction, alone=name, many=many)) for name in self.config.paths},
            }

        return {
            "one_flow": compared(many=False),
            "many_flows": compared(many=True),
            "failover": {name: self._figures(Case(direction, fails=name)) for name in self.config.paths},
            "classes": {one.name: self._class(direction, one.name, one.mode) for one in simulated_classes(self.config)},
            "no_class": self._class(direction, None, "bulk") if self.config.classes else None,
        }

    def _class(self, direction: str, name: str | None, mode: str) -> PlanClass:
        flow: Any = self._figures(ClassCase(direction, name))
        call: Any = self._figures(ClassCase(direction, name, is_call=True))
        failover = {
            path: self._figures(ClassCase(direction, name, is_call=True, fails=path)) for path in self.config.paths
        }
        return {"mode": mode, "goodput_mbit_s": flow["goodput_mbit_s"], "call": call, "failover": failover}

    def _figures(self, case: Case | ClassCase) -> Any:
        document: dict[str, Any] = {}
        for name, figure in self.figures[case].items():
            table, dot, key = name.partition("/")
            place = document.setdefault(table, {}) if dot else document
            place[key or table] = None if figure is None else figure.document()
        return document


def _side(side: Side) -> PlanSide:
    return {"rate_mbit_s": mbit_s(side), "delay_ms": delay_ms(side)}


def simulated_classes(config: Config) -> list[PlannedClass]:
    """The classes for which packets were found."""
    return [one for one in config.classes if one.packets is not None]


def class_cases(config: Config) -> list[ClassCase]:
    """The simulated cases of classes; none if there are no classes."""
    found: list[ClassCase] = []
    for direction in DIRECTIONS if config.classes else ():
        for name in (None, *(one.name for one in simulated_classes(config))):
            found += [ClassCase(direction, name), ClassCase(direction, name, is_call=True)]
            found += [ClassCase(direction, name, is_call=True, fails=path) for path in config.paths]
    return found


def cases(config: Config) -> list[Case]:
    """The simulated cases of bulk flows, the longest runs first."""
    found = []
    for direction in DIRECTIONS:
        found += [Case(direction, fails=name) for name in config.paths]
        found += [Case(direction, alone=one, many=many) for many in (True, False) for one in (None, *config.paths)]
    return found


def make(
    config: Config,
    lines: Mapping[str, Line],
    options: Options,
    progress: Callable[[int], None] | None = None,
) -> Plan:
    """Simulate a configuration.

    Args:
        config: The configuration.
        lines: The properties of its paths, by name.
        options: The options of the simulation.
        progress: Called with the number of finished runs, of :func:`run_count`.

    Raises:
        ScenarioError: A path has properties that no link can have.
    """
    todo: list[Case | ClassCase] = [*cases(config), *class_cases(config)]
    with _folder(lines) as folder:
        file = str(folder / "plan.toml")
        texts = {case: toml_text.write_document(document(config, lines, options, case)) for case in todo}
        failing = [case for case in todo if isinstance(case, Case) and case.fails is not None]
        others = [case for case in todo if case not in failing]
        figures: dict[Case | ClassCase, Figures] = {}
        done = 0
        for group, samples_ms in ((failing, SAMPLE_MS), (others, None)):
            runs = _run([(texts[case], file) for case in group], options.seeds, samples_ms, done, progress)
            for case, of_case in zip(group, runs, strict=True):
                measured = [_measured(case, config, options, RunResult(run)) for run in of_case]
                figures[case] = {name: _figure([one[name] for one in measured]) for name in measured[0]}
            done += len(group) * options.seeds
        idle, absent = _idle(config, lines, options, file)
    return Plan(config, lines, options, figures, idle, absent, remarks(config, lines))


def _idle(config: Config, lines: Mapping[str, Line], options: Options, file: str) -> Iterator[dict[str, float]]:
    """Traffic of each path in 30 days without traffic of users, in MB: octets of IP packets of both directions.

    First with the other end, then without it.
    """
    cases = [IdleCase(is_absent=is_absent) for is_absent in (False, True)]
    texts = [(toml_text.write_document(document(config, lines, options, case)), file) for case in cases]
    month = MONTH_S / IDLE_S / 1e6
    for [run] in _run(texts, 1, None, 0, None):
        ways = [RunResult(run).gateways[_GATEWAY][way]["routes"] for way in ("forward", "reverse")]
        links = _links(config).items()
        yield {name: month * sum(int(way[link]["sent_bytes"]) for way in ways) for name, link in links}


@contextmanager
def _folder(lines: Mapping[str, Line]) -> Iterator[Path]:
    """A temporary folder with the files of the links; it is removed even if a signal ends the command at once."""
    folder = owner.beside(Path(tempfile.gettempdir()) / "plan")
    folder.mkdir(mode=0o700)
    try:
        for line in lines.values():
            for name, content in line.files.items():
                (folder / name).write_bytes(content)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        owner.forget(folder)


def run_count(config: Config, options: Options) -> int:
    """Number of runs of a plan."""
    return (len(cases(config)) + len(class_cases(config))) * options.seeds


def _run(
    texts: Sequence[tuple[str, str]],
    seeds: int,
    samples_ms: float | None,
    before: int,
    progress: Callable[[int], None] | None,
) -> list[list[Run]]:
    """Run each text with all seeds."""
    from anabranch import _engine
    from anabranch.limits import thread_count

    jobs: list[tuple[str, str, list[str], int | None]] = [
        (text, file, [], seed) for text, file in texts for seed in range(1, seeds + 1)
    ]

    def report(n: int) -> None:
        if progress is not None:
            progress(before + n)

    runs = _engine.run_many(
        jobs, threads=thread_count(None, len(jobs)), digest=False, samples_ms=samples_ms, progress=report
    )
    return [runs[n : n + seeds] for n in range(0, len(runs), seeds)]


def _figure(values: Sequence[float | None]) -> Figure | None:
    found = [value for value in values if value is not None]
    return Figure.of(found) if found else None


def document(
    config: Config, lines: Mapping[str, Line], options: Options, case: Case | ClassCase | IdleCase
) -> dict[str, Any]:
    """The scenario of a case."""
    alone = case.alone if isinstance(case, Case) else None
    paths = [alone] if alone is not None else list(config.paths)
    links = _links(config)
    is_idle = isinstance(case, IdleCase)
    start = IDLE_WARM_UP_S if is_idle else WARM_UP_S
    end = start + (IDLE_S if is_idle else options.seconds)
    scenario: dict[str, Any] = {
        "title": f"A plan of {Path(config.file).name}",
        "duration": f"{end} s",
        "warmup": f"{start} s",
        "link": {
            **{
                links[name]: {
                    "between": [_SITE, _HUB],
                    "forward": lines[name].sides["up"],
                    "reverse": lines[name].sides["down"],
                }
                for name in paths
            },
            _ACCESS: {"between": [_HOSTS[0], _SITE], **_LOCAL},
            _EXIT: {"between": [_HUB, _HOSTS[1]], **_LOCAL},
        },
    }
    if isinstance(case, IdleCase):
        scenario["flow"] = {"one-packet": _flow(options, "up") | {"workload": {"kind": "file", "size": "1 byte"}}}
    elif isinstance(case, Case):
        scenario["flow"] = _bulk_flows(options, case)
    else:
        scenario |= _class_flows(config, options, case)
        scenario["link"][_TO_CLASSED] = {"between": [_HUB, _CLASSED], **_LOCAL}
    if alone is None:
        scenario["gateway"] = {_GATEWAY: _tunnel(config)}
    if isinstance(case, IdleCase) and case.is_absent:
        scenario["at"] = [{"time": "1 ms", "set": {f"link.{link}.up": False for link in links.values()}}]
    if not isinstance(case, IdleCase) and case.fails is not None:
        is_up = f"link.{links[case.fails]}.up"
        dies, returns = outage(options)
        scenario["at"] = [
            {"time": f"{dies} s", "set": {is_up: False}},
            {"time": f"{returns} s", "set": {is_up: True}},
        ]
    return scenario


def _tunnel(config: Config) -> Component:
    links = _links(config)
    classes: dict[str, Any] = {
        one.name: {
            "match": one.match,
            "mode": one.mode,
            **({} if one.path is None else {"path": links[one.path]}),
        }
        for one in config.classes
    }
    return {
        "between": [_SITE, _HUB],
        "routes": list(links.values()),
        "kind": "tunnel",
        "policies": {links[name]: path.policy for name, path in config.paths.items()},
        **({"class": classes} if classes else {}),
    }


def _flow(options: Options, direction: str, far: str = _HOSTS[1]) -> Component:
    source, target = (_HOSTS[0], far) if direction == "up" else (far, _HOSTS[0])
    return {"from": source, "to": target, "start": f"{START_S} s", "cc": options.control}


def _bulk_flows(options: Options, case: Case) -> Component:
    flow = _flow(options, case.direction)
    flows: Component = {"bulk": flow}
    if case.many:
        flow |= {"count": options.flows, "start_spread": "500 ms"}
    elif case.fails is None:
        flows["request"] = {**flow, "workload": REQUEST}
    return flows


def _class_flows(config: Config, options: Options, case: ClassCase) -> dict[str, Any]:
    """The flows of a class's case, and the host with its address."""
    packets = next((one.packets for one in config.classes if one.name == case.of), None) or Packets()
    flow = _flow(options, case.direction, _CLASSED)
    flow |= {"dscp": packets.dscp}
    if packets.port is not None:
        flow["port"] = packets.port
    tables: dict[str, Any] = {"flow": {"of-class": flow}}
    if packets.address is not None:
        tables["host"] = {_CLASSED: {"addresses": [str(packets.address)]}}
    if case.is_call:
        del flow["cc"]
        # Packets sent before the measurement, or in flight at its end, would be counted at one end
        # only.
        stop = WARM_UP_S + options.seconds - 1
        flow |= {"protocol": "udp", "workload": CALL, "start": f"{WARM_UP_S} s", "stop": f"{stop} s"}
        if case.fails is None:
            tables["flow"]["bulk"] = _flow(options, case.direction)
    return tables


def _links(config: Config) -> dict[str, str]:
    """The link of each path."""
    return {name: f"path-{number}" for number, name in enumerate(config.paths, 1)}


def outage(options: Options) -> tuple[float, float]:
    """Start and end of the failure, in seconds: the second third of the measured time."""
    third = options.seconds / 3
    return WARM_UP_S + third, WARM_UP_S + 2 * third


def _measured(case: Case | ClassCase, config: Config, options: Options, result: RunResult) -> dict[str, float | None]:
    if isinstance(case, Case):
        return _measure(case, config, options, result)
    flow = result.flows["of-class"]
    if not case.is_call:
        return {"goodput_mbit_s": flow["goodput_mbit_s"]}
    lost = float((flow["sent_packets"] or 0) - flow["delivered_bytes"] // CALL_BYTES)
    if case.fails is None:
        mean, p95 = flow["mean_one_way_delay_ms"], flow["p95_one_way_delay_ms"]
        return {"mean_delay_ms": mean, "p95_delay_ms": p95, "lost_packets": lost}
    # Only the call crosses the gateway in this direction.
    way = {"up": "forward", "down": "reverse"}[case.direction]
    return {"silent_ms": result.gateways[_GATEWAY][way]["silent_ms"], "lost_packets": lost}


def _measure(case: Case, config: Config, options: Options, result: RunResult) -> dict[str, float | None]:
    """The figures of one run, by name; names in a table follow its name and a slash."""
    if case.fails is not None:
        figures: dict[str, float | None] = dict(_failover(result, options))
        return figures | _shares(case, config, result)
    goodput = sum(flow["goodput_mbit_s"] for name, flow in result.flows.items() if name.startswith("bulk"))
    figures = {"goodput_mbit_s": goodput}
    if not case.many:
        exchanges = result.flows["request"]["exchanges"]
        figures["response_ms/p50"] = exchanges["p50_response_time_ms"] if exchanges else None
        figures["response_ms/p95"] = exchanges["p95_response_time_ms"] if exchanges else None
    return figures | (_shares(case, config, result) if case.alone is None else {})


def _shares(case: Case, config: Config, result: RunResult) -> dict[str, float | None]:
    """Each path's share of the tunnel's octets over the whole run."""
    way = {"up": "forward", "down": "reverse"}[case.direction]
    links = _links(config)
    routes = result.gateways[_GATEWAY][way]["routes"]
    sent = {name: routes[links[name]]["sent_bytes"] for name in config.paths}
    total = sum(sent.values())
    return {f"shares/{name}": octets / total if total else None for name, octets in sent.items()}


def _failover(result: RunResult, options: Options) -> dict[str, float]:
    """Goodput before, during and after an outage, and the longest time without new in-order data in each."""
    samples = result.plain("samples")
    times = [float(time) for time in samples["time_s"]]
    delivered = [int(octets) for octets in samples["delivered_bytes"]]
    dies, returns = outage(options)
    marks = [float(WARM_UP_S), dies, returns, float(WARM_UP_S + options.seconds)]
    octets = [_at(times, delivered, mark) for mark in marks]
    rates = [8 * (octets[n + 1] - octets[n]) / (marks[n + 1] - marks[n]) / 1e6 for n in range(len(marks) - 1)]
    return {
        "before_silent_ms": _silence(times, delivered, marks[0], dies),
        "silent_ms": _silence(times, delivered, dies, returns),
        "before_mbit_s": rates[0],
        "during_mbit_s": rates[1],
        "after_mbit_s": rates[2],
        "after_silent_ms": _silence(times, delivered, returns, marks[-1]),
    }


def _at(times: Sequence[float], delivered: Sequence[int], time: float) -> int:
    """Octets delivered until a time."""
    return next((octets for at, octets in zip(reversed(times), reversed(delivered), strict=True) if at <= time), 0)


def _silence(times: Sequence[float], delivered: Sequence[int], start: float, end: float) -> float:
    """The longest time without new data between ``start`` and ``end``, in ms."""
    last, longest = start, 0.0
    before = _at(times, delivered, start)
    for time, octets in zip(times, delivered, strict=True):
        if not start < time <= end:
            continue
        longest = max(longest, time - last)
        if octets > before:
            last, before = time, octets
    return 1000 * longest


def remarks(config: Config, lines: Mapping[str, Line]) -> tuple[str, ...]:
    """Parts of a configuration that a plan leaves out, and its assumptions on paths."""
    found = [note for line in lines.values() for note in line.notes]
    found += [
        f"left out: the class `{one.name}`; no IPv4 packet was found that it takes and no class before it"
        for one in config.classes
        if one.packets is None
    ]
    taking = next((one.name for one in config.classes if one.fits(Packets())), None)
    if taking is not None:
        found.append(f"the class `{taking}` takes all simulated traffic without a separate class")
    if config.classes:
        found.append("assumed: the other end has the same classes")
    if len(config.peers) > 1:
        found.append(f"left out: {len(config.peers) - 1} of {len(config.peers)} peers; all traffic goes to one")
    return tuple(found)
