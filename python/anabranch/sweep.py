"""A grid of runs: points × seeds, on all cores, resumable, summarised with confidence intervals."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from anabranch import toml_text
from anabranch.errors import UserError
from anabranch.limits import MAX_SEED, check_jobs, thread_count
from anabranch.output import check_target, follow
from anabranch.points import Store, key
from anabranch.spoken import argument
from anabranch.statistics import Interval, mean_interval

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from anabranch._engine import ScenarioError
    from anabranch.scenario import Scenario
    from anabranch.summary import Resolved, Summary

    _Blame = Callable[[ScenarioError, Sequence[str]], ScenarioError]
    """Tells of the engine's error on one point."""

FORMAT = 1
"""Of ``sweep.json``."""

PARTS = ("reordering", "transfers", "fec")
"""What a flow's summary has as a whole, or as ``None``."""


@dataclass(frozen=True)
class Point:
    """One run of a sweep: the grid's values, in the grid's order, and the seed."""

    values: tuple[Any, ...]
    seed: int


@dataclass(frozen=True)
class Estimate:
    """A figure at one point of the grid, over its repeats.

    Attributes:
        interval: Mean and 95 % interval; n = 1 without interval when all repeats share one digest.
        deterministic: Every repeat gave the same packets.
    """

    interval: Interval
    deterministic: bool

    def to_json(self) -> dict[str, Any]:
        """As in the JSON of ``sweep`` and ``compare``."""
        interval = self.interval
        return {
            "mean": interval.mean,
            "lower": interval.lower,
            "upper": interval.upper,
            "level": interval.level,
            "n": interval.n,
            "deterministic": self.deterministic,
        }


@dataclass(frozen=True)
class SweptScenario:
    """The scenario that a sweep varies."""

    title: str = ""
    sets: list[str] = field(default_factory=list)
    """What was set over its file, as ``PATH=VALUE``."""
    resolved: dict[str, Any] = field(default_factory=dict)


class SweepResult:
    """What a sweep gave.

    Attributes:
        axes: The dotted paths of the grid, in order.
        frame: One row per run: ``seed``, ``digest``, one column per axis, one per figure of the summary
            (``flow.main.goodput_mbit_s``, ``link.a.forward.dropped_packets``, …).
        scenario: What was swept: title, changes over the file, and every default written out.
    """

    def __init__(self, axes: Sequence[str], frame: pl.DataFrame, scenario: SweptScenario | None = None) -> None:
        self.axes = list(axes)
        self.frame = frame
        self.scenario = scenario or SweptScenario()

    @classmethod
    def read(cls, directory: str | Path) -> SweepResult:
        """The result of a sweep that was written with ``out``.

        Raises:
            UserError: ``directory`` has no finished sweep, or one that has been changed.
        """
        from anabranch.sweep_file import read_sweep

        return read_sweep(Path(directory))

    @classmethod
    def merge(cls, directories: Sequence[str | Path], out: str | Path | None = None) -> SweepResult:
        """The sweep of which these directories hold the shards (``sweep(…, shard=(I, N), out=…)``).

        Its tables are those of a sweep that was made in one place.

        Args:
            directories: Of all shards, in any order; one that is given twice does no harm.
            out: A new directory for the tables.

        Raises:
            UserError: A shard is missing, not finished, of another sweep, or of another build of the engine.
        """
        from anabranch.shards import merge

        return merge(directories, out)

    def to_json(self) -> dict[str, Any]:
        """What a reader of the tables needs: ``sweep.json``."""
        from anabranch import _engine

        values = {axis: self.frame.get_column(axis).unique(maintain_order=True).to_list() for axis in self.axes}
        return {
            "format": FORMAT,
            "kind": "sweep",
            "scenario": self.scenario.title,
            "set": self.scenario.sets,
            "axes": values,
            "seeds": self.frame.get_column("seed").unique(maintain_order=True).to_list(),
            "runs": self.frame.height,
            "measures": self.figures(),
            "anabranch_version": _engine.version(),
            "resolved_scenario": self.scenario.resolved,
        }

    def figures(self) -> list[str]:
        """The columns that hold figures rather than what was varied."""
        return [c for c in self.frame.columns if c not in {*self.axes, "seed", "digest"}]

    def estimates(self, figure: str) -> list[tuple[tuple[Any, ...], Estimate | None]]:
        """``figure`` at every point of the grid, in grid order; ``None`` where it does not apply.

        Raises:
            UserError: There is no such figure.
        """
        from anabranch.errors import nearest

        if figure not in self.frame.columns:
            raise UserError(f'the sweep has no figure "{figure}"', hint=nearest(figure, self.figures()))
        groups: dict[tuple[Any, ...], list[tuple[str | None, float | None]]] = {}
        for row in self.frame.select([*self.axes, "digest", figure]).iter_rows():
            groups.setdefault(row[:-2], []).append((row[-2], row[-1]))
        return [(point, estimate(rows)) for point, rows in groups.items()]

    def table(self, figures: Sequence[str] | None = None) -> pl.DataFrame:
        """One row per point: the axes, then mean, lower, upper, n of each figure (all of them when left out)."""
        import polars as pl

        columns: dict[str, list[Any]] = {axis: [] for axis in self.axes}
        for i, figure in enumerate(figures if figures is not None else self.figures()):
            estimates = self.estimates(figure)
            if i == 0:
                for k, axis in enumerate(self.axes):
                    columns[axis] = [point[k] for point, _ in estimates]
            intervals = [value.interval if value else None for _, value in estimates]
            columns[f"{figure}.mean"] = [v.mean if v else None for v in intervals]
            columns[f"{figure}.lower"] = [v.lower if v else None for v in intervals]
            columns[f"{figure}.upper"] = [v.upper if v else None for v in intervals]
            columns[f"{figure}.n"] = [v.n if v else 0 for v in intervals]
        return pl.DataFrame(columns, strict=False)

    def plot(self, y: str, *, x: str | None = None, hue: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw a figure over an axis of the grid, with 95 % intervals where there are repeats.

            >>> from anabranch import Scenario
            >>> base = Scenario.from_file("reordering.toml").set("duration", "1 s")
            >>> swept = base.sweep({"flow.main.cc": ["reno", "cubic"]})
            >>> swept.plot("goodput_mbit_s", x="flow.main.cc").get_ylabel()
            'flow.main.goodput_mbit_s'

        Args:
            y: The figure: a column of ``frame``, or its last parts where they tell it from the others.
            x: The axis to the right, likewise; the first when left out.
            hue: The axis whose values differ in colour; otherwise every line has a colour of its own.
            ax: Where to draw; axes of a new figure when left out.

        Raises:
            UserError: There is no such figure or axis.
        """
        from anabranch.plot.result import plot_sweep

        return plot_sweep(self, y, x=x, hue=hue, ax=ax)

    def report(self, path: str | Path) -> None:
        """Write one HTML page: each measure in small multiples with intervals, heat maps, parallel coordinates.

            >>> from anabranch import Scenario
            >>> base = Scenario.from_file("reordering.toml").set("duration", "1 s")
            >>> base.sweep({"flow.main.cc": ["reno", "cubic"]}).report("sweep.html")

        Args:
            path: A file whose name ends in ``.html``; one that exists is replaced.

        Raises:
            UserError: The place cannot be written.
        """
        from anabranch.report.sweep_output import write_report

        write_report(self, Path(path))

    def __repr__(self) -> str:
        from anabranch.report.format import sweep_text

        return sweep_text(self)

    def _repr_html_(self) -> str:
        from anabranch.report.sweep_table import html_table

        return html_table(self)


def estimate(rows: Sequence[tuple[str | None, float | None]]) -> Estimate | None:
    """Mean and interval over repeats given as (digest, value); repeats with one shared digest count once."""
    values = [float(v) for _, v in rows if v is not None and math.isfinite(v)]
    if not values:
        return None
    digests = {d for d, _ in rows}
    if len(digests) == 1 and None not in digests and len(rows) > 1:
        return Estimate(mean_interval(values[:1]), deterministic=True)
    return Estimate(mean_interval(values), deterministic=False)


def sweep(
    scenario: Scenario,
    grid: Mapping[str, Sequence[Any]],
    *,
    repeat: int | None = None,
    jobs: int | None = None,
    digest: bool = True,
    out: str | Path | None = None,
    shard: tuple[int, int] | None = None,
    progress: Callable[[int, int], None] | None = None,
    remark: Callable[[str], None] | None = None,
) -> SweepResult:
    """Run every point of the grid, or of a part of it; see :meth:`anabranch.Scenario.sweep`."""
    from anabranch import shards
    from anabranch.build import fingerprint

    check_jobs(jobs)
    if shard is not None:
        shards.check_shard(shard)
        if out is None:
            raise UserError(f"{argument('shard')} keeps its runs in a directory", hint=f"give {argument('out')}")
    if scenario.controls and out is not None:
        raise UserError(
            f"{argument('out')}: runs of a congestion control in Python are not kept",
            hint="leave it out: nothing would tell when the control's code changes",
        )
    directory = Path(out) if out is not None else None
    if directory is not None:
        check_target(directory, "sweep")
        directory = follow(directory)
    axes, points, told, resolved = _plan(scenario, grid, repeat)
    title, made_of = resolved.get("title", ""), resolved.get("resolved_scenario", {})
    store = Store(directory, scenario.file, remark)
    if shard is not None and directory is not None:
        plan = shards.Plan(
            build=fingerprint(),
            text=scenario.text,
            file=scenario.file,
            sets=list(scenario.sets),
            axes={path: list(values) for path, values in axes.items()},
            first_seed=points[0].seed,
            repeat=len({point.seed for point in points}),
            digest=digest,
            untrusted=scenario.untrusted,
            title=title,
            resolved=made_of,
        )
        shards.write_shard(directory, shard, plan)
        store.ours.add(shards.SHARD_FILE)
    points = shards.mine(points, shard)
    maker = _Maker(scenario, axes, points, store, told, digest=digest)
    store.said()
    try:
        summaries = maker.make(jobs, progress)
    finally:
        maker.store.note()
    swept = SweptScenario(title, list(scenario.sets), made_of)
    result = SweepResult(list(axes), runs_frame(list(axes), points, summaries), swept)
    if shard is None:
        maker.store.finish(result)
    return result


def planned_axes(
    scenario: Scenario, grid: Mapping[str, Sequence[Any]]
) -> tuple[dict[str, Sequence[Any]], dict[str, Sequence[Any]], Resolved]:
    """What a sweep varies, what of it ``grid`` gives, and the scenario.

    Raises:
        ScenarioError: The scenario is wrong.
        UserError: An axis is.
    """
    from anabranch.grid import axes_of

    given = axes_of(grid)
    resolved = scenario.resolve()
    return {**axes_of(resolved.get("sweep", {}).get("grid", {})), **given}, given, resolved


def _plan(
    scenario: Scenario, grid: Mapping[str, Sequence[Any]], repeat: int | None
) -> tuple[dict[str, Sequence[Any]], list[Point], _Blame, Resolved]:
    """The axes and every point, all of them checked: a mistake must show before hours of work, not after."""
    from anabranch import _engine
    from anabranch.grid import MAX_POINTS, origins, points_to_check, sets_of

    axes, given, resolved = planned_axes(scenario, grid)
    repeats = repeat if repeat is not None else int(resolved.get("sweep", {}).get("repeat", 1))
    if repeats < 1:
        raise UserError(f"{argument('repeat', repeat)}: at least 1 was expected")
    count = math.prod(len(v) for v in axes.values()) * repeats
    if count > MAX_POINTS:
        raise UserError(f"the grid has {count:,} runs; at most {MAX_POINTS:,} were expected")
    first = int(resolved["seed"])
    if first + repeats - 1 > MAX_SEED:
        raise UserError(f"{repeats} seeds from {first} on: seeds up to {MAX_SEED} were expected")
    places = origins(scenario.text, scenario.file, given) if len(axes) > len(given) else {}

    def told(error: ScenarioError, sets: Sequence[str]) -> ScenarioError:
        from anabranch.grid import blame
        from anabranch.schema import in_words_of_python

        return in_words_of_python(blame(error, sets, places, given))

    for values in points_to_check(axes):
        sets = sets_of(axes, values)
        try:
            _engine.resolve(
                scenario.text,
                scenario.file,
                [*scenario.sets, *sets],
                first,
                untrusted=scenario.untrusted,
                controls=list(scenario.controls.items()),
            )
        except _engine.ScenarioError as error:
            raise told(error, sets) from None
    points = [Point(v, s) for v in itertools.product(*axes.values()) for s in range(first, first + repeats)]
    return axes, points, told, resolved


class _Maker:
    """Makes the runs of a sweep that are not in the store yet."""

    def __init__(
        self,
        scenario: Scenario,
        axes: Mapping[str, Sequence[Any]],
        points: Sequence[Point],
        store: Store,
        told: _Blame,
        *,
        digest: bool,
    ) -> None:
        from anabranch.grid import sets_of

        self.digest = digest
        self.told = told
        self.untrusted = scenario.untrusted
        self.controls = list(scenario.controls.items())
        self.store = store
        text = scenario.text
        self.sets = [sets_of(axes, p.values) for p in points]
        self.work: list[tuple[str, str, list[str], int | None]] = [
            (text, scenario.file, [*scenario.sets, *sets], p.seed) for sets, p in zip(self.sets, points, strict=True)
        ]
        self.keys = [key(job, digest=digest, untrusted=self.untrusted) for job in self.work]
        self.done: dict[str, Summary] = {k: cast("Summary", s) for k in self.keys if (s := store.read(k)) is not None}

    def make(self, jobs: int | None, progress: Callable[[int, int], None] | None) -> list[Summary]:
        """Make what is missing; the summaries of all points, in order.

        Raises:
            ScenarioError: A point is wrong; the others of its chunk are kept.
        """
        missing = [i for i, k in enumerate(self.keys) if k not in self.done]
        finished = len(self.keys) - len(missing)

        def report(n: int) -> None:
            if progress:
                progress(n, len(self.keys))

        report(finished)
        threads = thread_count(jobs, len(missing))
        # Chunks bound what an interrupt can lose; several per thread keep the cores busy.
        size = max(8 * threads, 16)
        for start in range(0, len(missing), size):
            self._chunk(missing[start : start + size], threads, finished + start, report)
        return [self.done[k] for k in self.keys]

    def _chunk(self, chunk: Sequence[int], threads: int, base: int, report: Callable[[int], None]) -> None:
        from anabranch import _engine

        try:
            self._run(chunk, threads, lambda n: report(base + n))
            return
        except _engine.ScenarioError as error:
            whole = error
        failed: ScenarioError | None = None
        # The engine says not which job failed, and hands back none: one by one, the good ones are kept.
        for i in chunk:
            try:
                self._run([i], 1, lambda _: None)
            except _engine.ScenarioError as error:
                failed = failed or self.told(error, self.sets[i])
        raise failed or whole

    def _run(self, chunk: Sequence[int], threads: int, report: Callable[[int], None]) -> None:
        from anabranch import _engine

        work = [self.work[i] for i in chunk]
        results = _engine.run_many(
            work,
            threads=threads,
            digest=self.digest,
            untrusted=self.untrusted,
            controls=self.controls,
            progress=report,
        )
        for i, run in zip(chunk, results, strict=True):
            summary: Summary = json.loads(run.summary_json)
            self.done[self.keys[i]] = summary
            self.store.write(self.keys[i], cast("dict[str, Any]", summary), run.depends)


def flatten(summary: Summary, *, distributions: bool = False) -> dict[str, float | None]:
    """Every figure of a summary under one dotted name each: ``flow.main.goodput_mbit_s``.

    Args:
        summary: A run's summary.
        distributions: Also the reordering distributions, one figure per bin.
    """
    flat: dict[str, float | None] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                # A part that a flow does not have (no error correction, say) is no figure.
                if (distributions or key != "reordering") and not (inner is None and key in PARTS):
                    walk(f"{prefix}.{key}", inner)
        elif value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            flat[prefix] = None if value is None else float(value)

    for section, singular in (
        ("flows", "flow"),
        ("links", "link"),
        ("groups", "group"),
        ("gateways", "gateway"),
        ("fairness", "fairness"),
    ):
        walk(singular, summary.get(section, {}))
    return flat


def runs_frame(axes: Sequence[str], points: Sequence[Point], summaries: Sequence[Summary]) -> pl.DataFrame:
    """One row per run, as of :class:`SweepResult`."""
    import polars as pl

    flat = [flatten(s) for s in summaries]
    names = list(dict.fromkeys(name for f in flat for name in f))
    columns: dict[str, list[Any]] = {axis: [_cell(p.values[i]) for p in points] for i, axis in enumerate(axes)}
    for axis, cells in columns.items():
        if len({type(c) for c in cells} - {int, float}) > 0 and len({type(c) for c in cells}) > 1:
            columns[axis] = [value_text(c) for c in cells]
    columns["seed"] = [p.seed for p in points]
    columns["digest"] = [s.get("digest") for s in summaries]
    frame = pl.DataFrame(columns, strict=False)
    figures = [pl.Series(name, [f.get(name) for f in flat], dtype=pl.Float64) for name in names]
    return frame.with_columns(figures)


def _cell(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str)) else toml_text.write_value(value)


def value_text(value: Any) -> str:
    """A value of an axis as text: as TOML and JSON write it, and a string without quotation marks."""
    return value if isinstance(value, str) else toml_text.write_value(value)
