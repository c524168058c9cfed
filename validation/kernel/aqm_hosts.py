"""In a guest: a queue of ``anabranch aqm`` on a router in front of a bottleneck, with two TCP flows through both.

``python aqm_hosts.py FOLDER`` runs ``case.json`` there and writes ``outcome.json``. Hosts are namespaces in a row: a
sender S, a router RT with the queue at its egress, a hop M with the bottleneck, and a receiver R.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from kernel.group_hosts import Flow, run

HOSTS = ("S", "RT", "M", "R")
HOPS = (("S", "RT", 1), ("RT", "M", 2), ("M", "R", 3))
"""Neighbours, and the number of their network; the left one has the device ``right``, the other one ``left``."""
BPF = Path("/sys/fs/bpf")


def build(rate_mbit: float, rtt_ms: float, limit: int, ecn: bool) -> None:
    """Make the hosts. All of the delay is on the way back, so that the bottleneck's queue holds only what waits."""
    for host in HOSTS:
        run("ip", "netns", "add", host)
        run("ip", "-n", host, "link", "set", "lo", "up")
        settings = ["net.ipv4.ip_forward=1", "net.ipv4.tcp_no_metrics_save=1", f"net.ipv4.tcp_ecn={int(ecn)}"]
        run("ip", "netns", "exec", host, "sysctl", "-qw", *settings)
    for left, right, net in HOPS:
        run(*f"ip link add right netns {left} type veth peer name left netns {right}".split())
        for host, device, number in ((left, "right", 1), (right, "left", 2)):
            run(*f"ip -n {host} addr add 10.0.{net}.{number}/24 dev {device}".split())
            # One segment at a time, as on the wire.
            run(*f"ip -n {host} link set {device} gso_max_segs 1 up".split())
    for host, network, via in (("S", "default", "10.0.1.2"), ("R", "default", "10.0.3.1"),
                               ("RT", "10.0.3.0/24", "10.0.2.2"), ("M", "10.0.1.0/24", "10.0.2.1")):  # fmt: skip
        run(*f"ip -n {host} route add {network} via {via}".split())
    # Frames of Ethernet have 14 octets more than packets.
    run(*f"tc -n M qdisc add dev right root netem rate {rate_mbit}mbit -14 limit {limit}".split())
    run(*f"tc -n M qdisc add dev left root netem delay {rtt_ms}ms limit 100000".split())
    run("ip", "netns", "exec", "S", "ping", "-c", "1", "10.0.3.2")


def aqm(*words: str) -> str:
    """Run the command on the router."""
    inside = ["nsenter", "--net=/run/netns/RT", sys.executable, "-m", "anabranch", "aqm", *words]
    return run(*inside)


def transfers(case: Mapping[str, Any]) -> dict[str, Any]:
    """The flows' octets, and the queue's counts."""
    begin = time.monotonic() + 1
    flows = []
    for number, cc in enumerate(case["flows"]):
        flows.append(Flow(cc, 7000 + number, {"start": 0.0, "stop": case["seconds"]}, begin))
    for flow in flows:
        flow.start()
    for flow in flows:
        flow.join()
    outcome: dict[str, Any] = {"flows": {cc: flow.outcome for cc, flow in zip(case["flows"], flows, strict=True)}}
    if case["queue"] is not None:
        outcome["queue"] = json.loads(aqm("status", "right", "--json"))[0]
    return outcome


def main(folder: Path) -> None:
    """Run the case."""
    case = json.loads((folder / "case.json").read_text("utf-8"))
    if not (BPF / "progs.debug").exists():
        subprocess.run(["mount", "-t", "bpf", "bpf", str(BPF)], check=True)
    build(**case["network"])
    if case["queue"] is not None:
        aqm("attach", "right", "--no-confirm", *case["queue"])
    (folder / "outcome.json").write_text(json.dumps(transfers(case)), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
