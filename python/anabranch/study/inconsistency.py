"""The verdict *paper inconsistent*: reading its declaration in a study, and judging the proof.

A proof is a check that can fail. It takes one of two forms. A *run* measures something and must fail on a wrong
system, as a claim does. An *exclusion* names claims of the same study. These claims and this one must not hold together
at any point of the open parameters' ranges nor in the study's own setting, and each must hold somewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from anabranch.study.definition import Claim, Inconsistency
from anabranch.study.document import Node
from anabranch.study.robustness import Robustness
from anabranch.study.verdict import Judgement

RUN_KEYS = ("experiment", "measure", "accept", "control")
_LEAST_STATEMENTS = 2


def read(node: Node, check: Callable[[Node], Claim]) -> Inconsistency:
    """Read ``[claim.inconsistent]``; ``check`` reads the keys that it shares with a claim.

    Raises:
        UserError: The table is wrong; the message has file, line and column.
    """
    node.reject_unknown(["statements", "argument", "excludes", *RUN_KEYS])
    statements = node.texts("statements") or ()
    if len(statements) < _LEAST_STATEMENTS:
        where = ("statements",) if "statements" in node else ()
        raise node.error("statements must quote at least two sentences that exclude each other", *where)
    given = [key for key in RUN_KEYS if key in node]
    if "excludes" in node and given:
        raise node.error("a proof is either excludes or a check on runs (measure, accept, control)", given[0])
    if "excludes" not in node and not given:
        raise node.error(
            "a proof is missing", hint='excludes = ["CLAIM"], or measure, accept and control as a claim has them'
        )
    excludes = tuple(node.texts("excludes") or ())
    if "excludes" in node and not excludes:
        raise node.error("excludes must name at least one claim", "excludes")
    return Inconsistency(
        statements=tuple(statements),
        argument=node.text("argument"),
        proof=None if excludes else check(node),
        excludes=excludes,
    )


def exclusion(claim: Claim, known: Robustness | None, plain: Mapping[str, bool | None]) -> Judgement:
    """Judge an exclusion by the points of the robustness and the study's own setting.

    Args:
        claim: The claim with the inconsistency.
        known: The claims that hold at each point, if they were computed.
        plain: Claim → whether it holds in the study's own setting.
    """
    assert claim.inconsistent is not None  # noqa: S101 - the caller has seen it
    together = (claim.id, *claim.inconsistent.excludes)
    if known is None:
        return Judgement(None, {}, "the points have not been computed: the study was not run for robustness")
    if known.stale:
        return Judgement(None, {}, "the points were computed before the last change of the study")
    points = [*known.points_held, plain]
    holding = {name: sum(point.get(name) is True for point in points) for name in together}
    both = sum(all(point.get(name) is True for name in together) for point in points)
    measures: dict[str, int] = {"settings": len(points), **{f"{k}_holds_at": n for k, n in holding.items()}}
    never = [name for name, n in holding.items() if n == 0]
    if both:
        return Judgement(False, dict(measures), f"{' and '.join(together)} hold together in {both} settings")
    if never:
        return Judgement(False, dict(measures), f"{', '.join(never)} holds in no setting")
    return Judgement(True, dict(measures))
