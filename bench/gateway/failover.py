"""A call through the tunnel while a path fails and comes back: python bench/gateway/failover.py.

Runs as root, or with `--engine kernel`, after `cargo build --profile dist -p anabranch-gatewayd`.

Each phase is a separate tunnel over two paths of 20 Mbit/s with one-way delays of 10 and 15 ms, which the live engine
emulates. Two calls use it, each sending a packet of 200 octets every 20 ms: one has DSCP 46, which matches an
interactive class; the other matches no class. The path with the lower delay fails once and recovers after five
seconds. The phases differ in the time of the failure. A gap is the longest time between two arrivals by the kernel's
timestamps; without a failure it is 20 ms plus delays of the machine. The gateways' logs give the return of the path:
the time at which both ends that had found it dead report that it delivers.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import math
import os
import selectors
import socket
import statistics
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anabranch import Scenario

from network import (
    ENDS,
    INNER,
    Gateways,
    address,
    check,
    conditions,
    engine,
    engine_argument,
    gateway_argument,
    gateways,
    in_kernel,
    namespaces,
    run,
    temporary,
)

PATHS = (0, 1)
LINKS = ({"rate": "20 Mbit/s", "delay": "10 ms"}, {"rate": "20 Mbit/s", "delay": "15 ms"})
CLASSES = '[class.calls]\nmatch = { dscp = 46 }\nmode = "interactive"\n'
CALLS = {"interactive": 46 << 2, "no class": 0}
INTERVAL_S = 0.02
OCTETS = 200
PORT = 6_000
FAIL_S = 25.0
"""Time of the first phase's failure, by the engine's clock; the tunnels are up by then."""
AWAY_S = 5.0
LAST_S = 5.0
UNSURE_S = 1.5
"""Maximum time between the start of the engine's clock and its detection."""
KINDS = {
    "black hole in the call's direction": ["forward"],
    "black hole in the other direction": ["reverse"],
    "black hole in both directions": ["forward", "reverse"],
    "carrier lost at the caller": [],
}
"""Which directions of the path drop; the last one takes the interface down instead."""
TARGET_MS = dict.fromkeys(KINDS, 300) | {"carrier lost at the caller": 20 + int(1e3 * INTERVAL_S)}
"""Of design: 300 ms of silence, or 20 ms after the carrier is lost; the packets themselves are 20 ms apart."""
RETURN_TARGET_S = 1.0
STAMPS = 35
"""`SO_TIMESTAMPNS` of Linux, for option and message alike."""
NETWORK_NAMESPACE = 0x40000000


@dataclass
class Call:
    """A call: when its packets were sent and arrived, by the system's clock."""

    sender: socket.socket
    receiver: socket.socket
    sent: list[float] = field(default_factory=list)
    arrived: dict[int, float] = field(default_factory=dict)

    def send(self) -> None:
        """Send the next packet."""
        number = len(self.sent)
        self.sent.append(time.time())
        try:
            self.sender.send(struct.pack("!I", number).ljust(OCTETS - 28, b"\0"))
        except OSError:
            # The packet counts as lost.
            return

    def receive(self) -> None:
        """Take a packet."""
        data, messages, _, _ = self.receiver.recvmsg(OCTETS, 64)
        for level, kind, stamp in messages:
            if level == socket.SOL_SOCKET and kind == STAMPS:
                seconds, nanoseconds = struct.unpack("qq", stamp)
                self.arrived.setdefault(struct.unpack("!I", data[:4])[0], seconds + nanoseconds * 1e-9)

    def window(self, begin: float, end: float) -> tuple[float, int]:
        """Return the longest gap in milliseconds, and how many packets were lost."""
        numbers = [number for number, at in enumerate(self.sent) if begin <= at < end]
        times = sorted(self.arrived[number] for number in numbers if number in self.arrived)
        gaps = [later - sooner for sooner, later in itertools.pairwise(times)]
        return 1e3 * max(gaps, default=end - begin), len(numbers) - len(times)


@dataclass
class Phase:
    """A tunnel whose path fails once."""

    kind: str
    offset_s: float
    names: dict[str, str]
    interface: str
    both: Gateways
    calls: dict[str, Call]
    carrier_at: float | None = None
    """Time at which the carrier was restored, by the system's clock."""

    def return_s(self, since: float) -> float | None:
        """Return how long after the end of the failure both ends used the path again.

        Nothing if no end found it dead after `since`.

        The end of a black hole cannot be observed, so it is calculated from the planned duration and the moment at
        which the first end finds the path dead. The figure does not include the detection time.
        """
        returns = []
        deaths = []
        for end, peer in (("near", "far"), ("far", "near")):
            dead = [at for at in self.both.times(end, f"peer {peer}: path wan0 is dead") if at > since]
            if not dead:
                continue
            alive = [at for at in self.both.times(end, f"peer {peer}: path wan0 delivers") if at > dead[0]]
            returns.append(alive[0] if alive else math.inf)
            deaths.append(dead[0])
        if not returns:
            return None
        return max(returns) - (self.carrier_at or min(deaths) + AWAY_S)


def socket_of(space: str) -> socket.socket:
    """Return a UDP socket of a namespace."""
    system = ctypes.CDLL(None, use_errno=True)
    made: list[socket.socket] = []

    def make() -> None:
        with Path(f"/run/netns/{space}").open("rb") as file:
            if system.setns(file.fileno(), NETWORK_NAMESPACE):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), space)
        made.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

    # A separate thread enters the namespace, and then ends.
    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return made[0]


def call(names: dict[str, str], port: int, traffic_class: int) -> Call:
    """Return a call from the near end to the far one."""
    sender, receiver = (socket_of(names[end]) for end in ENDS)
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, traffic_class)
    receiver.setsockopt(socket.SOL_SOCKET, STAMPS, 1)
    receiver.bind((INNER["far"], port))
    sender.connect((INNER["far"], port))
    return Call(sender, receiver)


def wan(jobs: list[tuple[str, float]]) -> Scenario:
    """Return the scenario of all paths of all phases."""
    document: dict[str, Any] = {"link": {}, "host": {}, "flow": {}, "at": []}
    for number, (kind, offset_s) in enumerate(jobs):
        for path in PATHS:
            name = f"path{number}-{path}"
            ends = [f"{end}{number}-{path}" for end in ENDS]
            document["link"][name] = {"between": ends, **LINKS[path]}
            document["host"] |= {end: {"attach": f"interface:{end}"} for end in ends}
            document["flow"][name] = {"from": ends[0], "to": ends[1]}
        for is_up, at in ((False, FAIL_S), (True, FAIL_S + AWAY_S)):
            changes = {f"link.path{number}-0.{direction}.up": is_up for direction in KINDS[kind]}
            if changes:
                document["at"].append({"time": f"{at + offset_s:.3f} s", "set": changes})
    return Scenario.from_dict({"title": "Paths that fail", "duration": "3600 s", **document})


@contextmanager
def ends(wan_space: str, number: int) -> Iterator[dict[str, str]]:
    """Yield the two ends of a phase's tunnel."""
    with namespaces(*ENDS) as names:
        for end in ENDS:
            for path in PATHS:
                outside = f"{end}{number}-{path}"
                peer = ("type", "veth", "peer", "name", f"wan{path}", "netns", names[end])
                run("ip", "-n", wan_space, "link", "add", outside, *peer)
                run("ip", "-n", wan_space, "link", "set", outside, "up")
                run("ip", "-n", names[end], "link", "set", f"wan{path}", "gso_max_segs", "1")
                address(names, end, path)
        yield names


def enter_all(stack: ExitStack, contexts: Sequence[AbstractContextManager[Gateways]]) -> list[Gateways]:
    """Enter contexts at the same time."""
    with ThreadPoolExecutor(len(contexts)) as pool:
        entered = list(pool.map(lambda context: context.__enter__(), contexts))
    for context in contexts:
        stack.push(context)
    return entered


def talk(phases: list[Phase], until: float, is_over: threading.Event) -> None:
    """Send the packets of all calls: each tunnel's at another time."""
    begin = time.time()
    tick = 0
    while not is_over.is_set():
        for number, phase in enumerate(phases):
            due = begin + INTERVAL_S * (tick + number / len(phases))
            time.sleep(max(0.0, due - time.time()))
            for each in phase.calls.values():
                each.send()
        tick += 1
        if time.time() >= until:
            return


def listen(phases: list[Phase], is_over: threading.Event) -> None:
    """Take the packets of all calls."""
    with selectors.DefaultSelector() as selector:
        for phase in phases:
            for each in phase.calls.values():
                selector.register(each.receiver, selectors.EVENT_READ, each)
        while not is_over.is_set():
            for key, _ in selector.select(0.1):
                key.data.receive()


def cut(phases: list[Phase], wan_space: str, engine_begin: float) -> None:
    """Remove and restore the carrier of paths."""
    for state, at in (("down", FAIL_S), ("up", FAIL_S + AWAY_S)):
        for phase in phases:
            time.sleep(max(0.0, engine_begin + at + phase.offset_s - time.time()))
            phase.carrier_at = time.time()
            run("ip", "-n", wan_space, "link", "set", phase.interface, state)


def measure(program: Path, jobs: list[tuple[str, float]]) -> list[dict[str, Any]]:
    """Return the figures of phases that happen together."""
    with temporary() as folder, namespaces("wan") as wans, ExitStack() as stack:
        names = [stack.enter_context(ends(wans["wan"], number)) for number in range(len(jobs))]
        count = len(jobs) * len(PATHS) * len(ENDS)
        stack.enter_context(engine(wans["wan"], wan(jobs), folder, count))
        begin = time.time()
        folders = [folder / str(number) for number in range(len(jobs))]
        for each in folders:
            each.mkdir()
        tunnels = [gateways(program, name, PATHS, each, CLASSES) for name, each in zip(names, folders, strict=True)]
        phases = [
            Phase(
                kind,
                offset_s,
                name,
                f"near{number}-0",
                both,
                {label: call(name, PORT + place, tos) for place, (label, tos) in enumerate(CALLS.items())},
            )
            for number, ((kind, offset_s), name, both) in enumerate(
                zip(jobs, names, enter_all(stack, tunnels), strict=True)
            )
        ]
        ready = time.time() - begin
        if ready > FAIL_S - 4:
            raise SystemExit(f"the tunnels took {ready:.0f} s to come up: fewer --together")
        is_over = threading.Event()
        end = begin + FAIL_S + AWAY_S + LAST_S + max(offset for _, offset in jobs)
        cuts = [phase for phase in phases if not KINDS[phase.kind]]
        threads = [
            threading.Thread(target=talk, args=(phases, end, is_over)),
            threading.Thread(target=cut, args=(cuts, wans["wan"], begin)),
        ]
        listener = threading.Thread(target=listen, args=(phases, is_over))
        for thread in (listener, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(1)
        is_over.set()
        listener.join()
        return [row for phase in phases for row in rows(phase, begin)]


def rows(phase: Phase, begin: float) -> list[dict[str, Any]]:
    """Return the figures of a phase's calls."""
    fail = begin + FAIL_S + phase.offset_s
    back = fail + AWAY_S
    windows = {
        "before": (fail - UNSURE_S - 2, fail - UNSURE_S),
        "failure": (fail - UNSURE_S, back - UNSURE_S),
        "return": (back - UNSURE_S, back + LAST_S - 1),
    }
    found = []
    for label, each in phase.calls.items():
        row: dict[str, Any] = {"kind": phase.kind, "class": label, "return_s": phase.return_s(fail - UNSURE_S)}
        for window, (first, last) in windows.items():
            row[f"{window}_gap_ms"], row[f"{window}_lost"] = each.window(first, last)
        found.append(row)
    return found


def percentile(values: list[float], share: float) -> float:
    """Return the quantile at this share."""
    ordered = sorted(values)
    return ordered[math.ceil(share * len(ordered)) - 1]


def table(found: list[dict[str, Any]]) -> None:
    """Print the measurements beside the targets."""
    print(
        "\n| failure | class | gap ms p50 / p95 | target p95 | lost of a call p50 / most | before: gap p95, lost |",
        end="",
    )
    print(" at the return: gap p95, most lost | met |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for kind in KINDS:
        for label in CALLS:
            own = [row for row in found if (row["kind"], row["class"]) == (kind, label)]
            if not own:
                continue
            gaps, lost = ([row[f"failure_{what}"] for row in own] for what in ("gap_ms", "lost"))
            target = f"≤ {TARGET_MS[kind]} ms" + (", none lost" if label == "interactive" else "")
            is_met = percentile(gaps, 0.95) <= TARGET_MS[kind] and (label != "interactive" or not any(lost))
            gap = {what: percentile([row[f"{what}_gap_ms"] for row in own], 0.95) for what in ("before", "return")}
            print(
                f"| {kind} | {label} | {statistics.median(gaps):.0f} / {percentile(gaps, 0.95):.0f} | {target} "
                f"| {statistics.median(lost):.0f} / {max(lost)} | {gap['before']:.0f}, "
                f"{sum(row['before_lost'] for row in own)} | {gap['return']:.0f}, {max(r['return_lost'] for r in own)} "
                f"| {'yes' if is_met else 'no'} |"
            )
    print("\n| failure | phases | return s p50 / p95 | target p95 | met |")
    print("| --- | --- | --- | --- | --- |")
    for kind in KINDS:
        of_kind = [row["return_s"] for row in found if (row["kind"], row["class"]) == (kind, "interactive")]
        returns: list[float] = [seconds for seconds in of_kind if seconds is not None]
        if returns:
            p95 = percentile(returns, 0.95)
            print(
                f"| {kind} | {len(returns)} | {statistics.median(returns):.2f} / {p95:.2f} | ≤ {RETURN_TARGET_S:.0f} s "
                f"| {'yes' if p95 <= RETURN_TARGET_S else 'no'} |"
            )
    print()


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    gateway_argument(parser)
    parser.add_argument(
        "--phases", type=int, default=20, help="of each kind of failure; 200 for a percentile that holds"
    )
    parser.add_argument("--together", type=int, default=10, metavar="N", help="tunnels at the same time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    engine_argument(parser)
    options = parser.parse_args()
    in_kernel(options)
    check(options.gateway)
    jobs = [(kind, phase / options.phases) for phase in range(options.phases) for kind in KINDS]
    found = []
    for first in range(0, len(jobs), options.together):
        found += measure(options.gateway.resolve(), jobs[first : first + options.together])
    table(found)
    print(f"{options.phases} phases. {conditions()}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
