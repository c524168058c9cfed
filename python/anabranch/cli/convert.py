"""``anabranch convert``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from anabranch.cli.command import Argument, Option, command
from anabranch.cli.common import note


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """The options of the command."""

    file: Annotated[Path, Argument("FILE|DIR|-", "The input; a directory is the output of `run --out`.")]
    target: Annotated[str | None, Option("--to", "The output's format; by default as --out is called.", "FORMAT")] = (
        None
    )
    source: Annotated[str | None, Option("--from", "The input's format; by default it is recognised.", "FORMAT")] = None
    out: Annotated[Path | None, Option("--out", "Write this file; standard output when left out.", "FILE")] = None
    link: Annotated[str | None, Option("--link", "The link that is written; the only one when left out.", "NAME")] = (
        None
    )
    flow: Annotated[str | None, Option("--flow", "The flow that is written; all when left out.", "NAME")] = None
    routing: Annotated[
        str | None, Option("--routing", "Of a topology: how routes of flows are chosen.", "hops|weights|ecmp")
    ] = None
    strict: Annotated[bool, Option("--strict", "Refuse a conversion that loses something (status 2).")] = False
    force: Annotated[bool, Option("--force", "Replace files that exist.")] = False


@command(ConvertOptions, "anabranch convert wan.sh --out wan.toml", "anabranch convert scenario.toml --to netem")
def run_convert(options: ConvertOptions) -> None:
    """Convert paths, runs and results from and to other tools.

    Properties that the output cannot express are listed on standard error. Read: run, scenario, netem, mahimahi,
    mahimahi-trace, time-rate, iperf3, flent, flowmonitor, graphml, gml, topohub. Written: scenario, netem, mahimahi,
    flent, qlog, csv, summary.
    """
    from anabranch.convert import Options, convert, convert_bytes
    from anabranch.errors import UserError

    told = Options(
        source=options.source,
        target=options.target,
        out=options.out,
        link=options.link,
        flow=options.flow,
        routing=options.routing,
    )
    if str(options.file) == "-":
        converted = convert_bytes("<standard input>", _standard_input(), Path(), told)
    else:
        converted = convert(options.file, told)
    if options.strict and converted.notes:
        count = len(converted.notes)
        raise UserError(
            f"--strict: {converted.target} does not express {count} of the input's properties, so nothing is written\n"
            + "\n".join(f"  {line}" for line in converted.notes)
        )
    for line in converted.remarks:
        note(line)
    for line in converted.notes:
        note(f"not converted: {line}")
    if options.out is None:
        if converted.files:
            raise UserError(
                f"{converted.target} needs {len(converted.files)} more files beside it: {', '.join(converted.files)}",
                hint="--out FILE says where",
            )
        _print(converted.content)
        return
    if options.out.name in converted.files:
        raise UserError(
            f"--out {options.out}: a file that {converted.target} needs beside it has the same name",
            hint="give --out another name",
        )
    _write(options.file, options.out, {options.out.name: converted.content, **converted.files}, force=options.force)


def _print(content: bytes) -> None:
    """Print the output unchanged; a terminal receives no control characters from it."""
    from anabranch.text import shown

    if sys.stdout.isatty():
        sys.stdout.write(shown.terminal(content.decode(errors="replace")))
    else:
        sys.stdout.buffer.write(content)
    sys.stdout.flush()


def _standard_input() -> bytes:
    from anabranch.errors import UserError
    from anabranch.files.files import MAX_RESULT_BYTES

    content = sys.stdin.buffer.read(MAX_RESULT_BYTES + 1)
    if len(content) > MAX_RESULT_BYTES:
        raise UserError(f"standard input has more than {MAX_RESULT_BYTES:,} bytes, which were the most expected")
    return content


def _write(source: Path, out: Path, files: dict[str, bytes], *, force: bool) -> None:
    """Write every file as a whole; the file that names the others comes last."""
    from anabranch.errors import UserError
    from anabranch.files.output_file import output_file

    main = output_file(out, force=True, reads=[source])
    if main.is_stream and len(files) > 1:
        others = [name for name in files if name != out.name]
        raise UserError(
            f"--out {out} is no regular file, and {len(others)} more files are needed beside it: {', '.join(others)}",
            hint="--out FILE says where",
        )
    changed = {name: content for name, content in files.items() if not _holds(out.parent / name, content)}
    targets = {name: output_file(out.parent / name, force=force, reads=[source]) for name in reversed(changed)}
    for name, target in targets.items():
        target.write(changed[name])
    others = [name for name in files if name != out.name]
    note(f"wrote {out}{' and, beside it, ' if others else ''}{', '.join(others)}")


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content
