"""``anabranch run``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from anabranch import interrupt
from anabranch.cli.command import Option, command, typed
from anabranch.cli.common import KERNEL, LIVE, check_engine, console, load_scenario, note, write_json
from anabranch.cli.options import Digest, Engine, File, Force, Json, Kernel, Out, Sets, Untrusted
from anabranch.extras import need, remark_once
from anabranch.files.capture import SNAP_LENGTH
from anabranch.limits import SAMPLES_MS

if TYPE_CHECKING:
    from anabranch.files.capture_file import CaptureFile
    from anabranch.result.result import RunResult
    from anabranch.scenario import Scenario
    from anabranch.why import Why


VIRTUAL = "s of virtual time"
"""Unit of a progress bar."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of the command; an option that needs another is ``None`` if it was left out."""

    file: File
    seed: Annotated[int | None, Option("--seed", "Seed of random numbers; the scenario's when left out.", "N")] = None
    sets: Sets = ()
    controls: Annotated[
        tuple[str, ...],
        Option(
            "--control",
            "A congestion control in Python that the scenario names; may be given more than once.",
            "module:Class",
        ),
    ] = ()
    json: Json = False
    out: Out = None
    engine: Engine = "sim"
    kernel: Kernel = None
    digest: Digest = True
    packets: Annotated[
        bool | None,
        Option("--packets/--no-packets", "With --out: a table with a row per packet (default), or none."),
    ] = None
    samples_ms: Annotated[
        float | None,
        Option("--samples", f"With --out: time between two samples, in ms ({SAMPLES_MS:g} when left out).", "MS"),
    ] = None
    figures: Annotated[
        bool, Option("--figures", "With --out: draw the charts of the report as PDF, SVG and PNG, too.")
    ] = False
    fast_path: Annotated[
        bool,
        Option("--fast-path/--no-fast-path", "Compute links that cannot change as arithmetic; results are the same."),
    ] = True
    pcap: Annotated[
        tuple[str, ...],
        Option(
            "--pcap",
            "Capture the packets that enter this link, as pcapng; may be given more than once.",
            "LINK[.forward|.reverse]=FILE",
        ),
    ] = ()
    snap_length: Annotated[
        int | None,
        Option("--snaplen", f"With --pcap: bytes kept of each packet ({SNAP_LENGTH} when left out).", "BYTES"),
    ] = None
    all_flows: Annotated[
        bool, Option("--all-flows", "Print every flow and every copy of it, however many there are.")
    ] = False
    all_links: Annotated[bool, Option("--all-links", "Print every link, however many there are.")] = False
    wide: Annotated[bool, Option("--wide", "Print tables, a row per flow; they are wider than 80 columns.")] = False
    why: Annotated[
        str | None,
        Option("--why", "Sum up why packets were retransmitted; =all: each one.", "[=all]", alone="summary"),
    ] = None
    trace: Annotated[
        str | None,
        Option(
            "--trace",
            "With --engine live: trace the kernel's TCP. By default acks with --out, else events, where possible.",
            "acks|events|off",
        ),
    ] = None
    allow_tainted: Annotated[
        bool,
        Option(
            "--allow-tainted",
            "With --engine live: show the figures of a run whose engine was too late or lost packets, marked.",
        ),
    ] = False
    untrusted: Untrusted = False
    force: Force = False


@command(
    RunOptions,
    "anabranch run scenarios/reordering.toml --set flow.main.cc=reno --why",
    "anabranch run scenarios/reordering.toml --out out/run",
)
def run_once(options: RunOptions) -> None:
    """Run one scenario once.

    Prints a block per flow, a line per direction of a link, and remarks on settings that affect the figures.
    """
    from anabranch.files.capture import check_snap_length
    from anabranch.files.output import check_target
    from anabranch.limits import check_samples, check_seed
    from anabranch.live import remarks
    from anabranch.progress import Progress

    _check_engine(options)
    if options.engine == LIVE:
        _check_live()
    else:
        interrupt.watch()
    check_seed(options.seed)
    check_samples(options.samples_ms)
    snap_length = SNAP_LENGTH if options.snap_length is None else options.snap_length
    check_snap_length(snap_length)
    _check_together(options)
    scenario = load_scenario(options.file, options.sets, seed=options.seed, untrusted=options.untrusted)
    if options.controls:
        from anabranch.evaluate.subject import load_class

        scenario = scenario.with_controls(*(load_class(name) for name in options.controls))
    if options.out is not None:
        check_target(options.out, "run")
    captures = _captures(scenario, options)
    samples_ms = (options.samples_ms or SAMPLES_MS) if options.out else None
    total, unit = 1.0, ""
    if options.engine == KERNEL:
        from anabranch.kernel.engine import check

        total, unit = check(scenario, options.seed), VIRTUAL
    with Progress(options.file.name, total, unit) as progress:
        packets = options.packets is not False and (options.why is not None or options.out is not None)
        recorded = {
            "seed": options.seed,
            "samples_ms": samples_ms,
            "packets": packets,
            "captures": [capture.capture for capture in captures],
            "snap_length": snap_length,
            "progress": lambda share: progress.update(share * total),
        }
        result = _made(scenario, options, recorded)
    interrupt.watch()
    for told in remarks(result.live) if result.live is not None else ():
        note(told)
    _check_taint(result, options)
    why = result.why() if options.why else None
    if options.out is not None:
        from anabranch.report.run_output import write_run

        inside = [(c.capture, c.inside) for c in captures if c.inside is not None]
        write_run(result, options.out, inside, figures=options.figures, command=_command_line(options))
        note(f"wrote {options.out / 'report.html'}{', figures' if options.figures else ''} and tables")
        remark_once(note, "polars")
    for capture in captures:
        whole = capture.inside is not None or capture.write(result.pcapng(capture.capture))
        note(f"wrote {capture.given}" + ("" if whole else " until its reader went away"))
    # A capture on standard output must not be mixed with the text.
    _show(result, why, options, to_error=any(capture.is_standard_output for capture in captures))


def _check_engine(options: RunOptions) -> None:
    """Refuse options that the engine does not have.

    Raises:
        UserError: There is one.
    """
    from anabranch.errors import UserError

    check_engine(options.engine, options.kernel)
    if options.trace is not None and options.engine != LIVE:
        raise UserError(
            f"--trace traces this machine's TCP, which --engine {options.engine} does not have",
            hint="give --engine live",
        )
    if options.allow_tainted and options.engine != LIVE:
        raise UserError(
            f"--allow-tainted is for live runs; runs of --engine {options.engine} are exact",
            hint="give --engine live",
        )
    if options.controls and options.engine != "sim":
        raise UserError(f"--engine {options.engine} runs no congestion control in Python", hint="give --engine sim")
    if options.trace == "off" and options.why:
        raise UserError("--why reads the trace, and --trace off makes none", hint="give one of them")
    if options.engine == KERNEL and options.why:
        raise UserError("--why reads a trace, and --engine kernel makes none", hint="give --engine sim or live")


def _made(scenario: Scenario, options: RunOptions, recorded: dict[str, Any]) -> RunResult:
    """Make the run with its engine.

    Raises:
        ScenarioError: The engine cannot run the scenario.
        UserError: The machine does not let it.
        RunFailedError: The run failed.
    """
    if options.engine == KERNEL:
        return scenario.run_kernel(kernel=options.kernel, **recorded)
    if options.engine == LIVE:
        from anabranch.live import run_audited

        return run_audited(
            scenario,
            **recorded,
            # Only the trace shows retransmissions of the kernel and their causes.
            trace=options.trace or (("acks" if options.out else "events") if options.why else None),
            otherwise="--engine sim" + (", which has no --trace" if options.trace else ""),
            untraced="without --trace and --why",
        )
    with _control_errors(scenario):
        return scenario.run(digest=options.digest, fast_path=options.fast_path, **recorded)


@contextmanager
def _control_errors(scenario: Scenario) -> Iterator[None]:
    """Name the control in Python that raised an error, and the option for one that the scenario needs.

    Raises:
        ScenarioError: The scenario is wrong.
        RunFailedError: A control raised an error, or ended the program.
    """
    from anabranch._engine import ScenarioError
    from anabranch.control_errors import described
    from anabranch.errors import RunFailedError, UserError

    try:
        yield
    except ScenarioError as error:
        if error.message.startswith("unknown congestion control"):
            error.args = (f"{error}\n  = a control in Python: --control FILE.py:Class",)
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        controls = tuple(scenario.controls.values())
        is_of_anabranch = isinstance(error, (UserError, RunFailedError, OSError, MemoryError)) and not (
            type(error) is UserError and any(str(error).startswith(f"{one.__name__}.") for one in controls)
        )
        if not controls or is_of_anabranch:
            raise
        told = str(error) if isinstance(error, UserError) else described(error, controls)
        raise RunFailedError(f"a congestion control in Python failed: {told}") from None


def _command_line(options: RunOptions) -> str:
    """The command that repeats this run."""
    names = ("file", "sets", "controls", "seed", "engine", "kernel", "samples_ms", "packets", "untrusted")
    return f"{typed('run', options, *names)} --out DIR"


def _show(result: RunResult, why: Why | None, options: RunOptions, *, to_error: bool) -> None:
    """Print the document, or the tables."""
    from anabranch.cli.blocks import print_blocks
    from anabranch.cli.tables import print_tables
    from anabranch.cli.why import print_all, print_summary, with_why

    if options.json:
        # Unchanged from the engine: the contract fixes every digit.
        document = result.summary_json.rstrip()
        write_json((document if why is None else with_why(document, why)) + "\n")
    else:
        out = console(error=to_error)
        (print_tables if options.wide else print_blocks)(
            result, out, all_flows=options.all_flows, all_links=options.all_links
        )
        if why is not None:
            (print_all if options.why == "all" else print_summary)(why, out, result)


def _check_taint(result: RunResult, options: RunOptions) -> None:
    """Refuse a tainted run unless it is permitted; a permitted run is marked.

    Raises:
        RunFailedError: It is tainted.
    """
    from anabranch.errors import RunFailedError
    from anabranch.live import taint, taint_advice, tainted_message

    reasons = taint(result)
    if not reasons:
        return
    if not options.allow_tainted:
        raise RunFailedError(tainted_message(result, "--allow-tainted shows its figures, marked"))
    note("the live run is tainted, and its figures are no result: " + "; ".join(reasons))
    note(f"  {taint_advice(result)}")


def _check_together(options: RunOptions) -> None:
    """Refuse options that have no effect, or contradict each other.

    Raises:
        UserError: There is one.
    """
    from anabranch.cli.why import WORDS
    from anabranch.errors import UserError, nearest

    if options.why is not None and options.why not in WORDS:
        raise UserError(f"--why={options.why}: --why or --why=all was expected", hint=nearest(options.why, ["all"]))
    if options.why and options.packets is False:
        raise UserError("--why reads every packet, and --no-packets records none", hint="give one of them")
    if options.out is None:
        wrote = "selects output of --out, and there is no --out"
        if options.samples_ms is not None:
            raise UserError(f"--samples {wrote}", hint="give --out DIR, or leave it out")
        if options.packets is not None:
            name = "--packets" if options.packets else "--no-packets"
            raise UserError(f"{name} {wrote}", hint="give --out DIR, or leave it out")
        if options.figures:
            raise UserError(f"--figures {wrote}", hint="give --out DIR, or leave it out")
    if options.figures:
        need("matplotlib", "--figures")
    if options.force and not options.pcap:
        raise UserError("--force is for the files of --pcap, and none is given", hint="leave it out")
    if options.snap_length is not None and not options.pcap:
        raise UserError(
            "--snaplen needs --pcap, whose packets it limits",
            hint="give --pcap LINK=FILE, or leave it out",
        )
    if options.all_flows and options.json:
        raise UserError("--all-flows is of the printed output; --json has every flow", hint="give one of them")
    if options.all_links and options.json:
        raise UserError("--all-links is of the printed output; --json has every link", hint="give one of them")
    if options.wide and options.json:
        raise UserError("--wide is of the printed output, and --json prints none", hint="give one of them")


def _captures(scenario: Scenario, options: RunOptions) -> list[CaptureFile]:
    """Files of the captures; none replaces the scenario or a file that the scenario names.

    Raises:
        ScenarioError: The scenario is wrong.
        UserError: An option is.
    """
    import json

    from anabranch import _engine
    from anabranch.errors import UserError
    from anabranch.files.capture_file import capture_files

    if not options.pcap:
        return []
    live = options.engine != "sim"
    resolved = json.loads(
        _engine.resolve(scenario.text, scenario.file, scenario.sets, options.seed, live, untrusted=scenario.untrusted)
    )
    captures = capture_files(
        options.pcap, [options.file, *map(Path, resolved["files"])], options.out, force=options.force
    )
    for capture in captures:
        if capture.is_standard_output and options.json:
            raise UserError(
                f"--pcap {capture.capture}={capture.given} and --json both write standard output",
                hint="give one of them another place",
            )
    return captures


def _check_live() -> None:
    """Make sure that this process may run live.

    Raises:
        UserError: The machine does not permit it.
    """
    from anabranch.live import prepare

    # Before any thread is started: a process with several cannot enter a user namespace.
    prepare("--engine sim")
