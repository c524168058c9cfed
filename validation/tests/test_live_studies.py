"""Kept results of studies with real kernels, and the pages that show them."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from anabranch import Study
from anabranch.study.live import Audit, LiveStudyResult
from anabranch.study.results import Pool

import live_studies

HALF = Path(__file__).parents[2] / "tests" / "live" / "half"
"""A study with a section for live runs."""


def test_the_pages_show_the_kept_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Detects a page that was changed by hand, and a result that has not reached its page."""
    monkeypatch.setattr(sys, "argv", ["live_studies.py", "--check"])
    assert live_studies.main() == 0


HALF_IN_A_KERNEL = """
[live.kernel]
about = "In virtual time."
claims = ["H1", "S1"]

[live.kernel.experiment.runs]
scenario = "path.toml"
axes = ["rate"]
samples = true
"""


@pytest.mark.parametrize("engine", ["live", "kernel"])
def test_a_result_of_a_changed_study_is_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """Detects a check that only compares pages with kept results, and not kept results with the studies."""
    monkeypatch.setattr(live_studies, "ROOT", tmp_path)
    directory = tmp_path / "studies" / "half"
    directory.parent.mkdir()
    shutil.copytree(HALF, directory)
    text = (directory / "study.toml").read_text()
    if engine == "kernel":
        assert live_studies.able(engine) == []
        text += HALF_IN_A_KERNEL
        (directory / "study.toml").write_text(text)
    assert live_studies.able(engine) == ["half"]
    (tmp_path / "docs" / "studies").mkdir(parents=True)
    page = tmp_path / "docs" / "studies" / "half.md"
    page.write_text("Live.\n")
    assert live_studies.shown(engine) == []
    page.write_text(f"<!-- begin {engine} -->\nas it was\n<!-- end {engine} -->\n")
    assert [live_studies.shown(one) for one in ("live", "kernel")] == [
        ["half"] * (engine == one) for one in ("live", "kernel")
    ]
    file = f"studies/half/{engine}.json"
    assert live_studies.gaps("half", engine) == [
        f"docs/studies/half.md shows runs of the engine {engine}, and there is no {file}"
    ]
    document = {
        "study": "half",
        "title": "Half of the rate",
        "about": "In virtual time." if engine == "kernel" else "The kernel's Reno, and Cubic+ by eBPF.",
        "mode": "full",
        "runs": live_studies.runs_of("half", "full", engine),
        "resolved": live_studies.resolved("half", "full", engine),
        "claims": [
            {
                "id": "H1",
                "claim": "Twice the rate, twice the goodput",
                "published": "2",
                "accept_if": "1.7 to 2.1 with either control",
            },
            {
                "id": "S1",
                "claim": "Twice the rate, twice as many packets in the end; the queue follows the window",
                "published": "2",
                "accept_if": "1.7 to 2.1; correlation of the two at least 0.3",
            },
        ],
    }
    live_studies.kept("half", engine).write_text(json.dumps(document))
    assert live_studies.gaps("half", engine) == []
    # As after a change of the stack's profile, which changes no file of the study.
    live_studies.kept("half", engine).write_text(json.dumps(document | {"resolved": "another"}))
    assert live_studies.gaps("half", engine) == [f"{file}: what the simulator ran is not the study's any more"]
    live_studies.kept("half", engine).write_text(json.dumps(document))
    about = "In virtual time." if engine == "kernel" else "by eBPF."
    section = live_studies.ENGINES[engine]
    for old, new, told in [
        ("1.7 to 2.1 with either", "1.8 to 2.0 with either", ["claim H1 is not the study's any more"]),
        ('id = "H1"', 'id = "H2"', ["claim H1 is not the study's any more", "claim H2 is not the study's any more"]),
        ("Half of the rate", "A half", ["`title` is not the study's any more"]),
        (about, "as a program.", ["`about` is not the study's any more"]),
        (
            "quick = [10, 20]",
            "quick = [10, 20, 30]",
            ["what it ran is not the study's any more", "what the simulator ran is not the study's any more"],
        ),
        (text[text.index(section) :], "", [f"the study has no {section} section any more"]),
    ]:
        (directory / "study.toml").write_text(
            text.replace(old, new).replace('claims = ["H1", ', f'claims = ["{"H2" if "H2" in new else "H1"}", ')
        )
        assert live_studies.gaps("half", engine) == [f"{file}: {one}" for one in told]


def test_the_two_engines_have_separate_results_and_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Detects a result in virtual time that replaces the live one, or is written into its part of the page."""
    monkeypatch.setattr(live_studies, "ROOT", tmp_path)
    directory = tmp_path / "studies" / "half"
    directory.parent.mkdir()
    shutil.copytree(HALF, directory)
    with (directory / "study.toml").open("a") as file:
        file.write(HALF_IN_A_KERNEL)
    (tmp_path / "docs" / "studies").mkdir(parents=True)
    page = tmp_path / "docs" / "studies" / "half.md"
    page.write_text("".join(f"<!-- begin {engine} -->\n\nno\n<!-- end {engine} -->\n" for engine in ("live", "kernel")))
    result = Study(live_studies.existing_part("half", "kernel"))
    answers = result._judged(Pool(result.definition), quick=True, progress=None)
    document = LiveStudyResult(result.definition, answers, answers, Audit(), "kernel").to_json()
    live_studies.keep("half", document)
    assert live_studies.compared("half", "kernel", check=True) == [
        "docs/studies/half.md: python validation/live_studies.py --pages"
    ]
    assert live_studies.compared("half", "kernel", check=False) == []
    live, _, kernel = page.read_text().partition("<!-- end live -->")
    assert "no" in live.splitlines()
    assert "| simulator | verdict | kernel | verdict |" in kernel
    assert live_studies.compared("half", "kernel", check=True) == []
    assert not live_studies.kept("half", "live").exists()
    assert json.loads(live_studies.kept("half", "kernel").read_text())["runs"] == live_studies.runs_of(
        "half", "quick", "kernel"
    )
