"""``anabranch diagnose``: a capture in one screen, one connection in detail, or JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.cli.common import console, print_json

if TYPE_CHECKING:
    from anabranch.diagnosis import Diagnosis


@dataclass(frozen=True)
class DiagnoseOptions:
    """The options of the command."""

    connection: int | None
    json: bool


def run_diagnose(capture: Path, options: DiagnoseOptions) -> None:
    """Diagnose a capture and print what it shows.

    Raises:
        UserError: It is no capture, or has no such connection.
    """
    from anabranch.diagnosis import diagnose
    from anabranch.diagnosis_text import detail, overview

    found = diagnose(capture)
    one = None if options.connection is None else chosen(found, options.connection)
    if options.json:
        print_json({**found, "connections": [one]} if one else found)
        return
    out = console()
    for line in overview(found) if one is None else detail(one):
        out.print(line, soft_wrap=True)


def chosen(found: Diagnosis, number: int) -> dict[str, Any]:
    """The connection with this number.

    Raises:
        UserError: There is none.
    """
    from anabranch.errors import UserError

    connections: list[dict[str, Any]] = found["connections"]
    for connection in connections:
        if connection["id"] == number:
            return connection
    numbers = [connection["id"] for connection in connections]
    expected = f"{numbers[0]} to {numbers[-1]}" if numbers else "none"
    raise UserError(f"--connection {number}: {found['file']} has no such connection", hint=f"there are: {expected}")
