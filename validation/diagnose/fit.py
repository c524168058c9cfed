"""Fit paths to captures of simulated runs with randomly drawn paths, and compare the fits with the drawn values.

    tools/env python validation/diagnose/fit.py [--paths N] [--seed N] [--verbose] [--values]
    [--live]

Bars, stated before the first run: rate within 2 %, base round trip within 1 %, buffer within 10 %;
95 % intervals hold the truth in 93 to 97 % of the cases; the goodput of another congestion control
on the fitted path is within 5 % of the same run on the true path for half of the paths, and within
10 % for nine in ten. The seed is drawn at run time and printed.

With --values no goodput is predicted. With --live the kernel runs the captured connections and
those whose goodput is predicted. A live run takes its duration in real time, and a tainted one is
left out.
"""

from __future__ import annotations

import argparse
import random
import secrets
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from anabranch import RunResult, Scenario
from anabranch.diagnosis.diagnosis import diagnose
from anabranch.diagnosis.document import Connection
from anabranch.errors import RunFailedError
from anabranch.fitted.scenario import FLOW, fitted
from anabranch.live import prepare

LIVE_S = 10.0
LIVE_MBIT_S = 50.0
"""The live engine forwards each packet on this machine's processors."""

LINKS = ("near", "path", "far")
"""Capture points: near the sender, before the bottleneck, after it."""

TEMPLATE = """
duration = "{duration} s"
seed = {seed}
[link.near]
between = ["A", "M"]
rate = "1 Gbit/s"
delay = "{near_ms} ms"
[link.path]
between = ["M", "N"]
rate = "{rate} Mbit/s"
delay = "{middle_ms} ms"
queue = {{ kind = "drop-tail", limit = "{limit} packets" }}
{impair}
[link.far]
between = ["N", "B"]
rate = "1 Gbit/s"
delay = "{far_ms} ms"
[flow.main]
from = "A"
to = "B"
cc = "{control}"
transport = {{ {windows} }}
"""
WINDOWS = 'send_buffer = "64 MiB", receive_window = "64 MiB"'
LIVE_WINDOWS = 'send_buffer = "16 MiB"'
"""The kernel tunes the receiver's buffer itself."""


@dataclass(frozen=True)
class Drawn:
    """A path whose parameters are known."""

    rate: float
    delays_ms: tuple[float, float, float]
    limit: int
    loss: float
    burst: float
    control: str
    seed: int
    duration: float
    windows: str = WINDOWS

    @property
    def base_rtt_ms(self) -> float:
        """Round-trip time without serialization."""
        return 2 * sum(self.delays_ms)

    @property
    def buffer_bytes(self) -> float:
        """The buffer filled with full segments."""
        return self.limit * 1500

    def text(self, control: str) -> str:
        """The scenario."""
        near, middle, far = self.delays_ms
        kind = (
            f'{{ kind = "bernoulli-loss", rate = {self.loss} }}'
            if self.burst == 1
            else f'{{ kind = "gilbert-elliott", loss_rate = {self.loss}, mean_burst = {self.burst} }}'
        )
        return TEMPLATE.format(
            duration=self.duration, seed=self.seed, near_ms=near, middle_ms=middle, far_ms=far, rate=self.rate,
            limit=self.limit, impair=f"forward.impair = [{kind}]" if self.loss else "", control=control,
            windows=self.windows,
        )  # fmt: skip


def draw(source: random.Random) -> Drawn:
    """Draw a path: rate and round trip are uniform in their logarithms."""
    rate = round(10 ** source.uniform(0.3, 2.0), 3)
    rtt = 10 ** source.uniform(0.7, 2.2)
    parts = [0.001, source.uniform(0.05, 1), source.uniform(0.05, 1)]
    delays = tuple(round(rtt / 2 * part / sum(parts), 3) for part in parts)
    bdp = rate * 1e3 * sum(delays) * 2 / 12_000
    limit = max(8, round(bdp * 10 ** source.uniform(-0.5, 0.6)))
    loss = round(10 ** source.uniform(-4, -2), 6) if source.random() < 0.5 else 0.0
    return Drawn(
        rate=rate,
        delays_ms=(delays[0], delays[1], delays[2]),
        limit=limit,
        loss=loss,
        burst=round(source.uniform(1.5, 4), 2) if loss and source.random() < 0.4 else 1,
        control=source.choice(CONTROLS),
        seed=source.randrange(1, 1 << 31),
        duration=20,
    )


@dataclass
class Figure:
    """An estimate and its truth."""

    name: str
    place: str
    truth: float
    estimate: dict[str, Any]

    @property
    def is_value(self) -> bool:
        """Whether the estimate is measured and the truth is not zero."""
        return bool(self.estimate["seen"] == "measured" and self.truth)

    @property
    def error(self) -> float:
        """Error relative to the truth."""
        return float(self.estimate["value"] / self.truth - 1)

    @property
    def holds(self) -> bool:
        """Whether the interval, or the bound, holds the truth."""
        low, high = self.estimate["low"], self.estimate["high"]
        return (low is None or low <= self.truth) and (high is None or self.truth <= high)


BARS = {"rate_mbit_s": 0.02, "base_rtt_ms": 0.01, "buffer_bytes": 0.10}


def models(drawn: Drawn, *, live: bool = False) -> Iterator[tuple[str, Connection]]:
    """The model of the path at each capture point."""
    scenario = Scenario.from_text(drawn.text(drawn.control), file="drawn.toml")
    result: RunResult
    if live:
        result = scenario.run_live(captures=list(LINKS), trace="off")
    else:
        result = scenario.run(captures=list(LINKS), digest=False)
    with tempfile.TemporaryDirectory() as folder:
        for link in LINKS:
            file = Path(folder) / f"{link}.pcapng"
            file.write_bytes(result.pcapng(link))
            yield link, diagnose(file)["connections"][0]


@dataclass
class Prediction:
    """The goodput of another congestion control, on the true path and on the fitted one."""

    control: str
    truth: float
    predicted: float

    @property
    def error(self) -> float:
        """Error relative to the truth."""
        return abs(self.predicted / self.truth - 1) if self.truth else 1.0


PREDICTION_SEEDS = range(1, 6)


def goodput(text: str, control: str) -> float:
    """The mean over seeds."""
    scenario = Scenario.from_text(text, file="drawn.toml").set(f"flow.{FLOW}.cc", control)
    runs = (scenario.run(seed=seed, digest=False).flows[FLOW]["goodput_mbit_s"] for seed in PREDICTION_SEEDS)
    return statistics.fmean(value or 0.0 for value in runs)


def live_goodput(text: str, control: str) -> float:
    """The goodput of one live run."""
    scenario = Scenario.from_text(text, file="drawn.toml").set(f"flow.{FLOW}.cc", control)
    return scenario.run_live(trace="off").flows[FLOW]["goodput_mbit_s"] or 0.0


def predicted(drawn: Drawn, connection: Connection, *, live: bool = False) -> Iterator[Prediction]:
    """Predictions for each congestion control other than the captured one. Both paths have the same host buffers."""
    made = fitted(connection, "drawn.pcapng")
    transport = made.document["flow"][FLOW]["transport"]
    transport.update(send_buffer="16 MiB") if live else transport.update(send_buffer="64 MiB", receive_window="64 MiB")
    for control in CONTROLS:
        if control != drawn.control:
            truth = (live_goodput if live else goodput)(drawn.text(control), control)
            yield Prediction(control, truth, goodput(made.text, control))


CONTROLS = ("cubic", "reno", "bbr")


def compared(drawn: Drawn, found: dict[str, Connection]) -> Iterator[Figure]:
    """Each estimate with its truth."""
    for place, connection in found.items():
        path: Any = connection["path"]
        if not path:
            continue
        for name, truth in (
            ("rate_mbit_s", drawn.rate),
            ("base_rtt_ms", drawn.base_rtt_ms),
            ("buffer_bytes", drawn.buffer_bytes),
        ):
            yield Figure(name, place, truth, path[name])
        yield Figure("loss_rate", place, drawn.loss, path["loss"]["rate"])
        if drawn.burst > 1:
            yield Figure("mean_burst", place, drawn.burst, path["loss"]["mean_burst"])


def summed(figures: list[Figure]) -> None:
    """Print errors and coverage by parameter and place."""
    print(f"{'parameter':<14}{'place':<8}{'seen':>10}{'median':>9}{'p90':>9}{'in bar':>8}{'coverage':>10}{'bounds':>9}")
    for name in dict.fromkeys(figure.name for figure in figures):
        for place in LINKS:
            here = [figure for figure in figures if (figure.name, figure.place) == (name, place)]
            values = [figure for figure in here if figure.is_value]
            errors = sorted(abs(figure.error) for figure in values)
            bounds = [figure for figure in here if figure.estimate["seen"] in ("at-least", "at-most")]
            cells = [f"{len(values)}/{len(here)}"]
            cells += [f"{errors[len(errors) * part // 10]:.2%}" if errors else "-" for part in (5, 9)]
            bar = BARS.get(name)
            cells.append(f"{sum(error <= bar for error in errors) / len(errors):.0%}" if bar and errors else "-")
            cells.append(f"{sum(figure.holds for figure in values) / len(values):.1%}" if values else "-")
            cells.append(f"{sum(figure.holds for figure in bounds)}/{len(bounds)}")
            print(
                f"{name:<14}{place:<8}"
                + "".join(f"{cell:>{width}}" for cell, width in zip(cells, (10, 9, 9, 8, 10, 9), strict=True))
            )


@dataclass
class Totals:
    """Results over all paths."""

    figures: list[Figure] = field(default_factory=list)
    predictions: list[Prediction] = field(default_factory=list)
    inferred: int = 0
    tainted: int = 0

    def add(self, drawn: Drawn, *, live: bool, verbose: bool, predicts: bool) -> None:
        """Add one path."""
        try:
            connections = dict(models(drawn, live=live))
            found = list(compared(drawn, connections))
            near = connections["near"]
            others = list(predicted(drawn, near, live=live)) if near["path"] and predicts else []
        except RunFailedError:
            self.tainted += 1
            return
        self.figures += found
        self.predictions += others
        self.inferred += bool(near["path"]) and near["path"]["flow"]["congestion_control"] == drawn.control
        if verbose:
            listed(drawn, found, others)

    def report(self, paths: int) -> None:
        """Print the results."""
        summed(self.figures)
        errors = sorted(prediction.error for prediction in self.predictions)
        if errors:
            median, ninth = errors[len(errors) // 2], errors[len(errors) * 9 // 10]
            told = f"median error {median:.2%}, p90 {ninth:.2%} ({len(errors)} predictions)"
            print(f"goodput of another congestion control: {told}")
        if self.tainted:
            print(f"left out for tainted live runs: {self.tainted}")
        print(f"congestion control inferred near the sender: {self.inferred}/{paths - self.tainted}")


def listed(drawn: Drawn, found: list[Figure], others: list[Prediction]) -> None:
    """Print one path in full."""
    print(drawn)
    for one in found:
        told = {key: value if isinstance(value, str | None) else round(value, 6) for key, value in one.estimate.items()}
        error = f"{one.error:+.2%}" if one.is_value else ""
        missed = "" if one.holds else "MISSED "
        print(f"    {one.place:<5} {one.name:<13} {one.truth:<12.6g} {error:>8} {missed}{told}")
    for two in others:
        of = f"{two.truth:.4g}, on the fitted path {two.predicted:.4g}"
        print(f"    predicted {two.control}: {of} ({two.error:.1%})")


def main() -> int:
    """Draw, fit, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paths", type=int, default=40)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--values", action="store_true")
    parser.add_argument("--live", action="store_true")
    options = parser.parse_args()
    seed = secrets.randbelow(1 << 31) if options.seed is None else options.seed
    print(f"seed {seed}, {options.paths} paths")
    source = random.Random(seed)
    if options.live:
        prepare()
    totals = Totals()
    for _ in range(options.paths):
        drawn = draw(source)
        if options.live:
            drawn = replace(drawn, duration=LIVE_S, rate=min(drawn.rate, LIVE_MBIT_S), windows=LIVE_WINDOWS)
        totals.add(drawn, live=options.live, verbose=options.verbose, predicts=not options.values)
    totals.report(options.paths)
    return 0


if __name__ == "__main__":
    sys.exit(main())
