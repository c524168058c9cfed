"""``anabranch demo``: one page with the figure and every claim of the paper."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.brief
def test_the_page_has_the_figure_and_a_verdict_for_every_claim(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "anabranch", "demo", "--out", str(tmp_path / "demo")]
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    assert str(tmp_path / "demo/index.html") in done.stdout
    page = (tmp_path / "demo/index.html").read_text(encoding="utf-8")
    assert "data:image/svg+xml" in page
    rows = re.findall(r"<td[^>]*>(R\d+)</td>.*?<span class='verdict badge \w+'>. ([^<]+)</span>", page)
    assert [name for name, _ in rows] == [f"R{n}" for n in range(1, 12)]
    assert all(f"{name} " in done.stdout for name, _ in rows)
    again = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    assert again.stdout == done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80 + len(str(tmp_path))
    for target in re.findall(r"href='([^']+)'", page):
        assert (tmp_path / "demo" / target).is_file()
