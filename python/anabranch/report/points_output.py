"""The output of ``anabranch diagnose --out`` with several captures: the document, and a report as one page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.charts.model import Chart, SeriesColumns
from anabranch.diagnosis.text import plural
from anabranch.files.output import whole_directory
from anabranch.multipoint.compare import Points
from anabranch.multipoint.documents import Compared, Document, Pause, Series
from anabranch.multipoint.parts import series
from anabranch.multipoint.text import (
    distinct_changes,
    longest_pauses,
    milliseconds,
    numbers,
    outside_text,
    place_text,
    remarks,
    share_text,
)
from anabranch.multipoint.tracks import moments, tracks
from anabranch.report.page import page, table, text
from anabranch.text import shown
from anabranch.text.lines import pause_length

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REPORT = "report.html"
DOCUMENT = "points.json"
MOST_DRAWN = 4
"""Connections with a ladder: those whose pauses took the most time."""
MOST_CONNECTIONS = 100
MOST_ROWS = 200
MOST_TRACKS = 20_000
"""Packets of a connection from which ladders are made."""


def write_points(found: Points, directory: Path, *, connection: int | None = None, command: str = "") -> None:
    """Write the document and the report; the directory appears whole or not at all.

    Args:
        found: The diagnosis.
        directory: The directory to write.
        connection: The only connection with a ladder.
        command: The command as typed; the report shows it.

    Raises:
        UserError: The directory holds something else.
        RunFailedError: It cannot be written.
    """
    with whole_directory(directory, "diagnose") as aside:
        (aside / DOCUMENT).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (aside / REPORT).write_text(html_report(found, connection=connection, command=command), encoding="utf-8")


def html_report(found: Points, *, connection: int | None = None, command: str = "") -> str:
    """The report as one self-contained page.

    Args:
        found: The diagnosis.
        connection: The only connection with a ladder.
        command: The command that made the report, as typed.
    """
    content = found.content
    names = [point["name"] for point in content["points"]]
    title = f"Diagnosis at {' and '.join(names)}"
    facts = [
        plural(len(content["connections"]), "TCP connection"),
        *(f"{one['name']}: {one['packets']:,} frames" for one in content["points"]),
    ]
    body = [f"<h1>{text(title)}</h1>", f"<p class='soft'>{text(' · '.join(facts))}</p>"]
    if command:
        body.append(f"<pre class='command' aria-label='The command that made this report'>{text(command)}</pre>")
    body.append(f"<ul>{''.join(f'<li>{text(one)}</li>' for one in content['summary'])}</ul>")
    body.append(f"<h2>Parts of the path</h2>{_parts(content)}")
    told = list(remarks(content))
    if told:
        body.append(f"<ul class='soft'>{''.join(f'<li>{text(line)}</li>' for line in told)}</ul>")
    charts = list(_charts(content))
    from anabranch.charts import place_all

    body.append(place_all(charts))
    body.append(_changes(content))
    body.append(_pauses(content))
    body.append(_connections(content))
    # A single connection has the charts of the path.
    of_path = charts[:] if len(content["connections"]) == 1 else None
    for number in _drawn(content, connection):
        own = [chart for chart in _connection_charts(found, number) if any(len(one.x) for one in chart.series)]
        charts += [] if of_path else own
        body += _connection(found, number, of_path or own, is_drawn=bool(of_path))
    return page(title, "\n".join(body), charts=charts, scripts=["ladder.js", "points.js"] if charts else [])


def _drawn(content: Document, connection: int | None) -> list[int]:
    """The numbers of the pairs with a ladder."""
    order = range(len(content["connections"]))
    if connection is not None:
        return [i for i in order if content["connections"][i]["id"] == connection]

    def weight(index: int) -> tuple[float, int]:
        one = content["connections"][index]
        lost = sum(part["forward"]["lost"] + part["backward"]["lost"] for part in one["parts"])
        return (-sum(pause["duration_s"] for pause in one["pauses"]), -lost)

    return sorted(order, key=weight)[:MOST_DRAWN]


def _parts(content: Document) -> str:
    rows = []
    for part in content["parts"]:
        for own, start, end, hops in (
            (part["forward"], part["from"], part["to"], part["hops_forward"]),
            (part["backward"], part["to"], part["from"], part["hops_backward"]),
        ):
            delay = own["delay_ms"]
            rows.append((
                f"{start} to {end}", f"{own['packets']:,}", f"{own['lost']:,}", share_text(own["lost"], own["packets"]),
                f"{own['bursts']:,}", f"{own['reordered']:,}", f"{own['duplicated']:,}",
                f"{sum(own['added'].values()):,}", milliseconds(delay["min"]), milliseconds(delay["median"]),
                milliseconds(delay["p95"]), milliseconds(delay["max"]), "–" if hops is None else str(hops),
            ))  # fmt: skip
    head = ("way", "packets", "lost", "share", "in runs", "overtaken", "twice", "made by a device", "least delay (ms)",
            "median (ms)", "95 % (ms)", "longest (ms)", "routers")  # fmt: skip
    points = content["points"]
    outside = [
        f"Before {points[0]['name']}: {outside_text(content['before'])}.",
        f"Beyond {points[-1]['name']}: {outside_text(content['beyond'])}.",
        "The least delay of each way is half of the least round trip between the points: packets alone do not show "
        "more. Differences from it are exact.",
    ]
    return table(head, rows) + f"<ul>{''.join(f'<li>{text(line)}</li>' for line in outside)}</ul>"


def _charts(content: Document) -> Iterator[Chart]:
    for number, part in enumerate(content["parts"]):
        ways = ((part["delays_forward"], part["from"], part["to"]), (part["delays_backward"], part["to"], part["from"]))
        for way, (own, start, end) in enumerate(ways):
            if own is not None:
                yield _delay_chart(f"delay-{number}-{way}", f"One-way delay from {start} to {end}", own)


def _delay_chart(name: str, title: str, own: Series) -> Chart:
    at = [own["start_s"] + own["interval_s"] * (i + 0.5) for i in range(len(own["packets"]))]
    known = [i for i, value in enumerate(own["median_ms"]) if value is not None]
    low = _column([own["min_ms"][i] for i in known])
    middle = _column([own["median_ms"][i] for i in known])
    high = _column([own["max_ms"][i] for i in known])
    x = _column([at[i] for i in known])
    made = [SeriesColumns("longest", x, high, "band", low=low, low_label="least"), SeriesColumns("median", x, middle)]
    lost = [i for i, count in enumerate(own["lost"]) if count]
    if lost:
        top = float(high.max()) if len(high) else 1.0
        made.append(
            SeriesColumns("interval with a loss", _column([at[i] for i in lost]), _column([top] * len(lost)), "marks")
        )
    about = f"By the time at which packets leave, in intervals of {own['interval_s'] * 1e3:.3g} ms."
    return Chart(name, title, "one-way delay (ms)", tuple(made), about)


def _connection_charts(found: Points, number: int) -> Iterator[Chart]:
    connection = found.content["connections"][number]
    for index, part in enumerate(found.comparison.parts):
        names = (connection["parts"][index]["from"], connection["parts"][index]["to"])
        for way, passage in enumerate(part.passages):
            own = series(passage, number)
            if own is not None:
                start, end = names if way == 0 else names[::-1]
                title = f"Connection {connection['id']}: one-way delay from {start} to {end}"
                yield _delay_chart(f"delay-{index}-{way}-{connection['id']}", title, own)


def _changes(content: Document) -> str:
    rows = [
        (change.part, change.text, f"{len(change.ids):,}", numbers(change.ids), ", ".join(change.frames))
        for change in distinct_changes(content)
    ]
    if not rows:
        return "<h2>Changed headers</h2><p>No device between the points changed a header.</p>"
    head = ("part", "change", "connections", "which", "frames at both points")
    cut = f"<p class='soft'>{len(rows) - MOST_ROWS:,} more.</p>" if len(rows) > MOST_ROWS else ""
    return f"<h2>Changed headers</h2>{table(head, rows[:MOST_ROWS], left=2, words=(3, 4))}{cut}"


def _pauses(content: Document) -> str:
    total = sum(one["time_s"] for one in content["belongs_to"])
    if not total:
        return "<h2>Pauses</h2><p>No sender paused for longer than a round trip.</p>"
    places = [
        (
            place_text(content, one["place"]),
            f"{one['pauses']:,}",
            f"{one['time_s']:.3f}",
            f"{one['time_s'] / total:.1%}",
        )
        for one in content["belongs_to"]
    ]
    start = content["points"][0]["start_s"]
    rows = [
        (str(number), f"{pause['start_s'] - start:.4f}", f"{pause['duration_s'] * 1e3:.1f}",
         place_text(content, pause["belongs_to"]), pause["cause"].replace("-", " "), pause["evidence"], pause["point"],
         ", ".join(map(str, pause["frames"])))
        for number, pause in longest_pauses(content)
    ]  # fmt: skip
    head = ("connection", "from (s)", "length (ms)", "place", "cause", "evidence", "point", "frames")
    return (
        f"<h2>Pauses and their places</h2>{table(('place', 'pauses', 'time (s)', 'share'), places)}"
        f"<details><summary>Pauses: {len(rows):,}{f', the longest {MOST_ROWS}' if len(rows) > MOST_ROWS else ''}"
        f"</summary>{table(head, rows[:MOST_ROWS], words=(3, 4, 5, 6, 7))}</details>"
    )


def _connections(content: Document) -> str:
    rows = []
    for one in content["connections"][:MOST_CONNECTIONS]:
        forward = [part["forward"] for part in one["parts"]]
        backward = [part["backward"] for part in one["parts"]]
        rows.append((
            str(one["id"]), one["a"], one["b"], " / ".join(map(str, one["ids"])), one["paired_by"][0].replace("-", " "),
            f"{sum(way['packets'] for way in forward[:1] + backward[:1]):,}",
            f"{sum(way['lost'] for way in forward + backward):,}",
            milliseconds(one["parts"][0]["round_trip_ms"]),
            f"{sum(pause['duration_s'] for pause in one['pauses']):.3f}",
        ))  # fmt: skip
    head = ("connection", "client", "server", "numbers at the points", "paired by", "packets", "lost",
            "round trip (ms)", "pauses (s)")  # fmt: skip
    more = len(content["connections"]) - len(rows)
    cut = f"<p class='soft'>{more:,} more.</p>" if more > 0 else ""
    return f"<h2>Connections</h2>{table(head, rows, left=3, words=(3, 4))}{cut}"


def _connection(found: Points, number: int, own: Sequence[Chart], *, is_drawn: bool) -> Iterator[str]:
    from anabranch.charts import place_all

    content = found.content
    connection = content["connections"][number]
    yield f"<h2>Connection {connection['id']}: {text(connection['a'])} to {text(connection['b'])}</h2>"
    if not is_drawn:
        yield place_all(own, level=3)
    yield _moments(found, number, connection, own[0].name if own else "")


def _moments(found: Points, number: int, connection: Compared, chart: str) -> str:
    content = found.content
    rows = tracks(found, number)[:MOST_TRACKS]
    start = content["points"][0]["start_s"]

    def told(pause: Pause) -> str:
        sender = connection["a" if pause["direction"] == "a_to_b" else "b"]
        return (
            f"Pause of {pause_length(pause['duration_s'])} of {sender} "
            f"at {pause['start_s'] - start:.4f} s: {place_text(content, pause['belongs_to'])} "
            f"({pause['cause'].replace('-', ' ')}; {pause['evidence']})."
        )

    chosen = moments(connection, rows, start, told)
    if not chosen:
        return "<p>No packet was lost between the points, and there was no pause.</p>"
    used = sorted({place for moment in chosen for place in moment["places"] if place >= 0})
    place_of = {place: i for i, place in enumerate(used)}
    data = shown.script({
        "points": [point["name"] for point in content["points"]], "a": connection["a"], "b": connection["b"],
        "rows": [rows[place] for place in used],
        "moments": [
            {
                "told": one["told"], "marks": [place_of[mark] for mark in one["marks"]],
                "places": [place_of[place] if place >= 0 else place for place in one["places"]],
            }
            for one in chosen
        ],
    })  # fmt: skip
    options = "".join(f"<option value='{i}'>{text(one['told'])}</option>" for i, one in enumerate(chosen))
    at = connection["id"]
    first = max(range(len(chosen)), key=lambda i: chosen[i]["pause_s"])
    return (
        f"<div class='moments points-moments' data-chart='{chart}' data-first='{first}'>"
        f"<h3 id='ladder-{at}'>Packets around a pause or a loss</h3>"
        "<p class='soft'>One line for each point, with times of the first point's clock and frame numbers; "
        "R: retransmission, ✕: lost.</p>"
        "<div class='ladder-tools'><button type='button' data-step='-1'>Previous</button>"
        "<button type='button' data-step='1'>Next</button>"
        "<button type='button' data-step='0'>Zoom the charts to it</button>"
        f"<select aria-label='Pause or loss of connection {at}'>{options}</select></div>"
        "<p class='moment-told' aria-live='polite'></p>"
        f"<div class='ladder' role='group' aria-labelledby='ladder-{at}'></div>"
        f'<script type="application/json">{data}</script></div>'
    )


def _column(values: Sequence[float | None]) -> NDArray[np.float64]:
    import numpy as np

    return np.asarray(values, dtype=np.float64)
