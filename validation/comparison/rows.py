"""Comparisons row by row, described by a TOML file.

``[there]`` names the figures of a reference row, ``[words]`` the replacements of a column's texts,
``[set]`` the settings that turn the scenario file into a row's path, ``[ours]`` settings of the
simulator only, and ``[here]`` our figures of one run; all are expressions of the language of
studies. ``[[within]]`` bounds the distance of a figure from the reference. ``[judge]`` names the
judged figure and the accepted range of its mean (``ours_mean``, ``ours_low``, ``ours_high``,
``ours_sd`` and ``ours_count`` are of our seeds). ``columns`` and ``[[panel]]`` define the page's
table and figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from anabranch.study.expression import Names, Source, compile_expression
from matplotlib.figure import Figure
from reference import markdown

from comparison import drawing, judging
from comparison.judging import Errors, Measure, Verdict
from comparison.oracle import read
from comparison.pages import Comparison, verdict_table
from comparison.runs import SEEDS, Case, Spread, simulate

Theirs = Mapping[str, Any]
"""A reference row: the columns of the file, figures and words, by name."""
Ours = Mapping[str, Spread]

SCALES: dict[str, Callable[[float], float]] = {"": float, "sqrt": math.sqrt}


@dataclass(frozen=True)
class Row:
    """A reference row, and ours.

    Attributes:
        theirs: The reference figures.
        ours: Ours, over the seeds.
        accepted: The accepted range of the judged figure's mean.
        inside: Whether the mean is in it; ``None`` if it is not judged.
    """

    theirs: Theirs
    ours: Ours
    accepted: tuple[float, float]
    inside: bool | None


@dataclass(frozen=True)
class Within:
    """A bound on the distance of our figure from the reference.

    Attributes:
        measure: The figure, its scale, and whether the distance is relative to the reference.
        by: The bound.
        least: The minimum share of rows in which it must hold.
        rows: An expression that selects the judged rows.
    """

    measure: Measure[Row]
    by: float
    least: float
    rows: str

    def holds(self, row: Row) -> bool:
        """Whether a row is within the bound."""
        return self.measure.error(self.measure.ours(row), row) <= self.by

    def judged(self, rows: Iterable[Row]) -> Verdict:
        """Judge all rows that the bound covers."""
        held = [self.holds(row) for row in rows if value(self.rows, row.theirs)]
        condition = f"{self.measure.name} in at least {self.least:.0%} of the rows"
        return Verdict(condition, f"{sum(held)} of {len(held)}", sum(held) >= self.least * len(held))


@cache
def _compiled(text: str, names: frozenset[str]) -> Any:
    return compile_expression(text, Names(measures=names))


def value(text: str, values: Mapping[str, Any]) -> Any:
    """Evaluate an expression with a value for each name."""
    return _compiled(text, frozenset(values)).evaluate(cast("Source", None), values)


class Rows:
    """A comparison that a file describes."""

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        """``spec`` is the content of ``validation/comparisons/NAME.toml``."""
        self.name = name
        self.spec = spec
        self.judge: Mapping[str, Any] = spec["judge"]
        self.measures = [_measure(measure) for measure in spec.get("measure", ())]
        self.within = [
            Within(_measure(bound), bound["by"], bound["least"], bound.get("rows", "True"))
            for bound in spec.get("within", ())
        ]

    def table(self) -> list[Theirs]:
        """Read the reference rows."""
        return [self.theirs(row) for row in read(f"{self.name}.csv")]

    def worded(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of a row of the file, and its words."""
        found: dict[str, Any] = {column: _number(text) for column, text in row.items()}
        for name, words in self.spec.get("words", {}).items():
            text = str(row[words["of"]])
            found[name] = words.get(text, text)
        return found

    def theirs(self, row: Mapping[str, str]) -> Theirs:
        """Return the figures and words of a row of the file."""
        found = self.worded(row)
        for name, text in self.spec["there"].items():
            found[name] = value(text, found)
        return found

    def sets(self, row: Mapping[str, Any], key: str = "set") -> list[str]:
        """Return a row's settings in the scenario file; with ``key`` ``ours`` only the simulator's settings."""
        return [f"{path}={text.format_map(row)}" for path, text in self.spec.get(key, {}).items()]

    def case(self, theirs: Theirs, sets: Iterable[str] = (), seeds: int | None = None) -> Case:
        """Return the run for a row, with the settings ``sets`` in addition."""
        own = [*self.sets(theirs), *self.sets(theirs, "ours")]
        chance = value(self.spec.get("chance", "True"), theirs)
        count = seeds or self.spec.get("seeds", SEEDS)
        return Case(f"{self.name}.toml", (*own, *sets), count if chance else 1)

    def compare(self, table: Sequence[Theirs], sets: Sequence[str] = (), seeds: int | None = None) -> list[Row]:
        """Compare ours with each of the reference rows."""
        cases = [self.case(theirs, sets, seeds) for theirs in table]
        runs = simulate(cases, self.name)
        return [self.row(theirs, self.ours(theirs, runs[case])) for theirs, case in zip(table, cases, strict=True)]

    def ours(self, theirs: Theirs, runs: Sequence[Mapping[str, Any]]) -> Ours:
        """Return our figures over the runs of a row."""

        def figure(text: str) -> Callable[[Mapping[str, Any]], float]:
            return lambda run: float(value(text, {**theirs, **figures_of(run)}))

        return {name: Spread.of(runs, figure(text)) for name, text in self.spec["here"].items()}

    def row(self, theirs: Theirs, ours: Ours) -> Row:
        """Judge ours against the reference."""
        judged = ours[self.judge["figure"]]
        values = {**theirs, **{f"ours_{name}": figure for name, figure in vars(judged).items()}}
        if "apart" in self.judge:
            values["apart"] = value(self.judge["apart"], values)
        low, high = (value(text, values) for text in self.judge["accepted"])
        judge = value(self.judge.get("rows", "True"), theirs)
        return Row(theirs, ours, (low, high), low <= judged.mean <= high if judge else None)

    def errors(self, rows: Sequence[Row], measure: Measure[Row]) -> list[Errors | None]:
        """Each row's error in a measure, and that of the other congestion controls' rows on its path."""
        path = self.spec["path"]
        return judging.errors(
            rows, measure, lambda row: tuple(row.theirs[c] for c in path), lambda row: row.theirs["cc"]
        )

    def verdicts(self, rows: Sequence[Row]) -> list[Verdict]:
        """Judge all rows."""
        found = [
            verdict for measure in self.measures for verdict in judging.told_apart(measure, self.errors(rows, measure))
        ]
        found += [bound.judged(rows) for bound in self.within]
        for condition, some in self.grouped(rows, self.judge["condition"]).items():
            inside = [row.inside for row in some if row.inside is not None]
            least = self.judge.get("least", len(inside))
            text = f"{sum(inside)} of {len(inside)}{self.judge.get('unit', '')}"
            found.append(Verdict(condition, text, sum(inside) >= least))
        return found

    def grouped(self, rows: Sequence[Row], text: str) -> dict[str, list[Row]]:
        """Return the rows, grouped by a text with names of columns."""
        found: dict[str, list[Row]] = {}
        for row in rows:
            found.setdefault(text.format_map(row.theirs), []).append(row)
        return found

    def lines(self, rows: Sequence[Row]) -> list[list[str]]:
        """Every row of the page's table."""
        errors = {measure.name: self.errors(rows, measure) for measure in self.measures}
        cells = [cell for _, cell in self.spec["columns"]]
        return [
            [cell.format_map(self.shown(row, {name: found[i] for name, found in errors.items()})) for cell in cells]
            for i, row in enumerate(rows)
        ]

    def shown(self, row: Row, errors: Mapping[str, Errors | None]) -> dict[str, Any]:
        """Return the values that a cell can name."""
        theirs, ours = row.theirs[self.judge["figure"]], row.ours[self.judge["figure"]]
        low, high = row.accepted
        word = {None: "", True: "inside", False: "**outside**"}[row.inside]
        difference = f"{ours.mean / theirs - 1:+.1%}"
        return {
            **row.theirs,
            "here": row.ours,
            "word": word,
            "difference": difference,
            "word_or_difference": word or difference,
            "accepted": (high - low) / 2 / theirs,
            "error": {name: _against(found) for name, found in errors.items()},
        }

    def key(self, theirs: Theirs) -> tuple[Any, ...]:
        """Return the row's key."""
        return (theirs["cc"], *(theirs[column] for column in self.spec["path"]))

    def versions(self, rows: Sequence[Row]) -> str:
        """Return the rows in which another version of the reference differs.

        ``[versions]`` names its file and the bounds.
        """
        spec = self.spec["versions"]
        bounds = [Within(_measure(bound), bound["by"], 0.0, "True") for bound in spec["within"]]
        lines = []
        known = {self.key(row.theirs): row for row in rows}
        others = [self.theirs(row) for row in read(spec["file"])]
        for other in others:
            row = known[self.key(other)]
            # The other version takes the place of our answer.
            answered = Row(row.theirs, {name: Spread(*[other[name]] * 3) for name in row.ours}, row.accepted, None)
            if not all(bound.holds(answered) for bound in bounds):
                lines.append([cell.format_map({**row.theirs, "other": other}) for _, cell in spec["columns"]])
        head = [heading for heading, _ in spec["columns"]]
        count = f"{len(lines)} of {len(others)} rows differ."
        return f"{count}\n\n{markdown.table(head, lines)}" if lines else count

    def surprises(self, rows: Sequence[Row]) -> list[str]:
        """Return the rows outside that the page does not explain, and the explained ones that are inside."""
        if "least" in self.judge:
            return []
        words = {False: "is outside", True: "is inside, and the page says outside"}
        return [
            f"{self.name} {dict(row.theirs)}: {row.ours} {words[row.inside]}"
            for row in rows
            if row.inside is not None and row.inside is self.explained(row)
        ]

    def explained(self, row: Row) -> bool:
        """Whether the page explains why a row is outside."""
        known = self.judge.get("outside", ())
        return any(all(row.theirs[column] == found for column, found in one.items()) for one in known)

    def comparison(self) -> Comparison:
        """Compare everything."""
        rows = self.compare(self.table())
        found = self.verdicts(rows)
        head = [heading for heading, _ in self.spec["columns"]]
        parts = {"verdict": verdict_table(found), "rows": markdown.table(head, self.lines(rows))}
        if "versions" in self.spec:
            parts["versions"] = self.versions(rows)
        return Comparison(self.name, parts, found, lambda: self.figures(rows), self.surprises(rows))

    def figures(self, rows: Sequence[Row]) -> Iterator[tuple[str, Figure]]:
        """Draw our figures over the reference, and the errors that compare the controls."""
        panels = []
        for panel in self.spec.get("panel", ()):
            some = [row for row in rows if value(panel.get("rows", "True"), row.theirs)]
            for label, group in self.grouped(some, panel["label"]).items():
                points = [self.point(row, panel) for row in group]
                panels.append(drawing.Panel(label, points, panel["scale"], ratio=panel.get("ratio", False)))
        if panels:
            yield self.name, drawing.ours_over_theirs(panels, self.spec["other"], hollow=self.spec.get("hollow", ""))
        errors = []
        for measure, spec in zip(self.measures, self.spec.get("measure", ()), strict=True):
            if "drawn" in spec:
                found = zip(rows, self.errors(rows, measure), strict=True)
                errors.append((spec["drawn"], [(row.theirs["cc"], error) for row, error in found if error]))
        if errors:
            yield f"{self.name}-errors", drawing.errors(errors)

    def point(self, row: Row, panel: Mapping[str, Any]) -> drawing.Point:
        """Return a row's point in a panel."""
        figure = panel["figure"]
        ours = row.ours[figure]
        return drawing.Point(
            row.theirs["cc"],
            row.theirs[figure],
            ours.mean,
            (ours.low, ours.high) if panel.get("seeds") else None,
            "hollow" in self.spec and bool(value(self.spec["chance"], row.theirs)),
            row.accepted if panel.get("accepted") else None,
        )


def figures_of(run: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a run: the flow's figures, and the marks of all links in forward direction."""
    marked = sum(link["forward"]["marked_packets"] for link in run["links"].values())
    return {**run["flows"]["main"], "marked_packets": marked}


def _number(text: Any) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _measure(spec: Mapping[str, Any]) -> Measure[Row]:
    figure = spec["figure"]
    scale = SCALES[spec.get("scale", "")]
    return Measure(
        spec["name"],
        spec.get("unit", ""),
        lambda row: row.theirs[figure],
        lambda row: row.ours[figure].mean,
        scale,
        spec.get("relative", False),
    )


def _against(errors: Errors | None) -> str:
    if errors is None:
        return ""
    text = f"{errors.ours:.2f} / {errors.others:.2f}"
    return text if errors.closer else f"**{text}**"


def comparison(name: str, spec: Mapping[str, Any]) -> Comparison:
    """Compare everything that a file describes."""
    return Rows(name, spec).comparison()
