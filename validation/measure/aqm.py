"""``anabranch aqm`` on a router, beside the simulator: the tables and the figure of docs/guides/aqm.md.

::

    python validation/measure/aqm.py                # print both tables, as root
    python validation/measure/aqm.py --write        # the same, and write them into the page
    python validation/measure/aqm.py --part cost    # what a packet costs
    python validation/measure/aqm.py --part hosts   # CUBIC beside Compound TCP
    python validation/measure/aqm.py --page         # the kept shares into the page, without a run

Four network namespaces: a sender, a router, the inline emulator, and a receiver. The emulator is the bottleneck, with
a rate, a delay and a long drop-tail queue. The queue of ``anabranch aqm`` is at the router's egress and has the same
rate. The simulator runs one file: the same path, with the queue on its link.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch import Scenario, _engine

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "validation"))

from comparison import pages  # noqa: E402

PAGE = ROOT / "docs/guides/aqm.md"
DATA = ROOT / "validation/data/aqm-hosts.txt"
"""The rows of the last measurement."""
FIGURE = ROOT / "docs/guides/aqm-hosts.svg"
STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")

HEAD = (
    "| round trip | queue | Compound ÷ CUBIC, simulator | measured | total, Mbit/s, simulator | measured | runs |",
    "| --- | --- | --- | --- | --- | --- | --- |",
)
RATE = "40 Mbit/s"
RTTS_MS = (20, 60)
SECONDS = 30
REPEATS = 3
SEEDS = range(1, 11)
CONTROLS = ("cubic", "compound")
KERNEL_NAMES = {"cubic": "cubic", "compound": "ab_compound"}
QUEUE = '{{ kind = "{kind}", limit = "300 packets"{more} }}'
FILE = """
title = "CUBIC beside Compound TCP"
duration = "{seconds} s"
[link.path]
between = ["A", "B"]
rate = "{rate}"
delay = "{delay} ms"
forward.queue = {queue}
[flow.cubic]
from = "A"
to = "B"
cc = "cubic"
[flow.compound]
from = "A"
to = "B"
cc = "compound"
"""
INLINE = """
title = "the bottleneck between two interfaces"
duration = "{seconds} s"
[link.path]
between = ["left", "right"]
rate = "{rate}"
delay = "{delay} ms"
forward.queue = {queue}
[host.left]
attach = "interface:el"
[host.right]
attach = "interface:er"
[flow.all]
from = "left"
to = "right"
"""

SERVER = """
import json, socket, sys, threading, time
server = socket.create_server(("10.9.0.2", 7))
print("ready", flush=True)
counts = {}
def read(connection):
    name = connection.recv(1).decode()
    counts[name] = 0
    while piece := connection.recv(1 << 16):
        counts[name] += len(piece)
for _ in range(2):
    threading.Thread(target=read, args=(server.accept()[0],), daemon=True).start()
time.sleep(float(sys.argv[1]))
print(json.dumps(counts), flush=True)
"""
CLIENT = """
import socket, sys, threading, time
end = time.monotonic() + float(sys.argv[1])
def send(name, control):
    c = socket.socket()
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    c.connect(("10.9.0.2", 7))
    c.sendall(name.encode())
    c.settimeout(0.5)
    while time.monotonic() < end:
        try:
            c.send(bytes(1 << 14))
        except TimeoutError:
            pass
threads = [threading.Thread(target=send, args=word.split("="), daemon=True) for word in sys.argv[2:]]
[t.start() for t in threads]
time.sleep(float(sys.argv[1]))
"""
GSO_OFF = """
import ctypes, fcntl, socket, struct
value = ctypes.create_string_buffer(struct.pack("II", 0x24, 0))
request = struct.pack("16sP16x", b"el", ctypes.addressof(value))
fcntl.ioctl(socket.socket(), 0x8946, request)
"""
BLAST = """
import socket, sys, time
s = socket.socket(type=socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
s.connect(("10.9.1.9", 9))
data, end, sent = bytes(1472), time.perf_counter() + float(sys.argv[1]), 0
begin = time.process_time()
while time.perf_counter() < end:
    for _ in range(64):
        s.send(data)
    sent += 64
print(sent, time.process_time() - begin)
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def inside(name: str, *words: str) -> list[str]:
    return ["nsenter", f"--net=/run/netns/{name}", *words]


def anabranch(*words: object) -> list[str]:
    return [sys.executable, "-m", "anabranch", *map(str, words)]


@contextmanager
def namespaces() -> Iterator[dict[str, str]]:
    """Sender, router, emulator, receiver, and the devices between them."""
    names = {role: f"anabranch-measure-{os.getpid()}-{role}" for role in ("sender", "router", "middle", "receiver")}
    try:
        for name in names.values():
            ip("netns", "add", name)
        for one, device, other, peer in (
            ("sender", "eth", "router", "in"),
            ("router", "out", "middle", "el"),
            ("receiver", "eth", "middle", "er"),
        ):
            ip("-n", names[one], "link", "add", device, "type", "veth", "peer", "name", peer, "netns", names[other])
            # One segment at a time, as on the wire.
            ip("-n", names[one], "link", "set", device, "gso_max_segs", "1", "up")
            ip("-n", names[other], "link", "set", peer, "gso_max_segs", "1", "up")
        for role, device, address in (
            ("sender", "eth", "10.9.1.1/24"),
            ("router", "in", "10.9.1.2/24"),
            ("router", "out", "10.9.0.1/24"),
            ("receiver", "eth", "10.9.0.2/24"),
        ):
            ip("-n", names[role], "addr", "add", address, "dev", device)
        ip("-n", names["sender"], "route", "add", "default", "via", "10.9.1.2")
        ip("-n", names["receiver"], "route", "add", "10.9.1.0/24", "via", "10.9.0.1")
        forward = "open('/proc/sys/net/ipv4/ip_forward', 'w').write('1')"
        subprocess.run(inside(names["router"], sys.executable, "-c", forward), check=True)
        subprocess.run(inside(names["middle"], sys.executable, "-c", GSO_OFF), check=True)
        yield names
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@contextmanager
def queue_at(name: str, device: str, rate: str, *words: str) -> Iterator[Callable[[], dict[str, Any]]]:
    """A queue at a device; yields a function that reads its status."""
    subprocess.run(
        inside(name, *anabranch("aqm", "attach", device, "--rate", rate, "--no-confirm", *words)),
        check=True,
        capture_output=True,
    )

    def status() -> dict[str, Any]:
        words = inside(name, *anabranch("aqm", "status", device, "--json"))
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        (found,) = json.loads(done.stdout)
        return dict(found)

    try:
        yield status
    finally:
        subprocess.run(inside(name, *anabranch("aqm", "detach", device)), check=True, capture_output=True)


@contextmanager
def compound() -> Iterator[None]:
    """Compound TCP in the kernel, as an eBPF program."""
    loaded = json.loads(_engine.cc_list())["available"]
    if KERNEL_NAMES["compound"] in loaded:
        yield
        return
    _engine.cc_load("compound", False)
    try:
        yield
    finally:
        _engine.cc_unload(KERNEL_NAMES["compound"])


@dataclass(frozen=True)
class Goodputs:
    """Mbit/s of both flows, and packets that the queue dropped."""

    cubic: float
    compound: float

    @property
    def ratio(self) -> float:
        return self.compound / self.cubic

    @property
    def total(self) -> float:
        return self.cubic + self.compound


def queue_text(kind: str) -> str:
    return QUEUE.format(kind=kind, more="")


def simulated(kind: str, rtt_ms: int) -> list[Goodputs]:
    text = FILE.format(seconds=SECONDS, rate=RATE, delay=rtt_ms / 2, queue=queue_text(kind))
    found = []
    for seed in SEEDS:
        flows = Scenario.from_text(text).run(seed=seed).summary["flows"]
        found.append(Goodputs(*(flows[name]["goodput_mbit_s"] for name in CONTROLS)))
    return found


def measured(names: dict[str, str], kind: str, rtt_ms: int, folder: Path) -> Goodputs | None:
    """One run of real hosts; ``None`` if the emulator was late (a tainted run)."""
    file = folder / "inline.toml"
    # Longer than the flows, which it carries.
    file.write_text(
        INLINE.format(seconds=SECONDS + 8, rate=RATE, delay=rtt_ms / 2, queue=queue_text("drop-tail")), "utf-8"
    )
    with ExitStack() as stack:
        if kind != "drop-tail":
            stack.enter_context(queue_at(names["router"], "out", RATE, "--kind", kind, "--set", "limit=300 packets"))
        words = inside(names["middle"], *anabranch("run", file, "--engine", "live", "--json"))
        engine = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        stack.callback(engine.wait)
        stack.callback(engine.terminate)
        server = subprocess.Popen(
            inside(names["receiver"], sys.executable, "-c", SERVER, str(SECONDS)), stdout=subprocess.PIPE, text=True
        )
        stack.callback(server.wait)
        stack.callback(server.kill)
        wait_for_engine(names["middle"], engine)
        assert server.stdout is not None
        server.stdout.readline()
        flows = [f"{name[1]}={KERNEL_NAMES[name]}" for name in CONTROLS]
        client = subprocess.Popen(inside(names["sender"], sys.executable, "-c", CLIENT, str(SECONDS + 1), *flows))
        stack.callback(client.wait)
        stack.callback(client.kill)
        counts = json.loads(server.stdout.readline())
        client.kill()
        _, told = engine.communicate(timeout=60)
        if engine.returncode != 0:
            print(
                f"not counted: {told.strip().splitlines()[0] if told.strip() else engine.returncode}", file=sys.stderr
            )
            return None
    return Goodputs(*(counts[name[1]] * 8 / 1e6 / SECONDS for name in CONTROLS))


def wait_for_engine(middle: str, engine: subprocess.Popen[str]) -> None:
    """Wait until the engine listens at both interfaces, which puts them into promiscuous mode."""
    until = time.monotonic() + 60
    while time.monotonic() < until and engine.poll() is None:
        state = subprocess.run(["ip", "-n", middle, "-d", "-o", "link"], check=True, capture_output=True, text=True)
        if state.stdout.count("promiscuity 1") == 2:
            return
        time.sleep(0.05)
    raise SystemExit("the emulator does not listen")


def mean(found: Sequence[Goodputs], what: Callable[[Goodputs], float]) -> str:
    values = [what(one) for one in found]
    if not values:
        return "–"
    return f"{statistics.fmean(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def hosts(folder: Path) -> list[str]:
    """The rows of the table of shares."""
    rows = []
    with compound(), namespaces() as names:
        for rtt_ms in RTTS_MS:
            for kind in ("drop-tail", "share-red"):
                told = simulated(kind, rtt_ms)
                runs: list[Goodputs] = []
                for _ in range(2 * REPEATS):
                    if len(runs) < REPEATS and (one := measured(names, kind, rtt_ms, folder)) is not None:
                        runs.append(one)
                label = "without" if kind == "drop-tail" else "`share-red`"
                cells = [mean(both, lambda one: one.ratio) for both in (told, runs)]
                cells += [mean(both, lambda one: one.total) for both in (told, runs)]
                rows.append(f"| {rtt_ms} ms | {label} | {' | '.join(cells)} | {len(runs)} |")
                print(rows[-1], flush=True)
    return rows


def write_hosts() -> None:
    """Write the table of the kept rows into the page, and draw them."""
    rows = DATA.read_text("utf-8").splitlines()
    pages_text = pages.fill(PAGE.read_text("utf-8"), {"hosts": "\n".join([*HEAD, *rows])}, PAGE.name)
    PAGE.write_text(pages_text, "utf-8")
    draw(rows)


def received(name: str) -> int:
    """Packets that arrived at the peer of the sender's device."""
    done = subprocess.run(
        ["ip", "-n", name, "-s", "-j", "link", "show", "in"], check=True, capture_output=True, text=True
    )
    return int(json.loads(done.stdout)[0]["stats64"]["rx"]["packets"])


def blast(names: dict[str, str], seconds: float) -> tuple[int, float, int]:
    """Packets sent, the processor's time that they took, and packets that arrived."""
    before = received(names["router"])
    words = ["taskset", "-c", "0", *inside(names["sender"], sys.executable, "-c", BLAST, str(seconds))]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    sent, taken = done.stdout.split()
    return int(sent), float(taken), received(names["router"]) - before


def cost() -> str:
    """The table of the cost of a packet."""
    lines = [
        "| queue | packets of 1,500 bytes in a second of one processor | Gbit/s | without the queue | ratio | "
        "dropped by the queue | sent, neither dropped nor received | ns a packet |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    before = STATISTICS.read_text()
    STATISTICS.write_text("1")
    try:
        with namespaces() as names:
            # Packets to this address leave the sender and end at the router.
            ip("-n", names["sender"], "neigh", "add", "10.9.1.9", "lladdr", "02:00:00:00:00:09", "dev", "eth")
            for label, rate in (("passes all", "10 Gbit/s"), ("drops", "400 Mbit/s")):
                plain, queued, lost, dropped, packets, ns = [], [], 0, 0, 0, 0.0
                for _ in range(8):
                    sent, taken, _ = blast(names, 1.0)
                    plain.append(sent / taken)
                    with queue_at(names["sender"], "eth", rate) as status:
                        sent, taken, arrived = blast(names, 1.0)
                        found = status()
                    queued.append(sent / taken)
                    dropped += found["dropped_packets"]
                    lost += max(0, sent - arrived - found["dropped_packets"])
                    packets += found["packets"]
                    ns += found["ns_per_packet"] * found["packets"]
                speed, without = statistics.median(queued), statistics.median(plain)
                lines.append(
                    f"| {label} ({rate}) | {speed:,.0f} | {speed * 12_000 / 1e9:.2f} | {without * 12_000 / 1e9:.2f} | "
                    f"{speed / without:.2f} | {dropped:,} | {lost:,} | {ns / packets:.0f} |"
                )
                print(lines[-1], flush=True)
    finally:
        STATISTICS.write_text(before)
    return "\n".join(lines)


def draw(rows: Sequence[str]) -> None:
    """Write the figure: the ratio in the simulator and on real hosts."""
    from anabranch.plot.style import COLOURS, house_style, new_figure

    with house_style():
        figure, ax = new_figure(6.0, 3.4)
        labels = []
        for place, row in enumerate(rows):
            rtt, queue, *cells = (cell.strip(" `") for cell in row.strip("|").split("|"))
            labels.append(f"{rtt}\n{queue}")
            for shift, cell, colour, label in (
                (-0.15, cells[0], COLOURS[0], "simulator"),
                (0.15, cells[1], COLOURS[1], "kernel"),
            ):
                if found := re.fullmatch(r"([\d.]+) \(([\d.]+)–([\d.]+)\)", cell):
                    middle, least, most = map(float, found.groups())
                    ax.bar(place + shift, middle, 0.28, color=colour, label=label if place == 0 else None)
                    ax.plot([place + shift] * 2, [least, most], color="#000000", linewidth=1)
        ax.axhline(1, color="#888888", linewidth=0.8)
        ax.set_xticks(range(len(labels)), labels)
        ax.set_ylabel("Compound TCP ÷ CUBIC")
        ax.legend()
        figure.savefig(FIGURE, format="svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("cost", "hosts"), help="one of the tables")
    parser.add_argument("--write", action="store_true", help="write the tables and the figure into the page")
    parser.add_argument("--page", action="store_true", help="write the kept shares into the page, without a run")
    options = parser.parse_args()
    if options.page:
        write_hosts()
        return
    if os.geteuid() != 0:
        raise SystemExit("network namespaces and queues at devices need root")
    if options.part in (None, "cost"):
        table = cost()
        if options.write:
            PAGE.write_text(pages.fill(PAGE.read_text("utf-8"), {"cost": table}, PAGE.name), "utf-8")
    if options.part in (None, "hosts"):
        with tempfile.TemporaryDirectory() as folder:
            rows = hosts(Path(folder))
        if options.write:
            DATA.write_text("\n".join(rows) + "\n", "utf-8")
            write_hosts()


if __name__ == "__main__":
    main()
