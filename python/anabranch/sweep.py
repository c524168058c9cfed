"""A grid of runs: points × seeds, on all cores, resumable, summarised with confidence intervals."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch import toml_text
from anabranch.errors import UserError
from anabranch.output import MANIFEST, check_target, to_json, write_manifest, write_whole
from anabranch.statistics import Interval, mean_interval

if TYPE_CHECKING:
    import polars as pl

    from anabranch.scenario import Scenario
    from anabranch.summary import Summary

MAX_POINTS = 1_000_000
"""Runs in one sweep. More is a mistake in the grid."""


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


class SweepResult:
    """What a sweep gave.

    Attributes:
        axes: The dotted paths of the grid, in order.
        frame: One row per run: ``seed``, ``digest``, one column per axis, one per figure of the summary
            (``flow.main.goodput_mbit_s``, ``link.a.forward.dropped_packets``, …).
    """

    def __init__(self, axes: Sequence[str], frame: pl.DataFrame) -> None:
        self.axes = list(axes)
        self.frame = frame

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


def estimate(rows: Sequence[tuple[str | None, float | None]]) -> Estimate | None:
    """Mean and interval over repeats given as (digest, value); repeats with one shared digest count once."""
    values = [float(v) for _, v in rows if v is not None and not math.isnan(v)]
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
    progress: Callable[[int, int], None] | None = None,
) -> SweepResult:
    """Run every point of the grid; see :meth:`anabranch.Scenario.sweep`."""
    from anabranch import _engine

    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs {jobs}: at least 1 was expected")
    directory = Path(out) if out is not None else None
    if directory is not None:
        check_target(directory, "sweep")
    resolved = scenario.resolve()
    planned = resolved.get("sweep", {})
    axes: dict[str, Sequence[Any]] = {**planned.get("grid", {}), **grid}
    for path, values in axes.items():
        if not values:
            raise UserError(f"the grid gives no value for {path}", hint=f"--grid {path}=A,B,C")
    repeats = repeat if repeat is not None else int(planned.get("repeat", 1))
    if repeats < 1:
        raise UserError(f"--repeat {repeats}: at least 1 was expected")
    count = math.prod(len(v) for v in axes.values()) * repeats
    if count > MAX_POINTS:
        raise UserError(f"the grid has {count:,} runs; at most {MAX_POINTS:,} were expected")
    first = int(resolved["seed"])
    points = [Point(v, s) for v in itertools.product(*axes.values()) for s in range(first, first + repeats)]
    text = scenario.text
    work = [(text, scenario.file, [*scenario.sets, *_sets(axes, p)], p.seed) for p in points]
    # A mistake in the grid must show before hours of work, not after.
    for values in _each_value_once(axes):
        _engine.resolve(text, scenario.file, [*scenario.sets, *_sets(axes, Point(values, first))], first)

    keys = [_key(job, digest) for job in work]
    store = _Store(directory)
    done: dict[str, Summary] = {k: s for k in keys if (s := store.read(k)) is not None}
    missing = [i for i, k in enumerate(keys) if k not in done]
    finished = len(points) - len(missing)
    if progress:
        progress(finished, len(points))
    threads = jobs or os.cpu_count() or 1
    # Chunks bound what an interrupt can lose; several per thread keep the cores busy.
    size = max(8 * threads, 16)
    for start in range(0, len(missing), size):
        chunk = missing[start : start + size]
        base = finished + start

        def report(n: int, base: int = base) -> None:
            if progress:
                progress(base + n, len(points))

        results = _engine.run_many([work[i] for i in chunk], threads=jobs, digest=digest, progress=report)
        for i, run in zip(chunk, results, strict=True):
            summary: Summary = json.loads(run.summary_json)
            done[keys[i]] = summary
            store.write(keys[i], summary)
    result = SweepResult(list(axes), _frame(list(axes), points, [done[k] for k in keys]))
    if directory is not None:
        store.finish(result)
    return result


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
                if distributions or key != "reordering":
                    walk(f"{prefix}.{key}", inner)
        elif value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            flat[prefix] = None if value is None else float(value)

    for section, singular in (
        ("flows", "flow"),
        ("links", "link"),
        ("groups", "group"),
        ("fairness", "fairness"),
    ):
        walk(singular, summary.get(section, {}))
    return flat


class _Store:
    """Finished points on disk, one small file each, so that an interrupted sweep goes on where it stopped."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            if not (directory / MANIFEST).exists():
                write_manifest(directory, "sweep")

    def path(self, key: str) -> Path | None:
        return None if self.directory is None else self.directory / "points" / f"{key}.json"

    def read(self, key: str) -> Summary | None:
        path = self.path(key)
        if path is None:
            return None
        try:
            summary: Summary = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return None
        return summary

    def write(self, key: str, summary: Summary) -> None:
        path = self.path(key)
        if path is not None:
            write_whole(path, to_json(summary))

    def finish(self, result: SweepResult) -> None:
        import io

        if self.directory is None:
            return
        for name, frame in (("runs.parquet", result.frame), ("table.parquet", result.table())):
            buffer = io.BytesIO()
            frame.write_parquet(buffer, compression="zstd")
            write_whole(self.directory / name, buffer.getvalue())
        write_manifest(self.directory, "sweep")


def _sets(axes: Mapping[str, Sequence[Any]], point: Point) -> list[str]:
    return [f"{path}={toml_text.write_value(value)}" for path, value in zip(axes, point.values, strict=True)]


def _each_value_once(axes: Mapping[str, Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Few points that together hold every value of every axis."""
    longest = max((len(v) for v in axes.values()), default=1)
    return [tuple(v[min(i, len(v) - 1)] for v in axes.values()) for i in range(longest)]


def _key(job: tuple[str, str, list[str], int], digest: bool) -> str:
    from anabranch import _engine

    text, _, sets, seed = job
    content = json.dumps([_engine.version(), text, sets, seed, digest])
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def _frame(axes: Sequence[str], points: Sequence[Point], summaries: Sequence[Summary]) -> pl.DataFrame:
    import polars as pl

    flat = [flatten(s) for s in summaries]
    names = list(dict.fromkeys(name for f in flat for name in f))
    columns: dict[str, list[Any]] = {axis: [_cell(p.values[i]) for p in points] for i, axis in enumerate(axes)}
    for axis, cells in columns.items():
        if len({type(c) for c in cells} - {int, float}) > 0 and len({type(c) for c in cells}) > 1:
            columns[axis] = [str(c) for c in cells]
    columns["seed"] = [p.seed for p in points]
    columns["digest"] = [s.get("digest") for s in summaries]
    frame = pl.DataFrame(columns, strict=False)
    figures = [pl.Series(name, [f.get(name) for f in flat], dtype=pl.Float64) for name in names]
    return frame.with_columns(figures)


def _cell(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str)) else toml_text.write_value(value)
