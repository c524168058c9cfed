"""mahimahi command lines: nested ``mm-delay``, ``mm-loss`` and ``mm-link``, with their traces.

The uplink is the link's forward direction. mahimahi's delay is in whole milliseconds and the same in both directions.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any

from anabranch.convert import capacity
from anabranch.convert.content import (
    PAPER_PACKET,
    Description,
    Link,
    Names,
    Notes,
    Side,
    Source,
    Text,
    Written,
    path_document,
    per_direction,
)
from anabranch.convert.shell_words import Cursor, Word, commands
from anabranch.errors import UserError
from anabranch.files.files import read_bytes
from anabranch.keys.component import Component
from anabranch.text import quantity

MAX_TRACE_BYTES = 256 * 1024 * 1024
_DIRECTIONS = ("uplink", "downlink")
_QUEUES = ("infinite", "droptail", "drophead", "codel", "pie")
_SHELLS = ("mm-delay", "mm-link", "mm-loss")
_OTHER_SHELLS = ("mm-onoff", "mm-webrecord", "mm-webreplay", "mm-meter", "mm-throughput-graph", "mm-delay-graph")
_RECORDING = ("uplink-log", "downlink-log")
_FLAGS = (
    "once", "meter-uplink", "meter-uplink-delay", "meter-downlink", "meter-downlink-delay", "meter-all",
)  # fmt: skip
_VALUES = (*_RECORDING, *(f"{side}-{what}" for side in _DIRECTIONS for what in ("queue", "queue-args")))


@dataclass
class _Path:
    """The effect of the nested shells on a program's packets."""

    delay_ms: int = 0
    loss: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in _DIRECTIONS})
    traces: dict[str, Word] = field(default_factory=dict)
    queues: dict[str, Component] = field(default_factory=dict)


def recognise(_name: str, head: bytes) -> bool:
    """Whether a file holds a command line with one of mahimahi's shells that change a path."""
    return re.search(rb"(?m)^[^#\n]*\bmm-(?:delay|link|loss)\b", head) is not None


def read(source: Source, notes: Notes) -> Description:
    """A scenario of one link, and its traces.

    Raises:
        UserError: The command line or a trace is not understood; the error has line, column and the nearest valid name.
    """
    text = source.text()
    found = [words for words in commands(text) if any(word.text in _SHELLS for word in words)]
    if not found:
        hint = "for example `mm-delay 20 mm-link up.trace down.trace`"
        raise text.error(len(text.text), "there is no command of mahimahi", hint)
    if len(found) > 1:
        raise text.error(found[1][0].at, "a second command of mahimahi; one was expected")
    path = _Path()
    cursor = Cursor(text, [word for word in found[0] if word.text != "sudo"])
    while not cursor.is_done:
        _shell(cursor, path, notes)
    traces = {side: _read_trace(source, text, word) for side, word in path.traces.items()}
    named = _trace_names({side: word.text for side, word in path.traces.items()}, traces)
    sides = [_side(path, side, named) for side in _DIRECTIONS]
    files = {named[side]: traces[side] for side in traces}
    return Description(
        path_document(f"A link from {Path(source.name).name}", per_direction(sides[0], sides[1], notes)), files
    )


def _trace_names(given: dict[str, str], traces: dict[str, bytes]) -> dict[str, str]:
    """A file name for each trace; traces that differ get different names."""
    names = {side: PurePosixPath(name).name for side, name in given.items()}
    if len(names) == 2 and names["uplink"] == names["downlink"] and traces["uplink"] != traces["downlink"]:
        names = {side: f"{side}-{name}" for side, name in names.items()}
    return names


def _side(path: _Path, side: str, traces: Mapping[str, str]) -> Side:
    found: Side = {"delay": f"{path.delay_ms} ms"} if path.delay_ms else {}
    if side in traces:
        found["service"] = {"kind": "trace", "file": traces[side]}
    if side in path.queues:
        found["queue"] = path.queues[side]
    if path.loss[side]:
        found["impair"] = [{"kind": "bernoulli-loss", "rate": rate} for rate in path.loss[side]]
    return found


def _shell(cursor: Cursor, path: _Path, notes: Notes) -> None:
    word = cursor.take("a command")
    if word.text == "--":
        return
    if word.text == "mm-delay":
        path.delay_ms += _integer(cursor, "a delay in whole milliseconds", 3_600_000)
    elif word.text == "mm-loss":
        _loss(cursor, path)
    elif word.text == "mm-link":
        _link(cursor, path, word, notes)
    elif word.text in _OTHER_SHELLS:
        notes.lost(f"{word.text}", cursor.text.where(word.at))
        while not cursor.is_done and cursor.peek() not in _SHELLS:
            cursor.take("a word")
    elif word.text.startswith("mm-"):
        raise cursor.unknown(word, "a shell of mahimahi", (*_SHELLS, *_OTHER_SHELLS))
    else:
        cursor.rest()
        notes.lost(f"the program {word.text!r}: a bulk flow takes its place", cursor.text.where(word.at))


def _integer(cursor: Cursor, expected: str, most: int) -> int:
    word = cursor.take(expected)
    if not re.fullmatch(r"[0-9]{1,9}", word.text) or int(word.text) > most:
        raise cursor.text.error(word.at, f"{word.text!r} is not {expected}, at most {most}")
    return int(word.text)


def _loss(cursor: Cursor, path: _Path) -> None:
    side = cursor.take("uplink or downlink")
    if side.text not in _DIRECTIONS:
        raise cursor.unknown(side, "a direction", _DIRECTIONS)
    word = cursor.take("a loss rate between 0 and 1")
    rate = quantity.number(word.text)
    if rate is None or not 0 <= rate <= 1:
        raise cursor.text.error(word.at, f"{word.text!r} is not a loss rate between 0 and 1")
    path.loss[side.text].append(rate)


def _link(cursor: Cursor, path: _Path, shell: Word, notes: Notes) -> None:
    if path.traces:
        raise cursor.text.error(shell.at, "a second mm-link; a link has one trace in each direction")
    options: dict[str, Word] = {}
    traces: list[Word] = []
    while not cursor.is_done:
        following = cursor.peek() or ""
        if following == "--" or (len(traces) == 2 and not following.startswith("--")):
            break
        word = cursor.take("a trace")
        if word.text.startswith("--"):
            _option(cursor, word, options, notes)
        else:
            traces.append(word)
    if len(traces) < 2:
        raise cursor.text.error(
            shell.at, f"mm-link has {len(traces)} of its 2 traces; UPLINK-TRACE DOWNLINK-TRACE were expected"
        )
    path.traces = dict(zip(_DIRECTIONS, traces, strict=True))
    for side in _DIRECTIONS:
        given = options.get(f"{side}-queue")
        arguments = options.get(f"{side}-queue-args")
        queue = _queue(cursor, given, arguments, notes)
        if queue is not None:
            path.queues[side] = queue


def _option(cursor: Cursor, word: Word, options: dict[str, Word], notes: Notes) -> None:
    name, equals, value = word.text[2:].partition("=")
    if name in _FLAGS:
        if name == "once":
            notes.lost("--once of mm-link: a trace begins again", cursor.text.where(word.at))
        return
    if name not in _VALUES:
        raise cursor.unknown(
            Word(f"--{name}", word.at), "an option of mm-link", [f"--{n}" for n in (*_FLAGS, *_VALUES)]
        )
    found = Word(value, word.at + len(name) + 3) if equals else cursor.take(f"the value of --{name}")
    if name not in _RECORDING:
        options[name] = found


def _queue(cursor: Cursor, kind: Word | None, arguments: Word | None, notes: Notes) -> Component | None:
    given = _arguments(cursor, arguments)
    if kind is None or kind.text == "infinite":
        if arguments is not None:
            raise cursor.text.error(arguments.at, "an infinite queue has no arguments; a --*link-queue was expected")
        return None
    if kind.text not in _QUEUES:
        raise cursor.unknown(kind, "a queue of mahimahi", _QUEUES)
    where = cursor.text.where(kind.at)
    if kind.text == "drophead":
        notes.lost("drophead: the arriving packet is dropped (drop-tail)", where)
    limits = [f"{given[unit].text} {unit}" for unit in ("packets", "bytes") if unit in given]
    if len(limits) == 2:
        notes.lost("the limit in bytes beside one in packets", where)
    if kind.text in ("droptail", "drophead"):
        if not limits:
            raise cursor.text.error(kind.at, f"{kind.text} needs arguments: packets=N or bytes=N")
        return {"kind": "drop-tail", "limit": limits[0]}
    found: Component = {"kind": kind.text, "limit": limits[0] if limits else "unlimited"}
    names = {"target": "target", "interval": "interval"} if kind.text == "codel" else {
        "qdelay_ref": "target", "max_burst": "max_burst"}  # fmt: skip
    for name, ours in names.items():
        if name not in given:
            raise cursor.text.error(kind.at, f"{kind.text} needs the arguments {' and '.join(names)}, in milliseconds")
        value = int(given[name].text)
        if not (ours == "max_burst" or value >= 1) or value > 100_000:
            raise cursor.text.error(given[name].at, f"{name}={value}; 1 to 100000 milliseconds were expected")
        found[ours] = f"{value} ms"
    if kind.text == "codel" and int(given["interval"].text) < int(given["target"].text):
        raise cursor.text.error(given["interval"].at, "the interval of codel is below its target")
    return found


def _arguments(cursor: Cursor, word: Word | None) -> dict[str, Word]:
    """``packets=100, bytes=1500``: each value with its position."""
    found: dict[str, Word] = {}
    names = ("bytes", "packets", "target", "interval", "qdelay_ref", "max_burst")
    for piece in re.finditer(r"[^,\s]+", word.text if word else ""):
        at = (word.at if word else 0) + piece.start()
        name, equals, value = piece[0].partition("=")
        if name not in names:
            raise cursor.unknown(Word(name, at), "an argument of a queue", names)
        if not equals or not re.fullmatch(r"[0-9]{1,12}", value):
            raise cursor.text.error(at, f"{piece[0]!r}: {name}=NUMBER was expected")
        found[name] = Word(value, at)
    return found


def _read_trace(source: Source, text: Text, word: Word) -> bytes:
    path = source.directory / word.text
    try:
        content = read_bytes(path, most=MAX_TRACE_BYTES)
    except UserError as error:
        raise text.error(word.at, error.message, error.hint) from None
    capacity.parse(Text.decode(str(path), content))
    return content


def write(link: Link, names: Names, notes: Notes) -> Written:
    """The command line, and a trace for each direction."""
    words = _delay_words(link, notes)
    sides = dict(zip(_DIRECTIONS, (link.forward, link.reverse), strict=True))
    for side, values in sides.items():
        rate = _loss_rate(f"link.{link.name}.{_ours(side)}", values, notes)
        if rate:
            words += ["mm-loss", side, quantity.plain(Decimal(repr(rate)))]
    files: dict[str, bytes] = {}
    if any(values["rate"] != "unlimited" or values["service"]["kind"] != "fixed" for values in sides.values()):
        options: list[str] = []
        for side, values in sides.items():
            where = f"link.{link.name}.{_ours(side)}"
            files[f"{names.stem}.{side}.trace"] = _trace(where, link, values, notes)
            options += _queue_words(where, side, values["queue"], notes)
        words += ["mm-link", *files, *options]
    elif any(values["queue"] != {"kind": "drop-tail", "limit": "unlimited"} for values in sides.values()):
        notes.lost(f"link.{link.name}.queue: without a rate nothing waits")
    if not words:
        words = ["mm-delay", "0"]
    command = " ".join(map(shlex.quote, words))
    return Written(f"{command}\n".encode(), files)


def _ours(side: str) -> str:
    return "forward" if side == "uplink" else "reverse"


def _delay_words(link: Link, notes: Notes) -> list[str]:
    there, back = (quantity.seconds(side["delay"]) * 1000 for side in (link.forward, link.reverse))
    for name, values in (("forward", link.forward), ("reverse", link.reverse)):
        if not values["up"]:
            notes.lost(f"link.{link.name}.{name}.up = false: the link is up")
    delay = int(((there + back) / 2).to_integral_value())
    if there != back:
        notes.lost(f"link.{link.name}.delay differs by direction; mm-delay {delay} in both")
    elif delay != there:
        notes.lost(f"link.{link.name}.delay = {link.forward['delay']!r}; mm-delay has whole milliseconds: {delay}")
    return ["mm-delay", str(delay)] if delay else []


def _loss_rate(where: str, side: Mapping[str, Any], notes: Notes) -> float:
    """The loss of a direction as one rate; mahimahi's loss comes before the delay, which makes no difference."""
    passes = 1.0
    single = []
    for item in side["impair"]:
        rate = 0.0
        if item["kind"] == "bernoulli-loss" or (item["kind"] == "corrupt" and not item["bit_error_rate"]):
            rate = item["rate"]
        elif item["kind"] == "corrupt":
            rate = -math.expm1(8 * PAPER_PACKET * math.log1p(-min(item["bit_error_rate"], 1 - 1e-15)))
            notes.lost(f"{where}.impair: corruption by bit; written for packets of {PAPER_PACKET} bytes")
        elif item["kind"] == "gilbert-elliott":
            rate = _mean_loss(item)
            notes.lost(f"{where}.impair: losses in bursts; mm-loss loses {rate:.6g} of the packets independently")
        else:
            notes.lost(f"{where}.impair: {item['kind']}")
        if rate:
            single.append(rate)
        passes *= 1 - rate
    return single[0] if len(single) == 1 else 1 - passes


def _mean_loss(item: Mapping[str, Any]) -> float:
    if item.get("loss_rate") is not None:
        return float(item["loss_rate"])
    p, r, h, k = (item[name] for name in ("p", "r", "h", "k"))
    is_bad = p / (p + r)
    return float(is_bad * (1 - h) + (1 - is_bad) * (1 - k))


_FASTEST = 10**9
"""The rate of an unlimited direction if the other one is limited: mahimahi needs traces for both."""


def _trace(where: str, link: Link, side: Mapping[str, Any], notes: Notes) -> bytes:
    if side["service"]["kind"] != "fixed":
        name = side["service"]["file"]
        # mahimahi has no comments.
        return capacity.write(capacity.parse(Text.decode(name, link.files[name])))
    rate = quantity.bits_per_second(side["rate"])
    if rate is None:
        notes.lost(f"{where}.rate: unlimited; written as {quantity.rate(_FASTEST)}")
        rate = _FASTEST
    times, is_exact = capacity.constant(rate)
    if not is_exact:
        notes.lost(f"{where}.rate = {side['rate']!r}: rounded, because a trace has whole packets and milliseconds")
    return capacity.write(times)


def _queue_words(where: str, side: str, queue: Mapping[str, Any], notes: Notes) -> list[str]:
    kind = queue["kind"]
    limit = quantity.limit(queue.get("limit", "unlimited"))
    arguments = [] if limit is None else [f"{limit[1]}={limit[0]}"]
    if "reorder" in queue:
        notes.lost(f"{where}.queue.reorder: reordering inside the queue")
    times: dict[str, str] = {}
    if kind == "codel":
        times, name = {"target": "target", "interval": "interval"}, "codel"
    elif kind == "pie":
        times, name = {"target": "qdelay_ref", "max_burst": "max_burst"}, "pie"
    else:
        name = "droptail" if limit is not None else "infinite"
        if kind != "drop-tail":
            notes.lost(f"{where}.queue: {kind}; written as {name} of the same limit")
    for ours, theirs in times.items():
        value = quantity.seconds(queue[ours]) * 1000
        whole = max(int(value.to_integral_value()), 1)
        if whole != value:
            notes.lost(f"{where}.queue.{ours} = {queue[ours]!r}; mahimahi has whole milliseconds: {whole}")
        arguments.append(f"{theirs}={whole}")
    if queue.get("ecn"):
        notes.lost(f"{where}.queue.ecn: mahimahi's queues drop")
    if times and limit is None:
        arguments.insert(0, "packets=1000000")
        notes.lost(f"{where}.queue: no limit; mahimahi's {name} has one, 1000000 packets")
    if name == "infinite":
        return []
    return [f"--{side}-queue={name}", f"--{side}-queue-args={','.join(arguments)}"]
