"""The output of ``anabranch diagnose --out``: a report as one page, tables, and the capture with comments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.charts import place_all
from anabranch.charts.capture import VERDICTS, CaptureColumns
from anabranch.charts.pack import thinned
from anabranch.diagnosis.controls import control_of, control_text, evidence_text
from anabranch.diagnosis.diagnosis import TABLES, Diagnosis, directions, ends_of, main_direction, shares
from anabranch.diagnosis.document import Connection, Fairness, OneWay, QuicFlow
from anabranch.diagnosis.figures_text import figures_text, octets, quic_text
from anabranch.diagnosis.points import Again, Pause, Trace, moments, points
from anabranch.diagnosis.rollup import roll_up
from anabranch.diagnosis.text import (
    cause_text,
    contents_text,
    counts_text,
    frame_noun,
    packet_noun,
    parties_text,
    place_text,
    remarks,
    round_trips_text,
)
from anabranch.files.output import whole_directory
from anabranch.report.capture_ladder import moment_data
from anabranch.report.capture_path import fitted_path
from anabranch.report.capture_rollup import rollup_section
from anabranch.report.page import page, table, text
from anabranch.result.format import figure
from anabranch.result.table_file import write_table
from anabranch.text import shown
from anabranch.text.lines import amount, pause_length

if TYPE_CHECKING:
    from anabranch.charts.model import Chart
    from anabranch.fitted.made import Made

REPORT = "report.html"
DOCUMENT = "diagnosis.json"
MOST_DRAWN = 4
"""Largest number of connections with charts; connections with the most data come first."""
MOST_CONNECTIONS = 100
"""Connections in the page's table."""
MOST_ROWS = 200
"""Retransmissions, and pauses, of a connection in the page's tables."""

HINT = (
    "<p class='hint'>Drag across a chart to zoom all of them in time; double-click to see the whole capture. Click a "
    "retransmission or the end of a pause in a chart of sequences to see the packets around it; in the chart, n and p "
    "go to the next and the previous one.</p>"
)


def write_diagnosis(
    document: Diagnosis,
    directory: Path,
    *,
    chosen: Connection | None = None,
    made: Made | None = None,
    command: str = "",
) -> None:
    """Write the document, its tables, the report and the fitted scenario; the directory appears whole or not at all.

    Args:
        document: The diagnosis.
        directory: The directory to write.
        chosen: The only connection to draw.
        made: The fitted scenario and its simulations, if there is one.
        command: The command as typed; the report shows it.

    Raises:
        UserError: The directory holds something else, or the capture cannot be read any more.
        RunFailedError: It cannot be written.
    """
    with whole_directory(directory, "diagnose") as aside:
        (aside / DOCUMENT).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        write_tables(document, aside)
        report = html_report(document, chosen=chosen, made=made, command=command)
        (aside / REPORT).write_text(report, encoding="utf-8")
        if made is not None:
            made.write(aside)


def write_tables(document: Diagnosis, directory: Path) -> None:
    """Each table of the diagnosis as a file."""
    for name in TABLES:
        write_table(directory, name, document.table(name))


def drawn_connections(document: Diagnosis, chosen: Connection | None = None) -> list[Connection]:
    """The connections with charts: the chosen one, or those with the most data."""
    if chosen is not None:
        return [chosen]
    ranked = sorted(document.content["connections"], key=lambda one: (-main_direction(one)[1]["bytes"], one["id"]))
    return ranked[:MOST_DRAWN]


def html_report(
    document: Diagnosis, *, chosen: Connection | None = None, made: Made | None = None, command: str = ""
) -> str:
    """The report of a capture as one self-contained page.

    Args:
        document: The diagnosis.
        chosen: The only connection to draw.
        made: The fitted scenario and its simulations, if there is one.
        command: The command that made the report, as typed.

    Raises:
        UserError: The capture cannot be read any more.
    """
    content = document.content
    drawn = drawn_connections(document, chosen)
    traced = points(document, drawn) if drawn else {}
    origin = min((one["start_s"] for one in content["connections"]), default=0.0)
    count = len(content["connections"]) + content["omitted"]["connections"]
    title = f"Diagnosis of {shown.plain(Path(content['file']).name)}"
    facts = [contents_text(content, count), _version()]
    body = [f"<h1>{text(title)}</h1>", f"<p class='soft'>{text(' · '.join(facts))}</p>"]
    if command:
        body.append(f"<pre class='command' aria-label='The command that made this report'>{text(command)}</pre>")
    told = [line.strip() for line in remarks(content)]
    if told:
        body.append(f"<ul>{''.join(f'<li>{text(line)}</li>' for line in told)}</ul>")
    body.append(rollup_section(document))
    body.append(_connections(document, count))
    body += _fairness(content["fairness"])
    body += _quic(content["quic"])
    charts: list[Chart] = []
    if drawn:
        body.append(HINT)
    for connection in drawn:
        own = [thinned(chart) for chart in _columns(connection, traced[connection["id"]], origin).charts()]
        charts += own
        body += _connection(connection, own, traced[connection["id"]], origin)
        if made is not None and made.connection["id"] == connection["id"]:
            body.append(fitted_path(made))
    return page(title, "\n".join(body), charts=charts, scripts=["ladder.js", "diagnose.js"] if charts else [])


def _columns(connection: Connection, traced: Trace, origin: float) -> CaptureColumns:
    return CaptureColumns(connection, traced, main_direction(connection)[0], origin, f"-{connection['id']}")


def _version() -> str:
    from anabranch import __version__

    return f"anabranch {__version__}"


def _connections(document: Diagnosis, count: int) -> str:
    rows = []
    bad = {one["id"] for one in roll_up(document)["bad"]}
    ranked = sorted(
        document.content["connections"],
        key=lambda one: (one["id"] not in bad, -main_direction(one)[1]["bytes"], one["id"]),
    )
    for connection in ranked[:MOST_CONNECTIONS]:
        name, way = main_direction(connection)
        sender, receiver = ends_of(connection, name)
        limit, share = next(iter(shares(connection, way).items()))
        counts = way["retransmission_counts"]
        rows.append(
            (str(connection["id"]), sender, receiver, amount(way["bytes"]), figure(connection["duration_s"]),
             figure(way["goodput_mbit_s"]), figure(way["rtt_ms"]["median"]), figure(counts["all"]),
             figure(counts["spurious"]), limit.replace("-", " ") if share else "–", figure(share, ratio=True))
        )  # fmt: skip
    head = ("connection", "sender", "receiver", "data", "time (s)", "goodput (Mbit/s)", "median RTT (ms)",
            "retransmissions", "of them spurious", "limited by", "of the time")  # fmt: skip
    more = f"<p class='soft'>Bad ones first, then by data; {count - len(rows):,} more.</p>" if count > len(rows) else ""
    return f"<h2>Connections</h2>{table(head, rows, left=3, words=(9,))}{more}" if rows else "<p>No connection.</p>"


def _fairness(found: Sequence[Fairness]) -> Iterator[str]:
    """The connections that competed."""
    if not found:
        return
    rows = [
        (
            ", ".join(map(str, one["connections"][:MOST_CONNECTIONS])),
            f"{'to' if one['receives'] else 'from'} {one['host']}",
            figure(one["duration_s"]),
            ", ".join(figure(rate) for rate in one["goodput_mbit_s"][:MOST_CONNECTIONS]),
            f"{one['jain']:.3f}",
        )
        for one in found[:MOST_CONNECTIONS]
    ]
    head = ("connections", "host", "time together (s)", "goodputs (Mbit/s)", "Jain's index")
    yield f"<h2>Fairness</h2>{table(head, rows, left=2, words=(0, 1, 3))}"


def _quic(flows: Sequence[QuicFlow]) -> Iterator[str]:
    """Connections of QUIC, by their headers."""
    if not flows:
        return
    ranked = sorted(flows, key=lambda one: -sum(octets(one)))[:MOST_CONNECTIONS]
    items = []
    for flow in ranked:
        first, *rest = quic_text(flow)
        items.append(f"<li>{text(first)}<ul>{''.join(f'<li>{text(line)}</li>' for line in rest)}</ul></li>")
    told = "By unencrypted headers alone: for limits and retransmissions, diagnose a qlog of one end."
    yield f"<h2>QUIC</h2><p class='soft'>{told}</p><ul>{''.join(items)}</ul>"


def _connection(connection: Connection, charts: Sequence[Chart], traced: Trace, origin: float) -> Iterator[str]:
    name, way = main_direction(connection)
    sender, receiver = ends_of(connection, name)
    yield (
        f"<h2>Connection {connection['id']}: {text(sender)} sends {amount(way['bytes'])} to {text(receiver)} in "
        f"{figure(connection['duration_s'])} s</h2>"
    )
    place = place_text(connection, name)
    facts = [
        f"{place[:1].upper()}{place[1:]}, {round_trips_text(way)}.",
        *(f"Responsiveness and rate: {one}." for one in [figures_text(connection, way)] if one),
        f"Time: {parties_text(connection, name) or 'none'}.",
        f"{counts_text(way, packet_noun(connection))}.",
    ]
    if control := control_of(connection):
        told = control_text(connection) or "undecided"
        facts.append(f"Congestion control: {told}. {evidence_text(control)}")
    if connection["next"]:
        facts.append(f"Next: {connection['next']}.")
    yield f"<ul>{''.join(f'<li>{text(fact)}</li>' for fact in facts)}</ul>"
    noun = frame_noun(connection).capitalize()
    findings = [
        text(one["text"]) + (f" {noun}s {', '.join(map(str, one['packets']))}." if one["packets"] else "")
        for one in connection["findings"]
    ]
    if findings:
        yield f"<h3>What stands out</h3><ul>{''.join(f'<li>{one}</li>' for one in findings)}</ul>"
    for chart in charts:
        yield place_all([chart], level=3)
        if chart.name.startswith("limits"):
            yield _limits(way)
        if chart.name.startswith("sequence"):
            yield _moments(connection, traced, origin, chart.name)
    yield _retransmissions(connection, origin)
    yield _stalls(connection, origin)


def _limits(way: OneWay) -> str:
    whole = sum(way["limits_s"].values()) or 1.0
    ranked = sorted(way["limits_s"].items(), key=lambda one: -one[1])
    rows = [(limit.replace("-", " "), f"{time:.3f}", f"{time / whole:.1%}") for limit, time in ranked if time]
    return f"<details><summary>Time by limit</summary>{table(('limit', 'time (s)', 'share'), rows)}</details>"


def _moments(connection: Connection, traced: Trace, origin: float, chart: str) -> str:
    chosen = moments(connection)
    if not chosen:
        return "<p>Nothing was retransmitted, and there was no pause.</p>"
    # The other direction pauses while this one answers it.
    main = main_direction(connection)[0]
    longest = max(range(len(chosen)), key=lambda i: (chosen[i].direction == main, _length_s(chosen[i])))
    data = shown.script(moment_data(connection, traced, chosen, origin))
    options = []
    for i, moment in enumerate(chosen):
        at = f"{moment.time_s - origin:.4f} s"
        if isinstance(moment, Pause):
            what = f"{at}: pause of {pause_length(moment.row['duration_s'])}, {cause_text(moment.row)}"
        else:
            which = f"{frame_noun(connection)} {moment.row['packet']}"
            what = f"{at}: retransmission, {which}, {VERDICTS[moment.row['needed']]}"
        options.append(f"<option value='{i}'{' selected' if i == longest else ''}>{text(what)}</option>")
    number = connection["id"]
    is_log = connection["transport"] == "quic"
    point = "the end that wrote the log, with event numbers" if is_log else "the capture point, with frame numbers"
    of = sum(len(way["stalls"]) + len(way["retransmissions"]) for _, way in directions(connection))
    left = f" {len(chosen)} of {of:,} pauses and retransmissions have a ladder." if of > len(chosen) else ""
    return (
        f"<div class='moments' data-chart='{chart}' data-first='{longest}'>"
        f"<h3 id='ladder-{number}'>Packets around a pause or a retransmission</h3>"
        f"<p class='soft'>As they passed {point}; R: retransmission.{left}</p>"
        "<div class='ladder-tools'><button type='button' data-step='-1'>Previous</button>"
        "<button type='button' data-step='1'>Next</button>"
        "<button type='button' data-step='0'>Zoom the charts to it</button>"
        f"<select aria-label='Pause or retransmission of connection {number}'>{''.join(options)}</select></div>"
        "<p class='moment-told' aria-live='polite'></p>"
        f"<div class='ladder' role='group' aria-labelledby='ladder-{number}'></div>"
        f'<script type="application/json">{data}</script></div>'
    )


def _length_s(moment: Pause | Again) -> float:
    return moment.row["duration_s"] if isinstance(moment, Pause) else 0.0


def _retransmissions(connection: Connection, origin: float) -> str:
    of = sum(way["retransmission_counts"]["all"] for _, way in directions(connection))
    rows = [
        (f"{one['time_s'] - origin:.6f}", str(one["packet"]), ends_of(connection, name)[0], f"{one['seq']:,}",
         f"{one['bytes']:,}", VERDICTS[one["needed"]], one["evidence"], one["trigger"], one["lost"],
         str(one["earlier"] or "–"))
        for name, way in directions(connection)
        for one in way["retransmissions"]
    ]  # fmt: skip
    head = ("time (s)", "frame", "sender", "first octet", "octets", "verdict", "evidence", "trigger",
            "lost, from the capture point", "earlier copy")  # fmt: skip
    return _details("Retransmissions", head, rows, of, words=(2, 5, 6, 7, 8))


def _stalls(connection: Connection, origin: float) -> str:
    found = [
        (name, stall)
        for name, way in directions(connection)
        for stall in sorted(way["stalls"], key=lambda one: -one["duration_s"])
    ]
    of = len(found) + sum(way["stalls_not_listed"] for _, way in directions(connection))
    rows = [
        (f"{stall['start_s'] - origin:.6f}", f"{stall['duration_s'] * 1e3:.1f}", ends_of(connection, name)[0],
         cause_text(stall), ", ".join(map(str, stall["packets"])))
        for name, stall in found
    ]  # fmt: skip
    return _details("Pauses", ("from (s)", "length (ms)", "sender", "cause", "frames"), rows, of, words=(2, 3))


def _details(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], of: int, words: tuple[int, ...]) -> str:
    if not rows:
        return ""
    cut = f", the first {MOST_ROWS}" if len(rows) > MOST_ROWS else ""
    return f"<details><summary>{title}: {of:,}{cut}</summary>{table(head, rows[:MOST_ROWS], words=words)}</details>"
