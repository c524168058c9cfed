"""The reordering study's path in ns-3: ``docs/validation/ns3-reordering.md``.

Runs and criteria come from the study: ``studies/reordering/compare_ns3.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from matplotlib.figure import Figure
from reference import markdown

from comparison import drawing, scripts
from comparison.judging import Verdict
from comparison.oracle import spec
from comparison.pages import Comparison, verdict_table

NAME = "ns3-reordering"

Groups = Mapping[tuple[str, str], Sequence[Any]]

HEAD = ["control", "RI", "ns-3 3.37", "3.44", "here, as 3.37", "as 3.44", "outside by", "timeouts there", "here"]


def study() -> Any:
    """Return the study's script."""
    return scripts.load(spec(NAME)["script"])


@cache
def groups() -> Groups:
    """Rows by setting and congestion control, with ascending intervals."""
    script = study()
    found: Groups = script.groups(script.compare(script.given()))
    return found


def verdicts(found: Groups) -> list[Verdict]:
    """Judge every setting and congestion control."""
    script = study()
    judged = []
    for (setting, control), group in found.items():
        if setting == script.CHAOTIC:
            theirs, ours = script.medians(group)
            condition = f"{setting}, {control}: median over RI within ± {script.CHAOTIC_TOLERANCE}"
            judged.append(
                Verdict(condition, f"{ours:.2f} against {theirs:.2f}", abs(theirs - ours) <= script.CHAOTIC_TOLERANCE)
            )
            timeouts = sum(max(row.our_timeouts.values()) > 0 for row in group)
            judged.append(
                Verdict(f"{setting}, {control}: there are timeouts", f"at {timeouts} of {len(group)} RI", timeouts > 0)
            )
            continue
        compared = [row for row in group if row.interval >= script.FIRST_COMPARED]
        far = script.outside(group)
        condition = f"{setting}, {control}: within the range of the versions ± {script.TOLERANCE}"
        condition += f" from RI {script.FIRST_COMPARED} on"
        judged.append(Verdict(condition, f"{len(compared) - len(far)} of {len(compared)}", not far))
    return judged


def _cells(row: Any) -> list[str]:
    def of(figures: Mapping[str, float], digits: int) -> list[str]:
        return [f"{figures[version]:.{digits}f}" if version in figures else "" for version in ("3.37", "3.44")]

    outside = f"{row.distance:.2f}" if row.distance else ""
    if row.distance > study().TOLERANCE and row.interval >= study().FIRST_COMPARED:
        outside = f"**{outside}**"
    timeouts = (" / ".join(map(str, figures.values())) for figures in (row.their_timeouts, row.our_timeouts))
    return [row.control, str(row.interval), *of(row.theirs, 2), *of(row.ours, 2), outside, *timeouts]


def comparison() -> Comparison:
    """Compare everything."""
    found = groups()
    judged = verdicts(found)
    parts = {"verdict": verdict_table(judged)}
    for setting in dict.fromkeys(setting for setting, _ in found):
        rows = [row for (name, _), group in found.items() if name == setting for row in group]
        parts[setting] = markdown.table(HEAD, map(_cells, rows))
    return Comparison(NAME, parts, judged, lambda: _figures(found))


def _figures(found: Groups) -> Iterator[tuple[str, Figure]]:
    panels = []
    for setting in dict.fromkeys(setting for setting, _ in found):
        curves = []
        for (name, control), group in found.items():
            if name != setting:
                continue
            latest = max(version for row in group for version in row.theirs)
            cc = {"NewReno": "reno", "Cubic": "cubic"}[control]
            there = [(float(row.interval), row.theirs[latest]) for row in group]
            here = [(float(row.interval), row.ours[latest]) for row in group]
            curves.append(drawing.Curves(cc, there, here))
        panels.append(drawing.Over(setting, "Normalised throughput", curves))
    yield NAME, drawing.over_interval(panels, "ns-3")
