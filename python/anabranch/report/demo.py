"""The page of ``anabranch demo``: one figure, the claims, and the next commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.extras import WITHOUT_FIGURES
from anabranch.report.claims import verdict_badge
from anabranch.report.page import image, page, table, text

if TYPE_CHECKING:
    from anabranch.study import StudyResult


def front_page(result: StudyResult, figure: bytes | None) -> str:
    """The whole page; the study's own report is beside it in ``study/``. Without matplotlib it has no figure."""
    definition = result.definition
    rows = [
        (
            text(item.claim.id),
            text(item.claim.claim),
            text(item.claim.published),
            text(item.plain.measured),
            verdict_badge(item.verdict),
        )
        for item in result.claims
        if not item.claim.section
    ]
    body = [
        f"<h1>{text(definition.title)}</h1>",
        f"<p class='soft'>{text(definition.source)}</p>",
        f"<p>{_WHAT}</p>",
        f"<p class='hint'>{text(WITHOUT_FIGURES)}</p>"
        if figure is None
        else f"<figure>{image(figure, 'Normalised throughput over the reorder interval')}"
        "<figcaption>Throughput of each TCP over the reorder interval, divided by its own throughput without "
        "reordering. A small interval reorders often, by few places.</figcaption></figure>",
        "<h2>The claims of the paper, and the results of these runs</h2>",
        table(("id", "claim", "published", "measured", "verdict"), rows, left=5, raw=True),
        f"<p class='hint'>{text(f'Quick grid, {result.runs:,} runs.')} On the full grid a verdict may differ, and any "
        "may go against the paper. "
        "<a href='study/report.html'>The study's report</a> has the reasons, "
        f"{'' if figure is None else 'every figure, '}the settings and the controls: "
        "each check is also made on a system known to be wrong, and must fail there.</p>",
        f"<h2>Next</h2><pre>{text(_next())}</pre>",
    ]
    return page("Anabranch: TCP over a path that reorders", "\n".join(body))


_WHAT = (
    "After every RI packets the queue of a 10 Mbit/s bottleneck delays one packet by RI positions. TCP takes the gap "
    "for a loss, retransmits data that was only late, and reduces its congestion window again and again. Cubic+ "
    "returns to slow start if a timer detects losses during a recovery."
)


def next_commands() -> list[tuple[str, str]]:
    """The next commands to type, each with a short description."""
    from anabranch.files.checkout import is_checkout

    command = ".venv/bin/anabranch" if is_checkout() else "anabranch"
    return [
        (f"{command} new first", "a commented scenario"),
        (f"{command} run first/scenario.toml", "run it"),
        (f"{command} explain cubic-plus", "its description and source"),
        (f"{command} study reordering", "the same on the full grid"),
        (f"{command} study", "the other studies"),
    ]


def _next() -> str:
    return "\n".join(f"{command:<46} # {about}" for command, about in next_commands())
