"""``anabranch new``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from anabranch.cli.common import note
from anabranch.text import shown

SCENARIO, SCHEMA = "scenario.toml", "scenario.schema.json"
_DIRECTIVE = f"#:schema ./{SCHEMA}\n"
"""Names the schema to editors that know TOML."""


def write_new(directory: Path, name: str) -> None:
    """Write a ready-made scenario and its schema into a directory that has neither.

    Raises:
        UserError: There is no such scenario, one of the files is there, or the directory cannot be written.
    """
    from anabranch import _engine
    from anabranch.errors import UserError, nearest
    from anabranch.files.checkout import shipped_scenarios
    from anabranch.files.output_file import output_file

    found = shipped_scenarios()
    if name not in found:
        raise UserError(
            f"no ready-made scenario {shown.plain(repr(name))}",
            hint=nearest(name, found),
        )
    if directory.exists() and not directory.is_dir():
        raise UserError(f"{directory} is a file; a directory was expected", hint="choose another name")
    target = directory / SCENARIO
    there = next((path for path in (target, directory / SCHEMA) if path.exists()), None)
    if there is not None:
        raise UserError("it exists already and is left as it is", file=str(there), hint="choose another directory")
    text = found[name].read_text(encoding="utf-8")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot be made: {error.strerror}", file=str(directory)) from error
    schema = json.dumps(json.loads(_engine.schema()), indent=2, ensure_ascii=False) + "\n"
    text = text if text.startswith("#:schema") else _DIRECTIVE + text
    files = {directory / SCHEMA: schema, target: text}
    for output, content in [(output_file(path), content) for path, content in files.items()]:
        output.write(content.encode())
    note(f"wrote {target}; run it: anabranch run {shown.plain(shlex.quote(str(target)))}")
