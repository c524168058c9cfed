"""The page of artefacts, inconsistencies and claims that are not reproduced matches the studies."""

from __future__ import annotations

import subprocess
import sys

import pytest

from comparison import every, pages, unknown
from comparison.oracle import ROOT
from comparison.unknown import STUDIES, sources
from comparison.unknown.entries import ENTRIES

PAGE = "docs/studies/unknown.md"
STORED = ("L3", "L6", "L7", "L1-L5", "F7", "M1", "C8")
"""Entries that need no runs."""


def test_each_artefact_inconsistency_and_failed_claim_has_an_entry() -> None:
    covered = {(entry.study, claim) for entry in ENTRIES.values() for claim in entry.claims}
    missing = [
        (study, row[0], row[4])
        for study in STUDIES
        for row in pages.cells(sources.page(study), "results")[2:]
        if row[4].startswith(("artefact", "paper inconsistent", "not reproduced")) and (study, row[0]) not in covered
    ]
    assert not missing


def test_the_verdicts_are_those_of_the_studies() -> None:
    assert pages.shown(PAGE, "overview") == unknown.overview().splitlines(), "run validation/compare.py --write unknown"


@pytest.mark.parametrize("name", STORED)
def test_an_entry_is_up_to_date(name: str) -> None:
    assert pages.shown(PAGE, name) == unknown.part(name).splitlines(), "run validation/compare.py --write unknown"


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_has_text_picture_and_command(name: str) -> None:
    text = (ROOT / PAGE).read_text("utf-8").partition(f"{{ #{name.lower()} }}\n")[2].partition("\n## ")[0]
    assert f"](unknown-{name}.svg)" in text
    assert f"python validation/unknown.py {name} --out DIR" in text
    assert all(f"**{word}" in text for word in ("The paper**", "Why:**")), text


@pytest.mark.long
def test_all_is_up_to_date() -> None:
    assert pages.stale(every.comparison("unknown")) == [], "run validation/compare.py --write unknown"


def test_an_unknown_entry_is_an_error_with_the_nearest_name() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "validation/unknown.py", "L33"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert 'there is no entry "L33"; did you mean "L3"?' in done.stderr
