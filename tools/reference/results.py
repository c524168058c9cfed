"""The data dictionary: every column of a run's tables, every key of its summary and of a gateway's plan."""

from __future__ import annotations

from anabranch.cli.result_names import short_names
from anabranch.result.measure_names import WORDS, catalogue, meant

from reference.declared import Part, plan, summary, tables
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
    out = [NOTICE, "# Results\n", INTRODUCTION, "## Tables\n"]
    for part in tables():
        out += [f"### Table {part.title}\n", f"{part.about}\n", rows("column", part)]
    out.append("## Summary\n")
    for part in summary():
        out += [f"### {part.title}\n", f"{part.about}\n", rows("key", part)]
    out += ["## Short names\n", SHORT, _short_names(), "## Plan of a gateway\n", PLAN]
    for part in plan():
        out += [f"### {part.title}\n", rows("key", part)]
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


def rows(head: str, part: Part) -> str:
    """Return the table of a part's keys."""
    keys = part.keys.items()
    return table(
        (head, "unit", "meaning", "engine"), [(code(name), key.unit, key.meaning, key.engine) for name, key in keys]
    )
