"""TCP transfers between two namespaces.

`load.py send PROTOCOL ADDRESS CC` sends the requested number of octets on each connection. `load.py receive PROTOCOL
ADDRESS FLOWS AMOUNT` requests that number of octets on each flow, or receives for a time (`10s`), and prints the
goodput in Mbit/s. The protocol is `tcp` or `mptcp`.
"""

from __future__ import annotations

import socket
import sys
import threading
import time

PORT = 7_007
CHUNK = 1 << 16
PROTOCOLS = {"tcp": socket.IPPROTO_TCP, "mptcp": 262}
"""`IPPROTO_MPTCP` of Linux."""


def send(protocol: str, address: str, control: str) -> None:
    """Serve until the process is ended."""
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, PROTOCOLS[protocol])
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Further subflows use the other addresses.
    server.bind((address if protocol == "tcp" else "", PORT))
    server.listen(64)
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    print("ready", flush=True)

    def serve(connection: socket.socket) -> None:
        octets = int(connection.recv(32))
        data = bytes(CHUNK)
        try:
            while octets > 0:
                octets -= connection.send(data[:octets])
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            # The receiver has had enough.
            return

    while True:
        threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()


def receive(protocol: str, address: str, flows: int, amount: str) -> float:
    """Return the goodput in Mbit/s."""
    seconds = float(amount[:-1]) if amount.endswith("s") else None
    octets = 1 << 40 if seconds else int(amount)
    begin = time.monotonic()
    until = begin + (seconds or 600)
    received = [0] * flows

    def take(flow: int) -> None:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, PROTOCOLS[protocol])
        connection.settimeout(60)
        connection.connect((address, PORT))
        connection.sendall(str(octets).encode())
        connection.settimeout(1)
        while time.monotonic() < until:
            try:
                data = connection.recv(CHUNK)
            except TimeoutError:
                continue
            if not data:
                return
            received[flow] += len(data)

    threads = [threading.Thread(target=take, args=(flow,)) for flow in range(flows)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(received) * 8e-6 / (time.monotonic() - begin)


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(*sys.argv[2:])
    else:
        print(receive(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]))
