"""Two flows against the Linux kernel: see ``docs/validation/linux-two-flows.md``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from comparison import linux_two_flows as linux
from comparison import pages
from comparison.judging import Verdict
from comparison.linux_two_flows import Ours, Pair, Theirs
from comparison.runs import Spread


@pytest.fixture(scope="module")
def found() -> list[Pair]:
    return linux.compare(linux.pairs())


def verdicts(found: list[Pair]) -> tuple[Verdict, Verdict]:
    share, sign = linux.verdicts(found)
    return share, sign


def made_up(theirs: list[float], ours: float, second: str = "reno") -> Pair:
    """A pair with given shares of the first flow, in per cent."""
    nothing = (0.0, 0.0)
    none = (Spread(0, 0, 0), Spread(0, 0, 0))
    repeats = tuple(Theirs((share, 100 - share), nothing, nothing) for share in theirs)
    return Pair(("cubic", second), repeats, Ours((ours,), none, none, none))


def test_every_pair_is_present(found: list[Pair]) -> None:
    assert [pair.controls for pair in found] == [("cubic", "bbr"), ("cubic", "cubic"), ("cubic", "reno")]
    assert {len(pair.theirs) for pair in found} == {3}


def test_shares_are_within_the_tolerance(found: list[Pair]) -> None:
    assert verdicts(found)[0].held


def test_the_same_flow_gets_more(found: list[Pair]) -> None:
    assert verdicts(found)[1].held


def test_a_share_too_far_off_misses() -> None:
    assert made_up([30, 40, 50], 54.9).near
    assert made_up([30, 40, 50], 55.1).near is False
    assert made_up([30, 40, 50], 24.9).near is False


def test_the_sign_counts_where_the_repeats_agree() -> None:
    assert made_up([40, 45, 49], 49).same_sign
    assert made_up([40, 45, 49], 51).same_sign is False
    assert made_up([60, 55, 51], 49).same_sign is False
    assert made_up([40, 45, 51], 51).same_sign is None
    assert made_up([40, 45, 49], 51, second="cubic").same_sign is None


def test_exchanged_flows_miss() -> None:
    pair = made_up([12, 13, 12], 14)
    assert [verdict.held for verdict in verdicts([pair])] == [True, True]
    swapped = replace(pair, theirs=tuple(replace(r, goodput=r.goodput[::-1]) for r in pair.theirs))
    assert [verdict.held for verdict in verdicts([swapped])] == [False, False]


def test_seeds_differ(found: list[Pair]) -> None:
    """The start times of the flows are random; without them all seeds would give the same run."""
    for pair in found:
        assert len(set(pair.ours.shares)) > 1


def test_the_page_is_up_to_date() -> None:
    assert pages.stale(linux.comparison()) == [], "run make compare"
