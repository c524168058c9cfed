"""The claims of a study on a page: verdicts as badges, and each claim beside its figure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from anabranch.report.page import text
from anabranch.result.format import share

if TYPE_CHECKING:
    from anabranch.study import ClaimResult

CLASSES = {
    "reproduced": "reproduced",
    "reproduced (fragile)": "fragile",
    "not reproduced": "not",
    "paper inconsistent": "inconsistent",
    "artefact": "artefact",
    "artefact (fragile)": "fragile",
}
"""The style class of each verdict."""
_MARKS = {"reproduced": "✓", "fragile": "✓", "not": "✗", "inconsistent": "≠", "artefact": "≈", "inconclusive": "?"}
_CODE = re.compile(r"`([^`\n]+)`")


def verdict_badge(word: str) -> str:
    """A verdict with a mark that remains visible to colour-blind readers and in greyscale."""
    css = CLASSES.get(word, "inconclusive")
    return f"<span class='verdict badge {css}'>{_MARKS[css]} {text(word)}</span>"


def control_badge(claim: ClaimResult) -> str:
    """Whether the check fails, as it must, on a system known to be wrong; "" if there is none."""
    if claim.control is None:
        return ""
    if claim.control.holds is True:
        return "<span class='badge not'>✗ wrong system accepted</span>"
    if claim.control.holds is None:
        return "<span class='badge inconclusive'>? wrong system undecided</span>"
    return "<span class='badge reproduced'>✓ wrong system rejected</span>"


def prose(value: str) -> str:
    """Text of a study as HTML; text between backticks is code."""
    return _CODE.sub(r"<code>\1</code>", text(value))


def cards(claims: Sequence[ClaimResult], figures: Mapping[str, str], placed: set[str]) -> str:
    """The claims in their order; consecutive claims of one figure are beside it.

    Args:
        claims: The claims of one section.
        figures: The HTML of each figure by its name.
        placed: Figures that are already on the page; the figures placed here are added.
    """
    parts: list[str] = []
    group: list[str] = []
    beside: list[str] = []

    def close() -> None:
        if group:
            shown = "".join(figures[name] for name in beside)
            side = f"<div class='beside'>{shown}</div>" if shown else ""
            parts.append(
                f"<div class='claims{' with-figure' if shown else ''}'><div>{''.join(group)}</div>{side}</div>"
            )
        group.clear()
        beside.clear()

    for claim in claims:
        own = [name for name in claim.claim.figures if name in figures]
        fresh = [name for name in own if name not in placed]
        if not set(own) & set(beside):
            close()
        beside += fresh
        placed.update(fresh)
        group.append(_card(claim, [name for name in own if name not in beside]))
    close()
    return "".join(parts)


def _card(claim: ClaimResult, elsewhere: Sequence[str]) -> str:
    rows = [
        ("published", text(claim.claim.published)),
        ("measured", text(claim.plain.measured)),
        ("accept if", f"<code>{text(claim.claim.accept_if)}</code>"),
    ]
    if claim.robustness is not None:
        rows.append(("robustness", share(claim.robustness, stale=claim.stale)))
    if claim.jitter is not None:
        rows.append(("start jitter", share(claim.jitter)))
    for one in claim.on_witnesses:
        control = f"; on its wrong system {text(one.control.word)}" if one.control else ""
        held = f"; it holds at {share(one.share)} of the settings" if one.share is not None else ""
        rows.append((f"on {text(one.witness.title)}",
                     f"{text(one.plain.word)}: {text(one.plain.measured)}{control}{held} "
                     f"(<code>{text(one.witness.command)}</code>, {one.witness.date})"))  # fmt: skip
    if elsewhere:
        links = ", ".join(f"<a href='#figure-{text(name)}'>{text(name)}</a>" for name in elsewhere)
        rows.append(("figure", links))
    told = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows if value)
    why = f"<p class='why'>{prose(claim.why)}</p>" if claim.why else ""
    note = f"<p class='soft'>{prose(claim.claim.note)}</p>" if claim.claim.note else ""
    return (
        f"<article class='claim' id='claim-{text(claim.claim.id)}'><h3>{text(claim.claim.id)} "
        f"{verdict_badge(claim.verdict)} {control_badge(claim)}</h3><p>{prose(claim.claim.claim)}</p>"
        f"<dl>{told}</dl>{why}{note}</article>"
    )


def counts(claims: Sequence[ClaimResult]) -> str:
    """How many claims have each verdict, as badges."""
    words = dict.fromkeys(claim.verdict for claim in claims)
    badges = (
        f"<span class='count'>{sum(c.verdict == word for c in claims)} × {verdict_badge(word)}</span>" for word in words
    )
    return f"<p class='counts'>{' '.join(badges)}</p>" if claims else ""
