"""Sentences of an evaluation, common to the terminal, the page and the Markdown summary."""

from __future__ import annotations

from anabranch.evaluate import judge
from anabranch.evaluate.evaluation import OWN, CaseResult, CheckResult, Evaluation, ItemResult
from anabranch.evaluate.judge import Limit, interval_of, shown


def title(result: Evaluation) -> str:
    """The heading."""
    return f"Evaluation of {result.subject.name}"


def facts(result: Evaluation) -> str:
    """The setting in one line."""
    options = result.options
    engine = "the simulator" if options.engine == "sim" else "Linux kernels in virtual time"
    size = "the quick set of scenarios" if options.is_quick else "the full set of scenarios"
    seeds = f"seeds {options.seeds.start} to {options.seeds.stop - 1}"
    beside = f"; beside {', '.join(options.against)}" if result.subject.role == "control" else ""
    return f"{result.runs:,} runs in {engine}: {size}, {seeds}{beside}"


def tally(result: Evaluation) -> str:
    """The number of items with each verdict."""
    return ", ".join(f"{result.counts[verdict]} {verdict}" for verdict in judge.VERDICTS if result.counts[verdict])


def of_item(one: ItemResult, most: int = 3) -> str:
    """The reason of an item's verdict, by ``most`` of the checks that decide it."""
    if not one.checks:
        return f"Not evaluated, because {one.item.why_not}."
    deciding = [check for check in one.checks if check.verdict == one.verdict]
    if one.verdict == judge.MET:
        told = "; ".join(lower(check.check.title) for check in one.checks)
        said = f"{sentence(told)}."
    else:
        said = " ".join(f"{check.check.title}: {of_check(check)}" for check in deciding[:most])
        if len(deciding) > most:
            said += f" And {len(deciding) - most} more."
    return f"{said} Left out: {one.item.why_not}." if one.item.why_not else said


def of_check(one: CheckResult) -> str:
    """The reason of a check's verdict: the case that decides it."""
    found = one.worst
    if found is None:
        return "no scenario of this set was run."
    count = sum(case.judgement.verdict == one.verdict for case in one.cases)
    told = f"{count} of {len(one.cases)} scenarios {one.verdict}; " if len(one.cases) > 1 else ""
    return f"{told}{found.name}: {of_case(found)}."


def of_case(one: CaseResult) -> str:
    """The figures of a case."""
    judgement, rule = one.judgement, one.case.rule
    has_figures = judgement.interval is not None and (isinstance(rule, Limit) or judgement.differences)
    if judgement.verdict in (judge.BROKEN, judge.NOT_EVALUATED) or not has_figures:
        return judgement.why
    measure = one.case.measure
    found = []
    for name, values in one.values.items():
        interval = interval_of(values)
        if interval is not None:
            told = shown(interval.mean, measure.unit)
            found.append(told if name == OWN else f"{name} {told}")
    if isinstance(rule, Limit):
        found.append(f"{'at most' if rule.is_most else 'at least'} {shown(rule.value, measure.unit)}")
        own = judge.known(one.values[OWN]).values()
        beyond = sum(value > rule.value if rule.is_most else value < rule.value for value in own)
        if beyond:
            found.append(f"which {beyond} of {len(own)} runs break")
    return f"{measure.name} {', '.join(found)}"


def sentence(text: str) -> str:
    """A text with a capital."""
    return text[:1].upper() + text[1:]


def lower(text: str) -> str:
    """A title inside a sentence; abbreviations keep their capitals."""
    first = text.split(" ", maxsplit=1)[0]
    return text if first[1:] != first[1:].lower() else text[:1].lower() + text[1:]


def slug(verdict: str) -> str:
    """A verdict as the name of a class."""
    return verdict.replace(" ", "-")
