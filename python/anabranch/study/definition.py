"""A study: the parsed, checked form of its ``study.toml``.

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
        name: The name in expressions.
        set: Path → template; ``"{}"`` alone passes the number, text around it makes a quantity (``"{} ms"``).
        quick: Values of the quick grid.
        full: Values of the full grid.
        label: The label in figures.
    """

    name: str
    set: Sets
    quick: tuple[float, ...]
    full: tuple[float, ...]
    label: str


@dataclass(frozen=True)
class Variant:
    """A compared alternative: the changes that define it, and its label in figures."""

    name: str
    label: str
    set: Sets


@dataclass(frozen=True)
class Experiment:
    """A scenario run for every variant over a grid of axes, with a number of seeds per point.

    Attributes:
        label: The label in tables that have a row for each experiment.
        samples: Condition on the points whose samples over time are stored, if any.
        where: Condition on the points that are run.
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
    """A figure used in claims: a path in the summary, a column of samples, or an expression over other quantities.

    Attributes:
        combine: How all figures that match a path with ``*`` are combined.
        capacity: The capacity that the flows share, in Mbit/s, if ``combine`` is a measure of fairness.
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
    """A parameter that the source leaves open: our value, the reason for it, and plausible alternatives.

    Attributes:
        low: Smallest plausible value, or ``None`` if ``choices`` lists the values.
        integer: Only whole numbers are plausible.
        log: The range covers orders of magnitude: points are spread evenly over the logarithm.
        variants: The only variants with the parameter, which is set after the variant's own changes; empty: all
            variants, and it is set before.
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
    """A system known to be wrong, on which checks must fail.

    Attributes:
        variants: The only variants that checks need on it; empty: all.
        axes: Other values of axes; only for the setting before a correction.
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
    """Random spread of start times, for scenarios without other randomness."""

    set: Sets
    seeds: int


@dataclass(frozen=True)
class Section:
    """Claims and tables that are not the source's own, with their origin."""

    name: str
    title: str
    about: str


@dataclass(frozen=True)
class RobustnessGrid:
    """The grid on which the robustness of one claim is judged, if the quick grid cannot judge the claim.

    Attributes:
        axes: Axis → values in place of those of the quick grid.
        repeat: Seeds per point in place of those of the quick grid; ``None``: the same.
    """

    axes: Mapping[str, tuple[float, ...]]
    repeat: int | None


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
class WitnessRun:
    """One run of a witness.

    Attributes:
        wrong: The wrong system on which it was made; ``None``: as the study's own runs.
        numbers: Axis, open parameter, ``seed`` or quantity → value; ``None``: the run has none.
    """

    experiment: str
    variant: str
    wrong: str | None
    numbers: Mapping[str, float | None]


@dataclass(frozen=True)
class Witness:
    """Stored runs of another implementation.

    Attributes:
        about: What runs where the study's own runs have a scenario.
        command: The command that makes the runs.
        date: The day on which it did, ISO 8601.
        claims: The claims that are judged on it.
    """

    name: str
    title: str
    about: str
    command: str
    date: str
    claims: tuple[str, ...]
    runs: tuple[WitnessRun, ...]


@dataclass(frozen=True)
class Artefact:
    """Why a claim holds only in one implementation, with the witness that shows it."""

    witness: str
    argument: str


@dataclass(frozen=True)
class Correction:
    """A reading of the source that was corrected after the first results.

    Attributes:
        date: The day, ISO 8601.
        sentence: The sentence of the source, in its language.
        translation: The same in English, if the language is another.
        why: The earlier reading, and why the sentence means something else.
        before: The study's setting before the correction; ``None`` if only checks changed.
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
    """One published result and its check.

    Attributes:
        section: The claim's section; ``None`` if it is the source's own.
        measures: Name → expression, in order; a later one may use an earlier one.
        accept: Conditions that must all hold.
        undecided: A difference and a threshold: if the 95 % interval over seeds of the difference contains the
            threshold at some point, a failed check is *inconclusive*, with the number of runs that would settle it.
        control: The wrong system on which the check must fail; ``None`` only with ``invariant``.
        invariant: Why there is no wrong system: the claim is about something that does not change.
        full_only: The quick grid cannot judge it.
        inconsistent: Why the source contradicts itself, with the proof.
        artefact: Why the claim holds only in the source's implementation, with the witness.
        before: The check before a correction, if it was different.
        robustness: The grid on which its robustness is judged; ``None``: the quick grid.
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
    artefact: Artefact | None = None
    before: Earlier | None = None
    robustness: RobustnessGrid | None = None

    @property
    def checks(self) -> tuple[Claim, ...]:
        """All checks that are judged on runs: the claim, the proof that it cannot hold, and its earlier check."""
        proof = self.inconsistent.proof if self.inconsistent else None
        before = self.before.check if self.before else None
        return (self, *(check for check in (proof, before) if check))


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: The name in JSON and CSV.
        value: The content, one value for each row or one for all.
        at: The position of the value: appended to it, filled into ``at_form``.
        digits: Decimal places; four significant digits if ``None``.
        percent: A ratio shown as per cent.
        without: Variants whose rows leave the column empty.
        full_only: The quick grid has no points for it.
        interval: Append half of the 95 % interval over seeds.
        variant: The only variant whose values the column has, in a table with a column for each variant.
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
        """Its names in JSON and CSV: the value, its position, and half its interval."""
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
    """A figure drawn from the results: expressions over an axis.

    Attributes:
        lines: Label and expression of each line; an expression without a label has a line for each variant.
        x_scale: ``linear`` or ``log``. A logarithmic axis shows 0 apart from the other values.
        y_scale: ``linear`` or ``log``.
        printed: Points printed in the source, by variant or by the label of a line: x and y of each.
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
    witnesses: Mapping[str, Witness]
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
    """The part that can run live, as a separate study: the same claims with the same conditions."""
    kernel: Definition | None = None
    """Of such a part: what differs in kernels in virtual time."""
    is_live: bool = False
    """Whether it is such a part."""

    @property
    def checks(self) -> tuple[Claim, ...]:
        """All checks that are judged on runs: the claims, the proofs that some cannot hold, and earlier checks."""
        return tuple(check for claim in self.claims for check in claim.checks)

    @property
    def default_experiment(self) -> str:
        """The experiment used if none is named: the first."""
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
    """Changes in the engine's form: ``PATH=VALUE``."""
    return [f"{path}={toml_text.write_value(value)}" for path, value in changes.items()]
