"""``anabranch demo``: the reordering study in quick mode, and one page of its results."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anabranch import interrupt
from anabranch.cli.blocks import write
from anabranch.cli.command import Option, command
from anabranch.cli.common import console, note, styled
from anabranch.cli.options import Jobs, directory
from anabranch.cli.study import COLOURS, Bars
from anabranch.extras import is_installed, remark_once
from anabranch.report.demo import front_page, next_commands
from anabranch.text.lines import WIDTH

if TYPE_CHECKING:
    from anabranch.study import StudyResult

STUDY = "reordering"
FIGURE = "figure-5"
"""Throughput of each TCP over the reorder interval: the study's main result."""
INDENT = 27
"""Columns before the text of a claim."""


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """The options of the command."""

    out: Annotated[Path, Option("--out", "Where the page and the study's report go.", "DIR", directory)] = Path(
        "anabranch-demo"
    )
    opens: Annotated[bool, Option("--open", "Open the page in a browser.")] = False
    jobs: Jobs = None


@command(DemoOptions, "anabranch demo --open")
def run_demo(options: DemoOptions) -> None:
    """Run the reordering study in quick mode and write a page of it.

    About 15 seconds on two cores. DIR/index.html has the main figure and a verdict for each claim.
    """
    from anabranch.files.output import MANIFEST, check_target, whole_directory
    from anabranch.limits import check_jobs
    from anabranch.study import Study

    out = options.out
    check_jobs(options.jobs)
    check_target(out, "demo")
    study = Study.load(STUDY)
    note("the reordering study in quick mode: about 15 s on two cores")
    interrupt.watch()
    with Bars() as bars:
        result = study.run(quick=True, figures=True, jobs=options.jobs, progress=bars.report)
    with whole_directory(out, "demo") as aside:
        result.write(aside / "study")
        # One directory, one manifest.
        (aside / "study" / MANIFEST).unlink()
        drawn = aside / "study" / "figures" / f"{FIGURE}.svg"
        figure = drawn.read_bytes() if is_installed("matplotlib") else None
        (aside / "index.html").write_text(front_page(result, figure), encoding="utf-8")
    _print(result, out / "index.html")
    remark_once(note, "polars", "matplotlib")
    if options.opens:
        import webbrowser

        webbrowser.open((out / "index.html").resolve().as_uri())


def _print(result: StudyResult, page: Path) -> None:
    out = console()
    out.print(styled(f"{result.definition.title}\n"))
    for item in result.claims:
        if item.claim.section:
            continue
        first, *others = textwrap.wrap(item.claim.claim, WIDTH - INDENT)
        verdict = styled(f"{item.verdict:<21}", COLOURS.get(item.verdict, "magenta"))
        out.print(f"{item.claim.id:<4}", verdict, first, soft_wrap=True, highlight=False)
        write(out, [" " * INDENT + line for line in others])
    what = "The figure, and what" if is_installed("matplotlib") else "What"
    out.print(f"\n{result.runs:,} runs. {what} was measured for each claim:")
    out.print(styled(str(page)), soft_wrap=True)
    out.print("\nNext:")
    for line, about in next_commands():
        out.print(f"  {line:<46} {about}", highlight=False, soft_wrap=True)
