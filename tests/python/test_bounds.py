"""Intervals end at the bounds of their figure, in every text and figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.result.format import interval, spread_within
from anabranch.statistics.bounds import is_cut, within
from anabranch.statistics.statistics import Interval
from anabranch.study.bounds import UNBOUNDED, bounds_of
from anabranch.study.parse import load
from anabranch.sweep.sweep import Estimate

INF = float("inf")


@pytest.mark.parametrize(
    ("figure", "mean", "half", "ends", "shown"),
    [
        ("flow.a.goodput_mbit_s", 5.2, 5.5, (0.0, 10.7), "5.2 (0 to 10.7)"),
        ("flow.a.goodput_mbit_s", 5.2, 1.5, (3.7, 6.7), "5.2 ± 1.5"),
        ("fairness.jain_index", 0.99, 0.03, (0.96, 1.0), "0.990 (0.960 to 1)"),
        ("link.a.forward.utilization", 0.02, 0.05, (0.0, 0.07), "0.020 (0 to 0.070)"),
        ("flow.a.timeouts", 3.0, 1.5, (1.5, 4.5), "3.0 ± 1.5"),
        ("flow.a.mean_srtt_ms", -1.0, 1.5, (-2.5, 0.5), "-1.0 ± 1.5"),
    ],
)
def test_an_interval_ends_at_the_bounds_of_its_figure(
    figure: str, mean: float, half: float, ends: tuple[float, float], shown: str
) -> None:
    computed = Interval(mean, mean - half, mean + half, 5)
    found = within(computed, figure)
    assert (found.lower, found.upper) == pytest.approx(ends)
    assert found.mean == mean
    assert is_cut(computed, figure) == ("to" in shown)
    assert interval(Estimate(computed, deterministic=False), figure) == shown


def test_a_share_is_limited_to_100_per_cent() -> None:
    computed = Estimate(Interval(0.95, 0.85, 1.05, 5), deterministic=False)
    assert interval(computed, "utilization", 100.0) == "95 (85 to 100)"


def test_a_mean_alone_has_no_interval() -> None:
    assert interval(Estimate(Interval(5.0, None, None, 1), deterministic=True), "goodput_mbit_s") == "5"


def test_digits_of_a_table_are_preserved() -> None:
    assert spread_within(0.02, 0.05, 0.0, INF, 3) == "0.020 (0 to 0.070)"
    assert spread_within(0.02, 0.05, -INF, INF, 3) == "0.020 ± 0.050"


STUDY = """
title = "s"
axis.loss = { path = "link.path.forward.impair.0.rate", values = [0.01, 0.1] }
variant.reno = { set = { "flow.main.cc" = "reno" } }
variant.cubic = { set = { "flow.main.cc" = "cubic" } }
experiment.lossy = { scenario = "path.toml", axes = ["loss"], repeat = 2 }
quantity.goodput = { path = "flow.main.goodput_mbit_s" }
quantity.used = { path = "link.path.forward.utilization" }
quantity.gain = { expression = "goodput[cubic] - goodput[reno]" }
quantity.ratio = { expression = "goodput[cubic] / goodput[reno]" }
"""
SCENARIO = """
duration = "1 s"
[link.path]
between = ["A", "B"]
rate = "2 Mbit/s"
delay = "5 ms"
forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]
[flow.main]
from = "A"
to = "B"
"""


@pytest.mark.parametrize(
    ("value", "bounds"),
    [
        ("goodput", (0.0, INF)),
        ("used", (0.0, 1.0)),
        ("used[reno]", (0.0, 1.0)),
        ("2 * used", (0.0, INF)),
        ("ratio", (0.0, INF)),
        ("gain", UNBOUNDED),
        ("-goodput", UNBOUNDED),
        ("abs(gain)", UNBOUNDED),
    ],
)
def test_a_difference_has_no_bounds(tmp_path: Path, value: str, bounds: tuple[float, float]) -> None:
    column = f'column = [{{ name = "c", title = "c", value = "{value}" }}]\n'
    (tmp_path / "study.toml").write_text(f'{STUDY}[[table]]\nid = "t"\ntitle = "t"\nrows = "loss"\n{column}')
    (tmp_path / "path.toml").write_text(SCENARIO)
    definition = load(tmp_path)
    assert bounds_of(definition, definition.tables[0].columns[0].value) == bounds
