"""The tables and figures of the page on fairness over mixes of traffic: ``docs/studies/fairness-mixes.md``."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch import Study
from anabranch.plot.study import figures
from anabranch.study import StudyResult
from matplotlib.figure import Figure

from comparison.oracle import ROOT
from comparison.pages import Comparison
from comparison.reordering_study import claims
from reference import markdown

NAME = "fairness-mixes"
STUDY = "studies/fairness-mixes"
FIGURES = ("frontier", "applications", "ratio", "delay")


def run(*, quick: bool = False) -> StudyResult:
    """Run the study as ``anabranch study fairness-mixes`` does."""
    return Study.load(ROOT / STUDY).run(quick=quick)


def of_study(done: StudyResult) -> dict[str, str]:
    """Return the parts of the page: the claims, and every table by its name."""
    made = {each.table.id: markdown.table(each.head(), each.rows()) for each in done.tables}
    return {"results": claims(done.claims), **made}


def comparison() -> Comparison:
    """Write the page's tables and figures anew."""
    done = run()

    def drawn() -> Iterator[tuple[str, Figure]]:
        for name, _, figure in figures(done.results):
            if name in FIGURES:
                yield f"{NAME}-{name}", figure

    return Comparison(NAME, of_study(done), [], drawn, folder="docs/studies")
