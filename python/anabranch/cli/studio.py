"""``anabranch studio``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Annotated

from anabranch.cli.command import Argument, Option, command
from anabranch.cli.common import note

if TYPE_CHECKING:
    from anabranch.studio.jobs import Following, Jobs

MOST_TEXT = 4 * 2**20
"""Length of a scenario file, at most."""


@dataclass(frozen=True, kw_only=True)
class StudioOptions:
    """The options of the command."""

    file: Annotated[
        Path | None, Argument("[FILE]", "A scenario (TOML), or a capture to diagnose; a ready path when left out.")
    ] = None
    out: Annotated[
        Path | None, Option("--out", "Write the page into this file instead; a browser opens it anywhere.", "FILE")
    ] = None
    port: Annotated[int, Option("--port", "The port; a free one when left out.", "N")] = 0
    follow: Annotated[
        str | None,
        Option("--follow", "Capture here, and diagnose it continuously; takes CAP_NET_RAW.", "INTERFACE"),
    ] = None
    ring: Annotated[str, Option("--ring", "With --follow: time for which packets are kept.", "TIME")] = "1min"
    opens: Annotated[bool, Option("--browser/--no-browser", "Open a browser (default), or only print the address.")] = (
        True
    )


@command(
    StudioOptions,
    "anabranch studio scenarios/reordering.toml",
    "anabranch studio slow.pcapng",
    "anabranch studio --follow eth0",
)
def run_studio(options: StudioOptions) -> None:
    """Open the engine in a page of the browser.

    The page runs scenarios and diagnoses captures itself. The command makes runs over many seeds on all cores, makes
    live runs, saves the scenario into FILE, and captures at an interface. Its server is reachable from this machine
    alone, and ends with Ctrl-C.
    """
    from anabranch.errors import UserError
    from anabranch.files.files import read_head
    from anabranch.files.output_file import output_file
    from anabranch.studio.jobs import Jobs
    from anabranch.studio.page import fragment, page, with_server

    served, file = page(), options.file
    state, capture, scenario = "", None, None
    if options.follow is not None and (file is not None or options.out is not None):
        raise UserError(f"--follow {options.follow}: expected neither a file nor --out beside it")
    if file is not None:
        read_head(file, 1)
        if file.suffix == ".toml":
            state, scenario = f"#{fragment(_text(file))}", file
        elif options.out is not None:
            raise UserError("--out writes a page without a capture", hint="drop the capture onto the page")
        else:
            capture = file
    if options.out is not None:
        output_file(options.out).write(served.encode())
        note(f"wrote {options.out}")
        return
    with _following(options) as follower:
        jobs = Jobs(scenario, follower)
        offered = {**jobs.offered(), "capture": capture.name if capture else None}
        _serve(with_server(served, offered), capture, state, options, jobs)


@contextmanager
def _following(options: StudioOptions) -> Iterator[Following | None]:
    """The capture of an interface, while the studio is open."""
    from anabranch.diagnosis.follow import ring_seconds
    from anabranch.studio.jobs import Following

    if options.follow is None:
        yield None
        return
    with closing(Following(options.follow, ring_seconds(options.ring))) as follower:
        yield follower


def _text(file: Path) -> str:
    from anabranch.errors import UserError

    if file.stat().st_size > MOST_TEXT:
        raise UserError("a scenario file has at most 4 MiB", file=str(file))
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"it is no UTF-8 text: {error.reason}", file=str(file)) from None


def _serve(served: str, capture: Path | None, state: str, options: StudioOptions, jobs: Jobs) -> None:
    import webbrowser

    from anabranch import interrupt
    from anabranch.errors import UserError
    from anabranch.studio.server import Server

    if not 0 <= options.port <= 65535:
        raise UserError(f"--port {options.port}: 0 to 65535 was expected")
    try:
        server = Server(served, capture, options.port, jobs)
    except OSError as error:
        raise UserError(f"--port {options.port}: {error.strerror}", hint="leave it out for a free port") from None
    if jobs.follower is not None:
        jobs.follower.without_port(server.port)
    interrupt.watch()
    address = f"{server.address}{state}"
    note(f"the studio: {address}\nCtrl-C ends it")
    with server, _leading_to(address) as leading:
        if options.opens:
            webbrowser.open(leading.as_uri())
        server.serve_forever(poll_interval=0.2)


@contextmanager
def _leading_to(address: str) -> Iterator[Path]:
    """A file of this user alone that leads a browser to the address.

    All users of a machine can read the arguments of its programs, and the address has the token.
    """
    folder = Path(mkdtemp(prefix="anabranch-studio-"))
    try:
        leading = folder / "studio.html"
        target = json.dumps(address).replace("<", "\\u003c")
        leading.write_text(
            f"<!doctype html><title>Anabranch studio</title><script>location.replace({target})</script>\n"
        )
        yield leading
    finally:
        shutil.rmtree(folder, ignore_errors=True)
