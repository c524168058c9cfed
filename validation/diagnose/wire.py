"""Carry packets between two network namespaces with one planted fault: the kernel's TCP at both ends, three captures.

    python validation/diagnose/wire.py CAUSE SEED FOLDER

Writes ``sender.pcap``, ``middle.pcap`` and ``receiver.pcap`` into FOLDER, and ``truth.json``: the
outcome of each packet, and the sender's ``TCP_INFO``. It needs root. No traffic leaves the two
namespaces, which end with the process.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from diagnose.truth import Acks, Sent, needed
from diagnose.wire_causes import setup_of
from diagnose.wire_hosts import host
from diagnose.wire_path import ACK, MSS, OUTSIDE, RECEIVER, SENDER, SYN, Packet, Wire
from kernel import namespaces

TIMESTAMPS = Path("/proc/sys/net/ipv4/tcp_timestamps")
ECN = Path("/proc/sys/net/ipv4/tcp_ecn")


def needs(packets: list[Packet]) -> list[dict[str, Any]]:
    """Each packet of the sender with data, and whether it was a needed retransmission."""
    acks = sorted(packet.delivered for packet in packets if not packet.forward and packet.delivered is not None)
    first: int | None = None
    data, segments = [], []
    for packet in packets:
        if packet.forward and packet.flags & SYN:
            first = packet.seq + 1
        if packet.forward and packet.payload and first is not None:
            start = (packet.seq - first) % 2**32
            data.append(packet)
            segments.append(Sent(start, start + packet.payload, packet.delivered))
    # Acknowledgments and SACK blocks have the receiver's numbers. Its SYN-ACK acknowledges the sender's SYN.
    told, first = Acks(), None
    for packet in packets:
        if packet.forward:
            continue
        header = (packet.made[0] & 15) * 4
        if first is None and packet.flags & SYN:
            (first,) = struct.unpack_from(">I", packet.made, header + 8)
        if first is not None:
            told.add(packet.sent, packet.made, first)
    verdicts = needed(segments, told)
    rows = []
    position = highest = 0
    for packet, segment, verdict in zip(data, segments, verdicts, strict=True):
        while position < len(acks) and acks[position] <= packet.sent:
            position += 1
        rows.append(
            {"packet": packet.number, "seq": segment.start, "bytes": packet.payload, "again": segment.start < highest,
             "needed": verdict, "sent": packet.sent, "dropped": packet.dropped,
             "since_ack": packet.sent - acks[position - 1] if position else None}
        )  # fmt: skip
        highest = max(highest, segment.end)
    return rows


def unasked(packets: list[Packet]) -> float:
    """Seconds limited by the sender's application: all data acknowledged, window open, no packet sent.

    They count from the last packet that reached the host, so that the time before a request belongs
    to the peer.
    """
    back = sorted(
        (packet for packet in packets if not packet.forward and packet.delivered is not None),
        key=lambda packet: packet.delivered or 0.0,
    )
    waited = 0.0
    position = acked = end = scale = 0
    latest: Packet | None = None
    first: int | None = None
    for packet in packets:
        if not packet.forward:
            continue
        if packet.flags & SYN:
            first = packet.seq + 1
        while position < len(back) and (back[position].delivered or 0.0) <= packet.sent:
            latest = back[position]
            scale = latest.scale if latest.flags & SYN else scale
            if latest.flags & ACK and first is not None:
                acked = max(acked, (latest.ack - first) % 2**32)
            position += 1
        if not packet.payload or first is None:
            continue
        start = (packet.seq - first) % 2**32
        # A host does not send into less than a segment (RFC 9293 §3.8.6.2.1).
        if start >= end and acked >= end and latest is not None and latest.window << scale >= MSS:
            waited += packet.sent - (latest.delivered or packet.sent)
        end = max(end, start + packet.payload)
    return waited


def main() -> int:
    """Make the hosts, carry their packets, write the captures and the truth."""
    cause, seed, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    rng = random.Random(f"{cause} {seed}")
    namespaces.come_first()
    setup, asks = setup_of(cause, rng)
    pipes = [multiprocessing.Pipe() for _ in range(2)]
    ends = []
    children = []
    for is_sender in (True, False):
        namespaces.enter_new()
        own, peer = (SENDER, RECEIVER) if is_sender else (RECEIVER, SENDER)
        ends.append(namespaces.open_device(own, peer))
        TIMESTAMPS.write_text(str(int(setup.timestamps)))
        if setup.ecn:
            ECN.write_text("1")
        if not is_sender:
            subprocess.run(["ip", "route", "add", OUTSIDE, "dev", namespaces.DEVICE], check=True)
        options = setup.send if is_sender else setup.receive
        child = multiprocessing.Process(
            target=host,
            args=(pipes[0 if is_sender else 1][1], os.getpid(), options),
            kwargs={"is_sender": is_sender, "listens": is_sender == asks, "duration": setup.duration},
            daemon=True,
        )
        child.start()
        children.append(child)
    listener, opener = (pipes[0][0], pipes[1][0]) if asks else (pipes[1][0], pipes[0][0])
    listener.recv()
    wire = Wire(setup, (ends[0], ends[1]), rng)
    opener.send("go")
    info: list[Any] = []

    def over(now: float) -> bool:
        if not info and pipes[0][0].poll():
            info.append(pipes[0][0].recv())
        return bool(info) or now - wire.start > setup.duration + 4

    wire.run(over)
    for child in children:
        child.terminate()
    for point, content in wire.files.items():
        (folder / f"{point}.pcap").write_bytes(content)
    told = info[0] if info and info[0] else None
    truth = {
        "rows": needs(wire.packets),
        "frames": wire.frames,
        "tcp_info": dict(zip(("busy_us", "rwnd_us", "sndbuf_us"), told, strict=True)) if told else None,
        "duration_s": time.monotonic() - wire.start,
        "rtt_s": 2 * (setup.near + setup.far),
        "queue_bdp": setup.queue,
        "unasked_s": unasked(wire.packets),
        "unseen_at": setup.unseen_at,
    }
    (folder / "truth.json").write_text(json.dumps(truth))
    return 0


if __name__ == "__main__":
    sys.exit(main())
