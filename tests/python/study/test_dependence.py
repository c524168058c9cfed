"""What the robustness of a claim depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.study.dependence import splits
from anabranch.study.parse import load

SCENARIO = """
duration = "1 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "5 ms"
queue = { kind = "drop-tail", limit = "100 packets" }
[flow.main]
from = "A"
to = "B"
"""
STUDY = """
title = "A study"
variant.reno = { set = { "flow.main.cc" = "reno" } }
variant.cubic = { set = { "flow.main.cc" = "cubic" } }
experiment.runs = { scenario = "path.toml" }
quantity.goodput = { path = "flow.main.goodput_mbit_s" }

[[open]]
name = "rate"
title = "Rate (Mbit/s)"
set = { "link.path.rate" = "{} Mbit/s" }
value = 10
range = [5, 15]
why = "Not printed."

[[open]]
name = "beta"
title = "β"
path = "flow.main.cc.beta"
variants = ["cubic"]
value = 0.7
choices = [0.7, 0.8]
why = "Not printed."

[[claim]]
id = "Z1"
claim = "NewReno has more than 8 Mbit/s"
published = "9"
accept_if = "at least 8"
measure.most = "max(goodput[reno])"
accept = "most >= 8"
invariant = "a test"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "path.toml").write_text(SCENARIO)
    return tmp_path


def test_the_parameter_that_decides_is_named_with_its_counts(folder: Path) -> None:
    definition = load(folder)
    points = [({"rate": 5 + i, "beta": (0.7, 0.8)[i % 2]}, i > 5) for i in range(11)]
    (one,) = splits(definition, definition.claims[0], points)
    assert str(one) == "Rate (Mbit/s) (below 10: 0 of 5, from 10 on: 5 of 6)"
    assert one.difference == pytest.approx(5 / 6)


def test_a_parameter_of_other_variants_is_not_named(folder: Path) -> None:
    definition = load(folder)
    points = [({"rate": 10, "beta": (0.7, 0.8)[i % 2]}, i % 2 == 0) for i in range(20)]
    assert splits(definition, definition.claims[0], points) == []


def test_few_points_or_small_differences_name_nothing(folder: Path) -> None:
    definition = load(folder)
    few = [({"rate": 5 + i, "beta": 0.7}, i > 2) for i in range(6)]
    alike = [({"rate": 5 + i % 11, "beta": 0.7}, i % 3 == 0) for i in range(33)]
    assert splits(definition, definition.claims[0], few) == []
    assert splits(definition, definition.claims[0], alike) == []
