"""Parses ``study.toml`` into a :class:`Definition`; every error has file, line and column."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from anabranch.errors import UserError, nearest
from anabranch.result.measure_names import whole_path
from anabranch.scenario import read_text
from anabranch.study import correction, inconsistency, needs, witness
from anabranch.study.definition import (
    Artefact,
    Axis,
    Claim,
    Correction,
    Definition,
    Earlier,
    Experiment,
    Figure,
    Jitter,
    Open,
    Quantity,
    RobustnessGrid,
    Section,
    Variant,
    Witness,
    Wrong,
)
from anabranch.study.document import Document, Node
from anabranch.study.expression import Expression, ExpressionError, Names, compile_expression
from anabranch.study.parse_live import read_live
from anabranch.study.parse_tables import read_section, read_table
from anabranch.text import toml_text

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_RESERVED = {"variant", "seed", "time_s"}
_TABLES = ("samples", "link_samples", "group_samples", "packets")
SHARING = ("worst-share", "jain")
"""Measures of fairness among the values of ``combine``."""
_COMBINES = ("sum", "mean", "min", "max", *SHARING)
_SHARING_HINT = f"with combine = {' or '.join(SHARING)}"
_OF_FLOWS = re.compile(r"flow\.[^.]+\.(goodput|throughput)_mbit_s\Z")
MIN_ROBUSTNESS_POINTS = 32
MIN_JITTER_SEEDS = 20


def load(directory: Path) -> Definition:
    """Read and check a study's directory.

    Raises:
        UserError: It is no study; the message has file, line and column.
    """
    path = directory / "study.toml"
    if not directory.is_dir():
        raise UserError(f"{directory}: no such directory", hint="a study is a directory with a study.toml")
    if not path.exists():
        raise UserError(f"{directory} has no study.toml", hint="a study is a directory with a study.toml")
    _check_plot(directory / "plot.py")
    return _Parser(directory, Document(path, read_text(path, "a study (TOML)"))).definition()


def _check_plot(path: Path) -> None:
    """Check the syntax of ``plot.py``, so that an error shows before the runs."""
    if not path.exists():
        return
    text = read_text(path, "a study's plots (Python)")
    try:
        compile(text, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise UserError(
            f"not valid Python: {getattr(error, 'msg', error)}",
            file=str(path),
            line=line,
            column=getattr(error, "offset", None),
            source=toml_text.source_line(text, line) if line else None,
        ) from None


class _Parser:
    def __init__(self, directory: Path, document: Document) -> None:
        self.directory = directory
        self.document = document
        self.root = document.root
        self.texts: dict[Path, str] = {}
        self.experiments: Mapping[str, Experiment] = {}
        self.variants: Mapping[str, Variant] = {}
        self.sections: Mapping[str, Section] = {}
        self.corrections: Mapping[str, Correction] = {}

    def definition(self) -> Definition:
        root = self.root
        root.reject_unknown(
            ["title", "source", "about", "setting", "setting_why", "open", "axis", "variant", "experiment",
             "quantity", "wrong", "jitter", "robustness", "section", "claim", "table", "figure", "live",
             "correction", "witness", "takes"]
        )  # fmt: skip
        if (takes := root.child("takes")) is not None:
            takes.reject_unknown(["quick", "full"])
            for grid in takes.value:
                takes.text(grid)
        axes = {name: self.axis(name, node) for name, node in root.children("axis")}
        variants = {name: self.variant(name, node) for name, node in root.children("variant")}
        self.variants = variants
        self.names = Names(
            quantities=[name for name, _ in root.children("quantity")],
            axes=[*axes, *_RESERVED],
            variants=list(variants),
            experiments=[name for name, _ in root.children("experiment")],
        )
        for name in self.names.experiments:
            if name in variants:
                raise root.error(f'"{name}" is the name of a variant as well', "experiment", name)
        if not self.names.experiments:
            raise root.error("a study needs at least one [experiment.NAME]")
        experiments = {n: self.experiment(n, node, axes, variants) for n, node in root.children("experiment")}
        self.experiments = experiments
        quantities = {n: self.quantity(n, node) for n, node in root.children("quantity")}
        self.no_cycles(quantities)
        wrongs = {n: self.wrong(n, node, variants) for n, node in root.children("wrong")}
        self.corrections = {
            name: correction.read(name, node, lambda n, inner: self.earlier_setting(n, inner, variants, axes))
            for name, node in root.children("correction")
        }
        opens = tuple(self.open(node) for node in root.entries("open"))
        witnesses = self.witnesses(wrongs, opens)
        figures = tuple(self.figure(node, axes) for node in root.entries("figure"))
        self.sections = {name: read_section(name, node) for name, node in root.children("section")}
        tables = tuple(read_table(self, node) for node in root.entries("table"))
        for i, table in enumerate(tables):
            if table.id in {t.id for t in tables[:i]}:
                raise root.error(f'a second table "{table.id}"', "table", i, "id")
        claims: list[Claim] = []
        # The names of plot.py's figures are known only after it has run.
        draws_own = Path(self.document.file).with_name("plot.py").exists()
        for node in root.entries("claim"):
            claim = self.claim(node, wrongs, None if draws_own else [f.id for f in figures])
            if (declared := node.child("artefact")) is not None:
                claim = replace(claim, artefact=self.artefact(declared, claim, witnesses))
            if claim.id in {c.id for c in claims}:
                raise node.error(f'a second claim "{claim.id}"', "id")
            claims.append(claim)
        if not (claims or tables or figures):
            raise root.error("a study needs at least one [[claim]], [[table]] or [[figure]]")
        self.check_exclusions(claims)
        correction.check(root, self.corrections, claims)
        robustness = root.child("robustness")
        points = MIN_ROBUSTNESS_POINTS
        if robustness is not None:
            robustness.reject_unknown(["points", "seed"])
            points = robustness.count("points", MIN_ROBUSTNESS_POINTS)
            if points < MIN_ROBUSTNESS_POINTS:
                raise robustness.error(f"at least {MIN_ROBUSTNESS_POINTS} points are needed", "points")
        definition = Definition(
            directory=self.directory,
            name=self.directory.resolve().name,
            title=root.text("title"),
            source=root.text("source", ""),
            about=root.text("about", ""),
            setting=root.table("setting"),
            setting_why=root.text("setting_why", ""),
            experiments=experiments,
            axes=axes,
            variants=variants,
            quantities=quantities,
            corrections=self.corrections,
            witnesses=witnesses,
            opens=opens,
            wrongs=wrongs,
            jitter=self.jitter(),
            robustness_points=points,
            robustness_seed=robustness.count("seed", 1) if robustness else 1,
            claims=tuple(claims),
            figures=figures,
            sections=self.sections,
            tables=tables,
            # The texts of [live] are read later and have no influence here.
            texts=dict(self.texts),
            values=self.document.values,
        )
        self.check_robustness_grids(definition)
        live = root.child("live")
        return definition if live is None else replace(definition, live=read_live(self, live, definition))

    def axis(self, name: str, node: Node) -> Axis:
        self.check_name(name, node)
        node.reject_unknown(["path", "set", "values", "quick", "full", "label"])
        if ("path" in node) == ("set" in node):
            raise node.error("an axis needs either path or set")
        sets = {node.text("path"): "{}"} if "path" in node else node.table("set")
        if "values" in node:
            full = quick = self.values(node, "values")
        else:
            quick = self.values(node, "quick")
            full = self.values(node, "full") if "full" in node else quick
        return Axis(name, sets, quick, full, node.text("label", name))

    def values(self, node: Node, key: str) -> tuple[float, ...]:
        value = node.value.get(key)
        if isinstance(value, dict):
            span = Node(node.document, (*node.path, key), value)
            span.reject_unknown(["from", "to", "step"])
            low, high, step = span.number("from"), span.number("to"), span.number("step", 1)
            if step <= 0 or high < low:
                raise span.error("from must be at most to, and step above 0")
            whole = all(isinstance(v, int) for v in value.values())
            steps = int((high - low) / step + 1e-9) + 1
            if steps > 100_000:
                raise span.error("more than 100,000 values")
            return tuple(int(low + i * step) if whole else low + i * step for i in range(steps))
        numbers = isinstance(value, list) and all(
            isinstance(v, (int, float)) and not isinstance(v, bool) for v in value
        )
        if not isinstance(value, list) or not value or not numbers:
            raise node.error(f"{key} must be a list of numbers, or {{ from, to, step }}", key)
        return tuple(value)

    def variant(self, name: str, node: Node) -> Variant:
        node.reject_unknown(["label", "set"])
        return Variant(name, node.text("label", name), node.table("set"))

    def experiment(self, name: str, node: Node, axes: dict[str, Axis], variants: dict[str, Variant]) -> Experiment:
        self.check_name(name, node)
        node.reject_unknown(
            ["label", "scenario", "set", "variants", "axes", "where", "repeat", "samples", "samples_ms"]
        )
        scenario = Path(node.text("scenario"))
        try:
            self.texts[scenario] = read_text(self.directory / scenario)
        except UserError as error:
            raise node.error(error.message, "scenario", hint=error.hint) from None
        chosen_axes = tuple(node.texts("axes", axes, "axis") or ())
        chosen = node.texts("variants", variants, "variant")
        quick, full = self.repeats(node)
        inside = Names(axes=chosen_axes)
        return Experiment(
            name=name,
            label=node.text("label", name.replace("_", " ")),
            scenario=scenario,
            set=node.table("set"),
            variants=tuple(variants if chosen is None else chosen),
            axes=chosen_axes,
            where=self.expression(node, ("where",), inside) if "where" in node else None,
            repeat_quick=quick,
            repeat_full=full,
            samples=self.samples(node, inside),
            samples_ms=node.number("samples_ms", 10),
        )

    def samples(self, node: Node, inside: Names) -> Expression | None:
        if node.value.get("samples") is True:
            return compile_expression("True", inside)
        return self.expression(node, ("samples",), inside) if "samples" in node else None

    def repeats(self, node: Node) -> tuple[int, int]:
        if isinstance(node.value.get("repeat"), dict):
            both = node.child("repeat")
            assert both is not None  # noqa: S101 - the key was just seen
            both.reject_unknown(["quick", "full"])
            return both.count("quick"), both.count("full")
        count = node.count("repeat", 1)
        return count, count

    def quantity(self, name: str, node: Node) -> Quantity:
        self.check_name(name, node)
        node.reject_unknown(
            [
                "path",
                "combine",
                "capacity",
                "table",
                "column",
                "flow",
                "link",
                "direction",
                "group",
                "expression",
                "label",
            ]
        )
        label = node.text("label", name.replace("_", " "))
        kinds = [k for k in ("path", "table", "expression") if k in node]
        if len(kinds) != 1:
            raise node.error("a quantity needs one of path, table or expression")
        if kinds[0] == "path":
            combine = node.optional_text("combine")
            if combine is not None and combine not in _COMBINES:
                raise node.error(f'"{combine}" combines nothing', "combine", hint=f"valid: {', '.join(_COMBINES)}")
            try:
                path = whole_path(node.text("path"))
            except UserError as error:
                raise node.error(error.message, "path", hint=error.hint) from None
            if "*" in path and combine is None:
                raise node.error("a path with * needs combine", "path", hint='combine = "sum"')
            return Quantity(name, label, path=path, combine=combine, capacity=self.capacity(node, path, combine))
        if "capacity" in node:
            raise node.error("capacity belongs to a path with combine", "capacity", hint=_SHARING_HINT)
        if kinds[0] == "table":
            table = node.text("table")
            if table not in _TABLES:
                raise node.error(f'there is no table "{table}" over time', "table", hint=nearest(table, _TABLES))
            select = {k: node.text(k) for k in ("flow", "link", "direction", "group") if k in node}
            return Quantity(name, label, table=table, column=node.text("column"), select=select)
        return Quantity(name, label, expression=self.expression(node, ("expression",), self.names))

    def capacity(self, node: Node, path: str, combine: str | None) -> float | None:
        """The capacity that the flows share, if ``combine`` is a measure of fairness."""
        if combine not in SHARING:
            if "capacity" in node:
                raise node.error("capacity belongs to a path with combine", "capacity", hint=_SHARING_HINT)
            return None
        if not _OF_FLOWS.match(path):
            raise node.error(
                f'{combine} is of flows: "{path}" is not what they got', "path", hint='path = "flow.*.goodput_mbit_s"'
            )
        if "capacity" not in node:
            raise node.error(
                f"{combine} needs capacity: the rate that the flows share, in Mbit/s", hint="capacity = 100"
            )
        capacity = node.number("capacity")
        if not 0 < capacity < math.inf:
            raise node.error("capacity must be above 0 Mbit/s", "capacity")
        return capacity

    def no_cycles(self, quantities: dict[str, Quantity]) -> None:
        import ast

        uses = {
            name: {n.id for n in ast.walk(q.expression.tree) if isinstance(n, ast.Name) and n.id in quantities}
            for name, q in quantities.items()
            if q.expression is not None
        }
        for name, direct in uses.items():
            reach, todo = set[str](), list(direct)
            while todo:
                step = todo.pop()
                if step == name:
                    raise self.root.error(f'"{name}" is made of itself', "quantity", name, "expression")
                if step not in reach:
                    reach.add(step)
                    todo.extend(uses.get(step, ()))

    def open(self, node: Node) -> Open:
        node.reject_unknown(
            [
                "name",
                "title",
                "path",
                "set",
                "value",
                "why",
                "range",
                "choices",
                "integer",
                "log",
                "experiments",
                "variants",
            ]
        )
        name = node.text("name")
        if ("path" in node) == ("set" in node):
            raise node.error("an open parameter needs either path or set")
        if "value" not in node:
            raise node.error('"value" is missing: what was chosen')
        low: float | None = None
        high: float | None = None
        choices = node.value.get("choices", [])
        if ("range" in node) == ("choices" in node):
            raise node.error("an open parameter needs either range = [low, high] or choices = [ … ]")
        integer, log = node.flag("integer", False), node.flag("log", False)
        if "range" in node:
            bounds = node.value["range"]
            good = isinstance(bounds, list) and len(bounds) == 2 and all(isinstance(b, (int, float)) for b in bounds)
            if not good or bounds[0] >= bounds[1] or (log and bounds[0] <= 0):
                raise node.error("range must be [low, high], low below high (above 0 with log)", "range")
            low, high = bounds
        elif not isinstance(choices, list) or len(choices) < 2:
            raise node.error("choices must list at least two values", "choices")
        return Open(
            name=name,
            title=node.text("title", name),
            set={node.text("path"): "{}"} if "path" in node else node.table("set"),
            value=node.value["value"],
            why=node.text("why"),
            low=low,
            high=high,
            choices=tuple(choices),
            integer=integer,
            log=log,
            experiments=tuple(
                node.texts("experiments", self.names.experiments, "experiment") or self.names.experiments
            ),
            variants=tuple(node.texts("variants", self.names.variants, "variant") or ()),
        )

    def earlier_setting(self, name: str, node: Node, variants: dict[str, Variant], axes: Mapping[str, Axis]) -> Wrong:
        """The setting before a correction: like a wrong system, or with other values of axes."""
        others = self.other_values(node, axes)
        rest = Node(node.document, node.path, {k: v for k, v in node.value.items() if k != "axes"})
        return replace(self.wrong(name, rest, variants, changed=bool(others)), axes=others)

    def other_values(self, node: Node, axes: Collection[str]) -> dict[str, tuple[float, ...]]:
        """The key ``axes``: other values of axes, each a list of numbers or a span."""
        values = node.child("axes")
        if values is None:
            return {}
        for axis in values.value:
            if axis not in axes:
                raise node.error(f'"{axis}" is no axis', "axes", axis, hint=nearest(axis, axes))
        return {axis: self.values(values, axis) for axis in values.value}

    def robustness_grid(self, node: Node | None) -> RobustnessGrid | None:
        """The grid on which the robustness of a claim is judged."""
        if node is None:
            return None
        node.reject_unknown(["axes", "repeat"])
        axes = self.other_values(node, [name for name, _ in self.root.children("axis")])
        repeat = node.count("repeat") if "repeat" in node else None
        if not axes and repeat is None:
            raise node.error(
                "it changes nothing of the quick grid: axes or repeat is needed",
                hint="axes = { NAME = [values] }, repeat = seeds per point",
            )
        return RobustnessGrid(axes, repeat)

    def check_robustness_grids(self, definition: Definition) -> None:
        """Check that the axes of a claim's robustness grid are axes of the experiments that the claim needs."""
        for i, claim in enumerate(definition.claims):
            needed = {need.experiment for need in needs.of_claims(definition, [claim])}
            valid = [axis for name in definition.experiments if name in needed for axis in self.experiments[name].axes]
            for axis in claim.robustness.axes if claim.robustness else ():
                if axis not in valid:
                    raise self.root.error(
                        f'no experiment of {claim.id} has the axis "{axis}"', "claim", i, "robustness", "axes", axis,
                        hint=nearest(axis, valid),
                    )  # fmt: skip

    def wrong(self, name: str, node: Node, variants: dict[str, Variant], *, changed: bool = False) -> Wrong:
        node.reject_unknown(["title", "replace", "set", "experiments", "variants"])
        replace = node.table("replace")
        for old, new in replace.items():
            for variant in (old, new):
                if variant not in variants:
                    raise node.error(f'"{variant}" is no variant', "replace", old, hint=nearest(str(variant), variants))
        if not replace and not node.table("set") and not changed:
            raise node.error("a wrong system needs replace or set, the change that makes it wrong")
        experiments = node.texts("experiments", self.names.experiments, "experiment") or self.names.experiments
        needed = tuple(node.texts("variants", variants, "variant") or ())
        return Wrong(name, node.text("title"), replace, node.table("set"), tuple(experiments), needed)

    def jitter(self) -> Jitter | None:
        node = self.root.child("jitter")
        if node is None:
            return None
        node.reject_unknown(["set", "seeds"])
        seeds = node.count("seeds", MIN_JITTER_SEEDS)
        if seeds < MIN_JITTER_SEEDS:
            raise node.error(f"at least {MIN_JITTER_SEEDS} seeds are needed", "seeds")
        if not node.table("set"):
            raise node.error('"set" is missing: which starts are spread, and how far')
        return Jitter(node.table("set"), seeds)

    def figure(self, node: Node, axes: dict[str, Axis]) -> Figure:
        node.reject_unknown(
            ["id", "title", "y", "lines", "x", "experiment", "variants", "x_label", "x_scale", "y_label", "y_scale",
             "kind", "published", "printed"]
        )  # fmt: skip
        x = node.text("x")
        valid = [*axes, "time_s"]
        if x not in valid:
            raise node.error(f'"{x}" is no axis', "x", hint=nearest(x, valid))
        kind = node.text("kind", "line")
        if kind not in {"line", "points"}:
            raise node.error(f'there is no kind "{kind}"', "kind", hint="valid: line, points")
        for scale in ("x_scale", "y_scale"):
            if node.text(scale, "linear") not in {"linear", "log"}:
                raise node.error(f'there is no scale "{node.text(scale)}"', scale, hint="valid: linear, log")
        if node.text("x_scale", "linear") == "log" and x in axes and min(axes[x].quick + axes[x].full) < 0:
            raise node.error(f'"{x}" has values below 0', "x_scale")
        variants = tuple(node.texts("variants", self.names.variants, "variant") or self.names.variants)
        lines = self.lines(node, variants)
        return Figure(
            id=node.file_name("id"),
            title=node.text("title"),
            lines=lines,
            x=x,
            experiment=self.experiment_name(node),
            variants=variants,
            x_label=node.text("x_label", "Time (s)" if x == "time_s" else axes[x].label),
            y_label=node.text("y_label", lines[0][1].text),
            kind=kind,
            published=node.text("published", ""),
            x_scale=node.text("x_scale", "linear"),
            y_scale=node.text("y_scale", "linear"),
            printed=self.printed(node, [label for label, _ in lines if label] or list(variants)),
        )

    def printed(self, node: Node, valid: list[str]) -> dict[str, tuple[tuple[float, float], ...]]:
        """The points printed in the source, by the line that they belong to."""
        found: dict[str, tuple[tuple[float, float], ...]] = {}
        for name, points in node.table("printed").items():
            if name not in valid:
                raise node.error(f'"{name}" is no line of this figure', "printed", name, hint=nearest(name, valid))
            if not isinstance(points, list) or not points or not all(map(_is_point, points)):
                raise node.error("printed points must be pairs of numbers: [[x, y], …]", "printed", name)
            found[name] = tuple((float(x), float(y)) for x, y in points)
        return found

    def lines(self, node: Node, variants: tuple[str, ...]) -> tuple[tuple[str, Expression], ...]:
        """A figure's lines: the entries of ``lines``, or the single expression of ``y``."""
        if "lines" not in node:
            return (("", self.expression(node, ("y",), self.names)),)
        if "y" in node:
            raise node.error("a figure has either y or lines", "lines")
        labels = node.table("lines")
        if not labels:
            raise node.error("at least one line is needed", "lines")
        if len(variants) != 1:
            where = "variants" if "variants" in node else "lines"
            raise node.error("a figure with lines shows one variant: name it", where)
        return tuple((label, self.expression(node, ("lines", label), self.names)) for label in labels)

    def check_exclusions(self, claims: list[Claim]) -> None:
        """Check that a proof by exclusion names other claims of the study, and that there are open parameters."""
        names = [claim.id for claim in claims]
        for node, claim in zip(self.root.entries("claim"), claims, strict=True):
            excludes = claim.inconsistent.excludes if claim.inconsistent else ()
            for i, name in enumerate(excludes):
                others = [other for other in names if other != claim.id]
                if name not in others:
                    raise node.error(f'"{name}" is no other claim', "inconsistent", "excludes", i,
                                     hint=nearest(name, others))  # fmt: skip
            if excludes and not self.root.entries("open"):
                raise node.error("an exclusion goes over open parameters, and there is no [[open]]",
                                 "inconsistent", "excludes")  # fmt: skip

    def claim(self, node: Node, wrongs: dict[str, Wrong], figures: list[str] | None) -> Claim:
        node.reject_unknown(
            ["id", "claim", "published", "accept_if", "experiment", "measure", "accept", "undecided", "control",
             "invariant", "inconsistent", "artefact", "before", "full_only", "robustness", "note", "why",
             "figures", "section"]
        )  # fmt: skip
        measures, accept = self.check(node)
        known = Names(self.names.quantities, self.names.axes, self.names.variants, self.names.experiments,
                      tuple(measures))  # fmt: skip
        control, invariant = node.optional_text("control"), node.optional_text("invariant")
        if (control is None) == (invariant is None):
            raise node.error(
                "a claim needs either control (a wrong system) or invariant (why there can be none)",
                hint=nearest(control or "", wrongs),
            )
        if control is not None and control not in wrongs:
            raise node.error(f'there is no wrong system "{control}"', "control", hint=nearest(control, wrongs))
        undecided = node.child("undecided")
        if undecided is not None:
            undecided.reject_unknown(["difference", "from"])
        claim = Claim(
            id=node.text("id"),
            claim=node.text("claim"),
            published=node.text("published"),
            accept_if=node.text("accept_if"),
            experiment=self.experiment_name(node),
            measures=measures,
            accept=accept,
            undecided=self.expression(undecided, ("difference",), known) if undecided else None,
            undecided_from=undecided.number("from", 0) if undecided else 0.0,
            control=control,
            invariant=invariant,
            full_only=node.flag("full_only", False),
            note=node.text("note", ""),
            why=node.text("why", ""),
            figures=tuple(node.texts("figures", figures, "figure") or ()),
            section=self.section_name(node),
            robustness=self.robustness_grid(node.child("robustness")),
        )
        before = node.child("before")
        if before is not None:
            claim = replace(claim, before=self.earlier(before, claim))
        declared = node.child("inconsistent")
        if declared is None:
            return claim
        return replace(claim, inconsistent=inconsistency.read(declared, lambda n: self.proof(n, claim, wrongs)))

    def witnesses(self, wrongs: Mapping[str, Wrong], opens: Sequence[Open]) -> dict[str, Witness]:
        names = witness.Names(
            experiments=self.experiments,
            axes=[name for name, _ in self.root.children("axis")],
            quantities=self.names.quantities,
            wrongs=wrongs,
            opens=[parameter.name for parameter in opens],
            claims=[node.text("id") for node in self.root.entries("claim")],
        )
        return {name: witness.read(name, node, self.directory, names) for name, node in self.root.children("witness")}

    def artefact(self, node: Node, claim: Claim, witnesses: Mapping[str, Witness]) -> Artefact:
        artefact = witness.read_artefact(node, witnesses)
        if claim.id not in witnesses[artefact.witness].claims:
            raise node.error(f"the witness {artefact.witness} does not judge {claim.id}", "witness",
                             hint=f'add "{claim.id}" to claims of [witness.{artefact.witness}]')  # fmt: skip
        if claim.inconsistent is not None:
            raise node.error("a claim is either an artefact or inconsistent")
        return artefact

    def earlier(self, node: Node, claim: Claim) -> Earlier:
        """The check of a claim before a correction."""
        node.reject_unknown(["correction", "accept_if", "experiment", "measure", "accept"])
        name = node.text("correction")
        if name not in self.corrections:
            raise node.error(f'there is no correction "{name}"', "correction", hint=nearest(name, self.corrections))
        return Earlier(name, replace(self.other_check(node, claim, "before"), accept_if=node.text("accept_if")))

    def proof(self, node: Node, claim: Claim, wrongs: dict[str, Wrong]) -> Claim:
        """The check on runs that proves an inconsistency: only the judged parts of a claim."""
        proof = self.other_check(node, claim, "proof of inconsistency")
        control = node.text("control")
        if control not in wrongs:
            raise node.error(f'there is no wrong system "{control}"', "control", hint=nearest(control, wrongs))
        return replace(proof, control=control)

    def other_check(self, node: Node, claim: Claim, what: str) -> Claim:
        """The claim with its check replaced, and without a wrong system."""
        measures, accept = self.check(node)
        return replace(
            claim,
            id=f"{claim.id}, {what}",
            experiment=self.experiment_name(node) if "experiment" in node else claim.experiment,
            measures=measures,
            accept=accept,
            undecided=None,
            control=None,
            invariant=None,
        )

    def check(self, node: Node) -> tuple[dict[str, Expression], tuple[Expression, ...]]:
        """The measures of a check, and its conditions."""
        measures: dict[str, Expression] = {}
        for name in node.table("measure"):
            if not _NAME.match(name):
                raise node.error(f'"{name}" cannot name a measure', "measure", name, hint="letters, digits and _")
            known = Names(self.names.quantities, self.names.axes, self.names.variants, self.names.experiments,
                          tuple(measures))  # fmt: skip
            measures[name] = self.expression(node, ("measure", name), known)
        if not measures:
            raise node.error('a claim needs measure = { name = "expression" }')
        known = Names(self.names.quantities, self.names.axes, self.names.variants, self.names.experiments,
                      tuple(measures))  # fmt: skip
        conditions = [node.value.get("accept")] if isinstance(node.value.get("accept"), str) else node.texts("accept")
        if not conditions:
            raise node.error('"accept" is missing: the condition(s) under which the claim is reproduced')
        single = isinstance(node.value["accept"], str)
        accept = tuple(
            self.expression(node, ("accept",) if single else ("accept", i), known) for i in range(len(conditions))
        )
        return measures, accept

    def section_name(self, node: Node) -> str | None:
        """The section of a claim or table; ``None`` if it is the source's own."""
        name = node.optional_text("section")
        if name is not None and name not in self.sections:
            hint = nearest(name, self.sections) if self.sections else f"there is no [section.{name}]"
            raise node.error(f'"{name}" is no section', "section", hint=hint)
        return name

    def variant_label(self, name: str) -> str:
        """The label of a variant in reports."""
        return self.variants[name].label

    def experiment_name(self, node: Node) -> str:
        name = node.text("experiment", next(iter(self.names.experiments)))
        if name not in self.names.experiments:
            raise node.error(f'"{name}" is no experiment', "experiment", hint=nearest(name, self.names.experiments))
        return name

    def expression(self, node: Node, key: tuple[str | int, ...], names: Names) -> Expression:
        text: Any = node.value
        for part in key:
            text = text[part]
        if not isinstance(text, str):
            raise node.error("an expression in quotes was expected", *key)
        try:
            return compile_expression(text, names)
        except ExpressionError as error:
            # The parser counts bytes; people count characters.
            column = len(text.encode()[: error.column].decode(errors="ignore"))
            raise node.error(error.message, *key, hint=error.hint, offset=column) from None

    def check_name(self, name: str, node: Node) -> None:
        if not _NAME.match(name) or name in _RESERVED:
            raise node.error(f'"{name}" cannot be a name here', hint="letters, digits and _, not a reserved name")


def _is_point(value: Any) -> bool:
    """Whether a value of the document is a pair of finite numbers."""
    if not isinstance(value, list) or len(value) != 2:
        return False
    return all(isinstance(n, (int, float)) and not isinstance(n, bool) and math.isfinite(n) for n in value)
