"""Pages of evaluations from the directories of the command."""

from __future__ import annotations

import json
from pathlib import Path

import evaluations


def test_a_page_has_its_figures_beside_it(tmp_path: Path) -> None:
    made = tmp_path / "made"
    (made / "figures").mkdir(parents=True)
    (made / "evaluation.json").write_text(json.dumps({"subject": {"name": "mine"}}), encoding="utf-8")
    text = "# Evaluation of mine\n\nFacts.\n\n![Loss](figures/many-loss.svg)\n"
    (made / "SUMMARY.md").write_text(text, encoding="utf-8")
    for name in ("many-loss", "other"):
        (made / "figures" / f"{name}.svg").write_text("<svg/>", encoding="utf-8")
    page = evaluations.write(made, tmp_path / "docs")
    assert page == tmp_path / "docs" / "mine.md"
    written = page.read_text(encoding="utf-8")
    assert "![Loss](mine/many-loss.svg)" in written
    assert "../guides/evaluate.md" in written
    assert [file.name for file in (tmp_path / "docs" / "mine").iterdir()] == ["many-loss.svg"]
