"""Every verdict, from synthetic runs that determine it."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.study.definition import Claim, Definition
from anabranch.study.parse import load
from anabranch.study.results import Job, Outcome, Results
from anabranch.study.verdict import INCONCLUSIVE, Judgement, conclude, judge


@pytest.fixture
def definition(sample_study: Path) -> Definition:
    return load(sample_study)


def results(definition: Definition, lowest: float, seeds: int = 1, spread: float = 0.0) -> Results:
    """NewReno at ``lowest`` of 10 Mbit/s at RI 8; all others without reduction."""
    runs = []
    for seed in range(1, seeds + 1):
        for variant in definition.variants:
            for experiment, points in (("reordering", [(4,), (8,)]), ("plain", [()])):
                for point in points:
                    hit = variant == "newreno" and point == (8,)
                    rate = 10.0 * (lowest if hit else 1.0) + spread * (-1) ** seed * seed
                    job = Job(experiment, variant, point, seed, Path("reordering.toml"), (), None)
                    runs.append((job, Outcome({"flow.main.throughput_mbit_s": rate}, None, {})))
    return Results(definition, runs)


def claim(definition: Definition, name: str) -> Claim:
    return next(c for c in definition.claims if c.id == name)


def test_reproduced(definition: Definition) -> None:
    judgement = judge(claim(definition, "S2"), results(definition, 0.5))
    assert judgement == Judgement(True, {"lowest": 0.5})
    assert judgement.measured == "lowest 0.5"


@pytest.mark.parametrize("lowest", [0.39, 0.61, 1.0])
def test_not_reproduced(definition: Definition, lowest: float) -> None:
    judgement = judge(claim(definition, "S2"), results(definition, lowest))
    assert judgement.holds is False
    assert judgement.reason == "does not hold: 0.40 <= lowest <= 0.60"


def test_missing_measurements_are_inconclusive(definition: Definition) -> None:
    judgement = judge(claim(definition, "S11"), results(definition, 0.5))
    assert judgement.holds is None
    assert judgement.reason == "cwnd_ratio: no samples were kept for cwnd; slow_starts: no samples were kept for state"


def test_a_failed_condition_outweighs_a_missing_one(definition: Definition) -> None:
    plain = results(definition, 0.5)
    for _, outcome in plain.runs:
        outcome.figures["flow.main.fast_recoveries"] = 0.0  # type: ignore[index]
    judgement = judge(claim(definition, "S5"), plain)
    assert judgement.holds is False
    assert judgement.reason == "does not hold: fewest > 0"


def test_a_check_that_accepts_its_wrong_system_proves_nothing(definition: Definition) -> None:
    good = Judgement(True, {"lowest": 0.5})
    result = conclude(claim(definition, "S2"), good, control=good)
    assert result.check_failed
    assert result.verdict == INCONCLUSIVE
    assert result.why == "the check accepts the wrong system, too (lowest 0.5): no number of runs settles it"


@pytest.mark.parametrize(
    ("jitter", "robustness", "verdict"),
    [
        (None, None, "reproduced"),
        (0.5, 0.5, "reproduced"),
        (0.45, 1.0, "reproduced (fragile)"),
        (1.0, 0.49, "reproduced (fragile)"),
    ],
)
def test_fragile_below_half(
    definition: Definition, jitter: float | None, robustness: float | None, verdict: str
) -> None:
    wrong = Judgement(False, {}, "does not hold")
    result = conclude(claim(definition, "S2"), Judgement(True), control=wrong, jitter=jitter, robustness=robustness)
    assert result.verdict == verdict
    assert bool(result.why) == (verdict != "reproduced")


def test_fragile_never_hides_not_reproduced(definition: Definition) -> None:
    result = conclude(claim(definition, "S2"), Judgement(False, {}, "does not hold: x"), jitter=0.0, robustness=1.0)
    assert result.verdict == "not reproduced"


def test_undecided_says_how_many_runs(sample_study: Path, tmp_path: Path) -> None:
    import shutil

    target = tmp_path / "study"
    shutil.copytree(sample_study, target)
    path = target / "study.toml"
    text = path.read_text(encoding="utf-8").replace(
        'measure = { lowest = "min(normalised[newreno, 4 <= ri <= 99])" }\naccept = "0.40 <= lowest <= 0.60"',
        'measure = { worst = "min(lower95(throughput[cubic] - throughput[newreno]))" }\naccept = "worst > 0"\n'
        'undecided = { difference = "throughput[cubic] - throughput[newreno, ri == 8]" }',
    )
    path.write_text(text, encoding="utf-8")
    definition = load(target)
    runs = results(definition, 0.97, seeds=4)
    for job, outcome in runs.runs:
        if job.variant == "newreno":
            outcome.figures["flow.main.throughput_mbit_s"] += (job.seed - 2.5) * 0.5  # type: ignore[index,operator]
    judgement = judge(claim(definition, "S2"), runs)
    assert judgement.holds is None
    assert "the 95 % interval holds 0 at 2 point(s); about " in judgement.reason
    assert judgement.reason.endswith("runs per point would settle it")
