"""Check the changed files: formatting, lints and unit tests of the crates and Python files concerned.

    python tools/check_changed.py          changes since the last commit; if there are none, the last commit itself
    python tools/check_changed.py REV      changes since REV

`make test` and `make lint` check everything. A change of `Cargo.toml` or `pyproject.toml` selects
no crate or file.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def changed(revision: str | None) -> list[Path]:
    """The changed files that still exist."""
    if revision is None:
        names = _git("diff", "--name-only", "HEAD") + _git("ls-files", "--others", "--exclude-standard")
        if not names:
            names = _git("diff", "--name-only", "HEAD~1")
    else:
        names = _git("diff", "--name-only", revision)
    return [Path(name) for name in dict.fromkeys(names) if (ROOT / name).exists()]


def crates(files: list[Path]) -> list[str]:
    """The workspace packages to which the files belong."""
    folders = dict.fromkeys(file.parts[1] for file in files if file.parts[0] == "crates" and len(file.parts) > 2)
    return [folder if folder == "anabranch" else f"anabranch-{folder}" for folder in folders]


def commands(files: list[Path]) -> list[list[str]]:
    """The commands to run, in order; the first failure ends the check."""
    rust = [str(file) for file in files if file.suffix == ".rs"]
    python = [str(file) for file in files if file.suffix == ".py"]
    tests = [name for name in python if Path(name).name.startswith("test_") and not name.startswith("tests/live")]
    packages = crates(files)
    named = [part for package in packages for part in ("-p", package)]
    tested = [part for package in packages if package != "anabranch-py" for part in ("-p", package)]
    steps = []
    if rust:
        steps.append(["rustfmt", "--check", "--edition", "2024", *rust])
    if python:
        steps += [["ruff", "format", "--check", *python], ["ruff", "check", *python]]
        steps.append(["env", "MYPYPATH=tools:validation:tests", "mypy", "--strict", *python])
    if packages:
        steps.append(
            ["cargo", "clippy", "--profile", "release", "--locked", "--all-targets", *named, "--", "-D", "warnings"]
        )
    if tested:
        steps.append(
            ["env", "PROPTEST_RNG_SEED=1", "cargo", "nextest", "run", "--cargo-profile", "release", "--locked", *tested]
        )
    if tests:
        if packages:
            # Rebuild the engine from the changed sources.
            steps.append(["tools/bootstrap", "dev"])
        steps.append(["python", "-m", "pytest", "-m", "not slow and not long", *tests])
    return steps


def main() -> int:
    """Run the checks; the exit status is that of the first failure."""
    files = changed(sys.argv[1] if len(sys.argv) > 1 else None)
    steps = commands(files)
    print(f"{len(files)} files changed, {len(steps)} checks")
    for step in steps:
        print("$", " ".join(step[:6]), "…" if len(step) > 6 else "", flush=True)
        done = subprocess.run([ROOT / "tools" / "env", *step], cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
    return 0


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.split()


if __name__ == "__main__":
    sys.exit(main())
