"""Measure how fast runs in a kernel in virtual time are.

    python validation/measure/kernel_speed.py [--kernel RELEASE] [--repeats 5]

Packets a second are those that the engine moved (data and acknowledgments), over the processor time of the guest less
that of a run without packets of flows; the start is the time of a guest that does nothing and of one that loads the
engine. The least of the repeats counts: others only add to it.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from anabranch.kernel import engine
from anabranch.kernel.images import Image, chosen
from anabranch.kernel.machine import Job
from anabranch.scenario import Scenario

ROOT = Path(__file__).parents[2]
FILE = ROOT / "scenarios/live/short.toml"


def cost(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of processors and of the wall that a call's processes take."""
    used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])  # noqa: E731
    before, began = used(), time.monotonic()
    call()
    return used() - before, time.monotonic() - began


def least(repeats: int, call: Callable[[], object]) -> tuple[float, float]:
    """The least of both over the repeats."""
    costs = [cost(call) for _ in range(repeats)]
    return min(one[0] for one in costs), min(one[1] for one in costs)


def start(image: Image, command: list[str]) -> None:
    """Start a guest for one program."""
    with Job() as job:
        job.run(image, command)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", help="the beginning of a release, or a folder")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    image = chosen(options.kernel)
    scenario = Scenario.from_file(FILE)
    packets = 0

    def run() -> None:
        nonlocal packets
        audit = engine.run(scenario, kernel=options.kernel).summary["live"]["audit"]
        packets = audit["taken_packets"]

    def run_briefly() -> None:
        engine.run(scenario.set("duration", "1 ms"), kernel=options.kernel)

    _, empty = least(options.repeats, lambda: start(image, ["true"]))
    engine_cpu, loaded = least(options.repeats, run_briefly)
    whole_cpu, whole = least(options.repeats, run)
    print(f"Linux {image.release}, {FILE.relative_to(ROOT)}: {packets} packets")
    print(f"guest alone {empty:.2f} s, guest with the engine {loaded:.2f} s, run {whole:.2f} s")
    rates = packets / (whole_cpu - engine_cpu), packets / (whole - loaded)
    print("packets a second: {:,.0f} of processor, {:,.0f} of wall".format(*rates))
    return 0


if __name__ == "__main__":
    sys.exit(main())
