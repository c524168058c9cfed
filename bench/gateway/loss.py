"""Residual loss of flows with a deadline over paths with random losses: python bench/gateway/loss.py.

Runs as root, after `cargo build --profile dist -p anabranch-gatewayd`. The live engine carries two paths of 50
Mbit/s with one-way delays of 250 and 280 ms that lose 5 % towards the receiver, at random or in bursts of four on
average. Four UDP flows send a packet of 500 octets each 4 ms. After 20 s the packets of the next seconds count. A
packet that takes longer than 680 ms counts as lost, so that a retransmission is too late. Redundancy is packets of
error correction per packet.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import struct
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from failover import STAMPS, socket_of
from network import (
    ENDS,
    INNER,
    Gateways,
    check,
    engine,
    gateway_argument,
    gateways,
    load_average,
    spaces,
    temporary,
    wan,
)

DELAYS = ("250 ms", "280 ms")
LOSSES = {
    "random": ({"kind": "bernoulli-loss", "rate": 0.05}, 0.001, 0.133),
    "bursts of 4": ({"kind": "gilbert-elliott", "loss_rate": 0.05, "mean_burst": 4}, 0.003, 0.25),
}
"""How packets are lost, and the targets: the share that may be lost, and the redundancy."""
FLOWS = 4
INTERVAL_S = 0.004
OCTETS = 500
LIMIT_S = 0.68
"""The longest way, the receiver's longest wait for a gap, and 50 ms for the machine."""
WARM_S = 20.0
DRAIN_S = 3.0
PORT = 6_100


@dataclass
class Flow:
    """A flow: when its packets were sent and arrived, by the system's clock."""

    sender: socket.socket
    receiver: socket.socket
    sent: list[float] = field(default_factory=list)
    arrived: dict[int, float] = field(default_factory=dict)

    def send(self) -> None:
        """Send the next packet."""
        packet = struct.pack("!I", len(self.sent)).ljust(OCTETS - 28, b"\0")
        self.sent.append(time.time())
        self.sender.send(packet)

    def receive(self) -> None:
        """Take a packet."""
        data, messages, _, _ = self.receiver.recvmsg(OCTETS, 64)
        for level, kind, stamp in messages:
            if level == socket.SOL_SOCKET and kind == STAMPS:
                seconds, nanoseconds = struct.unpack("qq", stamp)
                self.arrived.setdefault(struct.unpack("!I", data[:4])[0], seconds + nanoseconds * 1e-9)


def flow(names: dict[str, str], port: int) -> Flow:
    """Return a flow from the near end to the far one."""
    sender, receiver = (socket_of(names[end]) for end in ENDS)
    receiver.setsockopt(socket.SOL_SOCKET, STAMPS, 1)
    receiver.bind((INNER["far"], port))
    sender.connect((INNER["far"], port))
    return Flow(sender, receiver)


def talk(flows: list[Flow], seconds: float) -> None:
    """Send the packets of all flows."""
    begin = time.monotonic()
    for tick in range(int(seconds / INTERVAL_S)):
        time.sleep(max(0.0, begin + tick * INTERVAL_S - time.monotonic()))
        for each in flows:
            each.send()


def counted(both: Gateways) -> int:
    """Return how many packets of error correction the near end has sent."""
    peers = both.status("near")["peers"].values()
    return sum(peer["correction_packets"] for peer in peers)


def measure(program: Path, loss: dict[str, Any], seed: int, seconds: float) -> tuple[float, float]:
    """Return the share of packets that did not arrive in time, and the redundancy."""
    paths = range(len(DELAYS))
    links = {
        path: {"rate": "50 Mbit/s", "delay": delay, "forward": {"impair": [loss]}} for path, delay in enumerate(DELAYS)
    }
    with temporary() as folder, spaces(paths) as names, ExitStack() as stack:
        stack.enter_context(engine(names["wan"], wan(links, seed), folder, 2 * len(DELAYS)))
        both = stack.enter_context(gateways(program, names, paths, folder))
        flows = [flow(names, PORT + number) for number in range(FLOWS)]
        is_over = threading.Event()

        def listen() -> None:
            with selectors.DefaultSelector() as selector:
                for each in flows:
                    selector.register(each.receiver, selectors.EVENT_READ, each)
                while not is_over.is_set():
                    for key, _ in selector.select(0.1):
                        key.data.receive()

        listener = threading.Thread(target=listen)
        listener.start()
        talk(flows, WARM_S)
        first, before = len(flows[0].sent), counted(both)
        talk(flows, seconds)
        last, after = len(flows[0].sent), counted(both)
        time.sleep(DRAIN_S)
        is_over.set()
        listener.join()
    late = sum(
        each.arrived.get(number, float("inf")) - each.sent[number] > LIMIT_S
        for each in flows
        for number in range(first, last)
    )
    total = FLOWS * (last - first)
    return late / total, (after - before) / total


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    gateway_argument(parser)
    parser.add_argument("--seconds", type=int, default=40, help="in which packets count")
    parser.add_argument("--seed", type=int, help="of the losses; drawn now by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    check(options.gateway)
    seed = options.seed if options.seed is not None else time.time_ns() % 1_000_000
    found = {}
    print("| losses of 5 % | left | target | redundancy | target | met |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, (loss, left_most, redundancy_most) in LOSSES.items():
        left, redundancy = measure(options.gateway.resolve(), loss, seed, options.seconds)
        is_met = left <= left_most and redundancy <= redundancy_most
        print(
            f"| {name} | {left:.2%} | ≤ {left_most:.1%} | {redundancy:.1%} | ≤ {redundancy_most:.1%} "
            f"| {'yes' if is_met else 'no'} |",
            flush=True,
        )
        found[name] = {"left": left, "redundancy": redundancy}
    print(f"\nSeed {seed}. {load_average()}")
    if options.json:
        options.json.write_text(json.dumps(found | {"seed": seed}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
