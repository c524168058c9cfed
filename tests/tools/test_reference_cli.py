"""The command page shows every command, its arguments and its options with their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click
from anabranch.cli.command import Argument, Option, command

from reference import cli


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    file: Annotated[Path, Argument("FILE", "A scenario file.")]
    seed: Annotated[int | None, Option("--seed", "Seed.", "SEED")] = None
    changes: Annotated[tuple[str, ...], Option("--set", "A change.", "PATH=VALUE")] = ()
    engine: Annotated[str, Option("--engine", "Which.", "sim|live")] = "sim"
    repeat: Annotated[int, Option("--repeat", "How often.", "N")] = 3
    json: Annotated[bool, Option("--json", "One document.")] = False
    digest: Annotated[bool, Option("--digest/--no-digest", "Hash it.")] = True


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    names: Annotated[tuple[str, ...], Argument("NAMES...", "Which.")]


@command(RunOptions, "anabranch run", name="run")
def run(options: RunOptions) -> None:
    """Run a scenario once.

    A second paragraph.
    """


@command(LoadOptions, "anabranch cc load", name="load")
def load(options: LoadOptions) -> None:
    """Load some."""


app = click.Group(commands=[run, click.Command("secret", hidden=True), click.Group("cc", commands=[load])])


def test_the_page_shows_commands_arguments_and_options() -> None:
    page = cli.page(app)
    assert "## anabranch run\n" in page
    assert "anabranch run FILE [OPTIONS]" in page
    assert "Run a scenario once.\n\nA second paragraph." in page
    assert "| `FILE` | A scenario file. |" in page
    assert "| `--seed` `SEED` |  | Seed. |" in page
    assert "| `--set` `PATH=VALUE`… |" in page
    assert "| `--repeat` `N` | `3` | How often. |" in page
    assert "| `--engine` <code>sim&#124;live</code> | `sim` | Which. |" in page
    assert "| `--json` |  | One document. |" in page
    assert "| `--digest`, `--no-digest` | on | Hash it. |" in page
    assert "## anabranch cc load\n" in page
    assert "anabranch cc load NAMES…" in page
    assert "secret" not in page
    assert "completion" not in page
