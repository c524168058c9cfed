"""Delays of hosts in live runs until a flow begins and until a host answers, and simulated hosts with these delays.

All delays are measured with few flows (:mod:`anabranch.validate.measure_hosts`). Microseconds decide which flow a full
queue hits first, and thereby the shares over many seconds. A run whose hosts have no delay is one of many, and not
the typical one.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict, cast

from anabranch.files import stored
from anabranch.files.stored import Range, StoredKind
from anabranch.text import quantity

if TYPE_CHECKING:
    from anabranch.scenario import Scenario, Value

TICK_US = 4000
"""Length of a tick of the kernel's clock (250 Hz). A run begins at a random part of a tick; timers of TCP expire at
ticks, and timestamps count milliseconds."""

PAUSES_MS: Final = (0, 1, 2, 10)
"""Pauses in ms. A host takes longer to answer if it has sent, or received, nothing for such a time."""

LONGEST_US = 1_000_000
"""Upper bound of a host's delay in an untainted run."""

READERS = ("alone", "beside a sender")
"""Kinds of hosts at which data is read and not answered, by their other tasks."""

ROLES = ("sender", "receiver")


@dataclass(frozen=True)
class HostTimes:
    """Delays in microseconds. All values of a list are equally likely; all lists have one length, in ascending order.

    Attributes:
        beginnings: From the time in the file until the first flow of that time begins.
        next: From there until another flow of the same time begins; the first one is random.
        first_data: From the acknowledgment that establishes a connection until its first data leaves, because the
            application must be notified. Measured with two flows that begin at one time.
        answers: Until a host answers, by its role; one list for each of :data:`PAUSES_MS`.
        made_by_data: Until a receiver answers first data that has overtaken that acknowledgment.
        at_once: Until the kernel acknowledges data, by the host's other tasks (:data:`READERS`).
        by_reader: The same for acknowledgments that are left to the reading thread.
        by_idle_reader: The same for one at a host without other tasks, after no data had come for the
            longest of :data:`PAUSES_MS`.
    """

    beginnings: Sequence[int]
    next: Sequence[int]
    first_data: Sequence[int]
    made_by_data: Sequence[int]
    at_once: Mapping[str, Sequence[int]]
    by_reader: Mapping[str, Sequence[int]]
    by_idle_reader: Sequence[int]
    answers: Mapping[str, Sequence[Sequence[int]]]

    @classmethod
    def of(cls, document: object) -> HostTimes:
        """Read the result of :meth:`document`.

        Raises:
            ValueError: It has another form.
        """
        stored.check(document, _File)
        found = cast("_File", document)
        times = cls(**{key: found[key] for key in _File.__annotations__})  # type: ignore[literal-required]
        if any(len(tables) != len(PAUSES_MS) for tables in times.answers.values()):
            raise ValueError(f"answers do not have {len(PAUSES_MS)} lists each, one for each pause")
        lists = [
            *(times.beginnings, times.next, times.first_data, times.made_by_data, times.by_idle_reader),
            *times.at_once.values(),
            *times.by_reader.values(),
            *itertools.chain(*times.answers.values()),
        ]
        if not times.next or len({len(one) for one in lists}) > 1:
            raise ValueError("its lists are empty, or not equally long")
        if any(list(one) != sorted(one) for one in lists):
            raise ValueError("its lists are not ascending")
        return times

    @classmethod
    def none(cls) -> HostTimes:
        """Delays of hosts in virtual time, which compute in no time."""
        return cls(
            beginnings=[0],
            next=[0],
            first_data=[0],
            answers={role: [[0] for _ in PAUSES_MS] for role in ROLES},
            made_by_data=[0],
            at_once={name: [0] for name in READERS},
            by_reader={name: [0] for name in READERS},
            by_idle_reader=[0],
        )

    def document(self) -> dict[str, Any]:
        """The form stored in a file."""
        return asdict(self)

    @classmethod
    def read(cls, file: Path) -> HostTimes:
        """Read a file written by ``anabranch validate --out DIR``: ``DIR/host_times.json``.

        Raises:
            UserError: It cannot be read, or has another form.
        """
        from anabranch.errors import UserError

        found = _KIND.read(file)
        try:
            return cls.of(found)
        except ValueError as error:
            raise UserError(f"not a file of host times: {error}", file=str(file), hint=_KIND.hint) from None

    def added(self, role: str) -> Sequence[Sequence[int]]:
        """Delays until a host answers, and the additional delay after each longer pause."""
        tables = self.answers[role]
        least = itertools.accumulate(
            tables, lambda before, table: [max(*both) for both in zip(before, table, strict=True)]
        )
        return (tables[0], *(_longer(*pair) for pair in itertools.pairwise(least)))

    def added_by_first_data(self) -> Sequence[int]:
        """Additional delay of a receiver for first data that establishes the connection."""
        return _longer(self._after_longest_pause("receiver"), self.made_by_data)

    def until_read(self, which: str) -> Sequence[int]:
        """Delay from the arrival of data to its reading.

        It is the delay of acknowledgments by the reading thread minus that of the others, which :meth:`added` contains.
        """
        return _longer(self.at_once[which], self.by_reader[which])

    def until_idle_read(self) -> Sequence[int]:
        """The same after no data had come for a long time, minus the host's own delay then; no less than usual.

        The host's own delay covers all its answers after such a pause, some by readers, so this is rather short.
        """
        longer = _longer(self._after_longest_pause("receiver"), self.by_idle_reader)
        return [max(both) for both in zip(longer, self.until_read(READERS[0]), strict=True)]

    def _after_longest_pause(self, role: str) -> list[int]:
        return list(map(sum, zip(*self.added(role), strict=True)))


_Delays = list[Annotated[int, Range(0, LONGEST_US - 1)]]
_Readers = TypedDict("_Readers", {"alone": _Delays, "beside a sender": _Delays})


class _Answers(TypedDict):
    sender: list[_Delays]
    receiver: list[_Delays]


class _File(TypedDict):
    beginnings: _Delays
    next: _Delays
    first_data: _Delays
    answers: _Answers
    made_by_data: _Delays
    at_once: _Readers
    by_reader: _Readers
    by_idle_reader: _Delays


_KIND = StoredKind(_File, "a file of host times", "`anabranch validate --out DIR` writes one, DIR/host_times.json")


def _longer(less: Sequence[int], more: Sequence[int]) -> Sequence[int]:
    """The difference of two delays, quantile by quantile, at least 0."""
    return [max(0, after - before) for before, after in zip(less, more, strict=True)]


SAME_BURST = "1 us"
"""A packet that follows sooner was sent in the same burst as the one before, and has the same delay."""


def with_written_buffers(changed: Scenario, scenario: Scenario) -> Scenario:
    """``changed`` with the size of writes that the applications of ``scenario`` have live."""
    from anabranch.live import first_send_buffer
    from anabranch.text.toml_text import write_key

    buffer = first_send_buffer(scenario)
    resolved = scenario.resolve()["resolved_scenario"]
    for name, flow in resolved["flow"].items() if buffer is not None else ():
        if _is_one_way(flow) and not _has_many(flow) and not _is_ours(flow["from"], resolved):
            changed = changed.set(f"flow.{write_key(name)}.transport.send_autotuning_start", f"{buffer} bytes")
    return changed


def in_parts_of_tick(scenario: Scenario, parts: int) -> list[Scenario]:
    """The scenario ``parts`` times, with flows that begin later by equal parts of a tick of the kernel's clock."""
    from anabranch.text.toml_text import write_key

    flows = scenario.resolve()["resolved_scenario"]["flow"]
    found = []
    for part in range(parts):
        changed = scenario
        for name, flow in flows.items():
            start = float(quantity.seconds(flow["start"])) + part / parts * TICK_US * 1e-6
            changed = changed.set(f"flow.{write_key(name)}.start", f"{start:.9f} s")
        found.append(changed)
    return found


def with_host_times(scenario: Scenario, draws: int, times: HostTimes) -> list[Scenario]:
    """The scenario ``draws`` times, with hosts that have delays (``times``).

    Each end of a flow moves to a separate host, one link without rate or delay beyond the old one. Jitter without
    reordering delays the packets that a receiver sends, and the packets sent to a sender: pacing depends on the time
    at which an acknowledgment is processed (:meth:`HostTimes.added`). Applications read late
    (:meth:`HostTimes.until_read`, :meth:`HostTimes.until_idle_read`), which determines when the kernel acknowledges.
    Flows begin later, and so does their data. The first answer of a lone flow takes longer if data may have overtaken
    the acknowledgment that establishes the connection, downstream of a gateway with several routes
    (:meth:`HostTimes.made_by_data`). With several flows, the packet numbers at a host's link do not identify that
    packet. Applications of live runs fill their buffer before they are first notified, and so do these.
    """
    from anabranch.text.toml_text import write_key

    resolved = scenario.resolve()["resolved_scenario"]
    changed = scenario
    for node in _roles(resolved["flow"].values()):
        changed = changed.set(f"link.{write_key(_behind(node))}.between", [_behind(node), node])
    changed = with_written_buffers(changed, scenario)
    for name, flow in resolved["flow"].items():
        ends = {end: _behind(flow[end]) for end in ("from", "to")}
        for end, host in ends.items():
            changed = changed.set(f"flow.{write_key(name)}.{end}", host)
        for route, (first, last) in (("route", ("from", "to")), ("return_route", ("to", "from"))):
            if flow.get(route):
                changed = changed.set(f"flow.{write_key(name)}.{route}", [ends[first], *flow[route], ends[last]])
    return [_drawn(changed, resolved, times, number) for number in range(draws)]


def _readers(flows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The kind (:data:`READERS`) of each host at which data is read and not answered."""
    flows = list(flows)
    senders = {flow["from"] for flow in flows}
    return {flow["to"]: "beside a sender" if flow["to"] in senders else "alone" for flow in flows if _is_one_way(flow)}


def _has_many(flow: Mapping[str, Any]) -> bool:
    """Whether a flow has transfers one after the other, whose writer has not been measured."""
    return bool(_kind(flow["workload"]) == "poisson")


def _is_ours(node: str, resolved: Mapping[str, Any]) -> bool:
    """Whether this end of a live run has our own TCP, with the switches of the scenario."""
    return bool(resolved.get("host", {}).get(node, {}).get("tcp") == "own")


def _is_one_way(flow: Mapping[str, Any]) -> bool:
    return bool(flow["protocol"] == "tcp" and _kind(flow["workload"]) != "request-response")


def _kind(choice: Any) -> Any:
    return choice["kind"] if isinstance(choice, Mapping) else choice


def _firsts(resolved: Mapping[str, Any]) -> dict[str, int]:
    """By host of a lone flow whose first data may establish the connection: the number of the packet in answer."""
    flows = list(resolved["flow"].values())
    overtaken = {node for gateway in resolved.get("gateway", {}).values() for node in gateway["between"]}
    lone = len(flows) == 1 and flows[0]["count"] == 1 and _kind(flows[0]["workload"]) in ("bulk", "file")
    # The packet after the SYN-ACK.
    return {flows[0]["to"]: 1} if lone and flows[0]["to"] in overtaken else {}


def _behind(node: str) -> str:
    return f"{node}-host"


def _roles(flows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The role of each host. A host that sends and receives data counts as a sender, because it is mostly awake."""
    ends = [(flow["to"], "receiver") for flow in flows]
    return dict(ends + [(flow["from"], "sender") for flow in flows])


def _drawn(scenario: Scenario, resolved: Mapping[str, Any], times: HostTimes, number: int) -> Scenario:
    from anabranch.text.toml_text import write_key

    changed = scenario
    drawn = random.Random(number)  # noqa: S311 - a time, not a secret
    late_us: dict[float, int] = {}
    into_tick_us = drawn.randrange(TICK_US)
    flows = list(resolved["flow"].items())
    drawn.shuffle(flows)
    for name, flow in flows:
        start = float(quantity.seconds(flow["start"]))
        if start in late_us:
            late_us[start] += drawn.choice(times.next)
        else:
            late_us[start] = drawn.choice(times.beginnings)
        changed = changed.set(
            f"flow.{write_key(name)}.start", f"{start + (into_tick_us + late_us[start]) * 1e-6:.9f} s"
        )
    firsts = _firsts(resolved)
    told = {flow["from"] for _, flow in flows if flow["protocol"] == "tcp"}
    for node, role in _roles(resolved["flow"].values()).items():
        impair: list[Value] = [
            _jitter(drawn, table, after_pause=SAME_BURST if pause == 0 else f"{pause} ms")
            for pause, table in zip(PAUSES_MS, times.added(role), strict=True)
        ]
        if node in firsts:
            impair.append(_jitter(drawn, times.added_by_first_data(), packets=[firsts[node]]))
        late = "reverse" if role == "sender" and node in told else "forward"
        changed = changed.set(f"link.{write_key(_behind(node))}.{late}.impair", impair)
    for node in dict.fromkeys(flow["from"] for _, flow in flows if _is_one_way(flow) and not _has_many(flow)):
        changed = changed.set(f"host.{write_key(_behind(node))}.first_write_delays", _texts(drawn, times.first_data))
    for node, beside in _readers([flow for _, flow in flows]).items():
        changed = changed.set(f"host.{write_key(_behind(node))}.read_delays", _texts(drawn, times.until_read(beside)))
        if beside == READERS[0]:
            changed = changed.set(
                f"host.{write_key(_behind(node))}.idle_read_delays", _texts(drawn, times.until_idle_read())
            )
    return changed


def _jitter(drawn: random.Random, table: Sequence[int], **which: Value) -> Value:
    return {"kind": "jitter", "distribution": "table", "table": _texts(drawn, table), "reorder": False, **which}


def _texts(drawn: random.Random, table: Sequence[int]) -> list[str]:
    # In a shuffled list, the same draws of the seed give other delays; its other draws remain the same.
    return [f"{delay} us" for delay in drawn.sample(table, len(table))]
