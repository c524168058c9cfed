"""One flow of the running kernel's TCP over the path: prints its figures as JSON.

    python validation/kernel/run.py PATH_PROGRAM CONTROL INTERVAL

There are two namespaces: the receiver's, where a child reads, and the sender's. The path's program
holds the other ends of their devices.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import astuple, fields
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from kernel import namespaces, tcp_info
from kernel.tcp_info import Sample

SENDER, RECEIVER, PORT = "10.9.1.1", "10.9.1.2", 5201
DURATION = 10.0
"""Seconds from the first SYN."""
SAMPLES = 0.01
"""Seconds between two readings."""
WRITE = 128 * 1024
"""Bytes of one write of the sending application, and maximum of one read of the receiving one."""
PATH = ("100e6", "15000", "10e6", "5000", "100")
"""Access (bit/s, µs), bottleneck (bit/s, µs), packets of the bottleneck's queue with the one in transmission."""


def _receive(ready: Connection, parent: int) -> None:
    """Accept one connection; report the bytes received over time, and the counters."""
    namespaces.end_with_parent(parent)
    listening = socket.create_server((RECEIVER, PORT))
    ready.send(None)
    connection, _ = listening.accept()
    arrived, total = [], 0
    buffer = bytearray(WRITE)
    with suppress(ConnectionResetError):
        while count := connection.recv_into(buffer):
            total += count
            arrived.append((time.monotonic(), total))
    ready.send((arrived, _counters()))


def _write(connection: socket.socket) -> None:
    data = bytes(WRITE)
    with suppress(OSError):
        while True:
            connection.sendall(data)


def _send(control: str) -> tuple[float, list[Sample]]:
    """Send for the whole duration; return the start time and the samples."""
    connection = socket.socket()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    # Closing sends a RST: the run is over.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    start = time.monotonic()
    connection.connect((RECEIVER, PORT))
    threading.Thread(target=_write, args=(connection,), daemon=True).start()
    samples = []
    tick = time.monotonic() - start
    while tick < DURATION:
        time.sleep(max(0.0, start + tick - time.monotonic()))
        samples.append(tcp_info.read(connection, time.monotonic() - start))
        tick += SAMPLES
    connection.shutdown(socket.SHUT_RDWR)
    connection.close()
    return start, samples


def _counters() -> dict[str, int]:
    """The non-zero counters of the namespace's TCP (``/proc/net/netstat``)."""
    lines = [line.split() for line in Path("/proc/self/net/netstat").read_text().splitlines()]
    names, values = next((a, b) for a, b in zip(lines[::2], lines[1::2], strict=True) if a[0] == "TcpExt:")
    return {name: int(value) for name, value in zip(names[1:], values[1:], strict=True) if value != "0"}


def run(program: str, control: str, interval: int) -> dict[str, object]:
    """Make the hosts, run the flow, and return its figures."""
    namespaces.come_first()
    ours, theirs = multiprocessing.Pipe()
    namespaces.enter_new()
    receiver_end = namespaces.open_device(RECEIVER, SENDER)
    child = multiprocessing.Process(target=_receive, args=(theirs, os.getpid()), daemon=True)
    child.start()
    ours.recv()
    namespaces.enter_new()
    sender_end = namespaces.open_device(SENDER, RECEIVER)
    with subprocess.Popen(
        [program, *PATH, str(interval), str(sender_end), str(receiver_end)],
        pass_fds=(sender_end, receiver_end),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as path:
        if path.stdout is None or path.stdout.readline() != "ready\n":
            raise RuntimeError("the path's program did not start")
        start, samples = _send(control)
        arrived, receivers = ours.recv()
        path.terminate()
        figures = json.loads(path.stdout.read())
    received = max((total for at, total in arrived if at <= start + DURATION), default=0)
    return {
        "goodput_mbit_s": received * 8 / DURATION / 1e6,
        "arrivals": [(round(at - start, 4), total) for at, total in arrived],
        "path": figures,
        "counters": _counters(),
        "receivers_counters": receivers,
        "fields": [field.name for field in fields(Sample)],
        "samples": [astuple(sample) for sample in samples],
    }


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    namespaces.end_with_parent(os.getppid())
    json.dump(run(sys.argv[1], sys.argv[2], int(sys.argv[3])), sys.stdout)
