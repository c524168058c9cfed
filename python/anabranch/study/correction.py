"""Corrections of a reading: the sentence of the source, the earlier reading, and each claim's results before and since.

If the study's setting was different before, that takes separate runs and is judged on the full grid only. If the
claim's check was different, it is judged on the same runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypedDict

from anabranch.errors import nearest
from anabranch.study.definition import Claim, Correction, Wrong
from anabranch.study.document import Node
from anabranch.study.verdict import ClaimResult, Judgement

KEYS = ("date", "title", "sentence", "translation", "why", "claims", "before")


def read(name: str, node: Node, system: Callable[[str, Node], Wrong]) -> Correction:
    """Read ``[correction.NAME]``; ``system`` reads the keys that it shares with a wrong system.

    Raises:
        UserError: The table is wrong; the message has file, line and column.
    """
    node.reject_unknown(KEYS)
    before = node.child("before")
    if (before is None) != ("claims" not in node):
        raise node.error(
            "before and claims belong together: the study's setting before, and the claims that it changes",
            "claims" if before is None else "before",
        )
    if before is not None:
        before = Node(before.document, before.path, {"title": node.text("title"), **before.value})
    return Correction(
        name=name,
        date=node.day("date", "the day of the correction"),
        title=node.text("title"),
        sentence=node.text("sentence"),
        translation=node.text("translation", ""),
        why=node.text("why"),
        before=None if before is None else system(name, before),
        claims=tuple(node.texts("claims") or ()),
    )


def check(node: Node, corrections: Mapping[str, Correction], claims: Iterable[Claim]) -> None:
    """Reject a correction of a claim that does not exist, and a correction that no claim refers to.

    Raises:
        UserError: There is such a correction.
    """
    checks = {claim.id: claim.before.correction for claim in claims if claim.before}
    known = {claim.id for claim in claims}
    for name, correction in corrections.items():
        for i, claim in enumerate(correction.claims):
            if claim not in known:
                raise node.error(
                    f'there is no claim "{claim}"', "correction", name, "claims", i, hint=nearest(claim, known)
                )
        if correction.before is None and name not in checks.values():
            raise node.error(
                "nothing was different before: it needs claims and before, or a [claim.before] that names it",
                "correction",
                name,
            )


@dataclass(frozen=True)
class Corrected:
    """A claim before a correction and since.

    Attributes:
        accept_if: The acceptance condition before, if it was different.
        before: The result of the check in the earlier setting, or of the earlier check in the study's own setting.
        since: The claim in its current form.
    """

    since: ClaimResult
    before: Judgement
    accept_if: str = ""


class JudgementJson(TypedDict):
    """A verdict and its figures."""

    verdict: str
    measured: str


class CorrectedJson(TypedDict):
    """A claim before and since a correction."""

    id: str
    before: JudgementJson
    since: JudgementJson


class CorrectionJson(TypedDict):
    """One correction in the JSON of ``anabranch study``."""

    date: str
    title: str
    sentence: str
    translation: str
    why: str
    claims: list[CorrectedJson]


@dataclass(frozen=True)
class CorrectionResult:
    """A correction and the claims that it changes; empty if the grid cannot judge the earlier setting."""

    correction: Correction
    claims: tuple[Corrected, ...]

    def to_json(self) -> CorrectionJson:
        """Its part of the document of ``anabranch study --json``."""
        return {
            "date": self.correction.date,
            "title": self.correction.title,
            "sentence": self.correction.sentence,
            "translation": self.correction.translation,
            "why": self.correction.why,
            "claims": [
                {
                    "id": one.since.claim.id,
                    "before": {"verdict": one.before.word, "measured": one.before.measured},
                    "since": {"verdict": one.since.verdict, "measured": one.since.plain.measured},
                }
                for one in self.claims
            ],
        }

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Claim, verdict and figures before, verdict and figures since."""
        rows = []
        for one in self.claims:
            before = f"{one.before.measured} (accepted if: {one.accept_if})" if one.accept_if else one.before.measured
            rows.append((one.since.claim.id, one.before.word, before, one.since.verdict, one.since.plain.measured))
        return rows


HEADINGS = ("claim", "verdict before", "measured before", "verdict", "measured")
"""Headings of :meth:`CorrectionResult.rows`."""
