"""Figures of other implementations compared with the engine's, row by row.

``validation/comparisons`` has a file for each comparison; ``every.py`` finds its module.
"""

import sys
from pathlib import Path

# Scripts in tools/ also write generated parts of pages.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
