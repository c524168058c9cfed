"""``anabranch vectors``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anabranch.cli.command import Argument, Option, command
from anabranch.cli.common import console, print_json
from anabranch.cli.options import Json, Out, directory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anabranch.vectors.compared import Check


@dataclass(frozen=True, kw_only=True)
class VectorsOptions:
    """The options of the command."""

    controls: Annotated[
        tuple[str, ...], Argument("[CONTROL]...", "Congestion controls (anabranch list cc); all when left out.")
    ] = ()
    out: Out = None
    check: Annotated[
        Path | None,
        Option(
            "--check", "Compare the vectors in this directory with those that this version makes.", "DIR", directory
        ),
    ] = None
    compare: Annotated[
        Path | None,
        Option(
            "--compare",
            "Compare the trace of another stack, CSV or qlog, with the vector of one control and --scenario.",
            "FILE",
        ),
    ] = None
    scenario: Annotated[str | None, Option("--scenario", "The scenario of the trace.", "NAME")] = None
    mss: Annotated[
        int | None, Option("--mss", "Payload of a full packet in the trace, in bytes: 1448 when left out.", "BYTES")
    ] = None
    qlog: Annotated[
        bool, Option("--qlog/--no-qlog", "With --out: also write each vector as qlog (default), or as CSV alone.")
    ] = True
    json: Json = False


@command(
    VectorsOptions,
    "anabranch vectors --out vectors",
    "anabranch vectors cubic --compare neqo.qlog --scenario one-loss --mss 1200",
    name="vectors",
)
def run_vectors(options: VectorsOptions) -> None:
    """Make reference vectors of controls, or compare with them.

    A vector is what a congestion control does in a small scenario: its window, data in flight, pacing rate and
    round-trip time over time.
    """
    from anabranch.errors import UserError

    given = [one for one in (options.out, options.check, options.compare) if one is not None]
    if len(given) > 1:
        raise UserError("--out, --check and --compare are three tasks", hint="give one of them")
    if options.compare is None:
        for name, value in (("--scenario", options.scenario), ("--mss", options.mss)):
            if value is not None:
                raise UserError(f"{name} {value} is of --compare", hint="add --compare FILE, or leave it out")
    if options.out is None and not options.qlog:
        raise UserError("--no-qlog is of --out", hint="add --out DIR, or leave it out")
    if options.compare is not None:
        _compare(options, options.compare)
    elif options.check is not None:
        _check(options, options.check)
    elif options.out is not None:
        _write(options, options.out)
    else:
        _list(options)


def _list(options: VectorsOptions) -> None:
    """The controls and the scenarios."""
    from anabranch.text.lines import wrapped
    from anabranch.vectors.folder import chosen
    from anabranch.vectors.scenarios import VECTORS

    names = chosen(options.controls)
    if options.json:
        print_json({"controls": names, "scenarios": {vector.name: vector.about for vector in VECTORS}})
        return
    out = console()
    for line in wrapped(f"Controls: {', '.join(names)}", "  "):
        out.print(line, soft_wrap=True)
    out.print("\nScenarios")
    for vector in VECTORS:
        for line in wrapped(f"  {vector.name:<18}{vector.about}", " " * 20):
            out.print(line, soft_wrap=True)
    out.print("\n--out DIR writes the vectors, --check DIR checks them, --compare FILE compares a trace.")


def _write(options: VectorsOptions, out: Path) -> None:
    from anabranch.files.output import check_target, whole_directory
    from anabranch.progress import Progress
    from anabranch.vectors.folder import chosen, write

    names = chosen(options.controls)
    check_target(out, "vectors")
    with Progress("vectors", 1) as progress, whole_directory(out, "vectors") as aside:
        count = write(aside, names, qlog=options.qlog, progress=progress.update)
    if options.json:
        print_json({"out": str(out), "vectors": count, "controls": names})
    else:
        controls = "1 control" if len(names) == 1 else f"{len(names)} controls"
        console().print(f"{count} vectors of {controls} in {out}", soft_wrap=True)


def _check(options: VectorsOptions, folder: Path) -> None:
    from anabranch.errors import RunFailedError
    from anabranch.progress import Progress
    from anabranch.vectors.folder import differences

    with Progress("vectors", 1) as progress:
        found = differences(folder, options.controls, progress=progress.update)
    if options.json:
        print_json({"folder": str(folder), "differences": found})
    else:
        out = console()
        for line in found:
            out.print(line, soft_wrap=True)
        if not found:
            out.print("every vector is the one that this version makes")
    if found:
        raise RunFailedError(f"{folder}: {len(found)} differences")


def _compare(options: VectorsOptions, file: Path) -> None:
    from anabranch.errors import RunFailedError, UserError, nearest
    from anabranch.vectors.compared import compare
    from anabranch.vectors.folder import chosen
    from anabranch.vectors.made import rows
    from anabranch.vectors.scenarios import SMSS, VECTORS, named
    from anabranch.vectors.trace import read

    if len(options.controls) != 1:
        raise UserError(
            "--compare is of one control", hint="anabranch vectors cubic --compare FILE --scenario one-loss"
        )
    (control,) = chosen(options.controls)
    names = [vector.name for vector in VECTORS]
    vector = named(options.scenario or "")
    if vector is None:
        told = (
            "--compare needs --scenario" if options.scenario is None else f'there is no scenario "{options.scenario}"'
        )
        raise UserError(told, hint=nearest(options.scenario or "", names))
    mss = SMSS if options.mss is None else options.mss
    if not 1 <= mss <= 65_535:
        raise UserError(f"--mss is {mss}; expected 1 to 65,535 bytes")
    trace = read(file)
    found = rows(vector, control)
    expected = [row.time_s for row in found], [row.cwnd / SMSS for row in found]
    actual = trace.times, [one if trace.is_packets else one / mss for one in trace.windows]
    checks = compare(expected, actual)
    if options.json:
        print_json({"control": control, "scenario": vector.name, "checks": [_document(one) for one in checks]})
    else:
        _print(checks)
    wrong = sum(not one.holds for one in checks)
    if wrong:
        raise RunFailedError(f"{wrong} of {len(checks)} figures are outside their tolerance")


def _document(check: Check) -> dict[str, object]:
    return {
        "what": check.what, "expected": check.expected, "actual": check.actual, "tolerance": check.tolerance,
        "unit": check.unit or None, "holds": check.holds,
    }  # fmt: skip


def _print(checks: Sequence[Check]) -> None:
    from anabranch.cli.columns import Column, print_table

    texts = [Column("", [one.what for one in checks], is_text=True)]
    figures = [
        Column("vector", [f"{one.expected:.3g}" for one in checks]),
        Column("trace", [f"{one.actual:.3g}" for one in checks]),
        Column("tolerance", [f"± {one.tolerance:.2g}" for one in checks]),
        Column("unit", [one.unit for one in checks], is_text=True),
        Column("", ["" if one.holds else "differs" for one in checks], is_text=True),
    ]
    print_table(console(), texts, [[one] for one in figures])
