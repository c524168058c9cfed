"""Print the entries of ``docs/studies/unknown.md``: the figures of artefacts, inconsistencies and failed claims.

    python validation/unknown.py                every entry; a minute
    python validation/unknown.py L3             one entry
    python validation/unknown.py L3 --out DIR   also draws its picture, DIR/unknown-L3.svg

``python validation/compare.py --write unknown`` writes the page.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from anabranch.errors import nearest
from anabranch.plot.style import house_style

from comparison import unknown
from comparison.unknown.entries import ENTRIES


def main() -> int:
    """Print the tables, and draw the pictures."""
    parser = argparse.ArgumentParser(description="Print entries of docs/studies/unknown.md.")
    parser.add_argument("names", metavar="ENTRY", nargs="*", help=f"{', '.join(ENTRIES)}; all when left out")
    parser.add_argument("--out", metavar="DIR", type=Path, help="also draw the pictures, as SVG, into this directory")
    given = parser.parse_args()
    for name in given.names:
        if name not in ENTRIES:
            parser.error(f'there is no entry "{name}"; {nearest(name, list(ENTRIES))}')
    for name in given.names or ENTRIES:
        print(f"{name}: {ENTRIES[name].missing}\n\n{unknown.table(name)}")
        if given.out is not None:
            given.out.mkdir(parents=True, exist_ok=True)
            with house_style():
                unknown.made(name).draw().savefig(given.out / f"unknown-{name}.svg", format="svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
