"""In a guest: two switches with a bond between them, traffic across it, and its members taken out and in.

``python group_hosts.py FOLDER`` runs the cases of ``cases.json`` there and writes ``outcomes.json``. Hosts are
namespaces in a row: S, SW1, SW2, R. The bond is between SW1 and SW2, and SW1 controls it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HOSTS = ("S", "SW1", "SW2", "R")
NEGOTIATION_S = 6.0
"""Time in which the new bond negotiates."""
STATE = "/run/group"
SAMPLE_S = 0.25
"""Interval of the number of members that work."""
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_RECEIVE_BUFFER = 33
"""``SO_RCVBUFFORCE``."""
_TCP_INFO_BYTES = 256
_RETRANSMISSIONS = 100
"""Offset of ``tcpi_total_retrans``."""
_REORDERINGS = 220
"""Offset of ``tcpi_reord_seen``."""


def run(*words: str) -> str:
    """Run a command; return its output."""
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


@contextlib.contextmanager
def inside(host: str) -> Iterator[None]:
    """Put the calling thread into a host; its sockets remain there after the block."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{host}", os.O_RDONLY)
    try:
        if _libc.setns(there, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"no way into {host}")
        yield
    finally:
        _libc.setns(before, _CLONE_NEWNET)
        os.close(before)
        os.close(there)


def build(members: int, rate_mbit: float, queue: int, delay_ms: float) -> None:
    """Make the hosts. The queue is that of all members together."""
    for host in HOSTS:
        run("ip", "netns", "add", host)
        run("ip", "-n", host, "link", "set", "lo", "up")
        run("ip", "netns", "exec", host, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.tcp_no_metrics_save=1")
    for left, right, net in (("S", "SW1", 1), ("SW2", "R", 3)):
        run(
            "ip",
            "link",
            "add",
            "e0",
            "netns",
            left,
            "type",
            "veth",
            "peer",
            "name",
            "e0" if right == "R" else "e1",
            "netns",
            right,
        ) if left == "S" else run(
            "ip", "link", "add", "e1", "netns", left, "type", "veth", "peer", "name", "e0", "netns", right
        )
        for host, device, number in (
            (left, "e0" if left == "S" else "e1", 1),
            (right, "e0" if right == "R" else "e1", 2),
        ):
            run("ip", "-n", host, "addr", "add", f"10.0.{net}.{number}/24", "dev", device)
            # One segment at a time, as on the wire: else a queue's packet would be a buffer with several segments.
            run("ip", "-n", host, "link", "set", device, "gso_max_segs", "1", "up")
            run(
                "tc",
                "-n",
                host,
                "qdisc",
                "add",
                "dev",
                device,
                "root",
                "netem",
                "rate",
                "1gbit",
                "delay",
                f"{delay_ms}ms",
                "limit",
                "100000",
            )
    for number, host in enumerate(("SW1", "SW2"), 1):
        run(
            "ip",
            "-n",
            host,
            "link",
            "add",
            "bond0",
            "type",
            "bond",
            "mode",
            "802.3ad",
            "miimon",
            "100",
            "lacp_rate",
            "fast",
            "xmit_hash_policy",
            "layer3+4",
        )
        run("ip", "-n", host, "addr", "add", f"10.0.2.{number}/24", "dev", "bond0")
    for member in range(members):
        run(
            "ip",
            "link",
            "add",
            f"m{member}",
            "netns",
            "SW1",
            "type",
            "veth",
            "peer",
            "name",
            f"m{member}",
            "netns",
            "SW2",
        )
        for host in ("SW1", "SW2"):
            run("ip", "-n", host, "link", "set", f"m{member}", "master", "bond0")
            # Frames of Ethernet have 14 octets more than packets.
            run(
                "tc",
                "-n",
                host,
                "qdisc",
                "add",
                "dev",
                f"m{member}",
                "root",
                "netem",
                "rate",
                f"{rate_mbit}mbit",
                "-14",
                "limit",
                str(queue // members),
            )
            run("ip", "-n", host, "link", "set", f"m{member}", "up")
    for host in ("SW1", "SW2"):
        run("ip", "-n", host, "link", "set", "bond0", "up")
    run("ip", "-n", "S", "route", "add", "default", "via", "10.0.1.2")
    run("ip", "-n", "R", "route", "add", "default", "via", "10.0.3.1")
    run("ip", "-n", "SW1", "route", "add", "10.0.3.0/24", "via", "10.0.2.2")
    run("ip", "-n", "SW2", "route", "add", "10.0.1.0/24", "via", "10.0.2.1")
    time.sleep(NEGOTIATION_S)
    run("ip", "netns", "exec", "S", "ping", "-c", "1", ADDRESS["R"])


def unbuild() -> None:
    """Remove the hosts."""
    for host in HOSTS:
        run("ip", "netns", "del", host)
    time.sleep(1)


ADDRESS = {"S": "10.0.1.1", "R": "10.0.3.2"}


class Probes:
    """Numbered datagrams of many flows in both directions, at a rate that changes."""

    SIZE = 1000

    def __init__(self, flows: int, tick_s: float) -> None:
        """Open the sockets: each flow has a port at its receiver. Each ``tick_s`` has one burst."""
        self.tick_s = tick_s
        self.flows = flows
        self.ready = selectors.DefaultSelector()
        self.sockets: dict[str, list[tuple[socket.socket, socket.socket, tuple[str, int]]]] = {}
        for sender, receiver in (("S", "R"), ("R", "S")):
            pairs = []
            for flow in range(flows):
                with inside(receiver):
                    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                    end.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER, 4 << 20)
                    end.bind((ADDRESS[receiver], 5000 + flow))
                    end.setblocking(False)
                with inside(sender):
                    begin = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                    begin.bind((ADDRESS[sender], 6000 + 7 * flow))
                pairs.append((begin, end, (ADDRESS[receiver], 5000 + flow)))
                self.ready.register(end, selectors.EVENT_READ, (sender, flow))
            self.sockets[sender] = pairs

    def run(self, phases: Sequence[tuple[float, float]]) -> dict[str, Any]:
        """Send at each rate (Mbit/s in each direction) for its time; return counts by direction."""
        load = b"x" * (self.SIZE - 28 - 12)
        sent = {sender: [0] * self.flows for sender in self.sockets}
        got = {sender: [0] * self.flows for sender in self.sockets}
        late = {sender: [0] * self.flows for sender in self.sockets}
        most = {sender: [-1] * self.flows for sender in self.sockets}
        gaps: dict[float, int] = {}
        begin = time.monotonic()
        due, owed, turn = begin, 0.0, 0
        for rate_mbit, seconds in phases:
            until = due + seconds
            while due < until:
                due += self.tick_s
                time.sleep(max(0.0, due - time.monotonic()))
                owed += rate_mbit * 1e6 * self.tick_s / 8 / self.SIZE
                for _ in range(int(owed)):
                    flow = turn % self.flows
                    turn += 1
                    for sender, pairs in self.sockets.items():
                        pairs[flow][0].sendto(struct.pack("!Id", sent[sender][flow], due) + load, pairs[flow][2])
                        sent[sender][flow] += 1
                owed -= int(owed)
                self._receive(got, late, most, gaps, begin)
        time.sleep(1)
        self._receive(got, late, most, gaps, begin)
        lost = {sender: sum(sent[sender]) - sum(got[sender]) for sender in sent}
        return {
            "sent": sum(map(sum, sent.values())),
            "lost_forward": lost["S"],
            "lost_reverse": lost["R"],
            "reordered_forward": sum(late["S"]),
            "reordered_reverse": sum(late["R"]),
            "gaps": sorted(gaps.items()),
        }

    def _receive(self, got: Any, late: Any, most: Any, gaps: dict[float, int], begin: float) -> None:
        while ready := self.ready.select(0):
            for key, _ in ready:
                sender, flow = key.data
                number, _ = struct.unpack_from("!Id", key.fileobj.recv(2048))  # type: ignore[union-attr]
                got[sender][flow] += 1
                if number < most[sender][flow]:
                    late[sender][flow] += 1
                elif (missing := number - most[sender][flow] - 1) > 0:
                    at = round(time.monotonic() - begin, 1)
                    gaps[at] = gaps.get(at, 0) + missing
                most[sender][flow] = max(most[sender][flow], number)

    def close(self) -> None:
        """Close the sockets."""
        for pairs in self.sockets.values():
            for begin, end, _ in pairs:
                begin.close()
                end.close()


def control(binary: str, arguments: Sequence[str]) -> subprocess.Popen[str]:
    """Start the daemon at SW1."""
    command = ["ip", "netns", "exec", "SW1", binary, "control", "bond0", "--state", STATE, *arguments]
    daemon = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    time.sleep(0.1)
    return daemon


def ask() -> dict[str, Any]:
    """The daemon's report."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(f"{STATE}/bond0.sock")
        asked.send(b"s")
        told = b""
        while part := asked.recv(1 << 16):
            told += part
    report: dict[str, Any] = json.loads(told)
    return report


class Cycles(threading.Thread):
    """Takes all members but one out, and brings them back, several times."""

    OUT_S, IN_S = 6.0, 6.0
    """Seconds with one member, and with all; LACP negotiates for up to 2.6 s."""
    APART_S = 0.107
    """Time between two members, no multiple of the bursts' interval."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        super().__init__()
        self.case = case
        self.log = ""
        self.taken_out = self.brought_back = 0

    def run(self) -> None:
        """Take out and bring back until all cycles are over."""
        devices = [f"m{member}" for member in range(1, self.case["network"]["members"])]
        for _ in range(self.case["cycles"]):
            time.sleep(self.IN_S)
            if self.case["way"] == "daemon":
                self._daemon()
            elif self.case["way"] != "none":
                for device in devices:
                    time.sleep(self.APART_S)
                    self._take_out(device)
                time.sleep(self.OUT_S)
                for device in devices:
                    time.sleep(self.APART_S)
                    self._bring_back(device)
                self.taken_out += len(devices)
                self.brought_back += len(devices)

    def _daemon(self) -> None:
        daemon = control(self.case["binary"], self.case["arguments"])
        time.sleep(self.OUT_S)
        report = ask()
        changes = report["changes"]
        self.log += (
            json.dumps(report)
            + run("tc", "-n", "SW1", "filter", "show", "dev", "m1", "egress")
            + run("ip", "-n", "SW1", "-d", "link", "show", "m1")
        )
        self.taken_out += changes["taken_out"]
        daemon.send_signal(signal.SIGTERM)
        log = daemon.communicate(timeout=30)[1]
        self.brought_back += log.count("returns")
        self.log += log

    def _take_out(self, device: str) -> None:
        how = ["down"] if self.case["way"] == "down" else ["nomaster"]
        run("ip", "-n", "SW1", "link", "set", device, *how)

    def _bring_back(self, device: str) -> None:
        if self.case["way"] == "release":
            run("ip", "-n", "SW1", "link", "set", device, "master", "bond0")
        run("ip", "-n", "SW1", "link", "set", device, "up")


def probe(case: Mapping[str, Any]) -> dict[str, Any]:
    """Numbered datagrams while members are taken out and in."""
    probes = Probes(case["flows"], case["tick_ms"] / 1000)
    cycles = Cycles(case)
    cycles.start()
    seconds = case["cycles"] * (Cycles.OUT_S + Cycles.IN_S + 4) + 2
    outcome = probes.run([(case["load_mbit"], seconds)])
    probes.close()
    cycles.join()
    outcome |= {"taken_out": cycles.taken_out, "brought_back": cycles.brought_back, "log": cycles.log}
    outcome["drops"] = drops()
    return outcome


def drops() -> int:
    """Packets that the members' queues dropped."""
    total = 0
    for host in ("SW1", "SW2"):
        told = run("tc", "-n", host, "-s", "qdisc", "show")
        for device, count in re.findall(r"qdisc netem \S+ dev (\S+) .*?\n.*?dropped (\d+)", told):
            total += int(count) if device.startswith("m") else 0
    return total


def transfers(case: Mapping[str, Any]) -> dict[str, Any]:
    """TCP flows, with the daemon or without it."""
    daemon = control(case["binary"], case["arguments"]) if case["arguments"] is not None else None
    begin = time.monotonic()
    flows = [Flow(case["cc"], 7000 + number, one, begin) for number, one in enumerate(case["flows"])]
    for flow in flows:
        flow.start()
    outcome: dict[str, Any] = {}
    working = []
    while time.monotonic() < begin + case["seconds"]:
        if daemon is not None:
            report = ask()
            working.append((round(time.monotonic() - begin, 2), report["working"], report["wanted"]))
        time.sleep(SAMPLE_S)
    outcome["working"] = working
    for flow in flows:
        flow.join()
    outcome["flows"] = [flow.outcome for flow in flows]
    if daemon is not None:
        report = ask()
        outcome["report"] = report
        daemon.send_signal(signal.SIGTERM)
        outcome["log"] = daemon.communicate(timeout=30)[1]
    outcome["drops"] = drops()
    return outcome


class Flow(threading.Thread):
    """A connection from S to R."""

    def __init__(self, cc: str, port: int, flow: Mapping[str, Any], begin: float) -> None:
        super().__init__(daemon=True)
        self.outcome: dict[str, Any] = {}
        self.flow, self.begin = flow, begin
        with inside("R"):
            self.listener = socket.socket()
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.listener.bind((ADDRESS["R"], port))
            self.listener.listen()
        with inside("S"):
            self.sender = socket.socket()
            self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
        self.to = (ADDRESS["R"], port)

    def run(self) -> None:
        """Send from the start to the stop."""
        time.sleep(max(0.0, self.begin + self.flow["start"] - time.monotonic()))
        self.sender.connect(self.to)
        taken, _ = self.listener.accept()
        received = [0]
        stop = self.begin + self.flow["stop"]

        def sink() -> None:
            while True:
                ready, _, _ = select.select([taken], [], [], max(0.0, stop - time.monotonic()))
                data = taken.recv(1 << 18) if ready else b""
                if not data:
                    return
                received[0] += len(data)

        other = threading.Thread(target=sink, daemon=True)
        other.start()
        self._send(stop)
        other.join()
        info = self.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        self.outcome = {
            "bytes": received[0],
            "retransmissions": struct.unpack_from("=I", info, _RETRANSMISSIONS)[0],
            "reorderings": struct.unpack_from("=I", info, _REORDERINGS)[0],
        }
        for one in (self.sender, taken, self.listener):
            one.close()

    def _send(self, stop: float) -> None:
        rate = self.flow.get("rate_mbit")
        block = b"x" * (1448 if rate else 1 << 16)
        due = time.monotonic()
        self.sender.setblocking(False)
        while (now := time.monotonic()) < stop:
            if rate:
                due += len(block) * 8 / rate / 1e6
                time.sleep(max(0.0, due - now))
            _, ready, _ = select.select([], [self.sender], [], max(0.0, stop - time.monotonic()))
            if ready:
                with contextlib.suppress(BlockingIOError):
                    self.sender.send(block)


KINDS = {"probe": probe, "transfers": transfers}


def main(folder: Path) -> None:
    """Run the cases."""
    outcomes = []
    cases = json.loads((folder / "cases.json").read_text("utf-8"))
    for number, case in enumerate(cases, 1):
        build(**case["network"])
        try:
            outcomes.append(KINDS[case["kind"]](case))
        finally:
            unbuild()
        (folder / "progress").write_text(str(number), "ascii")
    (folder / "outcomes.json").write_text(json.dumps(outcomes), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
