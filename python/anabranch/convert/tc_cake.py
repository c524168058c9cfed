"""``cake`` of ``tc`` as the queue of a scenario, and back (tc-cake(8))."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from anabranch.convert import tc_units
from anabranch.convert.content import Notes, Text
from anabranch.convert.shell_words import Word
from anabranch.errors import UserError
from anabranch.keys.component import Component
from anabranch.text import quantity

UNLIMITED = "unlimited"
_MEMORY = 4 << 20
"""Least ``memlimit`` that ``cake`` chooses itself, and the limit of our queue."""


def _bandwidth(text: Text, word: Word) -> int | str:
    return UNLIMITED if word.text in ("unlimited", "0bit") else tc_units.rate(text, word)


def _overhead(text: Text, word: Word) -> int:
    try:
        value = int(word.text)
    except ValueError:
        value = -1000
    if not -64 <= value <= 256:
        raise text.error(word.at, f"{word.text!r} is no overhead of cake: -64 to 256 was expected")
    return value


def _mpu(text: Text, word: Word) -> int:
    return tc_units.integer(text, word, 0, 256)


def _name(_text: Text, word: Word) -> str:
    return word.text


_ISOLATION = (
    "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate",
)  # fmt: skip
_DIFFSERV = ("besteffort", "diffserv3", "diffserv4")
_STAND_IN = {"diffserv8": "diffserv4", "precedence": "besteffort"}
_FRAMING = ("noatm", "atm", "ptm")
_RTT = {
    "datacentre": "0.0001", "lan": "0.001", "metro": "0.01", "regional": "0.03", "internet": "0.1",
    "oceanic": "0.3", "satellite": "1", "interplanetary": "3600",
}  # fmt: skip
_LINKS: dict[str, tuple[int, int, str]] = {
    "raw": (0, 0, "noatm"), "conservative": (48, 0, "atm"),
    "pppoa-vcmux": (10, 0, "atm"), "pppoa-llc": (14, 0, "atm"), "pppoe-vcmux": (32, 0, "atm"),
    "pppoe-llcsnap": (40, 0, "atm"), "bridged-vcmux": (24, 0, "atm"), "bridged-llcsnap": (32, 0, "atm"),
    "ipoa-vcmux": (8, 0, "atm"), "ipoa-llcsnap": (16, 0, "atm"),
    "pppoe-ptm": (30, 0, "ptm"), "bridged-ptm": (22, 0, "ptm"),
    "docsis": (18, 64, "noatm"), "ethernet": (38, 84, "noatm"),
}  # fmt: skip
"""Overhead, least length and framing of named links."""
_VLAN = "ether-vlan"
_VLAN_HEADER = 4
_LOST = {
    "autorate-ingress": "the estimate of the capacity", "ingress": "dropped packets count as sent",
    "wash": "clearing DSCPs", "ack-filter": "the ACK filter", "ack-filter-aggressive": "the ACK filter",
    "fwmark": "tins by firewall marks",
}  # fmt: skip
_WITHOUT_EFFECT = ("nat", "nonat", "nowash", "split-gso", "no-split-gso", "no-ack-filter", "egress", UNLIMITED)
"""Words without effect: no NAT hides a host, and packets are queued as they are on the wire."""

Reader = Callable[[Text, Word], Any]

PARAMETERS: dict[str, Reader | None] = {
    "bandwidth": _bandwidth, "rtt": tc_units.time, "memlimit": tc_units.size, "overhead": _overhead, "mpu": _mpu,
    **dict.fromkeys(
        (*_ISOLATION, *_DIFFSERV, *_STAND_IN, *_FRAMING, *_RTT, *_LINKS, _VLAN, *_WITHOUT_EFFECT, *_LOST)
    ),
    "fwmark": _name,
}  # fmt: skip


def bandwidth(given: Mapping[str, Any]) -> int | None:
    """The rate of its shaper, if it shapes; the last mention counts."""
    rate = None
    for word, value in given.items():
        if word in ("bandwidth", UNLIMITED):
            rate = value if word == "bandwidth" and value != UNLIMITED else None
    return rate


def read(given: Mapping[str, Any], places: Mapping[str, int], text: Text, notes: Notes) -> Component:
    """The queue of a scenario, from parameters in their order.

    Raises:
        UserError: The overhead of the link is out of range.
    """
    found: Component = {"kind": "cake"}
    rate = bandwidth(given)
    if rate is not None:
        found["rate"] = quantity.rate(rate)
    overhead, mpu, framing = 0, 0, "noatm"
    for word, value in given.items():
        if word in _LINKS:
            bytes_more, least, framing = _LINKS[word]
            # These two set it, the others add to it (measured).
            overhead = bytes_more if word in ("raw", "conservative") else overhead + bytes_more
            mpu = least or mpu
        elif word == _VLAN:
            overhead += _VLAN_HEADER * value
        elif word == "overhead":
            overhead = value
        elif word == "mpu":
            mpu = value
        elif word in _FRAMING:
            framing = word
        elif word in _ISOLATION:
            found["isolation"] = word
        elif word in _DIFFSERV:
            found["diffserv"] = word
        elif word in _STAND_IN:
            found["diffserv"] = _STAND_IN[word]
            notes.lost(f"{word} of cake; read as {_STAND_IN[word]}", text.where(places[word]))
        elif word in _RTT or word == "rtt":
            rtt = Decimal(_RTT[word]) if word in _RTT else value
            found["rtt"] = quantity.duration(min(max(rtt, Decimal("1e-6")), Decimal(100)))
        elif word == "memlimit":
            found["limit"] = f"{value} bytes" if value else f"{_MEMORY} bytes"
            notes.lost("the overhead of buffers in cake's memlimit: packets count", text.where(places[word]))
        elif word in _LOST:
            notes.lost(f"{_LOST[word]} ({word} of cake)", text.where(places[word]))
    if not -64 <= overhead <= 256:
        raise _out_of_range(text, places, overhead)
    usual = {"overhead": 0, "mpu": 0, "framing": "noatm"}
    given_length: Component = {"overhead": overhead, "mpu": mpu, "framing": framing}
    return found | {key: value for key, value in given_length.items() if value != usual[key]}


def _out_of_range(text: Text, places: Mapping[str, int], overhead: int) -> UserError:
    place = max(at for word, at in places.items() if word in _LINKS or word in ("overhead", _VLAN))
    return text.error(place, f"the overhead of cake adds up to {overhead} bytes; -64 to 256 was expected")


def write(where: str, queue: Mapping[str, Any], notes: Notes) -> str:
    """The parameters of ``cake`` for a queue of a scenario."""
    rate = queue["rate"]
    words = ["cake", UNLIMITED if rate == UNLIMITED else f"bandwidth {_rate(rate)}"]
    words += [queue["diffserv"], queue["isolation"], f"rtt {tc_units.write_time(quantity.seconds(queue['rtt']))}"]
    words += ["raw", queue["framing"], f"overhead {queue['overhead']}", f"mpu {queue['mpu']}"]
    if queue["queues"] != 1024:
        notes.lost(f"{where}.queues: cake has 1024")
    limit = quantity.limit(queue["limit"])
    if limit is None or limit[1] != "bytes":
        notes.lost(f"{where}.limit: cake chooses its memlimit, which is in bytes")
    elif limit[0] != _MEMORY:
        words.append(f"memlimit {limit[0]}")
        notes.lost(f"{where}.limit: cake's memlimit counts the overhead of buffers too")
    return " ".join(words)


def _rate(text: str) -> str:
    return tc_units.write_rate(quantity.bits_per_second(text) or 1)
