"""The tools are scripts, not a package: this adds their folder, and that of the tests, to the path."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent / "tools"), str(TESTS)]
