"""``anabranch study``."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from anabranch.cli.common import FAILED, complain, console, note, only_sim, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from anabranch.study import ClaimResult, StudyResult, StudyTable


@dataclass(frozen=True)
class StudyOptions:
    """The options of the command."""

    quick: bool
    robustness: bool
    json: bool
    out: Path | None
    engine: str
    jobs: int | None


def run_studies(names: list[str], options: StudyOptions) -> None:
    """Run each, print claims and verdicts, write the reports.

    Raises:
        UserError: A study does not exist or is wrong.
        ScenarioError: One of its scenarios is.
    """
    from anabranch.checkout import shipped_studies
    from anabranch.errors import UserError
    from anabranch.limits import check_jobs
    from anabranch.output import check_target
    from anabranch.study import Study

    only_sim(options.engine)
    check_jobs(options.jobs)
    chosen = names or list(shipped_studies())
    if not chosen:
        raise UserError("no study is at hand", hint="give the directory of one, or work in a checkout")
    # All are read before the first is run: a mistake in the last must not cost the time of the others.
    studies = [Study.load(name) for name in chosen]
    targets = []
    for study in studies:
        target = options.out if options.out is None or len(studies) == 1 else options.out / study.definition.name
        if target is not None:
            check_target(target, "study")
        targets.append(target)
    documents = []
    failed: list[str] = []
    for study, target in zip(studies, targets, strict=True):
        started = time.monotonic()
        result = _run(study, options)
        if options.json:
            documents.append(result.to_json())
        else:
            _print(result, time.monotonic() - started)
        if target is not None:
            result.write(target)
            note(f"wrote {target / 'report.html'}")
        name = study.definition.name
        failed += [f"{name} {c.claim.id}" for c in result.claims if c.check_failed]
    if options.json:
        print_json(documents[0] if len(documents) == 1 else documents)
    if failed:
        complain(f"a check accepts its wrong system as well, so it proves nothing: {', '.join(failed)}")
        raise typer.Exit(FAILED)


def _run(study: Study, options: StudyOptions) -> StudyResult:  # type: ignore[name-defined] # noqa: F821
    from anabranch.progress import Progress

    bars: dict[str, Progress] = {}

    def report(what: str, done: int, total: int) -> None:
        if what not in bars:
            for bar in bars.values():
                bar.__exit__(None, None, None)
            bars[what] = Progress(what, total)
        bars[what].update(done)

    try:
        return study.run(  # type: ignore[no-any-return]
            quick=options.quick, robustness=options.robustness, jobs=options.jobs, progress=report
        )
    finally:
        for bar in bars.values():
            bar.__exit__(None, None, None)


def _print(result: StudyResult, elapsed_s: float) -> None:
    from rich.markup import escape

    out = console()
    out.print(f"[bold]{escape(result.definition.title)}[/bold]\n{escape(result.definition.source)}")
    for title, claims in result.by_section:
        if title:
            out.print(f"[bold]{escape(title)}[/bold]")
        out.print(_claims(claims))
    for made in result.tables:
        out.print(f"[bold]{escape(made.table.title)}[/bold]")
        out.print(_table(made))
        if made.table.note:
            out.print(escape(made.table.note), style="dim")
    said = "; ".join(_counted(title, claims) for title, claims in result.by_section)
    out.print(f"{escape(said)}; {result.mode} grid, {result.runs} runs, {elapsed_s:.1f} s")
    for remark in result.notes:
        out.print(remark)


def _claims(claims: list[ClaimResult]) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from anabranch.report.format import share

    colours = {"reproduced": "green", "reproduced (fragile)": "yellow", "not reproduced": "red"}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("claim", ratio=4)
    table.add_column("published", ratio=2)
    table.add_column("measured", ratio=3)
    table.add_column("verdict")
    for heading in ("robust", "jitter", "control"):
        table.add_column(heading, justify="right")
    for item in claims:
        colour = colours.get(item.verdict, "magenta")
        control = item.control.word if item.control else "none"
        measured = escape(item.plain.measured) + (f"\n[dim]{escape(item.why)}[/dim]" if item.why else "")
        verdict = f"[{colour}]{item.verdict}[/{colour}]"
        shares = (share(item.robustness, stale=item.stale), share(item.jitter))
        table.add_row(
            item.claim.id, escape(item.claim.claim), escape(item.claim.published), measured, verdict, *shares, control
        )
    return table


def _table(made: StudyTable) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(made.head()):
        table.add_column(escape(heading), justify="right" if i else "left")
    for row in made.rows():
        table.add_row(*map(escape, row))
    return table


def _counted(title: str, claims: list[ClaimResult]) -> str:
    """How many were reproduced, and what the others are: "8 of 11 reproduced, 1 reproduced (fragile), …"."""
    counts = Counter(c.verdict for c in claims)
    others = "".join(f", {n} {verdict}" for verdict, n in counts.items() if verdict != "reproduced")
    said = f"{counts['reproduced']} of {len(claims)} reproduced{others}"
    return f"{title}: {said}" if title else said
