"""What commands take besides the engine: start-up, writing recorded packets, and a sweep's work for each run.

Processor time of this process and its children, the least of several measurements: other work on the machine only adds.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MEASUREMENTS = 3
RUNS = 2000
"""Of the sweep: its constant part (libraries, the first file) is small beside them."""

SCENARIO = """\
duration = "{duration}"
[link.a]
between = ["S", "R"]
rate = "{rate}"
delay = "10 ms"
queue = {{ kind = "drop-tail", limit = "50 packets" }}
forward.impair = [{{ kind = "bernoulli-loss", rate = 0.01 }}]
[flow.main]
from = "S"
to = "R"
"""


@dataclass(frozen=True)
class Cost:
    """One figure."""

    case: str
    value: float
    unit: str
    note: str


def measured() -> list[Cost]:
    """Every figure."""
    with tempfile.TemporaryDirectory(prefix="anabranch-bench-") as folder:
        return [_start_up(), _out(Path(folder)), *_sweep(Path(folder))]


def _start_up() -> Cost:
    command = [sys.executable, "-m", "anabranch", "--version"]
    seconds = _least(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))  # noqa: S603 - ours
    return Cost("start-up", seconds * 1e3, "ms", "anabranch --version, a process of its own")


def _out(folder: Path) -> Cost:
    from anabranch import Scenario

    scenario = Scenario.from_text(SCENARIO.format(duration="20 s", rate="50 Mbit/s"), file="bench.toml")
    made = scenario.run(packets=True)
    count = made.table("packets").height
    alone = _least(lambda: scenario.run(packets=True))

    def write() -> None:
        scenario.run(packets=True).write(folder / "run")

    seconds = max(_least(write) - alone, 0.0)
    return Cost("run --out", seconds / max(count, 1) * 1e6, "µs per recorded packet", f"{count:,} packets")


def _sweep(folder: Path) -> list[Cost]:
    from anabranch import Scenario, _engine

    text = SCENARIO.format(duration="1 s", rate="10 Mbit/s")
    scenario = Scenario.from_text(text, file="bench.toml")
    work: list[tuple[str, str, list[str], int | None]] = [(text, "bench.toml", [], seed) for seed in range(RUNS)]

    def engine() -> None:
        for start in range(0, RUNS, 500):
            _engine.run_many(work[start : start + 500], threads=1)

    alone = _least(engine)
    places = iter(range(MEASUREMENTS))
    kept = _least(lambda: scenario.sweep({}, repeat=RUNS, jobs=1, out=folder / f"sweep-{next(places)}"))
    size = sum(path.stat().st_size for path in (folder / "sweep-0" / "points").iterdir())
    return [
        Cost("engine, a short run", alone / RUNS * 1e3, "ms per run", f"{RUNS:,} runs on one thread"),
        Cost("sweep --out, besides", max(kept - alone, 0.0) / RUNS * 1e3, "ms per run", "the same runs"),
        Cost("sweep --out, on disk", size / RUNS, "B per run", "finished runs"),
    ]


def _least(work: Callable[[], object]) -> float:
    times = []
    for _ in range(MEASUREMENTS):
        before = _processor_s()
        work()
        times.append(_processor_s() - before)
    return min(times)


def _processor_s() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in used)
