"""The comparisons are scripts, not a package: this adds their folder to the path of the tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
