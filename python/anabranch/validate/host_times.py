"""What hosts of live runs take until a flow begins and until they answer, and simulated hosts that take as long.

All of it is measured by ``tests/live/host_times.py``, of few flows. Which flow a full queue hits first hangs on
microseconds, and with it who has how much for many seconds: a run whose hosts take no time at all is one of many, and
not the middle.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from anabranch.scenario import Scenario, Value

MEASURED: Final = Path(__file__).with_name("host_times.json")
"""Microseconds, each as often as any other of its list; what they are of is said where they are read."""

_TABLES: Final[dict[str, Any]] = json.loads(MEASURED.read_text(encoding="utf-8"))

BEGINNINGS_US: Sequence[int] = _TABLES["beginnings"]
"""So many microseconds after the time in the file the first flow of that time begins."""

NEXT_US: Sequence[int] = _TABLES["next"]
"""And so many later another one of the same time; which is the first is chance."""

TICK_US = 4000
"""How long a tick of the kernel's clock is (250 Hz). When in a tick a run begins is chance; timers of TCP end with
ticks, and timestamps count milliseconds."""

PAUSES_MS = (0, 1, 2, 10)
"""A host that has sent nothing for so long takes longer to answer, and so does one that has been told nothing."""


def _longer(less: Sequence[int], more: Sequence[int]) -> Sequence[int]:
    """What takes the longer of two, quantile by quantile, where it does."""
    return [max(0, after - before) for before, after in zip(less, more, strict=True)]


def _added(tables: Sequence[Sequence[int]]) -> Sequence[Sequence[int]]:
    least = itertools.accumulate(tables, lambda before, table: [max(*both) for both in zip(before, table, strict=True)])
    return (tables[0], *(_longer(*pair) for pair in itertools.pairwise(least)))


MORE_US: Mapping[str, Sequence[Sequence[int]]] = {role: _added(tables) for role, tables in _TABLES["answers"].items()}
"""By what a host is: the microseconds until it answers, and how many are added after each of the further pauses."""

FIRST_DATA_US: Sequence[int] = _TABLES["first_data"]
"""So long after the acknowledgment that makes the connection its first data leaves: the application has to be told.
Measured of two flows that begin at one time."""

MADE_BY_DATA_US: Sequence[int] = _longer(
    list(map(sum, zip(*MORE_US["receiver"], strict=True))), _TABLES["made_by_data"]
)
"""What a receiver takes longer over first data that has overtaken that acknowledgment and makes the connection."""

READ_US: Mapping[str, Sequence[int]] = {
    which: _longer(_TABLES["at_once"][which], by_reader) for which, by_reader in _TABLES["by_reader"].items()
}
"""By what else a host does: the microseconds from data to the read of it. It is what acknowledgments take that are
left to the reading thread, less what those take that are not, which is in :data:`MORE_US`."""

SAME_BURST = "1 us"
"""What follows sooner was handed over with what came before it, and is as late."""

_UNITS = {"h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}


def with_host_times(scenario: Scenario, draws: int) -> list[Scenario]:
    """The scenario so many times, with hosts that take their time.

    Each end of a flow moves to a host of its own, one link without rate or delay behind the old one; jitter that lets
    nothing be overtaken makes what a receiver sends late, and what a sender is sent: what is paced goes by the time at
    which an acknowledgment is taken in (:data:`MORE_US`). Applications read late (:data:`READ_US`), on which hangs when
    the kernel acknowledges. Flows begin later (:data:`BEGINNINGS_US`), and so does what they write
    (:data:`FIRST_DATA_US`). The first answer of a lone flow takes longer where data may have overtaken the
    acknowledgment that makes the connection, behind a gateway of several routes (:data:`MADE_BY_DATA_US`). Which packet
    that is of several flows is not told by the numbers that packets have at a host's link. Applications of live runs
    write as much as their buffer holds before they are told of anything, and so do these.
    """
    from anabranch.live import first_send_buffer
    from anabranch.toml_text import write_key

    resolved = scenario.resolve()["resolved_scenario"]
    changed = scenario.copy()
    for node in _roles(resolved["flow"].values()):
        changed.set(f"link.{write_key(_behind(node))}.between", [_behind(node), node])
    buffer = first_send_buffer(scenario)
    for name, flow in resolved["flow"].items():
        if buffer is not None and _is_one_way(flow) and not _has_many(flow) and not _is_ours(flow["from"], resolved):
            changed.set(f"flow.{write_key(name)}.transport.send_autotuning_start", f"{buffer} bytes")
        ends = {end: _behind(flow[end]) for end in ("from", "to")}
        for end, host in ends.items():
            changed.set(f"flow.{write_key(name)}.{end}", host)
        for route, (first, last) in (("route", ("from", "to")), ("return_route", ("to", "from"))):
            if flow.get(route):
                changed.set(f"flow.{write_key(name)}.{route}", [ends[first], *flow[route], ends[last]])
    return [_drawn(changed, resolved, number) for number in range(draws)]


def _readers(flows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """What else the hosts do at which data is read and not answered."""
    flows = list(flows)
    senders = {flow["from"] for flow in flows}
    return {flow["to"]: "beside a sender" if flow["to"] in senders else "alone" for flow in flows if _is_one_way(flow)}


def _has_many(flow: Mapping[str, Any]) -> bool:
    """Transfers one after the other, whose writer has not been looked at."""
    return bool(_kind(flow["workload"]) == "poisson")


def _is_ours(node: str, resolved: Mapping[str, Any]) -> bool:
    """Whether our own TCP is at this end of a live run, whose switches are the scenario's."""
    return bool(resolved.get("host", {}).get(node, {}).get("tcp") == "own")


def _is_one_way(flow: Mapping[str, Any]) -> bool:
    return bool(flow["protocol"] == "tcp" and _kind(flow["workload"]) != "request-response")


def _kind(choice: Any) -> Any:
    return choice["kind"] if isinstance(choice, Mapping) else choice


def _firsts(resolved: Mapping[str, Any]) -> dict[str, tuple[int, Sequence[int]]]:
    """By host of a lone flow: the number of the packet that answers its first data, and what that takes."""
    flows = list(resolved["flow"].values())
    overtaken = {node for gateway in resolved.get("gateway", {}).values() for node in gateway["between"]}
    lone = len(flows) == 1 and flows[0]["count"] == 1 and _kind(flows[0]["workload"]) in ("bulk", "file")
    # Behind the SYN-ACK.
    return {flows[0]["to"]: (1, MADE_BY_DATA_US)} if lone and flows[0]["to"] in overtaken else {}


def _behind(node: str) -> str:
    return f"{node}-host"


def _roles(flows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """What each host is. One that sends and receives data counts as a sender: it is awake more often than not."""
    ends = [(flow["to"], "receiver") for flow in flows]
    return dict(ends + [(flow["from"], "sender") for flow in flows])


def _drawn(scenario: Scenario, resolved: Mapping[str, Any], number: int) -> Scenario:
    from anabranch.toml_text import write_key

    copy = scenario.copy()
    drawn = random.Random(number)  # noqa: S311 - a time, not a secret
    late_us: dict[float, int] = {}
    into_tick_us = drawn.randrange(TICK_US)
    flows = list(resolved["flow"].items())
    drawn.shuffle(flows)
    for name, flow in flows:
        value, unit = flow["start"].split()
        start = float(value) * _UNITS[unit]
        if start in late_us:
            late_us[start] += drawn.choice(NEXT_US)
        else:
            late_us[start] = drawn.choice(BEGINNINGS_US)
        copy.set(f"flow.{write_key(name)}.start", f"{start + (into_tick_us + late_us[start]) * 1e-6:.9f} s")
    firsts = _firsts(resolved)
    told = {flow["from"] for _, flow in flows if flow["protocol"] == "tcp"}
    for node, role in _roles(resolved["flow"].values()).items():
        impair: list[Value] = [
            _jitter(drawn, table, after_pause=SAME_BURST if pause == 0 else f"{pause} ms")
            for pause, table in zip(PAUSES_MS, MORE_US[role], strict=True)
        ]
        if node in firsts:
            number, table = firsts[node]
            impair.append(_jitter(drawn, table, packets=[number]))
        late = "reverse" if role == "sender" and node in told else "forward"
        copy.set(f"link.{write_key(_behind(node))}.{late}.impair", impair)
    for node in dict.fromkeys(flow["from"] for _, flow in flows if _is_one_way(flow) and not _has_many(flow)):
        copy.set(f"host.{write_key(_behind(node))}.first_write_delays", _texts(drawn, FIRST_DATA_US))
    for node, beside in _readers([flow for _, flow in flows]).items():
        copy.set(f"host.{write_key(_behind(node))}.read_delays", _texts(drawn, READ_US[beside]))
    return copy


def _jitter(drawn: random.Random, table: Sequence[int], **which: Value) -> Value:
    return {"kind": "jitter", "distribution": "table", "table": _texts(drawn, table), "reorder": False, **which}


def _texts(drawn: random.Random, table: Sequence[int]) -> list[str]:
    # In another order the same draws of the seed are other delays; what else it draws stays.
    return [f"{delay} us" for delay in drawn.sample(table, len(table))]
