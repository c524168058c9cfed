"""Print the Rust tests that the last run skipped, with reasons.

    python tools/rust_skips.py [JUNIT]

Rust's test harness has no skipped tests. A test that cannot run on the machine prints ``SKIPPED:
why`` and passes; nextest keeps the output (.config/nextest.toml).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "target/nextest/default/junit.xml"
MARK = "SKIPPED: "


def skipped(report: Path) -> dict[str, list[str]]:
    """Reasons, each with its skipped tests."""
    found: dict[str, list[str]] = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 (cargo wrote it)
        for stream in ("system-out", "system-err"):
            for line in case.findtext(stream, "").splitlines():
                if line.startswith(MARK):
                    found[line.removeprefix(MARK)].append(f"{case.get('classname')} {case.get('name')}")
    return found


def main() -> int:
    """Print a line for each reason, as pytest does."""
    report = Path(sys.argv[1]) if len(sys.argv) > 1 else REPORT
    for reason, tests in skipped(report).items():
        print(f"SKIPPED [{len(tests)}] {tests[0]}{', …' if len(tests) > 1 else ''}: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
