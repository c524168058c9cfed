"""Sources of packages: consistent metadata, and workflows that name existing files."""

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


def test_the_version_is_the_same_everywhere() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == cargo["workspace"]["package"]["version"]
    assert citation["license"] in PROJECT["project"]["license"]


def test_files_included_in_a_wheel_exist() -> None:
    built = "python/anabranch/studio/studio.html"
    assert f"OUT={built}" in (ROOT / "tools/build_studio").read_text("utf-8").splitlines()
    patterns = {*PROJECT["tool"]["maturin"]["include"], *PROJECT["project"]["license-files"]}
    for pattern in patterns - {built}:
        assert [path for path in ROOT.glob(pattern) if path.is_file()], pattern
    for kind in ("studies", "scenarios"):
        link = ROOT / "python/anabranch" / kind
        assert link.is_symlink()
        assert link.resolve() == ROOT / kind


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_existing_files(path: Path) -> None:
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


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_named_by_commit(path: Path) -> None:
    """A tag can be moved to other code; the comment names the release of the commit."""
    used = re.findall(r"^ *- uses: (.*)$", path.read_text("utf-8"), re.MULTILINE)
    assert used
    for line in used:
        assert re.fullmatch(r"[\w.-]+(/[\w.-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_a_release_is_built_tested_attested_and_published_in_order() -> None:
    """Detects a wheel that is published untested or unattested, and a job with unnecessary write permissions."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text("utf-8"))["jobs"]
    targets = {one["target"]: one for one in jobs["wheel"]["strategy"]["matrix"]["include"]}
    assert set(targets) == {
        f"{machine}-unknown-linux-{libc}" for machine in ("x86_64", "aarch64") for libc in ("gnu", "musl")
    }
    for target, one in targets.items():
        assert one["runner"].endswith("-arm") == target.startswith("aarch64")
        assert ("alpine" in one.get("image", "")) == target.endswith("-musl")
    steps = [step.get("run", step.get("uses", "")) for step in jobs["wheel"]["steps"]]
    (built,) = (at for at, step in enumerate(steps) if step.startswith("tools/build_wheel --target"))
    tried = [at for at, step in enumerate(steps) if "packaging/try-wheel" in step]
    (kept,) = (at for at, step in enumerate(steps) if "upload-artifact" in step)
    assert len(tried) == 2
    assert built < min(tried)
    assert max(tried) < kept
    assert (jobs["attest"]["needs"], jobs["publish"]["needs"]) == ("wheel", "attest")
    assert any("attest-build-provenance" in step["uses"] for step in jobs["attest"]["steps"])
    assert "permissions" not in jobs["wheel"]
    assert jobs["attest"]["permissions"] == {"id-token": "write", "attestations": "write"}
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    for name in ("attest", "publish"):
        assert jobs[name]["if"] == "startsWith(github.ref, 'refs/tags/v')"


def test_scripts_are_executable() -> None:
    for name in ("tools/build_wheel", "packaging/try-wheel", "packaging/build-deb", "tools/bootstrap", ".ci/run"):
        assert (ROOT / name).stat().st_mode & stat.S_IXUSR, name


def test_run_dependencies_match_the_package() -> None:
    """requirements.in has the dependencies of pyproject.toml, its extra `all`, and the build tool of the engine."""
    lines = (ROOT / "requirements.in").read_text("utf-8").splitlines()
    wanted = {line for line in lines if line and not line.startswith("#")}
    extras = PROJECT["project"]["optional-dependencies"]
    assert set(extras["all"]) == {*extras["tables"], *extras["figures"]}
    assert wanted == {*PROJECT["project"]["dependencies"], *extras["all"], "maturin>=1.9,<2"}
