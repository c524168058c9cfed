"""Encrypted throughput between two namespaces, beside that of WireGuard's programs: python bench/gateway/throughput.py.

Runs as root, after `cargo build --profile dist -p anabranch-gatewayd`. One TCP flow with CUBIC goes through each tunnel
in turn, several times, so that all meet the same load of the machine; medians count. The links are veth pairs without
delay. Processor seconds are those of both ends' programs, including kernel time charged to them.
"""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import socket
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from network import (
    ENDS,
    INNER,
    PORT,
    check,
    ended,
    gateway_argument,
    gateways,
    inside,
    load_average,
    outer,
    processor_seconds,
    run,
    temporary,
    wait,
    wired,
)
from tcp import receive, sender

ANCHOR = "gotatun"
TWO_PATHS = "anabranch-gateway, two paths"


@dataclass
class Tunnel:
    """A tunnel that is up."""

    names: dict[str, str]
    processes: list[int]
    goodput: list[float] = field(default_factory=list)
    seconds_per_gigabyte: list[float] = field(default_factory=list)

    def measure(self, seconds: int) -> None:
        """Run a transfer through it."""
        before = processor_seconds(self.processes)
        goodput = receive(self.names["near"], INNER["far"], 1, f"{seconds}s")
        used = processor_seconds(self.processes) - before
        self.goodput.append(goodput)
        self.seconds_per_gigabyte.append(used / (goodput * seconds / 8e3))


@contextmanager
def ours(program: Path, paths: int) -> Iterator[Tunnel]:
    """Bond this number of links."""
    with temporary() as folder, wired(range(paths)) as names, gateways(program, names, range(paths), folder) as both:
        yield Tunnel(names, list(both.processes.values()))


def keys(program: Path, folder: Path) -> dict[str, tuple[str, str]]:
    """Return a private and a public key in hexadecimal digits for each end: all of them use X25519."""
    pairs = {}
    for end in ENDS:
        file = folder / f"{end}.key"
        public = run(str(program), "keygen", "--out", str(file)).split()[-1]
        pair = (file.read_text(encoding="ascii").strip(), public)
        pairs[end] = (base64.b64decode(pair[0]).hex(), base64.b64decode(pair[1]).hex())
    return pairs


def configure(interface: str, lines: list[str]) -> None:
    """Configure a user-space WireGuard, as its cross-platform interface has it."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(f"/var/run/wireguard/{interface}.sock")
        client.sendall("\n".join(["set=1", *lines, "", ""]).encode())
        answer = client.recv(1024).decode()
    if "errno=0" not in answer:
        sys.exit(f"{interface}: {answer.strip()}")


@contextmanager
def wireguard(gateway: Path, words: list[str], label: str) -> Iterator[Tunnel]:
    """Start a user-space WireGuard at both ends of one wire."""
    with temporary() as folder, wired([0]) as names, ExitStack() as stack:
        pairs = keys(gateway, folder)
        processes = []
        for end, other in (("far", "near"), ("near", "far")):
            interface = f"{label}-{end}"
            log = stack.enter_context((folder / f"{end}.log").open("w", encoding="utf-8"))
            command = inside(names[end], *words, interface)
            # The socket of a killed program would indicate that this one listens.
            Path(f"/var/run/wireguard/{interface}.sock").unlink(missing_ok=True)
            process = subprocess.Popen(command, stdout=log, stderr=log, text=True)
            processes.append(stack.enter_context(ended(process)).pid)
            wait(Path(f"/var/run/wireguard/{interface}.sock").exists, f"{words[0]} listens")
            lines = [f"private_key={pairs[end][0]}", f"listen_port={PORT}", f"public_key={pairs[other][1]}"]
            lines += [f"endpoint={outer(other, 0)}:{PORT}", f"allowed_ip={INNER[other]}/32"]
            configure(interface, lines)
            run("ip", "-n", names[end], "addr", "add", f"{INNER[end]}/24", "dev", interface)
            run("ip", "-n", names[end], "link", "set", interface, "mtu", "1420", "up")
        yield Tunnel(names, processes)


@contextmanager
def kernel(gateway: Path, wg: str) -> Iterator[Tunnel]:
    """Set up the kernel's WireGuard at both ends of one wire. Its processor time is charged to no program."""
    with temporary() as folder, wired([0]) as names:
        pairs = keys(gateway, folder)
        for end, other in (("far", "near"), ("near", "far")):
            run("ip", "-n", names[end], "link", "add", "wg", "type", "wireguard")
            public = base64.b64encode(bytes.fromhex(pairs[other][1])).decode()
            own = ["listen-port", str(PORT), "private-key", str(folder / f"{end}.key")]
            peer = ["peer", public, "endpoint", f"{outer(other, 0)}:{PORT}", "allowed-ips", f"{INNER[other]}/32"]
            run(*inside(names[end], wg, "set", "wg", *own, *peer))
            run("ip", "-n", names[end], "addr", "add", f"{INNER[end]}/24", "dev", "wg")
            run("ip", "-n", names[end], "link", "set", "wg", "up")
        yield Tunnel(names, [])


def kernel_is_missing(wg: str) -> str:
    """Return why the kernel's WireGuard cannot be measured, if it cannot."""
    if shutil.which(wg) is None:
        return f"there is no program {wg}"
    with wired([]) as names:
        words = ["ip", "-n", names["near"], "link", "add", "probe", "type", "wireguard"]
        return subprocess.run(words, check=False, capture_output=True, text=True).stderr.strip()


Make = Callable[[], AbstractContextManager[Tunnel]]


def subjects(options: argparse.Namespace) -> dict[str, Make]:
    """Return the programs that can be measured, and report the others."""
    gateway = options.gateway.resolve()
    found: dict[str, Make] = {
        "anabranch-gateway, one path": partial(ours, gateway, 1),
        TWO_PATHS: partial(ours, gateway, 2),
    }
    userspace = {
        ANCHOR: (options.gotatun, ["--foreground", "--disable-drop-privileges"], "gt"),
        "wireguard-go": (options.wireguard_go, ["-f"], "wgo"),
    }
    for name, (program, flags, label) in userspace.items():
        if program is None or shutil.which(program) is None:
            print(f"Skipped: {name}: {f'there is no program {program}' if program else 'its option names no program'}.")
            continue
        found[name] = partial(wireguard, gateway, [shutil.which(program), *flags], label)
    if why := kernel_is_missing(options.wg):
        print(f"Skipped: the kernel's WireGuard: {why}.")
    else:
        found["kernel WireGuard"] = partial(kernel, gateway, options.wg)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    gateway_argument(parser)
    parser.add_argument("--gotatun", metavar="FILE", help="gotatun's program (cargo install gotatun-cli)")
    parser.add_argument("--wireguard-go", metavar="FILE", help="wireguard-go's program (go install …/wireguard@latest)")
    parser.add_argument("--wg", default="wg", metavar="FILE", help="the program that configures the kernel's WireGuard")
    parser.add_argument("--seconds", type=int, default=5, help="of each transfer")
    parser.add_argument("--rounds", type=int, default=5, help="transfers through each tunnel")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    check(options.gateway)
    with ExitStack() as stack:
        tunnels = {name: stack.enter_context(make()) for name, make in subjects(options).items()}
        for tunnel in tunnels.values():
            stack.enter_context(sender(tunnel.names["far"], INNER["far"], "cubic"))
        for _ in range(options.rounds):
            for tunnel in tunnels.values():
                tunnel.measure(options.seconds)
    anchor = statistics.median(tunnels[ANCHOR].goodput) if ANCHOR in tunnels else None
    print(f"\n| tunnel | Mbit/s | lowest–highest | processor s per GB | ÷ {ANCHOR} | target |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, tunnel in tunnels.items():
        median = statistics.median(tunnel.goodput)
        ratio = f"{median / anchor:.2f}" if anchor else "–"
        used = f"{statistics.median(tunnel.seconds_per_gigabyte):.1f}" if tunnel.processes else "–"
        spread = f"{min(tunnel.goodput):.0f}–{max(tunnel.goodput):.0f}"
        target = "≥ 1.0" if name == TWO_PATHS else "–"
        print(f"| {name} | {median:.0f} | {spread} | {used} | {ratio} | {target} |")
    print(load_average())
    if options.json:
        rows = {name: {"mbit_s": t.goodput, "s_per_gb": t.seconds_per_gigabyte} for name, t in tunnels.items()}
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
