"""``anabranch diagnose``: a capture in one screen, one connection in detail, or JSON."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anabranch import interrupt
from anabranch.cli.command import Argument, Option, command, typed
from anabranch.cli.common import KERNEL, LIVE, check_engine, console, note, print_json, write_json
from anabranch.cli.options import Force, Json, Kernel, Out
from anabranch.extras import remark_once

if TYPE_CHECKING:
    from anabranch.diagnosis.choice import Choice
    from anabranch.diagnosis.diagnosis import Diagnosis
    from anabranch.diagnosis.document import Connection
    from anabranch.files.output_file import OutputFile
    from anabranch.fitted.made import Made


@dataclass(frozen=True, kw_only=True)
class DiagnoseOptions:
    """The options of the command."""

    captures: Annotated[
        tuple[Path, ...],
        Argument(
            "CAPTURE...",
            "A pcap or pcapng file, or a qlog of QUIC, also compressed with gzip or zstd; several captures of the same "
            "connections at points along their path.",
        ),
    ] = ()
    names: Annotated[
        str | None, Option("--names", "Names of the points of several captures, in their order.", "NAME,NAME...")
    ] = None
    connection: Annotated[int | None, Option("--connection", "Only this connection, in detail.", "N")] = None
    hosts: Annotated[
        tuple[str, ...],
        Option("--host", "Only connections of this host or network; of both if given twice.", "ADDRESS"),
    ] = ()
    port: Annotated[int | None, Option("--port", "Only connections with this port at either end.", "N")] = None
    around: Annotated[
        str | None,
        Option(
            "--around",
            "Only connections that were open then: 14:03:20, 2026-11-28T14:03:20, or seconds from the start.",
            "TIME",
        ),
    ] = None
    slowest: Annotated[
        bool, Option("--slowest", "Only the ten connections that lost most time, the slowest first.")
    ] = False
    by: Annotated[
        str | None,
        Option("--by", "Sum up all connections by this key, and list the outliers.", "server|client|port|time"),
    ] = None
    compare: Annotated[
        bool,
        Option("--compare", "Two captures before and after a change: what differs, server by server, with intervals."),
    ] = False
    replay: Annotated[
        bool, Option("--replay", "Simulate the connection on its fitted path, and compare with the capture.")
    ] = False
    advise: Annotated[bool, Option("--advise", "Simulate remedies on the fitted path, and rank them.")] = False
    live: Annotated[bool, Option("--live", "As --advise --engine live.")] = False
    engine: Annotated[
        str,
        Option(
            "--engine",
            "With --advise: repeat the best remedy with the kernel's TCP (live), or with that of a Linux kernel "
            "in virtual time (kernel).",
            "sim|live|kernel",
        ),
    ] = "sim"
    kernel: Kernel = None
    json: Json = False
    out: Out = None
    annotate: Annotated[
        Path | None, Option("--annotate", "Write the capture as pcapng, with the findings as comments.", "FILE")
    ] = None
    force: Force = False
    any_expansion: Annotated[
        bool,
        Option("--any-expansion", "Read a compressed capture also if it expands to more than 256 times its size."),
    ] = False
    follow: Annotated[
        str | None,
        Option("--follow", "Capture here and diagnose until Ctrl-C; takes CAP_NET_RAW.", "INTERFACE"),
    ] = None
    ring: Annotated[str, Option("--ring", "With --follow: time for which packets are kept.", "TIME")] = "2min"
    save_on: Annotated[
        str | None, Option("--save-on", "With --follow: save the kept packets when this cause occurs.", "CAUSE")
    ] = None
    save_to: Annotated[Path, Option("--save-to", "With --save-on: the directory for these captures.", "DIR")] = Path()

    @property
    def capture(self) -> Path | None:
        """The capture, if it is the only one."""
        return self.captures[0] if len(self.captures) == 1 else None

    @property
    def choice(self) -> Choice:
        """The conditions on connections."""
        from anabranch.diagnosis.choice import Choice

        return Choice(self.hosts, self.port, self.around, self.slowest)

    @property
    def is_whole_document(self) -> bool:
        """Whether the document of the capture is printed as it is, and nothing else is made."""
        if not self.json or self.is_simulated or self.slowest:
            return False
        return not self.hosts and all(
            value is None for value in (self.port, self.around, self.connection, self.out, self.annotate)
        )

    @property
    def is_simulated(self) -> bool:
        """Whether the fitted scenario is simulated."""
        return self.replay or self.advise

    def settled(self) -> DiagnoseOptions:
        """The options with ``--live`` as ``--advise --engine live``.

        Raises:
            UserError: The engine is unknown, or has no effect.
        """
        from anabranch.errors import UserError

        check_engine(self.engine, self.kernel)
        if self.live and self.engine == KERNEL:
            raise UserError("--live is --engine live, and --engine kernel is given", hint="give one of them")
        if self.engine != "sim" and not (self.advise or self.live):
            raise UserError(
                f"--engine {self.engine} repeats the best remedy of --advise, and it is not given",
                hint=f"give --advise --engine {self.engine}",
            )
        return replace(self, advise=True, engine=LIVE) if self.live else self


@command(
    DiagnoseOptions,
    "anabranch diagnose slow.pcapng",
    "anabranch diagnose slow.pcapng --connection 3",
    "anabranch diagnose slow.pcapng --host 192.0.2.7 --port 443 --around 14:03:20",
    "anabranch diagnose slow.pcapng --slowest",
    "anabranch diagnose slow.pcapng --by server",
    "anabranch diagnose client.pcap server.pcap --names client,server",
    "anabranch diagnose before.pcapng after.pcapng --compare",
    "anabranch diagnose slow.pcapng --replay",
    "anabranch diagnose slow.pcapng --advise --engine kernel",
    "anabranch diagnose slow.pcapng --out slow",
    "anabranch diagnose slow.pcapng --annotate annotated.pcapng",
    "anabranch diagnose server.sqlog",
    "anabranch diagnose a.pcap --json",
    "anabranch diagnose --follow eth0 --save-on zero-window --ring 2min",
)
def run_diagnose(options: DiagnoseOptions) -> None:
    """Find out why the connections of a capture or a qlog are slow.

    Names the limit of each connection, the trigger of each retransmission and whether it was needed, and the cause
    of each pause. Questions that the capture does not answer are called undecidable. With --out it writes report.html
    with charts and packet ladders, tables as Parquet, and a scenario that reproduces the connection with the most
    data, or the one chosen by --connection. --host, --port and --around find the connection of a complaint.

    Captures of the same connections at several points are compared: the clocks are aligned by the packets, also
    through NAT, and each part of the path is reported with its losses, delays, reordering, duplicates and changed
    headers, and with the pauses that belong to it.

    A qlog of one end of QUIC has the same diagnosis. Packets of QUIC in a capture show the handshake, rates, and round
    trips if the spin bit is used.
    """
    if options.compare:
        from anabranch.cli.diagnose_difference import diagnose_difference

        diagnose_difference(options)
    elif options.follow is not None:
        _follow(options.follow, options)
    elif len(options.captures) > 1:
        from anabranch.cli.diagnose_points import diagnose_several

        diagnose_several(options)
    elif options.by is not None:
        from anabranch.cli.diagnose_sums import sum_up

        sum_up(options.by, options)
    else:
        _diagnose(options.settled())


def _follow(interface: str, options: DiagnoseOptions) -> None:
    """Diagnose the packets of an interface until Ctrl-C, and print the diagnosis of the ring.

    Raises:
        UserError: There is no such interface or cause, or an option does not fit.
        RunFailedError: Capturing is not permitted, or ends.
    """
    from anabranch.cli.blocks import write
    from anabranch.diagnosis.follow import Follower, Ring, check_cause, ring_seconds, until_interrupted
    from anabranch.diagnosis.interface import Interface
    from anabranch.diagnosis.text import overview
    from anabranch.errors import UserError
    from anabranch.text.lines import wrapped

    if options.captures:
        raise UserError(f"--follow {interface}: expected no capture beside it", hint=f"leave out {options.captures[0]}")
    files = (options.out, options.annotate, options.connection, options.names, options.by)
    chosen = options.is_simulated or options.live or options.force or not options.choice.is_empty
    chosen = chosen or options.engine != "sim"
    if chosen or any(value is not None for value in files):
        raise UserError(
            "--follow goes with --json, --ring, --save-on and --save-to", hint="save a capture, and diagnose it"
        )
    seconds = ring_seconds(options.ring)
    if options.save_on is not None:
        check_cause(options.save_on)
    if not options.save_to.is_dir():
        raise UserError(f"--save-to {options.save_to}: there is no such directory", hint="make it first")
    if options.save_on is not None:
        from anabranch.files.output import check_folder

        check_folder(options.save_to, "save_to")
    out = console()

    def say(line: str) -> None:
        if options.json:
            note(line)
        else:
            out.print(line, soft_wrap=True)

    place = Interface(interface)
    try:
        ring = Ring(seconds, place.link_type)
        follower = Follower(place, ring, options.save_on, options.save_to, say)
        with contextlib.closing(follower), until_interrupted(follower):
            note(f"following {interface}, {options.ring} are kept; Ctrl-C ends it")
            summary = follower.follow()
        missed = place.statistics()
    finally:
        place.close()
    # The reader of the output may have stopped reading: the next Ctrl-C ends the process.
    interrupt.watch()
    if summary.behind_s > 0:
        note(f"the last {summary.behind_s:.1f} s are not in it: their diagnosis was not finished")
    if options.json:
        print_json(summary.found)
        return
    told = f"{ring.seen:,} packets passed; the last {summary.packets:,} are summed up"
    told += f"; {ring.left_out:,} did not fit into the ring" if ring.left_out else ""
    write(out, wrapped(told + (f"; {missed:,} were missed" if missed else ""), "  "))
    write(out, overview(summary.found, has_hint=False))


def _diagnose(options: DiagnoseOptions) -> None:
    """Diagnose a capture and print the diagnosis.

    Raises:
        UserError: It is no capture, or has no such connection.
    """
    from anabranch.errors import UserError
    from anabranch.progress import Progress
    from anabranch.text.shown import plain

    capture = options.capture
    if capture is None:
        raise UserError("expected a capture, or --follow INTERFACE", hint="anabranch diagnose slow.pcapng")
    if options.names is not None:
        raise UserError("--names is for several captures, and one is given", hint="leave it out")
    if options.out is not None:
        from anabranch.files.output import check_target

        check_target(options.out, "diagnose")
    annotated = _annotated(capture, options)
    if options.engine == LIVE:
        from anabranch.live import prepare

        prepare("--advise simulates")
    if options.engine == KERNEL:
        from anabranch.kernel.images import chosen

        chosen(options.kernel)
    if options.is_whole_document:
        from anabranch.diagnosis.engine import document

        with Progress(plain(capture.name), 1) as bar:
            text = document(capture, any_expansion=options.any_expansion, progress=bar.update, is_indented=True)
        write_json(text)
        return
    from anabranch.cli.blocks import write
    from anabranch.diagnosis.choice import choose
    from anabranch.diagnosis.diagnosis import diagnose
    from anabranch.diagnosis.text import detail

    with Progress(plain(capture.name), 1) as bar:
        whole = diagnose(capture, any_expansion=options.any_expansion, progress=bar.update)
    found = choose(whole, options.choice)
    one = None if options.connection is None else found.connection(options.connection)
    made = _made(capture, found, one, options) if options.is_simulated or options.out is not None else None
    if options.json:
        print_json({**found, "connections": [one]} if one else found)
    else:
        # A capture on standard output must not be mixed with the text.
        out = console(error=annotated is not None and annotated.is_standard_output)
        write(out, _screen(whole, found, options) if one is None else detail(one))
        write(out, made.lines() if made else ())
    if annotated is not None:
        from anabranch.diagnosis.comments import write_annotated

        write_annotated(whole, annotated)
        note(f"wrote {options.annotate}")
    if options.out is not None:
        from anabranch.report.capture_output import write_diagnosis

        write_diagnosis(found, options.out, chosen=one, made=made, command=_command_line(options))
        fitted = " and scenario.toml" if made is not None else ""
        note(f"wrote {options.out / 'report.html'}, diagnosis.json, tables{fitted}")
        drawn = ("matplotlib",) if made is not None and made.replay is not None else ()
        remark_once(note, "polars", *drawn)


def _annotated(capture: Path, options: DiagnoseOptions) -> OutputFile | None:
    """The file of ``--annotate``, if it was given.

    Raises:
        UserError: It cannot be written, or ``--json`` writes the same place.
    """
    from anabranch.errors import UserError

    if options.annotate is None:
        if options.force:
            raise UserError("--force is for the file of --annotate, and none is given", hint="leave it out")
        return None
    from anabranch.diagnosis.comments import annotated_file

    annotated = annotated_file(options.annotate, capture, force=options.force)
    if annotated.is_standard_output and options.json:
        raise UserError(
            f"--annotate {options.annotate} and --json both write standard output",
            hint="give one of them another place",
        )
    return annotated


def _screen(whole: Diagnosis, found: Diagnosis, options: DiagnoseOptions) -> Iterator[str]:
    """The chosen connections in one screen, with a sentence on them beside the others."""
    from anabranch.diagnosis.choice import time_of
    from anabranch.diagnosis.rollup_text import chosen_text
    from anabranch.diagnosis.text import overview

    answer = "" if options.choice.is_empty else chosen_text(whole, found)
    moment = time_of(found, options.choice.around)
    return overview(found, moment, answer=answer, is_ranked=options.slowest)


def _command_line(options: DiagnoseOptions) -> str:
    """The command that repeats this diagnosis."""
    names = (
        "captures",
        "connection",
        "hosts",
        "port",
        "around",
        "slowest",
        "replay",
        "advise",
        "engine",
        "kernel",
        "any_expansion",
    )
    return f"{typed('diagnose', options, *names)} --out DIR"


def _made(capture: Path, found: Diagnosis, one: Connection | None, options: DiagnoseOptions) -> Made | None:
    """The scenario of the chosen connection, or of the connection with the most data, and its use.

    Without a requested simulation, a connection with too little data has none.
    """
    from anabranch.diagnosis.diagnosis import directions
    from anabranch.errors import UserError
    from anabranch.fitted.made import make

    connections = found.content["connections"]
    if not connections:
        if not options.is_simulated:
            return None
        raise UserError(f"{found['file']}: no TCP connection was found, so that there is none to simulate")
    connection = one or max(connections, key=lambda each: sum(way["bytes"] for _, way in directions(each)))
    try:
        return make(
            connection,
            str(capture),
            replay=options.replay,
            advise=options.advise,
            engine=options.engine,
            kernel=options.kernel,
        )
    except UserError:
        if options.is_simulated:
            raise
        return None
