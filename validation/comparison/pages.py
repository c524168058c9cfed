"""Pages with generated parts, and their figures."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from anabranch.plot.style import house_style
from matplotlib.figure import Figure
from reference import markdown

from comparison.judging import Verdict
from comparison.oracle import ROOT

FOLDER = "docs/validation"

Figures = Callable[[], Iterator[tuple[str, Figure]]]


@dataclass(frozen=True)
class Comparison:
    """The comparison of one file of figures with ours.

    Attributes:
        name: Name of the page, without its ending.
        parts: The page's generated parts, by name.
        verdicts: The judged conditions.
        figures: Draws the figures, each with its name.
        surprises: Deviations from the page's explanation.
        folder: The page's folder.
    """

    name: str
    parts: Mapping[str, str]
    verdicts: Sequence[Verdict]
    figures: Figures
    surprises: Sequence[str] = field(default=())
    folder: str = FOLDER

    @property
    def page(self) -> str:
        """The page's path in the checkout."""
        return f"{self.folder}/{self.name}.md"


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """Return the table of verdicts at the beginning of a page."""
    return markdown.table(["condition", "found", "verdict"], ([v.condition, v.found, v.word] for v in verdicts))


def fill(page: str, parts: Mapping[str, str], name: str) -> str:
    """Put the generated parts into the text of a page; ``name`` is for messages."""
    for part, text in parts.items():
        begin, end = f"<!-- begin {part} -->\n", f"<!-- end {part} -->"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise SystemExit(f"{name}: expected a part between {begin.strip()} and {end}")
        page = f"{before}{begin}\n{text}\n{end}{after}"
    return page


def shown(page: str, part: str) -> list[str]:
    """The lines of a generated part of a page, given by its path in the checkout."""
    text = (ROOT / page).read_text("utf-8")
    return text.partition(f"<!-- begin {part} -->")[2].partition(f"<!-- end {part} -->")[0].strip().splitlines()


def cells(page: str, part: str) -> list[list[str]]:
    """The cells of a generated table of a page: its head, the line below, its rows."""
    return [line[2:-2].split(" | ") for line in shown(page, part)]


def stale(comparison: Comparison) -> list[str]:
    """Return the files of a comparison that are not up to date.

    A figure carries a hash of the data from which it was drawn, and the hashes are compared:
    machines may round the numbers of a curve differently.
    """
    page = ROOT / comparison.page
    current = page.read_text("utf-8")
    outdated = [] if fill(current, comparison.parts, comparison.page) == current else [comparison.page]
    for name, _ in comparison.figures():
        kept = page.with_name(f"{name}.svg")
        if not kept.is_file() or _mark(comparison) not in kept.read_text("utf-8"):
            outdated.append(f"{comparison.folder}/{kept.name}")
    return outdated


def write(comparison: Comparison) -> None:
    """Bring the page and its figures up to date."""
    page = ROOT / comparison.page
    text = fill(page.read_text("utf-8"), comparison.parts, comparison.page)
    aside = page.with_name(page.name + ".new")
    aside.write_text(text, "utf-8")
    aside.replace(page)
    with house_style():
        for name, figure in comparison.figures():
            metadata = {"Date": None, "Creator": "anabranch", "Description": _mark(comparison)}
            figure.savefig(page.with_name(f"{name}.svg"), format="svg", metadata=metadata)


def _mark(comparison: Comparison) -> str:
    digest = hashlib.sha256("\n".join(comparison.parts.values()).encode())
    return f"data {digest.hexdigest()[:16]}"
