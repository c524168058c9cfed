"""Compare retransmissions with tshark's and tcptrace's on the same captures, and settle differences by packet number.

    tools/env python validation/diagnose/peers.py [SEED]

Simulated captures have a known truth. Labelled traces, in the folder that
ANABRANCH_LABELLED_CAPTURES names, have none: for them each packet is listed that only tshark or
only the diagnosis calls a retransmission. tcptrace (Debian package tcptrace) counts and names no
packets; it is left out if it is not installed.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from anabranch import Scenario
from anabranch.diagnosis.diagnosis import diagnose, directions

from diagnose import editing
from diagnose.causes import CAUSES, POINTS
from diagnose.simulated import comments

KINDS = "tcp.analysis.retransmission or tcp.analysis.fast_retransmission or tcp.analysis.out_of_order"
"""tshark's kinds of retransmission, which differ in the segment's delay. They include the spurious ones."""

CHOSEN = ("random loss", "burst loss", "reordering", "tail loss", "zero window", "capture drops", "bufferbloat")
_TCPTRACE = re.compile(r"rexmt data pkts:\s+(\d+)\s+rexmt data pkts:\s+(\d+)")
MOST_LISTED = 12


@dataclass
class Compared:
    """The frames that each analyser calls retransmissions."""

    name: str
    ours: set[int]
    tshark: set[int]
    tcptrace: int | None
    truth: set[int] | None
    kinds: dict[int, str]
    """The diagnosis's kind of each of its frames, and tshark's kind of the others."""

    def lines(self) -> Iterator[str]:
        """The counts, and each difference."""
        counts = f"ours {len(self.ours)}, tshark {len(self.tshark)}, tcptrace {_shown(self.tcptrace)}"
        yield f"{self.name}: {counts}, truth {_shown(None if self.truth is None else len(self.truth))}"
        for who, frames in (("only ours", self.ours - self.tshark), ("only tshark", self.tshark - self.ours)):
            if not frames:
                continue
            listed = sorted(frames)
            right = ""
            if self.truth is not None:
                count = len(frames & self.truth)
                is_ours = count if who == "only ours" else len(frames) - count
                right = f" (ours is right in {is_ours})"
            told = ", ".join(f"{frame} {self.kinds.get(frame, '')}".strip() for frame in listed[:MOST_LISTED])
            more = f", {len(listed) - MOST_LISTED} more" if len(listed) > MOST_LISTED else ""
            yield f"    {who}: {len(frames)}{right}: packets {told}{more}"


def _shown(count: int | None) -> str:
    return "–" if count is None else str(count)


def tshark(file: Path) -> dict[int, str]:
    """The frames with data that tshark calls retransmitted or out of order."""
    fields = ["tcp.analysis.out_of_order", "tcp.analysis.fast_retransmission", "tcp.analysis.spurious_retransmission"]
    columns = [part for name in ("frame.number", *fields) for part in ("-e", name)]
    done = subprocess.run(
        ["tshark", "-r", str(file), "-Y", f"({KINDS}) and tcp.len > 0", "-T", "fields", *columns],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = {}
    for line in done.stdout.splitlines():
        frame, *marks = line.split("\t")
        words = [name.rsplit(".", 1)[-1] for name, mark in zip(fields, marks, strict=False) if mark]
        found[int(frame)] = words[0] if words else "retransmission"
    return found


def tcptrace(file: Path) -> int | None:
    """Retransmitted packets with data of all connections, as tcptrace counts them."""
    if shutil.which("tcptrace") is None:
        return None
    done = subprocess.run(["tcptrace", "-n", "-l", str(file)], capture_output=True, text=True, check=False)
    pairs = _TCPTRACE.findall(done.stdout)
    return sum(int(a) + int(b) for a, b in pairs) if pairs else None


def compared(name: str, file: Path, truth: set[int] | None = None) -> Compared:
    """The results of all three on one capture."""
    kinds: dict[int, str] = {}
    ours = set()
    for connection in diagnose(file)["connections"]:
        for _, direction in directions(connection):
            for one in direction["retransmissions"]:
                if one["bytes"]:
                    ours.add(one["packet"])
                    kinds[one["packet"]] = f"({one['trigger']}, {one['evidence']})"
    theirs = tshark(file)
    for frame in theirs.keys() - ours:
        kinds[frame] = f"({theirs[frame]})"
    return Compared(name, ours, set(theirs), tcptrace(file), truth, kinds)


def pcap(content: bytes) -> bytes:
    """A capture of the simulator as pcap: tcptrace does not read pcapng."""
    written = bytearray(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101))
    for _, block in editing.frames(content):
        (length,) = struct.unpack_from("<I", block.content, 24)
        seconds, nanos = divmod(block.time, 10**9)
        written += struct.pack("<IIII", seconds, nanos, len(block.packet), length) + block.packet
    return bytes(written)


def simulated(seed: int) -> Iterator[Compared]:
    """Compare captures whose truth is known."""
    for cause in CAUSES:
        if cause.name not in CHOSEN:
            continue
        text = cause.text(random.Random(f"{cause.name} {seed}"))
        result = Scenario.from_text(text, file=f"{cause.name}.toml").run(captures=list(POINTS.values()))
        for point, link in POINTS.items():
            content = result.pcapng(link)
            if cause.edit is not None:
                content = cause.edit(content, random.Random(f"{cause.name} {seed} {point}"))
            with tempfile.TemporaryDirectory() as folder:
                source, file = Path(folder) / "x.pcapng", Path(folder) / "x.pcap"
                source.write_bytes(content)
                file.write_bytes(pcap(content))
                with_data = {
                    frame for frame, block in editing.frames(content) if editing.Segment.of(block.packet).payload > 0
                }
                yield compared(f"{cause.name}, at the {point}", file, set(comments(source)) & with_data)


def main() -> int:
    """Print all comparisons and their sums."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    total: Counter[str] = Counter()
    for one in simulated(seed):
        truth = one.truth or set()
        total.update(
            captures=1, truth=len(truth), ours_right=len(one.ours & truth), tshark_right=len(one.tshark & truth)
        )
        total.update(ours_false=len(one.ours - truth), tshark_false=len(one.tshark - truth))
        print("\n".join(one.lines()))
    print(", ".join(f"{name} {count}" for name, count in total.items()))
    folder = os.environ.get("ANABRANCH_LABELLED_CAPTURES")
    if folder:
        total = Counter()
        for trace in sorted((Path(folder) / "traces").glob("*.pcap")):
            one = compared(trace.stem, trace)
            total.update(traces=1, ours=len(one.ours), tshark=len(one.tshark), both=len(one.ours & one.tshark))
            total.update(tcptrace=one.tcptrace or 0)
            if one.ours != one.tshark:
                print("\n".join(one.lines()))
        print(", ".join(f"{name} {count}" for name, count in total.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
