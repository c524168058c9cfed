"""``anabranch diagnose``: a capture in one screen, one connection in detail, or JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.cli.common import console, print_json

if TYPE_CHECKING:
    from anabranch.diagnosis import Diagnosis
    from anabranch.fitted.made import Made


@dataclass(frozen=True)
class DiagnoseOptions:
    """The options of the command."""

    connection: int | None
    json: bool
    replay: bool = False
    advise: bool = False
    live: bool = False
    out: Path | None = None

    @property
    def is_fitted(self) -> bool:
        """Whether a scenario is made."""
        return self.replay or self.advise or self.live or self.out is not None


def run_diagnose(capture: Path, options: DiagnoseOptions) -> None:
    """Diagnose a capture and print what it shows.

    Raises:
        UserError: It is no capture, or has no such connection.
    """
    from anabranch.diagnosis import diagnose
    from anabranch.diagnosis_text import detail, overview

    if options.out is not None:
        from anabranch.output import check_target

        check_target(options.out, "diagnose")
    if options.live:
        from anabranch.live import prepare

        prepare("--advise simulates")
    found = diagnose(capture)
    one = None if options.connection is None else chosen(found, options.connection)
    made = _made(capture, found, one, options) if options.is_fitted else None
    if options.json:
        print_json({**found, "connections": [one]} if one else found)
    else:
        out = console()
        for line in overview(found) if one is None else detail(one):
            out.print(line, soft_wrap=True)
        for line in made.lines() if made else ():
            out.print(line, soft_wrap=True)
    if made and options.out is not None:
        made.write(options.out)


def _made(capture: Path, found: Diagnosis, one: dict[str, Any] | None, options: DiagnoseOptions) -> Made:
    """The scenario of the connection that is chosen, or of the one with the most data, and what it is used for."""
    from anabranch.errors import UserError
    from anabranch.fitted.made import make

    connections = found["connections"]
    if not connections:
        raise UserError(f"{found['file']}: no TCP connection was found, so that there is none to simulate")
    connection = one or max(connections, key=lambda each: sum(way["bytes"] for way in each["directions"].values()))
    return make(connection, str(capture), replay=options.replay, advise=options.advise, live=options.live)


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
