"""Pages with generated parts, and their figures."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anabranch.plot.style import house_style
from matplotlib.figure import Figure

from comparison.judging import Verdict
from comparison.oracle import ROOT
from reference import markdown

FOLDER = "docs/validation"

Figures = Callable[[], Iterator[tuple[str, Figure]]]


@dataclass(frozen=True)
class Comparison:
    """One file of figures beside ours.

    Attributes:
        name: Name of the page, without its ending.
        parts: The page's generated parts, by name.
        verdicts: What was judged.
        figures: Draws the figures, each with its name.
        surprises: What is not as the page explains it.
    """

    name: str
    parts: Mapping[str, str]
    verdicts: Sequence[Verdict]
    figures: Figures
    surprises: Sequence[str] = field(default=())

    @property
    def page(self) -> str:
        """The page's path in the checkout."""
        return f"{FOLDER}/{self.name}.md"


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """Return the table of verdicts that a page begins with."""
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


def stale(comparison: Comparison) -> list[str]:
    """Return the files of a comparison that are not up to date."""
    page = ROOT / comparison.page
    current = page.read_text("utf-8")
    outdated = [] if fill(current, comparison.parts, comparison.page) == current else [comparison.page]
    with tempfile.TemporaryDirectory() as folder:
        for drawn in draw(comparison, Path(folder)):
            kept = page.with_name(drawn.name)
            if not kept.is_file() or kept.read_bytes() != drawn.read_bytes():
                outdated.append(f"{FOLDER}/{drawn.name}")
    return outdated


def write(comparison: Comparison) -> None:
    """Bring the page and its figures up to date."""
    page = ROOT / comparison.page
    text = fill(page.read_text("utf-8"), comparison.parts, comparison.page)
    aside = page.with_name(page.name + ".new")
    aside.write_text(text, "utf-8")
    aside.replace(page)
    draw(comparison, page.parent)


def draw(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the figures, each as one vector file."""
    paths = []
    with house_style():
        for name, figure in comparison.figures():
            path = folder / f"{name}.svg"
            figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "anabranch"})
            paths.append(path)
    return paths
