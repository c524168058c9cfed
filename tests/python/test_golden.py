"""The same scenario and seed give the same digest from Rust, from Python and from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch import _engine

ROOT = Path(__file__).resolve().parents[2]
CASES = [line.split("\t") for line in (ROOT / "tests/golden/digests.tsv").read_text().splitlines()]


@pytest.mark.parametrize(("file", "digest", "sets"), [(f, d, s) for f, d, *s in CASES])
def test_the_digest_matches_the_recorded_one(file: str, digest: str, sets: list[str]) -> None:
    """One run, many runs at once, and the command line."""
    text = (ROOT / file).read_text()
    assert json.loads(_engine.run(text, file, sets).summary_json)["digest"] == digest
    for run in _engine.run_many([(text, file, sets, None)] * 3, threads=2):
        assert json.loads(run.summary_json)["digest"] == digest
    command = [sys.executable, "-m", "anabranch", "run", file, "--json"]
    for item in sets:
        command += ["--set", item]
    # The command is our own.
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    assert json.loads(done.stdout)["digest"] == digest
