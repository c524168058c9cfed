"""What a study is: the parsed, checked form of its ``study.toml``.

The form is described for people in ``docs/studies.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from anabranch.study.expression import Expression
from anabranch.text import toml_text

Sets: TypeAlias = "Mapping[str, Any]"
"""Dotted path → value, applied to a scenario in order."""


@dataclass(frozen=True)
class Axis:
    """One axis of a grid.

    Attributes:
        name: As expressions call it.
        set: Path → template; ``"{}"`` alone passes the number, text around it makes a quantity (``"{} ms"``).
        quick: Values of the quick grid.
        full: Values of the full grid.
        label: On figures.
    """

    name: str
    set: Sets
    quick: tuple[float, ...]
    full: tuple[float, ...]
    label: str


@dataclass(frozen=True)
class Variant:
    """One of the things compared: the changes that make it, and how figures call it."""

    name: str
    label: str
    set: Sets


@dataclass(frozen=True)
class Experiment:
    """A scenario run for every variant over a grid of axes, with so many seeds per point.

    Attributes:
        label: In tables that have a row for each experiment.
        samples: Condition on the points whose samples over time are kept, if any are.
        where: Condition on the points that are run at all.
    """

    name: str
    label: str
    scenario: Path
    set: Sets
    variants: tuple[str, ...]
    axes: tuple[str, ...]
    where: Expression | None
    repeat_quick: int
    repeat_full: int
    samples: Expression | None
    samples_ms: float


@dataclass(frozen=True)
class Quantity:
    """A figure claims speak of: a path in the summary, a column of samples, or an expression over other quantities.

    Attributes:
        combine: What is made of all figures that a path with ``*`` fits.
        capacity: What the flows share, in Mbit/s, where ``combine`` asks how fairly they do.
    """

    name: str
    label: str
    path: str | None = None
    combine: str | None = None
    capacity: float | None = None
    table: str | None = None
    column: str | None = None
    select: Mapping[str, str] = field(default_factory=dict)
    expression: Expression | None = None


@dataclass(frozen=True)
class Open:
    """A parameter the source leaves open: what we chose, why, and what else would have been plausible.

    Attributes:
        low: Smallest plausible value, or ``None`` when ``choices`` lists them.
        integer: Only whole numbers are plausible.
        log: Ranges over orders of magnitude: points are spread evenly over the logarithm.
        variants: The only variants it is a parameter of, set after the variant's own changes; empty: all, set before.
    """

    name: str
    title: str
    set: Sets
    value: Any
    why: str
    low: float | None
    high: float | None
    choices: tuple[Any, ...]
    integer: bool
    log: bool
    experiments: tuple[str, ...]
    variants: tuple[str, ...]

    def at(self, unit: float) -> Any:
        """The plausible value at ``unit`` (0‥1) of the range."""
        if self.choices:
            return self.choices[min(int(unit * len(self.choices)), len(self.choices) - 1)]
        assert self.low is not None  # noqa: S101 - a parameter has choices or a range
        assert self.high is not None  # noqa: S101 - likewise
        if self.integer:
            if self.log:
                return min(round(self.low * (self.high / self.low) ** unit), int(self.high))
            return min(int(self.low + unit * (self.high - self.low + 1)), int(self.high))
        if self.log:
            return float(self.low * (self.high / self.low) ** unit)
        return self.low + unit * (self.high - self.low)


@dataclass(frozen=True)
class Wrong:
    """A system that is known to be wrong, on which checks must fail.

    Attributes:
        variants: The only variants that checks need of it; empty: all.
        axes: Other values of axes; only of the setting before a correction.
    """

    name: str
    title: str
    replace: Mapping[str, str]
    set: Sets
    experiments: tuple[str, ...]
    variants: tuple[str, ...] = ()
    axes: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Jitter:
    """How starts are spread where nothing else in a scenario is random."""

    set: Sets
    seeds: int


@dataclass(frozen=True)
class Section:
    """Claims and tables that stand apart from the source's own: what of them is whose."""

    name: str
    title: str
    about: str


@dataclass(frozen=True)
class Inconsistency:
    """Why a claim cannot hold: two printed statements exclude each other under every setting that the text allows.

    Attributes:
        statements: The statements as printed.
        argument: Why they exclude each other.
        proof: A check on runs that shows it, with a wrong system on which it must fail; ``None`` with ``excludes``.
        excludes: Claims that hold at no point of the open parameters' ranges at which this one holds.
    """

    statements: tuple[str, ...]
    argument: str
    proof: Claim | None
    excludes: tuple[str, ...]


@dataclass(frozen=True)
class Correction:
    """A reading of the source that was corrected after the first results.

    Attributes:
        date: The day, ISO 8601.
        sentence: What the source says, in its own language.
        translation: The same in English, where that is another.
        why: What was read before, and why the sentence means something else.
        before: The study's setting before the correction; ``None``: only checks changed.
        claims: The claims that ``before`` changes.
    """

    name: str
    date: str
    title: str
    sentence: str
    translation: str
    why: str
    before: Wrong | None
    claims: tuple[str, ...]


@dataclass(frozen=True)
class Earlier:
    """The check of a claim before a correction."""

    correction: str
    check: Claim


@dataclass(frozen=True)
class Claim:
    """One published result and how it is checked.

    Attributes:
        section: The section it stands in; ``None``: it is the source's own.
        measures: Name → expression, in order; a later one may use an earlier one.
        accept: Conditions that must all hold.
        undecided: A difference and a threshold: while the 95 % interval over seeds of the difference holds the
            threshold at some point, a failed check is *inconclusive*, with the number of runs that would settle it.
        control: The wrong system on which the check must fail; ``None`` only with ``invariant``.
        invariant: Why there is no wrong system: the claim is about what does not change.
        full_only: The quick grid cannot judge it.
        inconsistent: Why the source contradicts itself, and what shows it.
        before: The check before a correction, if it was another.
    """

    id: str
    claim: str
    published: str
    accept_if: str
    experiment: str
    measures: Mapping[str, Expression]
    accept: tuple[Expression, ...]
    undecided: Expression | None
    undecided_from: float
    control: str | None
    invariant: str | None
    full_only: bool
    note: str
    why: str
    figures: tuple[str, ...]
    section: str | None = None
    inconsistent: Inconsistency | None = None
    before: Earlier | None = None

    @property
    def checks(self) -> tuple[Claim, ...]:
        """Everything that is judged on runs: the claim, the proof that it cannot hold, and its check of before."""
        proof = self.inconsistent.proof if self.inconsistent else None
        before = self.before.check if self.before else None
        return (self, *(check for check in (proof, before) if check))


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: As JSON and CSV call it.
        value: What stands there, one value for each row or one for all.
        at: Where that is: shown behind it, filled into ``at_form``.
        digits: Decimal places; four significant digits when ``None``.
        percent: A ratio shown as per cent.
        without: Rows of variants for which it says nothing.
        full_only: The quick grid has no points for it.
        interval: With half the 95 % interval over seeds behind it.
        variant: The only variant whose values stand here, in a table with a column for each.
    """

    name: str
    title: str
    value: Expression
    at: Expression | None
    at_form: str
    digits: int | None
    percent: bool
    without: tuple[str, ...]
    full_only: bool
    interval: bool = False
    variant: str | None = None

    def names(self) -> list[str]:
        """What it has in JSON and CSV: the value, where that is, and half its interval."""
        more = {"at": self.at is not None, "ci95": self.interval}
        return [self.name, *(f"{self.name}_{part}" for part, has in more.items() if has)]


@dataclass(frozen=True)
class Table:
    """A table made from the results: a row for each variant, for each value of an axis, or for each experiment.

    Attributes:
        rows: ``"variant"``, ``"experiment"`` or an axis.
        variants: The rows that are variants.
        experiments: The rows that are experiments.
    """

    id: str
    title: str
    section: str | None
    experiment: str
    rows: str
    variants: tuple[str, ...]
    experiments: tuple[str, ...]
    columns: tuple[Column, ...]
    note: str


@dataclass(frozen=True)
class Figure:
    """A figure drawn from the results: expressions against an axis.

    Attributes:
        lines: Label and expression of each line; an expression without a label has a line for each variant.
        x_scale: ``linear`` or ``log``. A logarithmic axis has a 0 apart from the rest.
        y_scale: ``linear`` or ``log``.
        printed: Points that the source prints, by variant or by the label of a line: x and y of each.
    """

    id: str
    title: str
    lines: tuple[tuple[str, Expression], ...]
    x: str
    experiment: str
    variants: tuple[str, ...]
    x_label: str
    y_label: str
    kind: str
    published: str
    x_scale: str = "linear"
    y_scale: str = "linear"
    printed: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Definition:
    """A whole study."""

    directory: Path
    name: str
    title: str
    source: str
    about: str
    setting: Sets
    setting_why: str
    experiments: Mapping[str, Experiment]
    axes: Mapping[str, Axis]
    variants: Mapping[str, Variant]
    quantities: Mapping[str, Quantity]
    corrections: Mapping[str, Correction]
    opens: tuple[Open, ...]
    wrongs: Mapping[str, Wrong]
    jitter: Jitter | None
    robustness_points: int
    robustness_seed: int
    claims: tuple[Claim, ...]
    figures: tuple[Figure, ...]
    sections: Mapping[str, Section]
    tables: tuple[Table, ...]
    texts: Mapping[Path, str]
    values: Mapping[str, Any]
    live: Definition | None = None
    """What of it can run live, as a study of its own: the same claims with the same conditions."""
    is_live: bool = False
    """Whether it is such a part."""

    @property
    def checks(self) -> tuple[Claim, ...]:
        """Everything that is judged on runs: the claims, the proofs that some cannot hold, and checks of before."""
        return tuple(check for claim in self.claims for check in claim.checks)

    @property
    def default_experiment(self) -> str:
        """The experiment meant where none is named: the first."""
        return next(iter(self.experiments))


def fill(template: Any, value: Any) -> Any:
    """``template`` with ``value`` in the place of ``{}``; ``"{}"`` alone keeps the value's type."""
    if template == "{}":
        return value
    if isinstance(template, str):
        shown = f"{value:.12g}" if isinstance(value, float) else str(value)
        return template.replace("{}", shown)
    return template


def as_sets(changes: Mapping[str, Any]) -> list[str]:
    """Changes as the engine takes them: ``PATH=VALUE``."""
    return [f"{path}={toml_text.write_value(value)}" for path, value in changes.items()]
