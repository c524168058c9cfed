"""Draw a flow in the simulator, a kernel in virtual time and this machine's: docs/guides/kernel-engines.svg.

    python validation/kernel/three_engines.py [--kernel RELEASE]

Upper part: the congestion window. Lower part: the time difference of each packet between the
simulator and each of the others, until the first packet that differs. The live engine needs its
privileges (docs/concepts/live.md).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from anabranch.live import first_send_buffer
from anabranch.plot.style import COLOURS, house_style
from anabranch.result.result import RunResult
from anabranch.scenario import Scenario
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kernel.first_difference import first_difference, packets

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = ROOT / "scenarios/live/thin.toml"
FIGURE = ROOT / "docs/guides/kernel-engines.svg"
FLOW = "main"
EVERYTHING = 1e9
"""Tolerance in seconds that ignores differences in time."""


def windows(result: RunResult) -> tuple[list[float], list[float]]:
    """The congestion window over time."""
    rows = [row for row in result.table("samples").to_dicts() if row["flow"] == FLOW]
    return [row["time_s"] for row in rows], [row["cwnd_packets"] for row in rows]


def apart(ours: RunResult, theirs: RunResult) -> tuple[list[float], list[float]]:
    """Times of the packets that both send, and their differences in microseconds."""
    one, other = packets(ours, FLOW), packets(theirs, FLOW)
    alike = first_difference(one, other, EVERYTHING)
    pairs = list(zip(one, other, strict=False))[:alike]
    return [row["sent_s"] for row, _ in pairs], [abs(row["sent_s"] - far["sent_s"]) * 1e6 for row, far in pairs]


def draw(simulated: Scenario, beside: Mapping[str, tuple[RunResult, str]]) -> None:
    """Draw both parts; each run is drawn with the matching profile of the simulator."""
    figure = Figure(figsize=(6.6, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    upper, lower = figure.subplots(2, 1, sharex=True)
    for colour, (label, (result, stack)) in zip(COLOURS[1:], beside.items(), strict=False):
        ours = simulated.set("flow.main.stack", stack).run(packets=True, samples_ms=20)
        upper.plot(*windows(ours), color=colour, alpha=0.3, linewidth=4, label=f"simulator, {stack}")
        upper.plot(*windows(result), color=colour, linewidth=1, label=label)
        times, gaps = apart(ours, result)
        name = f"{label}: {len(times)} packets, then one that differs"
        lower.plot(times, np.maximum(gaps, 0.1), ".", color=colour, markersize=3, label=name, rasterized=True)
    upper.set_ylabel("cwnd [packets]")
    upper.legend(loc="lower right")
    lower.set(yscale="log", ylabel="apart from the simulator [µs]", xlabel="time [s]")
    lower.legend(loc="center right")
    figure.savefig(FIGURE, format="svg", metadata={"Date": None}, dpi=150)


def main() -> int:
    """Run the three and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="6.12", help="the beginning of a release, or a folder")
    options = parser.parse_args()
    scenario = Scenario.from_file(SCENARIO)
    kernel = scenario.run_kernel(kernel=options.kernel, packets=True, samples_ms=20)
    live = scenario.run_live(packets=True, samples_ms=20)
    simulated = scenario.set("flow.main.transport.send_autotuning_start", f"{first_send_buffer(scenario)} bytes")
    beside = {
        f"Linux {options.kernel} in virtual time": (kernel, "linux-6.12"),
        f"Linux {'.'.join(os.uname().release.split('.')[:2])} in real time": (live, "linux-6.18"),
    }
    with house_style():
        draw(simulated, beside)
    print(FIGURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
