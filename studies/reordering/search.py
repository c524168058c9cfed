"""Where among the settings that the report leaves open do most of its claims hold together?

    python studies/reordering/search.py [--points N] [--best K]

Judges the claims at N points of a Latin hypercube over the open parameters of the report's own runs, on the quick grid,
then at the K best points on the full grid. Prints how often each set of claims fails, and which fail at the best.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from anabranch.study import needs
from anabranch.study.definition import Claim, Definition
from anabranch.study.parse import load
from anabranch.study.results import Condition, Pool
from anabranch.study.robustness import latin_hypercube
from anabranch.study.verdict import judge

HERE = Path(__file__).resolve().parent
SEED = 2026

Chosen = tuple[tuple[str, Any], ...]


def points(study: Definition, count: int) -> Iterator[Chosen]:
    """Points over what the report's own runs leave open."""
    opens = [parameter for parameter in study.opens if "reordering" in parameter.experiments]
    for unit in latin_hypercube(count, len(opens), SEED):
        yield tuple((parameter.name, parameter.at(u)) for parameter, u in zip(opens, unit, strict=True))


def fails(study: Definition, claims: Sequence[Claim], chosen: Chosen, *, full: bool) -> tuple[str, ...]:
    """The claims that do not hold at a point."""
    pool = Pool(study, None)
    plan = needs.only(pool.plan(Condition(full=full, opens=chosen)), needs.of_claims(study, claims))
    pool.make(plan)
    results = pool.results(plan)
    return tuple(claim.id for claim in claims if judge(claim, results).holds is not True)


def main() -> int:
    """Search, and print what was found."""
    parser = argparse.ArgumentParser(description="Where most claims hold together.")
    parser.add_argument("--points", type=int, default=256, help="points on the quick grid (256)")
    parser.add_argument("--best", type=int, default=12, help="points that are judged on the full grid (12)")
    given = parser.parse_args()
    study = load(HERE)
    claims = [claim for claim in study.claims if claim.section is None]
    quick = [(fails(study, claims, chosen, full=False), chosen) for chosen in points(study, given.points)]
    quick.sort(key=lambda found: (len(found[0]), found[0]))
    sys.stdout.write("| fail on the quick grid | points |\n| --- | --- |\n")
    kinds = [failing for failing, _ in quick]
    for failing in dict.fromkeys(kinds[: 8 * given.best]):
        sys.stdout.write(f"| {', '.join(failing) or 'none'} | {kinds.count(failing)} |\n")
    sys.stdout.write("\n| fail on the quick grid | fail on the full grid | point |\n| --- | --- | --- |\n")
    for failing, chosen in quick[: given.best]:
        full = fails(study, claims, chosen, full=True)
        shown = ", ".join(f"{name} = {value}" for name, value in chosen)
        sys.stdout.write(f"| {', '.join(failing) or 'none'} | {', '.join(full) or 'none'} | {shown} |\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
