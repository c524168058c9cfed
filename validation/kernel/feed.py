"""In the guest: packets enter and leave a device with a queueing discipline at given times.

    python feed.py FOLDER

The folder has ``cases.json``: for each case the ``tc`` lines and the arrivals. The program writes
``outcomes.json`` into it. It needs only the standard library.

The device is a TUN. It has no link header, so that a packet's length is that of its IP packet. One
packet socket puts packets into the discipline. Another one receives each packet that the discipline
hands to the device, with the kernel's timestamp.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shlex
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

DEVICE = "tun0"
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_SO_TIMESTAMPNS, _SO_SNDBUFFORCE, _SO_RCVBUFFORCE, _ETH_P_IP, _ETH_P_ALL, _PACKET_OUTGOING = (
    35,
    32,
    33,
    0x0800,
    0x0003,
    4,
)
_PR_SET_TIMERSLACK = 29
_HEADERS = 28
_BUFFER = 1 << 29
BEGIN_S = 2
"""Seconds until time 0 of the arrivals, at most one less. PIE first updates half a second after its creation."""


def packet(number: int, arrival: list[int], hosts: list[int]) -> bytes:
    """An IPv4 packet with its number. Flows differ in ports, and in addresses unless they share hosts."""
    _, size, flow, ecn, dscp = arrival
    ip = struct.pack(
        "!BBHHHBBH4s4s", 0x45, dscp << 2 | ecn, size, number & 0xFFFF, 0, 64, 17, 0,
        bytes([10, 0, 0, 1 + hosts[0]]), bytes([10, 0, 1, 1 + hosts[1]]),
    )  # fmt: skip
    folded = sum(struct.unpack("!10H", ip))
    while folded >> 16:
        folded = (folded & 0xFFFF) + (folded >> 16)
    ip = ip[:10] + struct.pack("!H", ~folded & 0xFFFF) + ip[12:]
    udp = struct.pack("!HHHH", 1000 + flow, 2000 + flow, size - 20, 0)
    return (ip + udp + struct.pack("!I", number)).ljust(size, b"\0")


def device() -> int:
    """Make the device and bring it up."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH", DEVICE.encode(), _IFF_TUN | _IFF_NO_PI))
    Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    subprocess.run(["ip", "link", "set", DEVICE, "mtu", "1500", "up"], check=True)
    return tun


def tap() -> socket.socket:
    """A socket that receives the discipline's departures."""
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
    made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    made.bind((DEVICE, _ETH_P_ALL))
    made.setblocking(False)
    return made


def feed(case: dict[str, Any], progress: Path) -> dict[str, Any]:
    """Send the arrivals of a case through its discipline.

    Returns:
        ``left``: number, nanosecond and ECN field of each packet that left. ``refused``: numbers of packets that the
        discipline refused. ``late_ns``: the largest lateness of an arrival. ``stats``: counters of ``tc`` over time.
    """
    tun = device()
    for line in case["tc"]:
        done = subprocess.run(["tc", *shlex.split(line)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            os.close(tun)
            return {"error": f"tc {line}: {done.stderr.strip()}"}
    taken = tap()
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    # The send buffer must hold the discipline's backlog; a blocked sender would be late.
    sender.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER)
    to = (DEVICE, _ETH_P_IP)
    arrivals = case["arrivals"]
    hosts = case["hosts"]
    packets = [
        packet(number, arrival, hosts[arrival[2]] if hosts else [arrival[2]] * 2)
        for number, arrival in enumerate(arrivals)
    ]
    refused, stats, late = [], [], 0
    every = case.get("stats_ns", 0)
    watched = 0
    begin = time.clock_gettime_ns(time.CLOCK_REALTIME) + BEGIN_S * 10**9
    begin -= begin % 10**9
    for number, (at, *_) in enumerate(arrivals):
        while every and watched <= at:
            _sleep_until(begin + watched)
            stats.append([watched, _stats()])
            watched += every
        _sleep_until(begin + at)
        late = max(late, time.clock_gettime_ns(time.CLOCK_REALTIME) - begin - at)
        try:
            sender.sendto(packets[number], to)
        except OSError:
            refused.append(number)
        if number % 500 == 0:
            progress.write_text(f"{number / len(arrivals):.3f}")
    _sleep_until(begin + arrivals[-1][0] + case["drain_ns"])
    stats.append([arrivals[-1][0] + case["drain_ns"], _stats()])
    left = []
    while True:
        try:
            data, ancillary, _, address = taken.recvmsg(2048, 64)
        except BlockingIOError:
            break
        if address[2] != _PACKET_OUTGOING or len(data) < _HEADERS + 4:
            continue
        seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
        (number,) = struct.unpack_from("!I", data, _HEADERS)
        left.append([number, seconds * 10**9 + nanoseconds - begin, data[1] & 3])
    for opened in (taken, sender):
        opened.close()
    os.close(tun)
    return {"left": left, "refused": refused, "late_ns": late, "stats": stats}


def _sleep_until(at: int) -> None:
    while (left := at - time.clock_gettime_ns(time.CLOCK_REALTIME)) > 0:
        time.sleep(left / 1e9)


def _stats() -> Any:
    shown = subprocess.run(
        ["tc", "-s", "-j", "qdisc", "show", "dev", DEVICE], capture_output=True, text=True, check=True
    )
    return json.loads(shown.stdout)


def main(folder: Path) -> None:
    """Feed all cases."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    cases = json.loads((folder / "cases.json").read_text())
    outcomes = [feed(case, folder / "progress") for case in cases]
    (folder / "outcomes.json").write_text(json.dumps(outcomes))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
