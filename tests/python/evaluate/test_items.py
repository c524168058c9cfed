"""The table of items: every section of the RFCs once, each with checks or a reason."""

from __future__ import annotations

import pytest

from anabranch import _engine
from anabranch.evaluate.check import Plan
from anabranch.evaluate.evaluation import AGAINST, checks_of
from anabranch.evaluate.items import CONTROL_ITEMS, ITEMS, QUEUE_ITEMS, RFC_5166, RFC_7928, RFC_9743
from anabranch.evaluate.subject import builtin, find
from anabranch.text import toml_text

SECTIONS = {
    RFC_9743: (
        "5.1.1 5.1.2 5.1.3 5.1.4 5.1.5 5.2 5.2.1 5.2.2 5.2.3 5.3.1 5.3.2 6.1 6.2 6.3 6.4 "
        "7.1 7.2 7.3 7.4 7.5 7.6 7.7 7.8 7.9 7.10 7.11"
    ),
    RFC_5166: "2.1.1 2.1.2 2.1.3 2.2.1 2.2.2 2.3.1 2.3.2 2.3.3 2.4 2.5 2.6 2.7 2.8 3",
    RFC_7928: (
        "2.1 2.2 2.3 2.4 2.5 2.6 2.7 3.2 3.3 4.3.1 4.3.2 4.4 4.5 4.6 5.1.1 5.1.2 5.2 5.3 5.4 6 7 "
        "8.2.2 8.2.3 8.2.4 8.2.5 8.2.6 8.3 9.1 9.2 10 11 12"
    ),
}
"""The sections that ask for an evaluation, from the tables of contents."""


@pytest.mark.parametrize("document", SECTIONS)
def test_every_section_is_one_item(document: str) -> None:
    assert [item.section for item in ITEMS if item.document == document] == SECTIONS[document].split()


def test_names_are_distinct() -> None:
    assert len({item.id for item in ITEMS}) == len(ITEMS)


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.id)
def test_an_item_has_checks_or_a_reason(item: object) -> None:
    assert getattr(item, "checks", ()) or getattr(item, "why_not", "")


@pytest.mark.parametrize(("role", "items"), [("control", CONTROL_ITEMS), ("queue", QUEUE_ITEMS)])
def test_items_and_checks_belong_together(role: str, items: tuple[object, ...]) -> None:
    named = {name for item in items for name in getattr(item, "checks", ())}
    assert named == {check.id for check in checks_of(role)}


@pytest.mark.parametrize("role", ["control", "queue"])
@pytest.mark.parametrize("is_quick", [False, True])
def test_every_check_has_cases_in_both_sizes(role: str, is_quick: bool) -> None:
    plan = Plan(tuple(map(builtin, AGAINST)), is_quick)
    for check in checks_of(role):
        cases = [case for case in check.cases(plan) if case.is_quick or not is_quick]
        assert cases, check.id
        assert len({(case.group, case.label) for case in cases}) == len(cases), check.id
        assert check.source
        assert check.criterion


def test_sources_name_a_section() -> None:
    for role in ("control", "queue"):
        for check in checks_of(role):
            assert "§" in check.source, check.id


@pytest.mark.parametrize("name", ["prague", "cubic", "codel", "red", "dualpi2", "cake", "drr"])
def test_the_engine_accepts_every_scenario(name: str) -> None:
    subject = find(name)
    plan = Plan(tuple(map(builtin, AGAINST)))
    jobs: list[tuple[str, str, list[str], int | None]] = [
        (toml_text.write_document(build(subject)), f"{check.id}.toml", [], 1)
        for check in checks_of(subject.role)
        for case in check.cases(plan)
        for build in case.runs.values()
    ]
    refused = _engine.check_many(jobs)
    assert refused is None, refused
