"""The command line as a whole: all commands, and the module of each."""

from __future__ import annotations

import click

from anabranch.cli.command import Group
from anabranch.cli.common import exit_status
from anabranch.cli.version import print_version


def _version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        with exit_status():
            print_version()
        ctx.exit()


app = Group(
    "anabranch",
    "Anabranch: TCP on paths that reorder, lose, delay or split packets, or change their capacity.",
    {
        "demo": ("demo:run_demo", "Run the reordering study in quick mode and write a page of it."),
        "new": ("new:write_new", "Write a commented scenario to begin with: DIR/scenario.toml."),
        "run": ("run:run_once", "Run one scenario once."),
        "study": ("study:run_studies", "Reproduce published studies: claims with verdicts, figures."),
        "sweep": ("sweep:run_sweep", "Run a scenario over a grid, on all cores."),
        "evaluate": (
            "evaluate:run_evaluate",
            "Evaluate a control or a queue by RFC 9743, 5166 and 7928.",
        ),
        "stress": ("stress:run_stress", "Search for paths on which a congestion control fails."),
        "compare": ("compare:run_compare", "Set runs, or sweeps, side by side."),
        "diagnose": (
            "diagnose:run_diagnose",
            "Find out why the connections of a capture or a qlog are slow.",
        ),
        "convert": ("convert:run_convert", "Convert paths, runs and results from and to other tools."),
        "list": ("explain:list_kinds", "List components, studies and formats, by kind."),
        "explain": ("explain:explain_names", "Describe a name: its effect, sources, parameters and bounds."),
        "bench": ("bench:run_bench", "Measure the engine's speed and memory (from a checkout)."),
        "validate": ("validate:run_validate", "Run scenarios in two engines and compare the results."),
        "script": ("script:run_scripts", "Run behaviour scripts: which packets a TCP must send, and when."),
        "vectors": ("vectors:run_vectors", "Make reference vectors of controls, or compare with them."),
        "shell": ("shell:run_shell", "Open a shell inside a host of a scenario."),
        "completion": ("completion:print_script", "Print a script that completes commands in a shell."),
        "studio": ("studio:run_studio", "Open the engine in a page of the browser."),
        "cc": ("controls:controls", "Congestion controls in the running kernel, as eBPF programs."),
        "aqm": ("aqm:aqm", "Queues at a device's egress, as eBPF programs in the kernel."),
        "kernel": ("kernels:kernels", "Linux kernels that run in virtual time, for --engine kernel."),
        "plan": ("plan:plan", "Predict what a component would bring on a link."),
        "gateway": ("gateway:gateway", "Predict the performance of a gateway, or call anabranch-gateway."),
        "group": ("group:group", "Put links of a bond to sleep during low load."),
    },
    epilog="Exit status: 0 done, 1 the run or a check failed, 2 bad input, 130 or 143 ended by a signal.",
    params=[
        click.Option(
            ["--version", "-V"], is_flag=True, expose_value=False, help="Print the version.", callback=_version
        )
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
)
