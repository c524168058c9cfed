"""``anabranch study``."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anabranch import interrupt
from anabranch.cli.blocks import labelled, write
from anabranch.cli.command import Argument, Option, command
from anabranch.cli.common import FAILED, KERNEL, LIVE, check_engine, complain, console, note, print_json, styled
from anabranch.cli.options import Engine, Jobs, Json, Kernel, Out, Store
from anabranch.extras import remark_once
from anabranch.result.format import NONE
from anabranch.text.lines import wrapped
from anabranch.text.shown import plain

if TYPE_CHECKING:
    from rich.console import Console

    from anabranch.progress import Progress
    from anabranch.study import ClaimResult, Study, StudyResult, StudyTable
    from anabranch.study.live import LiveStudyResult


COLOURS = {
    "reproduced": "green",
    "reproduced (fragile)": "yellow",
    "not reproduced": "red",
    "paper inconsistent": "blue",
    "artefact": "blue",
    "artefact (fragile)": "yellow",
}
"""The colour of each verdict; others are magenta."""


_WHERE = {LIVE: "live", KERNEL: "in the kernel"}
"""An engine in a message."""


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """The options of the command."""

    names: Annotated[
        tuple[str, ...],
        Argument(
            "[NAME|DIRECTORY]...",
            "Names of shipped studies, or directories of others; lists the shipped studies when left out.",
        ),
    ] = ()
    all: Annotated[bool, Option("--all", "Run all studies that ship.")] = False
    quick: Annotated[bool, Option("--quick", "The study's quick grid instead of the full one.")] = False
    robustness: Annotated[
        bool, Option("--robustness", "Also judge over the open parameters' ranges, and keep the answer.")
    ] = False
    json: Json = False
    out: Out = None
    engine: Engine = "sim"
    kernel: Kernel = None
    jobs: Jobs = None
    attempts: Annotated[
        int | None,
        Option("--attempts", "With --engine live: runs at most until one is not tainted (2 when left out).", "N"),
    ] = None
    store: Store = None


@command(
    StudyOptions, "anabranch study", "anabranch study reordering --quick", "anabranch study my-study --out out/my-study"
)
def run_studies(options: StudyOptions) -> None:
    """Reproduce published studies: claims with verdicts, figures.

    Prints the verdicts. With --out also writes report, figures and tables, for several studies into one
    subdirectory each.
    """
    from anabranch.errors import UserError
    from anabranch.files.checkout import shipped_studies
    from anabranch.files.output import check_parent, check_target
    from anabranch.limits import check_jobs
    from anabranch.study import Study

    names = options.names
    check_engine(options.engine, options.kernel)
    live = options.engine in (LIVE, KERNEL)
    if options.attempts is not None and options.engine != LIVE:
        raise UserError("--attempts is for live runs", hint="--engine live, or leave it out")
    if options.store is not None and options.engine == LIVE:
        raise UserError("--store keeps runs in virtual time", hint=f"leave out --engine {LIVE}, or --store")
    check_jobs(options.jobs)
    if names and options.all:
        raise UserError("--all runs every study that ships, and some are named", hint="give one of them")
    if not names and not options.all:
        _list(options)
        return
    chosen = names or list(shipped_studies())
    if not chosen:
        raise UserError("no study is at hand", hint="give the directory of one, or work in a checkout")
    # All are read before the first is run: a mistake in the last must not cost the time of the others.
    studies = [Study.load(name) for name in chosen]
    if live and not names:
        studies = [study for study in studies if study.definition.live is not None]
    targets: list[Path | None] = []
    if options.out is not None and len(studies) > 1:
        check_parent(options.out)
    for study in studies:
        target = options.out if options.out is None or len(studies) == 1 else options.out / study.definition.name
        if target is not None:
            check_target(target, "study")
        targets.append(target)
    if live:
        _run_live(studies, targets, options)
        return
    _run_simulated(studies, targets, options)


def _run_simulated(studies: list[Study], targets: list[Path | None], options: StudyOptions) -> None:
    interrupt.watch()
    documents = []
    failed: list[str] = []
    for study, target in zip(studies, targets, strict=True):
        started = time.monotonic()
        result = _run(study, options, target)
        if options.json:
            documents.append(result.to_json())
        else:
            _print(result, time.monotonic() - started)
        if target is not None:
            result.write(target)
            note(f"wrote {target / 'report.html'}")
        name = study.definition.name
        failed += [f"{name} {c.claim.id}" for c in result.claims if c.check_failed]
    if options.out is not None:
        remark_once(note, "polars", "matplotlib")
    if options.json:
        print_json(documents[0] if len(documents) == 1 else documents)
    if failed:
        complain(f"a check accepts its wrong system as well, so it proves nothing: {', '.join(failed)}")
        raise SystemExit(FAILED)


def _list(options: StudyOptions) -> None:
    """Print the studies that ship, and how long each takes.

    Raises:
        UserError: The options are of a run.
    """
    from anabranch.errors import UserError
    from anabranch.files.checkout import shipped_studies
    from anabranch.scenario import read_text
    from anabranch.text import toml_text

    if replace(options, json=False) != StudyOptions():
        raise UserError("no study is named, and the options are of a run", hint="give a name, a directory or --all")
    rows = []
    for name, directory in shipped_studies().items():
        path = directory / "study.toml"
        values = toml_text.parse(read_text(path), str(path))
        rows.append({"name": name, "title": values.get("title", name), "takes": values.get("takes", {})})
    if options.json:
        print_json(rows)
        return
    out = console()
    for row in rows:
        takes = row["takes"] if isinstance(row["takes"], dict) else {}
        times = ", ".join(f"{time} with --quick" if grid == "quick" else f"{time} in full"
                          for grid, time in takes.items())  # fmt: skip
        out.print(styled(row["name"]))
        write(out, wrapped(f"  {row['title']}", "  "))
        write(out, [f"  {times or 'its time is not known'}"])
    write(out, ["", *wrapped(
        "Times are of one processor core, as each study's study.toml has them under `takes`; runs share all cores. "
        "anabranch study NAME --quick runs one, --all runs all.", ""
    )])  # fmt: skip


def _run(study: Study, options: StudyOptions, target: Path | None) -> StudyResult:
    with Bars() as bars:
        try:
            return study.run(
                quick=options.quick,
                robustness=options.robustness,
                figures=options.out is not None,
                jobs=options.jobs,
                progress=bars.report,
                keep=target,
                store=options.store,
                remark=note,
            )
        except KeyboardInterrupt:
            _say_kept(options, target)
            raise


def _say_kept(options: StudyOptions, target: Path | None) -> None:
    """Say after an interrupt where the finished runs are."""
    where = options.store or target
    if where is not None and (where / "points").is_dir():
        note(f"finished runs are in {where}; the same command goes on from there")


class Bars:
    """A progress bar for each part of the work, one after the other."""

    def __init__(self) -> None:
        self._bars: dict[str, Progress] = {}

    def report(self, what: str, done: int, total: int) -> None:
        """``done`` of ``total`` runs of a part are made."""
        from anabranch.progress import Progress

        if what not in self._bars:
            self._close()
            self._bars[what] = Progress(what, total)
        self._bars[what].update(done)

    def __enter__(self) -> Bars:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        for bar in self._bars.values():
            bar.__exit__(None, None, None)


def _run_live(studies: list[Study], targets: list[Path | None], options: StudyOptions) -> None:
    """Run the studies with the TCP of a kernel; a study that cannot run there is refused before anything runs.

    Raises:
        UserError: A study cannot run live, or this machine cannot.
        RunFailedError: A run failed.
    """
    from anabranch.errors import UserError
    from anabranch.live import prepare
    from anabranch.study.live import ATTEMPTS, plan, without_live

    if options.robustness:
        raise UserError("--robustness is the simulator's", hint=f"leave out --engine {options.engine}, or --robustness")
    for study in studies:
        if study.definition.live is None:
            raise without_live(study)
    if options.engine == LIVE:
        prepare("--engine sim")
    else:
        interrupt.watch()
    attempts = ATTEMPTS if options.attempts is None else options.attempts
    plans = [
        plan(
            study,
            quick=options.quick,
            jobs=options.jobs,
            attempts=attempts,
            engine=options.engine,
            kernel=options.kernel,
            kept=study._kept(target, options.store, note) if options.engine == KERNEL else None,
        )
        for study, target in zip(studies, targets, strict=True)
    ]
    documents, failed = [], []
    for study, planned, target in zip(studies, plans, targets, strict=True):
        name = study.definition.name
        with Bars() as bars:
            try:
                result = planned.run(announce=partial(_announce, name, options.engine), progress=bars.report)
            except KeyboardInterrupt:
                _say_kept(options, target)
                raise
        if options.json:
            documents.append(result.to_json())
        else:
            _print_live(result)
        if target is not None:
            result.write(target)
            note(f"wrote {target / 'report.md'}")
            remark_once(note, "polars")
        audit = result.audit
        if audit.failed:
            failed.append(
                f"{name}: {audit.tainted} of {audit.runs} live runs are tainted, more than a tenth: "
                "run it when the machine is less busy, or with more --attempts"
            )
        failed += [
            f"{name} {claim.claim.id}, {where}: the check accepts its wrong system as well, so it proves nothing"
            for both in result.claims
            for where, claim in zip(("in the simulator", _WHERE[options.engine]), both, strict=True)
            if claim.check_failed
        ]
    if options.json:
        print_json(documents[0] if len(documents) == 1 else documents)
    if failed:
        complain("; ".join(dict.fromkeys(failed)))
        raise SystemExit(FAILED)


def _announce(name: str, engine: str, runs: int, seconds: float) -> None:
    if engine == KERNEL:
        note(f"{name}: {runs} runs in kernels, {math.ceil(seconds)} s of virtual time")
        return
    note(f"{name}: {runs} live runs one after the other, about {math.ceil(seconds / 60)} minutes")


def _print_live(result: LiveStudyResult) -> None:
    out = console()
    _print_title(out, f"{result.definition.title}: {result.engine}")
    write(out, wrapped(plain(" ".join(result.definition.about.split()))))
    for simulated, live in result.claims:
        _print_pair(out, simulated, live, result.engine)
    out.print()
    for pair in result.tables:
        for engine, made in zip(("simulator", result.engine), pair, strict=True):
            _print_table(out, made, f"{made.table.title}: {engine}")
    audit = result.audit
    if result.engine == KERNEL:
        told = f"{audit.runs} runs in Linux {audit.machine.get('kernel', '?')}, virtual time, {audit.seconds:.0f} s"
        write(out, wrapped(f"{told}; control: the same check on its wrong system", "  "))
        return
    told = (
        f"{audit.runs} live runs, {audit.tainted} of them tainted, {audit.without_result} without a result, "
        f"{audit.seconds:.0f} s; control: the live check on its wrong system"
    )
    write(out, wrapped(told, "  "))
    for reason, n in audit.reasons.most_common():
        write(out, wrapped(f"tainted, {n} times: {reason}", "  "))


def _print(result: StudyResult, elapsed_s: float) -> None:
    from anabranch.report.study_output import legend

    out = console()
    _print_title(out, result.definition.title)
    if result.definition.source:
        write(out, wrapped(plain(result.definition.source)))
    for title, claims in result.by_section:
        if title:
            out.print()
            _print_title(out, title)
        for item in claims:
            _print_claim(out, item)
    if result.claims or result.tables:
        out.print()
    for made in result.tables:
        _print_table(out, made, made.table.title)
    said = "; ".join(_counted(title, claims) for title, claims in result.by_section) or NO_CLAIMS
    for remark in legend(result):
        write(out, wrapped(remark))
    write(out, wrapped(f"{said}; {result.mode} grid, {result.runs:,} runs, {elapsed_s:.1f} s", "  "))
    for remark in result.notes:
        write(out, wrapped(plain(remark), "  "))
    if not result.runs and result.definition.figures and not (result.claims or result.tables):
        out.print("it has figures only: --out DIR draws them")


NO_CLAIMS = "no claims"


def _print_pair(out: Console, simulated: ClaimResult, live: ClaimResult, name: str) -> None:
    """A claim in both engines: the condition, then each engine's verdict and figures."""
    out.print()
    out.print(styled(simulated.claim.id))
    facts = [("accept if", simulated.claim.accept_if)]
    for engine, item in (("simulator", simulated), (name, live)):
        facts += [(engine, f"{item.verdict}: {item.plain.measured}"), ("", item.why or "")]
    facts.append(("control", live.control.word if live.control else "none"))
    _print_facts(out, facts)


def _print_facts(out: Console, facts: Iterable[tuple[str, str]]) -> None:
    for label, value in facts:
        if value and value != NONE:
            write(out, labelled(label, plain(" ".join(value.split())), 12, left=_ID))


def _print_claim(out: Console, item: ClaimResult) -> None:
    """Print a claim in 80 columns: verdict, claim, published and measured figures."""
    from anabranch.result.format import share

    out.print()
    verdict = styled(item.verdict, COLOURS.get(item.verdict, "magenta"))
    out.print(styled(f"{item.claim.id:<{_ID}}"), verdict, sep="", soft_wrap=True)
    write(out, wrapped(" " * _ID + plain(item.claim.claim), " " * _ID))
    facts = [
        ("accept if", item.claim.accept_if),
        ("published", item.claim.published),
        ("measured", item.plain.measured),
        ("reason", item.why),
        ("robustness", share(item.robustness, stale=item.stale)),
        ("start jitter", share(item.jitter)),
        ("control", item.control.word if item.control else "none"),
        *(("witness", f"{one.witness.title}: {one.plain.word}: {one.plain.measured}") for one in item.on_witnesses),
    ]
    _print_facts(out, facts)


_ID = 5
"""Columns of a claim's name."""


def _print_title(out: Console, title: str) -> None:
    for line in wrapped(plain(title), "  "):
        out.print(styled(line), soft_wrap=True)


def _print_table(out: Console, made: StudyTable, title: str) -> None:
    from anabranch.cli.columns import Column, print_table

    _print_title(out, title)
    rows = made.rows()
    first, *others = (Column(head, [row[i] for row in rows], is_text=not i) for i, head in enumerate(made.head()))
    print_table(out, [first], [[column] for column in others])
    if made.table.note:
        for line in ("", *wrapped(plain(made.table.note))):
            out.print(line, style="dim", soft_wrap=True)
    out.print()


def _counted(title: str, claims: list[ClaimResult]) -> str:
    """Number of reproduced claims, and verdicts of the others: "8 of 11 reproduced, 1 reproduced (fragile), …"."""
    counts = Counter(c.verdict for c in claims)
    others = "".join(f", {n} {verdict}" for verdict, n in counts.items() if verdict != "reproduced")
    said = f"{counts['reproduced']} of {len(claims)} reproduced{others}"
    return f"{title}: {said}" if title else said
