"""The verdict on a claim of the study for further sets of seeds, which the study's own runs do not use.

    python studies/fec/seeds.py [--quick] [--claim C7] [FIRST ...]

Each FIRST is the first seed of a set; the set has as many seeds as the grid has runs per point. Prints a Markdown
table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from anabranch.study import needs
from anabranch.study.definition import Claim, Definition
from anabranch.study.parse import load
from anabranch.study.results import Condition, Pool
from anabranch.study.verdict import judge

HERE = Path(__file__).resolve().parent
FIRST = (1001, 2001, 3001, 4001, 5001)
"""First seeds of the sets; the study's own runs have the seeds 1 to 9."""


def rows(definition: Definition, claim: Claim, first: Sequence[int], *, full: bool) -> Iterator[list[str]]:
    """Each set's seeds, its verdict and its figures."""
    for seed in first:
        pool = Pool(definition, 1)
        pool.first_seed = lambda _, seed=seed: seed  # type: ignore[assignment, misc]
        plan = needs.only(pool.plan(Condition(full=full)), needs.of_claims(definition, [claim]))
        pool.make(plan)
        results = pool.results(plan)
        judged = judge(claim, results)
        seeds = results.seeds()
        yield [f"{seeds[0]} to {seeds[-1]}", judged.word, judged.measured, judged.reason]


def main() -> None:
    """Print a row for each set of seeds."""
    definition = load(HERE)
    claims = {claim.id: claim for claim in definition.claims}
    parser = argparse.ArgumentParser(description="The verdict on a claim for further sets of seeds.")
    parser.add_argument("first", metavar="FIRST", nargs="*", type=int, help="first seed of a set")
    parser.add_argument("--claim", default="C7", choices=claims)
    parser.add_argument("--quick", action="store_true", help="the quick grid instead of the full one")
    given = parser.parse_args()
    sys.stdout.write("| seeds | verdict | measured | reason |\n| --- | --- | --- | --- |\n")
    for row in rows(definition, claims[given.claim], given.first or FIRST, full=not given.quick):
        sys.stdout.write(f"| {' | '.join(row)} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
