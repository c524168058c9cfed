"""Figures from implementations that are not ours, row by row beside what the engine gives.

One module per file of figures, each with a page in ``docs/validation``; ``__main__`` runs them.
"""

import sys
from pathlib import Path

# Pages have generated parts, which the scripts in tools/ write too.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
