"""Figures of an evaluation: for each case of a check the subject and its references, with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.evaluate.evaluation import OWN, CaseResult, CheckResult
from anabranch.evaluate.judge import Limit, interval_of, shown
from anabranch.text.shown import html

COLOURS = ("#0072b2", "#d55e00", "#7d8790", "#009e73", "#cc79a7")
"""The subject, then its references; distinguishable with every kind of colour vision."""
_LOG_FROM = 50.0
"""A range of at least this ratio is drawn on a logarithmic scale."""
_ROW = 24
_LABEL = 190
_VALUE = 96
_WIDTH = 760


@dataclass(frozen=True)
class Mark:
    """A mean with its interval."""

    name: str
    mean: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Scale:
    """A horizontal scale, from 0 to 1."""

    low: float
    high: float
    is_log: bool

    def at(self, value: float) -> float:
        """The place of a value."""
        if self.is_log:
            value = max(value, self.low)
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0)

    def ticks(self) -> list[float]:
        """Values for labels: the ends, and the middle."""
        middle = math.sqrt(self.low * self.high) if self.is_log else (self.low + self.high) / 2
        return [self.low, middle, self.high]


def marks(one: CaseResult) -> list[Mark]:
    """The marks of a case, the subject last so that it is on top."""
    found = []
    for name, values in reversed(list(one.values.items())):
        interval = interval_of(values)
        if interval is None:
            continue
        lower = interval.mean if interval.lower is None else interval.lower
        upper = interval.mean if interval.upper is None else interval.upper
        if interval.mean >= 0:
            lower = max(lower, 0.0)
        found.append(Mark(name, interval.mean, lower, upper))
    return found


def scale_of(cases: Sequence[CaseResult]) -> Scale | None:
    """A common scale; ``None`` if no case has a figure."""
    found = [mark for one in cases for mark in marks(one)]
    if not found:
        return None
    values = [mark.mean for mark in found] + [mark.upper for mark in found]
    values += [one.case.rule.value for one in cases if isinstance(one.case.rule, Limit)]
    high = max(values)
    least = min((mark.mean for mark in found), default=0.0)
    if least > 0 and high / least >= _LOG_FROM:
        return Scale(least / 1.5, high * 1.1, is_log=True)
    low = min(0.0, *(mark.lower for mark in found))
    return Scale(low, high * 1.05 if high > low else low + 1.0, is_log=False)


def names_of(result: CheckResult) -> list[str]:
    """The subject and all references, in the order of the colours."""
    return list(dict.fromkeys(name for one in result.cases for name in one.values))


def strip(one: CaseResult, scale: Scale, names: Sequence[str], unit: str) -> str:
    """A row of a figure in a page; it has the width of its place."""
    parts = [
        "<svg class='strip' height='22' width='100%' role='img' "
        f"aria-label='{html(_told(one, unit))}'><line class='base' x1='1%' x2='99%' y1='11' y2='11'/>"
    ]
    if isinstance(one.case.rule, Limit):
        at = _percent(scale, one.case.rule.value)
        parts.append(f"<line class='limit-line' x1='{at}' x2='{at}' y1='1' y2='21'/>")
    for mark in marks(one):
        number = names.index(mark.name) % len(COLOURS)
        y = 11 if mark.name == OWN else 11 + (4 if number % 2 else -4)
        parts.append(
            f"<g class='mark m{number}'><title>{html(mark.name)}: {shown(mark.mean, unit)}</title>"
            f"<line x1='{_percent(scale, mark.lower)}' x2='{_percent(scale, mark.upper)}' y1='{y}' y2='{y}'/>"
            f"<circle cx='{_percent(scale, mark.mean)}' cy='{y}' r='{4.5 if mark.name == OWN else 3.5}'/></g>"
        )
    return "".join(parts) + "</svg>"


def _percent(scale: Scale, value: float) -> str:
    return f"{1 + 98 * scale.at(value):.2f}%"


def _told(one: CaseResult, unit: str) -> str:
    return "; ".join(f"{mark.name} {shown(mark.mean, unit)}" for mark in reversed(marks(one))) or "no figure"


def svg(result: CheckResult, subject: str) -> str | None:
    """A check's figure as a file; ``None`` if it has no figures."""
    cases = [one for one in result.cases if marks(one)]
    scale = scale_of(cases)
    if scale is None:
        return None
    measure, names = cases[0].case.measure, names_of(result)
    height = 62 + _ROW * len(cases) + 26
    plot = _WIDTH - _LABEL - _VALUE
    out = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDTH}' height='{height}' viewBox='0 0 {_WIDTH} {height}' "
        "font-family='system-ui, sans-serif' font-size='12'>",
        "<style>text{fill:#1c2126}.soft{fill:#5b6570}.paper{fill:#fff}.base{stroke:#d9dee3}"
        "@media(prefers-color-scheme:dark){text{fill:#e4e8ec}.soft{fill:#9aa4ae}.paper{fill:#14181c}.base{stroke:#333b43}}"
        "</style>",
        "<rect class='paper' width='100%' height='100%'/>",
        f"<text x='8' y='18' font-weight='600'>{html(result.check.title)}</text>",
        f"<text class='soft' x='8' y='35'>{html(_axis(measure.name, measure.unit))}; "
        f"{'less' if measure.is_less_better else 'more'} is better; 95 % intervals</text>",
    ]
    x = 8
    for name in names:
        colour = COLOURS[names.index(name) % len(COLOURS)]
        told = subject if name == OWN else name
        out.append(f"<circle cx='{x + 4}' cy='49' r='4' fill='{colour}'/><text x='{x + 13}' y='53'>{html(told)}</text>")
        x += 30 + 7 * len(told)
    for row, one in enumerate(cases):
        y = 62 + _ROW * row + _ROW // 2
        out.append(f"<text x='8' y='{y + 4}'>{html(one.name[:30])}</text>")
        out.append(f"<line class='base' x1='{_LABEL}' x2='{_LABEL + plot}' y1='{y}' y2='{y}'/>")
        if isinstance(one.case.rule, Limit):
            at = _LABEL + plot * scale.at(one.case.rule.value)
            out.append(
                f"<line x1='{at:.1f}' x2='{at:.1f}' y1='{y - 10}' y2='{y + 10}' stroke='#c0392b' "
                "stroke-dasharray='3 2'/>"
            )
        for mark in marks(one):
            number = names.index(mark.name) % len(COLOURS)
            colour, at = COLOURS[number], y if mark.name == OWN else y + (4 if number % 2 else -4)
            a, b, c = (_LABEL + plot * scale.at(v) for v in (mark.lower, mark.upper, mark.mean))
            out.append(
                f"<line x1='{a:.1f}' x2='{b:.1f}' y1='{at}' y2='{at}' stroke='{colour}' stroke-width='2'/>"
                f"<circle cx='{c:.1f}' cy='{at}' r='{4.5 if mark.name == OWN else 3.5}' fill='{colour}'/>"
            )
        out.append(f"<text class='soft' x='{_LABEL + plot + 8}' y='{y + 4}'>{html(one.judgement.verdict)}</text>")
    y = 62 + _ROW * len(cases) + 16
    for value, anchor in zip(scale.ticks(), ("start", "middle", "end"), strict=True):
        at = _LABEL + plot * scale.at(value)
        out.append(
            f"<text class='soft' x='{at:.1f}' y='{y}' text-anchor='{anchor}'>{shown(value, measure.unit)}</text>"
        )
    return "".join(out) + "</svg>\n"


def _axis(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name
