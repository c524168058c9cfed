"""The counterexample search finds planted faults, and nothing in changes that are none; the published finding holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from anabranch import Scenario
from anabranch.stress.campaign import Plan, stress

from stress import mutants
from stress.faults import SHAM, Fault, faults

ROOT = Path(__file__).parents[2]


def test_forty_faults_are_planted(tmp_path: Path) -> None:
    every = faults(tmp_path)
    assert len(every) == len({one.what for one in every}) == 40


@pytest.mark.parametrize(
    "what",
    [
        pytest.param("cubic: a loss leaves 99 %", marks=pytest.mark.long),
        "reno in C: never above ten segments",
        pytest.param("bbr: never drains", marks=pytest.mark.long),
    ],
)
def test_a_planted_fault_is_found(tmp_path: Path, what: str) -> None:
    fault = next(one for one in faults(tmp_path) if one.what.startswith(what))
    outcome = stress(Plan(fault.control, mutants.RELATIVE, fault.against, runs=300, first=True))
    assert outcome.tellings, fault.what


@pytest.mark.slow
def test_a_fault_in_python_is_found(tmp_path: Path) -> None:
    fault = next(one for one in faults(tmp_path) if "300 ms without" in one.what)
    plan = Plan(
        fault.control, ("slow",), fault.against, events=("ack-gap", "loss"), runs=64, first=True, classes=fault.classes
    )
    outcome = stress(plan)
    assert [told.find.genome.kinds for told in outcome.tellings] == [("ack-gap",)]


@pytest.mark.parametrize("fault", SHAM, ids=lambda fault: fault.what)
def test_a_change_that_is_no_fault_has_no_find(fault: Fault) -> None:
    assert not stress(Plan(fault.control, mutants.RELATIVE, fault.against, runs=64, seed=3)).tellings


def test_the_program_without_a_fault_is_reno(tmp_path: Path) -> None:
    """Otherwise finds of the faults in C could be of the program."""
    plain = next(one for one in faults(tmp_path) if one.what.startswith("reno in C")).against
    runs = []
    for control in (plain, '"reno"'):
        scenario = Scenario.from_text(
            'duration = "10 s"\n[link.a]\nbetween = ["S", "R"]\nrate = "10 Mbit/s"\ndelay = "20 ms"\n'
            f'queue = {{ kind = "drop-tail", limit = "1 bdp" }}\n[flow.main]\nfrom = "S"\nto = "R"\ncc = {control}\n',
        )
        runs.append(scenario.run().flows["main"]["goodput_mbit_s"])
    assert runs[0] == pytest.approx(runs[1], rel=0.01)


def test_bbr_has_a_fifth_of_the_rate_after_100_ms_on_a_shorter_path() -> None:
    base = Scenario.from_file(ROOT / "docs/findings/bbr-shorter-path.toml")
    goodput = {
        cc: base.set("flow.main.cc", cc).run().flows["main"]["goodput_mbit_s"] for cc in ("bbr", "bbr3", "cubic")
    }
    assert {cc: round(value, 2) for cc, value in goodput.items()} == {"bbr": 3.67, "bbr3": 1.56, "cubic": 19.31}
