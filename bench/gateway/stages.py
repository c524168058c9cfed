"""Where the daemons' processor time goes while a transfer passes: python bench/gateway/stages.py.

Runs as root, after `cargo build --profile dist -p anabranch-gatewayd`, with the program perf. One TCP flow uses
two paths of veth pairs; perf samples both daemons, and the symbols of the samples give the stage. Packets that enter
at one end and leave at the other are counted, acknowledgments included.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from network import ENDS, INNER, check, gateway_argument, gateways, load_average, run, temporary, wired
from tcp import receive, sender

STAGES = {
    "cipher": r"chacha|poly1305|aead|ring_core|^ring::|aes_|gcm",
    "copies": r"mem(cpy|move|set|cmp)|extend_from_slice",
    "allocator": r"malloc|free|calloc|realloc|alloc::",
    "putting packets of a flow together, splitting, checksums (tun-rs)": r"tun_rs|checksum",
    "tunnel: order, blocks": r"anabranch_gateway::(order|blocks)|anabranch_fec",
    "tunnel: queue, choice of the path": r"anabranch_(path|gateway::(queue|inner|policy|tunnel::(lanes|sending)))",
    "tunnel: the rest": r"anabranch_gateway::(tunnel|path|crypto|wire|pool)",
    "daemon": r"anabranch_gateway",
}
"""The first stage whose pattern a symbol matches; kernel symbols match none."""
KERNEL = "kernel: UDP sockets, TUN, veth"
OTHER = "other"


def stage(object_name: str, symbol: str) -> str:
    """Return the stage of a symbol."""
    if "[k" in object_name or symbol.startswith("[k]"):
        return KERNEL
    return next((name for name, pattern in STAGES.items() if re.search(pattern, symbol)), OTHER)


def samples(file: Path) -> dict[str, float]:
    """Return the share of each stage."""
    words = ["perf", "report", "-i", str(file), "--stdio", "--no-children", "-g", "none"]
    lines = run(*words, "-F", "overhead,dso,symbol", "-t", "|").splitlines()
    shares: dict[str, float] = defaultdict(float)
    for line in lines:
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 3 and fields[0].endswith("%"):
            shares[stage(fields[1], fields[2])] += float(fields[0].rstrip("%"))
    return dict(shares)


def measure(program: Path, rounds: int, seconds: int) -> dict[str, Any]:
    """Return the shares, and packets per processor second of each round."""
    rates: list[float] = []
    goodput: list[float] = []
    with temporary() as folder, wired([0, 1]) as names, gateways(program, names, [0, 1], folder) as both:

        def packets() -> int:
            peers = [peer for end in ENDS for peer in both.status(end)["peers"].values()]
            return sum(peer["received_packets"] for peer in peers)

        with sender(names["far"], INNER["far"], "cubic"):
            receive(names["near"], INNER["far"], 1, "2s")
            for _ in range(rounds):
                before = packets(), both.seconds()
                goodput.append(receive(names["near"], INNER["far"], 1, f"{seconds}s"))
                rates.append((packets() - before[0]) / (both.seconds() - before[1]))
            # Sampling costs time itself: not in the rounds above.
            file = folder / "perf.data"
            pids = ",".join(str(process) for process in both.processes.values())
            words = ["perf", "record", "-q", "-F", "999", "-p", pids, "-o", str(file), "--", "sleep", str(seconds)]
            with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as recorder:
                receive(names["near"], INNER["far"], 1, f"{seconds}s")
                _, told = recorder.communicate()
            if recorder.returncode:
                sys.exit(f"perf: {told.strip()}")
            return {"shares": samples(file), "packets_per_processor_s": rates, "mbit_s": goodput}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    gateway_argument(parser)
    parser.add_argument("--seconds", type=int, default=4, help="of each transfer")
    parser.add_argument("--rounds", type=int, default=5, help="transfers without sampling")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    check(options.gateway)
    if shutil.which("perf") is None:
        sys.exit("the program perf is needed")
    found = measure(options.gateway.resolve(), options.rounds, options.seconds)
    rates = found["packets_per_processor_s"]
    rate = statistics.median(rates)
    print("| stage | share | ns per packet |")
    print("| --- | --- | --- |")
    for name, share in sorted(found["shares"].items(), key=lambda item: -item[1]):
        print(f"| {name} | {share:.0f} % | {share / 100 / rate * 1e9:.0f} |")
    print(
        f"\n{rate:,.0f} packets per processor second of both ends (median; {min(rates):,.0f}–{max(rates):,.0f}), "
        f"{statistics.median(found['mbit_s']):,.0f} Mbit/s."
    )
    print(load_average())
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
