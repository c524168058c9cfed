"""A grid of runs: points × seeds, on all cores, resumable, summarised with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch import design
from anabranch.design import Design, Point
from anabranch.errors import UserError
from anabranch.figures import PARTS, flatten, runs_frame, value_text
from anabranch.limits import MAX_SEED, check_jobs
from anabranch.maker import FailedRunError, Here, Jobs, Maker, Order
from anabranch.output import check_target, follow
from anabranch.points import Keys, Points, shared
from anabranch.spoken import argument
from anabranch.statistics import Interval, mean_interval
from anabranch.sweep_file import FORMAT, SweepDirectory, read_sweep

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from anabranch._engine import ScenarioError
    from anabranch.scenario import Scenario
    from anabranch.summary import Resolved

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
    "runs_frame",
    "sweep",
    "value_text",
]


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
        return _estimates(self._groups(), self.frame.get_column(figure))

    def table(self, figures: Sequence[str] | None = None) -> pl.DataFrame:
        """One row per point: the axes, then mean, lower, upper, n of each figure (all of them when left out)."""
        import polars as pl

        groups = self._groups()
        columns: dict[str, Any] = {axis: [group.point[k] for group in groups] for k, axis in enumerate(self.axes)}
        chosen = list(figures if figures is not None else self.figures())
        if not chosen:
            columns = {axis: [] for axis in self.axes}
        for figure in chosen:
            if figure not in self.frame.columns:
                self.estimates(figure)
            values = self.frame.get_column(figure)
            if len(groups) == values.len():
                # One run per point, of which there may be millions.
                known = values.cast(pl.Float64).is_finite().fill_null(value=False)
                columns[f"{figure}.mean"] = values.cast(pl.Float64).set(~known, None)
                columns[f"{figure}.lower"] = columns[f"{figure}.upper"] = [None] * len(groups)
                columns[f"{figure}.n"] = known.cast(pl.Int64)
                continue
            intervals = [value.interval if value else None for _, value in _estimates(groups, values)]
            columns[f"{figure}.mean"] = [v.mean if v else None for v in intervals]
            columns[f"{figure}.lower"] = [v.lower if v else None for v in intervals]
            columns[f"{figure}.upper"] = [v.upper if v else None for v in intervals]
            columns[f"{figure}.n"] = [v.n if v else 0 for v in intervals]
        return pl.DataFrame(columns, strict=False)

    def _groups(self) -> list[_Group]:
        """The runs of each point, in the order of the points' first runs."""
        import polars as pl

        numbered = self.frame.select(*self.axes, "digest").with_row_index("\0run")
        parts = [
            pl.col("\0run"),
            pl.col("digest").n_unique().alias("\0digests"),
            pl.col("digest").is_null().any().alias("\0unknown"),
        ]
        # Without axes all runs are of one point.
        grouped = (
            numbered.group_by(self.axes, maintain_order=True).agg(parts)
            if self.axes
            else numbered.select(part.implode() if i == 0 else part for i, part in enumerate(parts))
        )
        return [
            _Group(point, runs, len(runs) > 1 and digests == 1 and not unknown)
            for *point, runs, digests, unknown in grouped.iter_rows()
            if runs
        ]

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

    def __repr__(self) -> str:
        from anabranch.report.format import sweep_text

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
    """There are several, and they gave the same packets."""


def _estimates(groups: Sequence[_Group], values: pl.Series) -> list[tuple[tuple[Any, ...], Estimate | None]]:
    column = values.to_list()
    return [
        (tuple(group.point), _estimate([column[run] for run in group.runs], is_deterministic=group.is_deterministic))
        for group in groups
    ]


def estimate(rows: Sequence[tuple[str | None, float | None]]) -> Estimate | None:
    """Mean and interval over repeats given as (digest, value); repeats with one shared digest count once."""
    digests = {d for d, _ in rows}
    return _estimate(
        [value for _, value in rows],
        is_deterministic=len(digests) == 1 and None not in digests and len(rows) > 1,
    )


def _estimate(repeats: Sequence[float | None], *, is_deterministic: bool) -> Estimate | None:
    values = [float(v) for v in repeats if v is not None and math.isfinite(v)]
    if not values:
        return None
    return Estimate(mean_interval(values[:1] if is_deterministic else values), is_deterministic)


def sweep(
    scenario: Scenario,
    grid: Mapping[str, Sequence[Any]],
    *,
    repeat: int | None = None,
    jobs: int | None = None,
    digest: bool = True,
    out: str | Path | None = None,
    shard: tuple[int, int] | None = None,
    store: str | Path | None = None,
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
    if store is not None and shard is not None:
        raise UserError(
            f"{argument('store')}: a shard keeps its runs in {argument('out')}", hint=f"leave {argument('store')} out"
        )
    if scenario.controls and (out is not None or store is not None):
        raise UserError(
            f"{argument('out' if out is not None else 'store')}: runs of a congestion control in Python are not kept",
            hint="leave it out: nothing would tell when the control's code changes",
        )
    directory = Path(out) if out is not None else None
    if directory is not None:
        check_target(directory, "sweep")
        directory = follow(directory)
    plan = _plan(scenario, grid, repeat)
    title, made_of = plan.resolved.get("title", ""), plan.resolved.get("resolved_scenario", {})
    tables = SweepDirectory(directory)
    folder = Path(scenario.file).parent
    kept = Points(directory, folder, remark) if store is None else shared(store, folder, remark)
    if shard is not None and directory is not None:
        whole = shards.Plan(
            build=fingerprint(),
            text=scenario.text,
            file=scenario.file,
            sets=list(scenario.sets),
            axes={path: list(values) for path, values in plan.axes.items()},
            first_seed=plan.points.first_seed,
            repeat=plan.points.repeat,
            digest=digest,
            untrusted=scenario.untrusted,
            title=title,
            resolved=made_of,
        )
        shards.write_shard(directory, shard, whole)
        tables.ours.add(shards.SHARD_FILE)
    points = plan.points if shard is None else plan.points[shard[0] - 1 :: shard[1]]
    work = Jobs(scenario.text, scenario.file, scenario.sets, points)
    order = Order(digest, scenario.untrusted, list(scenario.controls.items()), jobs)
    maker = Maker(work, Keys(scenario.text, digest=digest, untrusted=scenario.untrusted), kept, order)
    try:
        figures = maker.make(Here(), progress)
    except FailedRunError as failed:
        raise plan.told(failed.error, work.varied(failed.run)) from None
    finally:
        tables.note()
    swept = SweptScenario(title, list(scenario.sets), made_of)
    result = SweepResult(plan.points.axes, figures.frame(plan.points.axes, points), swept)
    if shard is None:
        tables.finish(result)
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


@dataclass(frozen=True)
class _Plan:
    """What a sweep makes."""

    axes: dict[str, Sequence[Any]]
    points: Design
    told: _Blame
    resolved: Resolved


def _plan(scenario: Scenario, grid: Mapping[str, Sequence[Any]], repeat: int | None) -> _Plan:
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
    return _Plan(axes, Design(design.grid(axes), first, repeats), told, resolved)
