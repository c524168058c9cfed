"""Kept results of studies in the live engine, and the pages that show them."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import live_studies

HALF = Path(__file__).parents[2] / "tests" / "live" / "half"
"""A study with a section for live runs."""


def test_the_pages_show_the_kept_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Detects a page that was changed by hand, and a result that has not reached its page."""
    monkeypatch.setattr(sys, "argv", ["live_studies.py", "--check"])
    assert live_studies.main() == 0


def test_a_result_of_a_changed_study_is_out_of_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Detects a check that only compares pages with kept results, and not kept results with the studies."""
    monkeypatch.setattr(live_studies, "ROOT", tmp_path)
    directory = tmp_path / "studies" / "half"
    directory.parent.mkdir()
    shutil.copytree(HALF, directory)
    (tmp_path / "docs" / "studies").mkdir(parents=True)
    page = tmp_path / "docs" / "studies" / "half.md"
    page.write_text("Live.\n")
    assert live_studies.shown() == []
    page.write_text("<!-- begin live -->\nas it was\n<!-- end live -->\n")
    assert live_studies.shown() == ["half"]
    assert live_studies.gaps("half") == ["docs/studies/half.md shows live runs, and there is no studies/half/live.json"]
    document = {
        "study": "half",
        "title": "Half of the rate",
        "about": "The kernel's Reno, and Cubic+ by eBPF.",
        "mode": "full",
        "runs": live_studies.runs_of("half", "full"),
        "resolved": live_studies.resolved("half", "full"),
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
    live_studies.kept("half").write_text(json.dumps(document))
    assert live_studies.gaps("half") == []
    # As after a change of the stack's profile, which changes no file of the study.
    live_studies.kept("half").write_text(json.dumps(document | {"resolved": "another"}))
    assert live_studies.gaps("half") == ["studies/half/live.json: what the simulator ran is not the study's any more"]
    live_studies.kept("half").write_text(json.dumps(document))
    text = (directory / "study.toml").read_text()
    for old, new, told in [
        ("1.7 to 2.1 with either", "1.8 to 2.0 with either", ["claim H1 is not the study's any more"]),
        ('id = "H1"', 'id = "H2"', ["claim H1 is not the study's any more", "claim H2 is not the study's any more"]),
        ("Half of the rate", "A half", ["`title` is not the study's any more"]),
        ("by eBPF.", "as a program.", ["`about` is not the study's any more"]),
        (
            "quick = [10, 20]",
            "quick = [10, 20, 30]",
            ["what it ran is not the study's any more", "what the simulator ran is not the study's any more"],
        ),
        (text[text.index("[live]") :], "", ["the study has no [live] section any more"]),
    ]:
        (directory / "study.toml").write_text(
            text.replace(old, new).replace('claims = ["H1", ', f'claims = ["{"H2" if "H2" in new else "H1"}", ')
        )
        assert live_studies.gaps("half") == [f"studies/half/live.json: {one}" for one in told]
