"""Runs with many flows: bands instead of lines, distributions, percentiles, and a small drawing of each flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from anabranch.charts.bands import MOST_LINES, is_many
from anabranch.charts.model import Chart, SeriesColumns
from anabranch.charts.rates import by_flow, rates
from anabranch.report.page import table
from anabranch.result.format import figure
from anabranch.result.remarks import of
from anabranch.text import shown

if TYPE_CHECKING:
    from anabranch.result.result import RunResult
    from anabranch.result.table import Table

FEWEST_OF_DISTRIBUTION = 8
"""From this number of flows on, a distribution shows more than the table of flows."""
MOST_SMALL = 60
"""Largest number of small drawings on a page."""
_PERCENTILES = (0, 10, 50, 90, 100)
_MEASURES = (
    ("goodput_mbit_s", "goodput (Mbit/s)"), ("mean_srtt_ms", "srtt (ms)"), ("mean_cwnd_packets", "cwnd (packets)"),
    ("retransmitted_packets", "retransmitted (packets)"), ("flow_completion_time_s", "completion time (s)"),
)  # fmt: skip
_SMALL_BINS = 60
_SMALL = (150, 46)
"""Width and height of a small drawing."""


def distributions(result: RunResult) -> Iterator[Chart]:
    """The distribution of goodput, and of completion times, over the flows; a line for each table of flows."""
    for key, name, title, label in (
        ("goodput_mbit_s", "goodput-cdf", "Distribution of goodput", "goodput (Mbit/s)"),
        ("flow_completion_time_s", "completion-cdf", "Distribution of completion times", "completion time (s)"),
    ):
        tables: dict[str, list[float]] = {}
        for flow, summary in result.flows.items():
            value = of(summary, key)
            if value is not None:
                tables.setdefault(flow.partition("/")[0], []).append(value)
        if sum(map(len, tables.values())) < FEWEST_OF_DISTRIBUTION:
            continue
        if len(tables) > MOST_LINES:
            tables = {"all flows": [value for values in tables.values() for value in values]}
        yield Chart(name, title, "share of flows", tuple(_steps(*one) for one in tables.items()), x_label=label)


def _steps(label: str, values: Sequence[float]) -> SeriesColumns:
    """The empirical distribution: at each value the share of flows at or below it."""
    import numpy as np

    x, counts = np.unique(np.array(values), return_counts=True)
    y = np.cumsum(counts) / len(values)
    return SeriesColumns(label, np.concatenate([x[:1], x]), np.concatenate([[0.0], y]), "step")


def percentiles(result: RunResult) -> str:
    """A table of percentiles over the flows; "" if there are few."""
    import numpy as np

    if len(result.flows) < FEWEST_OF_DISTRIBUTION:
        return ""
    rows = []
    for key, heading in _MEASURES:
        values = [value for flow in result.flows.values() if (value := of(flow, key)) is not None]
        if values:
            cuts = np.percentile(values, _PERCENTILES)
            rows.append((heading, f"{len(values)}", *(figure(float(f"{cut:.4g}")) for cut in cuts), figure(sum(values))
                         if key in ("goodput_mbit_s", "retransmitted_packets") else "–"))  # fmt: skip
    return table(("over the flows", "flows", "lowest", "10 %", "median", "90 %", "highest", "sum"), rows)


def small_multiples(samples: Table) -> str:
    """The goodput of each flow over time, all on one scale; "" if the page has a line for each flow."""
    if not is_many(samples):
        return ""
    drawn = [(flow, rates(flow, x, y, _SMALL_BINS)) for flow, x, y in by_flow(samples, "delivered_bytes")]
    drawn = [(flow, line) for flow, line in drawn if len(line.x)]
    if not drawn:
        return ""
    top = max(float(line.y.max()) for _, line in drawn) or 1.0
    end = max(float(line.x[-1]) for _, line in drawn)
    parts = "".join(_small(flow, line, top, end) for flow, line in drawn[:MOST_SMALL])
    cut = f" The first {MOST_SMALL} of {len(drawn)}." if len(drawn) > MOST_SMALL else ""
    return (
        f"<h2>Each flow</h2><p class='soft'>Goodput over time, from 0 to {figure(float(f'{top:.3g}'))} Mbit/s in every "
        f"drawing.{cut}</p><div class='small-multiples'>{parts}</div>"
    )


def _small(flow: str, line: SeriesColumns, top: float, end: float) -> str:
    width, height = _SMALL
    points = " ".join(
        f"{x / end * width:.1f},{height - y / top * (height - 2) - 1:.1f}" for x, y in zip(line.x, line.y, strict=True)
    )
    mean = figure(float(f"{line.y.mean():.3g}"))
    told = shown.html(f"{flow}: mean {mean} Mbit/s")
    return (
        f"<figure><svg class='drawing' role='img' aria-label='{told}' viewBox='0 0 {width} {height}'>"
        f"<line class='rule' x1='0' x2='{width}' y1='{height - 0.5}' y2='{height - 0.5}'/>"
        f"<polyline points='{points}' fill='none' stroke='var(--accent)' stroke-width='1.3'/></svg>"
        f"<figcaption>{shown.html(flow)} <span class='soft'>{mean}</span></figcaption></figure>"
    )


def limits(result: RunResult, shares: Sequence[tuple[str, str]]) -> str:
    """Bars with the limits of each TCP flow; for many flows, one bar with the mean shares of each table of flows.

    Args:
        result: The run.
        shares: Name of each share in the summary, and its description.
    """
    rows: dict[str, list[Mapping[str, float]]] = {}
    for name, flow in result.flows.items():
        known = {key: value for key, _ in shares if (value := of(flow, key)) is not None}
        if known:
            owner = name if len(result.flows) <= MOST_LINES else name.partition("/")[0]
            rows.setdefault(owner, []).append(known)
    if not rows:
        return ""
    body = []
    for owner, flows in list(rows.items())[:MOST_LINES]:
        parts = [(what, sum(f.get(key, 0.0) for f in flows) / len(flows)) for key, what in shares]
        parts.append(("pacing, recovery and set-up", max(0.0, 1.0 - sum(share for _, share in parts))))
        told = ", ".join(f"{what} {100 * share:.0f} %" for what, share in parts if share >= 0.005)
        bars = "".join(
            f"<span class='part{i}' style='width:{100 * share:.2f}%' "
            f"title='{shown.html(what)} {100 * share:.0f} %'></span>"
            for i, (what, share) in enumerate(parts)
            if share >= 0.005
        )
        named = shown.html(owner if len(flows) == 1 else f"{owner} × {len(flows)}")
        body.append(
            f"<div class='limit'><span>{named}</span><div aria-hidden='true'>{bars}</div>"
            f"<span class='soft'>{shown.html(told)}</span></div>"
        )
    keys = "".join(
        f"<span><i class='part{i}'></i>{shown.html(what)}</span>"
        for i, what in enumerate((*(what for _, what in shares), "pacing, recovery and set-up"))
    )
    return (
        "<h2>What limited the senders</h2><p class='soft'>Shares of each flow's time.</p>"
        f"{''.join(body)}<p class='keys'>{keys}</p>"
    )
