"""Properties of a plan's paths: from an option, from a file that ``convert`` reads, or from a gateway's status."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from anabranch.convert import formats, tc_units
from anabranch.convert.content import Description, Notes, Side, Source, Text
from anabranch.convert.shell_words import Word
from anabranch.errors import UserError, nearest
from anabranch.files.files import MAX_RESULT_BYTES, read_bytes, read_json
from anabranch.gateway.config import Config
from anabranch.keys.component import Component
from anabranch.text import quantity, toml_text

DIRECTIONS = ("up", "down")
"""Directions from and to the end with this configuration."""
QUEUE_S = Decimal("0.1")
"""Queue before a path whose properties are from an option or a status, in seconds at its rate.

Access links commonly buffer 100 ms or more.
"""
_FORM = "expected RATE,DELAY[,LOSS[,JITTER]], as in 100mbit,8ms or 100mbit/40mbit,8ms,0.5%,2ms (down/up), or a file"


@dataclass(frozen=True)
class Line:
    """The properties of a path.

    Attributes:
        sides: The keys of a link's direction, ``"up"`` and ``"down"``.
        source: The source of the properties.
        files: Files of the sides, by name.
        notes: Omissions and assumptions.
    """

    sides: Mapping[str, Side]
    source: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def shown(self, direction: str) -> str:
        """Rate, delay and impairments of a direction."""
        side = self.sides[direction]
        is_traced = "file" in side.get("service", {})
        words = ["traced rate" if is_traced else str(side.get("rate", "unlimited"))]
        delay = delay_ms(side)
        words.append("traced delay" if delay is None else f"{delay:.4g} ms")
        words += [_impairment(each) for each in side.get("impair", [])]
        return ", ".join(words)


def _impairment(one: Component) -> str:
    rate = one.get("rate", one.get("loss_rate"))
    named = "loss" if one["kind"] == "bernoulli-loss" else one["kind"]
    return f"{100 * rate:.3g} % {named}" if isinstance(rate, int | float) else str(named)


def gather(config: Config, options: Sequence[str], status: Path | None) -> dict[str, Line]:
    """The properties of each path of a configuration, in its order.

    Raises:
        UserError: An option is wrong or names no path, or a path has no properties.
    """
    given: dict[str, str] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name or not value:
            raise UserError(f"--path {option}: NAME=RATE,DELAY or NAME=FILE was expected", hint=_FORM)
        if name not in config.paths:
            place = next(iter(config.paths.values())).key
            raise config.error(place, f'--path {option}: there is no path "{name}"', nearest(name, config.paths))
        if name in given:
            raise UserError(f'--path gives "{name}" twice: the first would be ignored', hint="give one of them")
        given[name] = value
    measured = _read_status(config, status) if status is not None else {}
    lines: dict[str, Line] = {}
    for number, (name, path) in enumerate(config.paths.items()):
        if name in given:
            lines[name] = _given(name, given[name], f"path-{number}-")
        elif name in measured:
            lines[name] = measured[name]
        else:
            hint = f"--path {name}=RATE,DELAY[,LOSS[,JITTER]], --path {name}=FILE, or --status FILE"
            raise config.error(path.key, f"the properties of the path `{name}` are not given", hint)
    return lines


def _given(name: str, value: str, prefix: str) -> Line:
    """The path of ``--path``: properties if the text has a comma and is no file's name, otherwise a file."""
    if Path(value).exists() or "," not in value:
        if not Path(value).exists() and tc_units.is_number(value.partition("/")[0]):
            raise UserError(f"--path {name}={value}: the delay is missing", hint=_FORM)
        return _of_file(name, Path(value), prefix)
    text = Text(f"--path {name}", value)
    words = _words(value)
    if not 2 <= len(words) <= 4:
        raise UserError(f"--path {name}={value}: it has {len(words)} values", hint=_FORM)
    rates = list(_pieces(words[0], "/"))
    if len(rates) > 2:
        raise UserError(f"--path {name}={value}: it has {len(rates)} rates", hint=_FORM)
    for rate in rates:
        # netem takes a bare number for bits per second: a mistake on a command line.
        if rate.text.replace(".", "", 1).isdecimal() and rate.text.strip("0."):
            raise UserError(f"--path {name}={value}: the rate {rate.text} has no unit", hint=_FORM)
    down, up = (tc_units.rate(text, word) for word in (rates[0], rates[-1]))
    delay = tc_units.time(text, words[1])
    loss = tc_units.ratio(text, words[2]) if len(words) > 2 else 0.0
    jitter = tc_units.time(text, words[3]) if len(words) > 3 else Decimal(0)
    sides = {way: _side(rate, delay, loss, jitter) for way, rate in zip(DIRECTIONS, (up, down), strict=True)}
    return Line(sides, "--path")


def _words(value: str) -> list[Word]:
    return list(_pieces(Word(value, 0), ","))


def _pieces(word: Word, separator: str) -> Iterator[Word]:
    at = word.at
    for piece in word.text.split(separator):
        yield Word(piece.strip(), at + len(piece) - len(piece.lstrip()))
        at += len(piece) + 1


def _side(rate: int, delay: Decimal, loss: float, jitter: Decimal) -> Side:
    """A direction with the impairments of netem, after a queue of :data:`QUEUE_S`."""
    from anabranch.convert import netem

    words = f"delay {tc_units.write_time(delay)} {tc_units.write_time(jitter) if jitter else ''}"
    words += f" loss {tc_units.write_percent(loss)}" if loss else ""
    command = f"tc qdisc add dev line root netem {words} rate {tc_units.write_rate(rate)} limit {2**32 - 1}\n"
    read = netem.read(Source("--path", command.encode(), Path()), Notes())
    side: Side = read.document["link"]["path"]["forward"]
    most = max(int(rate * QUEUE_S / 8), 30_000)
    return {**side, "queue": {"kind": "drop-tail", "limit": f"{most} bytes"}}


def _of_file(name: str, file: Path, prefix: str) -> Line:
    """A link of a file that ``convert`` reads: the one with the path's name, or the only one."""
    from anabranch.convert import scenario_file
    from anabranch.scenario import Scenario

    notes = Notes()
    source = Source(str(file), read_bytes(file, most=MAX_RESULT_BYTES), file.parent)
    found = formats.recognise(source.name, source.content[: 64 * 1024])
    if found.reader is None or found.reader[1] != "scenario":
        paths = ", ".join(f.name for f in formats.readable() if f.reader and f.reader[1] == "scenario")
        raise UserError(f"--path {name}={file}: {found.title} describes no path", hint=f"expected one of: {paths}")
    description: Description | None = None
    if found.name == "scenario":
        scenario = scenario_file.open_scenario(source)
        links = scenario.resolve()["links"]
    else:
        description = found.read(source, notes)
        links = list(description.document["link"])
        scenario = Scenario.from_text(toml_text.write_document(description.document), file=str(file))
    link = scenario_file.describe(scenario, description, file.parent, name if name in links else None, notes)
    if not (link.forward["up"] and link.reverse["up"]):
        raise UserError(f"--path {name}={file}: the link `{link.name}` is down", hint="expected one that is up")
    carried = _Carried(file.parent, link.files, prefix)
    sides = {way: carried.side(side) for way, side in zip(DIRECTIONS, (link.forward, link.reverse), strict=True)}
    return Line(sides, str(file), carried.files, tuple(f"{name}: {line}" for line in notes.lines))


_NOT_CARRIED = ("mean_rate", "up")
"""Keys that are left out; a direction with a separate ``up`` would not fail with its link."""


class _Carried:
    """Collects a resolved link's files, under names that are unique among the paths."""

    def __init__(self, folder: Path, known: Mapping[str, bytes], prefix: str) -> None:
        self.files: dict[str, bytes] = {}
        self._folder = folder
        self._known = known
        self._prefix = prefix

    def side(self, side: Mapping[str, Any]) -> Side:
        """The keys of a direction, without additions of ``convert`` and the state that an outage changes."""
        kept: Side = self._plain({key: value for key, value in side.items() if key not in _NOT_CARRIED})
        return kept

    def _plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            # A resolved scenario has null for missing values, which TOML lacks.
            return {
                key: self._file(inner) if key == "file" and isinstance(inner, str) else self._plain(inner)
                for key, inner in value.items()
                if inner is not None
            }
        return [self._plain(inner) for inner in value] if isinstance(value, list) else value

    def _file(self, name: str) -> str:
        if name.startswith("anabranch:"):
            return name
        carried = f"{self._prefix}{Path(name).name}"
        content = self._known.get(name)
        self.files[carried] = content if content is not None else read_bytes(self._folder / name, most=MAX_RESULT_BYTES)
        return carried


def _read_status(config: Config, file: Path) -> dict[str, Line]:
    """The properties of the configured paths from a gateway's status; other paths are ignored.

    Raises:
        UserError: It is no status, or a path has too few measurements.
    """
    document = read_json(file)
    peers = document.get("peers") if isinstance(document, dict) else None
    if not isinstance(peers, dict):
        raise UserError(
            f"{file}: the output of `anabranch-gateway status --json` was expected, which has `peers`",
        )
    lines: dict[str, Line] = {}
    for peer in _in_order(peers, config.peers):
        paths = peers[peer].get("paths") if isinstance(peers[peer], dict) else None
        for name, path in (paths if isinstance(paths, dict) else {}).items():
            if name in config.paths and name not in lines:
                lines[name] = _of_status(file, peer, name, path)
    return lines


def _in_order(peers: Iterable[str], first: Sequence[str]) -> list[str]:
    names = list(peers)
    return [*(name for name in first if name in names), *(name for name in names if name not in first)]


def _of_status(file: Path, peer: str, name: str, path: Any) -> Line:
    rtt, rate, loss = (
        _number(path, key, least, most, f"{file}: peers.{peer}.paths.{name}.{key}", name)
        for key, least, most in (("rtt_ms", 1e-3, 1e6), ("rate_mbit_s", 1e-3, 1e6), ("loss", 0.0, 1.0))
    )
    side = _side(int(rate * 1e6), Decimal(repr(rtt)) / 2000, loss, Decimal(0))
    notes = [f"{name}: the status has the rate of sending; both directions are taken to have it, and half the RTT each"]
    state = path.get("state")
    if state != "active":
        notes.append(f"{name}: its state is {state}, so its rate may be far from its capacity")
    return Line(dict.fromkeys(DIRECTIONS, side), str(file), notes=tuple(notes))


def _number(path: Any, key: str, least: float, most: float, where: str, name: str) -> float:
    """A number of a status.

    Raises:
        UserError: There is none, or it is out of range.
    """
    value = path.get(key) if isinstance(path, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise UserError(
            f"{where} is {json.dumps(value)}; a number from {least:g} to {most:g} was expected",
            hint=f"give its properties: --path {name}=RATE,DELAY",
        )
    return float(value)


def mbit_s(side: Side) -> float | None:
    """The rate of a direction in Mbit/s; ``None`` if it is unlimited, or given by a trace."""
    service = side.get("service", {})
    # A Wi-Fi station's rate is that of its physical layer.
    if "file" in service or service.get("kind") == "wifi":
        return None
    rate = quantity.bits_per_second(side.get("rate", "unlimited"))
    return None if rate is None else rate / 1e6


def delay_ms(side: Side) -> float | None:
    """The delay of a direction in ms, with the mean of its jitter; ``None`` if it is given by a trace."""
    delay = side.get("delay", "0 s")
    if not isinstance(delay, str):
        return None
    jitter = sum((_mean(one) for one in side.get("impair", []) if one["kind"] == "jitter"), Decimal(0))
    return float((quantity.seconds(delay) + jitter) * 1000)


def _mean(jitter: Mapping[str, Any]) -> Decimal:
    values: list[str] = jitter.get("table") or [jitter.get("mean", "0 s")]
    return sum((quantity.seconds(value) for value in values), Decimal(0)) / len(values)
