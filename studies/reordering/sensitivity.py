"""How many claims of the report hold when one open choice is another, all else as set.

    python studies/reordering/sensitivity.py [--quick]

Prints a Markdown table. Beside the open parameters of ``study.toml`` it shows three choices that are no open parameters
because the source decides them, and what they would do.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anabranch.study import needs
from anabranch.study.definition import Definition, Open
from anabranch.study.parse import load
from anabranch.study.results import Condition, Pool
from anabranch.study.verdict import judge

HERE = Path(__file__).resolve().parent
CUBICS = ("cubic", "cubic_plus", "timer_alone")

DECIDED = (
    ("Reno-friendly region in CUBIC", "flow.main.cc.tcp_friendly", CUBICS, True),
    ("HyStart in CUBIC", "flow.main.cc.hystart", CUBICS, "linux"),
    ("SACK (RFC 6675)", "flow.main.transport.sack", (), True),
)


def decided(name: str, path: str, variants: tuple[str, ...], value: Any) -> Open:
    """A choice that the source decides, as if it were open."""
    sets: dict[str, Any] = {path: "{}"}
    if path.endswith(".sack"):
        sets["flow.main.transport.recovery"] = "rfc6675"
    return Open(name, name, sets, value, "", None, None, (value,), False, False, ("reordering", "plain"), variants)


def alternatives(definition: Definition) -> Iterator[tuple[str, Definition, Condition]]:
    """(What is different, study, condition), the study as it is first."""
    yield "as set", definition, Condition()
    for parameter in definition.opens:
        others = parameter.choices or [v for v in (parameter.low, parameter.high) if v is not None]
        if "remedies" in parameter.experiments:
            continue
        for value in others:
            if value != parameter.value:
                shown = str(value).lower() if isinstance(value, bool) else value
                yield f"{parameter.title}: {shown}", definition, Condition(opens=((parameter.name, value),))
    for name, path, variants, value in DECIDED:
        changed = dataclasses.replace(definition, opens=(*definition.opens, decided(name, path, variants, value)))
        yield name, changed, Condition()


def rows(*, full: bool) -> Iterator[list[str]]:
    """What is different, how many claims hold, and which do not."""
    definition = load(HERE)
    for what, study, condition in alternatives(definition):
        pool = Pool(study, None)
        claims = [claim for claim in study.claims if claim.section is None]
        plan = needs.only(pool.plan(dataclasses.replace(condition, full=full)), needs.of_claims(study, claims))
        pool.make(plan)
        results = pool.results(plan)
        holds = {claim.id: judge(claim, results).holds is True for claim in claims}
        yield [what, str(sum(holds.values())), ", ".join(c for c, held in holds.items() if not held)]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="How many claims hold when one open choice is another.")
    parser.add_argument("--quick", action="store_true", help="the quick grid instead of the full one")
    full = not parser.parse_args().quick
    print("| choice | claims that hold | that do not |\n| --- | --- | --- |")
    for row in rows(full=full):
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
