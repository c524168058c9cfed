"""Measure the speed of runs in a kernel in virtual time.

    python validation/measure/kernel_speed.py [--kernel RELEASE] [--repeats 5]

Packets per second are the engine's packets (data and acknowledgments) over the processor time of
the guest minus that of a run of 1 ms. The start is measured by a table of guests with increasing
work, because a guest's clock does not advance while it starts; each row has the wall time and the
processor time. The minimum of the repeats is reported, because disturbances only add time.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from anabranch import _engine
from anabranch.kernel import engine
from anabranch.kernel.images import Image, chosen
from anabranch.kernel.machine import Job
from anabranch.scenario import Scenario

ROOT = Path(__file__).parents[2]
FILE = ROOT / "scenarios/live/short.toml"
BRIEF = "1 ms"
"""Duration of a run with one packet."""


def cost(call: Callable[[], object]) -> tuple[float, float]:
    """Processor and wall seconds of a call's processes."""
    before, began = _used_s(), time.monotonic()
    call()
    return _used_s() - before, time.monotonic() - began


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def least(repeats: int, call: Callable[[], object]) -> tuple[float, float]:
    """The minimum of both over the repeats."""
    costs = [cost(call) for _ in range(repeats)]
    return min(one[0] for one in costs), min(one[1] for one in costs)


def guest(image: Image, command: list[str]) -> None:
    """Start a guest for one program."""
    with Job() as job:
        job.run(image, command)


def interpreter(code: str) -> list[str]:
    """A Python command, as in the guest's program."""
    return [sys.executable, "-I", "-S", "-c", code]


def command(*words: str) -> None:
    """Run an ``anabranch`` command and discard its output."""
    brief = ["run", str(FILE), "--set", f"duration={BRIEF}", "--json", *words]
    subprocess.run([sys.executable, "-m", "anabranch", *brief], stdout=subprocess.DEVNULL, check=True)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", help="the beginning of a release, or a folder")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    image = chosen(options.kernel)
    scenario = Scenario.from_file(FILE)
    brief = scenario.set("duration", BRIEF)
    packets = 0

    def run() -> None:
        nonlocal packets
        live = engine.run(scenario, kernel=options.kernel).live
        packets = live["audit"]["taken_packets"] if live else 0

    load = (
        f"import _imp, sys; _imp.exec_dynamic(_imp.create_dynamic(type(sys.__spec__)('anabranch._engine', None, "
        f"origin={_engine.__file__!r})))"
    )
    starts: dict[str, Callable[[], object]] = {
        "guest with /bin/true": lambda: guest(image, ["true"]),
        "  and the interpreter": lambda: guest(image, interpreter("pass")),
        "  and the engine": lambda: guest(image, interpreter(load)),
        f"a run of {BRIEF}": lambda: engine.run(brief, kernel=options.kernel),
        "  as a command": lambda: command("--engine", "kernel", "--kernel", str(image.folder)),
        "  the same in the simulator": command,
    }
    print(f"Linux {image.release}, {FILE.relative_to(ROOT)}")
    print(f"{'':28} {'wall':>7} {'processor':>10}")
    costs = {}
    for name, call in starts.items():
        costs[name] = used, wall = least(options.repeats, call)
        print(f"{name:28} {wall:5.3f} s {used:8.3f} s", flush=True)
    start_cpu, start = costs[f"a run of {BRIEF}"]
    whole_cpu, whole = least(options.repeats, run)
    rates = packets / (whole_cpu - start_cpu), packets / (whole - start)
    print(f"a run of {packets:,} packets {whole:.2f} s")
    print("packets a second: {:,.0f} of processor, {:,.0f} of wall".format(*rates))
    return 0


if __name__ == "__main__":
    sys.exit(main())
