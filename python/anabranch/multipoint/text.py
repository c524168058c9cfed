"""A diagnosis of several captures in words: lines of at most 80 columns, sentences for the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from anabranch.diagnosis.text import plural
from anabranch.multipoint.documents import Change, ClockStep, Compared, Document, Outside, Part, Pause, Point, Way
from anabranch.text import shown
from anabranch.text.lines import pause_length, percent, wrapped

MOST_ROWS = 5
"""Changes, and pauses, of the screen."""
LEAST_SHARE = 0.05
"""A smaller share of the pauses is not mentioned."""
_CHANGES: Mapping[str, str] = {
    "address": "{before} is translated to {after}",
    "sequence-numbers": "the sequence numbers of {end} are changed",
    "mss": "the MSS of {end} is changed from {before} to {after}",
    "option-removed": "the option {before} is removed from the SYN of {end}",
    "option-added": "the option {before} is added to the SYN of {end}",
    "window-scale": "the window scale of {end} is changed from {before} to {after}",
    "ecn-negotiation": "the ECN bits of the SYN of {end} are changed",
    "ecn-cleared": "the ECN field of the packets of {end} is cleared",
    "ce-cleared": "the congestion marks (CE) of the packets of {end} are cleared",
    "window": "the window of {end} is changed, from {before} to {after} in the median",
    "timestamps": "the timestamps of {end} are changed",
    "sack": "the SACK blocks of {end} are not translated with its peer's sequence numbers",
    "rst-added": "a RST in the name of {end} comes from a device",
    "data-added": "data in the name of {end} comes from a device",
    "ack-added": "acknowledgments in the name of {end} come from a device",
}
_HARMLESS = ("address",)
"""Changes that explain nothing; they come last."""


def overview(document: Document) -> Iterator[str]:
    """All captures in one screen."""
    points = document["points"]
    yield from wrapped(
        f"{plural(len(document['connections']), 'TCP connection')} at {_and([one['name'] for one in points])}", "  "
    )
    for line in remarks(document):
        yield from wrapped(f"  {line}", "    ")
    yield ""
    for sentence in document["summary"]:
        yield from wrapped(f"- {sentence}", "  ")
    yield ""
    yield from _table(document)
    told = list(_change_lines(document))
    if told:
        yield ""
        for line in told[:MOST_ROWS]:
            yield from wrapped(f"  {line}", "    ")
        if len(told) > MOST_ROWS:
            yield f"  {len(told) - MOST_ROWS:,} more changes; --json lists them"
    pauses = longest_pauses(document)
    if pauses:
        yield ""
        yield "Longest pauses (place, cause):"
        for number, pause in pauses[:MOST_ROWS]:
            yield from wrapped(f"  {pause_line(document, number, pause)}", "    ")


def remarks(document: Document) -> Iterator[str]:
    """Remarks on the captures: their order, overlap, clocks, and connections that one of them lacks."""
    points = document["points"]
    if document["reordered_points"]:
        order = ", ".join(f"{one['name']} ({shown.plain(one['file'])})" for one in points)
        yield f"the packets pass the points in another order than given: {order}"
    if document["overlap_s"] < 0.95 * document["span_s"]:
        yield (
            f"the captures overlap for {document['overlap_s']:.3g} s of {document['span_s']:.3g} s; packets outside "
            "are not counted"
        )
    for point in points:
        if point["unpaired"]:
            yield f"{plural(point['unpaired'], 'connection')} of {point['name']} did not pass the other points"
        if point["left_out"]:
            yield f"{point['left_out']:,} packets of {point['name']} are beyond the bound and not compared"
        if point["clock"] is not None:
            yield clock_text(points[0], point)
        for step in point["clock_steps"]:
            yield step_text(point, step)


def clock_text(first: Point, point: Point) -> str:
    """The clock of a point relative to the first point's."""
    clock = point["clock"]
    if clock is None:
        return f"{point['name']} has the reference clock"
    direction = "ahead of" if clock["offset_s"] >= 0 else "behind"
    error = "" if clock["uncertain_s"] is None else f" ± {milliseconds(clock['uncertain_s'] * 1e3)} ms"
    low, high = clock["drift_low_ppm"], clock["drift_high_ppm"]
    drift = f"drift {clock['drift_ppm']:+.2f} ppm" if low > 0 or high < 0 else "no drift seen"
    at_once = "" if clock["uncertain_s"] is not None else "; packets of one way only passed both points"
    return (
        f"the clock of {point['name']} is {abs(clock['offset_s']):.6f} s{error} {direction} that of {first['name']}, "
        f"{drift} ({low:+.2f} to {high:+.2f} ppm), from {clock['packets']:,} packets{at_once}"
    )


def step_text(point: Point, step: ClockStep) -> str:
    """A step of a point's clock."""
    direction = "forward" if step["size_s"] > 0 else "back"
    return (
        f"the clock of {point['name']} was set {direction} by {milliseconds(abs(step['size_s']) * 1e3)} ms at "
        f"{step['time_s'] - point['start_s']:.3f} s of its capture; the delays are without this step"
    )


def summary(document: Document) -> Iterator[str]:
    """The diagnosis in sentences: losses by part, whose the pauses are, changes, reordering, queues."""
    yield _losses(document)
    pauses = _pauses(document)
    if pauses:
        yield pauses
    yield _limits(document)
    for part in document["parts"]:
        yield from _of_part(part)
    told = _changed(document)
    if told:
        yield told


def _losses(document: Document) -> str:
    parts = []
    before, beyond = document["before"], document["beyond"]
    points = document["points"]
    for part in document["parts"]:
        for way, start, end in (("forward", part["from"], part["to"]), ("backward", part["to"], part["from"])):
            own: Way = part["forward"] if way == "forward" else part["backward"]
            if own["lost"]:
                share = share_text(own["lost"], own["packets"])
                parts.append(f"{share} of the packets from {start} to {end} ({own['lost']:,} of {own['packets']:,})")
    for outside, name in ((before, points[0]["name"]), (beyond, points[-1]["name"])):
        count = outside["lost_to_end"] + outside["lost_from_end"]
        if count:
            side = "before" if outside is before else "beyond"
            parts.append(f"{plural(count, 'segment')} {side} {name}")
    if not parts:
        return "No packet was lost between the points, and no segment outside them."
    return f"Lost: {_and(parts)}."


def _limits(document: Document) -> str:
    """The limits and the next step of the connection that lost most time, as the point next to its sender has them."""
    worst = max(document["connections"], key=lambda one: (one["lost_s"], -one["id"]))
    named = [f"{limit.replace('-', ' ')} {percent(share)}" for limit, share in worst["limits"].items()]
    is_worst = len(document["connections"]) > 1 and worst["lost_s"] > 0
    verb = "lost most time: limited by" if is_worst else "is limited by"
    step = _step(worst)
    told = f" Next: {step}." if step else ""
    return f"Connection {worst['id']} {verb} {', '.join(named[:3]) or 'nothing'}.{told}"


def _step(connection: Compared) -> str | None:
    """The next step; a capture at another point is there already."""
    step = connection["next"]
    if step is None or not step.startswith("find where the segments are lost"):
        return step
    lost: dict[str, int] = {}
    parts = connection["parts"]
    for part in parts:
        name = f"between {part['from']} and {part['to']}"
        lost[name] = part["forward"]["lost"] + part["backward"]["lost"]
    for name, outside in (
        ("before " + parts[0]["from"], connection["before"]),
        ("beyond " + parts[-1]["to"], connection["beyond"]),
    ):
        lost[name] = outside["lost_to_end"] + outside["lost_from_end"]
    worst = max(lost, key=lambda name: lost[name])
    return f"find the cause of the losses on the path {worst}" if lost[worst] else step


def _pauses(document: Document) -> str | None:
    total = sum(one["time_s"] for one in document["belongs_to"])
    if not total:
        return None
    named = [one for one in document["belongs_to"] if one["time_s"] >= LEAST_SHARE * total]
    places = [place_text(document, one["place"]) for one in named]
    if len(named) == 1:
        return f"The pauses, {_seconds(total)} in all, belong to {places[0]}."
    told = [f"{percent(one['time_s'] / total)} to {place}" for one, place in zip(named, places, strict=True)]
    told[0] = told[0].replace(" % to", " % belong to")
    return f"Of {_seconds(total)} of pauses {_and(told)}."


def place_text(document: Document, place: str | None) -> str:
    """A place in words."""
    if place is None:
        return "no place that the captures show"
    if place in ("a", "b"):
        ends = {one[place] for one in document["connections"]}  # type: ignore[literal-required]
        role = "client" if place == "a" else "server"
        hosts = {end.rpartition(":")[0] for end in ends}
        return f"the {role} {next(iter(hosts))}" if len(hosts) == 1 else f"the {role}s"
    start, _, end = place.partition("–")
    if start in ("a", "b"):
        return f"the path before {end}"
    return f"the path beyond {start}" if end in ("a", "b") else f"the path between {start} and {end}"


def _of_part(part: Part) -> Iterator[str]:
    for way, start, end in (("forward", part["from"], part["to"]), ("backward", part["to"], part["from"])):
        own: Way = part["forward"] if way == "forward" else part["backward"]
        if own["reordered"]:
            share = share_text(own["reordered"], own["packets"])
            yield f"{share} of the packets from {start} to {end} were overtaken ({own['reordered']:,})."
        if own["duplicated"]:
            yield f"{plural(own['duplicated'], 'packet')} from {start} to {end} arrived twice."
        if own["unseen"]:
            yield f"The capture at {end} lacks {plural(own['unseen'], 'packet')} that arrived."
        if own["missed"]:
            yield f"The capture at {start} lacks {plural(own['missed'], 'packet')} that passed it."
        delay = own["delay_ms"]
        if delay["p95"] is not None and delay["min"] is not None and delay["p95"] - delay["min"] >= MOST_CALM_MS:
            some, half = (milliseconds((delay[name] or 0.0) - delay["min"]) for name in ("p95", "median"))
            yield (
                f"From {start} to {end} one packet in twenty takes {some} ms or more longer than the fastest, and "
                f"half of them {half} ms or more."
            )


MOST_CALM_MS = 5.0
"""A smaller variation of the delay is not mentioned."""


def _changed(document: Document) -> str | None:
    kinds: dict[str, int] = {}
    for connection in document["connections"]:
        for name in {change["kind"] for own in connection["changes"] for change in own}:
            kinds[name] = kinds.get(name, 0) + 1
    if not kinds:
        return None
    ranked = sorted(kinds, key=lambda kind: (kind in _HARMLESS, -kinds[kind]))
    told = [f"{kind.replace('-', ' ')} ({kinds[kind]:,})" for kind in ranked]
    return f"A device on the path changes headers (connections): {_and(told)}."


def change_text(change: Change, connection: Compared) -> str:
    """A change in words."""
    before, after = _value(change["before"]), _value(change["after"])
    if change["kind"] == "address" and _host(before) != _host(after):
        before, after = _host(before), _host(after)
    told = _CHANGES[change["kind"]].format(end=_host(connection[change["of"]]), before=before, after=after)
    packets = f" ({plural(change['packets'], 'packet')})" if change["packets"] > 1 else ""
    return told + packets


def _host(end: str) -> str:
    return end.rpartition(":")[0]


def _value(value: str | int | None) -> str:
    return "none" if value is None else str(value).replace("-", " ")


class DistinctChange(NamedTuple):
    """A change, the connections that have it, and the frames of the first one at both points."""

    part: str
    text: str
    is_harmless: bool
    ids: list[int]
    frames: list[str]


def distinct_changes(document: Document) -> list[DistinctChange]:
    """Each change once, those of most connections first."""
    found: dict[tuple[str, str], DistinctChange] = {}
    for connection in document["connections"]:
        for part, own in zip(connection["parts"], connection["changes"], strict=True):
            for change in own:
                place, told = f"{part['from']}–{part['to']}", change_text(change, connection)
                frames = [f"{one}/{other}" for one, other in change["frames"][:3]]
                fresh = DistinctChange(place, told, change["kind"] in _HARMLESS, [], frames)
                found.setdefault((place, told), fresh).ids.append(connection["id"])
    return sorted(found.values(), key=lambda one: (one.is_harmless, -len(one.ids)))


def numbers(ids: Sequence[int]) -> str:
    """The first numbers of connections."""
    return ", ".join(map(str, ids[:5])) + ("" if len(ids) <= 5 else f" and {len(ids) - 5:,} more")


def _change_lines(document: Document) -> Iterator[str]:
    for one in distinct_changes(document):
        frames = f", frames {', '.join(one.frames)}" if one.frames else ""
        noun = "connection" if len(one.ids) == 1 else "connections"
        yield f"{one.part}: {one.text}{frames} ({noun} {numbers(one.ids)})"


_HEAD = ("packets", "lost", "late", "twice", "delay ms: least", "median", "95 %")
_WIDTHS = (9, 9, 6, 6, 16, 8, 8)


def _table(document: Document) -> Iterator[str]:
    """One line for each way of each part."""
    width = max([len(f"{part['from']} > {part['to']}") for part in document["parts"]] + [len("way")], default=10)
    width = min(width, 80 - sum(_WIDTHS) - 2)
    yield f"{'way':<{width}}" + "".join(name.rjust(size) for name, size in zip(_HEAD, _WIDTHS, strict=True))
    for part in document["parts"]:
        for own, start, end in (
            (part["forward"], part["from"], part["to"]),
            (part["backward"], part["to"], part["from"]),
        ):
            delay = own["delay_ms"]
            cells = (
                f"{own['packets']:,}", share_text(own["lost"], own["packets"]), f"{own['reordered']:,}",
                f"{own['duplicated']:,}", milliseconds(delay["min"]), milliseconds(delay["median"]),
                milliseconds(delay["p95"]),
            )  # fmt: skip
            name = f"{start} > {end}"
            yield f"{name[:width]:<{width}}" + "".join(
                cell.rjust(size) for cell, size in zip(cells, _WIDTHS, strict=True)
            )
    yield from _outside_lines(document)
    yield "The least delay is half of the round trip between the points."


def _outside_lines(document: Document) -> Iterator[str]:
    points = document["points"]
    for name, outside in (
        (f"before {points[0]['name']}", document["before"]),
        (f"beyond {points[-1]['name']}", document["beyond"]),
    ):
        yield from wrapped(f"{name}: {outside_text(outside)}", "  ")


def outside_text(outside: Outside) -> str:
    """Losses between a point and the end beyond it."""
    told = [
        f"{plural(outside['lost_to_end'], 'segment')} lost on the way to the end" if outside["lost_to_end"] else "",
        f"{plural(outside['lost_from_end'], 'segment')} lost on the way from it" if outside["lost_from_end"] else "",
    ]
    answer = (
        f"the end answers within {milliseconds(outside['answer_ms'])} ms" if outside["answer_ms"] is not None else ""
    )
    return "; ".join(one for one in (*told, answer) if one) or "no loss seen"


def longest_pauses(document: Document) -> list[tuple[int, Pause]]:
    """The pauses of all connections, the longest first."""
    found = [(one["id"], pause) for one in document["connections"] for pause in one["pauses"]]
    return sorted(found, key=lambda one: -one[1]["duration_s"])


def pause_line(document: Document, number: int, pause: Pause) -> str:
    """A pause in words."""
    start = document["points"][0]["start_s"]
    frames = " to ".join(map(str, pause["frames"]))
    return (
        f"connection {number}, {pause_length(pause['duration_s'])} at {pause['start_s'] - start:.3f} s: "
        f"{place_text(document, pause['belongs_to'])} ({pause['cause'].replace('-', ' ')}; {pause['evidence']}); "
        f"{pause['point']} frames {frames}"
    )


def detail(document: Document, number: int) -> Iterator[str]:
    """One connection at all points."""
    connection = next(one for one in document["connections"] if one["id"] == number)
    ids = _and([f"{point['name']} {own}" for point, own in zip(document["points"], connection["ids"], strict=True)])
    yield from wrapped(f"Connection {number}: {connection['a']} to {connection['b']}; its numbers: {ids}", "  ")
    own: Document = {
        **document, "connections": [connection], "parts": connection["parts"], "before": connection["before"],
        "beyond": connection["beyond"],
    }  # fmt: skip
    yield ""
    yield from _table(own)
    for line in _change_lines(own):
        yield from wrapped(f"  {line}", "    ")
    for one, pause in longest_pauses(own)[:MOST_ROWS]:
        yield from wrapped(f"  {pause_line(document, one, pause)}", "    ")


def share_text(count: int, of: int) -> str:
    """A share in per cent, with two digits below 10 %."""
    if not count:
        return "0"
    share = count / of if of else 0.0
    return f"{share:.2%}".replace("%", " %") if share < 0.1 else f"{share:.1%}".replace("%", " %")


def milliseconds(value: float | None) -> str:
    """A number of milliseconds with three digits."""
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.0005 else "0"


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value < 1000 else f"{value:,.0f} s"


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
