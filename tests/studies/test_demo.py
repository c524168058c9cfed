"""``anabranch demo``: one page with the figure and every claim of the paper."""

from __future__ import annotations

import re

import pytest

from .conftest import Demo


@pytest.mark.brief
def test_the_page_has_the_figure_and_a_verdict_for_every_claim(demo: Demo) -> None:
    assert str(demo.folder / "index.html") in demo.printed
    page = (demo.folder / "index.html").read_text(encoding="utf-8")
    assert "data:image/svg+xml" in page
    rows = re.findall(r"<td[^>]*>(R\d+)</td>.*?<span class='verdict badge \w+'>. ([^<]+)</span>", page)
    assert [name for name, _ in rows] == [f"R{n}" for n in range(1, 12)]
    assert all(f"{name} " in demo.printed for name, _ in rows)
    assert max(map(len, demo.printed.splitlines())) <= 80 + len(str(demo.folder.parent))
    for target in re.findall(r"href='([^']+)'", page):
        assert (demo.folder / target).is_file()
