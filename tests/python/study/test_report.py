"""The report of a study: badges, claims with their figures, points of the source, no raw mark-up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from anabranch.errors import UserError
from anabranch.plot.study import figures
from anabranch.report.claims import prose
from anabranch.study import Study

from ..browser import View, asked, needs_chromium
from ..sample import copied


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("study")
    Study.load(copied(folder / "sample")).run(quick=True).write(folder / "out")
    return (folder / "out" / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return copied(tmp_path / "sample")


def test_every_claim_has_a_badge_and_its_control(page: str) -> None:
    cards = re.findall(r"<article class='claim'.*?</article>", page, re.DOTALL)
    assert cards
    for card in cards:
        assert re.search(r"<span class='verdict badge \w+'>[✓✗≠?] ", card)
    assert "✓ wrong system rejected" in page


def test_each_figure_is_in_the_page_once(page: str) -> None:
    names = re.findall(r"<figure id='figure-([^']+)'>", page)
    assert len(names) == len(set(names)) > 0
    for target in re.findall(r"href='#figure-([^']+)'", page):
        assert target in names


def test_a_figure_follows_its_first_claim(page: str) -> None:
    groups = re.findall(r"<div class='claims with-figure'>(.*?)</div></div>", page, re.DOTALL)
    assert groups
    assert all("<article" in group and "<figure" in group for group in groups)


@needs_chromium
@pytest.mark.parametrize("width", [500, 1280])
def test_a_studys_page_fits_its_window(page: str, tmp_path: Path, width: int) -> None:
    probe = page.replace("</body>", "<script>document.documentElement.dataset.drawn = 'yes'</script></body>")
    script = "return document.documentElement.scrollWidth <= innerWidth;"
    assert asked(probe, script, tmp_path, View(width)) is True


def test_only_backticks_become_markup() -> None:
    assert prose("`a<b` and <i>") == "<code>a&lt;b</code> and &lt;i&gt;"
    assert prose("one ` tick") == "one ` tick"


def with_printed(sample: Path, printed: str) -> Path:
    path = sample / "study.toml"
    text = path.read_text(encoding="utf-8")
    assert 'id = "fig3"\n' in text
    path.write_text(text.replace('id = "fig3"\n', f'id = "fig3"\nprinted = {printed}\n', 1), encoding="utf-8")
    return sample


def test_published_points_are_drawn_over_ours(sample: Path) -> None:
    study = Study.load(with_printed(sample, "{ cubic = [[100, 1], [50, 0.5]] }"))
    figure = next(f for name, _, f in figures(study.run(quick=True).results) if name == "fig3")
    (axes,) = figure.axes
    stars = [line for line in axes.get_lines() if line.get_marker() == "*"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in stars] == [(100, 1), (50, 0.5)]  # type: ignore[index]
    legend = axes.get_legend()
    assert legend is not None
    assert legend.get_texts()[-1].get_text() == "as printed"


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ("{ cubik = [[1, 1]] }", '"cubik" is no line of this figure'),
        ("{ cubic = [[1]] }", "printed points must be pairs of numbers"),
        ("{ cubic = [[1, nan]] }", "printed points must be pairs of numbers"),
        ("{ cubic = [] }", "printed points must be pairs of numbers"),
    ],
)
def test_published_points_are_checked(sample: Path, printed: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as error:
        Study.load(with_printed(sample, printed))
    assert "study.toml" in str(error.value)
