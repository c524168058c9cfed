"""The charts of a captured connection as static figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.charts.capture import CHARTS, CaptureColumns
from anabranch.diagnosis.diagnosis import DIRECTIONS, Diagnosis, main_direction
from anabranch.diagnosis.points import points
from anabranch.errors import UserError, nearest
from anabranch.plot.run import draw
from anabranch.plot.style import house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_chart(
    document: Diagnosis, chart: str, number: int | None, direction: str | None, ax: Axes | None = None
) -> Axes:
    """Draw one chart of a connection.

    Raises:
        UserError: There is no such chart or connection, or nothing of it to draw.
    """
    if chart not in CHARTS:
        raise UserError(f'a diagnosis has no chart "{chart}"', hint=nearest(chart, CHARTS))
    if direction is not None and direction not in DIRECTIONS:
        raise UserError(f'a connection has no direction "{direction}"', hint=nearest(direction, DIRECTIONS))
    connections = document.content["connections"]
    if not connections:
        raise UserError(f"{document['file']}: no TCP connection was found, so that there is nothing to draw")
    connection = (
        max(connections, key=lambda one: main_direction(one)[1]["bytes"])
        if number is None
        else document.connection(number)
    )
    way = direction or main_direction(connection)[0]
    traced = points(document, [connection])[connection["id"]]
    columns = CaptureColumns(connection, traced, way, connection["start_s"])
    for made in columns.charts():
        if made.name == chart:
            with house_style():
                axes = new_figure()[1] if ax is None else ax
                draw(made, axes)
            return axes
    raise UserError(f'connection {connection["id"]} has nothing for the chart "{chart}" in this direction')
