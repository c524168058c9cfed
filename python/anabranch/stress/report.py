"""Files of a search: a scenario for each find, and one page with a drawing of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from anabranch.report.page import page, table, text
from anabranch.stress.goals import GOALS, Measured
from anabranch.stress.scene import as_last, final_rate, span
from anabranch.stress.scene import text as scenario_text
from anabranch.stress.search import NEIGHBOURS, Find
from anabranch.stress.words import event_words, facts, sentence

if TYPE_CHECKING:
    from anabranch.stress.confirm import Confirmation
    from anabranch.stress.genome import Genome
    from anabranch.stress.judge import Pair

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 760, 200, 46, 26, 12
_BIN_S = 0.25
_COLOURS = ("var(--accent)", "#d55e00")


@dataclass(frozen=True)
class Told:
    """A find with its sentence, and its confirmation in a kernel."""

    name: str
    find: Find
    sentence: str
    confirmation: Confirmation | None


def tell(finds: Sequence[Find], pair: Pair, confirmations: Sequence[Confirmation | None] = ()) -> list[Told]:
    """The finds in the order in which they were made, with a name each."""
    told = []
    for number, (find, confirmation) in enumerate(zip(finds, confirmations or [None] * len(finds), strict=True), 1):
        own, reference = (Measured(**find.case[name]) for name in ("own", "reference"))
        told.append(
            Told(
                f"{number:02}-{find.goal}",
                find,
                sentence(find.goal, find.genome, own, reference, pair),
                confirmation,
            )
        )
    return told


def counted(tellings: Sequence[Told]) -> str:
    """The number of finds, and of those that a kernel withdrew, which are none."""
    withdrawn = sum(told.confirmation is not None and told.confirmation.outcome == "withdrawn" for told in tellings)
    count = len(tellings) - withdrawn
    told = "no find" if not count else f"{count} find{'' if count == 1 else 's'}"
    return f"{told} ({withdrawn} withdrawn)" if withdrawn else told


def run_command(file: str, pair: Pair) -> str:
    """The command that runs a find's scenario, in the folder of the search for controls in Python."""
    sources = dict.fromkeys(control.source for control in (pair.tested, pair.reference) if control.source)
    return " ".join(["anabranch run", file, *(f"--control {source}" for source in sources)])


def scenario_file(told: Told, pair: Pair) -> str:
    """The scenario of a find, which ``anabranch run`` reproduces."""
    goal, genome = GOALS[told.find.goal], told.find.genome
    lines = [told.sentence, f"Goal {goal.name}: {goal.definition}"]
    if goal.even:
        lines.append("To compare: the same load without bursts, as a paced workload of the flow pulses.")
    else:
        sets = " ".join(f"--set '{change}'" for change in as_last(genome, pair.reference))
        lines.append(f"To compare: {run_command(f'{told.name}.toml', pair)} {sets}")
    if any(control.classes and not control.source for control in (pair.tested, pair.reference)):
        lines.append("A control in Python runs from Python: Scenario.from_file(FILE).with_controls(CLASS).run()")
    head = "".join(f"# {line}\n" for line in lines)
    title = f"{pair.tested.label}: {goal.name}"
    return head + scenario_text(genome, pair.tested, pair.reference, whole=goal.whole, title=title)


def html_report(tellings: Sequence[Told], pair: Pair, command: str, evaluations: int) -> str:
    """The page."""
    body = [
        f"<h1>{text(pair.tested.label)} under stress: {counted(tellings)}</h1>",
        f"<p class='soft'>{evaluations:,} candidates, compared with {text(pair.reference.label)}</p>",
        f"<pre class='command'>{text(command)}</pre>",
    ]
    for told in tellings:
        goal, genome = GOALS[told.find.goal], told.find.genome
        body += [
            f"<h2 id='{text(told.name)}'>{text(told.name)}</h2>",
            f"<p><strong>{text(told.sentence)}</strong></p>",
            f"<p class='soft'>{text(goal.definition)} {text(facts(genome, whole=goal.whole))}. "
            f"It holds on {told.find.paths} of {len(NEIGHBOURS)} paths nearby.</p>",
        ]
        if told.confirmation is not None:
            body.append(f"<p>{text(told.confirmation.sentence)}</p>")
        body.append(drawing(genome, told.find.goal, pair))
        rows = [[event.kind, event.place, event_words(event, genome)] for event in genome.events]
        if rows:
            body.append(table(("event", "place", "meaning"), rows, left=3))
        body.append(f"<pre class='command'>{text(run_command(f'{told.name}.toml', pair))}</pre>")
    return page(f"{pair.tested.label} under stress", "\n".join(body))


def drawing(genome: Genome, goal: str, pair: Pair) -> str:
    """Goodput over time of the find and of the run to compare with, and the events, as SVG."""
    series = _goodputs(genome, goal, pair)
    times = span(genome, whole=GOALS[goal].whole)
    end_s, rate = times.end / 1000, final_rate(genome)
    top = 1.1 * max(rate, genome.rate, *(value for _, points in series for _, value in points))

    def x(seconds: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 10) * min(seconds, end_s) / end_s

    def y(mbit_s: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * mbit_s / top

    parts = [
        f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' width='{_WIDTH}' role='img' style='max-width:100%;height:auto' "
        f"font-size='11' fill='currentColor'><title>Goodput over time: {text(goal)}</title>"
    ]
    for event in genome.events:
        last = times.end if event.lasts else event.end
        width = max(1.5, x(last / 1000) - x(event.at / 1000))
        parts.append(
            f"<rect x='{x(event.at / 1000):.1f}' y='{_TOP}' width='{width:.1f}' height='{_HEIGHT - _BOTTOM - _TOP}' "
            f"fill='#d55e00' opacity='0.12'><title>{text(event_words(event, genome))}</title></rect>"
        )
    parts.append(
        f"<line x1='{_LEFT}' x2='{_WIDTH - 10}' y1='{y(rate):.1f}' y2='{y(rate):.1f}' stroke='currentColor' "
        f"opacity='0.35' stroke-dasharray='4 3'/><text x='{_LEFT - 4}' y='{y(rate) + 4:.1f}' text-anchor='end'>"
        f"{rate:.3g}</text><text x='{_LEFT - 4}' y='{y(0):.1f}' text-anchor='end'>0</text>"
        f"<text x='2' y='{_TOP - 2}'>Mbit/s</text>"
    )
    measured = x(times.measured / 1000)
    parts.append(
        f"<line x1='{measured:.1f}' x2='{measured:.1f}' y1='{_TOP}' y2='{y(0):.1f}' stroke='currentColor' "
        f"opacity='0.5'/><text x='{measured + 3:.1f}' y='{_HEIGHT - 4}'>measured from {times.measured / 1000:g} s"
        "</text>"
        f"<text x='{_WIDTH - 10}' y='{_HEIGHT - 4}' text-anchor='end'>{end_s:g} s</text>"
    )
    for number, (label, points) in enumerate(series):
        path = " ".join(f"{x(seconds):.1f},{y(value):.1f}" for seconds, value in points)
        parts.append(f"<polyline points='{path}' fill='none' stroke='{_COLOURS[number]}' stroke-width='1.6'/>")
        parts.append(
            f"<text x='{_LEFT + 60 + 240 * number}' y='{_TOP - 2}' fill='{_COLOURS[number]}'>{text(label)}</text>"
        )
    return f"<figure>{''.join(parts)}</svg></figure>"


_Points = list[tuple[float, float]]


def _goodputs(genome: Genome, goal: str, pair: Pair) -> list[tuple[str, _Points]]:
    from anabranch.scenario import Scenario
    from anabranch.stress.judge import runs

    flow = "neighbour" if goal == "harm" else "main"
    even = GOALS[goal].even
    labels = (pair.tested.label, f"{pair.tested.label}, even load" if even else pair.reference.label)
    if flow == "neighbour":
        labels = (f"{pair.reference.label} beside {labels[0]}", f"{pair.reference.label} beside {labels[1]}")
    series = []
    for label, (document, _, sets, seed) in zip(labels, runs(pair, GOALS[goal], genome), strict=True):
        classes = [kind for _, kind in pair.classes]
        scenario = Scenario.from_text(document).with_sets(*sets).with_controls(*classes)
        samples = scenario.run(seed=seed, digest=False, samples_ms=1000 * _BIN_S).plain("samples")
        rows = [
            (time, octets)
            for time, name, octets in zip(samples["time_s"], samples["flow"], samples["delivered_bytes"], strict=True)
            if name == flow
        ]
        points = [
            (time, 8e-6 * (octets - before) / (time - earlier))
            for (earlier, before), (time, octets) in pairwise(rows)
            if time > earlier
        ]
        series.append((label, points))
    return series
