"""Compare the reference figures with ours, row by row.

    python validation/compare.py                    prints the tables and the verdicts
    python validation/compare.py --write            also writes the pages and figures of docs/validation
    python validation/compare.py --check            compares those instead; exit status 1 when one is out of date
    python validation/compare.py linux-two-flows    only that file of figures

Exit status 1 also if a row differs from its page's explanation. ``validation/tests`` runs the same
comparisons.
"""

from __future__ import annotations

import argparse
import sys

from rich import box
from rich.console import Console
from rich.table import Table

from comparison import every, pages
from comparison.pages import Comparison


def main() -> int:
    """Compare; print, write or check."""
    known = every.names()
    parser = argparse.ArgumentParser(description="Set the given figures beside ours, row by row.")
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"{', '.join(known)}; all when left out")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--write", action="store_true", help=f"write the pages and figures of {pages.FOLDER}")
    mode.add_argument("--check", action="store_true", help="compare with those instead of printing")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"there is no {unknown[0]}; there are {', '.join(known)}")
    status = 0
    for name in arguments.names or known:
        done = every.comparison(name)
        if arguments.write:
            pages.write(done)
        elif arguments.check:
            for path in pages.stale(done):
                print(f"{path}: out of date: run make compare", file=sys.stderr)
                status = 1
        else:
            for part, text in done.parts.items():
                if part != "verdict":
                    print(text)
        _print(done)
        for line in done.surprises:
            print(line, file=sys.stderr)
            status = 1
    if arguments.write:
        print(f"pages and figures: {pages.FOLDER}")
    return status


def _print(done: Comparison) -> None:
    """Print the verdicts as a table."""
    if not done.verdicts:
        return
    table = Table(title=done.name, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("condition", "found", "verdict"):
        table.add_column(heading)
    for verdict in done.verdicts:
        table.add_row(verdict.condition, verdict.found, verdict.word.strip("*"))
    Console(highlight=False, width=None if sys.stdout.isatty() else 140).print(table)


if __name__ == "__main__":
    sys.exit(main())
