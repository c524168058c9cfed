"""Every two congestion controls at one bottleneck: see ``docs/validation/mixes.md``."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from itertools import cycle

import pytest

from comparison import expectations, mixes, pages, runs
from comparison.expectations import EXPECTATIONS, SETTINGS, Setting, Shares
from comparison.mixes import Mix

SHALLOW_PAIR, SHALLOW_TEN, DEEP_PAIR, DEEP_TEN = SETTINGS


SAMPLE = [*(("reno", other, setting) for other, setting in zip(mixes.ORDER, cycle(SETTINGS), strict=False)),
          ("cubic", "bbr", DEEP_PAIR)]  # fmt: skip
"""Mixes that every run of the tests repeats: every control, every setting. The rest of the page is judged as it is."""


@pytest.fixture(scope="module")
def kept() -> list[Mix]:
    """Every mix, as on the page."""
    return mixes.kept()


@pytest.fixture(scope="module")
def found() -> list[Mix]:
    return mixes.run(SAMPLE)


@pytest.fixture(scope="module")
def shares(kept: list[Mix]) -> Shares:
    return mixes.shares(kept)


def missed(shares: Shares) -> set[str]:
    """Expectations with more shares outside than the page lists."""
    return {line.split()[1].rstrip(":") for line in mixes.surprises(shares) if line.endswith("is outside")}


def test_every_pair_is_present(kept: list[Mix]) -> None:
    names = mixes.controls()
    assert not set(names) & set(mixes.WITHOUT)
    assert set(mixes.ORDER) <= set(names)
    assert len({(mix.first, mix.second, mix.setting) for mix in kept}) == len(kept)
    assert len(kept) == len(names) * (len(names) + 1) // 2 * len(SETTINGS)


def test_the_page_has_the_measured_shares(found: list[Mix]) -> None:
    said = mixes.said()
    for mix in found:
        assert len(mix.shares) == len(mix.jains) == mixes.SEEDS
        place = (mix.first, mix.second, mix.setting)
        assert said[place] == mixes.cell(mix), f"{place}: run make compare"


def test_deviations_match_the_page(shares: Shares) -> None:
    assert mixes.surprises(shares) == []


def test_a_reason_without_a_mix_is_reported(shares: Shares, monkeypatch: pytest.MonkeyPatch) -> None:
    known = mixes.OUTSIDE["itself"] | {"reno beside reno, never run"}
    monkeypatch.setattr(mixes, "OUTSIDE", {**mixes.OUTSIDE, "itself": known})
    assert mixes.surprises(shares) == ["mixes itself: reno beside reno, never run: is inside"]


# Invariants of the figures.


def test_shares_of_a_pair_add_up_to_one(shares: Shares) -> None:
    for (first, second, setting), share in shares.items():
        assert 0 <= share <= 1
        if first != second:
            assert math.isclose(share + shares[second, first, setting], 1)


def test_the_order_in_the_file_has_no_effect(shares: Shares) -> None:
    """Detects exchanged groups, and an advantage of the first group, by exchanging each pair.

    Vegas with Reno is left out: in the form of Linux its share depends on the seed (0.02 or 0.33).
    """
    pairs = [("reno", "bic"), ("bbr", "cubic"), ("cubic", "reno")]
    for mix in mixes.run([(*pair, SHALLOW_PAIR) for pair in pairs] + [(b, a, SHALLOW_PAIR) for a, b in pairs]):
        assert abs(mix.share - shares[mix.first, mix.second, mix.setting]) <= expectations.TOLERANCE


def test_jain_of_two_flows_is_a_function_of_the_share(found: list[Mix]) -> None:
    for mix in found:
        for share, jain in zip(mix.shares, mix.jains, strict=True):
            of_groups = 1 / (2 * (share**2 + (1 - share) ** 2))
            if mix.setting.flows == 1:
                assert math.isclose(jain, of_groups, rel_tol=1e-9)
            else:
                # Differences within a group only lower the index (Jain, Chiu and Hawe 1984).
                assert 1 / (2 * mix.setting.flows) <= jain <= of_groups + 1e-9


def test_seeds_differ(found: list[Mix]) -> None:
    """The start times are random; without them all seeds would give the same run."""
    assert all(len(set(mix.shares)) > 1 for mix in found)


def test_vegas_favours_a_flow_with_an_overestimated_base_rtt() -> None:
    """Flows that mistake the queue for the path get more than the median of the others in the mean (Mo et al. 1999).

    Until 2026-11-30 each run had to meet this, and all three did. With PRR's divisor of Linux one run does not: 3.0
    Mbit/s, where the median is 4.5.

    Half a millisecond is four packets. Vegas leaves two to four in the queue, so a smaller
    difference is no mistake.
    """
    one = mixes.case("vegas", "vegas", SHALLOW_TEN)
    gains = []
    for run in runs.simulate([one], mixes.NAME)[one]:
        flows = list(run["flows"].values())
        mistaken = max(flows, key=lambda flow: float(flow["min_rtt_ms"]))
        if mistaken["min_rtt_ms"] < min(flow["min_rtt_ms"] for flow in flows) + 0.5:
            continue
        gains.append(mistaken["goodput_mbit_s"] - statistics.median(flow["goodput_mbit_s"] for flow in flows))
    assert gains
    assert statistics.mean(gains) > 0


def test_groups_are_read_from_their_own_flows() -> None:
    flows = {"a/0": 1.0, "a/1": 2.0, "b/0": 3.0, "b/1": 6.0}
    run = {"flows": {name: {"goodput_mbit_s": rate} for name, rate in flows.items()}, "fairness": {"jain_index": 0.7}}
    assert mixes.goodputs(run, "b") == [3.0, 6.0]
    mix = mixes.of_runs("reno", "vegas", Setting(1, 2), [run])
    assert (mix.share, mix.jain) == (0.25, 0.7)
    found = mixes.shares([mix])
    assert found["reno", "vegas", Setting(1, 2)] == 0.25
    assert found["vegas", "reno", Setting(1, 2)] == 0.75


def test_statements_of_the_page_hold(kept: list[Mix], shares: Shares) -> None:
    """Written after the runs: fails if a sentence of the page becomes false."""
    jains = mixes.jains(kept)
    for setting in SETTINGS:
        for other in mixes.ORDER:
            assert other == "vegas" or shares["vegas", other, setting] < 1 / 6
        for other in expectations.GROWING:
            assert other == "bic" or shares["bic", other, setting] > 2 / 3
            if setting.queue == 1:
                assert shares["bbr", other, setting] > 0.75
                assert shares["bbr3", other, setting] < shares["bbr", other, setting]
                assert other == "bic" or shares["bbr3", other, setting] > 0.5
            else:
                assert (other, setting) == ("bic", DEEP_PAIR) or 1 / 3 < shares["bbr", other, setting] < 2 / 3
    assert abs(shares["cubic", "cubic", DEEP_TEN] - 0.5) < 0.1
    assert jains["cubic", "cubic", DEEP_TEN] < 0.85


# Discrimination of the expectations.


def test_the_in_flight_cap() -> None:
    """Ware et al.: nearly half in a very deep queue; in a queue of one BDP all, apart from the time of ProbeRTT."""
    assert math.isclose(expectations.bbr_share(SHALLOW_PAIR), 1 - 0.028)
    packets = 4 * 100e6 * 0.04 / 12000
    assert math.isclose(expectations.bbr_share(DEEP_PAIR), (1 - (0.375 - 4 / packets)) * (1 - 0.04), rel_tol=1e-9)
    assert expectations.bbr_share(DEEP_TEN) > expectations.bbr_share(DEEP_PAIR)


def test_where_cubic_is_faster_than_reno() -> None:
    assert [expectations.cubic_is_faster(setting) for setting in SETTINGS] == [True, False, True, True]


def swapped(shares: Shares) -> Shares:
    return {(second, first, setting): share for (first, second, setting), share in shares.items()}


def all_equal(shares: Shares) -> Shares:
    return dict.fromkeys(shares, 0.5)


def taken_for(wrong: str, right: str) -> Callable[[Shares], Shares]:
    """One control under the name of another."""

    def name(control: str) -> str:
        return wrong if control == right else control

    return lambda shares: {
        (first, second, setting): shares[name(first), name(second), setting] for first, second, setting in shares
    }


def first_wins(shares: Shares) -> Shares:
    """The first group in the file gains a fifth of the total."""
    return {(a, b, setting): min(1.0, share + 0.2) if a == b else share for (a, b, setting), share in shares.items()}


def other_queue(shares: Shares) -> Shares:
    """The queue's limit is ignored and always one BDP."""
    return {(a, b, setting): shares[a, b, Setting(1, setting.flows)] for a, b, setting in shares}


WRONG: dict[str, list[Callable[[Shares], Shares]]] = {
    "itself": [first_wins],
    "vegas": [swapped, all_equal, taken_for("reno", "vegas")],
    "bbr-shallow": [swapped, taken_for("vegas", "bbr")],
    "bbr-cap": [swapped, all_equal, taken_for("reno", "bbr"), other_queue],
    "bbr3": [swapped, all_equal, taken_for("bbr", "bbr3")],
    "cubic": [swapped, taken_for("vegas", "cubic")],
    "bic": [swapped, taken_for("westwood-plus", "bic")],
    "westwood": [swapped, taken_for("cubic", "westwood-plus")],
    "compound": [taken_for("vegas", "compound"), taken_for("bbr", "compound")],
}


def test_every_expectation_has_a_wrong_system() -> None:
    assert set(WRONG) == {expectation.name for expectation in EXPECTATIONS}


@pytest.mark.parametrize(("name", "system"), [(name, system) for name, systems in WRONG.items() for system in systems])
def test_a_wrong_system_misses(shares: Shares, name: str, system: Callable[[Shares], Shares]) -> None:
    assert name in missed(system(shares))


def test_a_single_seed_can_be_judged() -> None:
    pair = Mix("reno", "reno", SHALLOW_PAIR, (0.2, 0.5, 0.8), (0.9, 1.0, 0.9))
    means, one = mixes.shares([pair]), mixes.of_seed([pair], 2)
    assert math.isclose(means["reno", "reno", SHALLOW_PAIR], 0.5)
    assert math.isclose(one["reno", "reno", SHALLOW_PAIR], 0.8)


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    assert pages.stale(mixes.comparison()) == [], "run make compare"
