"""Scenarios of an evaluation, with the path of a seed."""

from __future__ import annotations

from fractions import Fraction

import pytest

from anabranch.evaluate.build import SPREAD, Path, call, deviations, flow, nearby, rate, scenario, udp
from anabranch.evaluate.subject import builtin
from anabranch.text.quantity import read


def _size(text: str) -> Fraction:
    found = read(text)
    assert found is not None
    return found.size


@pytest.mark.parametrize("seed", range(1, 11))
def test_a_seed_keeps_shares_of_the_bottleneck(seed: int) -> None:
    half = {"time": "10 s", "set": {"link.bottleneck.rate": rate(5)}}
    table = nearby(scenario(Path(10, 100), {"x": flow(builtin("reno")), "cross": udp(2.5)}, at=[half]), seed)
    by_rate, by_delay = deviations(seed)
    link = table["link"]["bottleneck"]
    assert abs(by_rate - 1) <= SPREAD
    assert abs(by_delay - 1) <= SPREAD
    assert float(_size(link["rate"])) == pytest.approx(by_rate * 10e6)
    assert float(_size(link["delay"])) == pytest.approx(by_delay * 0.05)
    assert float(_size(table["flow"]["cross"]["workload"]["rate"]) / _size(link["rate"])) == pytest.approx(0.25)
    assert float(_size(table["at"][0]["set"]["link.bottleneck.rate"]) / _size(link["rate"])) == pytest.approx(0.5)


def test_seeds_have_different_paths() -> None:
    assert len({deviations(seed) for seed in range(1, 11)}) == 10


def test_calls_controls_and_queues_stay() -> None:
    control = flow(builtin("reno"))
    control["cc"] = {"kind": "mine", "rate": "5 Mbit/s", "delay": "3 ms"}
    table = scenario(Path(10, 100), {"x": control, "call": call()})
    table["link"]["bottleneck"]["queue"] = {"kind": "mine", "rate": "5 Mbit/s"}
    made = nearby(table, 3)
    assert made["flow"] == table["flow"]
    assert made["link"]["bottleneck"]["queue"] == table["link"]["bottleneck"]["queue"]
