"""What the tunnel makes of pairs of paths, with kernel TCP between namespaces: python bench/gateway/live.py [PROFILE…].

Runs as root, after `cargo build --profile dist -p anabranch-gatewayd`. The live engine carries the frames of each path
between two interfaces as profiles.toml says, and two `anabranch-gateway` bond the paths. Each profile runs over both
paths, and over each alone, with and without the tunnel. Nothing is configured per profile.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

from network import (
    INNER,
    check,
    engine,
    gateway_argument,
    gateways,
    load_average,
    outer,
    spaces,
    temporary,
    wan,
)
from profiles import FILE_BYTES, Profile, arguments, link, table
from tcp import receive, sender


def goodput(program: Path, profile: Profile, paths: list[int], seed: int, through: bool) -> float:
    """Return the goodput in Mbit/s: of a file until all of it has arrived."""
    load = profile.get("load")
    with temporary() as folder, spaces(paths) as names, ExitStack() as stack:
        links = {path: link(profile["paths"][path]) for path in paths}
        stack.enter_context(engine(names["wan"], wan(links, seed), folder, 2 * len(paths)))
        server = outer("far", paths[0])
        if through:
            stack.enter_context(gateways(program, names, paths, folder))
            server = INNER["far"]
        stack.enter_context(sender(names["far"], server, load["cc"] if load else "bbr"))
        flows, amount = (load["flows"], f"{load['seconds']}s") if load else (1, str(FILE_BYTES))
        return receive(names["near"], server, flows, amount)


if __name__ == "__main__":
    parser = arguments(__doc__)
    gateway_argument(parser)
    options = parser.parse_args()
    check(options.gateway)
    table(options, partial(goodput, options.gateway.resolve()))
    print(load_average())
