"""What pages of studies have in common: claims, tables and figures as the study itself makes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from anabranch import Study
from anabranch.plot.study import figures
from anabranch.study import StudyResult
from matplotlib.figure import Figure
from reference import markdown

from comparison.oracle import ROOT
from comparison.pages import Comparison
from comparison.reordering_study import claims, corrections


def of_study(done: StudyResult) -> dict[str, str]:
    """Return the parts of a page that come from the study: the claims, and every table by its name."""
    made = {each.table.id: markdown.table(each.head(), each.rows()) for each in done.tables}
    corrected = {"corrections": corrections(done)} if done.corrections else {}
    return {"results": claims(done.claims), **corrected, **made}


def comparison(name: str, chosen: Sequence[str], more: Mapping[str, str] | None = None) -> Comparison:
    """Run a study on its full grid and write its page, ``docs/studies/NAME.md``, anew.

    Args:
        name: Its directory in ``studies/``.
        chosen: Which of its figures the page shows.
        more: Further parts of the page.
    """
    done = Study.load(ROOT / "studies" / name).run(quick=False)

    def drawn() -> Iterator[tuple[str, Figure]]:
        for figure_name, _, figure in figures(done.results):
            if figure_name in chosen:
                yield f"{name}-{figure_name}", figure

    return Comparison(name, {**of_study(done), **(more or {})}, [], drawn, folder="docs/studies")
