"""The answer of a plan: measures without and with the component, their changes, and a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anabranch.files.output import to_json, whole_directory
from anabranch.statistics.statistics import Interval, mean_interval
from anabranch.text import shown, toml_text
from anabranch.text.lines import percent, wrapped

HARM = 0.05
"""A certain loss of others from which a component is not advised."""

_LABEL, _CELL, _LAST = 34, 14, 18


@dataclass(frozen=True)
class Change:
    """A mean over paired runs, with its 95 % interval.

    Attributes:
        mean: The mean.
        low: Lower end; equals the mean if all runs are equal.
        high: Upper end.
    """

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Change:
        """The interval of one value per pair of runs."""
        found: Interval = mean_interval(values)
        if found.lower is None or found.upper is None:
            return cls(found.mean, found.mean, found.mean)
        return cls(found.mean, found.lower, found.upper)

    @classmethod
    def relative(cls, before: Sequence[float], after: Sequence[float]) -> Change:
        """The change of pairs of values relative to the first; pairs that begin with 0 are left out."""
        pairs = [new / old - 1 for old, new in zip(before, after, strict=True) if old > 0]
        return cls.of(pairs) if pairs else cls(0.0, 0.0, 0.0)

    @classmethod
    def absolute(cls, before: Sequence[float], after: Sequence[float]) -> Change:
        """The difference of pairs of values."""
        return cls.of([new - old for old, new in zip(before, after, strict=True)])

    @property
    def is_certain(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    def percent(self) -> str:
        """The change as a signed percentage with its interval."""
        mean, low, high = (percent(one, signed=True) for one in (self.mean, self.low, self.high))
        return mean if low == high else f"{mean} ({low} to {high})"

    def number(self, unit: str) -> str:
        """The change as a signed number with its interval."""
        mean, low, high = (_signed(one) for one in (self.mean, self.low, self.high))
        return f"{mean} {unit}" if low == high else f"{mean} {unit} ({low} to {high})"

    def document(self) -> dict[str, float]:
        """Its JSON."""
        return {"mean": self.mean, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Measure:
    """A measure without and with the component.

    Attributes:
        name: The key in the document.
        title: The label, with its unit.
        now: The values without the component, one per seed.
        then: The values with it.
        is_relative: Whether the change is relative to the first value; otherwise it is the difference.
        scale: Factor from the values to the printed ones.
    """

    name: str
    title: str
    now: tuple[float, ...]
    then: tuple[float, ...]
    is_relative: bool = True
    scale: float = 1.0

    @property
    def change(self) -> Change:
        """The change, over pairs of runs."""
        return (Change.relative if self.is_relative else Change.absolute)(self.now, self.then)

    def document(self) -> dict[str, Any]:
        """Its JSON."""
        now, then = Change.of(self.now), Change.of(self.then)
        return {"now": now.document(), "then": then.document(), "change": self.change.document()}

    def row(self) -> str:
        """Its row of the table."""
        now, then = (number(self.scale * sum(values) / len(values)) for values in (self.now, self.then))
        change = self.change
        if self.is_relative:
            told = change.percent()
        else:
            scaled = Change(*(self.scale * one for one in (change.mean, change.low, change.high)))
            told = scaled.number("").replace("  ", " ").strip()
        return f"{self.title:<{_LABEL}}{now:>{_CELL}}{then:>{_CELL}}  {told:>{_LAST}}"


@dataclass(frozen=True)
class Answer:
    """A plan's result.

    Attributes:
        component: The component: ``cc``, ``aqm`` or ``group``.
        subject: The alternative, in words: the head of the table's third column.
        is_advised: Whether to install it.
        sentence: The answer with its interval and the harm.
        measures: The measures.
        assumptions: Omissions and assumptions.
        seeds: Pairs of runs.
        scenarios: The simulated scenarios, by name.
        install: The command that installs the component as it was simulated.
        files: Files of the scenarios, by name.
    """

    component: str
    subject: str
    is_advised: bool
    sentence: str
    measures: tuple[Measure, ...]
    assumptions: tuple[str, ...]
    seeds: int
    scenarios: Mapping[str, Mapping[str, Any]]
    install: str
    files: Mapping[str, bytes] = field(default_factory=dict)

    def measure(self, name: str) -> Measure:
        """A measure by its name."""
        return next(one for one in self.measures if one.name == name)

    def document(self) -> dict[str, Any]:
        """The JSON document."""
        from anabranch import _engine

        return {
            "format": 1,
            "plan": self.component,
            "subject": self.subject,
            "advised": self.is_advised,
            "answer": self.sentence,
            "seeds": self.seeds,
            "anabranch_version": _engine.version(),
            "measures": {one.name: one.document() for one in self.measures},
            "assumptions": list(self.assumptions),
            "install": self.install,
        }

    def lines(self) -> Iterator[str]:
        """The answer in 80 columns."""
        yield from wrapped(shown.plain(self.sentence), "  ")
        yield ""
        heads = f"{'':<{_LABEL}}{'now':>{_CELL}}{self.subject:>{_CELL}}  {'change (95 %)':>{_LAST}}"
        yield shown.plain(heads.rstrip())
        for one in self.measures:
            yield shown.plain(one.row().rstrip())
        yield ""
        for told in self.assumptions:
            yield from wrapped(shown.plain(f"- {told}"), "  ")
        yield ""
        # Whole, so that it can be copied.
        yield shown.plain(f"to install it{'' if self.is_advised else ' anyway'}: {self.install}")

    def write(self, directory: Path) -> None:
        """Write the scenarios, their files and the document into a directory.

        Raises:
            UserError: The directory holds something else.
        """
        with whole_directory(directory, "plan") as place:
            for name, scenario in self.scenarios.items():
                # The scenario of the first seed.
                text = toml_text.write_document(dict(scenario)).replace("{seed}", "1")
                (place / f"{name}.toml").write_text(text, encoding="utf-8")
                for file, content in self.files.items():
                    if f'"{file}"' in text:
                        (place / file).write_bytes(content)
            (place / "plan.json").write_bytes(to_json(self.document()))


def number(value: float) -> str:
    """Three significant digits, and at most four decimals."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1e-4 else "0"


def _signed(value: float) -> str:
    text = number(abs(value))
    return text if text == "0" else f"{'+' if value > 0 else '-'}{text}"
