"""Pages in headless Chromium: results of a script in the page, and the page as a PDF."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from .chromium import View, shared

needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
DESKTOP = View()


def asked(page: str, expression: str, folder: Path, view: View = DESKTOP, *, name: str = "page") -> Any:
    """The value of the JavaScript ``expression`` after every chart of ``page`` is drawn; it may wait for promises."""
    probe = (
        "<script>{ const wait = setInterval(async () => { if (!document.documentElement.dataset.drawn) return;"
        "clearInterval(wait); let found; try { found = await (async () => {" + expression + "})(); }"
        "catch (error) { found = { error: String(error) }; }"
        "answer(JSON.stringify(found ?? null)); }, 50); }</script>"
    )
    path = folder / f"{name}.html"
    path.write_text(page.replace("</body>", probe + "</body>"), encoding="utf-8")
    found = shared().answer(path, view, milliseconds=8000)
    assert found is not None, "the page drew nothing"
    return json.loads(found)


WIDTHS = (1280, 400)
"""Widths of a desktop and of a telephone, in pixels."""

_FRAME = """<script src="axe.min.js"></script><script>addEventListener("load", async () => {
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  await pause(1000);
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches, theme = document.body.dataset;
  if (isDark && theme.mdColorScheme) theme.mdColorScheme = "slate";
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  await pause(500);
  let found;
  try {
    const colours = ["color-contrast", "link-in-text-block"];
    const rules = { "label-content-name-mismatch": { enabled: true } };
    const runOnly = isDark ? { type: "rule", values: colours } : undefined;
    if (!isDark && innerWidth < 600) for (const rule of colours) rules[rule] = { enabled: false };
    const { violations } = await axe.run(document, { resultTypes: ["violations"], preload: false, rules, runOnly });
    found = violations.flatMap(({ id, impact, nodes }) =>
      nodes.map((node) => [id, impact, node.target.join(" "), node.failureSummary]));
  } catch (error) { found = [["error", "critical", String(error), ""]]; }
  parent.postMessage([window.name, innerWidth, isDark, found], "*");
});</script></body>"""
_FRAMES = """<!doctype html><meta name="color-scheme" content="light dark"><body><script>
const pages = PAGES, all = {};
addEventListener("message", ({ data: [name, width, isDark, found] }) => {
  all[name] = [width, isDark, found];
  if (Object.keys(all).length === pages.length) answer(JSON.stringify(all));
});
for (const [name, source, width] of pages) {
  const frame = document.createElement("iframe");
  Object.assign(frame, { name, src: source, style: `width:${width}px;height:900px;border:0` });
  document.body.append(frame);
}
</script></body>"""


@dataclass(frozen=True)
class Violation:
    """A rule of axe-core that a page breaks at one place."""

    page: str
    rule: str
    impact: str
    element: str
    summary: str


def violations(pages: Mapping[str, Path], folder: Path, *, dark: bool) -> list[Violation]:
    """The violations that axe-core finds in pages, at the widths of a desktop and of a telephone.

    The rules of colours, four fifths of the work, are checked at one width of each scheme: light at the desktop's, dark
    at the telephone's. Other rules and sizes do not depend on the scheme.
    """
    widths = WIDTHS[1:] if dark else WIDTHS
    axe = Path(str(files("axe_playwright_python") / "axe.min.js")).read_text(encoding="utf-8")
    framed, made = [], []
    try:
        for name, page in pages.items():
            copy = page.with_name(f"axe-{page.name}")
            made += [copy, page.with_name("axe.min.js")]
            made[-1].write_text(axe, encoding="utf-8")
            before, end, after = page.read_text(encoding="utf-8").rpartition("</body>")
            assert end, name
            copy.write_text(before + _FRAME + after, encoding="utf-8")
            framed += [(f"{name} {width}", copy.resolve().as_uri(), width) for width in widths]
        (folder / "frames.html").write_text(_FRAMES.replace("PAGES", json.dumps(framed)), encoding="utf-8")
        view = View(1400, 1000, dark=dark)
        found = shared().answer(folder / "frames.html", view, milliseconds=300_000)
    finally:
        for file in made:
            file.unlink(missing_ok=True)
    assert found is not None, "not every page has been checked"
    answers = json.loads(found)
    assert [(answers[name][0], answers[name][1]) for name, _, _ in framed] == [(width, dark) for _, _, width in framed]
    return [Violation(name, *one) for name, _, _ in framed for one in answers[name][2]]


def printed(page: str, folder: Path) -> bytes:
    """The page as printed by Chromium."""
    path = folder / "printed.html"
    path.write_text(page + "<script>addEventListener('load', () => answer('loaded'))</script>", encoding="utf-8")
    assert shared().answer(path, DESKTOP, milliseconds=8000) == "loaded"
    return base64.b64decode(shared().call("Page.printToPDF")["data"])


__all__ = ["WIDTHS", "View", "Violation", "asked", "needs_chromium", "printed", "violations"]
