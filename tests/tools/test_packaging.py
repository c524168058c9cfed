"""What packages are made from: metadata that agree, workflows that name what exists."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_version_is_one() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == cargo["workspace"]["package"]["version"]
    assert citation["license"] in PROJECT["project"]["license"]


def test_what_a_wheel_includes_is_there() -> None:
    for pattern in (*PROJECT["tool"]["maturin"]["include"], *PROJECT["project"]["license-files"]):
        assert [path for path in ROOT.glob(pattern) if path.is_file()], pattern
    for kind in ("studies", "scenarios"):
        link = ROOT / "python/anabranch" / kind
        assert link.is_symlink()
        assert link.resolve() == ROOT / kind


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_what_exists(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text("utf-8"))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert all(("run" in step) != ("uses" in step) for step in steps)
    for line in (step["run"] for step in steps if "run" in step):
        command = line.split()[0]
        if command == "make":
            assert line.split()[1] in targets, line
        elif "/" in command:
            assert os.access(ROOT / command, os.X_OK), line


def test_scripts_can_be_called() -> None:
    for name in ("tools/build_wheel", "packaging/try-wheel", "packaging/build-deb", "tools/bootstrap", ".ci/run"):
        assert (ROOT / name).stat().st_mode & stat.S_IXUSR, name


def test_run_dependencies_are_the_packages() -> None:
    """requirements.in has what pyproject.toml depends on, and what builds the engine."""
    lines = (ROOT / "requirements.in").read_text("utf-8").splitlines()
    wanted = {line for line in lines if line and not line.startswith("#")}
    assert wanted == {*PROJECT["project"]["dependencies"], "maturin>=1.9,<2"}
