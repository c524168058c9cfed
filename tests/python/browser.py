"""A page in headless Chromium: what a script in it finds, and the page as a PDF."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")


def asked(page: str, expression: str, folder: Path, *options: str, name: str = "page") -> Any:
    """What the JavaScript ``expression`` gives once every chart of ``page`` is drawn; it may wait for promises."""
    probe = (
        "<script>{ const wait = setInterval(async () => { if (!document.documentElement.dataset.drawn) return;"
        "clearInterval(wait); let found; try { found = await (async () => {" + expression + "})(); }"
        "catch (error) { found = { error: String(error) }; }"
        "document.body.dataset.probe = JSON.stringify(found ?? null); }, 50); }</script>"
    )
    path = folder / f"{name}.html"
    path.write_text(page.replace("</body>", probe + "</body>"), encoding="utf-8")
    done = _chromium(folder, *options, "--dump-dom", f"file://{path}")
    found = re.search(r'data-probe="(.*?)"[ >]', done.stdout, re.DOTALL)
    assert found, "the page drew nothing"
    return json.loads(html.unescape(found[1]))


def printed(page: str, folder: Path) -> bytes:
    """The page as Chromium prints it."""
    (folder / "printed.html").write_text(page, encoding="utf-8")
    _chromium(folder, f"--print-to-pdf={folder / 'printed.pdf'}", f"file://{folder / 'printed.html'}")
    return (folder / "printed.pdf").read_bytes()


def _chromium(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}",
               "--virtual-time-budget=8000", *arguments]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)  # noqa: S603
