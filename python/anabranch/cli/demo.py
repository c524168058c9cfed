"""``anabranch demo``: the reordering study in quick mode, and one page that shows what came out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from anabranch import interrupt
from anabranch.cli.common import console, note, styled
from anabranch.cli.study import COLOURS, Bars

if TYPE_CHECKING:
    from anabranch.study import StudyResult

STUDY = "reordering"
FIGURE = "figure-5"
"""Throughput of each TCP over the reorder interval: the study's main result."""
DIRECTORY = Path("anabranch-demo")


def run_demo(out: Path, *, jobs: int | None = None, opens: bool = False) -> None:
    """Run the study, write the page and print where it is.

    Raises:
        UserError: The directory holds something else.
    """
    from anabranch.limits import check_jobs
    from anabranch.output import check_target, whole_directory
    from anabranch.report.demo import front_page
    from anabranch.study import Study

    check_jobs(jobs)
    check_target(out, "demo")
    study = Study.load(STUDY)
    note("the reordering study in quick mode: about 15 s on two cores")
    interrupt.watch()
    with Bars() as bars:
        result = study.run(quick=True, figures=True, jobs=jobs, progress=bars.report)
    with whole_directory(out, "demo") as aside:
        result.write(aside / "study")
        figure = (aside / "study" / "figures" / f"{FIGURE}.svg").read_bytes()
        (aside / "index.html").write_text(front_page(result, figure), encoding="utf-8")
    _print(result, out / "index.html")
    if opens:
        import webbrowser

        webbrowser.open((out / "index.html").resolve().as_uri())


def _print(result: StudyResult, page: Path) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("", "claim", "verdict"):
        table.add_column(heading)
    for item in result.claims:
        if not item.claim.section:
            table.add_row(item.claim.id, item.claim.claim, styled(item.verdict, COLOURS.get(item.verdict, "magenta")))
    out = console()
    out.print(styled(result.definition.title))
    out.print(table)
    out.print(f"{result.runs:,} runs. The figure, and what was measured for each claim:")
    out.print(styled(str(page)), soft_wrap=True)
    out.print("\nNext:")
    for command, about in NEXT:
        out.print(f"  {command:<36} {about}", highlight=False)


NEXT = (
    ("anabranch new first", "a commented scenario in the folder first/"),
    ("anabranch run first/scenario.toml", "run it"),
    ("anabranch explain cubic-plus", "what it is, its source, its parameters"),
)
"""What to type next, and what it does."""
