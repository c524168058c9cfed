"""The difference between the two engines: one scenario in both, over several seeds.

A difference is meaningful only beside two others. One is the spread of live runs: the same file with the same seed is
run live twice, and a difference below that floor is undecidable. The other is the error of another congestion control:
the simulator runs the scenario again with every control exchanged (:data:`OTHERS`). An error that is not far below that
distance does not distinguish the two controls.

The simulator's answer is a mean as well, over runs whose hosts take the same times as hosts of live runs to begin flows
and to answer (:mod:`~anabranch.validate.host_times`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.live import Machine
from anabranch.validate.host_times import HostTimes, in_parts_of_tick, with_host_times, with_written_buffers
from anabranch.validate.keep import LiveRun
from anabranch.validate.measure import (
    METRICS,
    Figures,
    Metric,
    distance,
    mean_figures,
    measure,
    one_sided,
    window_distance,
)

if TYPE_CHECKING:
    from anabranch.live import Limits
    from anabranch.result.result import LiveRunResult
    from anabranch.scenario import Scenario

OTHERS: Mapping[str, str] = {"cubic": "reno", "reno": "cubic", "bbr": "cubic"}
"""The control that is simulated as an alternative: the most similar one of the controls in every kernel."""

OTHER_THAN_THESE = "cubic"
"""The alternative for any further control."""

ALIKE = ("reno", "cubic", "bbr")
"""The answer of a formula blind to the control: the mean over runs in which all flows have one of these."""

REPEATS = 2
"""Live runs per seed."""

DRAWS = 64
"""Runs of the simulator per seed, each with other delays of hosts, within the budget of :data:`EVENTS`."""

EVENTS = 64_000_000
"""Budget of events per seed. A scenario with more events has fewer draws, because it averages over more packets."""

FEW_DRAWS = 4
"""Smallest number of draws; also that for the blind formula, whose error is either tens of per cent or none."""

RECEIVER, RECEIVER_BEFORE, SINCE = "linux", "linux-6.12", (6, 16)
"""The receiver of Linux since 6.16, and that of the kernels before it."""

MOST_RUNS = 4
"""Largest number of live runs per seed: tainted runs are repeated up to it. Each of them counts as tainted."""

WINDOW = "cwnd_packets"
"""The metric of trajectories: the distance of the windows at the same time, as a share of the live window's mean."""


@dataclass
class Result:
    """One metric of a scenario. Distances are shares, and square roots of a count for retransmissions.

    Attributes:
        sim: The mean over the seeds, by group of flows.
        live: The same for the live runs.
        error: Distance between the two.
        floor: Distance between live runs that differ by chance alone.
        other: Distance of the answers of other congestion controls from the live runs.
        blind: Distance of the answer that ignores the controls.
    """

    sim: dict[str, float]
    live: dict[str, float]
    error: float
    floor: float
    other: float | None = None
    blind: float | None = None

    def document(self) -> dict[str, Any]:
        """The document, as in the contract."""
        return {
            "sim": _over(self.sim),
            "live": _over(self.live),
            "relative_error": self.error,
            "live_against_live": self.floor,
            "other_control": self.other,
            "blind": self.blind,
            "by_flow": {group: {"sim": self.sim[group], "live": self.live[group]} for group in self.live},
        }


@dataclass
class Comparison:
    """One scenario: figures by metric, over all its flows and seeds."""

    file: str
    seeds: int
    tainted_runs: int = 0
    used_tainted: int = 0
    """Tainted runs whose figures were used on request."""
    live_runs: int = 0
    results: dict[str, Result] = field(default_factory=dict)
    one_sided: set[str] = field(default_factory=set)
    """Figures that only one engine has: a transfer that never ended, a flow without a byte."""
    left_out: list[int] = field(default_factory=list)
    """Seeds without a usable pair of live runs; no figure includes them."""
    machine: Machine = field(default_factory=Machine)
    """The machine of the live runs: the kernel's version and the number of processors."""
    times: HostTimes | None = None
    """Delays of the simulated hosts."""
    engine: str = "live"
    """``"live"``, or ``"kernel"`` for Linux kernels in virtual time."""

    @property
    def tainted(self) -> bool:
        """Whether no seed has both live runs to compare with, or the figures come from tainted runs."""
        return self.used_tainted > 0 or (not self.results and not self.one_sided)

    def document(self) -> dict[str, Any]:
        """The document, as in the contract."""
        return {
            "file": self.file,
            "engine": self.engine,
            "seeds": self.seeds,
            "tainted": self.tainted,
            "tainted_runs": self.tainted_runs,
            "used_tainted_runs": self.used_tainted,
            "live_runs": self.live_runs,
            "seeds_left_out": self.left_out,
            "metrics": {name: result.document() for name, result in self.results.items()},
        }


def _over(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)


def exchanged(scenario: Scenario, controls: Callable[[str], str]) -> Scenario:
    """The scenario with each flow's congestion control replaced by the result of ``controls`` for its name."""
    from anabranch.text.toml_text import write_key

    changed = scenario
    for name, flow in scenario.resolve()["resolved_scenario"]["flow"].items():
        cc = flow.get("cc")
        kind = cc.get("kind") if isinstance(cc, Mapping) else cc
        if isinstance(kind, str):
            changed = changed.set(f"flow.{write_key(name)}.cc", controls(kind))
    return changed


def as_in_guest(scenario: Scenario, release: str) -> Scenario:
    """The scenario with the receiver of a kernel's release, and the applications of a live run.

    The receive window remains the scenario's: hosts of a guest have buffers for it.
    """
    from anabranch.kernel.images import numbers
    from anabranch.text.toml_text import write_key

    changed = with_written_buffers(scenario, scenario)
    for name, flow in scenario.resolve()["resolved_scenario"]["flow"].items():
        if flow.get("transport", {}).get("receiver") == RECEIVER and numbers(release) < SINCE:
            changed = changed.set(f"flow.{write_key(name)}.transport.receiver", RECEIVER_BEFORE)
    return changed


def simulate(scenario: Scenario, seed: int, draws: int, times: HostTimes) -> list[Figures]:
    """The simulator's figures, one for each draw of host delays; a single run if nothing is drawn."""
    from concurrent.futures import ThreadPoolExecutor

    from anabranch.limits import thread_count

    def figures(run: Scenario) -> Figures:
        return measure(run.run(seed=seed, samples_ms=10.0, digest=False))

    if draws == 0:
        return [figures(scenario)]
    with ThreadPoolExecutor(thread_count(None, draws)) as pool:
        return list(pool.map(figures, with_host_times(scenario, draws, times)))


def compare(
    scenario: Scenario,
    file: str,
    *,
    seeds: int,
    times: HostTimes,
    limits: Limits | None = None,
    keep: Path | None = None,
    allow_tainted: bool = False,
    engine: str = "live",
    kernel: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> Comparison:
    """Run a scenario in the simulator and with the kernel's TCP for each seed, and simulate the other controls.

    Args:
        scenario: The scenario.
        file: Its name.
        seeds: Number of seeds, from the scenario's on.
        times: Delays of simulated hosts.
        limits: A live run beyond them is tainted.
        keep: A directory of runs with the kernel's TCP: existing runs are reused, new ones are stored.
        allow_tainted: Use tainted live runs in place of missing ones, and mark the comparison.
        engine: ``"live"``: two live runs for each seed. ``"kernel"``: two runs in a kernel in virtual time.
        kernel: The kernel, as in :func:`anabranch.kernel.images.chosen`.
        progress: Called with the completed share of the runs with the kernel's TCP.

    Raises:
        ScenarioError: The scenario is wrong, or needs a feature that no run with the kernel's TCP has.
        UserError: This machine cannot run live, or there is no such kernel.
        RunFailedError: A run failed.
    """
    from concurrent.futures import ThreadPoolExecutor

    from anabranch.limits import thread_count

    comparison = Comparison(file, seeds, times=times, engine=engine)
    # The kernel's runs come first, so that a scenario that cannot run there is reported at once.
    if engine == "kernel":
        live = _in_kernels(comparison, scenario, keep, kernel, progress)
    else:
        live = _live_runs(comparison, scenario, keep, limits, progress, allow_tainted=allow_tainted)

    plain = [scenario.run(seed=seed, digest=False) for seed in live]
    # Simulated scenarios by seed.
    if engine == "kernel":
        ours = iter(in_parts_of_tick(as_in_guest(scenario, comparison.machine["kernel"]), seeds * REPEATS))
        simulations = {seed: [next(ours) for _ in range(REPEATS)] for seed in live}
        draws = 0
    else:
        simulations = {seed: [scenario] for seed in live}
        draws = _draws([run.summary["engine_stats"]["events"] for run in plain])

    def answer(controls: Callable[[str], str] | None, most: int) -> dict[int, list[Figures]]:
        work = [
            (seed, exchanged(run, controls) if controls else run) for seed, runs in simulations.items() for run in runs
        ]
        # The draws of one run already use all processors.
        with ThreadPoolExecutor(1 if draws else thread_count(None, max(1, len(work)))) as pool:
            made = pool.map(lambda one: simulate(one[1], one[0], min(draws, most), times), work)
            answers: dict[int, list[Figures]] = {seed: [] for seed in simulations}
            for (seed, _), figures in zip(work, made, strict=True):
                answers[seed] += figures
        return answers

    simulated = answer(None, DRAWS)
    if live:
        other = answer(lambda kind: OTHERS.get(kind, OTHER_THAN_THESE), DRAWS)
        blind = [
            figures
            for control in ALIKE
            for runs in answer(lambda _kind, control=control: control, FEW_DRAWS).values()  # type: ignore[misc]
            for figures in runs
        ]
        values = [measure(run).values for run in plain]
        set_beside(comparison, simulated, live, other, blind, drawn=any(of_seed != values[0] for of_seed in values))
    return comparison


def _live_runs(
    comparison: Comparison,
    scenario: Scenario,
    keep: Path | None,
    limits: Limits | None,
    progress: Callable[[float], None] | None,
    *,
    allow_tainted: bool,
) -> dict[int, list[Figures]]:
    """Live runs by seed; the comparison counts them and their taints."""
    seeds, first = comparison.seeds, int(scenario.resolve()["seed"])
    live: dict[int, list[Figures]] = {}
    for number in range(seeds):
        seed = first + number
        found: list[Figures] = []
        spare: list[Figures] = []
        for attempt in range(MOST_RUNS):
            if len(found) == REPEATS:
                break
            run = _live(scenario, seed, attempt, keep, limits)
            comparison.live_runs += 1
            comparison.machine = run.machine
            if run.reasons:
                comparison.tainted_runs += 1
                spare.append(run.figures)
            else:
                found.append(run.figures)
            if progress is not None:
                progress((number + len(found) / REPEATS) / seeds)
        if allow_tainted and len(found) < REPEATS:
            used = spare[: REPEATS - len(found)]
            comparison.used_tainted += len(used)
            found += used
        if len(found) < REPEATS:
            comparison.left_out.append(seed)
            continue
        live[seed] = found
    return live


def _in_kernels(
    comparison: Comparison,
    scenario: Scenario,
    keep: Path | None,
    kernel: str | None,
    progress: Callable[[float], None] | None,
) -> dict[int, list[Figures]]:
    """Runs in kernels by seed. The runs of a seed begin at other parts of a tick, which is random on a real machine."""
    from anabranch.kernel.engine import image_of
    from anabranch.kernel.guests import Guests, Work
    from anabranch.limits import thread_count
    from anabranch.validate import keep as kept

    image = image_of(scenario, kernel)
    release = f"{image.release}, {image.recipe}"
    first = int(scenario.resolve()["seed"])
    seeds = range(first, first + comparison.seeds)
    runs = [(seed, part) for seed in seeds for part in range(REPEATS)]
    starts = dict(zip(runs, in_parts_of_tick(scenario, len(runs)), strict=True))
    files: dict[tuple[int, int], Path] = {}
    made: dict[tuple[int, int], LiveRun] = {}
    for run in runs if keep is not None else ():
        seed, part = run
        about = kept.about(starts[run].resolve(seed=seed), None, release)
        files[run] = kept.path(keep or Path(), Path(scenario.file).stem, about, seed, part)
        found = kept.read(files[run])
        if found is not None:
            made[run] = found
    todo = [run for run in runs if run not in made]
    work = (Work(starts[run], run[0]) for run in todo)
    for at, future in Guests(kernel).side_by_side(work, thread_count(None, len(todo))):
        run = todo[at]
        made[run] = _measured(future.result())
        if run in files:
            kept.write(files[run], made[run])
        if progress is not None:
            progress(len(made) / len(runs))
    comparison.live_runs = len(made)
    comparison.machine = made[runs[0]].machine
    return {seed: [made[seed, part].figures for part in range(REPEATS)] for seed in seeds}


def _measured(made: LiveRunResult) -> LiveRun:
    from anabranch.live import taint

    reasons = taint(made) if made.summary["engine"] == "live" else []
    if made.live is None:
        return LiveRun(measure(made), reasons)
    machine = made.live["machine"]
    return LiveRun(measure(made), reasons, {"kernel": machine["kernel"], "processors": machine["processors"]})


def _draws(events: Sequence[int]) -> int:
    """Number of draws of host delays for runs with these numbers of events."""
    return max(FEW_DRAWS, min(DRAWS, EVENTS // max(events, default=1)))


def _live(scenario: Scenario, seed: int, attempt: int, keep: Path | None, limits: Limits | None) -> LiveRun:
    from anabranch.live import run_audited
    from anabranch.validate import keep as kept

    file = None
    if keep is not None:
        about = kept.about(scenario.resolve(seed=seed), limits)
        file = kept.path(keep, Path(scenario.file).stem, about, seed, attempt)
        run = kept.read(file)
        if run is not None:
            return run
    run = _measured(run_audited(scenario, seed=seed, limits=limits))
    if file is not None:
        kept.write(file, run)
    return run


def set_beside(
    comparison: Comparison,
    simulated: Mapping[int, list[Figures]],
    live: Mapping[int, list[Figures]],
    other: Mapping[int, list[Figures]],
    blind: list[Figures],
    *,
    drawn: bool,
) -> None:
    """Add the results of runs to a comparison, all but ``blind`` by seed; ``drawn``: whether the seed has an effect."""
    every_simulated, every_live, every_other = (
        [figures for runs in by_seed.values() for figures in runs] for by_seed in (simulated, live, other)
    )
    for metric in METRICS:
        for seed, runs in live.items():
            comparison.one_sided |= one_sided(metric, simulated[seed], runs)
        sim = mean_figures(metric, every_simulated)
        there = mean_figures(metric, every_live)
        groups = [group for group in there if group in sim]
        if not groups:
            continue
        sim, there = ({group: of[group] for group in groups} for of in (sim, there))
        comparison.results[metric.name] = Result(
            sim,
            there,
            distance(metric, sim, there) or 0.0,
            _floor(metric, live, drawn=drawn),
            distance(metric, mean_figures(metric, every_other), there),
            distance(metric, mean_figures(metric, blind), there) if metric.is_rate else None,
        )
    _set_windows_beside(comparison, simulated, live, other, drawn=drawn)


def _floor(metric: Metric, live: Mapping[int, list[Figures]], *, drawn: bool) -> float:
    """Distance between live runs that differ by chance alone.

    If the scenario draws random numbers, these are pairs with the same seed, otherwise all pairs. The error is between
    means over the seeds, and means of n runs have a distance of 1/√n of that of single runs.
    """
    pairs = _pairs(live, drawn=drawn)
    if not pairs:
        return 0.0
    return sum(_distance(metric, a, b) for a, b in pairs) / len(pairs) / math.sqrt(len(live))


def _pairs(live: Mapping[int, list[Figures]], *, drawn: bool) -> list[tuple[Figures, Figures]]:
    """Pairs of runs that differ by chance alone; none if each seed has one run and changes the scenario."""
    if drawn:
        return [pair for runs in live.values() for pair in itertools.combinations(runs, 2)]
    return list(itertools.combinations([figures for runs in live.values() for figures in runs], 2))


def _distance(metric: Metric, a: Figures, b: Figures) -> float:
    return distance(metric, mean_figures(metric, [a]), mean_figures(metric, [b])) or 0.0


def _set_windows_beside(
    comparison: Comparison,
    simulated: Mapping[int, list[Figures]],
    live: Mapping[int, list[Figures]],
    other: Mapping[int, list[Figures]],
    *,
    drawn: bool,
) -> None:
    """Trajectories are compared in pairs, because the mean of several sawtooths is the window of no run."""

    def mean(pairs: Iterable[tuple[Figures, Figures]]) -> float | None:
        found = [value for a, b in pairs if (value := window_distance(a.windows, b.windows)) is not None]
        return sum(found) / len(found) if found else None

    def beside_live(answers: Mapping[int, list[Figures]]) -> float | None:
        return mean(pair for seed, runs in live.items() for pair in itertools.product(answers[seed], runs))

    error = beside_live(simulated)
    # Use live runs of one seed, as for a scenario that draws: this metric has no mean over seeds.
    has_pairs = any(len(runs) > 1 for runs in live.values())
    floor = mean(_pairs(live, drawn=has_pairs or drawn))
    if error is None or (floor is None and has_pairs):
        return
    comparison.results[WINDOW] = Result(
        _mean_windows([figures for runs in simulated.values() for figures in runs]),
        _mean_windows([figures for runs in live.values() for figures in runs]),
        error,
        floor or 0.0,
        beside_live(other),
    )


def _mean_windows(runs: list[Figures]) -> dict[str, float]:
    sums: dict[str, list[float]] = {}
    for run in runs:
        for group, windows in run.windows.items():
            sums.setdefault(group, []).append(sum(windows.values()) / len(windows))
    return {group: sum(values) / len(values) for group, values in sums.items()}
