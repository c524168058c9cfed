"""Write the studies for the studio: claims, figures, and the runs of the quick grid.

python studio/studies/prepare.py FILE

The studio evaluates the same expressions as ``anabranch study``: their syntax trees come from the command's parser, and
the list of runs from its plan. Only the evaluation is written a second time (``studio/src/study``); its tests compare
it with the command's.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from anabranch import Study
from anabranch.study import dependence, needs
from anabranch.study.definition import Claim, Definition, Quantity
from anabranch.study.expression import Expression, compile_expression, picks
from anabranch.study.functions import FUNCTIONS
from anabranch.study.results import Job, Pool
from anabranch.study.robustness import FILE
from anabranch.study.witness import judge_on_witnesses
from anabranch.text import toml_text

STUDIES = ("reordering", "fec", "multipath", "link-aggregation", "fairness")
"""The published studies, in the order of the documentation."""
OWN_FIGURES = Path(__file__).with_name("figures.toml")

_OPERATORS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.And: "and", ast.Or: "or", ast.Not: "not", ast.USub: "neg",
}  # fmt: skip


class Writer:
    """Writes the expressions of a study as trees of lists: an operator, then its operands."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition

    def expression(self, expression: Expression) -> dict[str, Any]:
        """An expression: its text and its tree."""
        return {"text": expression.text, "tree": self.node(expression.tree)}

    def node(self, node: ast.expr) -> Any:
        """A node, without its place in the text."""
        if isinstance(node, ast.Constant):
            return ["value", node.value]
        if isinstance(node, ast.Name):
            return ["name", node.id]
        if isinstance(node, ast.BinOp):
            return [_OPERATORS[type(node.op)], self.node(node.left), self.node(node.right)]
        if isinstance(node, ast.UnaryOp):
            return [_OPERATORS[type(node.op)], self.node(node.operand)]
        if isinstance(node, ast.BoolOp):
            return [_OPERATORS[type(node.op)], *map(self.node, node.values)]
        if isinstance(node, ast.Compare):
            ops = [_OPERATORS[type(op)] for op in node.ops]
            return ["compare", ops, *map(self.node, (node.left, *node.comparators))]
        if isinstance(node, ast.Subscript):
            return self.selection(node)
        assert isinstance(node, ast.Call)  # noqa: S101 - the parser let nothing else through
        assert isinstance(node.func, ast.Name)  # noqa: S101 - the parser let nothing else through
        return ["call", node.func.id, self.keywords(node), *map(self.node, node.args)]

    def keywords(self, node: ast.Call) -> dict[str, Any]:
        """The keywords of a call. ``over`` is a name, the others are expressions."""
        assert isinstance(node.func, ast.Name)  # noqa: S101 - the parser let nothing else through
        has_over = FUNCTIONS[node.func.id].over
        return {
            str(one.arg): one.value.id
            if has_over and one.arg == "over" and isinstance(one.value, ast.Name)
            else self.node(one.value)
            for one in node.keywords
        }

    def selection(self, node: ast.Subscript) -> Any:
        """``["select", quantity, experiment or null, variants, conditions]``."""
        assert isinstance(node.value, ast.Name)  # noqa: S101 - the parser let nothing else through
        named = picks(node)
        experiments = self.definition.experiments
        experiment = next((name for name in named if name in experiments), None)
        variants = [name for name in named if name in self.definition.variants and name not in experiments]
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        conditions = [
            self.condition(part)
            for part in parts
            if not isinstance(part, ast.Name) and not (isinstance(part, ast.Constant) and isinstance(part.value, str))
        ]
        return ["select", node.value.id, experiment, variants, conditions]

    def condition(self, node: ast.expr) -> dict[str, Any]:
        """A condition on the points: its text, its tree, its axes, and the axis that it fixes, if any."""
        axes = [*self.definition.axes, "time_s", "seed"]
        names = [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and one.id in axes]
        fixed = None
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
            left = node.left
            inner = [one.id for one in ast.walk(node.comparators[0]) if isinstance(one, ast.Name)]
            if isinstance(left, ast.Name) and left.id in axes and not any(name in axes for name in inner):
                fixed = left.id
        return {"text": ast.unparse(node), "tree": self.node(node), "axes": names, "fixed": fixed}


def prepared(name: str) -> dict[str, Any]:
    """A study with the runs of its quick grid."""
    study = Study.load(name)
    definition = study.definition
    writer = Writer(definition)
    pool = Pool(definition)
    plans = study.plans(pool, quick=True)
    runs = _Runs(definition)
    own = toml_text.parse(OWN_FIGURES.read_text(encoding="utf-8"), str(OWN_FIGURES)).get(name, [])
    figures = [_figure(definition, writer, one) for one in definition.figures]
    figures += [_own_figure(definition, writer, one) for one in own]
    return {
        "name": name,
        "title": definition.title,
        "source": definition.source,
        "about": definition.about,
        "default_experiment": definition.default_experiment,
        "experiments": {
            one.name: {"axes": one.axes, "hasVariants": bool(one.variants)} for one in definition.experiments.values()
        },
        "variants": {one.name: one.label for one in definition.variants.values()},
        "quantities": {one.name: _quantity(writer, one) for one in definition.quantities.values()},
        "sections": {one.name: {"title": one.title, "about": one.about} for one in definition.sections.values()},
        "wrongs": {one.name: one.title for one in definition.wrongs.values()},
        "claims": [_claim(definition, writer, one) for one in definition.claims],
        "figures": figures,
        "plans": {condition: [runs.place(job) for job in plan] for condition, plan in plans.items()},
        **runs.written(),
    }


class _Runs:
    """The distinct runs of a study. Changes of scenarios that several runs share are listed once."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.changes: dict[str, int] = {}
        self.runs: dict[Any, int] = {}
        self.made: list[list[Any]] = []

    def place(self, job: Job) -> list[Any]:
        """``[experiment, variant, point, seed, run]``."""
        if job.key not in self.runs:
            self.runs[job.key] = len(self.made)
            sets = [self.changes.setdefault(one, len(self.changes)) for one in job.sets]
            self.made.append([str(job.scenario), sets, job.seed, job.samples_ms])
        return [job.experiment, job.variant, list(job.point), job.seed, self.runs[job.key]]

    def written(self) -> dict[str, Any]:
        """The runs as ``[scenario, changes, seed, interval of samples]``, the changes and the scenarios."""
        scenarios = {file for file, *_ in self.made}
        texts = {str(path): text for path, text in self.definition.texts.items() if str(path) in scenarios}
        return {"runs": self.made, "changes": list(self.changes), "scenarios": texts}


def _quantity(writer: Writer, one: Quantity) -> dict[str, Any]:
    found: dict[str, Any] = {"label": one.label}
    if one.expression is not None:
        found["expression"] = writer.expression(one.expression)
    elif one.path is not None:
        found["path"] = one.path
        if one.combine is not None:
            found["combine"] = one.combine
        if one.capacity is not None:
            found["capacity"] = one.capacity
    else:
        found |= {"table": one.table, "column": one.column, "select": dict(one.select)}
    return found


def _check(writer: Writer, one: Claim) -> dict[str, Any]:
    """The parts of a claim that are judged, and the runs that they need: ``[experiment, variant or null]``."""
    if one.undecided is not None:
        raise SystemExit(f"{one.id}: the studio has no claims with undecided differences")
    return {
        "experiment": one.experiment,
        "measures": [[name, writer.expression(expression)] for name, expression in one.measures.items()],
        "accept": [writer.expression(expression) for expression in one.accept],
        "control": one.control,
        "needs": _needs(needs.of_claims(writer.definition, [one])),
    }


def _needs(found: Iterable[needs.Need]) -> list[list[str | None]]:
    return sorted(([one.experiment, one.variant] for one in found), key=str)


def _claim(definition: Definition, writer: Writer, one: Claim) -> dict[str, Any]:
    found = {
        "id": one.id,
        "claim": one.claim,
        "published": one.published,
        "acceptIf": one.accept_if,
        "section": one.section,
        "note": one.note,
        "why": one.why,
        "fullOnly": one.full_only,
        "check": _check(writer, one),
        **_stored(definition, one),
    }
    declared = one.inconsistent
    if declared is not None:
        found["inconsistent"] = {
            "statements": declared.statements,
            "argument": declared.argument,
            "proof": _check(writer, declared.proof) if declared.proof else None,
            "excludes": declared.excludes,
        }
    if one.artefact is not None:
        found["artefact"] = {"witness": one.artefact.witness, "argument": one.artefact.argument}
    return found


def _stored(definition: Definition, one: Claim) -> dict[str, Any]:
    """The results of a claim that are stored with the study: its robustness and its witnesses."""
    found: dict[str, Any] = {}
    path = definition.directory / FILE
    if path.exists():
        content = json.loads(path.read_text(encoding="utf-8"))
        share = content["claims"].get(one.id)
        if share is not None:
            judged = [
                (point.get("parameters", {}), point["holds"][one.id])
                for point in content["points"]
                if point["holds"].get(one.id) is not None
            ]
            found["robustness"] = share
            found["depends"] = [str(split) for split in dependence.splits(definition, one, judged)]
        if one.inconsistent is not None and one.inconsistent.excludes:
            together = (one.id, *one.inconsistent.excludes)
            found["points"] = [{name: point["holds"].get(name) for name in together} for point in content["points"]]
    results = judge_on_witnesses(definition, one)
    if results:
        found["witnesses"] = [
            {
                "name": result.witness.name,
                "title": result.witness.title,
                "holds": result.holds,
                "measured": result.plain.measured,
                "verdict": result.plain.word,
                "reason": result.reason,
                "share": result.share,
            }
            for result in results
        ]
    return found


def _figure(definition: Definition, writer: Writer, one: Any) -> dict[str, Any]:
    return {
        "id": one.id,
        "title": one.title,
        "published": one.published,
        "experiment": one.experiment,
        "x": one.x,
        "xLabel": one.x_label,
        "yLabel": one.y_label,
        "isLogX": one.x_scale == "log",
        "variants": one.variants,
        "lines": [[label, writer.expression(expression)] for label, expression in one.lines],
        "printed": {line: [list(point) for point in points] for line, points in one.printed.items()},
        "needs": _line_needs(definition, [expression for _, expression in one.lines], one.experiment),
    }


def _own_figure(definition: Definition, writer: Writer, one: Mapping[str, Any]) -> dict[str, Any]:
    names = definition.claims[0].accept[0].names
    lines = [(label, compile_expression(text, names)) for label, text in one["lines"].items()]
    return {
        **{key: one[key] for key in ("id", "title", "published", "experiment", "x")},
        "xLabel": one["x_label"],
        "yLabel": one["y_label"],
        "isLogX": False,
        "variants": [],
        "lines": [[label, writer.expression(expression)] for label, expression in lines],
        "printed": {},
        "needs": _line_needs(definition, [expression for _, expression in lines], one["experiment"]),
    }


def _line_needs(definition: Definition, lines: Iterable[Expression], experiment: str) -> list[list[str | None]]:
    return _needs(needs.of_expressions(definition, lines, experiment))


def main() -> None:
    """Write the file."""
    out = Path(sys.argv[1])
    out.parent.mkdir(parents=True, exist_ok=True)
    content = [prepared(name) for name in STUDIES]
    out.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


if __name__ == "__main__":
    main()
