"""How much a kernel's flow gets under random loss beside a simulated one that loses the same packets.

    tools/env python tests/live/equal_seeds.py [SEEDS]

One flow at 100 Mbit/s, 10 ms and 1 % loss on a link of its own; live goodput over simulated goodput by seed, with the
profile as it is and with one of its habits turned off at a time. A habit that the kernel has not, or that is missing,
shows as a ratio that is off by as much for every seed.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from statistics import mean

from anabranch.limits import thread_count
from anabranch.live import prepare, run_audited, taint
from anabranch.scenario import Scenario
from anabranch.validate.host_times import with_host_times

TEXT = """
duration = "12 s"

[link.loss]
between = ["A", "M"]
forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]

[link.path]
between = ["M", "B"]
rate = "100 Mbit/s"
delay = "5 ms"
queue = { kind = "drop-tail", limit = "82 packets" }

[flow.main]
from = "A"
to = "B"
"""

HABITS: dict[str, dict[str, bool | str]] = {
    "the profile": {},
    "window_rules = linux-2.6": {"window_rules": "linux-2.6"},
    "clock_tick = 0 s": {"clock_tick": "0 s"},
    "arithmetic = linux-2.6": {"arithmetic": "linux-2.6"},
}

DRAWS = 4
"""Simulated runs per seed, with other times that hosts take."""


def main() -> int:
    """Run live and print the ratios."""
    seeds = range(1, 1 + (int(sys.argv[1]) if len(sys.argv) > 1 else 6))
    prepare()
    for control in ("reno", "cubic"):
        text = f'{TEXT}cc = "{control}"\n'
        live = {}
        for seed in seeds:
            result = run_audited(Scenario.from_text(text), seed=seed)
            if reasons := taint(result):
                print(f"{control}, seed {seed}: left out, {'; '.join(reasons)}")
            else:
                live[seed] = _goodput(result.summary)
        for habit, switches in HABITS.items():
            scenario = Scenario.from_text(text)
            for name, value in switches.items():
                scenario.set(f"flow.main.transport.{name}", value)
            ratios = [live[seed] / _simulated(scenario, seed) for seed in live]
            told = " ".join(f"{ratio:.3f}" for ratio in ratios)
            print(f"{control}, {habit}: live over simulated goodput {mean(ratios):.4f} (by seed {told})")
    return 0


def _simulated(scenario: Scenario, seed: int) -> float:
    with ThreadPoolExecutor(thread_count(None, DRAWS)) as pool:
        runs = pool.map(lambda run: run.run(seed=seed, digest=False), with_host_times(scenario, DRAWS))
        return mean(_goodput(run.summary) for run in runs)


def _goodput(summary: object) -> float:
    return float(summary["flows"]["main"]["goodput_mbit_s"])  # type: ignore[index]


if __name__ == "__main__":
    sys.exit(main())
