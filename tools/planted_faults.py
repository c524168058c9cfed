"""Plant faults in the Python sources, one at a time, and check whether the tests detect them.

    python tools/planted_faults.py              every fault of planted_faults.toml: minutes
    python tools/planted_faults.py study/       the faults of files whose path has this text

A reduction of the tests must not reduce the number of detected faults
(docs/design/012-what-tests-run.md). Faults are planted in a copy of the checkout. The exit status
is 1 if a fault is not detected that the file does not call `missed`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 900
NOT_COPIED = shutil.ignore_patterns("target", ".git", ".venv", ".tools", "out", "site", "__pycache__")


@dataclass(frozen=True)
class Fault:
    """A replaced line, and the tests that should detect it.

    Attributes:
        file: The source.
        old: The original line, which occurs once in the file.
        new: The line that replaces it.
        tests: Arguments of pytest.
        missed: The reason why no test has to detect the fault; empty if one has to.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    missed: str = ""

    @classmethod
    def of(cls, table: dict[str, Any]) -> Fault:
        """The fault in a table of the file."""
        return cls(**{**table, "tests": tuple(table["tests"])})


def faults(file: Path) -> Iterator[Fault]:
    """The faults of a file."""
    for table in tomllib.loads(file.read_text("utf-8"))["fault"]:
        yield Fault.of(table)


def planted(text: str, fault: Fault) -> str:
    """The source with the fault."""
    lines = text.split("\n")
    if lines.count(fault.old) != 1:
        raise SystemExit(f"{fault.file}: {lines.count(fault.old)} lines are {fault.old!r}; one was expected")
    lines[lines.index(fault.old)] = fault.new
    return "\n".join(lines)


def passes(copy: Path, tests: tuple[str, ...]) -> bool:
    """Whether the tests pass in this copy; a timeout is a failure."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not long"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=copy,
            env=environment,
            capture_output=True,
            check=False,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def is_found(copy: Path, fault: Fault) -> bool:
    """Whether a test detects the fault in this copy."""
    file = copy / fault.file
    before = file.read_text("utf-8")
    file.write_text(planted(before, fault), "utf-8")
    try:
        return not passes(copy, fault.tests)
    finally:
        file.write_text(before, "utf-8")


def main() -> int:
    """Plant the faults; print the undetected ones."""
    words = sys.argv[1:]
    chosen = [
        fault
        for fault in faults(ROOT / "tools" / "planted_faults.toml")
        if not words or any(word in fault.file for word in words)
    ]
    found, surprises = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(ROOT, copy, symlinks=True, ignore=NOT_COPIED)
        # Tests that already fail would appear to detect every fault.
        for tests in dict.fromkeys(fault.tests for fault in chosen):
            if not passes(copy, tests):
                raise SystemExit(f"without a fault these tests fail: pytest {' '.join(tests)}")
        for fault in chosen:
            if is_found(copy, fault):
                found += 1
            else:
                surprises += not fault.missed
                print(
                    f"not found: {fault.file}: {fault.new.strip()}{fault.missed and f' ({fault.missed})'}", flush=True
                )
    print(f"{found} of {len(chosen)} faults are found")
    return int(surprises > 0)


if __name__ == "__main__":
    sys.exit(main())
