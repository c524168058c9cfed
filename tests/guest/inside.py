"""In a guest: run tests of pytest, and write a report of each phase of each test into the job's folder.

``python inside.py ID…`` with the ids of tests; `conftest.py` starts it.
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
"""Set in the environment of pytest in a guest."""
REPORTS = "reports"
"""The job's file of reports: a line of JSON for each."""


class Reporter:
    """Writes reports and, as the job's progress, the number of finished tests."""

    def __init__(self) -> None:
        """Begin with an empty file."""
        self.file = (Job.INSIDE / REPORTS).open("w", encoding="utf-8")
        self.over = 0

    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep the configuration, which serializes reports."""
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the report of one phase of a test: set-up, the test or tear-down."""
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.file.write(json.dumps(data) + "\n")
        self.file.flush()
        if report.when == "teardown":
            self.over += 1
            (Job.INSIDE / "progress").write_text(str(self.over), "ascii")


def main(ids: list[str]) -> int:
    """Run the tests; return pytest's exit status."""
    # The checkout is read-only here.
    options = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider", "-m", ""]
    return int(pytest.main([*options, *ids], plugins=[Reporter()]))


if __name__ == "__main__":
    os.environ[INSIDE] = "yes"
    sys.exit(main(sys.argv[1:]))
