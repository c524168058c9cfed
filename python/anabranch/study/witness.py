"""Witnesses: claims judged on stored runs of another implementation, and the verdict *artefact*.

A witness is a file of runs of another simulator or of another kernel, with the command that makes it. A claim that
fails in the study's own runs and holds on a witness is an artefact of that implementation: the source's figures
describe the implementation and not the method. Like every check, the check on a witness must fail on the claim's wrong
system.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from anabranch.errors import UserError, nearest
from anabranch.result.format import share
from anabranch.scenario import read_text
from anabranch.study.definition import Artefact, Claim, Definition, Experiment, Quantity, Witness, WitnessRun
from anabranch.study.document import Node
from anabranch.study.series import Cell, Key, NoValueError, Series
from anabranch.study.verdict import Checked, judge

if TYPE_CHECKING:
    from pathlib import Path

_KEYS = ("title", "about", "runs", "command", "date", "claims")
_FIXED = ("experiment", "variant", "seed", "wrong")


@dataclass(frozen=True)
class Names:
    """The valid names in a witness's file."""

    experiments: Mapping[str, Experiment]
    axes: Collection[str]
    quantities: Collection[str]
    wrongs: Collection[str]
    opens: Collection[str]
    claims: Collection[str]


def read(name: str, node: Node, directory: Path, names: Names) -> Witness:
    """Read ``[witness.NAME]`` and the file of its runs.

    Raises:
        UserError: The table or the file is wrong; the message has file, line and column.
    """
    node.reject_unknown(_KEYS)
    claims = node.texts("claims", names.claims, "claim")
    if not claims:
        raise node.error('"claims" is missing: which claims are judged on this witness')
    try:
        text = read_text(directory / node.text("runs"), "a witness's runs (CSV)")
    except UserError as error:
        raise node.error(error.message, "runs", hint=f"made by: {node.text('command')}") from None
    return Witness(
        name=name,
        title=node.text("title"),
        about=node.text("about"),
        command=node.text("command"),
        date=node.day("date", "the day of the runs"),
        claims=tuple(claims),
        runs=tuple(_runs(text, str(directory / node.text("runs")), names)),
    )


def read_artefact(node: Node, witnesses: Collection[str]) -> Artefact:
    """Read ``[claim.artefact]``.

    Raises:
        UserError: The table is wrong; the message has file, line and column.
    """
    node.reject_unknown(["witness", "argument"])
    name = node.text("witness")
    if name not in witnesses:
        hint = nearest(name, witnesses) if witnesses else "a witness is declared as [witness.NAME]"
        raise node.error(f'there is no witness "{name}"', "witness", hint=hint)
    return Artefact(name, node.text("argument"))


def _runs(text: str, file: str, names: Names) -> list[WitnessRun]:
    lines = csv.reader(text.splitlines())
    head = next(lines, [])
    valid = [*_FIXED, *names.axes, *names.opens, *names.quantities]

    def wrong(line: int, message: str, hint: str | None = None) -> UserError:
        return UserError(message, file=file, line=line, hint=hint)

    for i, column in enumerate(head):
        if column not in valid:
            raise wrong(1, f'"{column}" is no axis, open parameter or quantity', nearest(column, valid))
        if column in head[:i]:
            raise wrong(1, f'a second column "{column}"')
    for column in ("experiment", "variant"):
        if column not in head:
            raise wrong(1, f'the column "{column}" is missing')
    runs: list[WitnessRun] = []
    for cells in lines:
        line = lines.line_num
        if len(cells) != len(head):
            raise wrong(line, f"{len(cells)} cells; the head has {len(head)}")
        row = dict(zip(head, cells, strict=True))
        for column, known in (("experiment", names.experiments), ("wrong", names.wrongs)):
            if row.get(column) and row[column] not in known:
                what = "experiment" if column == "experiment" else "wrong system"
                raise wrong(line, f'"{row[column]}" is no {what}', nearest(row[column], known))
        if row["experiment"] not in names.experiments:
            raise wrong(line, "the experiment is missing", nearest("", names.experiments))
        experiment = names.experiments[row["experiment"]]
        if row["variant"] not in experiment.variants:
            hint = nearest(row["variant"], experiment.variants)
            raise wrong(line, f'"{row["variant"]}" is no variant of {experiment.name}', hint)
        if missing := [axis for axis in experiment.axes if not row.get(axis)]:
            raise wrong(line, f"a value of {missing[0]} is missing, an axis of {experiment.name}")
        numbers: dict[str, float | None] = {}
        for column in head:
            if column in ("experiment", "variant", "wrong"):
                continue
            try:
                numbers[column] = float(row[column]) if row[column] else None
            except ValueError:
                raise wrong(line, f'{column}: "{row[column]}" is no number') from None
        runs.append(
            WitnessRun(
                experiment=row["experiment"],
                variant=row["variant"],
                wrong=row.get("wrong") or None,
                numbers=numbers,
            )
        )
    if not runs:
        raise wrong(1, "there are no runs")
    return runs


@dataclass(frozen=True)
class _Source:
    """The runs of a witness as the source of quantities in expressions."""

    definition: Definition
    runs: Sequence[WitnessRun]

    def quantity(self, name: str, experiment: str | None) -> Series:
        quantity: Quantity = self.definition.quantities[name]
        chosen = experiment or self.definition.default_experiment
        if quantity.expression is not None:
            value = quantity.expression.evaluate(self, {}, chosen)
            return value if isinstance(value, Series) else Series((), {(): value})
        axes = self.definition.experiments[chosen].axes
        cells: dict[Key, Cell] = {}
        for run in self.runs:
            if run.experiment == chosen and name in run.numbers:
                point = tuple(run.numbers.get(axis) for axis in axes)
                key: Key = (run.variant, *point, run.numbers.get("seed") or 1)
                cells[key] = run.numbers[name]
        if not cells:
            raise NoValueError(f"the witness has no {name} in the experiment {chosen}")
        return Series(("variant", *axes, "seed"), cells)

    def axis(self, name: str, experiment: str | None) -> Series:
        chosen = experiment or self.definition.default_experiment
        values = {run.numbers[name] for run in self.runs if run.experiment == chosen and name in run.numbers}
        if not values:
            raise NoValueError(f"the witness has no axis {name}")
        return Series((name,), {(value,): value for value in values})


HEADINGS = ("claim", "witness", "measured there", "verdict there", "on its wrong system", "settings")
"""Of the table of all results on witnesses."""


@dataclass(frozen=True, kw_only=True)
class WitnessResult(Checked):
    """A claim judged on a witness.

    Attributes:
        share: The share of the open parameters' points at which the claim holds, of those with all runs that it needs;
            ``None`` with one point.
    """

    witness: Witness
    share: float | None = None

    def row(self, claim: str) -> tuple[str, ...]:
        """The cells below :data:`HEADINGS`."""
        control = self.control.word if self.control else "none"
        return (claim, self.witness.title, self.plain.measured, self.plain.word, control, share(self.share))

    def to_json(self) -> WitnessResultJson:
        """The document of a claim on a witness."""
        return {
            "witness": self.witness.title,
            "command": self.witness.command,
            "date": self.witness.date,
            "measured": self.plain.measured,
            "verdict": self.plain.word,
            "control": self.control.word if self.control else None,
            "share": self.share,
        }


class WitnessResultJson(TypedDict):
    """A claim on a witness in the JSON of ``anabranch study``. ``share`` is a ratio of settings."""

    witness: str
    command: str
    date: str
    measured: str
    verdict: str
    control: str | None
    share: float | None


def explained(witness: Witness) -> str:
    """What a witness is, with its command and the day of its runs."""
    return f"{witness.title}: {witness.about} Stored runs: `{witness.command}`, {witness.date}."


def judge_on_witnesses(definition: Definition, claim: Claim) -> list[WitnessResult]:
    """Judge a claim on every witness that names it."""
    return [_on_witness(definition, claim, w) for w in definition.witnesses.values() if claim.id in w.claims]


def _on_witness(definition: Definition, claim: Claim, witness: Witness) -> WitnessResult:
    own = {parameter.name: parameter.value for parameter in definition.opens}
    points: dict[tuple[float | None, ...], list[WitnessRun]] = {}
    for run in witness.runs:
        place = tuple(_differs(run, name, value) for name, value in own.items())
        points.setdefault(place, []).append(run)
    here = (None,) * len(own)
    judged = [
        judge(claim, _Source(definition, [run for run in runs if run.wrong is None])).holds for runs in points.values()
    ]
    held = [holds for holds in judged if holds is not None]
    runs = points.get(here, [])
    plain = judge(claim, _Source(definition, [run for run in runs if run.wrong is None]))
    control = None
    if claim.control is not None:
        control = judge(claim, _Source(definition, _wrong(definition, claim.control, runs)))
    ratio = sum(held) / len(held) if len(held) > 1 else None
    return WitnessResult(witness=witness, plain=plain, control=control, share=ratio)


def _differs(run: WitnessRun, name: str, value: object) -> float | None:
    """The value of an open parameter in a run if it is not the study's own."""
    found = run.numbers.get(name)
    return None if found is None or found == value else found


def _wrong(definition: Definition, name: str, runs: Sequence[WitnessRun]) -> list[WitnessRun]:
    """The runs on a wrong system: the ones made on it, or the replaced variants' if it only replaces variants."""
    made = [run for run in runs if run.wrong == name]
    system = definition.wrongs[name]
    if made or system.set:
        # What the wrong system does not change is as in the study's own setting.
        others = [run for run in runs if run.wrong is None and run.experiment not in system.experiments]
        return [*made, *others]
    plain = [run for run in runs if run.wrong is None]
    return [
        WitnessRun(other.experiment, run.variant, name, other.numbers)
        for run in plain
        for other in plain
        if other.experiment == run.experiment
        and other.variant == system.replace.get(run.variant, run.variant)
        and all(other.numbers.get(axis) == run.numbers.get(axis) for axis in (*definition.axes, "seed"))
    ]
