"""Writes one link of a scenario as a shell script of ``tc`` commands: netem, or netem and tbf with a queue."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from statistics import fmean, pstdev
from typing import Any

from anabranch.convert import tc_cake, tc_units
from anabranch.convert.content import PAPER_PACKET, Link, Names, Notes, Written
from anabranch.convert.netem import DRAWS, IN_ORDER
from anabranch.text import quantity

_MOST = 2**32 - 1
"""Value for no limit: the largest that ``tc`` accepts."""


@dataclass
class _Side:
    """The parameters of netem for one direction."""

    where: str
    delay: Decimal
    words: list[str] = field(default_factory=list)
    jitter: str = ""
    reorders: bool | None = None
    """Whether packets may overtake each other; ``None`` without jitter."""


def write(link: Link, _names: Names, notes: Notes) -> Written:
    """The script; properties that netem cannot express become notes, and comments in the script."""
    blocks = []
    for word, side, (sender, receiver) in (
        ("FORWARD", link.forward, link.ends),
        ("REVERSE", link.reverse, link.ends[::-1]),
    ):
        own = Notes()
        commands = _commands(f'"${word}"', f"link.{link.name}.{word.lower()}", side, own)
        if commands:
            head = [f"# {_one_line(sender)} to {_one_line(receiver)}: packets that leave ${word}"]
            blocks.append("\n".join([*head, *(f"# not expressed: {_one_line(line)}" for line in own.lines), *commands]))
        notes.lines += own.lines
    used = [word for word in ("FORWARD", "REVERSE") if any(f'"${word}"' in block for block in blocks)]
    interfaces = [f"{word}=${{{number}:?the interface of packets {place}}}" for number, (word, place) in enumerate(
        ((word, "there" if word == "FORWARD" else "back") for word in used), 1)]  # fmt: skip
    usage = " ".join(f"{word}-INTERFACE" for word in used)
    top = [
        "#!/bin/sh",
        f"# Link {_one_line(link.name)} as tc commands. As root: sh SCRIPT {usage}".rstrip(),
        "# netem delays and loses packets before its inner queue; the link does so behind it.",
        "set -eu",
        *interfaces,
    ]
    return Written(("\n\n".join(["\n".join(top), *blocks]) + "\n").encode())


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)


def _commands(device: str, where: str, side: Mapping[str, Any], notes: Notes) -> list[str]:
    rate = _rate(where, side, notes)
    found = _Side(where, quantity.seconds(side["delay"]))
    _impair(found, side["impair"], notes)
    # The delay includes the mean of its jitter.
    _time(f"{where}.delay", quantity.duration(found.delay), notes)
    if not side["up"]:
        notes.lost(f"{where}.up = false: the link is up")
    kind, limit = side["queue"]["kind"], quantity.limit(side["queue"].get("limit", "unlimited"))
    held = _held(where, side, notes)
    # netem has one limit, which also counts delayed packets. Without a delay all packets wait
    # except the one in transmission.
    one_limit = limit is None or (limit[1] == "packets" and held == _MOST and not found.delay and not found.jitter)
    in_netem = rate is not None and kind == "drop-tail" and one_limit
    if found.reorders:
        # netem with a rate would keep the order.
        in_netem = False
    keeps_order = found.reorders is False and rate is not None and not in_netem
    if found.reorders is False and rate is None:
        notes.lost(f"{where}: the order of packets under jitter; netem lets them overtake each other")
    if "reorder" in side["queue"]:
        notes.lost(f"{where}.queue.reorder: reordering inside the queue")
    packets = min(held if limit is None or not in_netem else limit[0] + 1, _MOST)
    own_rate = [f"rate {tc_units.write_rate(rate)}"] if in_netem and rate is not None else []
    if keeps_order:
        own_rate = [f"rate {tc_units.write_rate(IN_ORDER)}"]
    delay = [found.jitter or f"delay {tc_units.write_time(found.delay)}"] if found.delay or found.jitter else []
    words = [*delay, *found.words, *own_rate]
    commands, parent = [], "root"
    if words or held != _MOST:
        commands.append(f"tc qdisc replace dev {device} root handle 1: netem {' '.join([*words, f'limit {packets}'])}")
        parent = "parent 1:1"
    if not in_netem:
        commands += _shaped(device, parent, where, side["queue"], rate, notes)
    return commands


def _held(where: str, side: Mapping[str, Any], notes: Notes) -> int:
    """The limit of netem: packets that the direction may hold."""
    limit = quantity.limit(side.get("held_limit", "unlimited"))
    if limit is None:
        return _MOST
    return _in_packets(f"{where}.held_limit", limit, notes)


def _time(where: str, text: str, notes: Notes) -> str:
    """A duration of the scenario as ``tc`` reads it."""
    value = quantity.seconds(text)
    if value != value.quantize(Decimal("1e-9")):
        notes.lost(f"{where} = {text!r}: rounded to whole nanoseconds")
    return tc_units.write_time(value)


def _rate(where: str, side: Mapping[str, Any], notes: Notes) -> int | None:
    if side["service"]["kind"] != "fixed":
        notes.lost(f"{where}.service: a capacity that changes; its mean rate is written")
        return int(side["mean_rate"])
    return quantity.bits_per_second(side["rate"])


def _shaped(
    device: str, parent: str, where: str, queue: Mapping[str, Any], rate: int | None, notes: Notes
) -> list[str]:
    """``tbf`` for the rate, and the queue below it; only the queue if there is no rate."""
    qdisc = _queue(where, queue, notes)
    if rate is None:
        return [f"tc qdisc replace dev {device} {parent} handle 2: {qdisc}"] if qdisc else []
    burst = max(2 * PAPER_PACKET, rate // 800)
    tbf = f"tc qdisc replace dev {device} {parent} handle 2: tbf rate {tc_units.write_rate(rate)} burst {burst}"
    if qdisc is None or qdisc.startswith("bfifo "):
        # tbf counts its queue in bytes.
        return [f"{tbf} limit {qdisc.split()[-1] if qdisc else _MOST}"]
    return [f"{tbf} limit {_MOST}", f"tc qdisc replace dev {device} parent 2:1 handle 3: {qdisc}"]


def _queue(where: str, queue: Mapping[str, Any], notes: Notes) -> str | None:
    kind, limit = queue["kind"], quantity.limit(queue.get("limit", "unlimited"))
    writer = {"codel": _codel, "fq-codel": _fq_codel, "pie": _pie, "red": _red, "cake": tc_cake.write}.get(kind)
    if writer is not None:
        return writer(f"{where}.queue", queue, notes)
    if kind != "drop-tail":
        notes.lost(f"{where}.queue: {kind}; written as drop-tail of the same limit")
    if limit is None:
        return None
    return f"pfifo limit {min(limit[0], _MOST)}" if limit[1] == "packets" else f"bfifo limit {min(limit[0], _MOST)}"


def _packets(where: str, text: str, notes: Notes) -> int:
    limit = quantity.limit(text)
    return _MOST if limit is None else _in_packets(f"{where}.limit", limit, notes)


def _in_packets(where: str, limit: tuple[int, str], notes: Notes) -> int:
    if limit[1] == "bytes":
        count = max(limit[0] // PAPER_PACKET, 1)
        notes.lost(f"{where} in bytes; written as {count} packets of {PAPER_PACKET} bytes")
        return count
    return min(limit[0], _MOST)


def _codel(where: str, queue: Mapping[str, Any], notes: Notes) -> str:
    if quantity.size(queue["mtu"]) != PAPER_PACKET:
        notes.lost(f"{where}.mtu: codel takes the interface's")
    words = [queue["kind"].replace("-", "_"), f"limit {_packets(where, queue['limit'], notes)}"]
    words += [f"{name} {_time(f'{where}.{name}', queue[name], notes)}" for name in ("target", "interval")]
    if queue["ce_threshold"] != "off":
        words.append(f"ce_threshold {_time(f'{where}.ce_threshold', queue['ce_threshold'], notes)}")
    return " ".join([*words, "ecn" if queue["ecn"] else "noecn"])


def _fq_codel(where: str, queue: Mapping[str, Any], notes: Notes) -> str:
    words = [_codel(where, queue, notes), f"flows {queue['queues']} quantum {quantity.size(queue['quantum'])}"]
    if queue["memory_limit"] != "unlimited":
        words.append(f"memory_limit {min(quantity.size(queue['memory_limit']), _MOST)}")
    return " ".join(words)


def _pie(where: str, queue: Mapping[str, Any], notes: Notes) -> str:
    words = [f"pie limit {_packets(where, queue['limit'], notes)}"]
    words.append(f"target {_time(f'{where}.target', queue['target'], notes)}")
    words.append(f"tupdate {_time(f'{where}.update_interval', queue['update_interval'], notes)}")
    for name in ("alpha", "beta"):
        sixteenths = round(queue[name] * 16)
        if sixteenths != queue[name] * 16:
            notes.lost(f"{where}.{name}: rounded to {sixteenths}/16 Hz")
        words.append(f"{name} {sixteenths}")
    if quantity.seconds(queue["max_burst"]) != Decimal("0.15"):
        notes.lost(f"{where}.max_burst: pie has 150 ms")
    if not queue["derandomize"]:
        notes.lost(f"{where}.derandomize = false: pie spaces its drops")
    if queue["ecn"] and queue["mark_ecnth"] != 0.1:
        notes.lost(f"{where}.mark_ecnth: pie has 0.1")
    if queue["delay"] == "rate":
        words.append("dq_rate_estimator")
    return " ".join([*words, "ecn" if queue["ecn"] else "noecn"])


def _bytes(where: str, key: str, text: str, notes: Notes) -> int:
    limit = quantity.limit(text)
    if limit is None:
        return _MOST
    if limit[1] == "packets":
        notes.lost(f"{where}.{key} in packets; written as bytes, {PAPER_PACKET} for each")
        return min(limit[0] * PAPER_PACKET, _MOST)
    return min(limit[0], _MOST)


def _red(where: str, queue: Mapping[str, Any], notes: Notes) -> str:
    least, most = (_bytes(where, key, queue[key], notes) for key in ("min_threshold", "max_threshold"))
    power = min(max(round(-math.log2(queue["weight"])), 1), 31)
    if 2.0**-power != queue["weight"]:
        notes.lost(f"{where}.weight: rounded to 1/{2**power}")
    packet = quantity.size(queue["idle_packet"])
    for key, usual in (("gentle", False), ("spacing", "uniform"), ("scale_by_size", False)):
        if queue[key] != usual:
            notes.lost(f"{where}.{key} = {str(queue[key]).lower()}")
    words = [
        f"red limit {_bytes(where, 'limit', queue['limit'], notes)} min {least} max {most} avpkt {packet}",
        f"burst {_burst(2.0**-power, least / packet)}",
        f"probability {quantity.plain(Decimal(repr(queue['max_probability'])))}",
    ]
    if queue["adaptive"]:
        words.append("adaptive")
        if queue["adaptive"] is not True:
            notes.lost(f"{where}.adaptive: its parameters are red's own")
    if queue["ecn"]:
        words.append("ecn harddrop" if queue["hard_drop"] else "ecn")
    return " ".join(words)


def _burst(weight: float, least: float) -> int:
    """The largest burst from which ``tc`` computes this weight."""
    burst = 1
    for candidate in range(1, 1_000_000):
        if candidate + 1 - least > (1 - math.pow(1 - weight, candidate)) / weight:
            break
        burst = candidate
    return burst


def _impair(side: _Side, impair: list[Mapping[str, Any]], notes: Notes) -> None:
    """Add each kind of impairment once: netem has one of each."""
    seen: set[str] = set()
    for item in impair:
        slot = "loss" if item["kind"] in _LOSSES else item["kind"]
        if slot in seen:
            notes.lost(f"{side.where}.impair: a second {item['kind']}; netem has one {slot}")
            continue
        seen.add(slot)
        if item["kind"] in _LOSSES:
            side.words.append(_LOSSES[item["kind"]](item))
        elif item["kind"] == "duplicate":
            side.words.append(f"duplicate {tc_units.write_percent(item['rate'])}")
        elif item["kind"] == "corrupt":
            _corrupt(side, item, notes)
        elif item["kind"] == "jitter":
            _jitter(side, item, notes)
        else:
            notes.lost(f"{side.where}.impair: {item['kind']}")


def _bernoulli(item: Mapping[str, Any]) -> str:
    return f"loss random {tc_units.write_percent(item['rate'])}"


def _gilbert(item: Mapping[str, Any]) -> str:
    p, r = item.get("p"), item.get("r")
    if p is None or r is None:
        rate, r = item["loss_rate"], 1 / item["mean_burst"]
        p = min(r * rate / (1 - rate), 1.0) if rate < 1 else 1.0
    shares = (p, r, _complement(item["h"]), _complement(item["k"]))
    return f"loss gemodel {' '.join(map(tc_units.write_percent, shares))}"


def _four_state(item: Mapping[str, Any]) -> str:
    p31 = item.get("p31")
    shares = (item["p13"], _complement(item["p13"]) if p31 is None else p31, item["p32"], item["p23"], item["p14"])
    return f"loss state {' '.join(map(tc_units.write_percent, shares))}"


def _complement(ratio: float) -> float:
    return float(1 - Decimal(repr(float(ratio))))


_LOSSES = {"bernoulli-loss": _bernoulli, "gilbert-elliott": _gilbert, "four-state-loss": _four_state}


def _corrupt(side: _Side, item: Mapping[str, Any], notes: Notes) -> None:
    rate = item["rate"]
    if item["bit_error_rate"]:
        rate = -math.expm1(8 * PAPER_PACKET * math.log1p(-min(item["bit_error_rate"], 1 - 1e-15)))
        notes.lost(f"{side.where}.impair: corruption by bit; written for packets of {PAPER_PACKET} bytes")
    side.words.append(f"corrupt {tc_units.write_percent(rate)}")


def _jitter(side: _Side, item: Mapping[str, Any], notes: Notes) -> None:
    for key, usual in (("every", "0 s"), ("after_pause", "0 s"), ("packets", None)):
        if item.get(key, usual) not in (usual, []):
            notes.lost(f"{side.where}.impair: {key} of jitter; each packet is delayed")
    if item["distribution"] == "table":
        _table(side, item, notes)
        return
    side.reorders = item["reorder"]
    mean = quantity.seconds(item["mean"])
    if item["distribution"] == "normal":
        spread = quantity.seconds(item["deviation"]) if "deviation" in item else mean / 4
        words = (spread, "normal")
    elif item["distribution"] == "pareto":
        if item["shape"] != 3:
            notes.lost(f"{side.where}.impair: Pareto's exponent {item['shape']:g}; tc's table has 3")
        words = (mean / 2, "pareto")
    else:
        notes.lost(f"{side.where}.impair: exponential jitter; written as Pareto's of the same mean and deviation")
        # The deviation of tc's table is 4/3 of √3/2.
        words = (mean * Decimal("0.8660254"), "pareto")
    side.delay += mean
    side.jitter = f"delay {tc_units.write_time(side.delay)} {tc_units.write_time(words[0])} distribution {words[1]}"


def _table(side: _Side, item: Mapping[str, Any], notes: Notes) -> None:
    delays = sorted(quantity.seconds(text) for text in item.get("table", []))
    if not delays:
        notes.lost(f"{side.where}.impair: a file of delays")
        return
    side.reorders = item["reorder"]
    ahead = sum(1 for delay in delays if not delay)
    if item["reorder"] and ahead and not side.delay and len(set(delays)) == 2:
        # netem's reordering: some packets are sent at once, the others are delayed.
        side.delay = delays[-1]
        share = tc_units.write_percent(round(ahead / len(delays), 12))
        side.jitter = f"delay {tc_units.write_time(side.delay)} reorder {share}"
        # netem reorders with a rate as well.
        side.reorders = None
        return
    step = (delays[-1] - delays[0]) / max(len(delays) - 1, 1)
    is_even = all(abs(delays[0] + number * step - delay) <= Decimal("1e-9") for number, delay in enumerate(delays))
    if len(delays) == DRAWS and is_even and step:
        middle, reach = (delays[0] + delays[-1]) / 2, step * DRAWS / 2
        side.delay += middle
        side.jitter = f"delay {tc_units.write_time(side.delay)} {tc_units.write_time(reach)}"
        return
    mean, spread = Decimal(repr(fmean(map(float, delays)))), Decimal(repr(pstdev(map(float, delays))))
    side.delay += mean
    if not spread:
        return
    notes.lost(f"{side.where}.impair: a table of delays; written as a normal distribution of its mean and deviation")
    side.jitter = f"delay {tc_units.write_time(side.delay)} {tc_units.write_time(spread)} distribution normal"
