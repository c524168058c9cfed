"""Set the given figures beside ours, row by row.

    python validation/compare.py                    prints the tables and the verdicts
    python validation/compare.py --write            also writes the pages and figures of docs/validation
    python validation/compare.py --check            compares those instead; exit status 1 when one is out of date
    python validation/compare.py linux-two-flows    only that file of figures

Exit status 1 also when a row is not as its page explains it. ``validation/tests`` runs the same comparisons.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from rich import box
from rich.console import Console
from rich.table import Table

from comparison import (
    fairness_mixes_study,
    fairness_study,
    fec_frontier_study,
    fec_study,
    link_aggregation_study,
    link_frontier_study,
    linux_reordering,
    linux_single_flow,
    linux_two_flows,
    mixes,
    multipath_frontier_study,
    multipath_study,
    ns2_fairness,
    ns2_sack_delay,
    ns2_single_flow,
    ns3_reordering,
    ns3_single_flow,
    pages,
    reordering_study,
)
from comparison.pages import Comparison

COMPARISONS: dict[str, Callable[[], Comparison]] = {
    module.NAME: module.comparison
    for module in (
        linux_single_flow,
        linux_two_flows,
        linux_reordering,
        ns3_single_flow,
        ns3_reordering,
        ns2_sack_delay,
        ns2_single_flow,
        ns2_fairness,
        mixes,
        reordering_study,
        fairness_study,
        fairness_mixes_study,
        link_aggregation_study,
        link_frontier_study,
        multipath_study,
        multipath_frontier_study,
        fec_study,
        fec_frontier_study,
    )
}


def main() -> int:
    """Compare; print, write or check."""
    parser = argparse.ArgumentParser(description="Set the given figures beside ours, row by row.")
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"{', '.join(COMPARISONS)}; all when left out")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--write", action="store_true", help=f"write the pages and figures of {pages.FOLDER}")
    mode.add_argument("--check", action="store_true", help="compare with those instead of printing")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in COMPARISONS]
    if unknown:
        parser.error(f"there is no {unknown[0]}; there are {', '.join(COMPARISONS)}")
    status = 0
    for name in arguments.names or COMPARISONS:
        done = COMPARISONS[name]()
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
    """Print what was judged as a table."""
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
