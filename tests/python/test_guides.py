"""Commands on the pages run as printed, and give the output that the page shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from .command import Call

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = re.compile(r"\d+\.\d s$", re.MULTILINE)


def blocks(page: str) -> list[tuple[str, str, str]]:
    """(language, title, content) of every code block, in order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [(m[1], m[2] or "", m[3]) for m in FENCE.finditer(text)]


def steps(found: list[tuple[str, str, str]]) -> Iterator[tuple[str, str | None]]:
    """Each command with its output on the page; files are written on the way."""
    for i, (language, title, content) in enumerate(found):
        if title:
            Path(title).parent.mkdir(parents=True, exist_ok=True)
            Path(title).write_text(content, encoding="utf-8")
        if language == "sh":
            *first, last = content.splitlines()
            shown = found[i + 1][2] if i + 1 < len(found) and found[i + 1][0] == "text" else None
            yield from ((line, None) for line in first)
            yield last, shown


def trimmed(output: str) -> str:
    """The output without trailing spaces and durations."""
    return SECONDS.sub("0.0 s", "\n".join(line.rstrip() for line in output.splitlines()).strip("\n"))


@pytest.mark.parametrize("page", ["guides/compare.md", "guides/tasks.md"])
def test_the_commands_of_a_page_print_the_shown_output(
    anabranch: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    monkeypatch.chdir(tmp_path)
    made = 0
    for command, shown in steps(blocks(page)):
        done = anabranch(*shlex.split(command)[1:])
        assert done.status == 0, done.err
        if shown is not None:
            assert trimmed(done.out) == trimmed(shown), command
        made += 1
    assert made >= 5


def test_the_first_study_of_the_guide_runs_unchanged(
    anabranch: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = blocks("studies.md")
    ((command, shown),) = steps(found[:4])
    done = anabranch(*shlex.split(command)[1:])
    assert done.status == 0, done.err
    assert shown is not None
    assert trimmed(done.out) == trimmed(shown)
    assert Path("my-results/report.html").is_file()
    assert len(found[0][2].strip().splitlines()) < 16
    language, title, claim = found[4]
    assert (language, title) == ("toml", "added to my-study/study.toml")
    with Path("my-study/study.toml").open("a", encoding="utf-8") as file:
        file.write(claim)
    done = anabranch(*shlex.split(command)[1:])
    assert done.status == 0, done.err
    assert "1 of 1 reproduced" in done.out
