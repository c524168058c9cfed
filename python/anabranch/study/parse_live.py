"""``[live]`` of ``study.toml``: the part of a study for real kernels, and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anabranch.errors import nearest
from anabranch.study import needs
from anabranch.study.definition import Axis, Definition, Experiment, Variant, Wrong
from anabranch.study.document import Node

if TYPE_CHECKING:
    from anabranch.study.parse import _Parser


_KEYS = ["about", "axis", "variant", "experiment", "wrong", "claims", "tables"]


def read_live(parser: _Parser, node: Node, study: Definition) -> Definition:
    """The part that can run live: the study's claims, conditions and quantities over a separate grid.

    The study's setting, open parameters and start jitter describe the simulator's stacks and are left out. An entry of
    ``[live]`` is written like one of the study and replaces the entry of the same name. An entry of ``[live.kernel]``
    replaces one of ``[live]`` for kernels in virtual time.

    Raises:
        UserError: An entry does not fit the study; the message has file, line and column.
    """
    node.reject_unknown([*_KEYS, "kernel"])
    live = _part(parser, node, study, {})
    inner = node.child("kernel")
    if inner is None:
        return live
    inner.reject_unknown(_KEYS)
    about = inner.text("about")
    # Claims, tables and experiments that the live engine cannot run, a kernel may.
    common = replace(study, axes=live.axes, variants=live.variants, wrongs=live.wrongs)
    kernel = _part(parser, Node(inner.document, inner.path, {**_shared(node), **inner.value}), common, live.experiments)
    return replace(live, kernel=replace(kernel, about=about))


def _shared(node: Node) -> dict[str, Any]:
    """The lists of ``[live]`` that ``[live.kernel]`` may leave out."""
    return {key: node.value[key] for key in ("claims", "tables") if key in node.value}


def _part(parser: _Parser, node: Node, study: Definition, common: Mapping[str, Experiment]) -> Definition:
    """A part of ``study`` with separate entries, and the experiments of ``common``."""
    axes = {**study.axes, **{name: _axis(parser, name, inner, study) for name, inner in node.children("axis")}}
    variants = dict(study.variants)
    for name, inner in node.children("variant"):
        inner.reject_unknown(["label", "set"])
        label = study.variants[name].label if name in study.variants else name
        variants[name] = Variant(name, inner.text("label", label), inner.table("set"))
    experiments = dict(common)
    for name, inner in node.children("experiment"):
        if name not in study.experiments:
            raise node.error(f'"{name}" is no experiment', "experiment", name, hint=nearest(name, study.experiments))
        experiments[name] = parser.experiment(name, inner, axes, variants)
    if not experiments:
        raise node.error("a live study needs at least one [live.experiment.NAME]")
    wrongs = dict(study.wrongs)
    for name, inner in node.children("wrong"):
        if name not in study.wrongs:
            raise node.error(f'"{name}" is no wrong system', "wrong", name, hint=nearest(name, study.wrongs))
        wrongs[name] = _wrong(parser, name, inner, study, variants)
    claims = {claim.id: claim for claim in study.claims}
    chosen = node.texts("claims", claims, "claim")
    if not chosen:
        raise node.error('"claims" is missing: which claims the live runs judge')
    tables = {table.id: table for table in study.tables}
    shown = node.texts("tables", tables, "table") or []
    live = replace(
        study,
        about=node.text("about"),
        setting={},
        setting_why="",
        opens=(),
        jitter=None,
        axes=axes,
        variants=variants,
        experiments=experiments,
        wrongs=wrongs,
        # Reasons, notes and inconsistencies belong to the simulator's runs.
        claims=tuple(
            replace(
                claims[name],
                why="",
                note="",
                full_only=False,
                inconsistent=None,
                artefact=None,
                before=None,
                robustness=None,
            )
            for name in chosen
        ),
        figures=(),
        texts=dict(parser.texts),
        tables=tuple(tables[name] for name in shown),
        corrections={},
        witnesses={},
        is_live=True,
    )
    asked = [(("claims", i), needs.of_claims(live, [claim])) for i, claim in enumerate(live.claims)]
    asked += [(("tables", i), needs.of_table(live, table)) for i, table in enumerate(live.tables)]
    for place, wanted in asked:
        for need in sorted(wanted, key=lambda need: (need.experiment, need.variant or "")):
            if need.experiment not in experiments:
                raise node.error(f"it asks for the experiment {need.experiment}, which is not run live", *place)
            there = experiments[need.experiment].variants
            if need.variant and need.variant not in there:
                raise node.error(
                    f"it asks for the variant {need.variant} of {need.experiment}, which is not run live", *place
                )
    return live


def _axis(parser: _Parser, name: str, node: Node, study: Definition) -> Axis:
    if name not in study.axes:
        raise node.error(f'"{name}" is no axis', hint=nearest(name, study.axes))
    node.reject_unknown(["set", "values", "quick", "full"])
    if "values" in node:
        full = quick = parser.values(node, "values")
    else:
        quick = parser.values(node, "quick")
        full = parser.values(node, "full") if "full" in node else quick
    sets = node.table("set") if "set" in node else study.axes[name].set
    return replace(study.axes[name], set=sets, quick=quick, full=full)


def _wrong(parser: _Parser, name: str, node: Node, study: Definition, variants: dict[str, Variant]) -> Wrong:
    if "title" not in node:
        node = Node(node.document, node.path, {"title": study.wrongs[name].title, **node.value})
    return parser.wrong(name, node, variants)
