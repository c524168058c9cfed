"""Figures from implementations that are not ours, row by row beside what the engine gives.

``validation/comparisons`` has a file for each; ``every.py`` finds what reads it.
"""

import sys
from pathlib import Path

# Pages have generated parts, which the scripts in tools/ write too.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
