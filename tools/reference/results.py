"""The data dictionary: every column of a run's tables, every key of its summary.

Columns are those that the engine makes, keys those of the typed dictionaries; what each means stands in
`results.toml`. A column or key without a meaning, and a meaning of none, stop the generator.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from anabranch import Scenario, toml_text
from anabranch.gateway import document
from anabranch.result import TABLES
from anabranch.summary import LiveRunSummary, Summary

from reference.markdown import NOTICE, code, table

MEANINGS = Path(__file__).with_suffix(".toml")
BOTH = "both"
LIVE = "live"
SIMULATOR = "simulator"

INTRODUCTION = """\
A run gives a summary, which is one JSON document, and tables. `RunResult.summary` and `anabranch run --json` have the
summary; `RunResult.table` and the Parquet files of `--out` (CSV without Polars) have the tables. A figure that does not
apply is null, never 0. The last column says which engine has it: the simulator, live runs, or both. Rates and shares
count from the later of the flow's start and the warm-up to the flow's end.
"""

PLAN = """\
`anabranch gateway plan --json` prints this document ([guide](../guides/gateway-plan.md)).
"""

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
"""The unit that the end of a name says."""

_WORDS = {int: "count", float: "number", str: "text", bool: "yes or no"}


class Meaning(NamedTuple):
    """What is said of a column or key."""

    text: str
    engine: str
    unit: str | None


def page() -> str:
    """Return the page."""
    meanings = toml_text.parse(MEANINGS.read_text("utf-8"), MEANINGS.name)
    out = [NOTICE, "# Results\n", INTRODUCTION, "## Tables\n"]
    for name, columns in table_columns().items():
        told = {**_shared(name, meanings), **meanings["tables"].get(name, {})}
        out += [f"### Table {name}\n", f"{meanings['about'][name]}\n"]
        out.append(_rows("column", f"tables.{name}", columns, told))
    out.append("## Summary\n")
    for path, keys in summary_keys():
        out += [f"### {path.title}\n", _rows("key", f"keys.{path.kind}", keys, meanings["keys"].get(path.kind, {}))]
    out += ["## Plan of a gateway\n", PLAN]
    for title, kind in PLAN_PARTS:
        forms = {key: _form(hint) for key, hint in typing.get_type_hints(kind).items()}
        name = kind.__name__
        out += [f"### {title}\n", _rows("key", f"keys.{name}", forms, meanings["keys"].get(name, {}))]
    return "\n".join(out)


class Section(NamedTuple):
    """A part of the summary: how one gets there, and the typed dictionary's name."""

    title: str
    kind: str


def table_columns() -> dict[str, dict[str, str]]:
    """Return the form of every column, by table and name."""
    result = (
        Scenario("Columns", duration="0.1 s")
        .link("a", between=("S", "R"), rate="1 Mbit/s", delay="1 ms")
        .flow("main", source="S", target="R")
        .run(samples_ms=10, packets=True)
    )
    return {name: {c: _polars(t) for c, t in result.frame(name).schema.items()} for name in TABLES}


def summary_keys() -> Iterator[tuple[Section, dict[str, str]]]:
    """Yield every part of the summary with the forms of its keys; what only live runs have comes last."""
    yield from _parts("Summary", Summary)
    own = _own_hints(LiveRunSummary)
    yield Section("Summary of a live run", LiveRunSummary.__name__), {key: _form(hint) for key, hint in own.items()}
    for key, hint in own.items():
        for title, kind in _inside(key, hint):
            yield from _parts(title, kind)


def _parts(title: str, kind: type) -> Iterator[tuple[Section, dict[str, str]]]:
    hints = typing.get_type_hints(kind)
    yield Section(title, kind.__name__), {key: _form(hint) for key, hint in hints.items()}
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


def _form(hint: Any) -> str:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        forms = [_form(one) for one in typing.get_args(hint) if one is not type(None)]
        return " or ".join([*forms, "null"])
    if typing.get_origin(hint) is list:
        return f"list of {_form(typing.get_args(hint)[0])}"
    return _WORDS.get(hint, "table")


def _polars(kind: Any) -> str:
    if kind.is_integer():
        return "count"
    if kind.is_float():
        return "number"
    return "yes or no" if str(kind) == "Boolean" else "text"


def _shared(name: str, meanings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the meanings that a table takes from the summary's keys."""
    kinds = {"flows": "FlowSummary", "links": "LinkSummary"}
    if name not in kinds:
        return {}
    columns = table_columns()[name]
    return {key: meaning for key, meaning in meanings["keys"][kinds[name]].items() if key in columns}


def _rows(head: str, place: str, forms: Mapping[str, str], told: Mapping[str, Any]) -> str:
    if missing := sorted(set(forms) - set(told)):
        raise SystemExit(f"{MEANINGS.name}: [{place}] does not say what {', '.join(missing)} means")
    if unknown := sorted(set(told) - set(forms)):
        raise SystemExit(f"{MEANINGS.name}: [{place}] has {', '.join(unknown)}, and the results have not")
    rows = []
    for name, form in forms.items():
        meaning = _meaning(told[name], _engine(place))
        rows.append((code(name), _unit(name, form, meaning), meaning.text, meaning.engine))
    return table((head, "unit", "meaning", "engine"), rows)


def _engine(place: str) -> str:
    if place.startswith("keys.Plan"):
        return SIMULATOR
    return LIVE if place.startswith(("keys.Live", "keys.Datagram")) else BOTH


def _meaning(given: Any, engine: str) -> Meaning:
    if isinstance(given, str):
        return Meaning(given, engine, None)
    return Meaning(given["meaning"], given.get("engine", engine), given.get("unit"))


def _unit(name: str, form: str, meaning: Meaning) -> str:
    if meaning.unit is not None:
        return meaning.unit
    if form.removesuffix(" or null") in ("count", "number"):
        for ending, unit in UNITS.items():
            if name.endswith(ending):
                return unit
    return form.removesuffix(" or null")
