"""Documents match the checkout: shown files, linked files, the tutorial's commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from reference.embed import BLOCK, Block, blocks

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")],
    key=lambda page: page.relative_to(ROOT).as_posix(),
)

LINK = re.compile(r"\]\((?!\w+:)(?P<target>[^)#\s]+)(?:#[^)\s]*)?\)")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_shown_file_matches_the_file(page: Path) -> None:
    for block in blocks(page.read_text("utf-8")):
        if block.title and (ROOT / block.title).is_file():
            assert block.text == (ROOT / block.title).read_text("utf-8"), f"{block.title} in {name(page)}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files(page: Path) -> None:
    text = BLOCK.sub("", page.read_text("utf-8"))
    for match in LINK.finditer(text):
        assert (page.parent / match["target"]).exists(), f"{match['target']} in {name(page)}"


def tutorial_steps() -> list[Block]:
    return list(blocks((ROOT / "docs" / "tutorial.md").read_text("utf-8")))


def test_the_tutorial_runs_unchanged(tmp_path: Path) -> None:
    """Runs every ``anabranch run`` and ``sweep`` line, and every script, on the shown files.

    The set-up lines have been run before the tests, and `make study` runs the study.
    """
    commands = 0
    for block in tutorial_steps():
        if block.title:
            (tmp_path / block.title).write_text(block.text, "utf-8")
        if block.language == "python":
            run(tmp_path, sys.executable, str(block.title))
            commands += 1
        if block.language != "sh":
            continue
        for line in block.text.splitlines():
            words = shlex.split(line)
            if words[:2] in (["anabranch", "run"], ["anabranch", "sweep"]):
                run(tmp_path, str(Path(sys.executable).with_name("anabranch")), *words[1:])
                commands += 1
    assert commands >= 6
    assert list((tmp_path / "reordering-out").glob("*.html"))


def run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
