"""The figures of a summary by their element (flow, link, …) and measure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from anabranch.result.flat import flow_of_copy
from anabranch.result.measure_names import SHOWN, UNITS, figures_named, unit_of

SECTIONS = ("flow", "fairness", "link", "group", "gateway")

_RATIO = re.compile(r"(^|_)(utilization|share|ratio|rate)$")

_PARTS = ("reordering", "transfers", "exchanges", "fec", "refused")
"""Parts of a flow's summary that contain further figures."""
_FLOW = re.compile(rf"flow\.(?P<element>.+?)\.(?P<name>(?:{'|'.join(_PARTS)})\..+|[^.]+)", re.DOTALL)
_DIRECTED = re.compile(r"(?:link|gateway)\.(?P<element>.+?\.(?:forward|reverse))\.(?P<name>.+)", re.DOTALL)
_GROUP = re.compile(r"group\.(?P<element>.+?)\.(?P<name>port_seconds\..+|[^.]+)", re.DOTALL)
_FAIRNESS = re.compile(r"fairness\.(?P<element>)(?P<name>.+)", re.DOTALL)
_FORMS = {"flow": _FLOW, "link": _DIRECTED, "gateway": _DIRECTED, "group": _GROUP, "fairness": _FAIRNESS}


_NAMES = {"jain_index": "Jain index"}

MOST_COPIES = 4
"""A comparison of runs shows each copy of a flow up to this number of copies; with more, only their mean."""


@dataclass(frozen=True)
class Measure:
    """A measured quantity, independent of the flow or link.

    Attributes:
        section: ``"flow"``, ``"link"``, ``"group"``, ``"gateway"`` or ``"fairness"``.
        name: As in the summary: ``goodput_mbit_s``, ``fec.recovered_packets``.
        rank: Position in tables: measures shown by default first, the others as in the summary.
    """

    section: str
    name: str
    rank: tuple[int, int, int] = field(default=(0, 0, 0), compare=False)

    @property
    def unit(self) -> str:
        """The unit in which it is shown; empty for a count or an index."""
        return "%" if _RATIO.search(self.name) else unit_of(self.name)

    @property
    def scale(self) -> float:
        """Factor from the figure to its displayed value: ratios are shown as per cent."""
        return 100.0 if self.unit == "%" else 1.0

    @property
    def title(self) -> str:
        """In words, without the unit."""
        name = _NAMES.get(self.name, self.name)
        for suffix, unit in UNITS.items():
            if unit == self.unit:
                name = name.removesuffix(suffix)
        return re.sub(r"[._]", " ", name)

    @property
    def heading(self) -> str:
        """In words: ``goodput (Mbit/s)``."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def of(self, element: str) -> str:
        """The heading for one flow or link."""
        return f"{self.heading}, {self.section} {element}" if element else self.heading


@dataclass(frozen=True)
class Column:
    """One figure of a summary.

    Attributes:
        figure: Its full name: ``link.path.forward.utilization``.
        element: The flow or link: ``path forward``.
        measure: Its measure.
    """

    figure: str
    element: str
    measure: Measure


def columns_of(figures: Iterable[str]) -> list[Column]:
    """The figures as columns, each once, in the given order; names without a known section are dropped."""
    found: dict[str, Column] = {}
    ranks: dict[tuple[str, str], int] = {}
    for figure in dict.fromkeys(figures):
        section = figure.partition(".")[0]
        form = _FORMS.get(section)
        parts = form.fullmatch(figure) if form else None
        if parts is None:
            continue
        element, name = parts["element"], parts["name"]
        if form is _DIRECTED:
            element = " ".join(element.rsplit(".", 1))
        rank = ranks.setdefault((section, name), len(ranks))
        found[figure] = Column(figure, element, Measure(section, name, _rank(section, name, rank)))
    return list(found.values())


def _rank(section: str, name: str, otherwise: int) -> tuple[int, int, int]:
    if (section, name) in SHOWN:
        return (0, 0, SHOWN.index((section, name)))
    return (1, SECTIONS.index(section), otherwise)


def shown_by_default(measure: Measure, columns: Sequence[Column]) -> bool:
    """Whether tables show the measure by default."""
    if measure.section == "fairness":
        # The index of one flow is always 1.
        return len({c.element for c in columns if c.measure.section == "flow"}) > 1
    return (measure.section, measure.name) in SHOWN


def copies_of(columns: Iterable[Column]) -> dict[str, list[str]]:
    """The copies of each flow that has several, keyed by the flow's name, whose figures are their means."""
    flows = dict.fromkeys(column.element for column in columns if column.measure.section == "flow")
    found: dict[str, list[str]] = {}
    for name in flows:
        flow = flow_of_copy(name)
        if flow is not None:
            found.setdefault(flow, []).append(name)
    return {flow: copies for flow, copies in found.items() if flow in flows}


def without_copies(columns: Sequence[Column], named: Collection[str] = (), most: int = 0) -> list[Column]:
    """The columns without the copies of flows that have more than ``most`` copies; named figures are kept."""
    left_out = {copy for copies in copies_of(columns).values() if len(copies) > most for copy in copies}
    return [
        column
        for column in columns
        if column.measure.section != "flow" or column.element not in left_out or column.figure in named
    ]


def chosen(columns: Sequence[Column], names: Sequence[str]) -> list[Column]:
    """The columns with these names: a measure or its short name, with or without the flow or link before it.

    Raises:
        UserError: No column has such a name, or it is ambiguous.
    """
    found: dict[str, Column] = {}
    for name in names:
        own = [
            c for c in columns
            if name in {c.figure, c.measure.name, f"{c.measure.section}.{c.measure.name}"}
        ]  # fmt: skip
        if not own:
            figures = figures_named(name, [c.figure for c in columns], "no input has a measure")
            own = [c for c in columns if c.figure in figures]
        found.update((column.figure, column) for column in own)
    return list(found.values())
