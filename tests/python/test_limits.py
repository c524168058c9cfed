from __future__ import annotations

from pathlib import Path

import pytest

from anabranch import Scenario, Study, UserError
from anabranch.limits import MAX_SEED, check_jobs, check_samples, check_seed, thread_count


def test_values_in_range_pass() -> None:
    for seed in (None, 0, MAX_SEED):
        check_seed(seed)
    for samples_ms in (None, 0.001, 1e9):
        check_samples(samples_ms)
    for jobs in (None, 1, 1024):
        check_jobs(jobs)


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1])
def test_seed_of_a_library_call(scenario_file: Path, seed: int) -> None:
    with pytest.raises(UserError, match="a whole number from 0 to 9223372036854775807 was expected"):
        Scenario.from_file(scenario_file).run(seed=seed)
    with pytest.raises(UserError, match="a whole number from 0"):
        Scenario.from_file(scenario_file).resolve(seed=seed)


@pytest.mark.parametrize("samples_ms", [float("inf"), float("nan"), 0.0, -1.0, 1e-12])
def test_samples_of_a_library_call(scenario_file: Path, samples_ms: float) -> None:
    with pytest.raises(UserError, match=r"at least 0\.001 ms was expected"):
        Scenario.from_file(scenario_file).run(samples_ms=samples_ms)


@pytest.mark.parametrize("jobs", [-1, 0, 1025])
def test_jobs_of_a_library_call(sample_study: Path, jobs: int) -> None:
    with pytest.raises(UserError, match=f"jobs={jobs}: at "):
        Study.load(sample_study).run(quick=True, jobs=jobs)


def test_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert [thread_count(None, 100), thread_count(3, 100), thread_count(500, 100), thread_count(8, 2)] == [4, 3, 16, 2]
    assert thread_count(None, 0) == 1
