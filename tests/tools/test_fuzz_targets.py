"""The list of fuzz targets in the Makefile, which ``.ci/run all`` runs briefly."""

from __future__ import annotations

import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]


def test_every_fuzz_target_is_run() -> None:
    listed = re.search(r"^FUZZ_TARGETS := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert listed is not None
    targets = {file.stem for file in (ROOT / "fuzz/fuzz_targets").glob("*.rs")}
    assert sorted(listed[1].split()) == sorted(targets)
    declared = re.findall(r'^name = "(\w+)"\npath = "fuzz_targets/\1\.rs"', manifest(), re.MULTILINE)
    assert sorted(declared) == sorted(targets)


def test_ci_runs_the_fuzz_targets_briefly() -> None:
    assert re.search(r"^ *step .* make fuzz-brief$", (ROOT / ".ci/run").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_lock_has_the_dependencies_of_the_crates() -> None:
    # `make fuzz-brief` builds with --locked.
    lock = tomllib.loads((ROOT / "fuzz/Cargo.lock").read_text(encoding="utf-8"))
    locked = {package["name"]: set(package.get("dependencies", [])) for package in lock["package"]}
    for file in sorted((ROOT / "crates").glob("*/Cargo.toml")):
        crate = tomllib.loads(file.read_text(encoding="utf-8"))
        name = crate["package"]["name"]
        if name not in locked:
            continue
        needed = {one for one, how in crate.get("dependencies", {}).items() if not is_optional(how)}
        missing = {one for one in needed if one.startswith("anabranch")} - locked[name]
        assert not missing, f"{name}: cargo update --workspace --manifest-path fuzz/Cargo.toml"


def is_optional(how: object) -> bool:
    """Whether a dependency is optional."""
    return isinstance(how, dict) and bool(how.get("optional", False))


def manifest() -> str:
    """The manifest of the fuzz targets."""
    return (ROOT / "fuzz/Cargo.toml").read_text(encoding="utf-8")
