"""The figures of many runs as columns: of a run, eight bytes for each figure are kept, and its digest."""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anabranch.sweep.quantities import numbers_of
from anabranch.text import toml_text

if TYPE_CHECKING:
    from anabranch.result.summary import AnySummary
    from anabranch.result.table import Table
    from anabranch.sweep.design import Point

PARTS = ("reordering", "transfers", "fec")
"""What a flow's summary has as a whole, or as ``None``."""

_SECTIONS = (
    ("flows", "flow"),
    ("links", "link"),
    ("groups", "group"),
    ("gateways", "gateway"),
    ("fairness", "fairness"),
)


_COPY = re.compile(r"(?P<flow>[^/]+)/[0-9]+(?P<rest>\.[^/]*)?", re.DOTALL)
"""The name of one copy of a flow, or of a figure of it. Names of flows have no slashes."""

Flat = dict[str, "float | None"]
"""Figures by dotted name."""


def flow_of_copy(name: str) -> str | None:
    """The flow of which ``name`` is one copy (``main`` for ``main/0``); ``None`` if it is no copy."""
    parts = _COPY.fullmatch(name)
    return parts["flow"] if parts and parts["rest"] is None else None


def without_copy(figure: str) -> str:
    """``flow.main.goodput_mbit_s`` for ``flow.main/0.goodput_mbit_s``; any other figure as it is."""
    parts = _COPY.fullmatch(figure)
    return f"{parts['flow']}{parts['rest'] or ''}" if parts else figure


def flatten(summary: Mapping[str, Any], *, distributions: bool = False, means: bool = False) -> Flat:
    """Every figure of a summary under one dotted name each: ``flow.main.goodput_mbit_s``.

    Args:
        summary: A run's summary.
        distributions: Also the reordering distributions, one figure per bin.
        means: Also the mean of each figure over the copies of a flow, under the flow's name: ``flow.main`` for
            ``flow.main/0``, ``flow.main/1``, …. Copies without the figure are left out of its mean.
    """
    flat: Flat = {}

    # Called for every run of a sweep: the exact types that JSON gives are looked at, which takes a third of the time.
    def walk(flat: Flat, prefix: str, table: Mapping[str, Any]) -> None:
        for key, inner in table.items():
            kind = type(inner)
            if kind is float:
                flat[f"{prefix}.{key}"] = inner
            elif kind is int:
                flat[f"{prefix}.{key}"] = float(inner)
            # A part that a flow does not have (no error correction, say) is no figure.
            elif inner is None:
                if key not in PARTS:
                    flat[f"{prefix}.{key}"] = None
            elif issubclass(kind, dict) and (distributions or key != "reordering"):
                walk(flat, f"{prefix}.{key}", inner)

    for section, singular in _SECTIONS:
        table: Any = summary.get(section)
        if not isinstance(table, dict):
            continue
        if means and section == "flows":
            _flatten_flows(flat, table, walk)
        else:
            walk(flat, singular, table)
    return flat


def _flatten_flows(flat: Flat, flows: Mapping[str, Any], walk: Callable[[Flat, str, Mapping[str, Any]], None]) -> None:
    """The figures of all flows, those of a flow with several copies preceded by their means."""
    groups: dict[str, list[str]] = {}
    for name in flows:
        groups.setdefault(flow_of_copy(name) or name, []).append(name)
    for flow, names in groups.items():
        if names == [flow]:
            walk(flat, f"flow.{flow}", flows[flow])
            continue
        copies: list[Flat] = [{} for _ in names]
        for name, own in zip(names, copies, strict=True):
            walk(own, "", flows[name])
        flat.update((f"flow.{flow}{key}", value) for key, value in _means(copies).items())
        for name, own in zip(names, copies, strict=True):
            flat.update((f"flow.{name}{key}", value) for key, value in own.items())


def _means(copies: Sequence[Flat]) -> Flat:
    """The mean of each figure over the copies that have it; a count that a copy does not list is 0."""
    means: Flat = {}
    for key in dict.fromkeys(key for one in copies for key in one):
        known = [value for one in copies if (value := one.get(key, 0.0)) is not None]
        means[key] = math.fsum(known) / len(known) if known else None
    return means


def read_summary(raw: str) -> AnySummary:
    """A summary without the resolved scenario, which is two thirds of it and has no figures."""
    # In JSON a quotation mark inside a text has a backslash before it: these are keys.
    begin, end = raw.find('"resolved_scenario":'), raw.rfind(',"platform":"')
    if 0 < begin < end:
        try:
            summary: AnySummary = json.loads(raw[:begin] + raw[end + 1 :])
        except ValueError:
            pass
        else:
            if isinstance(summary.get("flows"), dict) and "digest" in summary:
                return summary
    whole: AnySummary = json.loads(raw)
    return whole


class Figures:
    """Collects the figures of runs, in any order."""

    def __init__(self, runs: int = 0) -> None:
        self._runs = runs
        self._columns: dict[str, array[float]] = {}
        self._digests: list[str | None] = [None] * runs
        # Of each set of names the first run that has it: the order of columns is that of the runs, not of their making.
        self._shapes: dict[tuple[str, ...], int] = {}

    def __len__(self) -> int:
        return self._runs

    def grow(self, runs: int) -> None:
        """Make room for more runs."""
        self._runs += runs
        self._digests += [None] * runs
        for column in self._columns.values():
            column.extend(array("d", [math.nan]) * runs)

    def names(self) -> list[str]:
        """The figures that there are."""
        return list(self._columns)

    def value(self, name: str, run: int) -> float | None:
        """A figure of a run; ``None`` where it does not apply."""
        value = self._columns[name][run]
        return None if math.isnan(value) else value

    def digest(self, run: int) -> str | None:
        """The digest of a run."""
        return self._digests[run]

    def ordered(self, runs: Sequence[int]) -> Figures:
        """The figures of these runs, in this order."""
        other = Figures(len(runs))
        other._columns = {name: array("d", [column[run] for run in runs]) for name, column in self._columns.items()}
        other._digests = [self._digests[run] for run in runs]
        # Names of figures keep the order in which runs were made: it is the same wherever they are made.
        other._shapes = dict(self._shapes)
        return other

    def add(self, run: int, summary: Mapping[str, Any]) -> None:
        """Take the figures of run number ``run``; of one that is there already they are the same."""
        flat = flatten(summary, means=True)
        shape = tuple(flat)
        before = self._shapes.get(shape)
        if before is None or run < before:
            self._shapes[shape] = run
        columns = self._columns
        for name, value in flat.items():
            column = columns.get(name)
            if column is None:
                column = columns[name] = array("d", [math.nan]) * self._runs
            # A summary is JSON, which has no NaN: it is free to mean that there is no figure.
            column[run] = math.nan if value is None else value
        self._digests[run] = summary.get("digest")

    def table(self, axes: Sequence[str], points: Sequence[Point]) -> Table:
        """One row per run: the axes, those that are quantities as numbers, the seed, the digest, and the figures."""
        import numpy as np

        from anabranch.result.table import Table, column_of

        order = [name for shape, _ in sorted(self._shapes.items(), key=lambda item: item[1]) for name in shape]
        columns: dict[str, list[Any]] = {axis: [] for axis in axes}
        seeds = array("q")
        for point in points:
            for axis, value in zip(axes, point.values, strict=True):
                columns[axis].append(_cell(value))
            seeds.append(point.seed)
        for axis, cells in columns.items():
            kinds = set(map(type, cells))
            if kinds - {int, float} and len(kinds) > 1:
                columns[axis] = [value_text(c) for c in cells]
        for axis in axes:
            if numbers := numbers_of(axis, columns[axis]):
                columns[numbers.column] = numbers.values
        columns["seed"] = seeds.tolist()
        columns["digest"] = self._digests
        figures = {name: column_of(np.frombuffer(self._columns[name], dtype=np.float64)) for name in order}
        return Table.of(columns).with_columns(figures)


def runs_table(axes: Sequence[str], points: Sequence[Point], summaries: Sequence[Mapping[str, Any]]) -> Table:
    """One row per run, as of :class:`anabranch.SweepResult`."""
    figures = Figures(len(summaries))
    for run, summary in enumerate(summaries):
        figures.add(run, summary)
    return figures.table(axes, points)


def _cell(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str)) else toml_text.write_value(value)


def value_text(value: Any) -> str:
    """A value of an axis as text: as TOML and JSON write it, and a string without quotation marks."""
    return value if isinstance(value, str) else toml_text.write_value(value)
