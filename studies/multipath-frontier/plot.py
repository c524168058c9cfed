"""Who is fastest over jitter and loss, a panel for each stack; and how much faster than one route in each situation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.colors import to_rgb
from matplotlib.patches import Patch

from anabranch.plot.style import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from anabranch.plot.study import Drawing

STACKS = ("bsd", "cubic", "bbr")
RIVALS = ("A", "B", "ours", "route1")
PERCENT = 100
PALE = 0.55
"""How much white is in the colours of a map."""


def figures(study: Drawing) -> Iterator[tuple[str, str, Figure]]:
    """Draw both."""
    yield "map", "Who is fastest, and our pair over the best of the others", winners(study)
    yield "situations", "Goodput over that of the best single route", situations(study)


def winners(study: Drawing) -> Figure:
    """Draw a panel for each stack: the colour says who is fastest, the number is ours over the best of the others."""
    definition = study.results.definition
    pale = {
        name: tuple(part + (1 - part) * PALE for part in to_rgb(COLOURS[place])) for place, name in enumerate(RIVALS)
    }
    figure, single = study.new_figure(9.2, 3.3)
    single.remove()
    row: Any = figure.subplots(1, len(STACKS))
    fastest: set[str] = set()
    for axes, stack in zip(row, STACKS, strict=True):
        values = {name: points(study, name, stack) for name in RIVALS}
        xs, ys = sorted({x for x, _ in values["A"]}), sorted({y for _, y in values["A"]})
        best = {(x, y): max(RIVALS, key=lambda name, at=(x, y): values[name][at]) for x in xs for y in ys}
        axes.imshow([[pale[best[x, y]] for x in xs] for y in ys], origin="lower", aspect="auto")
        for i, y in enumerate(ys):
            for j, x in enumerate(xs):
                others = max(values[name][x, y] for name in RIVALS if name != "ours")
                axes.text(j, i, f"{values['ours'][x, y] / others:.2f}", ha="center", va="center", fontsize=6)
        axes.set_xticks(range(len(xs)), [f"{x:g}" for x in xs], fontsize=7)
        axes.set_yticks(range(len(ys)), [f"{y * PERCENT:g}" for y in ys], fontsize=7)
        axes.tick_params(length=0)
        axes.grid(visible=False)
        axes.set_title(definition.experiments[stack].label, fontsize=9)
        axes.set_xlabel("Jitter of both routes (ms)", fontsize=8)
        fastest |= set(best.values())
    row[0].set_ylabel("Loss of both routes (%)", fontsize=8)
    handles = [Patch(color=pale[name], label=definition.variants[name].label) for name in RIVALS if name in fastest]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)
    return figure


def points(study: Drawing, variant: str, experiment: str) -> Mapping[tuple[float, float], float]:
    """Return means over seeds, by jitter and loss."""
    series = study.series(f"goodput[{variant}]", experiment).collapsed()
    return {(point["jitter"], point["loss"]): float(value or 0) for point, value in series}


def situations(study: Drawing) -> Figure:
    """Draw a row for each situation, a mark for each of the three."""
    definition = study.results.definition
    names = [name for name in definition.experiments if name not in STACKS]
    figure, axes = study.new_figure(6.6, 0.27 * len(names) + 1.0)
    rows = list(reversed(range(len(names))))
    best = {name: max(mean(study, route, name) for route in routes(study, name)) for name in names}
    for place, variant in enumerate(("A", "B", "ours")):
        ratios = [mean(study, variant, name) / best[name] for name in names]
        axes.plot(
            ratios,
            rows,
            linestyle="none",
            marker=MARKERS[place],
            color=COLOURS[place],
            markersize=5,
            label=definition.variants[variant].label,
        )
    axes.axvline(1, color="#808080", linewidth=0.8, linestyle="--")
    axes.set_yticks(rows, [definition.experiments[name].label for name in names], fontsize=7)
    axes.set_xlim(left=0)
    axes.set_xlabel("Goodput, over that of the best single route")
    axes.legend(loc="best", fontsize=8)
    return figure


def routes(study: Drawing, experiment: str) -> list[str]:
    """Return the single routes that an experiment has runs of."""
    return [name for name in study.results.definition.experiments[experiment].variants if name.startswith("route")]


def mean(study: Drawing, variant: str, experiment: str) -> float:
    """Return a mean over seeds."""
    return next(float(value or 0) for _, value in study.series(f"goodput[{variant}]", experiment).collapsed())
