"""The number of claims that hold if one choice is changed and all others remain as in the study."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator

from anabranch.study import needs
from anabranch.study.definition import Definition, Open, Sets
from anabranch.study.results import Condition, Pool
from anabranch.study.verdict import judge


@dataclasses.dataclass(frozen=True)
class Choice:
    """A choice made by the source, with an alternative.

    Attributes:
        title: The row's title in the table.
        set: Path → value, applied over the changes of experiment and variant.
        experiments: The experiments that it affects.
        variants: The variants that it affects; empty: all.
        also: Choices that change with it.
    """

    title: str
    set: Sets
    experiments: tuple[str, ...]
    variants: tuple[str, ...] = ()
    also: tuple[Choice, ...] = ()

    def as_open(self) -> tuple[Open, ...]:
        """The choice, and the choices that change with it, as open parameters without a range."""
        own = Open(
            name=self.title,
            title=self.title,
            set=self.set,
            value="",
            why="",
            low=None,
            high=None,
            choices=(),
            integer=False,
            log=False,
            experiments=self.experiments,
            variants=self.variants,
        )
        return (own, *(parameter for choice in self.also for parameter in choice.as_open()))


def rows(
    definition: Definition,
    decided: Iterable[Choice] = (),
    *,
    full: bool,
    without: tuple[str, ...] = (),
    only: str = "",
) -> Iterator[list[str]]:
    """For each alternative: its title, the number of the source's claims that hold, and the others; unchanged first.

    Args:
        definition: The study.
        decided: Choices that are no open parameters.
        full: Use the full grid.
        without: Leave open parameters of these experiments unchanged.
        only: Use only choices whose title contains this text.
    """
    claims = [claim for claim in definition.claims if claim.section is None]
    for what, study, condition in _alternatives(definition, decided, without):
        if only not in what:
            continue
        pool = Pool(study, None)
        plan = needs.only(pool.plan(dataclasses.replace(condition, full=full)), needs.of_claims(study, claims))
        pool.make(plan)
        results = pool.results(plan)
        holds = {claim.id: judge(claim, results).holds is True for claim in claims}
        yield [what, str(sum(holds.values())), ", ".join(c for c, held in holds.items() if not held)]


def _alternatives(
    definition: Definition, decided: Iterable[Choice], without: tuple[str, ...]
) -> Iterator[tuple[str, Definition, Condition]]:
    yield "as set", definition, Condition()
    for parameter in definition.opens:
        if set(without) & set(parameter.experiments):
            continue
        for value in parameter.choices or [v for v in (parameter.low, parameter.high) if v is not None]:
            if value != parameter.value:
                shown = str(value).lower() if isinstance(value, bool) else value
                yield f"{parameter.title}: {shown}", definition, Condition(opens=((parameter.name, value),))
    for choice in decided:
        changed = dataclasses.replace(definition, opens=(*definition.opens, *choice.as_open()))
        yield choice.title, changed, Condition()


def main(rows: Callable[..., Iterable[list[str]]]) -> None:
    """Prints the rows of ``rows`` as a Markdown table: the main function of a study's ``sensitivity.py``.

    ``rows`` is called with ``full``, and with ``only`` if it has that parameter.
    """
    parser = argparse.ArgumentParser(description="How many claims hold when one choice is another.")
    parser.add_argument("--quick", action="store_true", help="the quick grid instead of the full one")
    if "only" in inspect.signature(rows).parameters:
        parser.add_argument("--only", default="", metavar="TEXT", help="choices whose title has this in it")
    given = vars(parser.parse_args())
    given["full"] = not given.pop("quick")
    sys.stdout.write("| choice | claims that hold | that do not |\n| --- | --- | --- |\n")
    for row in rows(**given):
        sys.stdout.write(f"| {' | '.join(row)} |\n")
        sys.stdout.flush()
