"""Nightly checks: Ray clusters, in an environment that `make test` lacks, and the kernel of tests in virtual time."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from anabranch.kernel import build

ROOT = Path(__file__).resolve().parents[2]


def commands(target: str) -> str:
    """The commands of a target of the Makefile, without running them."""
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607
    return done.stdout


def test_all_tests_include_the_cluster_tests() -> None:
    assert ".tools/cluster/bin/python -m pytest -rs tests/cluster" in commands("test-all")
    assert "tests/cluster" not in commands("test")


def test_the_schedule_has_the_long_checks() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/schedule.yml").read_text("utf-8"))
    # YAML 1.1 reads the key `on` as true.
    assert workflow[True]["schedule"]
    job = workflow["jobs"]["long"]
    assert set(job["strategy"]["matrix"]["command"]) == {"make test-all", ".ci/run all"}
    assert job["steps"][-1]["run"] == "${{ matrix.command }}"


def steps(name: str) -> list[dict[str, Any]]:
    """The steps of all jobs of a workflow."""
    workflow = yaml.safe_load((ROOT / ".github/workflows" / name).read_text("utf-8"))
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_all_workflows_parse() -> None:
    for file in (ROOT / ".github/workflows").glob("*.yml"):
        assert steps(file.name), file.name


def test_the_nightly_run_builds_the_kernel_that_changes_use() -> None:
    """Detects caches under different keys, and a source of the recipe that the key omits."""
    nightly, change = steps("schedule.yml"), steps("test.yml")
    builds = [step for step in nightly if "kernel build" in step.get("run", "")]
    assert [step["if"] for step in builds] == ["steps.kernel.outputs.cache-hit != 'true'"]
    assert not any("kernel build" in step.get("run", "") for step in change)
    recipe = "kernel-${{ hashFiles('python/anabranch/kernel/guest/*') }}-"
    assert any(f"{recipe}$(dpkg-query" in step.get("run", "") for step in nightly)
    [restored] = [step["with"] for step in change if "cache/restore" in step.get("uses", "")]
    assert restored["restore-keys"] == recipe
    for source in (build.CONFIG, build._INIT_SOURCE, build._PRELOAD_SOURCE):
        assert source.parent == ROOT / "python/anabranch/kernel/guest"


def test_checks_of_a_change_build_no_kernel() -> None:
    """`.ci/run` uses an existing kernel: a build takes four minutes of both processors."""
    script = (ROOT / ".ci/run").read_text("utf-8")
    subprocess.run(["bash", "-n", ROOT / ".ci/run"], check=True)  # noqa: S607
    before, _, after = script.partition('if [ "${1:-}" = all ]; then\n    step "a kernel')
    assert "make kernel" not in before
    assert script.count("make kernel") == after.count("make kernel") == 1
    assert "kernel build" not in commands("test")


def test_ray_is_locked_only_for_its_tests() -> None:
    locks = {lock: f"\n{(ROOT / lock).read_text('utf-8')}" for lock in
             ("requirements.lock", "requirements-dev.lock", "requirements-cluster.lock")}  # fmt: skip
    assert [lock for lock, text in locks.items() if "\nray==" in text] == ["requirements-cluster.lock"]
