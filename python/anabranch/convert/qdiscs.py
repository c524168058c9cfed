"""Parameters of ``tc``'s queueing disciplines, and the equivalent queues of a scenario."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from anabranch.convert import tc_cake, tc_units
from anabranch.convert.content import Notes, Text
from anabranch.convert.shell_words import Cursor, Word
from anabranch.keys.component import Component
from anabranch.text import quantity

Reader = Callable[[Text, Word], Any]

UNLIMITED = 2**31
"""Limits from here on mean no limit, for which ``tc`` has no word."""


def packets(text: Text, word: Word) -> int:
    """A number of packets."""
    return tc_units.integer(text, word)


def probability(text: Text, word: Word) -> float:
    """RED's probability: a share, not a percentage."""
    value = quantity.number(word.text) if len(word.text) <= 20 else None
    if value is None or not 0 < value <= 1:
        raise text.error(word.at, f"{word.text!r} is not a probability above 0 and at most 1")
    return value


def name(_text: Text, word: Word) -> str:
    """A word without conversion."""
    return word.text


FLAG = None
"""Marks a parameter without a value."""

_AQM: dict[str, Reader | None] = {
    "limit": packets, "target": tc_units.time, "interval": tc_units.time, "ecn": FLAG, "noecn": FLAG,
    "ce_threshold": tc_units.time,
}  # fmt: skip

PARAMETERS: dict[str, dict[str, Reader | None]] = {
    "pfifo": {"limit": tc_units.packets},
    "bfifo": {"limit": tc_units.size},
    "pfifo_fast": {},
    "noqueue": {},
    "codel": _AQM,
    "fq_codel": {
        **_AQM, "flows": packets, "quantum": tc_units.size, "memory_limit": tc_units.size, "drop_batch": packets,
    },
    "pie": {
        "limit": packets, "target": tc_units.time, "tupdate": tc_units.time, "alpha": packets, "beta": packets,
        "ecn": FLAG, "noecn": FLAG, "bytemode": FLAG, "nobytemode": FLAG, "dq_rate_estimator": FLAG,
        "no_dq_rate_estimator": FLAG,
    },
    "red": {
        "limit": tc_units.size, "min": tc_units.size, "max": tc_units.size, "avpkt": tc_units.size,
        "burst": packets, "bandwidth": tc_units.rate, "probability": probability,
        "ewma": packets, "ecn": FLAG, "harddrop": FLAG, "nodrop": FLAG, "adaptive": FLAG,
    },
    "tbf": {
        "rate": tc_units.rate, "burst": tc_units.size, "buffer": tc_units.size, "maxburst": tc_units.size,
        "limit": tc_units.size, "latency": tc_units.time, "lat": tc_units.time, "peakrate": tc_units.rate,
        "mtu": tc_units.size, "minburst": tc_units.size, "mpu": packets, "overhead": packets,
        "linklayer": name,
    },
    "cake": tc_cake.PARAMETERS,
}  # fmt: skip


@dataclass(frozen=True)
class Qdisc:
    """One queueing discipline with its parameters."""

    kind: str
    at: int
    given: dict[str, Any] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)


def read(cursor: Cursor, kind: Word) -> Qdisc:
    """The parameters after the name of a discipline.

    Raises:
        UserError: One of them is unknown, or its value is wrong.
    """
    parameters = PARAMETERS[kind.text]
    found = Qdisc(kind.text, kind.at)
    while not cursor.is_done:
        word = cursor.take("a parameter")
        if word.text not in parameters:
            raise cursor.unknown(word, f"a parameter of {kind.text}", parameters)
        reader = parameters[word.text]
        found.places[word.text] = word.at
        times = found.given.pop(word.text, 0)
        # Ordered by the last mention, which takes effect.
        found.given[word.text] = times + 1 if reader is None else reader(cursor.text, cursor.take("a value"))
    return found


def queue(qdisc: Qdisc, text: Text, notes: Notes) -> Component | None:
    """The queue of a scenario for a discipline; ``None`` if the discipline has none itself.

    Raises:
        UserError: A value is outside the queue's range.
    """
    make = _QUEUES.get(qdisc.kind)
    return make(qdisc, text, notes) if make else None


def drop_tail(limit: int, unit: str) -> Component:
    """A drop-tail queue of ``limit`` packets or bytes."""
    return {"kind": "drop-tail", "limit": "unlimited" if limit >= UNLIMITED else f"{limit} {unit}"}


def _pfifo(qdisc: Qdisc, _text: Text, _notes: Notes) -> Component:
    return drop_tail(qdisc.given.get("limit", 1000), "packets")


def _bfifo(qdisc: Qdisc, _text: Text, _notes: Notes) -> Component:
    return drop_tail(qdisc.given.get("limit", 1000 * 1514), "bytes")


def _pfifo_fast(qdisc: Qdisc, text: Text, notes: Notes) -> Component:
    notes.lost("the three bands of pfifo_fast; read as drop-tail of 1000 packets", text.where(qdisc.at))
    return drop_tail(1000, "packets")


def _codel(qdisc: Qdisc, text: Text, _notes: Notes) -> Component:
    found: Component = {"kind": qdisc.kind.replace("_", "-")}
    if "limit" in qdisc.given:
        found["limit"] = _limit(qdisc.given["limit"])
    found |= _times(qdisc, text, {"target": "target", "interval": "interval", "ce_threshold": "ce_threshold"})
    target, interval = (
        qdisc.given.get(name, Decimal(usual)) for name, usual in (("target", "0.005"), ("interval", "0.1"))
    )
    if interval < target:
        place = qdisc.places.get("interval", qdisc.at)
        raise text.error(
            place, f"the interval of {qdisc.kind} is below its target; {quantity.duration(target)} or more was expected"
        )
    return found | _ecn(qdisc)


def _fq_codel(qdisc: Qdisc, text: Text, notes: Notes) -> Component:
    found = _codel(qdisc, text, notes)
    if "flows" in qdisc.given:
        found["queues"] = _within(qdisc, text, "flows", 1, 65536)
    if "quantum" in qdisc.given:
        found["quantum"] = f"{_within(qdisc, text, 'quantum', 64, 1_000_000)} bytes"
    if "memory_limit" in qdisc.given:
        found["memory_limit"] = f"{qdisc.given['memory_limit']} bytes"
    if qdisc.given.get("drop_batch", 64) != 64:
        notes.lost(
            "drop_batch of fq_codel: an overload drops 64 packets at most", text.where(qdisc.places["drop_batch"])
        )
    return found


def _pie(qdisc: Qdisc, text: Text, notes: Notes) -> Component:
    # Linux always spaces drops.
    found: Component = {"kind": "pie", "derandomize": True}
    if "limit" in qdisc.given:
        found["limit"] = _limit(qdisc.given["limit"])
    found |= _times(qdisc, text, {"target": "target", "tupdate": "update_interval"})
    # The kernel stores both in sixteenths of a hertz.
    found |= {name: _within(qdisc, text, name, 0, 1600) / 16 for name in ("alpha", "beta") if name in qdisc.given}
    if "dq_rate_estimator" in qdisc.given:
        found["delay"] = "rate"
    if "bytemode" in qdisc.given:
        notes.lost("bytemode of pie: drops do not depend on a packet's size", text.where(qdisc.places["bytemode"]))
    return found | _ecn(qdisc)


def _red(qdisc: Qdisc, text: Text, notes: Notes) -> Component:
    given = qdisc.given
    if "limit" not in given:
        raise text.error(qdisc.at, "red has no limit; `limit BYTES` was expected")
    most = given.get("max") or (given["min"] * 3 if "min" in given else given["limit"] // 4)
    least = given.get("min") or most // 3
    packet = given.get("avpkt") or 1000
    if not 0 < least <= most:
        raise text.error(
            qdisc.at, f"red has the thresholds {least} and {most} bytes; a max not below a min above 0 was expected"
        )
    if "nodrop" in given:
        notes.lost("nodrop of red: a queue above its maximum drops", text.where(qdisc.places["nodrop"]))
    found: Component = {
        "kind": "red",
        "limit": "unlimited" if given["limit"] >= UNLIMITED else f"{given['limit']} bytes",
        "min_threshold": f"{least} bytes",
        # RED with equal thresholds marks every packet above them, as DCTCP requires; the average has whole bytes.
        "max_threshold": f"{max(most, least + 1)} bytes",
        "max_probability": given.get("probability", 0.02),
        "weight": _weight(qdisc, text, least, most, packet),
        "scale_by_size": False,
        "idle_packet": f"{min(max(packet, 64), 65535)} bytes",
    }
    if "ecn" in given:
        found |= {"ecn": True, "hard_drop": "harddrop" in given}
    if "adaptive" in given:
        found["adaptive"] = True
    return found


def _weight(qdisc: Qdisc, text: Text, least: int, most: int, packet: int) -> float:
    """``w_q`` for the permitted burst, by the rule of tc-red(8) (Floyd and Jacobson §6, equation 3)."""
    if "ewma" in qdisc.given:
        return float(2.0 ** -_within(qdisc, text, "ewma", 1, 31))
    burst = qdisc.given.get("burst") or (2 * least + most) // (3 * packet)
    room = burst + 1 - least / packet
    for power in range(1, 32):
        weight = 2.0**-power
        if room <= (1 - math.pow(1 - weight, burst)) / weight:
            return weight
    place = qdisc.places.get("burst", qdisc.at)
    raise text.error(place, f"no average lets a burst of {burst} packets pass; less, or a larger min, was expected")


def _cake(qdisc: Qdisc, text: Text, notes: Notes) -> Component:
    return tc_cake.read(qdisc.given, qdisc.places, text, notes)


_QUEUES: dict[str, Callable[[Qdisc, Text, Notes], Component]] = {
    "pfifo": _pfifo, "bfifo": _bfifo, "pfifo_fast": _pfifo_fast, "codel": _codel, "fq_codel": _fq_codel,
    "pie": _pie, "red": _red, "cake": _cake,
}  # fmt: skip


def _limit(count: int) -> str:
    return "unlimited" if count >= UNLIMITED else f"{count} packets"


def _ecn(qdisc: Qdisc) -> Component:
    if "ecn" in qdisc.given:
        return {"ecn": True}
    return {"ecn": False} if "noecn" in qdisc.given else {}


def _times(qdisc: Qdisc, text: Text, names: dict[str, str]) -> dict[str, str]:
    found = {}
    for name, ours in names.items():
        if name not in qdisc.given:
            continue
        value = qdisc.given[name]
        if name != "ce_threshold" and not Decimal("1e-6") <= value <= 100:
            raise text.error(qdisc.places[name], f"{name} of {qdisc.kind} is out of range; 1us to 100s was expected")
        found[ours] = quantity.duration(value)
    return found


def _within(qdisc: Qdisc, text: Text, name: str, least: int, most: int) -> int:
    value: int = qdisc.given[name]
    if not least <= value <= most:
        raise text.error(qdisc.places[name], f"{name} of {qdisc.kind} is {value}; {least} to {most} was expected")
    return value
