"""Meanings of the names of results for ``anabranch explain``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from anabranch.result import measure_names
from anabranch.result.names import Part, names

BOTH = "both"
LIVE = "live"
SIMULATOR = "simulator"

_FIGURES_OF = {"flows": "flows.NAME", "links": "links.NAME.DIRECTION"}
"""Tables with the scalars of a part of the summary."""
_FIGURE = "A figure of a plan"


class Place(NamedTuple):
    """Where a name is.

    Attributes:
        where: In words: ``flows.NAME of the summary``.
        unit: Its unit, or the form of its value.
        meaning: Its description.
        engine: The engine that has it.
    """

    where: str
    unit: str
    meaning: str
    engine: str


@cache
def places() -> Mapping[str, list[Place]]:
    """Every place of every name: places in the summary first, then tables, then plans."""
    found: dict[str, list[Place]] = {}
    for part in names()["summary"]:
        title = part["title"]
        _add(found, part, "the summary" if title == "Summary" else f"{title} of the summary")
    for part in names()["tables"]:
        _add(found, part, f"table {part['title']}", columns(part["title"]))
    for part in names()["plan"]:
        title = "a figure" if part["title"] == _FIGURE else part["title"]
        _add(found, part, f"{title} of `gateway plan --json`")
    return found


def _add(found: dict[str, list[Place]], part: Part, where: str, only: list[str] | None = None) -> None:
    for name in part["keys"] if only is None else only:
        key = part["keys"][name]
        found.setdefault(name, []).append(Place(where, key["unit"], key["meaning"], key["engine"]))


def tables() -> Mapping[str, str]:
    """The tables of a run, and a description of each."""
    return {part["title"]: part["about"] for part in names()["tables"]}


def columns(table: str) -> list[str]:
    """The columns of a table that are not in the summary."""
    keys = next(part["keys"] for part in names()["tables"] if part["title"] == table)
    figures = [part["keys"] for part in names()["summary"] if part["title"] == _FIGURES_OF.get(table)]
    return [name for name in keys if not any(name in part for part in figures)]


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
