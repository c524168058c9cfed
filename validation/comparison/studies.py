"""The pages of the studies, ``docs/studies/NAME.md``: each study's claims, tables and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anabranch import Study
from anabranch.plot.study import figures
from anabranch.result.format import share
from anabranch.study import ClaimResult, StudyResult, witness
from anabranch.study.correction import HEADINGS
from anabranch.study.verdict import REPRODUCED
from matplotlib.figure import Figure
from reference import markdown

from comparison import ns2_sack_losses, ns3_reordering, scripts
from comparison.oracle import ROOT
from comparison.pages import Comparison


def claims(judged: Sequence[ClaimResult]) -> str:
    """Return claims with their verdicts."""
    head = ["", "claim", "published", "measured", "verdict", "robustness", "on its wrong system"]
    rows = (
        [
            one.claim.id,
            one.claim.claim,
            one.claim.published,
            one.plain.measured,
            one.verdict,
            share(one.robustness, stale=one.stale),
            one.control.word if one.control else "none",
        ]
        for one in judged
    )
    return markdown.table(head, rows)


def corrections(done: StudyResult) -> str:
    """Return each claim's result before and after the correction of a reading."""
    parts = []
    for one in done.corrections:
        of = one.correction
        quoted = [f"> {of.sentence}", *([f">\n> {of.translation}"] if of.translation else [])]
        parts += [f"**{of.date}: {of.title}.**", "\n".join(quoted), of.why, markdown.table(HEADINGS, one.rows())]
    return "\n\n".join(parts)


def witnesses(done: StudyResult) -> str:
    """Return the claims that are judged on runs of another implementation."""
    explained = [witness.explained(one) for one in done.definition.witnesses.values()]
    rows = [list(one.row(claim.claim.id)) for claim in done.claims for one in claim.on_witnesses]
    return "\n\n".join([*explained, markdown.table(witness.HEADINGS, rows)])


def dependences(done: StudyResult) -> str:
    """Return by what the points differ of claims that are not robustly reproduced."""
    head = ["claim", "verdict", "holds at", "the points differ most by (points at which it holds)"]
    rows = [
        [one.claim.id, one.verdict, share(one.robustness, stale=one.stale), "; ".join(map(str, one.depends)) or "–"]
        for one in done.claims
        if one.robustness is not None and one.verdict != REPRODUCED
    ]
    return markdown.table(head, rows)


def of_study(done: StudyResult, spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the claims, or those of each section by its name; the corrections; every table by its name."""
    sections = done.by_section if "sections" in spec else [("", done.claims)]
    named = zip(spec.get("sections", ["results"]), sections, strict=True)
    parts = {part: claims(judged) for part, (_, judged) in named}
    if done.corrections:
        parts["corrections"] = corrections(done)
    if done.robustness is not None:
        parts["depends"] = dependences(done)
    if done.definition.witnesses:
        parts["witnesses"] = witnesses(done)
    for each in done.tables:
        first, *others = each.head()
        parts[each.table.id] = markdown.table([spec.get("heads", {}).get(each.table.id, first), *others], each.rows())
    return parts


def sensitivity(name: str, *, full: bool) -> str:
    """Return the number of claims that hold with each single alternative."""
    rows = scripts.load(f"studies/{name}/sensitivity.py").rows(full=full)
    return markdown.table(["choice", "claims that hold", "that do not"], rows)


def beside_ns2() -> dict[str, str]:
    """Return TCP with SACK over the loss rates of the study of error correction, in ns-2 and here."""
    return ns2_sack_losses.parts([*ns2_sack_losses.theirs(), *ns2_sack_losses.ours()])


def beside_ns3() -> dict[str, str]:
    """Return the reordering study's rows beside those of ns-3."""
    rows = [row for group in ns3_reordering.groups().values() for row in group]
    return {"ns3": ns3_reordering.study().markdown(rows) + "\n"}


BESIDE = {"ns-2": beside_ns2, "ns-3": beside_ns3}


def comparison(name: str, spec: Mapping[str, Any]) -> Comparison:
    """Run a study on its full grid; ``spec`` names the parts of its page in addition to claims and tables."""
    done = Study.load(ROOT / "studies" / name).run(quick=False)
    parts = of_study(done, spec)
    if "sensitivity" in spec:
        parts["sensitivity"] = sensitivity(name, full=spec["sensitivity"] == "full")
    if "beside" in spec:
        parts.update(BESIDE[spec["beside"]]())

    def drawn() -> Iterator[tuple[str, Figure]]:
        for figure_name, _, figure in figures(done.results):
            if figure_name in spec["figures"]:
                yield f"{name}-{figure_name}", figure

    return Comparison(name, parts, [], drawn, folder="docs/studies")
