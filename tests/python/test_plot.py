"""Charts of sweeps, comparisons and studies: the x axis, colours and panels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

from anabranch import Scenario, Study, SweepResult
from anabranch.compare import Comparison, compare
from anabranch.compare.inputs import read_inputs
from anabranch.errors import UserError
from anabranch.statistics.bounds import within
from anabranch.study import StudyResult

RATES = ["500 kbit/s", "5 Mbit/s", "0.05 Gbit/s"]
BASE = (
    Scenario("Two hosts", duration="1 s")
    .link("a", between=("S", "R"), rate="10 Mbit/s", delay="5 ms", impair=[{"kind": "bernoulli-loss", "rate": 0.01}])
    .flow("main", source="S", target="R")
)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def swept() -> SweepResult:
    grid = {"link.a.rate": RATES, "flow.main.cc": ["reno", "cubic"], "link.a.delay": ["5 ms", "20 ms"]}
    return BASE.sweep(grid, repeat=3)


def lines(axes: Axes) -> list[Any]:
    """The lines with points, without lines of legends and intervals."""
    return [
        line for line in axes.get_lines() if len(np.asarray(line.get_xdata())) and str(line.get_marker()) not in "|_"
    ]


def legend(owner: Any) -> list[str]:
    found = owner.get_legend() if hasattr(owner, "get_legend") else owner.legends[0]
    return [found.get_title().get_text(), *(text.get_text() for text in found.get_texts())]


def test_quantities_are_placed_by_their_value(swept: SweepResult) -> None:
    axes = swept.plot(x="rate", y="goodput", color="cc")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("link.a.rate (Mbit/s)", "goodput (Mbit/s), flow main")
    assert axes.get_xscale() == "log"
    for line in lines(axes):
        assert list(line.get_xdata()) == [0.5, 5.0, 50.0]
    assert legend(axes) == ["cc, delay", "reno, 5 ms", "reno, 20 ms", "cubic, 5 ms", "cubic, 20 ms"]
    colours = [line.get_color() for line in lines(axes)]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    assert len({line.get_marker() for line in lines(axes)}) == 2


def test_points_are_means_with_intervals_over_seeds(swept: SweepResult) -> None:
    axes = swept.plot(x="rate", y="goodput", color="cc")
    wanted = [one for point, one in swept.estimates("goodput") if point[1:] == ("reno", "5 ms") and one]
    assert list(lines(axes)[0].get_ydata()) == pytest.approx([one.interval.mean for one in wanted])
    (bars,) = (bar for bar in axes.containers[0].get_children() if hasattr(bar, "get_segments"))
    ends = [end[1] for segment in bars.get_segments() for end in segment]
    intervals = [within(one.interval, "flow.main.goodput_mbit_s") for one in wanted]
    assert ends == pytest.approx([end for one in intervals for end in (one.lower, one.upper)])


def test_each_value_of_col_has_a_panel_with_common_scales(swept: SweepResult) -> None:
    figure = swept.plot(x="rate", y="goodput", col="delay", color="cc")
    assert [axes.get_title() for axes in figure.axes] == ["delay: 5 ms", "delay: 20 ms"]
    one, other = figure.axes
    assert one.get_ylim() == other.get_ylim()
    highest = max(value for axes in figure.axes for line in lines(axes) for value in line.get_ydata())
    assert one.get_ylim()[0] == 0 < highest < one.get_ylim()[1]
    assert legend(figure) == ["cc", "reno", "cubic"]
    assert [line.get_color() for line in lines(one)] == [line.get_color() for line in lines(other)]
    assert list(lines(one)[0].get_ydata()) != list(lines(other)[0].get_ydata())


def test_names_on_the_x_axis_are_not_joined(swept: SweepResult) -> None:
    axes = swept.plot(x="cc", y="goodput", color="rate")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["reno", "cubic"]
    assert {line.get_linestyle() for line in lines(axes)} == {"None"}


def test_a_value_without_a_quantity_keeps_the_given_order() -> None:
    swept = BASE.sweep({"link.a.rate": ["5 Mbit/s", "unlimited", "1 Mbit/s"]})
    axes = swept.plot("goodput")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["5 Mbit/s", "unlimited", "1 Mbit/s"]
    assert len(lines(axes)[0].get_xdata()) == 3


def test_colour_may_separate_a_measure_of_several_links(swept: SweepResult) -> None:
    axes = swept.plot("utilization", x="rate", color="link")
    assert axes.get_ylabel() == "utilization (%)"
    assert {name.partition(",")[0] for name in legend(axes)[1:]} == {"a forward", "a reverse"}


def test_given_axes_are_used(swept: SweepResult) -> None:
    given = pyplot.subplots()[1]
    assert swept.plot("goodput", ax=given) is given
    assert legend(swept.plot("goodput", hue="cc", ax=given)) == legend(swept.plot("goodput", color="cc", ax=given))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": "goodputt"}, 'the sweep has no figure "goodputt"\n  did you mean "goodput_mbit_s"'),
        ({"y": "loss"}, "give one of dropped_packets, lost_packets"),
        ({"y": "queue_delay"}, "give one of link.a.forward.p95_queue_delay_ms, link.a.reverse.p95_queue_delay_ms"),
        ({"y": "goodput", "x": "rat"}, 'there is no axis "rat"\n  did you mean "rate"'),
        ({"y": "goodput", "col": "seed"}, "valid: link.a.rate, flow.main.cc, link.a.delay"),
        ({"y": "goodput", "x": "rate", "color": "rate"}, "link.a.rate has two places"),
        ({"y": "goodput", "color": "link"}, '"goodput" is no figure of a link'),
        ({"y": "goodput", "col": "cc", "ax": object()}, "ax is one panel, and col makes several"),
    ],
)
def test_impossible_charts_are_refused(swept: SweepResult, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as refused:
        swept.plot(**options)
    assert message in str(refused.value)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int | None], Comparison]:
    folder = tmp_path_factory.mktemp("inputs")
    sweeps, files = [], []
    for control in ("reno", "cubic"):
        scenario = BASE.set("flow.main.cc", control)
        scenario.sweep({"link.a.rate": RATES[:2]}, repeat=2, out=folder / control)
        sweeps.append(folder / control)
        file: Path = folder / f"{control}.toml"
        file.write_text(f'{BASE.text}cc = "{control}"\n', encoding="utf-8")
        files.append(file)
    return lambda repeat: compare(read_inputs(files, repeat=repeat) if repeat else read_inputs(sweeps))


def test_compared_sweeps_have_a_line_each(compared: Callable[[int | None], Comparison]) -> None:
    axes = compared(None).plot("goodput")
    assert axes.get_xlabel() == "link.a.rate (Mbit/s)"
    assert legend(axes) == ["input", "reno", "cubic"]
    figure = compared(None).plot("utilization", col="link")
    assert [panel.get_title() for panel in figure.axes] == ["link: a forward", "link: a reverse"]
    with pytest.raises(UserError, match="give one of dropped_packets, lost_packets"):
        compared(None).plot("loss")
    with pytest.raises(UserError, match=r"give one of link\.a\.forward\.utilization"):
        compared(None).plot("utilization")


def test_repeated_runs_are_side_by_side(compared: Callable[[int | None], Comparison]) -> None:
    axes = compared(3).plot("goodput")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["reno", "cubic"]
    assert len(lines(axes)[0].get_xdata()) == 2
    assert axes.containers


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    folder = tmp_path_factory.mktemp("study")
    (folder / "s.toml").write_text(BASE.text, encoding="utf-8")
    (folder / "study.toml").write_text(
        """title = "S"
source = "s"
about = "a"
[variant.reno]
label = "Reno"
set = { "flow.main.cc" = "reno" }
[variant.cubic]
label = "CUBIC"
set = { "flow.main.cc" = "cubic" }
[axis.rate]
label = "Rate (Mbit/s)"
set = { "link.a.rate" = "{} Mbit/s" }
quick = [1, 5]
full = [1, 5]
[experiment.e]
scenario = "s.toml"
variants = ["reno", "cubic"]
axes = ["rate"]
repeat = 2
[quantity.goodput]
path = "flow.main.goodput"
[[claim]]
id = "C1"
claim = "c"
published = "p"
accept_if = "more than nothing"
accept = ["lowest > 0"]
invariant = "bytes arrive"
measure = { lowest = "min(goodput)" }
""",
        encoding="utf-8",
    )
    return Study.load(folder).run(quick=True, jobs=1)


def test_a_study_draws_a_quantity_with_a_line_for_each_variant(study: StudyResult) -> None:
    axes = study.plot("goodput")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Rate (Mbit/s)", "goodput (Mbit/s)")
    assert legend(axes) == ["variant", "Reno", "CUBIC"]
    assert [list(line.get_xdata()) for line in lines(axes)] == [[1.0, 5.0], [1.0, 5.0]]
    assert [panel.get_title() for panel in study.plot("goodput", col="variant").axes] == [
        "variant: Reno",
        "variant: CUBIC",
    ]
    with pytest.raises(UserError, match='no quantity "godput"\n  did you mean "goodput"'):
        study.plot("godput")
    with pytest.raises(UserError, match='no axis "varient"\n  did you mean "variant"'):
        study.plot("goodput", color="varient")


def test_the_example_draws_its_description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = (Path(__file__).parents[2] / "examples" / "plot.py").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    # The same on a smaller grid, to save time.
    exec(compile(example.replace('"10 s"', '"1 s"').replace("repeat=5", "repeat=2"), "plot.py", "exec"), {})  # noqa: S102
    assert (tmp_path / "goodput.png").read_bytes().startswith(b"\x89PNG")
    (figure,) = map(pyplot.figure, pyplot.get_fignums())
    assert [axes.get_title() for axes in figure.axes] == ["delay: 5 ms", "delay: 25 ms"]
    assert legend(figure) == ["cc", "reno", "cubic", "bbr"]
