"""axe-core finds no violation in the pages that commands write."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch import Scenario
from anabranch.charts.heat import colour, ink
from anabranch.charts.pack import thinned
from anabranch.compare import compare
from anabranch.compare.inputs import read_inputs
from anabranch.report import capture_output, compare_output, run_output, sweep_output
from anabranch.report.compare_columns import charts

from .browser import needs_chromium, violations

TEXT = """
title = "Losses"
duration = "2 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }
forward.impair = [{ kind = "bernoulli-loss", rate = 0.02 }]
[flow.f]
from = "A"
to = "B"
"""
GRID = {"link.path.rate": ["5 Mbit/s", "10 Mbit/s", "20 Mbit/s"], "link.path.delay": ["5 ms", "9 ms", "20 ms"]}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    scenario = Scenario.from_text(TEXT)
    # Each sample is a row of a table, and each cell is checked.
    run = scenario.run(samples_ms=100, captures=["path"], packets=True)
    for name, delay in (("a", "20 ms"), ("b", "30 ms")):
        (folder / f"{name}.toml").write_text(TEXT.replace("20 ms", delay), encoding="utf-8")
    compared = compare(read_inputs([folder / "a.toml", folder / "b.toml"], repeat=3, samples_ms=100))
    drawn = [thinned(chart) for chart in charts(compared)]
    made = {
        "run": run_output.html_report(run, command="anabranch run path.toml"),
        "sweep": sweep_output.html_report(scenario.sweep(GRID, repeat=2)),
        "diagnose": capture_output.html_report(run.diagnose("path", folder / "path.pcapng")),
        "compare": compare_output.html_report(compared, drawn, [], folder),
    }
    for name, page in made.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


@needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_reports_break_no_rule(pages: dict[str, Path], tmp_path: Path, dark: bool) -> None:
    assert violations(pages, tmp_path, dark=dark) == []


@needs_chromium
def test_violations_are_found(tmp_path: Path) -> None:
    """Rules that reports have violated: a label that differs from its text, pale text, a heading without text."""
    page = tmp_path / "faulty.html"
    page.write_text(
        "<!doctype html><html lang='en'><title>Faults</title><body><main><h1>Faults</h1>"
        "<button aria-label='Everything'>All</button><p style='color:#fff;background:#24948a'>31</p>"
        "<table><tr><th></th><th>a</th></tr><tr><td>1</td><td>2</td></tr></table></main></body></html>",
        encoding="utf-8",
    )
    found = {one.rule for one in violations({"faulty": page}, tmp_path, dark=False)}
    assert found == {"label-content-name-mismatch", "color-contrast", "empty-table-header"}


def luminance(colour: tuple[int, int, int]) -> float:
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_figures_of_a_heat_map_contrast_with_their_cells() -> None:
    for step in range(1001):
        red, green, blue = bytes.fromhex(colour(step / 1000)[1:])
        letters = {"#000": 0.0, "#fff": 1.0}[ink(red, green, blue)]
        bright, dark = sorted((letters, luminance((red, green, blue))), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, colour(step / 1000)
