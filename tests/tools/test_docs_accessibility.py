"""axe-core finds no violation in the documentation that impairs its readers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from python.browser import violations

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("index", "guides/compare", "reference/cli")
LISTED = {"landmark-unique"}
"""Of moderate impact: the theme gives every code block a bar for its button, and the bars have no names."""
CODE = "> code"
"""Code blocks that scroll: the theme's script makes them focusable only on devices with a mouse."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, check=True, timeout=600)
    return folder


@pytest.mark.long
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_of_the_documentation_have_no_violation(site: Path, tmp_path: Path, dark: bool) -> None:
    pages = {name: site / f"{name}.html" for name in PAGES}
    found = violations(pages, tmp_path, dark=dark)
    ours = [one for one in found if (one.rule, one.element[-6:]) != ("scrollable-region-focusable", CODE)]
    assert [one for one in ours if one.impact in {"serious", "critical"}] == []
    assert {one.rule for one in ours} <= LISTED
