"""Properties of every study: the shape of its output, the verdicts on its page, checks that can fail."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

Outcome: TypeAlias = dict[str, Any]
"""A study's JSON."""
Tables: TypeAlias = dict[str, list[dict[str, Any]]]
"""Rows of each of its tables."""


class Documented:
    """Tests of the study that the module names; a class of tests inherits them."""

    claims: ClassVar[list[str]]
    reproduced: ClassVar[set[str]]
    """On the quick grid."""
    inconclusive: ClassVar[set[str]] = set()
    """Claims that only the full grid can judge."""

    def test_has_the_shape_of_the_contract(self, outcome: Outcome, request: Any) -> None:
        assert (outcome["study"], outcome["mode"], outcome["engine"]) == (request.module.STUDY, "quick", "sim")
        assert [claim["id"] for claim in outcome["claims"]] == self.claims
        keys = {"id", "claim", "published", "accept_if", "measured", "verdict", "robustness", "control"}
        for claim in outcome["claims"]:
            assert keys <= set(claim)

    def test_verdicts_are_those_documented(self, outcome: Outcome) -> None:
        verdicts = {claim["id"]: claim["verdict"] for claim in outcome["claims"]}
        assert {name for name, verdict in verdicts.items() if verdict.startswith("reproduced")} == self.reproduced
        assert {name for name, verdict in verdicts.items() if verdict == "inconclusive"} == self.inconclusive

    def test_claims_not_reproduced_give_a_reason(self, outcome: Outcome) -> None:
        for claim in outcome["claims"]:
            assert claim["id"] in self.reproduced | self.inconclusive or claim["why"]

    def test_every_check_fails_on_its_wrong_system(self, outcome: Outcome) -> None:
        judged = [claim for claim in outcome["claims"] if claim["id"] not in self.inconclusive]
        assert {claim["control"] for claim in judged} == {"not reproduced"}


class Robust(Documented):
    """Tests of a study whose robustness has been computed."""

    def test_robustness_is_stored_and_current(self, outcome: Outcome, request: Any) -> None:
        command = f"anabranch study {request.module.STUDY} --quick --robustness"
        for claim in outcome["claims"]:
            if claim["id"] in self.inconclusive:
                continue
            assert claim["robustness"] is not None, claim["id"]
            assert not claim.get("robustness_stale", False), f"{claim['id']}: run {command}"
