"""The commands and their options; each command's work is in a module of its own, imported when it is called."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from anabranch.cli.command import Command, GatewayGroup, Group, RunCommand, Verbatim
from anabranch.cli.common import exit_status
from anabranch.cli.version import print_version
from anabranch.files.capture import SNAP_LENGTH
from anabranch.limits import SAMPLES_MS

# No `from __future__ import annotations`: typer would compile each annotation again, which `--help` waits for.
# Optional[…]: typer evaluates annotations, and Python 3.10 with its oldest typing helpers reads this form surely.

app = typer.Typer(
    name="anabranch",
    help="Anabranch: what TCP does on a path that reorders, loses, delays, splits or changes its capacity.",
    epilog="Exit status: 0 done, 1 the run or a check failed, 2 bad input, 130 or 143 ended by a signal.",
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _directory(text: str) -> Path:
    """A directory that an option names; what is empty names none, where a path would make "." of it."""
    if not text:
        raise typer.BadParameter("it is empty; a directory was expected")
    return Path(text)


def _example(*lines: str) -> str:
    """The end of a help text: lines to type, each as it stands."""
    return "\n".join(["\b", "Example:", *(f"  {line}" for line in lines)])


File = Annotated[Path, typer.Argument(metavar="FILE", help="Scenario file (TOML); - reads standard input.")]
Sets = Annotated[
    Optional[list[str]],  # noqa: UP045 - see above
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Change a value, e.g. link.a.rate='10 Mbit/s'; may be given more than once."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output and nothing else.")]
Out = Annotated[
    Optional[Path],  # noqa: UP045 - see above
    typer.Option(
        "--out",
        metavar="DIR",
        parser=_directory,
        help="Write results into this directory; nothing is written when left out.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Also replace files that anabranch did not make.")]
StoreOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--store",
        metavar="DIR",
        parser=_directory,
        help="Keep and take finished runs here; sweeps, studies and comparisons share it.",
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="sim|live|kernel",
        help="sim: in virtual time; live: the kernel's TCP between network namespaces; kernel: the same in a Linux "
        "kernel of its own, in virtual time (anabranch kernel build).",
    ),
]
SimulatedEngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="sim|kernel",
        help="Of scenario files. sim: the simulator; kernel: a Linux kernel for each run, in virtual time (anabranch "
        "kernel build).",
    ),
]
KernelOption = Annotated[
    Optional[str],  # noqa: UP045 - see above
    typer.Option(
        "--kernel",
        metavar="RELEASE",
        help="With --engine kernel: the kernel, by the beginning of its release (6.12), as `anabranch kernel list` "
        "shows it; the scenario's when left out, else the newest.",
    ),
]
Jobs = Annotated[
    Optional[int],  # noqa: UP045 - see above
    typer.Option("--jobs", metavar="N", help="Runs at once; as many as there are cores when left out."),
]
Untrusted = Annotated[
    bool,
    typer.Option(
        "--untrusted",
        help="Do not trust the scenario: refuse files outside its folder, exec, attach, bpf.",
    ),
]
Digest = Annotated[
    bool,
    typer.Option(
        "--digest/--no-digest",
        show_default=False,
        help="Print a hash over what happened to every packet (default), or none.",
    ),
]


@app.callback(invoke_without_command=True)
def top(
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
) -> None:
    """Anabranch: what TCP does on a path that reorders, loses, delays, splits or changes its capacity."""
    if version:
        with exit_status():
            print_version()
        raise typer.Exit


@app.command(cls=Command, epilog=_example("anabranch demo --open"))
def demo(
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", parser=_directory, help="Where the page and the study's report go."),
    ] = Path("anabranch-demo"),
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    jobs: Jobs = None,
) -> None:
    """Run the reordering study in quick mode and write a page of it.

    About 15 seconds on two cores. DIR/index.html has the main figure and a verdict for each claim.
    """
    with exit_status():
        from anabranch.cli.demo import run_demo

        run_demo(out, jobs=jobs, opens=open_)


@app.command(cls=Command, epilog=_example("anabranch new first", "anabranch new second --from fairness"))
def new(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Where the scenario goes; made if it is missing.")],
    from_: Annotated[
        str, typer.Option("--from", metavar="NAME", help="A ready-made scenario in place of the starter.")
    ] = "starter",
) -> None:
    """Write a commented scenario to begin with: DIR/scenario.toml.

    The schema beside it lets editors complete and check keys.
    """
    with exit_status():
        from anabranch.cli.new import write_new

        write_new(_directory(directory), from_)


@app.command(
    cls=RunCommand,
    epilog=_example(
        "anabranch run scenarios/reordering.toml --set flow.main.cc=reno --why",
        "anabranch run scenarios/reordering.toml --out out/run",
    ),
)
def run(
    file: File,
    seed: Annotated[
        Optional[int], typer.Option(metavar="N", help="Seed of random numbers; the scenario's when left out.")  # noqa: UP045 - see above
    ] = None,
    set_: Sets = None,
    json: Json = False,
    out: Out = None,
    engine: EngineOption = "sim",
    kernel: KernelOption = None,
    digest: Digest = True,
    packets: Annotated[
        Optional[bool],  # noqa: UP045 - see above
        typer.Option("--packets/--no-packets", help="With --out: a table with a row per packet (default), or none."),
    ] = None,
    samples: Annotated[
        Optional[float],  # noqa: UP045 - see above
        typer.Option(metavar="MS", help=f"With --out: time between two samples, in ms ({SAMPLES_MS:g} when left out)."),
    ] = None,
    figures: Annotated[
        bool, typer.Option("--figures", help="With --out: draw the charts of the report as PDF, SVG and PNG, too.")
    ] = False,
    fast_path: Annotated[
        bool,
        typer.Option(
            "--fast-path/--no-fast-path",
            show_default=False,
            help="Compute links that cannot change as arithmetic; results are the same.",
        ),
    ] = True,
    pcap: Annotated[
        Optional[list[str]],  # noqa: UP045 - see above
        typer.Option(
            "--pcap",
            metavar="LINK[.forward|.reverse]=FILE",
            help="Capture what enters this link, as pcapng; may be given more than once.",
        ),
    ] = None,
    snaplen: Annotated[
        Optional[int],  # noqa: UP045 - see above
        typer.Option(
            "--snaplen", metavar="BYTES", help=f"With --pcap: bytes kept of each packet ({SNAP_LENGTH} when left out)."
        ),
    ] = None,
    all_flows: Annotated[
        bool, typer.Option("--all-flows", help="Print every flow and every copy of it, however many there are.")
    ] = False,
    all_links: Annotated[bool, typer.Option("--all-links", help="Print every link, however many there are.")] = False,
    wide: Annotated[
        bool, typer.Option("--wide", help="Print tables, a row per flow; they are wider than 80 columns.")
    ] = False,
    why: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--why", metavar="[=all]", help="Sum up why packets were retransmitted; =all: each one."),
    ] = None,
    trace: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option(
            metavar="acks|events|off",
            help="With --engine live: trace the kernel's TCP. By default acks with --out, else events, where possible.",
        ),
    ] = None,
    allow_tainted: Annotated[
        bool,
        typer.Option(
            "--allow-tainted",
            help="With --engine live: show the figures of a run whose engine was too late or lost packets, marked.",
        ),
    ] = False,
    untrusted: Untrusted = False,
    force: Force = False,
) -> None:
    """Run one scenario once.

    Prints a block per flow, a line per direction of a link, and remarks on settings that change what figures mean.
    """
    with exit_status():
        from anabranch.cli.run import RunOptions, run_once

        run_once(
            file,
            set_ or [],
            RunOptions(
                seed,
                json,
                out,
                engine,
                digest,
                packets,
                samples,
                fast_path,
                pcap or [],
                snaplen,
                why,
                trace,
                all_flows,
                allow_tainted,
                untrusted,
                wide,
                figures,
                all_links,
                force,
                kernel,
            ),
        )


@app.command(
    cls=Command,
    epilog=_example(
        "anabranch study", "anabranch study reordering --quick", "anabranch study my-study --out out/my-study"
    ),
)
def study(
    names: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(
            metavar="[NAME|DIRECTORY]...",
            help="Studies that ship, by name, or directories of others; when left out, those that ship are listed.",
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Run all studies that ship.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="The study's quick grid instead of the full one.")] = False,
    robustness: Annotated[
        bool, typer.Option("--robustness", help="Also judge over the open parameters' ranges, and keep the answer.")
    ] = False,
    json: Json = False,
    out: Out = None,
    engine: EngineOption = "sim",
    kernel: KernelOption = None,
    jobs: Jobs = None,
    attempts: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(metavar="N", help="With --engine live: runs at most until one is not tainted (2 when left out)."),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Reproduce published studies: claims with verdicts, figures.

    Verdicts are printed; report, figures and tables are written with --out, of several studies each into a
    directory of its own there.
    """
    with exit_status():
        from anabranch.cli.study import StudyOptions, run_studies

        run_studies(
            names or [], StudyOptions(quick, robustness, json, out, engine, jobs, attempts, all_, store, kernel)
        )


@app.command(
    cls=Command,
    epilog=_example(
        "anabranch sweep scenarios/reordering.toml --repeat 5 --out out/sweep \\",
        "  --grid flow.main.cc=reno,cubic,bbr",
        "anabranch sweep path.toml --range 'link.a.rate=1..90 Mbit/s:log' --points 64",
        "anabranch sweep path.toml --until goodput:5%",
        "anabranch sweep path.toml --shard 1/2 --out part-1",
        "anabranch sweep merge part-1 part-2 --out whole",
    ),
)
def sweep(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|merge DIR...", help="Scenario file (TOML); or merge, and the shards' directories."
        ),
    ],
    grid: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--grid", metavar="PATH=A,B,C", help="Values of one path; may be given more than once."),
    ] = None,
    repeat: Annotated[
        Optional[int],  # noqa: UP045 - see above
        typer.Option(metavar="N", help="Seeds per point, from the seed on (the file's when left out, else 1)."),
    ] = None,
    set_: Sets = None,
    jobs: Jobs = None,
    json: Json = False,
    out: Out = None,
    shard: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--shard", metavar="I/N", help="Run part I of N into --out; `sweep merge` puts parts together."),
    ] = None,
    report: Annotated[
        Optional[Path],  # noqa: UP045 - see above
        typer.Option("--report", metavar="FILE.html", help="Write charts of every measure as one page."),
    ] = None,
    store: StoreOption = None,
    range_: Annotated[
        Optional[list[str]],  # noqa: UP045 - see above
        typer.Option(
            "--range",
            metavar="PATH=LOW..HIGH",
            help="A range of which --points are run; LOW..HIGH:log for ratios; may be given more than once.",
        ),
    ] = None,
    design: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option(metavar="grid|lhs|sobol", help="How points of the ranges are chosen (sobol when left out)."),
    ] = None,
    points: Annotated[
        Optional[int],  # noqa: UP045 - see above
        typer.Option(metavar="N", help="Points of the ranges; of a grid, of each range."),
    ] = None,
    until: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option(
            metavar="FIGURE:WIDTH",
            help="Seeds of each point until its 95 % interval is that wide (0.2, or 5%); --repeat is the most (1000).",
        ),
    ] = None,
    refine: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option(metavar="FIGURE:N", help="N points more where the figure's curve over the one range bends."),
    ] = None,
    ray: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option(metavar="ADDRESS", help="Run on a Ray cluster; local starts one here."),
    ] = None,
    engine: SimulatedEngineOption = "sim",
    kernel: KernelOption = None,
    digest: Digest = True,
    untrusted: Untrusted = False,
    force: Force = False,
) -> None:
    """Run a scenario over a grid, on all cores.

    With --out an interrupted sweep goes on where it stopped. A point is made again if the scenario, a file that it
    names, or this program has changed.

    Parts of a sweep can run on machines that share nothing: --shard 1/4 to --shard 4/4, each with an --out of its own.
    `anabranch sweep merge DIR... --out DIR` makes the tables of the whole.
    """
    with exit_status():
        from anabranch.cli.sweep import SweepOptions, run_merge, run_sweep

        options = SweepOptions(
            repeat,
            jobs,
            json,
            out,
            digest,
            untrusted,
            shard,
            store,
            tuple(range_ or ()),
            design,
            points,
            until,
            refine,
            ray,
            report,
            force,
            engine,
            kernel,
        )
        if files[0] == Path("merge") and (len(files) > 1 or not files[0].is_file()):
            run_merge(files[1:], set_ or [], grid or [], options)
        else:
            run_sweep(files, set_ or [], grid or [], options)


@app.command(
    cls=Command,
    epilog=_example("anabranch compare reno.toml cubic.toml", "anabranch compare out/a out/b --measure goodput"),
)
def compare(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="A B...", help="Directories of run --out or sweep --out, JSON of run --json, or scenario files."
        ),
    ],
    measure: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--measure",
            metavar="NAME",
            help="goodput, link.utilization, flow.main.timeouts, …; may be given more than once.",
        ),
    ] = None,
    seed: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(metavar="N", help="Of scenario files; the seed of the first input when left out."),
    ] = None,
    repeat: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(metavar="N", help="Run each scenario file with N seeds, from the seed on."),
    ] = None,
    json: Json = False,
    out: Out = None,
    store: StoreOption = None,
    engine: SimulatedEngineOption = "sim",
    kernel: KernelOption = None,
    untrusted: Untrusted = False,
) -> None:
    """Set runs, or sweeps, side by side.

    Differences are in per cent of the first. Scenario files are run first, all with the same seeds. With repeats
    it also says which differences are significant: by a paired t-test where the seeds are the same, by Welch's
    otherwise.
    """
    with exit_status():
        from anabranch.cli.compare import CompareOptions, run_compare

        run_compare(inputs, CompareOptions(measure or [], seed, repeat, json, out, untrusted, store, engine, kernel))


@app.command(
    cls=Command,
    epilog=_example(
        "anabranch diagnose slow.pcapng",
        "anabranch diagnose slow.pcapng --connection 3",
        "anabranch diagnose slow.pcapng --host 192.0.2.7 --port 443 --around 14:03:20",
        "anabranch diagnose slow.pcapng --replay",
        "anabranch diagnose slow.pcapng --advise --engine kernel",
        "anabranch diagnose slow.pcapng --out slow",
        "anabranch diagnose slow.pcapng --annotate annotated.pcapng",
        "anabranch diagnose a.pcap --json",
        "anabranch diagnose --follow eth0 --save-on zero-window --ring 2min",
    ),
)
def diagnose(
    capture: Annotated[
        Optional[Path],  # noqa: UP045 - see above
        typer.Argument(metavar="CAPTURE", help="A pcap or pcapng file, also compressed with gzip or zstd."),
    ] = None,
    connection: Annotated[
        Optional[int],  # noqa: UP045 - see above
        typer.Option("--connection", metavar="N", help="Only this connection, in detail."),
    ] = None,
    host: Annotated[
        Optional[list[str]],  # noqa: UP045 - see above
        typer.Option(
            "--host", metavar="ADDRESS", help="Only connections of this host or network; of both if given twice."
        ),
    ] = None,
    port: Annotated[
        Optional[int],  # noqa: UP045 - see above
        typer.Option("--port", metavar="N", help="Only connections with this port at either end."),
    ] = None,
    around: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option(
            "--around",
            metavar="TIME",
            help="Only connections that were open then: 14:03:20, 2026-11-28T14:03:20, or seconds from the start.",
        ),
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Simulate the connection on its fitted path, and compare with the capture.")
    ] = False,
    advise: Annotated[
        bool, typer.Option("--advise", help="Simulate remedies on the fitted path, and rank them.")
    ] = False,
    live: Annotated[bool, typer.Option("--live", help="As --advise --engine live.")] = False,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="sim|live|kernel",
            help="With --advise: repeat the best remedy with the kernel's TCP (live), or with that of a Linux kernel "
            "in virtual time (kernel).",
        ),
    ] = "sim",
    kernel: KernelOption = None,
    json: Json = False,
    out: Out = None,
    annotate: Annotated[
        Optional[Path],  # noqa: UP045 - see above
        typer.Option("--annotate", metavar="FILE", help="Write the capture as pcapng, with the findings as comments."),
    ] = None,
    force: Force = False,
    any_expansion: Annotated[
        bool,
        typer.Option(
            "--any-expansion", help="Read a compressed capture also if it expands to more than 256 times its size."
        ),
    ] = False,
    follow: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option(
            "--follow", metavar="INTERFACE", help="Capture here and diagnose until Ctrl-C; takes CAP_NET_RAW."
        ),
    ] = None,
    ring: Annotated[
        str, typer.Option("--ring", metavar="TIME", help="With --follow: how much of the past is kept.")
    ] = "2min",
    save_on: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--save-on", metavar="CAUSE", help="With --follow: save what is kept when this cause occurs."),
    ] = None,
    save_to: Annotated[
        Path, typer.Option("--save-to", metavar="DIR", help="With --save-on: the directory for these captures.")
    ] = Path(),
) -> None:
    """Find out why the TCP connections of a capture are slow.

    It names what limits each connection, whether each retransmission was needed and what triggered it, and the cause
    of each pause. What the capture cannot show is called undecidable. With --out it writes report.html with
    charts and packet ladders, tables as Parquet, and a scenario that reproduces the connection with the most data,
    unless --connection chooses another. --host, --port and --around choose connections by a complaint.
    """
    with exit_status():
        from anabranch.cli.diagnose import DiagnoseOptions, FollowOptions, run_diagnose, run_follow
        from anabranch.diagnosis.choice import Choice

        choice = Choice(tuple(host or ()), port, around)
        options = DiagnoseOptions(
            connection, json, replay, advise, live, out, annotate, force, any_expansion, choice, engine, kernel
        )
        if follow is None:
            run_diagnose(capture, options)
        else:
            run_follow(follow, capture, options, FollowOptions(ring, save_on, save_to))


@app.command(
    cls=Command,
    epilog=_example("anabranch convert wan.sh --out wan.toml", "anabranch convert scenario.toml --to netem"),
)
def convert(
    file: Annotated[
        Path, typer.Argument(metavar="FILE|DIR|-", help="The input; a directory is what `run --out` has written.")
    ],
    to: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--to", metavar="FORMAT", help="The output's format; by default as --out is called."),
    ] = None,
    from_: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--from", metavar="FORMAT", help="The input's format; by default it is recognised."),
    ] = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045 - see above
        typer.Option("--out", metavar="FILE", help="Write this file; standard output when left out."),
    ] = None,
    link: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--link", metavar="NAME", help="The link that is written; the only one when left out."),
    ] = None,
    flow: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--flow", metavar="NAME", help="The flow that is written; all when left out."),
    ] = None,
    routing: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--routing", metavar="hops|weights|ecmp", help="Of a topology: by what flows find their way."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a conversion that loses something (status 2).")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Convert paths, runs and results from and to other tools.

    What the output cannot express is said on standard error. Read: run, scenario, netem, mahimahi, mahimahi-trace,
    time-rate, iperf3, flent, flowmonitor, graphml, gml, topohub. Written: scenario, netem, mahimahi, flent, qlog, csv,
    summary.
    """
    with exit_status():
        from anabranch.cli.convert import ConvertOptions, run_convert

        run_convert(file, ConvertOptions(from_, to, out, link, flow, strict, force, routing))


@app.command("list", cls=Command, epilog=_example("anabranch list queue"))
def list_(
    kind: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Argument(metavar="[KIND]", help="cc, queue, impair, stack, workload, study, …; all when left out."),
    ] = None,
    json: Json = False,
) -> None:
    """Show what there is, by kind."""
    with exit_status():
        from anabranch.cli.explain import list_kinds

        list_kinds(kind, json)


@app.command(
    cls=Command,
    epilog=_example(
        "anabranch explain cubic", "anabranch explain link.rate", "anabranch explain goodput", "anabranch explain"
    ),
)
def explain(
    names: Annotated[
        Optional[list[str]],  # noqa: UP045 - see above
        typer.Argument(
            metavar="[NAME]",
            help="As `anabranch list` shows it, a key or path of scenario files, a name of results, or what others "
            "call it; all by kind when left out.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """What one thing does, its sources, parameters and bounds."""
    with exit_status():
        from anabranch.cli.explain import explain_name, list_kinds

        if names:
            explain_name(" ".join(names), json)
        else:
            list_kinds(None, json)


cc = typer.Typer(
    name="cc",
    help="Congestion controls in the running kernel, as eBPF programs.",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(cc)


@cc.command("list", cls=Command, epilog=_example("anabranch cc list"))
def cc_list(json: Json = False) -> None:
    """Show what ships, what is loaded, and what the kernel has."""
    with exit_status():
        from anabranch.cli.controls import list_controls

        list_controls(json)


@cc.command("load", cls=Command, epilog=_example("anabranch cc load westwood-plus"))
def cc_load(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE", help="As `anabranch cc list` shows it, or a C file.")],
) -> None:
    """Load a control into the kernel until it is unloaded.

    Any program can choose it then, by its name in the kernel.
    """
    with exit_status():
        from anabranch.cli.controls import load_control

        load_control(name)


@cc.command("unload", cls=Command, epilog=_example("anabranch cc unload westwood-plus"))
def cc_unload(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `anabranch cc list` shows it.")],
) -> None:
    """Remove a control from the kernel.

    Connections that use it keep it.
    """
    with exit_status():
        from anabranch.cli.controls import unload_control

        unload_control(name)


kernel = typer.Typer(
    name="kernel",
    help="Linux kernels that run in virtual time, for --engine kernel.",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(kernel)


@kernel.command("build", cls=Command, epilog=_example("anabranch kernel build 6.12"))
def kernel_build(
    source: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Argument(
            metavar="[VERSION|DIR|FILE]",
            help="A version of Debian's linux-source packages, a source tree, or an archive of one; the newest package "
            "that is installed when left out.",
        ),
    ] = None,
    jobs: Annotated[
        Optional[int],  # noqa: UP045 - see above
        typer.Option("--jobs", metavar="N", help="Compilers at once; as many as there are cores when left out."),
    ] = None,
) -> None:
    """Build a kernel into the cache, and try it.

    As root on Debian this installs the source and the programs that it needs.
    """
    with exit_status():
        from anabranch.cli.kernels import build_kernel

        build_kernel(source, jobs)


@kernel.command("list", cls=Command, epilog=_example("anabranch kernel list"))
def kernel_list(json: Json = False) -> None:
    """Show the kernels that are built; the first is used."""
    with exit_status():
        from anabranch.cli.kernels import list_kernels

        list_kernels(json)


@kernel.command("check", cls=Command, epilog=_example("anabranch kernel check"))
def kernel_check(
    name: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Argument(metavar="[RELEASE|DIR]", help="As `anabranch kernel list` shows it; the first when left out."),
    ] = None,
) -> None:
    """Start a kernel and see whether its time is virtual."""
    with exit_status():
        from anabranch.cli.kernels import check_kernel

        check_kernel(name)


gateway = typer.Typer(
    name="gateway",
    help="Predict what a gateway gives, or call anabranch-gateway.\n\nAll commands but plan are the daemon's: keygen, "
    "check, up, status, reload, peer.",
    epilog=_example("anabranch gateway status gateway.toml"),
    cls=GatewayGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(gateway)


@gateway.command(GatewayGroup.PASSED, cls=Verbatim, hidden=True, add_help_option=False)
def gateway_daemon(context: typer.Context) -> None:
    """Hand over to `anabranch-gateway`."""
    with exit_status():
        from anabranch.gateway.daemon import hand_over

        hand_over(context.args)


@gateway.command(
    "plan",
    cls=Command,
    epilog=_example(
        "anabranch gateway plan gateway.toml --path fibre=100mbit/40mbit,8ms \\",
        "  --path lte=30mbit,40ms,0.5%,8ms",
        "anabranch gateway plan gateway.toml --status status.json --path lte=lte.toml",
    ),
)
def gateway_plan(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The daemon's configuration, of the end that has the paths (gateway.toml)."
        ),
    ],
    path: Annotated[
        Optional[list[str]],  # noqa: UP045 - see above
        typer.Option(
            "--path",
            metavar="NAME=RATE,DELAY[,LOSS[,JITTER]]|NAME=FILE",
            help="What a path is like: rate (or DOWN/UP), one-way delay, loss and jitter in the units of netem, or a "
            "scenario, netem script, mahimahi command line or trace, whose forward direction is up. Once per path.",
        ),
    ] = None,
    status: Annotated[
        Optional[Path],  # noqa: UP045 - see above
        typer.Option(
            "--status",
            metavar="FILE",
            help="What `anabranch-gateway status --json` has printed, for paths without --path.",
        ),
    ] = None,
    flows: Annotated[int, typer.Option("--flows", metavar="N", help="Flows at once, beside one flow alone.")] = 8,
    cc: Annotated[str, typer.Option("--cc", metavar="NAME", help="Congestion control of the flows.")] = "cubic",
    seconds: Annotated[
        int, typer.Option("--seconds", metavar="S", help="How long each run measures; a path fails for a third of it.")
    ] = 12,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", help="Runs for each figure.")] = 3,
    json: Json = False,
) -> None:
    """Predict what a configuration gives on paths of known properties.

    Simulates the tunnel beside each path alone, in both directions: goodput of one flow and of several, response time
    of small requests beside one flow, and what happens while each path fails.
    """
    with exit_status():
        from anabranch.cli.gateway import PlanOptions, run_plan

        run_plan(file, PlanOptions(path or [], status, flows, cc, seconds, seeds, json))


@app.command(cls=Command, epilog=_example("anabranch bench --json", "anabranch bench --commands"))
def bench(
    json: Json = False,
    commands: Annotated[
        bool, typer.Option("--commands", help="Measure what commands take besides the engine; needs no checkout.")
    ] = False,
) -> None:
    """Measure the engine's speed and memory (from a checkout).

    Packets per second of processor time, instructions per packet, bytes per flow. With --commands: start-up, what
    --out takes per recorded packet, what a sweep takes per run.
    """
    with exit_status():
        from anabranch.cli.bench import run_bench, run_commands

        if commands:
            run_commands(json)
        else:
            run_bench(json)


@app.command(
    cls=Command,
    epilog=_example(
        "anabranch validate scenarios/live/thin.toml --seeds 2 --keep out/live",
        "anabranch validate scenarios/live/thin.toml --engine kernel",
    ),
)
def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Scenario files (TOML).")],
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", help="Seeds per file, from its seed on.")] = 3,
    set_: Sets = None,
    json: Json = False,
    out: Out = None,
    keep: Annotated[
        Optional[Path],  # noqa: UP045 - see above
        typer.Option(
            "--keep",
            metavar="DIR",
            parser=_directory,
            help="Keep live runs here, and do not make again those that are.",
        ),
    ] = None,
    host_times: Annotated[
        Optional[Path],  # noqa: UP045 - see above
        typer.Option(
            "--host-times",
            metavar="FILE",
            help="How late this machine's hosts are, as an earlier `validate --out DIR` has measured it: "
            "DIR/host_times.json (default: they are measured first, about two minutes).",
        ),
    ] = None,
    allow_tainted: Annotated[
        bool, typer.Option("--allow-tainted", help="Show the figures of tainted live runs as well, marked.")
    ] = False,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="live|kernel",
            help="With which kernel's TCP: this machine's (live), or a Linux kernel's in virtual time (kernel).",
        ),
    ] = "live",
    kernel: KernelOption = None,
    untrusted: Untrusted = False,
) -> None:
    """Run scenarios in two engines and say how far apart they are.

    The simulator, and the TCP of a kernel: of this machine's, or of a Linux kernel in virtual time.
    """
    with exit_status():
        from anabranch.cli.validate import run_validate

        run_validate(
            files,
            set_ or [],
            seeds,
            out=out,
            keep=keep,
            host_times=host_times,
            allow_tainted=allow_tainted,
            engine=engine,
            kernel=kernel,
            as_json=json,
            untrusted=untrusted,
        )


@app.command(
    cls=Command,
    epilog=_example(
        "anabranch shell scenarios/live/thin.toml A",
        "anabranch shell scenarios/live/thin.toml A -- ping -c 3 B",
        "anabranch shell scenarios/live/thin.toml A --engine kernel -- ping -c 3 B",
    ),
)
def shell(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Scenario file (TOML).")],
    host: Annotated[str, typer.Argument(metavar="HOST", help="A node where a flow begins or ends.")],
    command: Annotated[
        Optional[list[str]],  # noqa: UP045 - see above
        typer.Argument(metavar="[-- PROGRAM ARGS...]", help="What to run; the user's shell when left out."),
    ] = None,
    set_: Sets = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="live|kernel",
            help="live: with this machine's kernel; kernel: with a Linux kernel of its own, a program in virtual time.",
        ),
    ] = "live",
) -> None:
    """Open a shell inside a host of a scenario.

    The live network is around it, and the other hosts' programs run. No flow sends. Ctrl-C is the program's; SIGTERM
    ends it, and then this command.
    """
    with exit_status():
        from anabranch.cli.shell import ShellOptions, run_shell

        run_shell(ShellOptions(file, host, command or [], set_ or [], engine))


@app.command(
    cls=Command,
    epilog=_example(
        'eval "$(anabranch completion bash)"',
        "anabranch completion fish > ~/.config/fish/completions/anabranch.fish",
    ),
)
def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell that the script is for.")],
) -> None:
    """Print a script that completes commands in a shell.

    It completes commands, options, names of components and studies, and scenario files. It starts no program.
    """
    with exit_status():
        from anabranch.cli.completion import script

        typer.echo(script(shell), nl=False)


def _add_later(name: str) -> None:
    """Answer a command of the contract that this version does not have, whatever comes after its name."""

    @app.command(
        name,
        hidden=True,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
    def refuse() -> None:
        """Not in this version."""
        with exit_status():
            from anabranch.cli.common import later

            later(f"anabranch {name}", "`anabranch --help` shows the commands of this one")


for _name in ("studio",):
    _add_later(_name)
