"""Runs side by side over time: the charts of the page and of the static figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from anabranch.charts.model import Chart, SeriesColumns
from anabranch.charts.rates import rates
from anabranch.plot.run import LEGEND_LIMIT

if TYPE_CHECKING:
    from anabranch.compare import Comparison
    from anabranch.compare.inputs import Input
    from anabranch.result.table import Table


def charts(comparison: Comparison) -> Iterator[Chart]:
    """Window, goodput and round-trip time: a line for each flow of each run that has samples."""
    inputs = [one for one in comparison.inputs if one.run is not None and one.run.samples is not None]
    each = max(1, LEGEND_LIMIT // max(1, len(inputs)))
    for name, title, label, column in (
        ("cwnd", "Congestion window", "cwnd (packets)", "cwnd_packets"),
        ("goodput", "Goodput", "goodput (Mbit/s)", "delivered_bytes"),
        ("srtt", "Smoothed round-trip time", "srtt (ms)", "srtt_ms"),
    ):
        series = [line for one in inputs[:LEGEND_LIMIT] for line in _lines(one, column, each)]
        if any(len(line.x) for line in series):
            yield Chart(name, title, label, tuple(series), _left_out(inputs, each))


def _lines(one: Input, column: str, most: int) -> Iterator[SeriesColumns]:
    samples = one.run.samples if one.run else None
    if samples is None or not {"time_s", "flow", column} <= set(samples.columns):
        return
    for flow in _flows(samples)[:most]:
        part = samples.where(samples.is_in("flow", flow))
        x, y = part.numbers("time_s"), part.numbers(column)
        label = one.name if len(one.flows) == 1 else f"{one.name} {flow}"
        yield rates(label, x, y) if column == "delivered_bytes" else SeriesColumns(label, x, y)


def _flows(samples: Table) -> list[str]:
    return [str(flow) for flow in samples.unique("flow")]


def _left_out(inputs: Sequence[Input], each: int) -> str:
    parts = []
    if any(len(one.flows) > each for one in inputs):
        parts.append(f"The first {each} flows of each run are drawn.")
    if len(inputs) > LEGEND_LIMIT:
        parts.append(f"The first {LEGEND_LIMIT} of {len(inputs)} runs are drawn.")
    return " ".join(parts)


def without_samples(comparison: Comparison) -> list[str]:
    """The runs without samples over time."""
    if comparison.kind != "run":
        return []
    return [one.name for one in comparison.inputs if one.run is None or one.run.samples is None]
