"""What the output of a run costs: CPU time and peak memory of commands, and per recorded packet.

    python bench/output/cost.py [--json] [--only CASE]

Each case is one process. CPU time is user and system time of that process, memory the peak of its resident set. The
cost per recorded packet is the difference between the runs with and without --out --why, divided by the rows of
packets.parquet.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

PATH = """
duration = "{duration}"
[link.path]
between = ["A", "B"]
rate = "{rate}"
delay = "10 ms"
queue = {{ kind = "drop-tail", limit = "1 bdp" }}
[flow.main]
from = "A"
to = "B"
cc = "cubic"
transport = {{ receive_window = "unlimited", send_buffer = "unlimited" }}
"""
LINKS = 10_000
"""Links of the case ``wide``, each with two directions."""
RESOLVE = """
from pathlib import Path
from anabranch import _engine
_engine.resolve(Path("wide.toml").read_text(), "wide.toml", [])
"""
"""Resolves the scenario of ``wide``, and runs nothing; compare with ``import``."""


@dataclass(frozen=True)
class Cost:
    """One process: its CPU time, its peak of memory, and the packets that it recorded."""

    cpu_s: float
    peak_rss_bytes: int
    recorded_packets: int = 0


def measure(arguments: list[str], directory: Path) -> Cost:
    """Run the command, or Python's ``-c``, with these arguments; what it writes goes into ``directory``."""
    command = [sys.executable, *([] if arguments[0] == "-c" else ["-m", "anabranch"]), *arguments]
    # As where the packages were installed with their bytecode.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(directory / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    out = directory / "stdout"
    with out.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.PIPE, cwd=directory, env=environment)  # noqa: S603 - ours
        told = process.stderr.read().decode(errors="replace") if process.stderr is not None else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"anabranch {' '.join(arguments)} ended with status {process.returncode}: {told}")
    return Cost(round(usage.ru_utime + usage.ru_stime, 3), usage.ru_maxrss * 1024)


def warm_up(directory: Path) -> None:
    """Let Python compile what the cases import."""
    (directory / "warm-up.toml").write_text(PATH.format(duration="100 ms", rate="2 Mbit/s"), encoding="utf-8")
    measure(["run", "warm-up.toml", "--out", "warm-up", "--why"], directory)


def recorded(table: Path) -> int:
    """The rows of a table."""
    import polars as pl

    return int(pl.scan_parquet(table).select(pl.len()).collect().item())


def star(links: int) -> str:
    """A hub with so many links, and one flow between two of its leaves."""
    parts = ['duration = "1 s"']
    parts += [
        f'[link.l{i}]\nbetween = ["hub", "n{i}"]\nrate = "10 Mbit/s"\ndelay = "1 ms"\n'
        'queue = { kind = "drop-tail", limit = "50 packets" }'
        for i in range(links)
    ]
    parts.append('[flow.main]\nfrom = "n0"\nto = "n1"\ncc = "cubic"')
    return "\n".join(parts) + "\n"


def cases(directory: Path) -> Iterator[tuple[str, list[str]]]:
    """Names and arguments of every case."""
    files = {
        "small": PATH.format(duration="5 s", rate="2 Mbit/s"),
        "large": PATH.format(duration="65 s", rate="1 Gbit/s"),
        "wide": star(LINKS),
    }
    for name, text in files.items():
        (directory / f"{name}.toml").write_text(text, encoding="utf-8")
    yield "version", ["--version"]
    yield "help", ["--help"]
    yield "small", ["run", "small.toml"]
    yield "small-out", ["run", "small.toml", "--out", "small-out"]
    yield "small-out-why", ["run", "small.toml", "--out", "small-out-why", "--why"]
    yield "import", ["-c", "from anabranch import _engine"]
    yield "resolve", ["-c", RESOLVE]
    yield "wide", ["run", "wide.toml"]
    yield "wide-table", ["run", "wide.toml", "--wide"]
    yield "wide-json", ["run", "wide.toml", "--json"]
    yield "large", ["run", "large.toml"]
    yield "large-out", ["run", "large.toml", "--out", "large-out"]
    yield "large-out-why", ["run", "large.toml", "--out", "large-out-why", "--why"]


def per_packet(costs: dict[str, Cost], case: str) -> dict[str, float]:
    """What recording a packet costs: CPU time in µs, memory in bytes."""
    with_, without = costs[f"{case}-out-why"], costs[case]
    return {
        "cpu_us": round(1e6 * (with_.cpu_s - without.cpu_s) / with_.recorded_packets, 3),
        "memory_bytes": round((with_.peak_rss_bytes - without.peak_rss_bytes) / with_.recorded_packets, 1),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What the output of a run costs.")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--only", action="append", metavar="CASE", help="measure only this case")
    options = parser.parse_args()
    costs: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory(prefix="anabranch-output-") as made:
        directory = Path(made)
        warm_up(directory)
        for name, arguments in cases(directory):
            if options.only and name not in options.only:
                continue
            cost = measure(arguments, directory)
            table = directory / name / "packets.parquet"
            costs[name] = Cost(cost.cpu_s, cost.peak_rss_bytes, recorded(table)) if table.exists() else cost
    document: dict[str, object] = {name: asdict(cost) for name, cost in costs.items()}
    if {"large", "large-out-why"} <= costs.keys():
        document["per_recorded_packet"] = per_packet(costs, "large")
    if options.json:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return
    sys.stdout.write(f"{'case':<20}{'CPU s':>9}{'peak MB':>10}{'packets':>12}\n")
    for name, cost in costs.items():
        sys.stdout.write(
            f"{name:<20}{cost.cpu_s:>9.3f}{cost.peak_rss_bytes / 1e6:>10.0f}{cost.recorded_packets:>12,}\n"
        )
    if "per_recorded_packet" in document:
        told = per_packet(costs, "large")
        sys.stdout.write(f"per recorded packet: {told['cpu_us']} µs CPU, {told['memory_bytes']} bytes\n")


if __name__ == "__main__":
    main()
