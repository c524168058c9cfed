"""The list of fuzz targets in the Makefile, which ``.ci/run all`` runs briefly."""

from __future__ import annotations

import re
from pathlib import Path

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


def manifest() -> str:
    """The manifest of the fuzz targets."""
    return (ROOT / "fuzz/Cargo.toml").read_text(encoding="utf-8")
