"""The table of a sweep in a notebook: every point, and the most used figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.report.page import table, text
from anabranch.result.format import interval
from anabranch.result.measures import columns_of, without_copies
from anabranch.sweep.sweep import value_text

if TYPE_CHECKING:
    from anabranch.sweep.sweep import SweepResult

MOST_POINTS = 20
MOST_FIGURES = 6
SHOWN_FIRST = ("goodput_mbit_s", "retransmitted_packets", "jain_index", "mean_srtt_ms")
"""Last parts of the figures that are shown, in this order."""


def html_table(result: SweepResult) -> str:
    """One row for each point: its values, and means with their intervals."""
    figures = result.figures()
    columns_shown = [column.figure for column in without_copies(columns_of(figures))]
    chosen = [name for last in SHOWN_FIRST for name in columns_shown if name.rpartition(".")[2] == last][:MOST_FIGURES]
    columns = [result.estimates(name) for name in chosen]
    points = [point for point, _ in columns[0]] if columns else []
    rows = [
        (
            *(value_text(value) for value in point),
            *(interval(column[i][1], name) for name, column in zip(chosen, columns, strict=True)),
        )
        for i, point in enumerate(points[:MOST_POINTS])
    ]
    left = [f"{len(points) - MOST_POINTS} more points"] if len(points) > MOST_POINTS else []
    left += [f"{len(figures) - len(chosen)} more figures are in frame"]
    body = table((*result.axes, *chosen), rows, left=len(result.axes))
    return f"{body}<p class='soft'>{text('; '.join(left))}</p>"
