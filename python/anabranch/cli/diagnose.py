"""``anabranch diagnose``: a capture in one screen, one connection in detail, or JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.cli.common import console, note, print_json

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
    annotate: Path | None = None

    @property
    def is_simulated(self) -> bool:
        """Whether the fitted scenario is to be run."""
        return self.replay or self.advise or self.live


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
    one = None if options.connection is None else found.connection(options.connection)
    made = _made(capture, found, one, options) if options.is_simulated or options.out is not None else None
    if options.json:
        print_json({**found, "connections": [one]} if one else found)
    else:
        out = console()
        for line in overview(found) if one is None else detail(one):
            out.print(line, soft_wrap=True)
        for line in made.lines() if made else ():
            out.print(line, soft_wrap=True)
    if options.annotate is not None:
        from anabranch.diagnosis_comments import write_annotated

        write_annotated(found, options.annotate)
        note(f"wrote {options.annotate}")
    if options.out is not None:
        from anabranch.report.capture_output import write_diagnosis

        write_diagnosis(found, options.out, chosen=one, made=made, command=command_line(capture, options))


def command_line(capture: Path, options: DiagnoseOptions) -> str:
    """The command that repeats this diagnosis, as it is typed."""
    import shlex

    words = ["anabranch", "diagnose", str(capture)]
    words += ["--connection", str(options.connection)] if options.connection is not None else []
    words += [f"--{name}" for name in ("replay", "advise", "live") if getattr(options, name)]
    return f"{shlex.join(words)} --out DIR"


def _made(capture: Path, found: Diagnosis, one: dict[str, Any] | None, options: DiagnoseOptions) -> Made | None:
    """The scenario of the connection that is chosen, or of the one with the most data, and what it is used for.

    Without a simulation that was asked for, a connection with too little data has none.
    """
    from anabranch.errors import UserError
    from anabranch.fitted.made import make

    connections = found["connections"]
    if not connections:
        if not options.is_simulated:
            return None
        raise UserError(f"{found['file']}: no TCP connection was found, so that there is none to simulate")
    connection = one or max(connections, key=lambda each: sum(way["bytes"] for way in each["directions"].values()))
    try:
        return make(connection, str(capture), replay=options.replay, advise=options.advise, live=options.live)
    except UserError:
        if options.is_simulated:
            raise
        return None
