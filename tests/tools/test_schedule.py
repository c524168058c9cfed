"""The tests of Ray clusters run every night, in an environment that `make test` has not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]


def commands(target: str) -> str:
    """The commands of a target of the Makefile, none of them run."""
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607
    return done.stdout


def test_all_tests_include_those_of_clusters() -> None:
    assert ".tools/cluster/bin/python -m pytest -rs tests/cluster" in commands("test-all")
    assert "tests/cluster" not in commands("test")


def test_the_schedule_has_the_long_checks() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/schedule.yml").read_text("utf-8"))
    # YAML 1.1 reads the key `on` as true.
    assert workflow[True]["schedule"]
    job = workflow["jobs"]["long"]
    assert set(job["strategy"]["matrix"]["command"]) == {"make test-all", ".ci/run all"}
    assert job["steps"][-1]["run"] == "${{ matrix.command }}"


def test_ray_is_locked_for_its_tests_alone() -> None:
    locks = {lock: f"\n{(ROOT / lock).read_text('utf-8')}" for lock in
             ("requirements.lock", "requirements-dev.lock", "requirements-cluster.lock")}  # fmt: skip
    assert [lock for lock, text in locks.items() if "\nray==" in text] == ["requirements-cluster.lock"]
