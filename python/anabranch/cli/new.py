"""``anabranch new``."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from anabranch.cli.command import Argument, Option, command
from anabranch.cli.common import note
from anabranch.cli.options import directory
from anabranch.text import shown

SCENARIO, SCHEMA = "scenario.toml", "scenario.schema.json"
_DIRECTIVE = f"#:schema ./{SCHEMA}\n"
"""First line of a scenario: the path to the schema, for editors that support TOML."""


@dataclass(frozen=True, kw_only=True)
class NewOptions:
    """The options of the command."""

    directory: Annotated[Path, Argument("DIR", "Where the scenario goes; made if it is missing.", read=directory)]
    name: Annotated[str, Option("--from", "A ready-made scenario in place of the starter.", "NAME")] = "starter"


@command(NewOptions, "anabranch new first", "anabranch new second --from fairness")
def write_new(options: NewOptions) -> None:
    """Write a commented scenario to begin with: DIR/scenario.toml.

    The schema beside it lets editors complete and check keys.
    """
    from anabranch import _engine
    from anabranch.errors import UserError, nearest
    from anabranch.files.checkout import shipped_scenarios
    from anabranch.files.output_file import output_file

    folder, name = options.directory, options.name
    found = shipped_scenarios()
    if name not in found:
        raise UserError(
            f"no ready-made scenario {shown.plain(repr(name))}",
            hint=nearest(name, found),
        )
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; a directory was expected", hint="choose another name")
    target = folder / SCENARIO
    there = next((path for path in (target, folder / SCHEMA) if path.exists()), None)
    if there is not None:
        raise UserError("it exists already and is left as it is", file=str(there), hint="choose another directory")
    text = found[name].read_text(encoding="utf-8")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot be made: {error.strerror}", file=str(folder)) from error
    schema = json.dumps(json.loads(_engine.schema()), indent=2, ensure_ascii=False) + "\n"
    text = text if text.startswith("#:schema") else _DIRECTIVE + text
    files = {folder / SCHEMA: schema, target: text}
    for output, content in [(output_file(path), content) for path, content in files.items()]:
        output.write(content.encode())
    note(f"wrote {target}; run it: anabranch run {shown.plain(shlex.quote(str(target)))}")
