"""A candidate: a path and a list of events. Drawn, changed and crossed by one random generator."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from random import Random
from typing import Any, Literal

from anabranch.stress.bounds import FIRST_MS, KINDS, LAST_MS, MOST_EVENTS, PATH, Place, Range

Company = Literal["alone", "twin", "neighbour"]
"""The other long flow: none, one of the same control, or one of the reference control."""

_SMALL_STEP, _LARGE_STEP = 0.15, 0.6
_TIME_STEP_MS = 400


@dataclass(frozen=True, order=True)
class Event:
    """An event.

    Attributes:
        at: Its start in milliseconds.
        kind: Its kind, a key of ``KINDS``.
        length: Its length in milliseconds; 0: until the end of the run. Of ``pulses``: the length of a burst.
        size: Its size, in the unit of its kind.
        period: Its period in milliseconds; of ``ack-ratio``: the longest delay of an acknowledgment; 0 for most kinds.
        place: The link.
    """

    at: int
    kind: str
    length: int
    size: float
    period: int
    place: Place

    @property
    def lasts(self) -> bool:
        """Whether it lasts until the end of the run."""
        return self.length == 0 or KINDS[self.kind].lasting == "always"

    @property
    def end(self) -> int:
        """The time of its last change in milliseconds."""
        return self.at if self.lasts else self.at + self.length


@dataclass(frozen=True)
class Genome:
    """A path and its events.

    Attributes:
        rate: Rate of the bottleneck in Mbit/s.
        delay: One-way delay of the bottleneck in milliseconds.
        buffer: Buffer of the bottleneck in bandwidth-delay products.
        company: The other long flow.
        events: The events, in order of time.
    """

    rate: float
    delay: float
    buffer: float
    company: Company
    events: tuple[Event, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its events, sorted, each once."""
        return tuple(sorted({event.kind for event in self.events}))

    def to_json(self) -> dict[str, Any]:
        """The form in state files."""
        return asdict(self)

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Genome:
        """The inverse of :meth:`to_json`."""
        return cls(**{**entry, "events": tuple(Event(**event) for event in entry["events"])})

    @property
    def key(self) -> str:
        """A text that equals that of an equal genome."""
        return json.dumps(self.to_json(), sort_keys=True)


_SETS: Mapping[str, str] = {
    "outage": "access", "ack-gap": "access", "ack-hold": "acknowledgments", "aggregation": "acknowledgments",
    "hold": "data", "rate": "rate", "loss": "loss", "ack-loss": "ack-loss", "reordering": "reordering",
}  # fmt: skip
"""Kind of event → the setting that it changes, and puts back at its end."""

_SHARED: Mapping[str, str] = {"outage": "bottleneck", "hold": "rate"}
"""The same of events at the bottleneck, where it differs."""


def clash(one: Event, other: Event) -> bool:
    """Whether the end of one event undoes the other, because both change one setting at the same time."""
    if _setting(one) != _setting(other) or not _setting(one):
        return False
    first, second = sorted((one, other), key=lambda event: event.at)
    if first.lasts and second.lasts:
        # The second change replaces the first.
        return first.at == second.at
    return first.lasts or second.at <= first.end


def is_clear(events: Sequence[Event]) -> bool:
    """Whether no event undoes another."""
    return not any(clash(one, other) for one, other in combinations(events, 2))


def _setting(event: Event) -> str:
    if event.kind == "delay":
        return f"delay {event.place}"
    if event.place == "shared" and event.kind in _SHARED:
        return _SHARED[event.kind]
    return _SETS.get(event.kind, "")


def rounded(value: float, digits: int = 3) -> float:
    """A value with this number of significant digits."""
    return float(f"{value:.{digits}g}")


def with_path(genome: Genome, name: str, value: float) -> Genome:
    """The genome with another rate, delay or buffer."""
    changes: dict[str, Any] = {name: value}
    return replace(genome, **changes)


def _draw(random: Random, bound: Range) -> float:
    if bound.low == bound.high:
        return bound.low
    if bound.is_log:
        return rounded(math.exp(random.uniform(math.log(bound.low), math.log(bound.high))))
    return rounded(random.uniform(bound.low, bound.high))


def _step(random: Random, value: float, bound: Range) -> float:
    if bound.low == bound.high:
        return bound.low
    scale = _SMALL_STEP if random.random() < 0.5 else _LARGE_STEP
    return rounded(bound.clipped(value * math.exp(random.gauss(0, scale))))


@dataclass(frozen=True)
class Space:
    """The candidates of a goal.

    Attributes:
        companies: Possible companies; one that occurs more often is more likely.
        kinds: Possible kinds of events.
        needs: Kinds of which each candidate has one.
        passes: Whether all events end.
    """

    companies: tuple[Company, ...]
    kinds: tuple[str, ...]
    needs: tuple[str, ...] = ()
    passes: bool = False


def space(companies: tuple[Company, ...], kinds: Sequence[str], needs: tuple[str, ...], *, passes: bool) -> Space:
    """The candidates of a goal, without kinds that it excludes."""
    allowed = [kind for kind in (*kinds, *needs) if not (passes and KINDS[kind].lasting == "always")]
    return Space(companies, tuple(dict.fromkeys(allowed)), needs, passes)


def draw_event(random: Random, kinds: Sequence[str], *, passes: bool = False) -> Event:
    """A random event of one of these kinds."""
    name = random.choice(kinds)
    kind = KINDS[name]
    length = 0
    if kind.length is not None and (passes or not (kind.lasting == "also" and random.random() < 0.5)):
        length = int(_draw(random, kind.length))
    return Event(
        at=random.randrange(FIRST_MS, LAST_MS + 1, 10),
        kind=name,
        length=length,
        size=_draw(random, kind.size),
        period=int(_draw(random, kind.period)) if kind.period is not None else 0,
        place=random.choice(kind.places),
    )


def draw(random: Random, of: Space) -> Genome:
    """A random candidate."""
    events = [draw_event(random, [kind], passes=of.passes) for kind in of.needs]
    # One or two events suffice for most finds.
    events += [draw_event(random, of.kinds, passes=of.passes) for _ in range(random.choice((1, 1, 2, 2, 3, 4)))]
    path = {name: _draw(random, bound.range) for name, bound in PATH.items()}
    return _valid(Genome(**path, company=random.choice(of.companies), events=tuple(events)), of.needs)


def mutate(random: Random, parent: Genome, of: Space) -> Genome:
    """A changed copy, with one to three changes."""
    child = parent
    for _ in range(random.choice((1, 1, 2, 3))):
        child = _changed(random, child, of)
    return _valid(child, of.needs)


def cross(random: Random, one: Genome, other: Genome, of: Space) -> Genome:
    """The path of one candidate with events of both."""
    pool = [event for event in (*one.events, *other.events) if event.kind in of.kinds]
    if of.passes:
        pool = [event for event in pool if not event.lasts]
    events = random.sample(pool, min(len(pool), random.randint(1, MOST_EVENTS)))
    return _valid(replace(one, events=tuple(events)), of.needs, pool)


def _changed(random: Random, genome: Genome, of: Space) -> Genome:
    choice = random.random()
    events = list(genome.events)
    if choice < 0.2 or not events:
        events.append(draw_event(random, of.kinds, passes=of.passes))
    elif choice < 0.32:
        events.pop(random.randrange(len(events)))
    elif choice < 0.75:
        place = random.randrange(len(events))
        events[place] = _changed_event(random, events[place], passes=of.passes)
    elif choice < 0.8:
        return replace(genome, company=random.choice(of.companies))
    else:
        name = random.choice(list(PATH))
        return with_path(genome, name, _step(random, getattr(genome, name), PATH[name].range))
    return replace(genome, events=tuple(events))


def _changed_event(random: Random, event: Event, *, passes: bool) -> Event:
    kind = KINDS[event.kind]
    what = random.choice(("at", "length", "size", "period", "place"))
    if what == "length" and kind.length is not None:
        if kind.lasting == "also" and not passes and random.random() < 0.2:
            return replace(event, length=0 if event.length else int(_draw(random, kind.length)))
        return replace(event, length=int(_step(random, event.length or kind.length.high, kind.length)))
    if what == "size" and kind.size.low < kind.size.high:
        return replace(event, size=_step(random, event.size, kind.size))
    if what == "period" and kind.period is not None:
        return replace(event, period=int(_step(random, event.period, kind.period)))
    if what == "place" and len(kind.places) > 1:
        return replace(event, place=random.choice(kind.places))
    at = event.at + round(random.gauss(0, _TIME_STEP_MS if random.random() < 0.5 else _TIME_STEP_MS / 20))
    return replace(event, at=min(LAST_MS, max(FIRST_MS, at)))


def _valid(genome: Genome, needs: Sequence[str], pool: Sequence[Event] = ()) -> Genome:
    """The candidate with permitted numbers of events, none of which undoes another, and with the kinds it needs."""
    kept: list[Event] = []
    required = list(needs)
    # Events of needed kinds come first, so that the limit removes others.
    for event in sorted(genome.events, key=lambda event: (event.kind not in required, event)):
        same = sum(other.kind == event.kind for other in kept)
        if same < KINDS[event.kind].most and len(kept) < MOST_EVENTS and not any(clash(event, one) for one in kept):
            kept.append(event)
    for kind in required:
        if all(event.kind != kind for event in kept):
            kept += [event for event in pool if event.kind == kind][:1]
    return replace(genome, events=tuple(sorted(kept)))
