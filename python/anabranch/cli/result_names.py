"""Meanings of the names of results: keys of a run's summary, columns of its tables, keys of a plan.

The texts are in ``results.toml``. The reference and ``anabranch explain`` use them.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from anabranch.gateway import document
from anabranch.result import measure_names
from anabranch.result.summary import LiveRunSummary, Summary
from anabranch.text import toml_text

FILE = Path(__file__).parents[1] / "results.toml"
BOTH = "both"
LIVE = "live"
SIMULATOR = "simulator"

PLAN_PARTS: tuple[tuple[str, type], ...] = (
    ("plan", document.PlanDocument),
    ("plan.paths.NAME", document.PlanPath),
    ("plan.paths.NAME.DIRECTION", document.PlanSide),
    ("plan.directions.DIRECTION", document.PlanDirection),
    ("plan.directions.DIRECTION.one_flow, many_flows", document.PlanComparison),
    ("together, alone.NAME", document.PlanGoodput),
    ("together.response_ms, alone.NAME.response_ms", document.PlanResponse),
    ("failover.NAME", document.PlanFailover),
    ("plan.directions.DIRECTION.classes.NAME, no_class", document.PlanClass),
    ("classes.NAME.call, no_class.call", document.PlanCall),
    ("classes.NAME.failover.NAME, no_class.failover.NAME", document.PlanCallFailover),
    ("A figure of a plan", document.PlanFigure),
)
"""The parts of a plan's document: their titles, and the typed dictionaries."""

UNITS = {
    "_mbit_s": "Mbit/s",
    "_ms": "ms",
    "_s": "s",
    "_bytes": "bytes",
    "_packets": "packets",
    "_share": "ratio (0‥1)",
    "_ratio": "ratio (0‥1)",
    "_rate": "ratio (0‥1)",
}
"""The unit that the end of a name indicates."""

_WORDS = {int: "count", float: "number", str: "text", bool: "yes or no"}


class Meaning(NamedTuple):
    """Description of a column or key."""

    text: str
    engine: str
    unit: str | None


class Place(NamedTuple):
    """Where a name is.

    Attributes:
        where: In words: ``flows.NAME of the summary``.
        unit: Its unit, or the form of its value.
        meaning: Its description, and the engine that has it.
    """

    where: str
    unit: str
    meaning: Meaning


@cache
def meanings() -> dict[str, Any]:
    """The content of ``results.toml``."""
    return toml_text.parse(FILE.read_text("utf-8"), FILE.name)


@cache
def places() -> Mapping[str, list[Place]]:
    """Every place of every name: places in the summary first, then tables, then plans."""
    found: dict[str, list[Place]] = {}
    for section, forms in summary_keys():
        where = "the summary" if section.kind in ("Summary", "LiveRunSummary") else f"{section.title} of the summary"
        _add(found, f"keys.{section.kind}", section.kind, forms, where)
    for table, columns in meanings()["tables"].items():
        forms = {name: "number" if name.endswith(tuple(UNITS)) else "" for name in columns}
        for name, given in columns.items():
            meaning = meaning_of(given, BOTH)
            found.setdefault(name, []).append(Place(f"table {table}", unit_of(name, forms[name], meaning), meaning))
    for title, kind in PLAN_PARTS:
        forms = {key: form(hint) for key, hint in typing.get_type_hints(kind).items()}
        where = (
            "a figure of `gateway plan --json`" if kind is document.PlanFigure else f"{title} of `gateway plan --json`"
        )
        _add(found, f"keys.{kind.__name__}", kind.__name__, forms, where)
    return found


def _add(found: dict[str, list[Place]], place: str, kind: str, forms: Mapping[str, str], where: str) -> None:
    known = meanings()["keys"].get(kind, {})
    for name, shape in forms.items():
        if name in known:
            meaning = meaning_of(known[name], engine_of(place))
            found.setdefault(name, []).append(Place(where, unit_of(name, shape, meaning), meaning))


def tables() -> Mapping[str, str]:
    """The tables of a run, and a description of each."""
    about: Mapping[str, str] = meanings()["about"]
    return about


def named(written: str) -> list[str]:
    """The names of results for a name or short name: measures if there are any, otherwise keys and columns."""
    head, dot, last = written.partition(".")[0], "." in written, written.rpartition(".")[2]
    if dot:
        found = measure_names.meant(last, measure_names.catalogue().get(head.removesuffix("s"), ()))
        return list(dict.fromkeys(name.rpartition(".")[2] for name in found))
    measures = [name for names in measure_names.catalogue().values() for name in names]
    found = measure_names.meant(last, measures)
    if last in places():
        # A name may be short for another one as well.
        return list(dict.fromkeys([last, *(found if len(found) == 1 else [])]))
    found = found or measure_names.meant(last, places())
    return list(dict.fromkeys(name.rpartition(".")[2] for name in found))


def short_names(name: str) -> list[str]:
    """The short names of this measure alone; none if the name is no measure."""
    measures = [one for names in measure_names.catalogue().values() for one in names]
    if name not in measures:
        return []
    words = [measure_names.without_unit(name), measure_names.quantity(name), *measure_names.WORDS]
    return [word for word in dict.fromkeys(words) if word != name and measure_names.meant(word, measures) == [name]]


class Section(NamedTuple):
    """A part of the summary: the path to it, and the typed dictionary's name."""

    title: str
    kind: str


def summary_keys() -> Iterator[tuple[Section, dict[str, str]]]:
    """Every part of the summary with the forms of its keys; keys of live runs alone come last."""
    yield from _parts("Summary", Summary)
    own = _own_hints(LiveRunSummary)
    yield Section("Summary of a live run", LiveRunSummary.__name__), {key: form(hint) for key, hint in own.items()}
    for key, hint in own.items():
        for title, kind in _inside(key, hint):
            yield from _parts(title, kind)


def _parts(title: str, kind: type) -> Iterator[tuple[Section, dict[str, str]]]:
    hints = typing.get_type_hints(kind)
    yield Section(title, kind.__name__), {key: form(hint) for key, hint in hints.items()}
    for key, hint in hints.items():
        for path, inner in _inside(key, hint):
            yield from _parts(path if title == "Summary" else f"{title}.{path}", inner)


def _own_hints(kind: Any) -> dict[str, Any]:
    inherited = set(typing.get_type_hints(Summary))
    return {key: hint for key, hint in typing.get_type_hints(kind).items() if key not in inherited}


def _inside(path: str, hint: Any) -> Iterator[tuple[str, type]]:
    """Yield the typed dictionaries in a type, and the path to each."""
    if typing.is_typeddict(hint):
        yield path, hint
    elif typing.get_origin(hint) is dict:
        names = f"{path}.DIRECTION" if path.endswith(".NAME") else f"{path}.NAME"
        yield from _inside(names, typing.get_args(hint)[1])
    elif typing.get_origin(hint) is list:
        yield from _inside(f"{path}[]", typing.get_args(hint)[0])
    elif typing.get_args(hint):
        for one in typing.get_args(hint):
            yield from _inside(path, one)


def form(hint: Any) -> str:
    """The form of a value: text, a number, a table or others."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        forms = [form(one) for one in typing.get_args(hint) if one is not type(None)]
        return " or ".join([*forms, "null"])
    if typing.get_origin(hint) is list:
        return f"list of {form(typing.get_args(hint)[0])}"
    return _WORDS.get(hint, "table")


def engine_of(place: str) -> str:
    """The engine that all keys of a part of ``results.toml`` have by default."""
    if place.startswith("keys.Plan"):
        return SIMULATOR
    return LIVE if place.startswith(("keys.Live", "keys.Datagram")) else BOTH


def meaning_of(given: Any, engine: str) -> Meaning:
    """An entry of ``results.toml``; ``engine`` applies if it names none."""
    if isinstance(given, str):
        return Meaning(given, engine, None)
    return Meaning(given["meaning"], given.get("engine", engine), given.get("unit"))


def unit_of(name: str, form: str, meaning: Meaning) -> str:
    """The unit of a value, or its form if it has no unit."""
    if meaning.unit is not None:
        return meaning.unit
    if form.removesuffix(" or null") in ("count", "number"):
        for ending, unit in UNITS.items():
            if name.endswith(ending):
                return unit
    return form.removesuffix(" or null")
