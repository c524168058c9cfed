"""The report of an evaluation as a page: accessibility, and figures with their intervals."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.evaluate import chart
from anabranch.evaluate.judge import shown
from anabranch.evaluate.page import html_report
from anabranch.evaluate.summary import markdown_report

from ..browser import needs_chromium, violations
from .sample import bad, choose, run


@needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_report_breaks_no_rule(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dark: bool) -> None:
    choose(monkeypatch, "loss-of-several", "breaker", "onset-loss")
    path = tmp_path / "report.html"
    path.write_text(html_report(run("bbr3"), "anabranch evaluate bbr3"), encoding="utf-8")
    assert violations({"evaluate": path}, tmp_path, dark=dark) == []


def test_a_broken_control_has_a_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    choose(monkeypatch, "onset-loss", "breaker", seeds=1)
    result = run(bad(tmp_path, "Nan"))
    page, text = html_report(result, "command"), markdown_report(result, "command")
    assert "expected a number above 0" in page
    assert "**broken**" in text


def test_every_case_is_in_its_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, "loss-of-several")
    (check,) = run("bbr3").checks
    drawn = chart.svg(check, "bbr3")
    assert drawn is not None
    assert drawn.count("<circle") == 3 + 3 * len(check.cases)
    assert all(one.name in drawn for one in check.cases)


def test_a_figure_has_three_digits() -> None:
    assert [shown(v) for v in (1234.5, 12.34, 1.234, 0.1234, 0.00123, 0.0)] == [
        *("1234", "12.3", "1.23", "0.123", "0.0012", "0.000")
    ]  # fmt: skip
    assert shown(-0.5, "ms", sign=True) == "−0.500 ms"
