"""``tc`` lines with netem, converted to a scenario and run in the simulator over given arrivals."""

from __future__ import annotations

import math
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch import Scenario
from anabranch.convert import Options, convert

from kernel.arrivals import Arrival

_RAW_IP, _NANOSECONDS = 101, 0xA1B23C4D
_LONGEST_S = 30


@dataclass(frozen=True)
class Simulated:
    """Outcomes of a run.

    Attributes:
        arrived: Nanoseconds at which each packet reached the far end; ``None`` if it was lost.
        notes: Settings that the conversion left out.
    """

    arrived: list[int | None]
    notes: tuple[str, ...]


def capture(arrivals: Sequence[Arrival]) -> bytes:
    """The arrivals as a capture of raw IP packets."""
    head = struct.pack("<IHHiIII", _NANOSECONDS, 2, 4, 0, 0, 65535, _RAW_IP)
    records = []
    for at_ns, size, *_ in arrivals:
        packet = struct.pack(
            "!BBHHHBBH4s4sHHHH", 0x45, 0, size, 0, 0, 64, 17, 0, b"\x0a\0\0\x01", b"\x0a\0\0\x02", 1, 2, size - 20, 0
        )
        records.append(struct.pack("<IIII", at_ns // 10**9, at_ns % 10**9, len(packet), size) + packet)
    return head + b"".join(records)


def simulate(lines: Sequence[str], arrivals: Sequence[Arrival], seed: int = 1) -> Simulated:
    """Convert ``tc`` lines, and send the arrivals over the link that they describe."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "path.sh"
        script.write_text("".join(f"tc {line}\n" for line in lines), "utf-8")
        done = convert(script, Options(target="scenario"))
        (folder / "arrivals.pcap").write_bytes(capture(arrivals))
        text = done.content.decode().replace('duration = "30 s"', f'duration = "{_LONGEST_S} s"')
        text += 'protocol = "udp"\nworkload = { kind = "replay", file = "arrivals.pcap" }\n'
        scenario = folder / "path.toml"
        scenario.write_text(text, "utf-8")
        result = Scenario.from_file(scenario).run(seed=seed, packets=True)
        packets = result.table("packets")
        sent, received = (list(packets[name]) for name in ("sent_s", "received_s"))
    # A replay begins with its first packet.
    shift = arrivals[0].at_ns - round(sent[0] * 1e9)
    arrived = [None if at is None or math.isnan(at) else round(at * 1e9) + shift for at in received]
    return Simulated(arrived, tuple(done.notes))
