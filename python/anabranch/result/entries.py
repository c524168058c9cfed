"""Dictionaries of a run's summary: a key that is missing is reported with the nearest name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from anabranch.errors import UserError, nearest
from anabranch.result.measure_names import meant, near


class UnknownNameError(UserError, KeyError):
    """A dictionary lacks this key, or a table this column. The hint is the nearest name."""

    __str__ = UserError.__str__


class NoFigureError(UserError):
    """A flow has no such figure, because it ended before measurement began."""


class Entries(dict[str, Any]):
    """A dictionary whose missing keys are reported with the nearest name.

    Attributes:
        noun: The start of the message, which the missing key follows: ``the run has no flow``.
    """

    __slots__ = ("noun",)
    noun: str

    def __missing__(self, key: object) -> Any:
        noun = getattr(self, "noun", "there is no key")
        name = str(key)
        # For figures, suggest the measure that is meant, otherwise the nearest by spelling.
        found = meant(name, self)
        hint = f'did you mean "{found[0]}"?' if len(found) == 1 else near(name, self) if self else nearest(name, self)
        raise UnknownNameError(f'{noun} "{name}"', hint=hint)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class FlowEntries(Entries):
    """The figures of a flow of the simulator. Reading a rate that it does not have raises an error with the reason."""

    __slots__ = ("flow",)
    flow: str

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if value is None and key in _RATES:
            raise NoFigureError(
                f"flow {self.flow} has no {key}: it was over before the warm-up was",
                hint=f'flows["{self.flow}"].get("{key}") is None then',
            )
        return value


_RATES = ("goodput_mbit_s", "throughput_mbit_s")
_NOUNS = {
    "flows": "the run has no flow",
    "links": "the run has no link",
    "groups": "the run has no link group",
    "gateways": "the run has no gateway",
    "captures": "the run has no capture",
}


def read(text: str) -> Entries:
    """A summary whose dictionaries name the nearest key."""
    summary: Entries = json.loads(text, object_hook=Entries)
    summary.noun = "a summary has no key"
    for section, noun in _NOUNS.items():
        entries = summary.get(section)
        if not isinstance(entries, Entries):
            continue
        entries.noun = noun
        one = noun.rpartition(" ")[2]
        for entry in entries.values():
            entry.noun = f"a {one} has no figure"
            if section in ("links", "gateways"):
                entry.noun = f"a {one} has no direction"
                for direction in entry.values():
                    direction.noun = f"a direction of a {one} has no figure"
    if summary.get("engine") == "sim" and isinstance(flows := summary.get("flows"), Entries):
        for name, flow in flows.items():
            flows[name] = _of_simulator(name, flow)
    return summary


def section(summary: Mapping[str, Any], name: str) -> Entries:
    """The entries of a section; empty if the summary does not have it."""
    found = summary.get(name)
    if not isinstance(found, Entries):
        found = Entries(found or {})
        found.noun = _NOUNS[name]
    return found


def _of_simulator(name: str, flow: Mapping[str, Any]) -> FlowEntries:
    entries = FlowEntries(flow)
    entries.noun, entries.flow = "a flow has no figure", name
    return entries
