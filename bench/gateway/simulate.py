"""Goodput of the tunnel over pairs of paths, in virtual time: python bench/gateway/simulate.py [PROFILE…].

Each profile of profiles.toml runs over both paths through `kind = "tunnel"`, and over each alone, with and without it.
"""

from __future__ import annotations

from typing import Any

from anabranch import Scenario

from profiles import FILE_BYTES, Profile, arguments, link, table

LAN = {"rate": "1 Gbit/s", "delay": "0 ms"}


def scenario(profile: Profile, paths: list[int], through: bool) -> Scenario:
    """Return the scenario of a profile over these paths."""
    links: dict[str, Any] = {
        "lan1": {"between": ["client", "near"], **LAN},
        "lan2": {"between": ["far", "server"], **LAN},
    }
    routes = [f"path{path + 1}" for path in paths]
    for route, path in zip(routes, paths, strict=True):
        links[route] = {"between": ["near", "far"], **link(profile["paths"][path])}
    load = profile.get("load")
    document: dict[str, Any] = {
        "title": "Two paths",
        # Flows begin when every path has been validated.
        "duration": f"{load['seconds'] + 2} s" if load else "122 s",
        "warmup": "2 s",
        "link": links,
        "flow": {
            "main": {
                "from": "server",
                "to": "client",
                "start": "2 s",
                "cc": load["cc"] if load else "bbr",
                "count": load["flows"] if load else 1,
                "workload": {"kind": "bulk"} if load else {"kind": "file", "size": f"{FILE_BYTES} bytes"},
            }
        },
    }
    if through:
        document["gateway"] = {"bond": {"kind": "tunnel", "between": ["near", "far"], "routes": routes}}
    return Scenario.from_dict(document)


def goodput(profile: Profile, paths: list[int], seed: int, through: bool) -> float:
    """Return the goodput in Mbit/s: of a file until all of it has arrived."""
    flows = list(scenario(profile, paths, through).run(seed=seed, digest=False).summary["flows"].values())
    time = flows[0]["flow_completion_time_s"]
    return FILE_BYTES * 8e-6 / time if time else sum(flow["goodput_mbit_s"] or 0 for flow in flows)


if __name__ == "__main__":
    table(arguments(__doc__).parse_args(), goodput)
