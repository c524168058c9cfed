"""The comparisons are scripts, not a package: put their folder where tests can import them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
