"""``anabranch evaluate``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anabranch import interrupt
from anabranch.cli.blocks import write
from anabranch.cli.command import Argument, Option, command, typed
from anabranch.cli.common import FAILED, KERNEL, check_engine, complain, console, note, print_json, styled
from anabranch.cli.options import Jobs, Json, Kernel, Out, Store
from anabranch.text.lines import wrapped
from anabranch.text.shown import plain, terminal

if TYPE_CHECKING:
    from anabranch.evaluate.baseline import Stored
    from anabranch.evaluate.evaluation import Evaluation
    from anabranch.evaluate.subject import Subject

COLOURS = {"met": "green", "not met": "red", "inconclusive": "magenta", "broken": "red", "not evaluated": "dim"}
MOST_CHANGES = 12
"""Regressions that are printed."""


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """The options of the command."""

    subject: Annotated[
        str,
        Argument(
            "CONTROL|QUEUE",
            "A congestion control: its name, module:Class (Python) or FILE.bpf.c (eBPF). A queue: its kind, or a TOML "
            "file with its table.",
        ),
    ]
    against: Annotated[
        str, Option("--against", "Competitors of a congestion control, separated by commas.", "NAMES")
    ] = "cubic,bbr3,reno"
    quick: Annotated[bool, Option("--quick", "The small set of scenarios, with five seeds instead of ten.")] = False
    seed: Annotated[int, Option("--seed", "The first seed.", "N")] = 1
    repeat: Annotated[
        int | None,
        Option(
            "--repeat", "The number of seeds: more decide more verdicts. Ten, or five with --quick, when left out.", "N"
        ),
    ] = None
    engine: Annotated[
        str,
        Option(
            "--engine",
            "sim: the simulator; kernel: a Linux kernel for each run, in virtual time (anabranch kernel build).",
            "sim|kernel",
        ),
    ] = "sim"
    kernel: Kernel = None
    baseline: Annotated[
        Path | None,
        Option("--baseline", "A stored evaluation, DIR or its evaluation.json: status 1 if a figure is worse.", "PATH"),
    ] = None
    json: Json = False
    out: Out = None
    store: Store = None
    jobs: Jobs = None


@command(
    EvaluateOptions,
    "anabranch evaluate bbr3 --quick --out out/bbr3",
    "anabranch evaluate my_control:Mine --out out/mine",
    "anabranch evaluate pie --out out/pie",
    "anabranch evaluate cubic --quick --baseline out/cubic",
)
def run_evaluate(options: EvaluateOptions) -> None:
    """Evaluate a control or a queue by RFC 9743, 5166 and 7928.

    Every item of these RFCs has a set of scenarios and a verdict against CUBIC and Reno (queues: against drop-tail) in
    the same scenarios, or the reason why it is not evaluated. Status 1 if an item is broken.
    """
    from anabranch.evaluate.evaluation import Options, document, evaluate
    from anabranch.evaluate.judge import BROKEN
    from anabranch.evaluate.output import KIND, points_in, write_evaluation
    from anabranch.evaluate.runs import Finished
    from anabranch.files.output import check_target
    from anabranch.progress import Progress

    subject, names = _subject(options)
    stored = _baseline(options, subject)
    image = _image(options)
    if options.out is not None:
        check_target(options.out, KIND)
    interrupt.watch()
    chosen = Options(names, options.engine, options.kernel, options.quick, options.seed, options.repeat, options.jobs)
    points = points_in(options.out, options.store)
    place = options.store or options.out
    kept = None if place is None else f"finished runs are in {place}; the same command goes on from there"
    with interrupt.explained(kept and terminal(kept)), Progress(f"evaluate {subject.name}", 1) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total
            bar.update(done)

        result = evaluate(subject, chosen, Finished(points, image), report)
    if options.out is not None:
        words = typed("evaluate", options, "subject", "against", "quick", "seed", "repeat", "engine", "kernel")
        write_evaluation(result, options.out, words)
        note(f"wrote {options.out / 'report.html'}, SUMMARY.md and evaluation.json")
    if options.json:
        print_json(document(result))
    else:
        _print(result)
    if stored is not None:
        _compare(result, stored)
    broken = result.counts[BROKEN]
    if broken:
        items = "1 item is" if broken == 1 else f"{broken} items are"
        complain(f"{items} broken: a run of {subject.name} failed, delivered nothing or did not end")
        raise SystemExit(FAILED)


def _subject(options: EvaluateOptions) -> tuple[Subject, tuple[str, ...]]:
    """The subject and its competitors.

    Raises:
        UserError: An option is wrong, or a name is unknown.
    """
    from anabranch.errors import UserError
    from anabranch.evaluate.subject import CONTROL, builtin, find
    from anabranch.limits import check_jobs, check_repeat, check_seed

    check_engine(options.engine, options.kernel, ("sim", KERNEL))
    check_seed(options.seed)
    check_repeat(options.repeat)
    check_jobs(options.jobs)
    names = tuple(dict.fromkeys(name.strip() for name in options.against.split(",") if name.strip()))
    if not names:
        raise UserError("--against names no congestion control", hint="--against cubic,bbr3,reno")
    for name in names:
        builtin(name)
    subject = find(options.subject)
    if subject.role != CONTROL and options.against != EvaluateOptions.against:
        raise UserError("--against is for congestion controls, and a queue is evaluated", hint="leave it out")
    if options.engine == KERNEL and subject.controls:
        raise UserError("a kernel runs no congestion control in Python", hint="--engine sim")
    return subject, names


def _baseline(options: EvaluateOptions, subject: Subject) -> Stored | None:
    """The stored evaluation, which is of the same kind.

    Raises:
        UserError: There is none, or it cannot be compared.
    """
    from anabranch.evaluate import baseline

    if options.baseline is None:
        return None
    stored = baseline.read(options.baseline)
    baseline.check_same(stored, role=subject.role, engine=options.engine, is_quick=options.quick)
    return stored


def _image(options: EvaluateOptions) -> tuple[str, ...]:
    """The kernel that makes the runs, as a part of their keys.

    Raises:
        UserError: There is no such kernel.
    """
    if options.engine != KERNEL:
        return ()
    from anabranch.kernel.images import chosen

    image = chosen(options.kernel)
    return KERNEL, image.release, image.recipe


def _print(result: Evaluation) -> None:
    """One line for each item, with the reason below those that are not met."""
    from anabranch.evaluate import words

    out = console()
    out.print(styled(words.title(result)))
    write(out, wrapped(plain(words.facts(result)), "  "))
    document = ""
    for one in result.items:
        if one.item.document != document:
            document = one.item.document
            out.print()
            out.print(styled(document))
        line = styled(f"  {one.item.section:<6} {one.verdict:<14}", COLOURS[one.verdict])
        out.print(line.append(f" {one.item.title}", style="not bold"), soft_wrap=True)
        is_omitted = one.verdict == "not evaluated" and one.checks
        if one.verdict in ("not met", "inconclusive", "broken") or is_omitted:
            write(out, wrapped(f"{'':<23} {plain(words.of_item(one, most=1))}", " " * 24))
    out.print()
    out.print(words.tally(result))


def _compare(result: Evaluation, stored: Stored) -> None:
    """Say what became worse, and end with status 1 if anything did."""
    from anabranch.evaluate.baseline import compare

    compared = compare(result, stored)
    found = compared.changes
    others = f"; {compared.unpaired} cases are in one of the evaluations alone" if compared.unpaired else ""
    name = stored["subject"].get("name")
    if name != result.subject.name:
        note(f"the baseline is an evaluation of {name}, and this one of {result.subject.name}")
    if not compared.cases:
        complain("no case of this evaluation is in the baseline")
        raise SystemExit(FAILED)
    if not found:
        note(f"no figure of {compared.cases} cases is worse than in the baseline{others}")
        return
    for one in found[:MOST_CHANGES]:
        note(f"worse: {one.check}, {one.case}: {one.why}")
    told = "1 figure is" if len(found) == 1 else f"{len(found)} figures are"
    shown = f"; the first {MOST_CHANGES} are shown" if len(found) > MOST_CHANGES else ""
    complain(f"{told} worse than in the baseline, outside their intervals{shown}{others}")
    raise SystemExit(FAILED)
