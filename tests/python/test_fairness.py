"""Max-min fair shares, and the measured shares relative to them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.statistics.fairness import demands_of, jain, max_min, of_max_min

GREEDY = math.inf
demands = st.lists(st.one_of(st.floats(0.01, 1e3), st.just(GREEDY)), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("capacity", "asked", "shares"),
    [
        (100, [GREEDY, GREEDY], [50, 50]),
        (100, [GREEDY, 5, GREEDY, 5], [45, 5, 45, 5]),
        (100, [GREEDY, GREEDY, 40], [100 / 3, 100 / 3, 100 / 3]),
        (100, [80, 10, GREEDY], [45, 10, 45]),
        (100, [20, 30], [20, 30]),
        (0, [GREEDY, 5], [0, 0]),
    ],
)
def test_known_shares(capacity: float, asked: list[float], shares: list[float]) -> None:
    assert max_min(capacity, asked) == pytest.approx(shares)


@given(st.floats(1, 1e3), demands)
def test_no_share_can_grow_without_reducing_a_smaller_one(capacity: float, asked: list[float]) -> None:
    shares = max_min(capacity, asked)
    assert all(share <= demand for share, demand in zip(shares, asked, strict=True))
    assert math.fsum(shares) == pytest.approx(min(capacity, math.fsum(asked)))
    # A share below its demand equals the largest share.
    for share, demand in zip(shares, asked, strict=True):
        if share < demand:
            assert share == pytest.approx(max(shares))


def test_a_satisfied_small_demand_is_fair() -> None:
    got = {"bulk": 90.0, "video": 4.0}
    assert of_max_min(got, 100, {"video": 4.0}) == pytest.approx([90 / 96, 1])
    # If its demand counted as unlimited, it would appear starved.
    assert min(of_max_min(got, 100, {})) == pytest.approx(0.08)


def test_random_load_is_subtracted_and_not_judged() -> None:
    shares = of_max_min({"a": 40.0, "b": 20.0, "short": 20.0}, 100, {"short": math.nan})
    assert shares == pytest.approx([1, 0.5])


def test_jain_of_known_shares() -> None:
    assert jain([1, 1, 1]) == 1
    assert jain([1, 0]) == 0.5
    assert jain([0, 0]) is None
    assert jain([]) is None


def test_demands_of_flows() -> None:
    resolved = {
        "flow": {
            "main": {"workload": {"kind": "bulk"}},
            "video": {"workload": {"kind": "paced", "rate": "2.5 Mbit/s"}},
            "call": {"workload": {"kind": "paced", "rate": "64 Kibit/s"}},
            "short": {"workload": {"kind": "poisson", "rate": "1 Mbit/s"}},
        }
    }
    asked = demands_of(resolved, ["main", "video/0", "video/1", "call", "short"])
    assert asked.pop("short") != asked.get("short")
    assert asked == {"main": GREEDY, "video/0": 2.5, "video/1": 2.5, "call": 0.065536}
