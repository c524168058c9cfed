"""``anabranch diagnose`` with several captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.cli.blocks import write
from anabranch.cli.command import typed
from anabranch.cli.common import console, note, print_json
from anabranch.errors import UserError

if TYPE_CHECKING:
    from anabranch.cli.diagnose import DiagnoseOptions


def diagnose_several(options: DiagnoseOptions) -> None:
    """Diagnose captures of the same connections at several points, and print the diagnosis.

    Raises:
        UserError: A capture cannot be read, the captures have nothing in common, or an option does not fit.
    """
    from anabranch.diagnosis.choice import choose
    from anabranch.multipoint.compare import diagnose_points
    from anabranch.multipoint.text import detail, overview
    from anabranch.progress import Progress

    _check(options)
    if options.out is not None:
        from anabranch.files.output import check_target

        check_target(options.out, "diagnose")
    names = None if options.names is None else [name.strip() for name in options.names.split(",")]
    choice = options.choice
    bars: dict[str, Progress] = {}

    def report(name: str, share: float) -> None:
        bars.setdefault(name, Progress(name, 1)).update(share)

    found = diagnose_points(
        options.captures,
        names=names,
        any_expansion=options.any_expansion,
        progress=report,
        chosen=None if choice.is_empty else lambda whole: choose(whole, choice),
    )
    for bar in bars.values():
        bar.__exit__(None, None, None)
    content = found.content
    numbers = [one["id"] for one in content["connections"]]
    if options.connection is not None and options.connection not in numbers:
        first = content["points"][0]["name"]
        raise UserError(
            f"--connection {options.connection}: not all captures have this connection of {first}",
            hint=f"there are: {', '.join(map(str, numbers[:10]))}{' …' if len(numbers) > 10 else ''}",
        )
    if options.json:
        own = [one for one in content["connections"] if options.connection in (None, one["id"])]
        print_json({**found, "connections": own})
    else:
        write(console(), overview(content) if options.connection is None else detail(content, options.connection))
    if options.out is not None:
        from anabranch.report.points_output import write_points

        write_points(found, options.out, connection=options.connection, command=_command_line(options))
        note(f"wrote {options.out / 'report.html'} and points.json")


def _check(options: DiagnoseOptions) -> None:
    """Refuse options of one capture.

    Raises:
        UserError: There is one.
    """
    refused = {
        "--replay": options.replay,
        "--advise": options.advise,
        "--live": options.live,
        "--engine": options.engine != "sim",
        "--annotate": options.annotate is not None,
        "--force": options.force,
        "--save-on": options.save_on is not None,
        "--by": options.by is not None,
    }
    for name, is_given in refused.items():
        if is_given:
            raise UserError(f"{name} is for one capture, and {len(options.captures)} are given", hint="leave it out")


def _command_line(options: DiagnoseOptions) -> str:
    """The command that repeats this diagnosis."""
    names = ("captures", "names", "connection", "hosts", "port", "around", "slowest", "any_expansion")
    return f"{typed('diagnose', options, *names)} --out DIR"
