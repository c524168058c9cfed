"""Goodput of the tunnel over pairs of paths, with kernel TCP in namespaces: python bench/gateway/live.py [PROFILE…].

Runs as root, after `cargo build --profile dist -p anabranch-gatewayd`. The live engine carries the frames of each path
between two interfaces as profiles.toml says, and two `anabranch-gateway` bond the paths. Each profile runs over both
paths, and over each alone, with and without the tunnel. Nothing is configured per profile. The kernel's Multipath TCP
runs over both paths without a tunnel, in one run with the others: it serves programs that open its sockets.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from network import (
    ENDS,
    INNER,
    check,
    ended,
    engine,
    gateway_argument,
    gateways,
    load_average,
    outer,
    run,
    spaces,
    temporary,
    wan,
)
from profiles import FILE_BYTES, Profile, arguments, link, table
from tcp import receive, sender


def load_of(profile: Profile) -> tuple[str, int, str]:
    """Return a profile's congestion control, number of flows and amount."""
    load = profile.get("load")
    return (load["cc"], load["flows"], f"{load['seconds']}s") if load else ("bbr", 1, str(FILE_BYTES))


def mptcp(profile: Profile, seed: int) -> float:
    """Return the goodput in Mbit/s of the kernel's Multipath TCP; the server announces its addresses."""
    paths = range(len(profile["paths"]))
    with temporary() as folder, spaces(paths) as names, ExitStack() as stack:
        links = {path: link(profile["paths"][path]) for path in paths}
        stack.enter_context(engine(names["wan"], wan(links, seed), folder, 2 * len(paths)))
        for end in ENDS:
            run("ip", "-n", names[end], "mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8")
        for path in paths[1:]:
            announced = ("endpoint", "add", outer("far", path), "dev", f"wan{path}", "signal")
            run("ip", "-n", names["far"], "mptcp", *announced)
        control, flows, amount = load_of(profile)
        server = outer("far", 0)
        stack.enter_context(sender(names["far"], server, control, "mptcp"))
        return receive(names["near"], server, flows, amount, "mptcp")


def goodput(program: Path, profile: Profile, paths: list[int], seed: int, through: bool) -> float:
    """Return the goodput in Mbit/s: of a file until all of it has arrived."""
    with temporary() as folder, spaces(paths) as names, ExitStack() as stack:
        links = {path: link(profile["paths"][path]) for path in paths}
        stack.enter_context(engine(names["wan"], wan(links, seed), folder, 2 * len(paths)))
        server = outer("far", paths[0])
        if through:
            stack.enter_context(gateways(program, names, paths, folder))
            server = INNER["far"]
        control, flows, amount = load_of(profile)
        stack.enter_context(sender(names["far"], server, control))
        return receive(names["near"], server, flows, amount)


if __name__ == "__main__":
    parser = arguments(__doc__)
    gateway_argument(parser)
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="use N processors meanwhile; %(default)s")
    options = parser.parse_args()
    check(options.gateway)
    with ExitStack() as stack:
        for _ in range(options.busy):
            stack.enter_context(ended(subprocess.Popen([sys.executable, "-c", "while True: pass"], text=True)))
        table(options, partial(goodput, options.gateway.resolve()), {"kernel MPTCP": mptcp})
    print(load_average())
