"""Transfers of known congestion controls inside a guest kernel, each captured at the sender and at the receiver.

    python control_guest.py SPECIFICATION

``control_runs.py`` runs this program in Linux in virtual time, as root of the guest. SPECIFICATION is a
JSON text: the path, and the controls by name. For each control two hosts and a router are network
namespaces with veth devices between them. The router has the bottleneck (TBF with a queue of packets) and
the delay of acknowledgments (netem). Each capture is a ring of packet(7), so that no program runs while
packets pass. The program writes ``NAME-sender.pcap`` and ``NAME-receiver.pcap`` to its working directory.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

SNAPLEN = 96
FRAME, BLOCK, BLOCKS = 192, 65_536, 600
"""A frame of the ring holds the headers of one packet; a frame does not cross blocks."""
SOL_PACKET, PACKET_RX_RING, PACKET_VERSION, TPACKET_V2 = 263, 5, 10, 1
ETH_P_ALL = 3
PORT = 5001
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
BUFFERS = {"ipv4/tcp_rmem": "4096 16777216 33554432", "ipv4/tcp_wmem": "4096 131072 33554432"}
"""Buffers that never limit the sender."""
WAKE = 1 << 20
"""Octets that wake the receiving program."""


def run(*words: str) -> None:
    """Run a program that must succeed."""
    subprocess.run(words, check=True)


class Capture:
    """The headers of all packets of a device."""

    def __init__(self, device: str) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        request = struct.pack("=4I", BLOCK, BLOCKS, FRAME, BLOCK // FRAME * BLOCKS)
        self.socket.setsockopt(SOL_PACKET, PACKET_RX_RING, request)
        self.ring = mmap.mmap(self.socket.fileno(), BLOCK * BLOCKS)
        self.socket.bind((device, ETH_P_ALL))

    def write(self, file: Path) -> None:
        """Write the packets as a capture file with times in nanoseconds."""
        parts = [struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAPLEN, 1)]
        for block in range(BLOCKS):
            for index in range(BLOCK // FRAME):
                at = block * BLOCK + index * FRAME
                status, length, kept, start, _, seconds, nanos = struct.unpack_from("=IIIHHII", self.ring, at)
                if not status & 1:
                    file.write_bytes(b"".join(parts))
                    return
                kept = min(kept, SNAPLEN)
                parts += (
                    struct.pack("=4I", seconds, nanos, kept, length),
                    self.ring[at + start : at + start + kept],
                )
        raise SystemExit(f"{file}: the ring is full")


def host(name: str, device: str, own: str, router: str, work: Callable[[Capture], None]) -> tuple[int, int]:
    """Start a host in a new namespace; return its process and the descriptor that starts its work."""
    begin, go = os.pipe()
    ready, told = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(go)
            if _libc.unshare(_CLONE_NEWNET) != 0:
                raise OSError("no new network namespace")
            os.write(told, b"x")
            if not os.read(begin, 1):
                os._exit(1)
            for setting, value in BUFFERS.items():
                (Path("/proc/sys/net") / setting).write_text(value)
            run("ip", "addr", "add", f"{own}/24", "dev", device)
            run("ip", "link", "set", device, "up")
            run("ip", "route", "add", "default", "via", router)
            work(Capture(device))
        except BaseException as error:
            print(name, error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    os.close(told)
    os.read(ready, 1)
    os.close(ready)
    os.close(begin)
    return process, go


def whole(step: Callable[[], object], ends: float) -> None:
    """Repeat a step in a thread, and return at a time; the process ends without waiting for the thread."""

    def repeat() -> None:
        with suppress(OSError):
            while step() != 0:
                pass

    threading.Thread(target=repeat, daemon=True).start()
    time.sleep(ends - time.monotonic())


def transfer(number: int, name: str, control: str, path: dict[str, Any]) -> None:
    """Run and capture one transfer."""
    a, b = f"10.{number}.1", f"10.{number}.2"
    ends = time.monotonic() + path["duration_s"] + 1

    def send(capture: Capture) -> None:
        time.sleep(0.2)
        peer = socket.socket()
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        peer.connect((f"{b}.2", PORT))
        data = bytes(64 << 20)
        whole(lambda: peer.sendall(data), ends)
        capture.write(Path(f"{name}-sender.pcap"))

    def receive(capture: Capture) -> None:
        listener = socket.socket()
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        listener.bind((f"{b}.2", PORT))
        listener.listen()
        peer = listener.accept()[0]
        # The program wakes seldom, and below this amount each second segment is acknowledged.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, WAKE)
        data = bytearray(2 * WAKE)
        whole(lambda: peer.recv_into(data), ends + 0.5)
        capture.write(Path(f"{name}-receiver.pcap"))

    hosts = [
        host("sender", f"a{number}", f"{a}.2", f"{a}.1", send),
        host("receiver", f"b{number}", f"{b}.2", f"{b}.1", receive),
    ]
    for letter, net, (process, _) in (("a", a, hosts[0]), ("b", b, hosts[1])):
        near, far = f"r{letter}{number}", f"{letter}{number}"
        run("ip", "link", "add", near, "gso_max_segs", "1", "type", "veth", "peer", "name", far)
        run("ip", "link", "set", far, "gso_max_segs", "1")
        run("ip", "link", "set", far, "netns", str(process))
        run("ip", "addr", "add", f"{net}.1/24", "dev", near)
        run("ip", "link", "set", near, "up")
    run("tc", "qdisc", "add", "dev", f"ra{number}", "root", "netem", "delay", f"{path['rtt_ms']}ms", "limit", "100000")
    out = ("tc", "qdisc", "add", "dev", f"rb{number}")
    rate = f"{path['rate_mbit_s']}mbit"
    run(*out, "root", "handle", "1:", "tbf", "rate", rate, "burst", "1600", "limit", "100000000")
    inner = (*out, "parent", "1:1", "handle", "2:")
    limit = str(path["buffer_packets"])
    if path["marks_ms"]:
        run(
            *inner,
            "codel",
            "limit",
            limit,
            "target",
            "100s",
            "interval",
            "100s",
            "ecn",
            "ce_threshold",
            f"{path['marks_ms']}ms",
        )
    elif path["loss"]:
        run(*inner, "netem", "limit", limit, "loss", f"{100 * path['loss']}%")
    else:
        run(*inner, "pfifo", "limit", limit)
    for _, go in reversed(hosts):
        os.write(go, b"x")
        os.close(go)
    for process, _ in hosts:
        os.waitpid(process, 0)


def main() -> None:
    """Run all transfers of the specification."""
    path = json.loads(sys.argv[1])
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    for number, (name, control) in enumerate(path["controls"].items(), 1):
        transfer(number, name, control, path)


if __name__ == "__main__":
    main()
