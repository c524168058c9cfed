"""The data dictionary: every column of a run's tables, every key of its summary.

The columns come from the engine and the keys from the typed dictionaries. The meanings come from
the package's `results.toml`, which `anabranch explain` also reads. The generator stops at a column
or key without a meaning, and at a meaning without a column or key.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

from anabranch import Scenario
from anabranch.cli.result_names import (
    FILE,
    PLAN_PARTS,
    engine_of,
    form,
    meaning_of,
    meanings,
    short_names,
    summary_keys,
    unit_of,
)
from anabranch.result.measure_names import WORDS, catalogue, meant
from anabranch.result.result import TABLES

from reference.markdown import NOTICE, code, table

INTRODUCTION = """\
A run gives a summary, which is one JSON document, and tables. `RunResult.summary` and `anabranch run --json` have the
summary; `RunResult.table` and the Parquet files of `--out` (CSV without Polars) have the tables. A figure that does not
apply is null, never 0. The last column says which engine has it: the simulator, live runs, or both. Rates and shares
count from the later of the flow's start and the warm-up to the flow's end.
"""

SHORT = """\
A measure may be called by a short name wherever a figure is named: `compare --measure`, `sweep --until` and
`--refine`, `plot(y=…)`, `SweepResult.table`, `estimates` and `column`, `RunResult[…]`, and `path` and `column` in a
study. Its name without the unit will do, and without the statistic too: of several statistics of one quantity it is the
one that tables show by default, else the mean. The flow, link, group or gateway may be put in front: `main.goodput`,
`bottleneck.forward.queue_delay`. A short name that fits several quantities is refused with all of them.
"""

PLAN = """\
`anabranch gateway plan --json` prints this document ([guide](../guides/gateway-plan.md)).
"""


def page() -> str:
    """Return the page."""
    known = meanings()
    out = [NOTICE, "# Results\n", INTRODUCTION, "## Tables\n"]
    for name, columns in table_columns().items():
        told = {**_shared(name, known), **known["tables"].get(name, {})}
        out += [f"### Table {name}\n", f"{known['about'][name]}\n"]
        out.append(_rows("column", f"tables.{name}", columns, told))
    out.append("## Summary\n")
    for path, keys in summary_keys():
        out += [f"### {path.title}\n", _rows("key", f"keys.{path.kind}", keys, known["keys"].get(path.kind, {}))]
    out += ["## Short names\n", SHORT, _short_names()]
    out += ["## Plan of a gateway\n", PLAN]
    for title, kind in PLAN_PARTS:
        forms = {key: form(hint) for key, hint in typing.get_type_hints(kind).items()}
        name = kind.__name__
        out += [f"### {title}\n", _rows("key", f"keys.{name}", forms, known["keys"].get(name, {}))]
    return "\n".join(out)


def _short_names() -> str:
    """Return a table of short names, their meanings and the ambiguous ones."""
    measures = list(dict.fromkeys(name for names in catalogue().values() for name in names))
    rows = [(code(short), code(name)) for name in measures for short in short_names(name)]
    rows += [
        (code(word), f"ambiguous: {', '.join(map(code, found))}")
        for word in WORDS
        if len(found := meant(word, measures)) > 1
    ]
    return table(("short name", "measure"), sorted(rows))


def table_columns() -> dict[str, dict[str, str]]:
    """Return the form of every column, by table and name."""
    result = (
        Scenario("Columns", duration="0.1 s")
        .link("a", between=("S", "R"), rate="1 Mbit/s", delay="1 ms")
        .flow("main", source="S", target="R")
        .run(samples_ms=10, packets=True)
    )
    return {name: {c: _polars(t) for c, t in result.frame(name).schema.items()} for name in TABLES}


def _polars(kind: Any) -> str:
    if kind.is_integer():
        return "count"
    if kind.is_float():
        return "number"
    return "yes or no" if str(kind) == "Boolean" else "text"


def _shared(name: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the meanings that a table takes from the summary's keys."""
    kinds = {"flows": "FlowSummary", "links": "LinkSummary"}
    if name not in kinds:
        return {}
    columns = table_columns()[name]
    return {key: meaning for key, meaning in known["keys"][kinds[name]].items() if key in columns}


def _rows(head: str, place: str, forms: Mapping[str, str], told: Mapping[str, Any]) -> str:
    if missing := sorted(set(forms) - set(told)):
        raise SystemExit(f"{FILE.name}: [{place}] does not say what {', '.join(missing)} means")
    if unknown := sorted(set(told) - set(forms)):
        raise SystemExit(f"{FILE.name}: [{place}] has {', '.join(unknown)}, and the results have not")
    rows = []
    for name, shape in forms.items():
        meaning = meaning_of(told[name], engine_of(place))
        rows.append((code(name), unit_of(name, shape, meaning), meaning.text, meaning.engine))
    return table((head, "unit", "meaning", "engine"), rows)
