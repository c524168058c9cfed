"""``anabranch studio``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated

from anabranch.cli.command import Argument, Option, command
from anabranch.cli.common import note

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
    opens: Annotated[bool, Option("--browser/--no-browser", "Open a browser (default), or only print the address.")] = (
        True
    )


@command(StudioOptions, "anabranch studio scenarios/reordering.toml", "anabranch studio slow.pcapng")
def run_studio(options: StudioOptions) -> None:
    """Open the engine in a page of the browser.

    The page runs scenarios and diagnoses captures itself. The server is reachable from this machine alone, and ends
    with Ctrl-C.
    """
    from anabranch.errors import UserError
    from anabranch.files.output_file import output_file
    from anabranch.studio.page import fragment, page, with_capture

    served, file = page(), options.file
    state, capture = "", None
    if file is not None:
        if not file.is_file():
            raise UserError("there is no such file", file=str(file))
        if file.suffix == ".toml":
            state = f"#{fragment(_text(file))}"
        elif options.out is not None:
            raise UserError("--out writes a page without a capture", hint="drop the capture onto the page")
        else:
            capture = file
            served = with_capture(served, file.name, "capture")
    if options.out is not None:
        output_file(options.out).write(served.encode())
        note(f"wrote {options.out}")
        return
    _serve(served, capture, state, options)


def _text(file: Path) -> str:
    from anabranch.errors import UserError

    if file.stat().st_size > MOST_TEXT:
        raise UserError("a scenario file has at most 4 MiB", file=str(file))
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"it is no UTF-8 text: {error.reason}", file=str(file)) from None


def _serve(served: str, capture: Path | None, state: str, options: StudioOptions) -> None:
    import webbrowser

    from anabranch import interrupt
    from anabranch.errors import UserError
    from anabranch.studio.server import Server

    if not 0 <= options.port <= 65535:
        raise UserError(f"--port {options.port}: 0 to 65535 was expected")
    try:
        server = Server(served, capture, options.port)
    except OSError as error:
        raise UserError(f"--port {options.port}: {error.strerror}", hint="leave it out for a free port") from None
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
