"""The tables of the reordering study's page: ``docs/studies/reordering.md``."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch import Study
from anabranch.report.format import share
from anabranch.study import ClaimResult, StudyResult
from anabranch.study.correction import HEADINGS
from reference import markdown

from comparison import ns3_reordering, scripts
from comparison.oracle import ROOT
from comparison.pages import Comparison

NAME = "reordering"
STUDY = "studies/reordering"


def run(*, quick: bool = False) -> StudyResult:
    """Run the study as ``anabranch study reordering`` does."""
    return Study.load(ROOT / STUDY).run(quick=quick)


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
    """Return what each claim gave before a reading was corrected, and since."""
    parts = []
    for one in done.corrections:
        of = one.correction
        quoted = [f"> {of.sentence}", *([f">\n> {of.translation}"] if of.translation else [])]
        parts += [f"**{of.date}: {of.title}.**", "\n".join(quoted), of.why, markdown.table(HEADINGS, one.rows())]
    return "\n\n".join(parts)


def sensitivity() -> str:
    """Return how many claims hold with each alternative by itself, on the full grid."""
    rows = scripts.load(f"{STUDY}/sensitivity.py").rows(full=True)
    return markdown.table(["choice", "claims that hold", "that do not"], rows)


def of_study(done: StudyResult) -> dict[str, str]:
    """Return the parts of the page that come from the study itself."""
    (_, own), (_, beyond) = done.by_section
    (remedies,) = done.tables
    head = ["remedy", *remedies.head()[1:]]
    return {
        "results": claims(own),
        "corrections": corrections(done),
        "beyond": claims(beyond),
        "remedies": markdown.table(head, remedies.rows()),
    }


def comparison() -> Comparison:
    """Write the page's tables anew."""
    beside = [row for group in ns3_reordering.groups().values() for row in group]
    parts = {
        **of_study(run()),
        "sensitivity": sensitivity(),
        "ns3": ns3_reordering.study().markdown(beside) + "\n",
    }
    return Comparison(NAME, parts, [], lambda: iter(()), folder="docs/studies")
