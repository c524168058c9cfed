"""The pairs of paths of profiles.toml, as links of scenarios, and the table of their measurements."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anabranch.convert.content import Notes, Source
from anabranch.convert.netem import read as read_netem
from anabranch.text import toml_text

Profile = dict[str, Any]
Measure = Callable[[Profile, list[int], int, bool], float]
"""The goodput in Mbit/s of a profile over these of its paths, with a seed, through the tunnel or not."""

Other = Callable[[Profile, int], float]
"""The goodput in Mbit/s of a profile over both paths, with a seed, of a reference other than the tunnel."""

PROFILES = Path(__file__).with_name("profiles.toml")
LEAST_OF_SINGLE = 0.97
LEAST_OF_MQVPN = 1.25
FILE_BYTES = 20 << 20


def link(netem: str) -> dict[str, Any]:
    """Return both directions of a link that netem would make with these arguments."""
    script = "".join(f"tc qdisc add dev {device} root netem {netem}\n" for device in ("near", "far"))
    path: dict[str, Any] = read_netem(Source("path.sh", script.encode(), Path()), Notes()).document["link"]["path"]
    return {key: value for key, value in path.items() if key != "between"}


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return the argument parser of both programs."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("profiles", nargs="*", help="names in profiles.toml; all by default")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="runs of each, whose median counts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return parser


def table(options: argparse.Namespace, measure: Measure, others: dict[str, Other] | None = None) -> None:
    """Print the table of targets, a row as soon as it is measured, with a column more for each of the others.

    Goodputs are in Mbit/s: over both paths, and over the better one, through the tunnel and without it. mqvpn measured
    its single paths through its tunnel, too.
    """
    known: dict[str, Profile] = toml_text.parse(PROFILES.read_text(encoding="utf-8"), PROFILES.name)
    if unknown := [name for name in options.profiles if name not in known]:
        sys.exit(f"{unknown[0]}: no such profile; there are {', '.join(known)}")
    others = others or {}
    columns = ["profile", "both", "one, tunnel", "one, bare", "both ÷ one, tunnel", "target", "mqvpn: both", "one"]
    for cells in ([*columns, *others], ["---"] * (len(columns) + len(others))):
        print("|", " | ".join(cells), "|")
    rows = [_row(name, known[name], options.seeds, measure, others) for name in options.profiles or known]
    published = [row for row in rows if "mqvpn" in row]
    if published:
        gain = math.exp(statistics.fmean(math.log(row["tunnel"] / row["mqvpn"]) for row in published))
        print(f"\nGeometric mean of tunnel ÷ mqvpn's best: {gain:.2f}; target {LEAST_OF_MQVPN}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _row(name: str, profile: Profile, seeds: int, measure: Measure, others: dict[str, Other]) -> dict[str, Any]:
    def median(paths: list[int], through: bool) -> float:
        return statistics.median(measure(profile, paths, seed, through) for seed in range(1, seeds + 1))

    every = list(range(len(profile["paths"])))
    single, bare = (max(median([path], through) for path in every) for through in (True, False))
    tunnel = median(every, True)
    beside = {
        other: statistics.median(goodput(profile, seed) for seed in range(1, seeds + 1))
        for other, goodput in others.items()
    }
    published = profile.get("published", {})
    target = profile.get("target")
    shown = f"≥ {target} Mbit/s" if target else f"ratio ≥ {LEAST_OF_SINGLE if published else 1.0}"
    theirs = " | ".join(str(published.get(key, "–")) for key in ("mqvpn", "single"))
    figures = f"{tunnel:.1f} | {single:.1f} | {bare:.1f} | {tunnel / single:.2f}"
    more = "".join(f" {mbit_s:.1f} |" for mbit_s in beside.values())
    print(f"| {name} | {figures} | {shown} | {theirs} |{more}", flush=True)
    return (
        {"profile": name, "tunnel": tunnel, "single": single, "bare": bare, "target": target}
        | beside
        | ({"mqvpn": published["mqvpn"], "mqvpn_single": published["single"]} if published else {})
    )
