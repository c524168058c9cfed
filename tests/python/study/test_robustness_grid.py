"""The robustness of a claim on its grid: other values of axes, other seeds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anabranch.report.study_output import legend
from anabranch.study import Study
from anabranch.study.results import Condition, Pool

from .mistakes import change, refused

STUDY = """\
title = "Random loss"

[[open]]
name = "queue"
set = { "link.path.queue.limit" = "{} packets" }
value = 50
range = [5, 50]
integer = true
why = "Not said."

[axis.loss]
path = "link.path.forward.impair.0.rate"
quick = [0.001]
full = [0, 0.001, 0.02]

[axis.delay]
set = { "link.path.delay" = "{} ms" }
values = [10]

[variant.reno]
set = { "flow.main.cc" = "reno" }

[variant.cubic]
set = { "flow.main.cc" = "cubic" }

[experiment.lossy]
scenario = "path.toml"
axes = ["loss"]

[experiment.long]
scenario = "path.toml"
axes = ["delay"]

[quantity.goodput]
path = "flow.main.goodput_mbit_s"

[wrong.lossless]
title = "nothing is lost"
set = { "link.path.forward.impair.0.rate" = 0 }

[[claim]]
id = "A"
claim = "Some goodput"
published = "our own"
accept_if = "above 0"
measure = { least = "min(goodput[reno])" }
accept = "least > 0"
control = "lossless"

[[claim]]
id = "B"
claim = "Loss costs goodput"
published = "our own"
accept_if = "less at 2 % than without loss"
full_only = true
robustness = { axes = { loss = [0, 0.02] }, repeat = 2 }
measure = { ratio = "mean(goodput[cubic, loss == 0.02]) / mean(goodput[cubic, loss == 0])" }
accept = "ratio < 0.9"
control = "lossless"
"""

PATH = """\
duration = "2 s"

[link.path]
between = ["A", "B"]
rate = "5 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "50 packets" }
forward.impair = [{ kind = "bernoulli-loss", rate = 0.001 }]

[flow.main]
from = "A"
to = "B"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study with a claim that only its robustness grid and the full grid can judge."""
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "path.toml").write_text(PATH)
    return tmp_path


def test_a_condition_with_a_grid_has_its_points_and_seeds(study: Path) -> None:
    definition = Study.load(study).definition
    (claim,) = (c for c in definition.claims if c.id == "B")
    jobs = Pool(definition).plan(Condition(grid=claim.robustness))
    assert {j.point for j in jobs if j.experiment == "lossy"} == {(0,), (0.02,)}
    assert {j.point for j in jobs if j.experiment == "long"} == {(10,)}
    assert {j.seed for j in jobs} == {1, 2}


def test_a_claim_that_the_quick_grid_cannot_judge_has_a_robustness(study: Path) -> None:
    result = Study.load(study).run(quick=True, robustness=True)
    a, b = result.claims
    assert (a.robustness, b.robustness) == (1, 1)
    assert b.verdict == "inconclusive"
    kept = json.loads((study / "robustness.json").read_bytes())
    assert kept["grids"] == {"B": {"axes": {"loss": [0, 0.02]}, "repeat": 2}}
    assert all(point["holds"] == {"A": True, "B": True} for point in kept["points"])
    assert "on the quick grid, B on a separate grid." in legend(result)[0]
    assert not Study.load(study).run(quick=True).claims[1].stale

    change(study, "repeat = 2", "repeat = 3")
    assert Study.load(study).run(quick=True).claims[1].stale


def test_without_a_grid_it_has_none(study: Path) -> None:
    change(study, "robustness = { axes = { loss = [0, 0.02] }, repeat = 2 }\n", "")
    result = Study.load(study).run(quick=True, robustness=True)
    assert [c.robustness for c in result.claims] == [1, None]
    assert "at which the claim holds, on the quick grid." in legend(result)[0]


@pytest.mark.parametrize(
    ("new", "says"),
    [
        ("{ axes = { los = [0, 0.02] } }", '"los" is no axis\n*  did you mean "loss"?'),
        ("{ axes = { delay = [10, 20] } }", 'no experiment of B has the axis "delay"'),
        ("{ axes = { loss = [] } }", "loss must be a list of numbers, or { from, to, step }"),
        ("{ repeat = 0 }", "repeat must be a whole number of at least 1"),
        ("{ repeats = 3 }", 'unknown key "repeats"\n*  did you mean "repeat"?'),
        ("{ }", "it changes nothing of the quick grid: axes or repeat is needed"),
        ("9", "robustness must be a table"),
    ],
)
def test_mistakes_have_a_location(study: Path, new: str, says: str) -> None:
    change(study, "{ axes = { loss = [0, 0.02] }, repeat = 2 }", new)
    for part in says.split("\n*"):
        refused(study, part)
