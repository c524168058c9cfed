"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from anabranch.cli.command import Argument, Option


def directory(text: str) -> Path:
    """A directory that an option names; an empty text is an error, not the directory "."."""
    if not text:
        raise click.BadParameter("it is empty; a directory was expected")
    return Path(text)


File = Annotated[Path, Argument("FILE", "Scenario file (TOML); - reads standard input.")]
Sets = Annotated[
    tuple[str, ...],
    Option("--set", "Change a value, e.g. link.a.rate='10 Mbit/s'; may be given more than once.", "PATH=VALUE"),
]
Json = Annotated[bool, Option("--json", "One JSON document on standard output and nothing else.")]
Prometheus = Annotated[bool, Option("--prometheus", "Metrics in Prometheus's text format and nothing else.")]
Out = Annotated[
    Path | None,
    Option("--out", "Write results into this directory; nothing is written when left out.", "DIR", directory),
]
Force = Annotated[bool, Option("--force", "Also replace files that anabranch did not make.")]
Store = Annotated[
    Path | None,
    Option("--store", "Directory of finished runs, which sweeps, studies and comparisons share.", "DIR", directory),
]
Engine = Annotated[
    str,
    Option(
        "--engine",
        "sim: the simulator; live: this machine's kernel, in real time, between network namespaces; kernel: a "
        "separate Linux kernel, in virtual time (anabranch kernel build).",
        "sim|live|kernel",
    ),
]
SimulatedEngine = Annotated[
    str,
    Option(
        "--engine",
        "Of scenario files. sim: the simulator; kernel: a Linux kernel for each run, in virtual time (anabranch "
        "kernel build).",
        "sim|kernel",
    ),
]
Kernel = Annotated[
    str | None,
    Option(
        "--kernel",
        "With --engine kernel: the kernel's release or the start of it, such as 6.12 (see `anabranch kernel list`). "
        "By default the scenario's, else the newest.",
        "RELEASE",
    ),
]
Jobs = Annotated[int | None, Option("--jobs", "Runs at once; as many as there are cores when left out.", "N")]
Untrusted = Annotated[
    bool, Option("--untrusted", "Do not trust the scenario: refuse files outside its folder, exec, attach, bpf.")
]
Digest = Annotated[
    bool,
    Option("--digest/--no-digest", "Print a hash of the events of every packet (default), or none."),
]
