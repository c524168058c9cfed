"""A TCP transfer through the tunnel while unknown senders send handshakes: python bench/gateway/flood.py.

Runs as root, after `cargo build --profile dist -p anabranch-gatewayd` and
`cargo build --profile dist -p anabranch-gateway --example initiations`. The live engine carries two paths of 50 Mbit/s
and 10 ms; the flood arrives over a separate link, so that it uses the gateway's processor time and not the paths'
rate. Transfers run without a flood, with random octets of a handshake's size, with handshakes whose `mac1` is
correct, as from a sender that knows the public key, and with such handshakes that have a valid cookie, too. They
alternate, and medians count.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from network import (
    ENDS,
    INNER,
    PORT,
    address,
    check,
    ended,
    engine,
    gateway_argument,
    gateways,
    inside,
    load_average,
    outer,
    run,
    spaces,
    temporary,
    wan,
)
from tcp import receive, sender

PATHS = (0, 1)
WIRE = 2
LINK = {"rate": "50 Mbit/s", "delay": "10 ms"}
KINDS = ("none", "random octets", "a right code", "a valid cookie")
LOST_AT_MOST = 0.05
GROWTH_AT_MOST_KIB = 32 << 10
TICK_S = 0.002


def handshakes(public: bytes | None) -> list[bytes]:
    """Return datagrams of an initiation's form; with its first code right if the receiver's key is known."""
    found = []
    for _ in range(1_000):
        body = bytes([1, 3, 0, 0]) + os.urandom(116)
        code = os.urandom(16)
        if public:
            key = hashlib.blake2s(b"mac1----" + public).digest()
            code = hashlib.blake2s(body, key=key, digest_size=16).digest()
        found.append(body + code + bytes(16))
    return found


def flood(public: bytes | None, per_second: int) -> None:
    """Send until the process is ended, and then print how many datagrams a second there were."""
    # The system's ending becomes an exception, so that the figure is printed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    datagrams = handshakes(public)
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.connect((outer("far", WIRE), PORT))
    begin = time.monotonic()
    count = 0
    try:
        while True:
            due = int((time.monotonic() - begin) * per_second)
            for number in range(count, due):
                client.send(datagrams[number % len(datagrams)])
            count = max(count, due)
            time.sleep(TICK_S)
    finally:
        print(int(count / (time.monotonic() - begin)))


def measure(program: Path, initiations: Path, rounds: int, seconds: int, per_second: int) -> dict[str, Any]:
    """Return goodput by kind, datagrams per second, rejected datagrams, and the growth of memory."""
    goodput: dict[str, list[float]] = {kind: [] for kind in KINDS}
    rates = []
    with temporary() as folder, spaces(PATHS) as names, ExitStack() as stack:
        peer = ("type", "veth", "peer", "name", f"wan{WIRE}", "netns", names["far"])
        run("ip", "-n", names["near"], "link", "add", f"wan{WIRE}", *peer)
        for end in ENDS:
            address(names, end, WIRE)
        scenario = wan(dict.fromkeys(PATHS, LINK), 1)
        stack.enter_context(engine(names["wan"], scenario, folder, len(PATHS) * len(ENDS)))
        both = stack.enter_context(gateways(program, names, PATHS, folder, is_bound=False))
        stack.enter_context(sender(names["far"], INNER["far"], "cubic"))
        keys = run(str(program), "peer", str(folder / "far.toml"), "--endpoint", f"{outer('far', 0)}:{PORT}")
        line = next(line for line in keys.splitlines() if line.startswith("public_key"))
        public = base64.b64decode(line.split('"')[1])
        # The first transfer finds the rates.
        receive(names["near"], INNER["far"], 1, f"{seconds}s")
        before = both.resident_kib("far")
        for _ in range(rounds):
            for kind in KINDS:
                with ExitStack() as beside:
                    if kind != "none":
                        code = public.hex() if kind == "a right code" else "-"
                        words = inside(names["near"], sys.executable, __file__, "--flood", code, str(per_second))
                        if kind == "a valid cookie":
                            to = (f"{outer('far', WIRE)}:{PORT}", public.hex(), str(per_second), "cookie")
                            words = inside(names["near"], str(initiations), "flood", *to, outer("near", WIRE))
                        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
                        beside.enter_context(ended(process))
                    goodput[kind].append(receive(names["near"], INNER["far"], 1, f"{seconds}s"))
                    if kind != "none":
                        process.terminate()
                    if kind not in ("none", "a valid cookie"):
                        rates.append(int(process.communicate()[0]))
        return {
            "mbit_s": goodput,
            "per_second": rates,
            "rejected": both.status("far")["rejected"],
            "growth_kib": both.resident_kib("far") - before,
        }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    gateway_argument(parser)
    parser.add_argument("--seconds", type=int, default=5, help="of each transfer")
    parser.add_argument("--rounds", type=int, default=5, help="transfers of each kind")
    parser.add_argument("--rate", type=int, default=10_000, metavar="N", help="handshakes a second")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    example = Path("target/dist/examples/initiations")
    parser.add_argument("--initiations", type=Path, default=example, metavar="FILE", help="the sender with cookies")
    options = parser.parse_args()
    check(options.gateway)
    found = measure(
        options.gateway.resolve(), options.initiations.resolve(), options.rounds, options.seconds, options.rate
    )
    quiet = statistics.median(found["mbit_s"]["none"])
    print("| flood | Mbit/s | lost | target | met |")
    print("| --- | --- | --- | --- | --- |")
    for kind, goodput in found["mbit_s"].items():
        lost = 1 - statistics.median(goodput) / quiet
        target = "| – | – | – |" if kind == "none" else f"| {lost:.1%} | ≤ {LOST_AT_MOST:.0%} |"
        met = "" if kind == "none" else f" {'yes' if lost <= LOST_AT_MOST else 'no'} |"
        print(f"| {kind} | {statistics.median(goodput):.1f} {target}{met}")
    growth = found["growth_kib"]
    print(
        f"\n{statistics.median(found['per_second']):.0f} handshakes a second were sent. Memory grew by {growth} KiB; "
        f"target ≤ {GROWTH_AT_MOST_KIB} KiB: {'met' if growth <= GROWTH_AT_MOST_KIB else 'not met'}."
    )
    print("Rejected:", ", ".join(f"{name} {count}" for name, count in found["rejected"].items() if count))
    print(load_average())
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--flood"]:
        flood(bytes.fromhex(sys.argv[2]) if sys.argv[2] != "-" else None, int(sys.argv[3]))
    else:
        main()
