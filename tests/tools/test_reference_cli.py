"""The command page shows every command, its arguments and its options with their defaults."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
import typer.main

from reference import cli


class Engine(str, Enum):
    SIM = "sim"
    LIVE = "live"


app = typer.Typer()
control = typer.Typer(help="Congestion controls.")
app.add_typer(control, name="cc")


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="A scenario file.")],
    *,
    seed: Annotated[int | None, typer.Option(help="Seed.")] = None,
    changes: Annotated[list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="A change.")] = None,
    engine: Annotated[Engine, typer.Option(help="Which.")] = Engine.SIM,
    repeat: Annotated[int, typer.Option(help="How often.")] = 3,
    json: Annotated[bool, typer.Option("--json", help="One document.")] = False,
    digest: Annotated[bool, typer.Option("--digest/--no-digest", help="Hash it.")] = True,
) -> None:
    """Run a scenario once.

    A second paragraph.
    """


@app.command(hidden=True)
def secret() -> None:
    """Not for the page."""


@control.command("load")
def load(names: Annotated[list[str], typer.Argument(help="Which.")]) -> None:
    """Load some."""


def test_the_page_shows_commands_arguments_and_options() -> None:
    page = cli.page(typer.main.get_command(app))
    assert "## anabranch run\n" in page
    assert "anabranch run FILE [OPTIONS]" in page
    assert "Run a scenario once.\n\nA second paragraph." in page
    assert "| `FILE` | A scenario file. |" in page
    assert "| `--seed` `SEED` |  | Seed. |" in page
    assert "| `--set` `PATH=VALUE`… |" in page
    assert "| `--repeat` `REPEAT` | `3` | How often. |" in page
    assert "| `--engine` <code>sim&#124;live</code> | `sim` | Which. |" in page
    assert "| `--json` |  | One document. |" in page
    assert "| `--digest`, `--no-digest` | on | Hash it. |" in page
    assert "## anabranch cc load\n" in page
    assert "anabranch cc load NAMES…" in page
    assert "secret" not in page
    assert "completion" not in page
