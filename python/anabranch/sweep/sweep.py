"""A grid of runs: points × seeds, on all cores, resumable, summarised with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from anabranch.errors import UserError, nearest
from anabranch.files.output import check_target, follow
from anabranch.limits import MAX_SEED, check_jobs, check_repeat, thread_count
from anabranch.result.flat import PARTS, flatten
from anabranch.result.measure_names import ambiguous, one_figure
from anabranch.statistics.sequential import read_until, sequence_interval
from anabranch.statistics.statistics import Interval, mean_interval
from anabranch.sweep import design, rounds
from anabranch.sweep.design import Design, Point
from anabranch.sweep.figures import Figures, runs_table, value_text
from anabranch.sweep.file import FORMAT, SweepDirectory, read_sweep
from anabranch.sweep.maker import Engine, FailedRunError, Here, Jobs, Maker, Order
from anabranch.sweep.points import Keys, Points, shared
from anabranch.sweep.quantities import columns_of_numbers, numbers_of
from anabranch.sweep.space import Space, read_space
from anabranch.text.spoken import argument

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from anabranch._engine import ScenarioError
    from anabranch.result.summary import Resolved
    from anabranch.result.table import Table
    from anabranch.scenario import Scenario
    from anabranch.sweep import shards

    _Blame = Callable[[ScenarioError, Sequence[str]], ScenarioError]
    """Tells of the engine's error on one point."""

__all__ = [
    "PARTS",
    "Estimate",
    "Point",
    "SweepResult",
    "SweptScenario",
    "estimate",
    "flatten",
    "planned_axes",
    "runs_table",
    "sweep",
    "value_text",
]


@dataclass(frozen=True)
class Estimate:
    """A figure at one point of the grid, over its repeats.

    Attributes:
        interval: Mean and 95 % interval; n = 1 without interval if all repeats have the same digest.
        deterministic: Whether every repeat had the same packets.
    """

    interval: Interval
    deterministic: bool

    def to_json(self) -> dict[str, object]:
        """The form in the JSON of ``sweep`` and ``compare``."""
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
    """The changes to its file, as ``PATH=VALUE``."""
    resolved: dict[str, Any] = field(default_factory=dict)
    is_sequential: bool = False
    """Whether seeds were added until an interval was narrow: each interval is then from a confidence sequence."""
    engine: str = "sim"
    """``"sim"``, or ``"kernel"`` for Linux kernels in virtual time."""


class SweepResult:
    """The result of a sweep.

    Attributes:
        axes: The dotted paths of the grid, in order.
        plain: One row per run in plain Python: one column per axis; for an axis of quantities, also a column of
            numbers with the unit in its name (``link.a.rate_mbit_s`` for ``link.a.rate``); ``seed``, ``digest``; one
            column per figure of the summary (``flow.main.goodput_mbit_s``, ``link.a.forward.dropped_packets``, …).
        scenario: The scenario: title, changes to the file, and its resolved form with all defaults.
    """

    def __init__(self, axes: Sequence[str], runs: Table | pl.DataFrame, scenario: SweptScenario | None = None) -> None:
        from anabranch.result.table import Table

        self.axes = list(axes)
        self.plain = Table.of_any(runs)
        self.scenario = scenario or SweptScenario()

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The rows of ``plain`` as a Polars frame; ``plain`` itself if Polars is not installed."""
        from anabranch.result.table import for_user

        frame: pl.DataFrame = for_user(self.plain)
        return frame

    @classmethod
    def read(cls, directory: str | Path) -> SweepResult:
        """The result of a sweep that was written with ``out``.

        Raises:
            UserError: ``directory`` has no finished sweep, or its tables have been modified.
        """
        return read_sweep(Path(directory))

    @classmethod
    def merge(cls, directories: Sequence[str | Path], out: str | Path | None = None) -> SweepResult:
        """The sweep whose shards are in these directories (``sweep(…, shard=(I, N), out=…)``).

        Its tables equal the tables of a sweep made in one place.

        Args:
            directories: The directories of all shards, in any order; duplicates are ignored.
            out: A new directory for the tables.

        Raises:
            UserError: A shard is missing, incomplete, of another sweep, or of another build of the engine.
        """
        from anabranch.sweep.shards import merge

        return merge(directories, out)

    def to_json(self) -> dict[str, object]:
        """The description of the tables: ``sweep.json``."""
        from anabranch import _engine

        values = {axis: self.plain.unique(axis) for axis in self.axes}
        return {
            "format": FORMAT,
            "kind": "sweep",
            "engine": self.scenario.engine,
            "scenario": self.scenario.title,
            "set": self.scenario.sets,
            "axes": values,
            "seeds": self.plain.unique("seed"),
            "runs": self.plain.height,
            "measures": self.figures(),
            "intervals": "confidence sequence" if self.scenario.is_sequential else "student-t",
            "anabranch_version": _engine.version(),
            "resolved_scenario": self.scenario.resolved,
        }

    def figures(self) -> list[str]:
        """The columns with figures, without axes, seed and digest."""
        others = {*self.axes, *columns_of_numbers(self.axes), "seed", "digest"}
        return [c for c in self.plain.columns if c not in others]

    def column(self, name: str) -> list[Any]:
        """A column of ``frame``, one value per run.

            >>> from anabranch import Scenario
            >>> link = {"between": ["S", "R"], "rate": "1 Mbit/s", "delay": "5 ms"}
            >>> flow = {"from": "S", "to": "R"}
            >>> base = Scenario.from_dict({"duration": "1 s", "link": {"a": link}, "flow": {"main": flow}})
            >>> swept = base.sweep({"link.a.rate": ["5 Mbit/s", "0.01 Gbit/s"]})
            >>> swept.column("rate_mbit_s")
            [5.0, 10.0]
            >>> swept.column("goodput") == swept.column("flow.main.goodput_mbit_s")
            True

        Args:
            name: A column, its last parts (``rate`` for ``link.a.rate``), or a figure's short name.

        Raises:
            UserError: There is no such column, or several have this name.
        """
        figures = self.figures()
        others = [c for c in self.plain.columns if c not in set(figures)]
        found = [c for c in others if c == name] or [c for c in others if c.endswith(f".{name}")]
        if len(found) > 1:
            raise ambiguous(name, found)
        return self.plain[found[0] if found else self._figure(name, others)]

    def __getitem__(self, name: str) -> list[Any]:
        return self.column(name)

    def _figure(self, name: str, others: Sequence[str] = ()) -> str:
        """The figure that a name means; ``others`` are further candidates for the hint."""
        if name in self.plain.columns:
            return name
        return one_figure(name, self.figures(), "the sweep has no figure", others)

    def estimates(self, figure: str) -> list[tuple[tuple[Any, ...], Estimate | None]]:
        """``figure`` at every point of the grid, in grid order; ``None`` where it does not apply.

        Args:
            figure: A column of ``frame``, its last parts if they are unambiguous, or a short name
                (``"goodput"``).

        Raises:
            UserError: There is no such figure, or several have this name.
        """
        return self._estimates(self._groups(), self.plain[self._figure(figure)])

    def table(self, figures: Sequence[str] | None = None) -> pl.DataFrame:
        """One row per point: the axes (quantities as numbers), then mean, lower, upper and n of each figure.

        Args:
            figures: Figures as in :meth:`estimates`; default: all. Columns have the full names.

        Raises:
            UserError: There is no such figure, or several have this name.
        """
        from anabranch.result.table import for_user

        frame: pl.DataFrame = for_user(self.plain_table(figures))
        return frame

    def plain_table(self, figures: Sequence[str] | None = None) -> Table:
        """The same table in plain Python."""
        import numpy as np

        from anabranch.result.table import Column, Table, column_of

        groups = self._groups()
        chosen = [self._figure(name) for name in figures] if figures is not None else self.figures()
        firsts = [group.runs[0] for group in groups] if chosen else []
        taken = np.array(firsts, dtype=np.int64)
        columns = {axis: self.plain.column(axis).take(taken) for axis in self.axes}
        for axis in self.axes:
            if numbers := numbers_of(axis, columns[axis].to_list()):
                columns[numbers.column] = column_of(numbers.values, "f8")
        unknown = column_of([None] * len(groups), "f8")
        for figure in chosen:
            if len(groups) == self.plain.height:
                # One run per point, and possibly millions of points.
                values = self.plain.numbers(figure)
                known = np.isfinite(values)
                columns[f"{figure}.mean"] = column_of(np.where(known, values, np.nan))
                columns[f"{figure}.lower"] = columns[f"{figure}.upper"] = unknown
                columns[f"{figure}.n"] = Column("i8", known.astype("i8"))
                continue
            intervals = [value.interval if value else None for _, value in self._estimates(groups, self.plain[figure])]
            columns[f"{figure}.mean"] = column_of([v.mean if v else None for v in intervals], "f8")
            columns[f"{figure}.lower"] = column_of([v.lower if v else None for v in intervals], "f8")
            columns[f"{figure}.upper"] = column_of([v.upper if v else None for v in intervals], "f8")
            columns[f"{figure}.n"] = column_of([v.n if v else 0 for v in intervals], "i8")
        return Table(columns)

    def _estimates(
        self, groups: Sequence[_Group], column: Sequence[float | None]
    ) -> list[tuple[tuple[Any, ...], Estimate | None]]:
        rule = sequence_interval if self.scenario.is_sequential else mean_interval
        return [
            (tuple(g.point), _estimate([column[run] for run in g.runs], rule, is_deterministic=g.is_deterministic))
            for g in groups
        ]

    def _groups(self) -> list[_Group]:
        """The runs of each point, in the order of the points' first runs."""
        digests = self.plain["digest"]
        found: dict[tuple[Any, ...], list[int]] = {}
        # Without axes, all runs belong to one point.
        points = self.plain.select(*self.axes) if self.axes else [()] * self.plain.height
        for run, point in enumerate(points):
            found.setdefault(point, []).append(run)
        return [
            _Group(point, runs, len(runs) > 1 and None not in (own := {digests[run] for run in runs}) and len(own) == 1)
            for point, runs in found.items()
        ]

    @overload
    def plot(
        self,
        y: str,
        *,
        x: str | None = None,
        color: str | None = None,
        col: None = None,
        ax: Axes | None = None,
        hue: str | None = None,
    ) -> Axes: ...

    @overload
    def plot(
        self, y: str, *, x: str | None = None, color: str | None = None, col: str, hue: str | None = None
    ) -> Figure: ...

    def plot(
        self,
        y: str,
        *,
        x: str | None = None,
        color: str | None = None,
        col: str | None = None,
        ax: Axes | None = None,
        hue: str | None = None,
    ) -> Axes | Figure:
        """Draw a figure over an axis of the grid, with 95 % intervals if there are repeats.

            >>> from anabranch import Scenario
            >>> base = Scenario.from_file("reordering.toml").set("duration", "1 s")
            >>> grid = {"link.bottleneck.rate": ["5 Mbit/s", "10 Mbit/s"], "flow.main.cc": ["reno", "cubic"]}
            >>> swept = base.sweep(grid)
            >>> axes = swept.plot(x="rate", y="goodput", color="cc")
            >>> axes.get_xlabel(), axes.get_ylabel()
            ('link.bottleneck.rate (Mbit/s)', 'goodput (Mbit/s), flow main')
            >>> [panel.get_title() for panel in swept.plot(x="rate", y="goodput", col="cc").axes]
            ['cc: reno', 'cc: cubic']

        Args:
            y: The figure, as in :meth:`estimates`: ``"goodput"``.
            x: The x axis, by its path or the last parts of it; default: the first axis. Quantities are drawn by size,
                on a logarithmic scale if their range is wide.
            color: The axis whose values differ in colour; default: the other axis if there are two. Points that differ
                in further axes have separate lines. ``"flow"``, ``"link"``, ``"group"`` or ``"gateway"``, here, as
                ``x`` or as ``col``, draws a figure of each of them.
            col: The axis whose values have a panel each, with common scales.
            ax: The axes to draw into; default: axes of a new figure.
            hue: The same as ``color``.

        Returns:
            The axes drawn into; with ``col`` the figure.

        Raises:
            UserError: There is no such figure or axis, or a short name is ambiguous.
        """
        from anabranch.plot.result import plot_sweep

        return plot_sweep(self, y, x=x, color=color or hue, col=col, ax=ax)

    def report(self, path: str | Path, *, force: bool = False) -> None:
        """Write one HTML page: a table of all points, and each measure over each axis with intervals.

            >>> from anabranch import Scenario
            >>> base = Scenario.from_file("reordering.toml").set("duration", "1 s")
            >>> base.sweep({"flow.main.cc": ["reno", "cubic"]}).report("sweep.html")

        Args:
            path: A file whose name ends in ``.html``; an earlier report is replaced.
            force: Replace also a file that anabranch did not make.

        Raises:
            UserError: The file is foreign or cannot be written.
        """
        from anabranch.report.sweep_output import write_report

        write_report(self, Path(path), force=force)

    def __repr__(self) -> str:
        from anabranch.result.format import sweep_text

        return sweep_text(self)

    def _repr_html_(self) -> str:
        from anabranch.report.sweep_table import html_table

        return html_table(self)


@dataclass(frozen=True)
class _Group:
    """The runs of one point."""

    point: Sequence[Any]
    runs: Sequence[int]
    is_deterministic: bool
    """Whether there are several runs with the same packets."""


def estimate(rows: Sequence[tuple[str | None, float | None]]) -> Estimate | None:
    """Mean and interval over repeats given as (digest, value); repeats with one common digest count once."""
    digests = {d for d, _ in rows}
    return _estimate(
        [value for _, value in rows],
        mean_interval,
        is_deterministic=len(digests) == 1 and None not in digests and len(rows) > 1,
    )


def _estimate(
    repeats: Sequence[float | None], rule: Callable[[Sequence[float]], Interval], *, is_deterministic: bool
) -> Estimate | None:
    values = [float(v) for v in repeats if v is not None and math.isfinite(v)]
    if not values:
        return None
    return Estimate(rule(values[:1] if is_deterministic else values), is_deterministic)


@dataclass(frozen=True)
class Choice:
    """The request for points in addition to the points of the grid.

    Attributes:
        ranges: Dotted path → ``LOW..HIGH``, followed by ``:log`` for a logarithmic scale.
        design: The choice of points in the ranges: ``"sobol"``, ``"lhs"`` or ``"grid"``.
        points: Number of points; for a grid, of each range.
        until: ``FIGURE:WIDTH``: add seeds to each point until its interval is no wider than this.
        refine: ``FIGURE:N``: add N points where the curve over the single range bends.
    """

    ranges: Mapping[str, str] = field(default_factory=dict)
    design: str | None = None
    points: int | None = None
    until: str | None = None
    refine: str | None = None


@dataclass(frozen=True)
class Place:
    """The place where a sweep is made and stored.

    Attributes:
        out: The directory of its tables.
        store: The directory of its points; default: that of its tables.
        shard: The part, and the number of parts.
        ray: The address of a Ray cluster.
        jobs: Number of parallel threads or guests.
        engine: ``"sim"`` or ``"kernel"``.
        kernel: The kernel, as in :func:`anabranch.kernel.images.chosen`.
    """

    out: str | Path | None = None
    store: str | Path | None = None
    shard: tuple[int, int] | None = None
    ray: str | None = None
    jobs: int | None = None
    engine: str = "sim"
    kernel: str | None = None

    @property
    def is_kernel(self) -> bool:
        """Whether runs are made in kernels."""
        return self.engine == "kernel"


def sweep(
    scenario: Scenario,
    grid: Mapping[str, Sequence[Any]],
    *,
    repeat: int | None = None,
    digest: bool = True,
    choice: Choice | None = None,
    place: Place | None = None,
    progress: Callable[[int, int], None] | None = None,
    remark: Callable[[str], None] | None = None,
) -> SweepResult:
    """Run every point of the grid, or of a part of it; see :meth:`anabranch.Scenario.sweep`."""
    from anabranch.sweep import shards

    chosen, where = choice or Choice(), place or Place()
    _check(scenario, chosen, where)
    engine = engine_at(where, untrusted=scenario.untrusted)
    directory = Path(where.out) if where.out is not None else None
    if directory is not None:
        check_target(directory, "sweep")
        directory = follow(directory)
    plan = _plan(scenario, grid, repeat, chosen, where)
    tables = SweepDirectory(directory)
    folder = Path(scenario.file).parent
    kept = Points(directory, folder, remark) if where.store is None else shared(where.store, folder, remark)
    points = plan.points
    if where.shard is not None and directory is not None:
        shards.write_shard(directory, where.shard, _shard_plan(scenario, plan, chosen, digest=digest))
        tables.ours.add(shards.SHARD_FILE)
        points = plan.points[where.shard[0] - 1 :: where.shard[1]]
    order = Order(digest, scenario.untrusted, list(scenario.controls.items()), where.jobs)
    runner = _Runner(scenario, plan, kept, order, engine, progress)
    try:
        made, figures = runner.chosen(chosen, points, repeat)
    finally:
        engine.close()
        kept.close()
        tables.note()
    swept = SweptScenario(
        plan.resolved.get("title", ""),
        list(scenario.sets),
        plan.resolved.get("resolved_scenario", {}),
        is_sequential=chosen.until is not None,
        engine=where.engine,
    )
    result = SweepResult(plan.points.axes, figures.table(plan.points.axes, made), swept)
    if where.shard is None:
        tables.finish(result)
    return result


def _check(scenario: Scenario, choice: Choice, place: Place) -> None:
    """Reject options that exclude each other, before any work.

    Raises:
        UserError: There are such options.
    """
    from anabranch.sweep import shards

    check_jobs(place.jobs)
    _check_engine(place)
    if place.shard is not None:
        shards.check_shard(place.shard)
        if place.out is None:
            raise UserError(f"{argument('shard')} keeps its runs in a directory", hint=f"give {argument('out')}")
        if place.store is not None:
            raise UserError(
                f"{argument('store')}: a shard keeps its runs in {argument('out')}",
                hint=f"leave {argument('store')} out",
            )
        for name, value in (("until", choice.until), ("refine", choice.refine)):
            if value is not None:
                raise UserError(
                    f"{argument(name, value)} looks at all runs, and a shard has a part of them",
                    hint=f"leave out {argument('shard')}, or give each call a part of the grid",
                )
    if choice.until is not None and choice.refine is not None:
        raise UserError(f"{argument('until')} and {argument('refine')} do not go together", hint="give one of them")
    keeps = place.out is not None or place.store is not None
    if scenario.controls and keeps:
        raise UserError(
            f"{argument('out' if place.out is not None else 'store')}: runs of a congestion control in Python are not "
            "kept",
            hint="leave it out: a change of the control's code would not be detected",
        )


def _check_engine(place: Place) -> None:
    """Reject an engine that makes no sweeps, and options that the engine does not have.

    Raises:
        UserError: There is such an engine or option.
    """
    engines = ("sim", "kernel")
    if place.engine not in engines:
        told = " makes no sweeps: each run takes its duration" if place.engine == "live" else ": there is none"
        raise UserError(f"{argument('engine', place.engine)}{told}", hint=nearest(place.engine, engines))
    if not place.is_kernel:
        if place.kernel is not None:
            raise UserError(
                f"{argument('kernel', place.kernel)} has no effect without {argument('engine', 'kernel')}",
                hint="give both, or neither",
            )
        return
    for name, value in (("shard", place.shard), ("ray", place.ray)):
        if value is not None:
            raise UserError(
                f"{argument(name)} does not go with {argument('engine', 'kernel')}: kernels run on this machine",
                hint=f"leave out {argument(name)}",
            )


def engine_at(place: Place, *, untrusted: bool) -> Engine:
    """The engine for the runs.

    Raises:
        UserError: The cluster cannot be reached.
    """
    if place.is_kernel:
        from anabranch.kernel.guests import Guests

        return Guests(place.kernel, untrusted=untrusted)
    if place.ray is None:
        return Here()
    from anabranch.sweep.cluster import Ray

    return Ray(place.ray, place.jobs)


def _shard_plan(scenario: Scenario, plan: _Plan, choice: Choice, *, digest: bool) -> shards.Plan:
    from anabranch.sweep import shards
    from anabranch.sweep.build import fingerprint

    space: shards.Ranges = {"ranges": dict(choice.ranges), "design": choice.design, "points": choice.points}
    return shards.Plan(
        build=fingerprint(),
        text=scenario.text,
        file=scenario.file,
        sets=list(scenario.sets),
        axes={path: list(values) for path, values in plan.axes.items()},
        first_seed=plan.points.first_seed,
        repeat=plan.points.repeat,
        digest=digest,
        untrusted=scenario.untrusted,
        title=plan.resolved.get("title", ""),
        resolved=plan.resolved.get("resolved_scenario", {}),
        space=space if choice.ranges else None,
    )


class _Runner:
    """Makes the points of a sweep, at once or in rounds."""

    def __init__(
        self,
        scenario: Scenario,
        plan: _Plan,
        kept: Points,
        order: Order,
        engine: Engine,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._scenario = scenario
        self._plan = plan
        self._kept = kept
        self._order = order
        self._engine = engine
        self._progress = progress
        self._keys = Keys(scenario.text, digest=order.digest, untrusted=scenario.untrusted)
        self._figures = Figures()

    def chosen(self, choice: Choice, points: Design, repeat: int | None) -> tuple[Sequence[Point], Figures]:
        """The points of a sweep in the order of its tables, and their figures.

        Raises:
            ScenarioError: A run cannot be made; the others of its chunk are stored.
            UserError: The figure of ``until`` or ``refine`` does not exist.
        """
        if choice.until is not None:
            rule = rounds.with_seeds_until(points, read_until(choice.until), repeat, self._figures, self._make)
        elif choice.refine is not None and self._plan.space is not None:
            refine = rounds.read_refine(choice.refine, self._plan.space)
            rule = rounds.refined(points, self._plan.space, refine, self._figures, self._make)
        else:
            self._make(points)
            return points, self._figures
        made, runs = rule
        return made, self._figures.ordered(runs)

    def _make(self, points: Sequence[Point]) -> None:
        scenario, before = self._scenario, len(self._figures)
        work = Jobs(scenario.text, scenario.file, scenario.sets, self._plan.points.axes, points)

        def report(done: int, total: int) -> None:
            if self._progress:
                self._progress(before + done, before + total)

        try:
            Maker(work, self._keys, self._kept, self._order, self._figures).make(self._engine, report)
        except FailedRunError as failed:
            raise self._plan.told(failed.error, work.varied(failed.run)) from None


def planned_axes(
    scenario: Scenario, grid: Mapping[str, Sequence[Any]], *, live: bool = False
) -> tuple[dict[str, Sequence[Any]], dict[str, Sequence[Any]], Resolved]:
    """The axes of a sweep, the axes given by ``grid``, and the scenario, with ``live`` for the live engine.

    Raises:
        ScenarioError: The scenario is wrong.
        UserError: An axis is wrong.
    """
    from anabranch.keys.grid import axes_of

    given = axes_of(grid)
    resolved = scenario.resolve(live=live)
    return {**axes_of(resolved.get("sweep", {}).get("grid", {})), **given}, given, resolved


@dataclass(frozen=True)
class _Plan:
    """The plan of a sweep."""

    axes: dict[str, Sequence[Any]]
    points: Design
    told: _Blame
    resolved: Resolved
    space: Space | None


def _plan(
    scenario: Scenario, grid: Mapping[str, Sequence[Any]], repeat: int | None, choice: Choice, place: Place
) -> _Plan:
    """The axes and every point, all of them checked, so that an error shows before hours of work."""
    from anabranch.keys.grid import MAX_POINTS, origins, sets_of

    space = read_space(choice.ranges, choice.design, choice.points)
    if choice.until is not None:
        read_until(choice.until)
    check_repeat(repeat)
    if choice.refine is not None:
        rounds.read_refine(choice.refine, space)
    axes, given, resolved = planned_axes(scenario, grid, live=place.is_kernel)
    varied = space.ranges if space is not None else {}
    # A range replaces the file's values, as a grid does.
    axes = {path: values for path, values in axes.items() if path not in varied or path in given}
    for path in varied:
        if path in axes:
            raise UserError(f"{path} has values and a range", hint="give one of them")
    factors = [*design.grid(axes), *([space.factor()] if space is not None else [])]
    repeats = repeat if repeat is not None else int(resolved.get("sweep", {}).get("repeat", 1))
    if choice.until is not None:
        # The file's number of repeats is a fixed plan, which ``until`` replaces.
        repeats = 1
    count = math.prod(len(factor.rows) for factor in factors) * repeats
    if count > MAX_POINTS:
        raise UserError(f"the grid has {count:,} runs; at most {MAX_POINTS:,} were expected")
    first = int(resolved["seed"])
    if first + repeats - 1 > MAX_SEED:
        raise UserError(f"{repeats} seeds from {first} on: seeds up to {MAX_SEED} were expected")
    places = origins(scenario.text, scenario.file, given) if len(axes) > len(given) else {}
    names = dict.fromkeys((axis for factor in factors for axis in factor.axes), ())

    def told(error: ScenarioError, sets: Sequence[str]) -> ScenarioError:
        from anabranch.keys.full_keys import add_hint
        from anabranch.keys.grid import blame
        from anabranch.keys.schema import in_words_of_python

        return in_words_of_python(blame(add_hint(error, sets, scenario.text), sets, places, given, varied), scenario)

    combinations = [sets_of(names, values) for values in design.to_check(factors)]
    wrong = _first_wrong(scenario, combinations, first, place)
    if wrong is not None:
        number, error = wrong
        raise told(error, combinations[number])
    return _Plan(axes, Design(factors, first, repeats), told, resolved, space)


def _first_wrong(
    scenario: Scenario, combinations: Sequence[list[str]], seed: int, place: Place
) -> tuple[int, ScenarioError] | None:
    """The first combination that its engine refuses, and the error."""
    from anabranch import _engine

    controls = list(scenario.controls.items())
    work = [(scenario.text, scenario.file, [*scenario.sets, *sets], seed) for sets in combinations]
    if not place.is_kernel:
        threads = thread_count(place.jobs, len(work))
        return _engine.check_many(work, threads=threads, untrusted=scenario.untrusted, controls=controls)
    from anabranch.kernel.engine import check, image_of

    for number, (job, sets) in enumerate(zip(work, combinations, strict=True)):
        try:
            _engine.resolve(*job, live=True, untrusted=scenario.untrusted, controls=controls)
            point = scenario.with_sets(*sets)
            check(point, seed)
            image_of(point, place.kernel)
        except _engine.ScenarioError as error:
            return number, error
    return None
