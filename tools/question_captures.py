"""Make the captures of the guide's ten questions, and renew the answers that the guide quotes.

    python tools/question_captures.py              # the guide's answers, from the existing captures
    python tools/question_captures.py --captures   # the captures as well

Each capture has its scenario in `docs/captures`. Two captures are edited: frames are removed from
one, and a RST is added to another, because the simulator has no capture that drops and no
middlebox. The capture of QUIC is computed here: the simulator has no QUIC.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from anabranch import Scenario, diagnose
from anabranch.diagnosis.text import detail, overview

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("docs/captures")
GUIDE = ROOT / "docs/guides/diagnose.md"
_BLOCK = re.compile(
    r"(^```sh\nanabranch diagnose (docs/captures/\S+)( --connection 1)?\n```\n\n```text\n)(.*?)(^```$)", re.M | re.S
)
_SNAP = 80
"""Bytes kept of each packet: its headers."""
_ENHANCED_PACKET = 6
_MOST_BYTES = 100_000


@dataclass(frozen=True)
class Question:
    """A capture of the guide: the link where it is made, and how it is edited."""

    link: str = "lan"
    edit: Callable[[bytes], bytes] | None = None


def blocks(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The blocks of a pcapng file, with their types."""
    at = 0
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        yield kind, content[at : at + length]
        at += length


def drop_frames(content: bytes) -> bytes:
    """Remove three runs of frames, as a capture with a full buffer would."""
    gone = {*range(400, 430), *range(900, 908), *range(1500, 1560)}
    kept, number = [], 0
    for kind, block in blocks(content):
        number += kind == _ENHANCED_PACKET
        if kind != _ENHANCED_PACKET or number not in gone:
            kept.append(block)
    return b"".join(kept)


def reset(content: bytes) -> bytes:
    """End the capture after 600 frames with a RST in the name of the server."""
    kept, number, last = [], 0, b""
    for kind, block in blocks(content):
        number += kind == _ENHANCED_PACKET
        if number > 600:
            break
        kept.append(block)
        # The second interface captures the server's packets. Its last acknowledgment is changed
        # into a RST.
        if kind == _ENHANCED_PACKET and struct.unpack_from("<I", block, 8)[0] == 1:
            last = block
    changed = bytearray(last)
    header = (changed[28] & 15) * 4
    changed[28 + 8] = 251
    changed[28 + header + 13] = 0x14
    return b"".join([*kept, bytes(changed)])


def quic() -> bytes:
    """A download over QUIC with the spin bit, captured at the client: 50 octets of each packet.

    The path has 5 Mbit/s, a round trip of 40 ms, and a queue of at most 50 ms, which a window of 50
    packets fills.
    """
    one_way, packet_us, window, end = 20_000, 1960, 50, 3_000_000
    frames: list[tuple[int, bool, int, bytes]] = [
        (0, True, 1200, _long(0xC0)),
        (41_000, False, 1200, _long(0xC0)),
        (43_000, False, 1200, _long(0xE0)),
        (43_500, True, 1200, _long(0xC0)),
    ]
    # The server sends two packets for each that the client acknowledges until the window is full, then one.
    known: list[tuple[int, bool]] = [(43_600 + one_way, False)]
    free = known[0][0]
    frames.append((43_600, True, 40, bytes([0x40] * 9)))
    at = in_flight = 0
    while at < len(known):
        time, spin = known[at]
        count = 10 if at == 0 else 2 if in_flight < window else 1
        in_flight += count - (at > 0)
        for _ in range(count):
            free = max(free, time) + packet_us
            arrival = free + one_way
            if arrival > end:
                break
            frames.append((arrival, False, 1197, bytes([0x60 if spin else 0x40] * 9)))
            frames.append((arrival + 40, True, 35, bytes([0x40 if spin else 0x60] * 9)))
            known.append((arrival + 40 + one_way, not spin))
        at += 1
    content = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 50, 101)
    for time, is_client, length, octets in sorted(frames, key=lambda frame: frame[0]):
        ends = [(bytes([192, 0, 2, 1]), 51201), (bytes([192, 0, 2, 2]), 443)]
        (source, from_port), (target, to_port) = ends if is_client else ends[::-1]
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 28 + length, 0, 0x4000, 64, 17, 0) + source + target
        kept = (ip + struct.pack(">HHHH", from_port, to_port, 8 + length, 0) + octets)[:50]
        content += struct.pack("<IIII", time // 1_000_000, time % 1_000_000, len(kept), 28 + length) + kept
    return content


def _long(first: int) -> bytes:
    """The start of a long header of QUIC version 1, with connection IDs of eight octets."""
    return bytes([first, 0, 0, 0, 1, 8, *[7] * 8, 8, *[9] * 8])


QUESTIONS = {
    "client": Question(),
    "reordering": Question(),
    "capture-drops": Question(edit=drop_frames),
    "before": Question(link="wan"),
    "long-path": Question(),
    "slower": Question(),
    "zero-window": Question(),
    "large": Question(),
    "reset": Question(edit=reset),
    "pauses": Question(),
}


def made(name: str) -> bytes:
    """The capture of a question, compressed."""
    question = QUESTIONS[name]
    scenario = Scenario.from_file(ROOT / FOLDER / f"{name}.toml")
    content = scenario.run(captures=[question.link], snap_length=_SNAP).pcapng(question.link)
    if question.edit is not None:
        content = question.edit(content)
    return gzip.compress(content, mtime=0)


def answer(file: str, *, in_detail: bool) -> str:
    """The command's output for a capture."""
    found = diagnose(file)
    lines = detail(found.connection(1)) if in_detail else overview(found)
    return "".join(f"{line}\n" for line in lines)


def renewed(text: str) -> str:
    """The guide with current answers."""
    return _BLOCK.sub(lambda one: one[1] + answer(one[2], in_detail=bool(one[3])) + one[5], text)


def main() -> None:
    """Renew the guide, and the captures if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captures", action="store_true", help="make the captures, too")
    options = parser.parse_args()
    os.chdir(ROOT)
    if options.captures:
        for name in QUESTIONS:
            content = made(name)
            if len(content) > _MOST_BYTES:
                sys.exit(f"{name}: {len(content):,} bytes compressed; at most {_MOST_BYTES:,}")
            (FOLDER / f"{name}.pcapng.gz").write_bytes(content)
        (FOLDER / "quic.pcap.gz").write_bytes(gzip.compress(quic(), mtime=0))
    GUIDE.write_text(renewed(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
