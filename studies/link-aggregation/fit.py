"""How what the paper leaves open was chosen: grids, and how far each point is from the cells that it is fitted to.

    python studies/link-aggregation/fit.py

Five cells without control decide round-trip time, queue and length; CUBIC's cell with control decides section,
interval and percentile. No other cell is looked at.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from anabranch import Scenario
from anabranch.scenario import Value

HERE = Path(__file__).parent
CONTROLS: dict[str, Value] = {
    "ctcp": "compound",
    "cubic": {"kind": "cubic", "beta": 0.8},
    "westwood": {"kind": "westwood-plus", "form": "linux"},
    "newreno": "reno",
    "vegas": "vegas",
}
OFF = {"ctcp": 793.9, "cubic": 797.6, "westwood": 763.2, "newreno": 694.9, "vegas": 592.1}
"""Table 1, without control (Mbit/s)."""
CUBIC_ON = 703.3
"""Table 1, CUBIC with control."""
CLOSE = 0.05
"""A cell is met within so much."""

RTT_MS = [22, 26, 28, 30, 40]
QUEUES = [200, 300, 400, 500, 700]
LENGTHS_S = [60, 80, 90, 100, 110, 120, 150, 200]
SECTIONS_MS = [1, 2, 5, 10]
INTERVALS_MS = [200, 300, 500, 1000]
PERCENTILES = [30, 35, 38, 40, 50, 60, 70]


def scenario(control: str, rtt_ms: float, queue: int) -> Scenario:
    """Return one flow over that path."""
    return (
        Scenario.from_file(HERE / "flow.toml")
        .set("flow.main.cc", CONTROLS[control])
        .set("group.core.delay", f"{(rtt_ms - 20) / 2} ms")
        .set("group.core.queue.limit", f"{queue} packets")
    )


def without_control(point: tuple[int, int, str]) -> dict[int, float]:
    """Throughput by length of the run, from one run of the longest."""
    rtt_ms, queue, control = point
    result = scenario(control, rtt_ms, queue).set("group.core.control", "always-on").run(samples_ms=1000)
    flow = result.flows["main"]
    headers = float(flow["throughput_mbit_s"] or 0) / float(flow["goodput_mbit_s"] or 1)
    samples = result.table("samples")
    delivered = dict(zip(samples["time_s"].to_list(), samples["delivered_bytes"].to_list(), strict=True))
    return {length: delivered[float(length)] * 8e-6 / length * headers for length in LENGTHS_S}


def with_control(point: tuple[int, int, int]) -> float:
    """CUBIC's throughput."""
    section, interval, percentile = point
    control: Value = {
        "kind": "peak-percentile",
        "bin": "1 ms",
        "section": f"{section} ms",
        "interval": f"{interval} ms",
        "percentile": percentile,
    }
    flow = scenario("cubic", 30, 400).set("group.core.control", control).run().flows["main"]
    return float(flow["throughput_mbit_s"] or 0)


def off_rows(pool: ProcessPoolExecutor) -> Iterator[tuple[int, float, str]]:
    """Cells met, the largest residual of those, and the row."""
    points = [(*path, control) for path in itertools.product(RTT_MS, QUEUES) for control in CONTROLS]
    found = dict(zip(points, pool.map(without_control, points), strict=True))
    for (rtt_ms, queue), length in itertools.product(itertools.product(RTT_MS, QUEUES), LENGTHS_S):
        residuals = [found[rtt_ms, queue, name][length] / OFF[name] - 1 for name in CONTROLS]
        met = [abs(residual) for residual in residuals if abs(residual) <= CLOSE]
        shown = "  ".join(f"{100 * residual:+6.1f}" for residual in residuals)
        yield -len(met), max(met, default=0.0), f"{rtt_ms:6}  {queue:6}  {length:6}  {shown}  {len(met)}"


def show(title: str, heading: str, rows: Sequence[str]) -> None:
    """Print the best rows."""
    print(f"{title}\n\n{heading}")
    print("\n".join(rows[:12]), end="\n\n")


def main() -> int:
    """Make both fits."""
    with ProcessPoolExecutor() as pool:
        rows = [row for _, _, row in sorted(off_rows(pool))]
        names = "  ".join(f"{name[:6]:>6}" for name in CONTROLS)
        show("Without control: residuals (%)", f"RTT/ms   queue  length  {names}  met", rows)
        points = list(itertools.product(SECTIONS_MS, INTERVALS_MS, PERCENTILES))
        found = sorted(
            (abs(mbit_s / CUBIC_ON - 1), mbit_s, point)
            for point, mbit_s in zip(points, pool.map(with_control, points), strict=True)
        )
        shown = [
            f"{section:7}  {interval:8}  {percentile:10}  {mbit_s:6.1f}  {100 * (mbit_s / CUBIC_ON - 1):+5.1f}"
            for _, mbit_s, (section, interval, percentile) in found
        ]
        show("CUBIC with control (Mbit/s), residual (%)", "section  interval  percentile  Mbit/s  residual", shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
