"""In a guest: run tests of pytest, and leave a report of each phase of each in the job's folder.

``python inside.py ID…`` with the ids of tests, as `conftest.py` starts it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from anabranch.kernel.machine import Job

ROOT = Path(__file__).resolve().parents[2]
INSIDE = "ANABRANCH_INSIDE"
"""In the environment of pytest in a guest."""
REPORTS = "reports"
"""The job's file of reports: a line of JSON for each."""


class Reporter:
    """Writes reports and, as the job's progress, how many tests are over."""

    def __init__(self) -> None:
        """Begin with an empty file."""
        self.file = (Job.INSIDE / REPORTS).open("w", encoding="utf-8")
        self.over = 0

    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep what makes reports text."""
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of a test: set-up, the test or tear-down."""
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.file.write(json.dumps(data) + "\n")
        self.file.flush()
        if report.when == "teardown":
            self.over += 1
            (Job.INSIDE / "progress").write_text(str(self.over), "ascii")


def main(ids: list[str]) -> int:
    """Run them; pytest's exit status."""
    # Nothing of the checkout can be written here.
    options = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider", "-m", ""]
    return int(pytest.main([*options, *ids], plugins=[Reporter()]))


if __name__ == "__main__":
    os.environ[INSIDE] = "yes"
    sys.exit(main(sys.argv[1:]))
