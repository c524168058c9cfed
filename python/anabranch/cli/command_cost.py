"""Costs of commands without the engine: start-up, writing recorded packets, and a sweep's work for each run.

Time is processor time of a process, or of work in this process. The least of several measurements
counts, because other work on the machine can only increase it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

MEASUREMENTS = 3
RUNS = 2000
"""Runs of the sweep, many enough to make its constant part (libraries, the first file) negligible."""
LINKS = 10_000
"""Links of the case ``wide``, each with two directions."""

LOSSY = """\
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
CLEAN = """\
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
_RESOLVE = """
from pathlib import Path
from anabranch import _engine
_engine.resolve(Path("wide.toml").read_text(), "wide.toml", [])
"""
"""Resolves the scenario of ``wide``, and runs nothing; compare with ``import``."""


@dataclass(frozen=True)
class Cost:
    """One figure."""

    case: str
    value: float
    unit: str
    note: str


@dataclass(frozen=True)
class Process:
    """One process: its processor time, its peak of memory, and the packets that it recorded."""

    cpu_s: float
    peak_rss_bytes: int
    recorded_packets: int = 0


def measured() -> list[Cost]:
    """Costs of commands without the engine."""
    with tempfile.TemporaryDirectory(prefix="anabranch-bench-") as folder:
        return [_start_up(Path(folder)), _out(Path(folder)), *_sweep(Path(folder))]


def processes() -> dict[str, Process]:
    """Every case of output and start-up, each in a new process."""
    made: dict[str, Process] = {}
    with tempfile.TemporaryDirectory(prefix="anabranch-output-") as name:
        folder = Path(name)
        (folder / "warm-up.toml").write_text(CLEAN.format(duration="100 ms", rate="2 Mbit/s"), encoding="utf-8")
        # Python compiles the modules that the cases import.
        _process(["run", "warm-up.toml", "--out", "warm-up", "--why"], folder)
        for case, arguments in _cases(folder):
            made[case] = _process(arguments, folder)
    return made


def per_recorded_packet(costs: dict[str, Process]) -> dict[str, float]:
    """Cost of a recorded packet: processor time in µs, memory in bytes."""
    recorded, alone = costs["large-out-why"], costs["large"]
    return {
        "cpu_us": round(1e6 * (recorded.cpu_s - alone.cpu_s) / recorded.recorded_packets, 3),
        "memory_bytes": round((recorded.peak_rss_bytes - alone.peak_rss_bytes) / recorded.recorded_packets, 1),
    }


def document(costs: dict[str, Process]) -> dict[str, dict[str, float]]:
    """The cases in the form of JSON."""
    return {**{case: asdict(cost) for case, cost in costs.items()}, "per_recorded_packet": per_recorded_packet(costs)}


def lines(costs: dict[str, Process]) -> Iterator[str]:
    """The cases as a table."""
    yield f"{'case':<20}{'CPU s':>9}{'peak MB':>10}{'packets':>12}"
    for case, cost in costs.items():
        yield f"{case:<20}{cost.cpu_s:>9.3f}{cost.peak_rss_bytes / 1e6:>10.0f}{cost.recorded_packets:>12,}"
    told = per_recorded_packet(costs)
    yield f"per recorded packet: {told['cpu_us']} µs CPU, {told['memory_bytes']} bytes"


def _start_up(folder: Path) -> Cost:
    seconds = min(_process(["--version"], folder).cpu_s for _ in range(MEASUREMENTS))
    return Cost("start-up", seconds * 1e3, "ms", "anabranch --version, in a separate process")


def _out(folder: Path) -> Cost:
    from anabranch import Scenario

    scenario = Scenario.from_text(LOSSY.format(duration="20 s", rate="50 Mbit/s"), file="bench.toml")
    made = scenario.run(packets=True)
    count = made.table("packets").height
    alone = _least(lambda: scenario.run(packets=True))

    def write() -> None:
        scenario.run(packets=True).write(folder / "run")

    seconds = max(_least(write) - alone, 0.0)
    return Cost("run --out", seconds / max(count, 1) * 1e6, "µs per recorded packet", f"{count:,} packets")


def _sweep(folder: Path) -> list[Cost]:
    from anabranch import Scenario, _engine

    text = LOSSY.format(duration="1 s", rate="10 Mbit/s")
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


def _cases(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Names and arguments of every case."""
    star = ['duration = "1 s"\n[flow.main]\nfrom = "n0"\nto = "n1"\ncc = "cubic"']
    star += [
        f'[link.l{i}]\nbetween = ["hub", "n{i}"]\nrate = "10 Mbit/s"\ndelay = "1 ms"\n'
        'queue = { kind = "drop-tail", limit = "50 packets" }'
        for i in range(LINKS)
    ]
    files = {
        "small": CLEAN.format(duration="5 s", rate="2 Mbit/s"),
        "large": CLEAN.format(duration="65 s", rate="1 Gbit/s"),
        "wide": "\n".join(star) + "\n",
    }
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    yield "version", ["--version"]
    yield "help", ["--help"]
    yield "small", ["run", "small.toml"]
    yield "small-out", ["run", "small.toml", "--out", "small-out"]
    yield "small-out-why", ["run", "small.toml", "--out", "small-out-why", "--why"]
    yield "import", ["-c", "from anabranch import _engine"]
    yield "resolve", ["-c", _RESOLVE]
    yield "wide", ["run", "wide.toml"]
    yield "wide-table", ["run", "wide.toml", "--wide"]
    yield "wide-json", ["run", "wide.toml", "--json"]
    yield "large", ["run", "large.toml"]
    yield "large-out", ["run", "large.toml", "--out", "large-out"]
    yield "large-out-why", ["run", "large.toml", "--out", "large-out-why", "--why"]


def _process(arguments: list[str], folder: Path) -> Process:
    """Run the command, or Python's ``-c``, with these arguments, in ``folder``.

    Raises:
        RunFailedError: It failed.
    """
    from anabranch.errors import RunFailedError

    command = [sys.executable, *([] if arguments[0] == "-c" else ["-m", "anabranch"]), *arguments]
    # Like packages that were installed with their bytecode.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with (
        (folder / "stdout").open("wb") as stream,
        subprocess.Popen(command, stdout=stream, stderr=subprocess.PIPE, cwd=folder, env=environment) as process,  # noqa: S603 - ours
    ):
        told = process.stderr.read().decode(errors="replace") if process.stderr is not None else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RunFailedError(f"anabranch {' '.join(arguments)} ended with status {process.returncode}: {told}")
    recorded = _recorded(folder / arguments[arguments.index("--out") + 1]) if "--out" in arguments else 0
    return Process(round(usage.ru_utime + usage.ru_stime, 3), usage.ru_maxrss * 1024, recorded)


def _recorded(out: Path) -> int:
    """Number of recorded packets of a run. There are millions, so their table is not read."""
    if (out / "packets.parquet").exists():
        import polars as pl

        return int(pl.scan_parquet(out / "packets.parquet").select(pl.len()).collect().item())
    with (out / "packets.csv").open("rb") as table:
        return sum(1 for _ in table) - 1


def _least(work: Callable[[], object]) -> float:
    times = []
    for _ in range(MEASUREMENTS):
        before = resource.getrusage(resource.RUSAGE_SELF)
        work()
        after = resource.getrusage(resource.RUSAGE_SELF)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)
