"""The tables of ``docs/guides/stress.md``: goals, and bounds of paths and events."""

from __future__ import annotations

from anabranch.stress.bounds import KINDS, PATH, Range
from anabranch.stress.goals import GOALS

from reference.markdown import table


def goals() -> str:
    """The goals with their definitions and sources."""
    rows = [[f"`{goal.name}`", goal.definition, goal.source] for goal in GOALS.values()]
    return table(("goal", "a find", "source of the definition"), rows)


def bounds() -> str:
    """The bounds of the path, then those of the events."""
    path = [[bound.name, _range(bound.range, bound.unit), bound.source] for bound in PATH.values()]
    events = [
        [
            f"`{name}`",
            kind.title,
            _range(kind.size, kind.unit) if kind.size.low < kind.size.high else "–",
            _length(kind.length, kind.lasting),
            _range(kind.period, "ms") if kind.period else "–",
            kind.source,
        ]
        for name, kind in KINDS.items()
    ]
    return "\n\n".join(
        [
            table(("path", "range", "source"), path),
            table(("event", "meaning", "size", "length", "period", "source"), events),
        ]
    )


def _range(bound: Range, unit: str) -> str:
    return f"{bound.low:g} to {bound.high:g} {unit}"


def _length(bound: Range | None, lasting: str) -> str:
    length = _range(bound, "ms") if bound is not None else ""
    if lasting == "never":
        return length
    until = "to the end"
    if lasting == "also":
        return f"{length}, or {until}"
    return f"{length}; {until}".removeprefix("; ")


def fill(page: str) -> str:
    """Put the tables into the text of the page."""
    for name, made in (("goals", goals()), ("bounds", bounds())):
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise SystemExit(f"docs/guides/stress.md: expected a part between {begin.strip()} and {end}")
        page = f"{before}{begin}\n{made}\n{end}{after}"
    return page
