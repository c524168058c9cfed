"""A client and a server as programs of hosts, for tests live and in a guest."""

from __future__ import annotations

import json
import sys
from pathlib import Path

PATH = """
duration = "20 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "10 ms"
"""

FLOW = """
[flow.main]
from = "A"
to = "B"
"""

SERVER = """
import socket, sys
listener = socket.create_server((sys.argv[1], 7), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
for _ in range(int(sys.argv[2])):
    peer = listener.accept()[0]
    print("server", peer.getsockopt(6, 13, 16).rstrip(b"\\0").decode(), peer.getpeername()[0], file=sys.stderr)
    while peer.recv(65536):
        pass
    peer.close()
"""
"""Prints the congestion control of each connection (TCP_CONGESTION), and the client's address."""

CLIENT = """
import socket, sys, time
for attempt in range(200):
    try:
        peer = socket.create_connection((sys.argv[1], 7), timeout=20)
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
print("client", peer.getsockopt(6, 13, 16).rstrip(b"\\0").decode(), peer.getpeername()[0], file=sys.stderr)
peer.sendall(bytes(int(sys.argv[2])))
peer.shutdown(1)
peer.recv(1)
"""


def host(name: str, *words: str) -> str:
    """A host that runs a Python program."""
    return f"\n[host.{name}]\nexec = {json.dumps([sys.executable, '-c', *words])}\n"


PAIR = host("A", CLIENT, "B", "1000000") + host("B", SERVER, "{B}", "1")


def controls() -> tuple[list[str], list[str]]:
    """Congestion controls that any namespace may use as its default, and the other available ones."""
    setting = "/proc/sys/net/ipv4/tcp_{}_congestion_control"
    allowed, there = (Path(setting.format(name)).read_text().split() for name in ("allowed", "available"))
    return allowed, [name for name in there if name not in allowed]
