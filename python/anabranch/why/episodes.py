"""Episodes: the events and retransmissions of one recovery, timeout or probe, flow by flow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from anabranch.errors import UserError
from anabranch.why.retransmissions import COLUMNS as ROW_COLUMNS
from anabranch.why.retransmissions import Retransmission, retransmissions
from anabranch.why.window import AFTERWARDS, BEGINS, ENDS, WindowEvent, window_events
from anabranch.why.window import COLUMNS as EVENT_COLUMNS

if TYPE_CHECKING:
    from anabranch.result.table import Table

Row: TypeAlias = "dict[str, float | int | str | bool | None]"
"""A record of a table."""

OUTSIDE = "outside a recovery"
"""The episode of retransmissions without a recovery, mostly tail loss probes."""
OPENING = "opening"
"""The episode of retransmitted SYNs and SYN-ACKs."""


class CauseJson(TypedDict):
    """Retransmissions by one cause."""

    retransmissions: int
    needless: int


class CountsJson(TypedDict):
    """Numbers of retransmissions."""

    retransmissions: int
    needed: int
    needless: int


class EpisodeJson(CountsJson):
    """An episode in the JSON of ``anabranch run --why``."""

    kind: str
    start_s: float
    end_s: float
    window_events: list[Row]
    packets: list[Row]


class FlowJson(CountsJson):
    """A flow in the JSON of ``anabranch run --why``."""

    causes: dict[str, CauseJson]
    episodes: list[EpisodeJson]


@dataclass(slots=True)
class Episode:
    """One recovery, timeout, restart or probe: its retransmissions and window events, each by time."""

    kind: str
    events: list[WindowEvent] = field(default_factory=list)
    retransmissions: list[Retransmission] = field(default_factory=list)

    @property
    def start_s(self) -> float:
        """The time of the first event or retransmission."""
        return min(items[0].time_s for items in (self.events, self.retransmissions) if items)

    @property
    def end_s(self) -> float:
        """The time of the last event or retransmission."""
        return max(items[-1].time_s for items in (self.events, self.retransmissions) if items)

    def timeline(self) -> list[WindowEvent | Retransmission]:
        """All events and retransmissions in order of time."""
        return in_order(self.events, self.retransmissions)

    @property
    def needed(self) -> int:
        """Number of needed retransmissions."""
        return sum(again.needed is True for again in self.retransmissions)

    @property
    def needless(self) -> int:
        """Number of spurious retransmissions."""
        return sum(again.needed is False for again in self.retransmissions)


@dataclass(frozen=True)
class FlowWhy:
    """All retransmissions of a flow."""

    flow: str
    episodes: tuple[Episode, ...]

    @property
    def retransmissions(self) -> list[Retransmission]:
        """All retransmissions, in order."""
        return [again for episode in self.episodes for again in episode.retransmissions]

    def by_cause(self) -> dict[str, tuple[int, int]]:
        """Number of retransmissions and of spurious ones by cause; the most frequent cause comes first."""
        all_ = Counter(again.cause for again in self.retransmissions)
        needless = Counter(again.cause for again in self.retransmissions if again.needed is False)
        return {cause: (count, needless[cause]) for cause, count in all_.most_common()}


@dataclass(frozen=True)
class Why:
    """The retransmissions of all flows of a run; flows without any are left out."""

    flows: tuple[FlowWhy, ...]

    def document(self) -> dict[str, FlowJson]:
        """As JSON values, by flow."""
        return {flow.flow: _flow(flow) for flow in self.flows}


def in_order(events: Sequence[WindowEvent], again: Sequence[Retransmission]) -> list[WindowEvent | Retransmission]:
    """Events and retransmissions by time.

    Events come before the retransmissions of the same instant: one acknowledgment or timer causes both, and its effect
    on the window permits the retransmissions.
    """
    timeline: list[WindowEvent | Retransmission] = [*events, *again]
    # The sort is stable: events stay first.
    timeline.sort(key=attrgetter("time_s"))
    return timeline


def inspect(table: Table, events: Table | None) -> Why:
    """Explain every retransmission of a run.

    Args:
        table: The table ``retransmissions``.
        events: The table ``window_events``; ``None`` if there is none.

    Raises:
        UserError: A table or a column is missing, so the run does not contain the causes.
    """
    missing = [f'column "{name}" of table "retransmissions"' for name in ROW_COLUMNS if name not in table.columns]
    if events is None:
        missing.append('table "window_events"')
    else:
        missing += [f'column "{name}" of table "window_events"' for name in EVENT_COLUMNS if name not in events.columns]
    if missing or events is None:
        raise UserError(
            f"this run does not say why packets were retransmitted: there is no {', no '.join(missing)}",
            hint="the engine has to record both; install the one that belongs to this version of the package",
        )
    again: dict[str, list[Retransmission]] = {}
    for item in retransmissions(table):
        again.setdefault(item.flow, []).append(item)
    windows = window_events(events)
    names = dict.fromkeys([*again, *windows])
    return Why(tuple(FlowWhy(name, tuple(_episodes(windows.get(name, []), again.get(name, [])))) for name in names))


def _episodes(events: Sequence[WindowEvent], again: Sequence[Retransmission]) -> list[Episode]:
    """Divide the events and retransmissions of a flow into episodes."""
    episodes: list[Episode] = []
    is_open = False
    for item in in_order(events, again):
        if isinstance(item, Retransmission):
            if not is_open and not (episodes and _goes_on(episodes[-1], item)):
                episodes.append(Episode(OPENING if item.is_syn else OUTSIDE))
            episodes[-1].retransmissions.append(item)
            continue
        if item.event in BEGINS:
            kind = BEGINS[item.event]
            # A timer that expires repeatedly is one timeout.
            if not (is_open and kind == episodes[-1].kind == BEGINS["rto"]):
                episodes.append(Episode(kind))
            is_open = True
        elif not is_open and not (episodes and item.event in AFTERWARDS):
            episodes.append(Episode(item.event))
        episodes[-1].events.append(item)
        if item.event == ENDS:
            is_open = False
    return episodes


def _goes_on(episode: Episode, again: Retransmission) -> bool:
    """Whether a retransmission outside a recovery continues an episode: at the same time, for the same reason.

    All SYNs of a connection belong together.
    """
    if again.is_syn or episode.kind == OPENING:
        return again.is_syn and episode.kind == OPENING
    last = episode.retransmissions[-1] if episode.kind == OUTSIDE else None
    return last is not None and (last.time_s, last.cause) == (again.time_s, again.cause)


def _flow(flow: FlowWhy) -> FlowJson:
    return {
        **_counts(flow.retransmissions),
        "causes": {cause: {"retransmissions": n, "needless": m} for cause, (n, m) in flow.by_cause().items()},
        "episodes": [_episode(episode) for episode in flow.episodes],
    }


def _episode(episode: Episode) -> EpisodeJson:
    told = [asdict(again) for again in episode.retransmissions]
    for again in told:
        del again["flow"]
    return {
        "kind": episode.kind,
        "start_s": episode.start_s,
        "end_s": episode.end_s,
        **_counts(episode.retransmissions),
        "window_events": [asdict(event) for event in episode.events],
        "packets": told,
    }


def _counts(again: Sequence[Retransmission]) -> CountsJson:
    return {
        "retransmissions": len(again),
        "needed": sum(item.needed is True for item in again),
        "needless": sum(item.needed is False for item in again),
    }
