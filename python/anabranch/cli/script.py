"""``anabranch script``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anabranch import interrupt
from anabranch.cli.command import Argument, Option, command
from anabranch.cli.common import KERNEL, LIVE, check_engine, console, print_json, styled
from anabranch.cli.options import Json, Kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anabranch.script.outcome import Outcome

_WORDS = {
    "agrees": "passes",
    "differs": "fails",
    "varies": "passes in some runs only",
    "late": "no result: the machine is too busy",
    "not-applicable": "not applicable",
    "failed": "no result",
    "invalid": "cannot be run",
}
"""Outcomes, as printed."""


@dataclass(frozen=True, kw_only=True)
class ScriptOptions:
    """The options of the command."""

    files: Annotated[
        tuple[Path, ...], Argument("SCRIPT...", "Behaviour scripts, in a subset of packetdrill's language.")
    ]
    stack: Annotated[
        str | None,
        Option(
            "--stack", "Profile of the simulator's TCP, in place of the script's own (anabranch list stacks).", "NAME"
        ),
    ] = None
    engine: Annotated[
        str,
        Option(
            "--engine",
            "Which TCP. sim: the simulator's; live: this machine's kernel, in real time; kernel: a Linux kernel in "
            "virtual time.",
            "sim|live|kernel",
        ),
    ] = "sim"
    kernel: Kernel = None
    json: Json = False


@command(
    ScriptOptions,
    "anabranch script tests/scripts/*/*.pkt",
    "anabranch script tests/scripts/recovery/*.pkt --engine kernel --kernel 6.12",
    name="script",
)
def run_scripts(options: ScriptOptions) -> None:
    """Run behaviour scripts: which packets a TCP must send, and when.

    The language is a subset of packetdrill's. The target is a profile of the simulator's TCP, or a Linux kernel.
    """
    from anabranch.errors import RunFailedError, UserError
    from anabranch.script.outcome import INVALID, PASSES, read, unreadable

    check_engine(options.engine, options.kernel)
    if options.stack is not None and options.engine != "sim":
        raise UserError(
            f"--stack {options.stack} is of --engine sim: a kernel has its own stack", hint="leave one of them out"
        )
    scripts = [(file, read(file)) for file in options.files]
    if options.engine == LIVE:
        from anabranch.live import prepare

        prepare("--engine kernel runs a Linux kernel without privileges")
    else:
        interrupt.watch()
    outcomes = []
    for file, text in scripts:
        try:
            outcome = _run(options, text, str(file))
        except UserError as error:
            if len(scripts) == 1:
                raise
            # The other scripts are run all the same.
            outcome = unreadable(str(file), options.engine, error)
        outcomes.append(outcome)
        if not options.json:
            _print(outcome)
    if options.json:
        print_json([outcome.document() for outcome in outcomes])
    elif len(scripts) > 1:
        passed = sum(outcome.outcome == PASSES for outcome in outcomes)
        console().print(f"\n{passed} of {len(scripts)} scripts pass")
    failed = sum(outcome.is_failure for outcome in outcomes)
    if failed:
        raise RunFailedError("the script does not pass" if len(outcomes) == 1 else f"{failed} scripts do not pass")
    wrong = sum(outcome.outcome == INVALID for outcome in outcomes)
    if wrong:
        raise UserError(f"{wrong} of {len(outcomes)} scripts cannot be run", hint="see above for each")


def _run(options: ScriptOptions, text: str, file: str) -> Outcome:
    from anabranch.script.outcome import on_guest, on_profile, on_this_kernel

    if options.engine == LIVE:
        return on_this_kernel(text, file)
    if options.engine == KERNEL:
        return on_guest(text, file, options.kernel)
    return on_profile(text, file, options.stack)


def _print(outcome: Outcome) -> None:
    """A line, and the two sides of a difference."""
    from anabranch.text.shown import plain

    place = ":".join(str(part) for part in (plain(outcome.file), outcome.line, outcome.column) if part is not None)
    counted = f" in {outcome.agreed} of {outcome.runs} runs" if outcome.runs > 1 else ""
    target = {"sim": "profile", "live": "this kernel; profile of the script:", "kernel": "Linux"}[outcome.engine]
    out = console()
    on = f" ({target} {plain(outcome.stack)})" if outcome.stack else ""
    style = {"agrees": "green", "not-applicable": "yellow", "invalid": "yellow"}.get(outcome.outcome, "red")
    out.print(
        styled(place),
        f": {_WORDS[outcome.outcome]}{counted}{on}",
        style=style,
        sep="",
        soft_wrap=True,
    )
    if outcome.message is not None and not outcome.fields:
        out.print(f"  {plain(outcome.message)}", soft_wrap=True)
    for line in _sides(outcome):
        out.print(line, soft_wrap=True)


def _sides(outcome: Outcome) -> Iterator[str]:
    """The fields of both sides, those that differ marked."""
    from anabranch.text.shown import plain

    rows = [("", "expected", "actual")]
    rows += [(f"{'> ' if one.differs else '  '}{one.name}", plain(one.expected), plain(one.actual))
             for one in outcome.fields if one.expected or one.actual]  # fmt: skip
    if len(rows) == 1:
        return
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for row in rows:
        yield f"  {row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}".rstrip()
