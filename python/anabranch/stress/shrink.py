"""Shrinks a find: fewer events, plain numbers, no company, as long as it stays a find."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from anabranch.stress.bounds import KINDS, PATH
from anabranch.stress.genome import Event, Genome, is_clear, rounded, with_path

if TYPE_CHECKING:
    from anabranch.stress.goals import Goal
    from anabranch.stress.judge import Judge

_FIELDS = ("at", "length", "size", "period")
_PLAIN_PATH = {"rate": (10.0,), "delay": (20.0,), "buffer": (1.0,)}


def shrink(genome: Genome, goal: Goal, judge: Judge, floor: float = 1.0) -> Genome:
    """The smallest find that removal and rounding reach with at least this score. Deterministic."""
    genome = _fewer(genome, goal, judge, floor)
    if genome.company != "alone" and "alone" in goal.companies:
        genome = _first(genome, [replace(genome, company="alone")], goal, judge, floor)
    for name, plain in _PLAIN_PATH.items():
        value, bound = getattr(genome, name), PATH[name].range
        values = [*plain, rounded(value, 1), rounded(value, 2)]
        options = [with_path(genome, name, one) for one in values if bound.low <= one <= bound.high]
        genome = _first(genome, options, goal, judge, floor)
    place = 0
    while place < len(genome.events):
        for field in _FIELDS:
            changed = [_with(genome, place, event) for event in _rounder(genome.events[place], field)]
            genome = _first(genome, changed, goal, judge, floor)
        place += 1
    return _fewer(replace(genome, events=tuple(sorted(genome.events))), goal, judge, floor)


def _fewer(genome: Genome, goal: Goal, judge: Judge, floor: float) -> Genome:
    """Remove events one at a time, each time the one whose removal leaves the highest score."""
    while genome.events:
        fewer = [replace(genome, events=genome.events[:k] + genome.events[k + 1 :]) for k in range(len(genome.events))]
        scores = judge.scores([(goal, one) for one in fewer])
        best = max(range(len(fewer)), key=lambda k: (scores[k], -k))
        if scores[best] < floor:
            return genome
        genome = fewer[best]
    return genome


def _first(genome: Genome, options: list[Genome], goal: Goal, judge: Judge, floor: float) -> Genome:
    """The first option that is a find, else the genome itself."""
    options = [one for one in dict.fromkeys(options) if one != genome and is_clear(one.events)]
    if not options:
        return genome
    scores = judge.scores([(goal, one) for one in options])
    return next((one for one, score in zip(options, scores, strict=True) if score >= floor), genome)


def _with(genome: Genome, place: int, event: Event) -> Genome:
    # The order stays until the end, so that the places of events do not move.
    return replace(genome, events=(*genome.events[:place], event, *genome.events[place + 1 :]))


def _rounder(event: Event, field: str) -> list[Event]:
    """Forms of an event with a plainer value of this field, the plainest first."""
    kind = KINDS[event.kind]
    if field == "at":
        return [replace(event, at=at) for at in (3_000, round(event.at, -3), round(event.at, -2))]
    if field == "size":
        sizes = [rounded(event.size, digits) for digits in (1, 2)]
        return [replace(event, size=size) for size in sizes if kind.size.low <= size <= kind.size.high]
    is_length = field == "length"
    bound, value = (kind.length, event.length) if is_length else (kind.period, event.period)
    if bound is None or not value:
        return []
    values = [int(rounded(value, digits)) for digits in (1, 2)]
    values = [one for one in values if bound.low <= one <= bound.high]
    return [replace(event, length=one) if is_length else replace(event, period=one) for one in values]
