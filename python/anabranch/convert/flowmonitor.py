"""Reads the XML of ns-3's FlowMonitor: a row per flow, and a summary.

A flow of FlowMonitor is one direction of a connection. It counts bytes of IP packets, so rates are
throughput.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from anabranch.convert import summary_json
from anabranch.convert.content import Notes, Source, Table, Text
from anabranch.errors import nearest

_ATTRIBUTES = (
    "flowId", "timeFirstTxPacket", "timeLastRxPacket", "delaySum", "jitterSum", "txBytes", "rxBytes", "txPackets",
    "rxPackets", "lostPackets",
)  # fmt: skip
_TIME = re.compile(r"([+-]?[0-9]{1,20}(?:\.[0-9]{1,15})?(?:e[+-]?[0-9]{1,3})?)ns")
_PROTOCOLS = {"6": "tcp", "17": "udp"}


@dataclass
class _Found:
    """The two tables of the file, by ``flowId``: the attributes, and the offset of the element."""

    statistics: dict[str, tuple[dict[str, str], int]] = field(default_factory=dict)
    classified: dict[str, dict[str, str]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    has_histograms: bool = False


def recognise(_name: str, head: bytes) -> bool:
    """Whether a file's root is FlowMonitor's."""
    return re.match(rb"\s*(?:<\?xml[^>]*>\s*)?<FlowMonitor\b", head.removeprefix(b"\xef\xbb\xbf")) is not None


def read(source: Source, notes: Notes) -> Table:
    """A row per flow, in the order of the file.

    Raises:
        UserError: It is not FlowMonitor's XML.
    """
    text = source.text()
    found = _parse(text)
    rows = []
    for number, (attributes, at) in found.statistics.items():
        rows.append(_row(text, attributes, at, found.classified.get(number, {})))
    if not rows:
        raise text.error(0, "there is no flow: <FlowStats> with <Flow> elements were expected")
    if found.has_histograms:
        notes.lost("histograms of FlowMonitor")
    columns: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in rows[0]}
    flows = {row["flow"]: {k: v for k, v in row.items() if k in summary_json.FLOW_KEYS} for row in rows}
    duration = max((row["time_s"] for row in rows), default=None)
    return Table(columns, summary_json.summary(f"FlowMonitor: {Path(source.name).name}", "ns-3", duration, flows))


def _parse(text: Text) -> _Found:
    found = _Found()
    parser = expat.ParserCreate()

    def start(name: str, attributes: dict[str, str]) -> None:
        parent = found.open[-1] if found.open else ""
        found.open.append(name)
        at = offset(text, parser.CurrentLineNumber, parser.CurrentColumnNumber)
        if not parent and name != "FlowMonitor":
            raise text.error(at, f"the root is <{name}>; <FlowMonitor> was expected")
        found.has_histograms |= name == "bin"
        if name != "Flow":
            return
        number = attributes.get("flowId", "")
        if parent == "FlowStats":
            if number in found.statistics:
                raise text.error(at, f"flow {number} is there twice")
            found.statistics[number] = (attributes, at)
        elif parent in ("Ipv4FlowClassifier", "Ipv6FlowClassifier"):
            found.classified[number] = attributes

    def refuse(*_: object) -> None:
        # Entities could make a small file large.
        raise text.error(offset(text, parser.CurrentLineNumber, parser.CurrentColumnNumber), "a DTD; none was expected")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: found.open.pop()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text.text, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise text.error(offset(text, error.lineno, error.offset), f"not valid XML: {reason}") from None
    except UnicodeEncodeError:
        raise text.error(0, "not valid XML: half a character") from None
    return found


def offset(text: Text, line: int, column: int) -> int:
    """The offset of a place reported by the XML parser."""
    at = 0
    for _ in range(line - 1):
        at = text.text.find("\n", at) + 1
        if not at:
            return len(text.text)
    return min(at + column, len(text.text))


def _row(text: Text, attributes: dict[str, str], at: int, classified: dict[str, str]) -> dict[str, Any]:
    values = {name: _value(text, attributes, at, name) for name in _ATTRIBUTES[1:]}
    number = attributes.get("flowId")
    if number is None:
        raise text.error(at, 'a flow without "flowId"')
    length = values["timeLastRxPacket"] - values["timeFirstTxPacket"]
    received = values["rxPackets"]
    return {
        "flow": f"flow-{number}",
        "source": _end(classified, "source"),
        "destination": _end(classified, "destination"),
        "protocol": _PROTOCOLS.get(classified.get("protocol", ""), classified.get("protocol")),
        "time_s": values["timeLastRxPacket"],
        "throughput_mbit_s": values["rxBytes"] * 8 / length / 1e6 if length > 0 else None,
        "sent_packets": int(values["txPackets"]),
        "received_packets": int(received),
        "lost_packets": int(values["lostPackets"]),
        "mean_one_way_delay_ms": values["delaySum"] * 1000 / received if received else None,
        "mean_jitter_ms": values["jitterSum"] * 1000 / (received - 1) if received > 1 else None,
    }


def _end(classified: dict[str, str], side: str) -> str | None:
    address, port = classified.get(f"{side}Address"), classified.get(f"{side}Port")
    return f"{address}:{port}" if address is not None else None


def _value(text: Text, attributes: dict[str, str], at: int, name: str) -> float:
    given = attributes.get(name)
    if given is None:
        raise text.error(at, f'a flow without "{name}"', nearest(name, attributes))
    is_time = name.startswith("time") or name.endswith("Sum")
    found = _TIME.fullmatch(given) if is_time else re.fullmatch(r"([0-9]{1,18})", given)
    if found is None:
        expected = "a time in ns (+1.5e+09ns)" if is_time else "a whole number"
        raise text.error(at, f"{name}={given[:40]!r} is not {expected}")
    value = float(found[1])
    if not value < 1e300:
        raise text.error(at, f"{name}={given[:40]!r} is too large")
    return value / 1e9 if is_time else value
