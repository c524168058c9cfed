"""Energy against goodput, a panel for each kind of traffic, a mark for each controller."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from anabranch.plot.style import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from anabranch.plot.study import Drawing

OPEN_LOOP = {"on_off", "daily", "square", "capture"}
"""Traffic that is the same under every controller."""


def figures(study: Drawing) -> Iterator[tuple[str, str, Figure]]:
    """Draw the frontier."""
    yield "frontier", "Energy against goodput, both as a share of all links on", frontier(study)


def frontier(study: Drawing) -> Figure:
    """Draw a panel for each experiment: down is cheaper, right is faster."""
    definition = study.results.definition
    names = [name for name in definition.experiments if name not in OPEN_LOOP]
    across = 4
    down = -(-(len(names) + 1) // across)
    figure, single = study.new_figure(7.6, 2.0 * down)
    single.remove()
    panels: Any = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    handles: list[Any] = []
    for axes, name in zip(panels.flat, names, strict=False):
        handles = []
        for index, variant in enumerate(definition.variants):
            if variant in {"always_on", "optimum"}:
                continue
            goodput = mean(study, f"goodput_share[{variant}]", name)
            energy = mean(study, f"energy_share[{variant}]", name)
            handles += axes.plot(
                goodput,
                energy,
                linestyle="none",
                marker=MARKERS[index % len(MARKERS)],
                color=COLOURS[index % len(COLOURS)],
                markersize=5,
                label=definition.variants[variant].label,
            )
        axes.set_title(definition.experiments[name].label, fontsize=8)
    rest = list(panels.flat)[len(names) :]
    for axes in rest:
        axes.axis("off")
    rest[0].legend(handles=handles, loc="center", fontsize=7)
    figure.supxlabel("Goodput, as a share of all links on", fontsize=9)
    figure.supylabel("Energy, as a share of all links on", fontsize=9)
    return figure


def mean(study: Drawing, expression: str, experiment: str) -> float:
    """Return a mean over seeds."""
    return next(float(value or 0) for _, value in study.series(expression, experiment).collapsed())
