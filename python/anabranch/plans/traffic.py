"""The load of a link group, for a replay: from a capture, or from counters of an interface."""

from __future__ import annotations

import bisect
import csv
import io
import ipaddress
import itertools
import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from anabranch.errors import UserError, nearest
from anabranch.files.files import MAX_RESULT_BYTES, read_bytes
from anabranch.text.lines import percent

PACKET_BYTES = 1500
"""Size of a packet of counters, which do not show sizes."""
MOST_MBIT_S = 40.0
"""Mean rate of a simulated load of counters; a larger load is simulated at a fraction of all rates."""
WINDOW_S = 20.0
"""Simulated time of an interval of the counters, at most."""
LEAST_INTERVAL_S = 1e-3
"""Least time between two readings of a counter."""
_LARGEST = 2.0**64
"""A counter is smaller."""
MOST_SECONDS = 120.0
_CAPTURES = ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "0a0d0d0a")
_HEADER = struct.Struct("<IHHiIII")
_RECORD = struct.Struct("<IIII")
_RAW = 101
"""LINKTYPE_RAW: packets begin with their IP header."""


@dataclass(frozen=True)
class Load:
    """The load of a group.

    Attributes:
        files: The captures to replay, by name; ``{seed}`` in ``name`` is the seed's number.
        name: The name of the capture.
        seconds: The time that a run simulates.
        mean_mbit_s: The mean rate.
        scale: The fraction of all rates at which it is simulated.
        told: Omissions and assumptions.
        senders: The replayed senders of a capture.
    """

    files: dict[str, bytes]
    name: str
    seconds: float
    mean_mbit_s: float
    scale: float = 1.0
    told: list[str] = field(default_factory=list)
    senders: str | None = None


def read(file: Path, seeds: int, senders: str | None = None) -> Load:
    """The load of a capture or of counters.

    Args:
        file: The capture, or the counters.
        seeds: Number of runs.
        senders: An address or a network of a capture; the one that sent most when left out.

    Raises:
        UserError: It is neither, or has too little.
    """
    content = read_bytes(file, most=MAX_RESULT_BYTES)
    if content[:4].hex() in _CAPTURES or content[:2] == b"\x1f\x8b" or content[:4] == b"\x28\xb5\x2f\xfd":
        return _of_capture(file, content, senders)
    if senders is not None:
        raise UserError(f"--from {senders}: {file} has counters, and no senders", hint="leave it out")
    return _of_counters(file, content, seeds)


def _of_capture(file: Path, content: bytes, senders: str | None) -> Load:
    from anabranch.diagnosis.diagnosis import diagnose, directions

    found = diagnose(file).content
    first = min((one["start_s"] for one in found["connections"]), default=0.0)
    last = max((one["start_s"] + one["duration_s"] for one in found["connections"]), default=0.0)
    by_sender: dict[str, int] = {}
    for one in found["connections"]:
        for way_name, way in directions(one):
            end = one["a" if way_name == "a_to_b" else "b"].rpartition(":")[0].strip("[]")
            by_sender[end] = by_sender.get(end, 0) + way["bytes"]
    chosen = senders or max(by_sender, key=by_sender.__getitem__, default="")
    octets = sum(count for end, count in by_sender.items() if _is_of(end, chosen))
    seconds = last - first
    if seconds < 1:
        raise UserError(f"{file}: it has less than a second of traffic", hint="capture the group for a minute")
    if not octets:
        raise UserError(f"--from {chosen}: {file} has no data from there", hint=nearest(chosen, by_sender))
    name = "traffic.pcap" + "".join(suffix for suffix in file.suffixes if suffix in (".gz", ".zst"))
    told = [f"only packets from {chosen}, {percent(octets / sum(by_sender.values()))} of the data of TCP"]
    if seconds > MOST_SECONDS:
        told.append(f"the first {MOST_SECONDS:.0f} s of the capture are simulated")
    return Load({name: content}, name, min(seconds, MOST_SECONDS), octets * 8e-6 / seconds, 1.0, told, chosen)


def _is_of(address: str, senders: str) -> bool:
    """Whether an address is in a network."""
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(senders)
    except ValueError:
        raise UserError(f"--from {senders}: an address or a network was expected", hint="--from 192.0.2.0/24") from None


def _of_counters(file: Path, content: bytes, seeds: int) -> Load:
    rates, told = _rates(file, content)
    mean = sum(seconds * rate for seconds, rate in rates) / sum(seconds for seconds, _ in rates)
    rates = _merged(rates)
    scale = min(1.0, MOST_MBIT_S / (mean * 8e-6))
    total = sum(seconds for seconds, _ in rates)
    window = _usual(rates)
    # The sum of the windows is no longer than the load; a float's error takes no window from it.
    count = max(1, min(len(rates), int(MOST_SECONDS / window), int(total / window + 1e-6)))
    # Systematic samples of the time: each run begins at another interval.
    ends = list(itertools.accumulate(seconds for seconds, _ in rates))
    step = total / count
    files = {}
    for seed in range(1, seeds + 1):
        drawn = random.Random(seed)  # noqa: S311 - arrivals of a simulation
        start = drawn.random() * step
        places = (min(bisect.bisect(ends, start + n * step), len(rates) - 1) for n in range(count))
        chosen = [rates[place][1] for place in places]
        files[f"traffic-{seed}.pcap"] = _capture([scale * rate for rate in chosen], window, drawn)
    told += [
        f"{count} of {len(rates)} intervals are simulated, for {window:g} s each",
        f"inside an interval packets of {PACKET_BYTES} bytes arrive at random (Poisson); burstier traffic saves less",
    ]
    if scale < 1:
        told.append(f"all rates are simulated at 1/{1 / scale:.3g}, so that fewer packets are enough")
    return Load(files, "traffic-{seed}.pcap", count * window, mean * 8e-6, scale, told)


def _rates(file: Path, content: bytes) -> tuple[list[tuple[float, float]], list[str]]:
    """Seconds and octets per second of each interval of cumulative counters.

    Raises:
        UserError: A line is wrong, or there are fewer than two.
    """
    points: list[tuple[float, float]] = []
    for number, row in _rows(file, content):
        try:
            points.append((_time(row[0]), float(row[1])))
            if not 0 <= points[-1][1] < _LARGEST:
                raise ValueError
        except (IndexError, OverflowError, ValueError):
            if number == 1 and not points:
                continue
            raise UserError(
                "TIME,BYTES was expected: seconds or ISO 8601, and the counter of the interface",
                file=str(file), line=number, source=",".join(row)[:60], hint="2026-11-29T12:00:00,184467440",
            ) from None  # fmt: skip
        if len(points) > 1 and points[-1][0] - points[-2][0] < LEAST_INTERVAL_S:
            raise UserError(
                "the time does not increase by 1 ms or more", file=str(file), line=number, source=",".join(row)[:60]
            )
    if len(points) < 2:
        raise UserError(f"{file}: counters have two lines TIME,BYTES or more", hint="or give a capture (pcap, pcapng)")
    pairs = list(itertools.pairwise(points))
    found = [(new[0] - old[0], (new[1] - old[1]) / (new[0] - old[0])) for old, new in pairs if new[1] >= old[1]]
    told = []
    if len(found) < len(pairs):
        told.append(f"{len(pairs) - len(found)} intervals in which the counter decreased are left out")
    if not found or not any(rate for _, rate in found):
        raise UserError(f"{file}: the counter never increases", hint="give the cumulative octets of the interface")
    return found, told


def _usual(rates: Sequence[tuple[float, float]]) -> float:
    """The interval such that half of the time is in shorter ones, and ``WINDOW_S`` at most."""
    ordered = sorted(seconds for seconds, _ in rates)
    passed = list(itertools.accumulate(ordered))
    return min(WINDOW_S, ordered[bisect.bisect_left(passed, passed[-1] / 2)])


def _merged(rates: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The intervals, each that is shorter than half the usual one joined with the next, or the last with the former.

    A rate between two readings close together is that of a moment, and must not be simulated for a whole window.
    """
    least = _usual(rates) / 2
    found: list[tuple[float, float]] = []
    held, octets = 0.0, 0.0
    for seconds, rate in rates:
        held, octets = held + seconds, octets + seconds * rate
        if held >= least:
            found.append((held, octets / held))
            held, octets = 0.0, 0.0
    if held:
        seconds, rate = found.pop()
        found.append((seconds + held, (seconds * rate + octets) / (seconds + held)))
    return found


def _rows(file: Path, content: bytes) -> Iterator[tuple[int, list[str]]]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(
            f"{file} is neither a capture nor CSV", hint="give a pcap, a pcapng, or lines TIME,BYTES"
        ) from None
    reader = csv.reader(io.StringIO(text))
    try:
        for row in reader:
            if row and not row[0].startswith("#"):
                yield reader.line_num, row
    except csv.Error as error:
        raise UserError(f"it is no CSV: {error}", file=str(file), line=reader.line_num) from None


def _time(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = datetime.fromisoformat(text.strip().replace("Z", "+00:00")).timestamp()
    if not -1e12 < found < 1e12:
        raise ValueError
    return found


def _capture(rates: Sequence[float], window: float, drawn: random.Random) -> bytes:
    """A capture of packets at random times, at these octets per second for a window each."""
    addresses = (b"\x0a\0\0\1", b"\x0a\0\0\2")
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, PACKET_BYTES, 0, 0, 64, 17, 0, *addresses)
    header += struct.pack(">HHHH", 9, 9, PACKET_BYTES - len(header), 0)
    parts = [_HEADER.pack(0xA1B2C3D4, 2, 4, 0, 0, 65535, _RAW)]
    for number, rate in enumerate(rates):
        time, end = number * window, (number + 1) * window
        while rate > 0:
            time += drawn.expovariate(rate / PACKET_BYTES)
            if time >= end:
                break
            parts.append(_RECORD.pack(int(time), int(time % 1 * 1e6), len(header), PACKET_BYTES) + header)
    return b"".join(parts)
