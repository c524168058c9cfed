"""Artefacts, inconsistencies and claims that are not reproduced, each with a picture: ``docs/studies/unknown.md``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache

from matplotlib.figure import Figure
from reference import claims, markdown

from comparison.pages import Comparison
from comparison.unknown import sources
from comparison.unknown.entries import ENTRIES, Made

NAME = "unknown"
FOLDER = "docs/studies"
STUDIES = claims.STUDIES
"""Studies with published claims."""


@cache
def made(name: str) -> Made:
    """The content of an entry."""
    return ENTRIES[name].make()


def table(name: str) -> str:
    """An entry's table."""
    return markdown.table(made(name).head, made(name).rows)


def overview() -> str:
    """Every entry with the verdicts of its claims."""
    rows = []
    for entry in ENTRIES.values():
        verdicts: dict[str, list[str]] = {}
        for claim, part in entry.claims.items():
            verdicts.setdefault(sources.judged(entry.study, claim, part).verdict, []).append(claim)
        judged = "; ".join(f"{', '.join(names)}: {verdict}" for verdict, names in verdicts.items())
        rows.append(
            [f"[{entry.name}](#{entry.name.lower()})", f"[{entry.study}]({entry.study}.md)", judged, entry.missing]
        )
    return markdown.table(["entry", "study", "verdict", "not known, or not printed"], rows)


def part(name: str) -> str:
    """An entry's part of the page: its table, and a hash of the values that only the picture shows."""
    digest = hashlib.sha256(repr(list(made(name).drawn)).encode()).hexdigest()[:16]
    return f"{table(name)}\n<!-- drawn: {digest} -->"


def parts() -> Mapping[str, str]:
    """The generated parts of the page."""
    return {"overview": overview(), **{name: part(name) for name in ENTRIES}}


def figures() -> Iterator[tuple[str, Figure]]:
    """The picture of each entry."""
    for name in ENTRIES:
        yield f"unknown-{name}", made(name).draw()


def comparison() -> Comparison:
    """The page, its tables and its pictures."""
    return Comparison(NAME, parts(), [], figures, folder=FOLDER)
