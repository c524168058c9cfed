"""A diagnosis in words: lines of at most 80 columns for the terminal, sentences for the report."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from anabranch import _engine
from anabranch.diagnosis.choice import pause_around
from anabranch.diagnosis.controls import control_of, control_text, evidence_text
from anabranch.diagnosis.diagnosis import Diagnosis, directions, ends_of, main_direction, shares
from anabranch.diagnosis.document import (
    Cause,
    Connection,
    DirectionName,
    Document,
    Finding,
    Limit,
    OneWay,
    Retransmission,
    Stall,
)
from anabranch.diagnosis.figures_text import fairness_lines, figures_text, quic_lines
from anabranch.diagnosis.rollup_text import MANY, screen
from anabranch.text import shown
from anabranch.text.lines import amount, number, pause_length, percent, wrapped

MOST_ROWS, FEW_ROWS = 10, 3
"""Connections of the overview, without and with the sums of many."""
MOST_LISTED = 20
"""Retransmissions and pauses that the detail of a connection lists."""

MOST_NAMED = 10
"""Numbers of connections that a line names."""
MOST_THEN = 3
"""Other connections whose pause at a time is named."""
LEAST_SHARE = 0.01
"""Limits with a smaller share of the time are left out."""
FULL = 0.9
"""Share of the path's rate from which on the path is full."""
LEAST_QUIET_S, LEAST_QUIET_SHARE = 1.0, 0.05
"""Least time and share of the connection for which the time after the last data is shown."""


def overview(
    document: Diagnosis,
    around_s: float | None = None,
    *,
    has_hint: bool = True,
    answer: str = "",
    is_ranked: bool = False,
) -> Iterator[str]:
    """The capture in one screen: its connections, the slowest one (around a time), and the largest.

    Args:
        document: The diagnosis.
        around_s: The time, in seconds since 1970.
        has_hint: The last line names the options that show more.
        answer: A sentence on the chosen connections, before the table.
        is_ranked: The connections are in the order of the table.
    """
    content = document.content
    connections = content["connections"]
    count = len(connections) + content["omitted"]["connections"]
    file = shown.plain(content["file"])
    contents = contents_text(content, count)
    yield from wrapped(f"{file}: {contents}", "  ", whole=(file, contents))
    for remark in remarks(content):
        yield from wrapped(f"  {remark}", "    ")
    if not connections:
        if not content["quic"]:
            yield f"No {_protocol(content)} connection was found."
        yield from quic_lines(content)
        return
    ranked = sorted(connections, key=lambda one: (-main_direction(one)[1]["bytes"], not one["failure"], one["id"]))
    ranked = list(connections) if is_ranked else ranked
    if answer:
        yield from wrapped(answer, "  ")
    rows = MOST_ROWS
    if len(ranked) > MANY:
        yield from screen(document)
        rows = FEW_ROWS
    yield ""
    yield from _table(ranked[:rows])
    if len(ranked) > rows or content["omitted"]["connections"]:
        yield f"       {count - min(len(ranked), rows):,} more; --json lists {len(connections):,}"
    yield from fairness_lines(content)
    yield ""
    worst = fared_worst(ranked, around_s)
    yield from _summary(worst)
    if around_s is not None:
        yield from _then(ranked, worst, around_s)
    if worst is not ranked[0]:
        yield from _briefly(ranked[0])
    yield from _others([one for one in ranked[1:] if one is not worst])
    yield from quic_lines(content)
    if has_hint:
        yield ""
        yield f"--connection {worst['id']} lists its retransmissions and pauses; --advise tries remedies."


def contents_text(content: Document, count: int) -> str:
    """Number of packets and connections of a file."""
    noun = "packet" if content["source"] == "qlog" else "frame"
    told = f"{plural(content['packets'], noun)}, {plural(count, f'{_protocol(content)} connection')}"
    quic = len(content["quic"])
    return f"{told}, {quic:,} of QUIC" if quic else told


def _protocol(content: Document) -> str:
    return "QUIC" if content["source"] == "qlog" else "TCP"


def frame_noun(connection: Connection) -> str:
    """A frame of a capture, or an event of a qlog."""
    return "event" if connection["transport"] == "quic" else "frame"


def _then(connections: Sequence[Connection], worst: Connection, around_s: float) -> Iterator[str]:
    """The pauses around a time: of the summarized connection, then the longest ones of others."""
    if pause := pause_around(worst, around_s):
        yield from wrapped(f"  then: {pause_text(pause, worst['start_s'], frame_noun(worst))}", "    ")
    else:
        yield "  then: no pause"
    others = [(one, found) for one in connections if one is not worst and (found := pause_around(one, around_s))]
    others.sort(key=lambda one: -one[1]["duration_s"])
    for one, found in others[:MOST_THEN]:
        yield from wrapped(
            f"  also then, connection {one['id']}: {pause_text(found, one['start_s'], frame_noun(one))}", "    "
        )


def fared_worst(ranked: Sequence[Connection], around_s: float | None = None) -> Connection:
    """The connection that lost most time, or that had the longest pause around the time; otherwise the first."""

    def trouble(connection: Connection) -> tuple[float, float]:
        pause = None if around_s is None else pause_around(connection, around_s)
        return (pause["duration_s"] if pause else 0.0, connection["lost_s"])

    return max(ranked, key=trouble)


def detail(connection: Connection) -> Iterator[str]:
    """One connection in full."""
    yield from _summary(connection)
    if control := control_of(connection):
        yield ""
        yield from wrapped(f"Congestion control: {control_text(connection) or 'undecided'}", "  ")
        yield from _item(evidence_text(control))
    for name, direction in directions(connection):
        if not direction["retransmissions"] and not direction["stalls"]:
            continue
        sender, receiver = ends_of(connection, name)
        yield ""
        yield from wrapped(f"{sender} to {receiver}", "  ")
        yield from _retransmissions(direction, connection["start_s"], frame_noun(connection))
        yield from _stalls(direction, connection["start_s"], frame_noun(connection))


def _others(connections: Sequence[Connection]) -> Iterator[str]:
    """The connections without a summary that failed or began late."""
    by_cause: dict[Cause, list[int]] = {}
    for connection in connections:
        if failure := connection["failure"]:
            by_cause.setdefault(failure, []).append(connection["id"])
    if not by_cause:
        return
    yield ""
    yield "Other connections that failed or began late (--connection N shows one):"
    for cause, numbers in by_cause.items():
        listed = ", ".join(map(str, sorted(numbers)[:MOST_NAMED]))
        more = f" and {len(numbers) - MOST_NAMED:,} more" if len(numbers) > MOST_NAMED else ""
        yield from wrapped(f"  {cause.replace('-', ' ')}: {listed}{more}", "    ")


def remarks(document: Document) -> Iterator[str]:
    """Remarks on the capture as a whole."""
    passed = {name: number for name, number in document["passed_over"].items() if number}
    if passed:
        yield f"passed over: {', '.join(f'{number:,} {name}' for name, number in passed.items())}"
    yield from _order(document)
    if document["cut_off"]:
        yield "the capture is cut off within its last record"
    if document["damaged"]:
        yield f"{shown.plain(document['damaged'])}; the part before is diagnosed"
    if document["ended_early"]:
        yield f"{plural(document['ended_early'], 'connection')} ended early: more were open than are followed"


def _order(document: Document) -> Iterator[str]:
    """The reordering of packets whose times were not ascending."""
    if not document["time_went_back"]:
        return
    told = f"{plural(document['time_went_back'], 'packet')} out of order in the file"
    match document["order"]:
        case "sorted":
            yield f"{told} (files, interfaces or queues that were joined): all packets were sorted by time"
        case "clock-set-back":
            steps = plural(document["clock_set_back"], "time")
            yield f"{told}: the clock was set back {steps}; the order of the file is kept, and times go on from there"
        case _:
            late = document["not_put_in_order"]
            yield f"{told}, put in order by time" + (f" but for {late:,}" if late else "")


_ENDS, _LIMIT = "sender > receiver", "limited by"
_FIGURES = ("bytes", "time", "Mbit/s", "RTT ms", "retr.")
_WIDTHS = (8, 8, 8, 8, 6)
_MARGIN = " " * 7
"""Margin of a connection's second line, below its number."""


def _table(connections: Sequence[Connection]) -> Iterator[str]:
    """Two lines for each connection: its ends, and its figures below them."""
    rows = [("#", _ENDS, _FIGURES, _LIMIT), *map(_row, connections)]
    for place, ends, figures, limit in rows:
        yield from wrapped(f"{place:>5}  {ends}", _MARGIN)
        yield f"{_MARGIN}{' '.join(map(str.rjust, figures, _WIDTHS))}  {limit}"


def _row(connection: Connection) -> tuple[str, str, tuple[str, ...], str]:
    name, direction = main_direction(connection)
    sender, receiver = ends_of(connection, name)
    limit, part = next(iter(shares(connection, direction).items()))
    figures = (
        amount(direction["captured_bytes"]) + ("+" if direction["uncaptured_bytes"] else ""),
        f"{number(connection['duration_s'])} s",
        number(direction["goodput_mbit_s"]),
        number(direction["rtt_ms"]["median"]),
        str(direction["retransmission_counts"]["all"]),
    )
    named = f"{limit.replace('-', ' ')} {percent(part)}" if part > 0 else "-"
    return str(connection["id"]), f"{sender} > {receiver}", figures, named


def _summary(connection: Connection) -> Iterator[str]:
    """Shares of time by party, limits, retransmissions, findings and next step of a connection."""
    name, direction = main_direction(connection)
    sender, receiver = ends_of(connection, name)
    time = f"{connection['duration_s']:.3f} s"
    yield from wrapped(
        f"Connection {connection['id']}: {sender} sends {bytes_text(direction)} to {receiver} in {time}", "    "
    )
    yield from _item(place_text(connection, name))
    figures = figures_text(connection, direction)
    yield from _item("; ".join([round_trips_text(direction), *([figures] if figures else [])]))
    yield from _item(f"time: {parties_text(connection, name)}")
    yield from _item(f"limits: {limits_text(connection, direction)}")
    yield from _item(counts_text(direction, packet_noun(connection)))
    if control := control_text(connection):
        yield from _item(f"congestion control: {control}")
    for finding in connection["findings"]:
        noun = frame_noun(connection).capitalize()
        packets = f" {noun}s {', '.join(map(str, finding['packets']))}." if finding["packets"] else ""
        yield from _item(f"- {finding_text(finding, sender, receiver)}{packets}")
    yield from _next(connection)


def _briefly(connection: Connection) -> Iterator[str]:
    """Limits and next step of the largest connection, if another one fared worse."""
    name, direction = main_direction(connection)
    sender, receiver = ends_of(connection, name)
    data = f"{bytes_text(direction)} to {receiver}, the most data"
    yield from wrapped(f"Connection {connection['id']}: {sender} sends {data}", "    ")
    yield from _item(f"limits: {limits_text(connection, direction)}")
    yield from _next(connection)


def _next(connection: Connection) -> Iterator[str]:
    if connection["next"]:
        yield from _item(f"next: {connection['next']}")


def _item(text: str) -> list[str]:
    """One line of a summary; the lines that continue it are indented further."""
    return wrapped(f"  {text}", "    ", whole=_commands())


def limits_text(connection: Connection, direction: OneWay) -> str:
    """The limits of a direction, the largest first, and the time after its data."""
    limits = shares(connection, direction).items()
    named = ", ".join(f"{limit.replace('-', ' ')} {percent(share)}" for limit, share in limits if share >= LEAST_SHARE)
    quiet: float = connection["quiet_s"]
    if quiet < max(LEAST_QUIET_S, LEAST_QUIET_SHARE * connection["duration_s"]):
        return named or "none"
    last = {"a": connection["a"], "b": connection["b"]}.get(connection["spoke_last"] or "", "none")
    return f"{named or 'none'}; idle for {number(quiet)} s after the last data, from {last}"


def bytes_text(direction: OneWay) -> str:
    """The data of a direction: captured bytes, and bytes missing from the capture."""
    captured = amount(direction["captured_bytes"])
    lacking = direction["uncaptured_bytes"]
    return f"{captured}, and {amount(lacking)} that the capture lacks," if lacking else captured


def finding_text(finding: Finding, sender: str, receiver: str) -> str:
    """A finding in words; its direction is named only if it is the other one."""
    text = shown.plain(finding["text"]).removeprefix(f"{sender} to {receiver}: ")
    return text[:1].upper() + text[1:]


def point_text(connection: Connection, direction: DirectionName) -> str:
    """The position of the capture point, relative to the direction's sender."""
    point: str = connection["capture_point"]
    near = {"near-a": "a_to_b", "near-b": "b_to_a"}.get(point)
    if near is None:
        return {"middle": "between the hosts"}.get(point, point)
    return "near the sender" if near == direction else "near the receiver"


def place_text(connection: Connection, name: DirectionName) -> str:
    """The place of the capture and its part of the handshake; of a qlog the end that wrote it."""
    handshake = f"handshake {connection['handshake']}"
    quic = connection["quic"]
    if quic is None:
        path = connection["path"]
        lacks_sack = connection["handshake"] == "seen" and path and not path["flow"]["sack"]
        return f"capture point {point_text(connection, name)}, {handshake}{', without SACK' if lacks_sack else ''}"
    version = f", QUIC version {shown.plain(quic['version'])}" if quic["version"] else ""
    inferred = "" if quic["frames"] else "; it lists no frames: acknowledgments are inferred from the octets in flight"
    return f"qlog of the {quic['vantage']}{version}, {handshake}{', with a Retry' if quic['retry'] else ''}{inferred}"


def round_trips_text(direction: OneWay) -> str:
    """The round trips of a direction."""
    rtt = direction["rtt_ms"]
    if rtt["min"] is None:
        return "no round trip measured"
    least, median, high = (number(rtt[name]) for name in ("min", "median", "p95"))
    if least == median == high:
        return f"round trip {median} ms"
    return f"round trip {least} / {median} / {high} ms (least, median, 95 %)"


def parties_text(connection: Connection, name: DirectionName) -> str:
    """Shares of the time until the last data by party: network, sender, receiver."""
    direction = connection["directions"][name]
    sender, receiver = ends_of(connection, name)
    limits = shares(connection, direction)
    active = connection["duration_s"] - connection["quiet_s"]
    asking = direction["receiver_application_s"] / active if active > 0 else 0.0
    of_party = dict.fromkeys(("network", "sender", "receiver"), 0.0)
    for limit, party in _parties().items():
        # BBR paces its segments at the rate of the path.
        of_path = limit == "pacing" and _paces_by_path(connection)
        of_party["network" if of_path else party] += limits[limit]
    parties = {
        "network": of_party["network"],
        f"sender {sender}": max(0.0, of_party["sender"] - asking),
        f"receiver {receiver}": of_party["receiver"] + asking,
    }
    parties["undecided or other"] = 1 - sum(parties.values())
    return ", ".join(f"{name} {percent(share)}" for name, share in parties.items() if share >= LEAST_SHARE)


def _paces_by_path(connection: Connection) -> bool:
    """Whether the sender paces its segments at the rate of the path."""
    control = control_of(connection)
    is_bbr = control is not None and control["name"] in ("bbr", "bbr3")
    used = connection["rate_used"]
    return is_bbr or (used is not None and used >= FULL)


@functools.cache
def _terms() -> dict[str, list[dict[str, Any]]]:
    """The descriptions of limits and findings."""
    terms: dict[str, list[dict[str, Any]]] = json.loads(_engine.diagnose_terms())
    return terms


@functools.cache
def _commands() -> tuple[str, ...]:
    """The commands in next steps, which a user types unchanged."""
    steps = [term["next"] for terms in _terms().values() for term in terms]
    return tuple(dict.fromkeys(command for step in steps for command in re.findall(r"`([^`]+)`", step)))


@functools.cache
def _parties() -> dict[Limit, str]:
    """The party to which each limit's time is attributed, if there is one."""
    return {limit["name"]: limit["party"] for limit in _terms()["limits"] if limit["party"]}


def packet_noun(connection: Connection) -> str:
    """A segment of TCP, or a packet of QUIC."""
    return "packet" if connection["transport"] == "quic" else "segment"


def counts_text(direction: OneWay, noun: str = "segment") -> str:
    """Number of retransmitted segments or packets, and of spurious retransmissions among them."""
    counts = direction["retransmission_counts"]
    segments = f"{plural(direction['data_packets'], noun)} with data"
    if not counts["all"]:
        return f"{segments}, none retransmitted"
    triggers = ", ".join(f"{number} {name}" for name, number in direction["triggers"].items())
    undecided = f", {counts['undecided']} undecided" if counts["undecided"] else ""
    verdicts = f"{counts['needed']} needed, {counts['spurious']} spurious{undecided}"
    return f"{segments}, {plural(counts['all'], 'retransmission')}: {verdicts} (by {triggers})"


def _retransmissions(direction: OneWay, start_s: float, noun: str) -> Iterator[str]:
    found = direction["retransmissions"]
    for one in found[:MOST_LISTED]:
        need = {True: "needed", False: "spurious", None: "undecided"}[one["needed"]]
        place = "on the path" if noun == "event" else f"{one['lost']} the capture point"
        lost = f", lost {place}" if one["lost"] != "unknown" else ""
        earlier = f", earlier copy in {noun} {one['earlier']}" if one["earlier"] else ""
        frame = f"{noun} {one['packet']}, {one['time_s'] - start_s:.6f} s"
        yield from _item(f"{frame}: {octets_text(one)}, {one['trigger']}, {need} ({one['evidence']}){lost}{earlier}")
    if len(found) > MOST_LISTED:
        yield f"  {len(found) - MOST_LISTED:,} more retransmissions; --json lists them"


def octets_text(retransmission: Retransmission) -> str:
    """The octets of a segment, counted from the first octet of data, or a SYN or FIN alone."""
    first, length = retransmission["seq"], retransmission["bytes"]
    if length or retransmission["trigger"] in ("keepalive", "window-probe"):
        return f"bytes {first:,} to {first + length:,}"
    return "SYN" if first < 0 else "FIN"


def _stalls(direction: OneWay, start_s: float, noun: str) -> Iterator[str]:
    found = sorted(direction["stalls"], key=lambda one: -one["duration_s"])
    for one in found[:MOST_LISTED]:
        yield from _item(pause_text(one, start_s, noun))
    if len(found) > MOST_LISTED:
        yield f"  {len(found) - MOST_LISTED:,} shorter pauses; --json lists them"


def pause_text(stall: Stall, start_s: float, noun: str = "frame") -> str:
    """A pause, from the start of its connection on, its frames and its cause."""
    frames = " to ".join(map(str, stall["packets"]))
    noun = f"{noun}s" if len(stall["packets"]) > 1 else noun
    at = f"{pause_length(stall['duration_s'])} at {stall['start_s'] - start_s:.6f} s"
    return f"pause of {at}, {noun} {frames}: {cause_text(stall)}"


def cause_text(stall: Stall) -> str:
    """The cause of a pause, and the end whose application caused it."""
    cause: str = stall["cause"].replace("-", " ")
    return f"{cause} of the {stall['side']}" if stall["side"] else cause


def plural(number: int, noun: str) -> str:
    """A number and its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
