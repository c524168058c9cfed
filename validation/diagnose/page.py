"""The page of planted causes: bars, and the confusion matrix of each engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from diagnose.judging import BLAME, Bar, Tally

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation" / "diagnosis.md"


def generated(tally: Tally, bars: list[Bar], first: int, seeds: int) -> str:
    """The generated part for one engine."""
    lines = [f"Seeds {first} to {first + seeds - 1}, drawn when the program started.", ""]
    lines += ["| figure | found | bar | verdict |", "| --- | --- | --- | --- |"]
    for bar in bars:
        word = "at least" if bar.is_least else "at most"
        lines.append(
            f"| {bar.name} | {bar.figure:.4f} | {word} {bar.bar:g} | {'met' if bar.is_met else '**missed**'} |"
        )
    lines += [
        "",
        "| planted | diagnoses | named | wrong cause | time right (least) | "
        "pauses right / undecided / wrong | findings |",
    ]
    lines += ["| --- | --- | --- | --- | --- | --- | --- |", *_rows(tally)]
    return "\n".join(lines)


def _rows(tally: Tally) -> Iterator[str]:
    for row, runs in tally.runs.items():
        cells = ", ".join(f"`{name}` {tally.cells[row, name] / runs:.0%}" for name in BLAME if tally.cells[row, name])
        times = tally.time.get(row)
        time = f"{sum(times) / len(times):.1%} ({min(times):.1%})" if times else "–"
        stalls = " / ".join(str(tally.stalls[row, verdict]) for verdict in ("right", "undecided", "wrong"))
        named = f"{tally.named[row] / runs:.1%}" if tally.causes[row].named_by else "–"
        yield f"| {row} | {runs} | {named} | {tally.wrongly[row] / runs:.1%} | {time} | {stalls} | {cells or '–'} |"


def write(part: str, text: str) -> None:
    """Put a part into the page.

    Raises:
        SystemExit: The page has no markers for it.
    """
    page = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- begin {part} -->\n", f"<!-- end {part} -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"error: docs/validation/diagnosis.md: expected a part between {begin.strip()} and {end}")
    PAGE.write_text(f"{before}{begin}\n{text}\n\n{end}{after}", encoding="utf-8")
