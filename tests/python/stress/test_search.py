"""The search: the same finds for the same seed, shrinking, and finds that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anabranch import Scenario
from anabranch.errors import UserError
from anabranch.stress.campaign import Outcome, Plan, budget, read_control, stress
from anabranch.stress.genome import Event, Genome
from anabranch.stress.goals import GOALS
from anabranch.stress.judge import Judge, Pair
from anabranch.stress.search import State
from anabranch.stress.shrink import shrink
from anabranch.sweep.maker import Here

VEGAS = Pair(read_control("vegas", "control", "linux"), read_control("reno", "against", "linux"))
TRAP = Event(3_000, "delay", 0, 80.0, 0, "shared")


def plan(**options: object) -> Plan:
    """A short search for the failure of Vegas after a re-route."""
    given: dict[str, object] = {"goals": ("starvation",), "runs": 64, "events": ("delay", "loss"), **options}
    return Plan("vegas", **given)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def found() -> Outcome:
    """The search with the default seed."""
    return stress(plan())


def test_the_base_round_trip_time_of_vegas_is_found_after_a_re_route(found: Outcome) -> None:
    alone = [told for told in found.tellings if told.find.genome.company == "alone"]
    assert [told.find.genome.kinds for told in alone][:1] == [("delay",)]
    assert "delay is" in alone[0].sentence
    assert "vegas then has" in alone[0].sentence


def test_the_finds_depend_on_the_seed_alone(found: Outcome) -> None:
    again = stress(plan(jobs=1))
    assert again.state == found.state
    assert stress(plan(seed=2)).state.finds != found.state.finds


def test_an_interrupted_search_goes_on_where_it_stopped(found: Outcome, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def interrupt(state: State, _used: float) -> None:
        if state.generation == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stress(plan(out=out), interrupt)
    stopped = json.loads((out / "search.json").read_text("utf-8"))
    assert stopped["generation"] == 1
    remarks: list[str] = []
    assert stress(plan(out=out), remark=remarks.append).state == found.state
    assert remarks[0].startswith("goes on after ")


def test_another_search_is_not_mixed_in(tmp_path: Path) -> None:
    stress(plan(out=tmp_path / "out", runs=1))
    with pytest.raises(UserError, match="another seed"):
        stress(plan(out=tmp_path / "out", seed=2))
    with pytest.raises(UserError, match="another goals"):
        stress(plan(out=tmp_path / "out", goals=("stall",)))


@pytest.mark.parametrize("changed", ["mine.bpf.c", "mine.h", "more.h"])
def test_another_ebpf_program_is_another_search(tmp_path: Path, changed: str) -> None:
    program = tmp_path / "mine.bpf.c"
    reno = Path(__file__).resolve().parents[3] / "bpf" / "cc" / "reno.bpf.c"
    program.write_text(f'#include "mine.h"\n{reno.read_text("utf-8")}', encoding="utf-8")
    (tmp_path / "mine.h").write_text('#include "more.h"\n', encoding="utf-8")
    (tmp_path / "more.h").write_text("\n", encoding="utf-8")
    given = (str(program), f"{{ kind = 'bpf', file = '{program}' }}")
    before = [read_control(one, "control", "linux") for one in given]
    assert [read_control(one, "control", "linux") for one in given] == before
    with (tmp_path / changed).open("a", encoding="utf-8") as file:
        file.write("// changed\n")
    for one, other in zip(given, before, strict=True):
        assert read_control(one, "control", "linux").mark not in ("", other.mark)


def test_the_scenario_file_gives_the_figures_of_the_find(found: Outcome, tmp_path: Path) -> None:
    written = stress(plan(out=tmp_path / "out"))
    for told in written.tellings:
        run = Scenario.from_file(tmp_path / "out" / f"{told.name}.toml").run()
        rate = told.find.genome.rate * (1 if "rate" not in told.find.genome.kinds else 0)
        if rate:
            assert run.flows["main"]["goodput_mbit_s"] / rate == pytest.approx(told.find.case["own"]["share"])
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert page.count("<svg") == len(written.tellings) == len(found.tellings)


def test_shrinking_leaves_the_cause_in_plain_numbers() -> None:
    noise = (Event(1_730, "loss", 130, 0.0123, 0, "own"), Event(2_310, "ack-gap", 37, 1, 0, "own"))
    genome = Genome(11.7, 17.3, 1.37, "twin", (*noise, Event(4_321, "delay", 0, 83.7, 0, "own")))
    small = shrink(genome, GOALS["starvation"], Judge(VEGAS))
    assert small == Genome(10.0, 20.0, 1.0, "alone", (Event(3_000, "delay", 0, 80.0, 0, "own"),))


def test_a_control_has_no_find_against_itself() -> None:
    relative = tuple(name for name, goal in GOALS.items() if not goal.even)
    assert not stress(Plan("cubic", relative, "cubic", runs=64)).state.finds


def test_the_reference_is_left_out_only_below_the_threshold() -> None:
    judge, goal = Judge(VEGAS), GOALS["starvation"]
    genomes = [Genome(10, 20, 1, "alone", events) for events in ((), (TRAP,))]
    exact = [goal.score(case) for case in judge.cases([(goal, one) for one in genomes])]
    bounds = judge.scores([(goal, one) for one in genomes])
    assert bounds[1] == exact[1] >= 1
    assert exact[0] <= bounds[0] < 1


def test_another_place_of_the_runs_gives_the_same_scores() -> None:
    """A Ray cluster has this interface."""
    genome = [(GOALS["starvation"], Genome(10, 20, 1, "alone", (TRAP,)))] * 3
    assert Judge(VEGAS, engine=Here()).scores(genome) == Judge(VEGAS).scores(genome)


@pytest.mark.parametrize(("given", "seconds"), [("30min", 1800), ("90 s", 90), ("1.5h", 5400)])
def test_a_budget_has_a_unit(given: str, seconds: float) -> None:
    assert budget(given) == seconds


@pytest.mark.parametrize("given", ["30", "0s", "min", "-5s", "1e9h", "3 weeks", ""])
def test_a_budget_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(UserError, match="a time"):
        budget(given)
