"""Criteria for the agreement of two engines: each tolerance fails on a named wrong system. No live run is made here."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from anabranch import validate
from anabranch.live import Limits
from anabranch.scenario import Scenario
from anabranch.validate import WINDOW, Comparison, exchanged, keep, set_beside
from anabranch.validate.host_times import PAUSES_MS, ROLES, TICK_US, HostTimes, with_host_times
from anabranch.validate.judge import document, holds, needs_the_control, problems, summary
from anabranch.validate.keep import LiveRun
from anabranch.validate.measure import (
    ALL,
    COMPLETION,
    GOODPUT,
    METRICS,
    RETRANSMITTED,
    SHARES,
    SRTT,
    Figures,
    distance,
    measure,
    window_distance,
)
from anabranch.validate.page import page, rows, verdicts

from .command import Call

ROOT = Path(__file__).resolve().parents[2]

TIMES = HostTimes.read(ROOT / "validation" / "data" / "host_times.json")
"""Processing times of hosts on one machine."""

Change = Callable[[dict[str, dict[str, float | None]]], None]


def figures(change: Change = lambda _: None, window: float = 50.0) -> Figures:
    """The figures of a run of two flows in the kernel, with a change."""
    values: dict[str, dict[str, float | None]] = {
        GOODPUT.name: {ALL: 20.0},
        SRTT.name: {"a": 50.0, "b": 60.0},
        RETRANSMITTED.name: {"a": 100.0, "b": 100.0},
        SHARES.name: {"a": 0.6, "b": 0.4},
        COMPLETION.name: {"b": 2.0},
    }
    change(values)
    return Figures(values, {"a": {0: window, 1: window}})


def other(values: dict[str, dict[str, float | None]]) -> None:
    """Figures of another control: 20 % more delay, twice as many retransmissions, the shares exchanged."""
    values[SRTT.name] = {"a": 60.0, "b": 72.0}
    values[RETRANSMITTED.name] = {"a": 200.0, "b": 200.0}
    values[SHARES.name] = {"a": 0.4, "b": 0.6}


def comparison(simulated: Figures, again: Change = lambda _: None, file: str = "made-up.toml") -> Comparison:
    """Compare one seed; the second live run may differ from the first."""
    made = Comparison(file, 1, live_runs=2)
    live = {1: [figures(), figures(again)]}
    set_beside(
        made, {1: [simulated]}, live, {1: [figures(other, window=75.0)]}, [figures(other), figures()], drawn=False
    )
    return made


def put(metric: str, group: str, value: float | None) -> Change:
    def change(values: dict[str, dict[str, float | None]]) -> None:
        values[metric] = values[metric] | {group: value}

    return change


def found(simulated: Figures, again: Change = lambda _: None) -> list[str]:
    return problems([comparison(simulated, again)])


def test_engines_that_agree() -> None:
    made = comparison(figures())
    assert problems([made]) == []
    assert all(result.error == 0 for result in made.results.values())
    assert set(made.results) == {metric.name for metric in METRICS} | {WINDOW}


def test_a_simulator_whose_link_is_too_fast() -> None:
    assert found(figures(put(GOODPUT.name, ALL, 20.59))) == []
    (reason,) = found(figures(put(GOODPUT.name, ALL, 20.61)))
    assert reason == "goodput_mbit_s: the median error is 3.0%, and 3% was expected at most"


def test_a_simulator_whose_queue_is_too_long() -> None:
    """Another control differs by 20 %: the tolerance is 10 %."""
    assert found(figures(lambda v: v.update({SRTT.name: {"a": 54.9, "b": 65.9}}))) == []
    (reason,) = found(figures(lambda v: v.update({SRTT.name: {"a": 55.1, "b": 66.1}})))
    assert reason.startswith("mean_srtt_ms: in 1 of 1 scenarios the error is more than 0.5 of another")


def test_a_simulator_that_retransmits_too_often() -> None:
    """Another control differs by 100 ÷ √200 = 7.1."""
    for count, fails in ((140.0, False), (150.0, True)):
        wrong = found(figures(lambda v, n=count: v.update({RETRANSMITTED.name: {"a": n, "b": n}})))  # type: ignore[misc]
        assert [reason.partition(":")[0] for reason in wrong] == ["retransmitted_packets"] * fails


def test_a_simulator_that_divides_capacity_differently() -> None:
    for share, fails in ((0.51, False), (0.49, True)):
        wrong = found(figures(lambda v, x=share: v.update({SHARES.name: {"a": x, "b": 1 - x}})))  # type: ignore[misc]
        assert [reason.partition(":")[0] for reason in wrong] == ["shares"] * fails


@pytest.mark.parametrize("metric", [SRTT.name, RETRANSMITTED.name, SHARES.name])
def test_a_simulator_that_confuses_two_controls(metric: str) -> None:
    reasons = [reason.partition(":")[0] for reason in found(figures(other))]
    assert metric in reasons


def test_differences_within_the_repeats_are_accepted() -> None:
    """The two live runs differ as much as the two controls do: a smaller error does not count."""
    simulated = figures(lambda v: v.update({SRTT.name: {"a": 57.0, "b": 68.0}}))
    assert found(simulated) != []
    apart = found(simulated, lambda v: v.update({SRTT.name: {"a": 60.0, "b": 72.0}}))
    assert apart == []


def test_one_scenario_of_ten_may_be_outside() -> None:
    wrong, right = figures(put(SRTT.name, "a", 70.0)), figures()
    nine = [comparison(right, file=f"{n}.toml") for n in range(9)]
    assert problems([*nine, comparison(wrong)]) == []
    (reason,) = problems([*nine[:8], comparison(wrong, file="x.toml"), comparison(wrong, file="y.toml")])
    assert reason.endswith("at most 10% was expected: x.toml, y.toml")


def test_tainted_runs_are_not_agreement() -> None:
    made = [comparison(figures()) for _ in range(5)]
    made[0].tainted_runs = 1
    assert problems(made) == []
    made[1].tainted_runs = 1
    assert problems(made) == ["2 of 10 live runs are tainted, more than 10%"]


def test_a_scenario_without_a_pair_of_runs_is_not_agreement() -> None:
    made = Comparison("busy.toml", 1, tainted_runs=1, live_runs=2)
    many = [comparison(figures()) for _ in range(5)]
    assert problems([*many, made]) == ["busy.toml: no seed has all of its live runs untainted"]
    assert "| busy | tainted |" in page([made])


def test_requested_tainted_runs_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Detects a validation without them, and one that counts them as evidence."""
    monkeypatch.setattr(validate, "simulate", lambda *_: [figures()])
    monkeypatch.setattr(validate, "_live", lambda *_: LiveRun(figures(), ["late"], {"kernel": "6.18"}))
    scenario = Scenario.from_file(ROOT / "scenarios" / "live" / "thin.toml").set("duration", "1 s")
    assert validate.compare(scenario, "some/thin.toml", seeds=1, times=TIMES).left_out
    made = validate.compare(scenario, "some/thin.toml", seeds=1, times=TIMES, allow_tainted=True)
    assert (made.left_out, made.used_tainted, made.tainted) == ([], 2, True)
    assert made.document()["used_tainted_runs"] == 2
    assert "thin.toml: TAINTED: 2 of its live runs" in page([made])
    assert "some/thin.toml: 2 of the live runs compared are tainted, and prove nothing" in problems([made])


def test_a_seed_without_a_pair_of_runs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Detects a validation that omits it silently."""

    def live(_scenario: Scenario, seed: int, attempt: int, *_: object) -> LiveRun:
        return LiveRun(figures(), ["late"] if seed == 2 and attempt > 0 else [], {"kernel": "6.18"})

    monkeypatch.setattr(validate, "simulate", lambda *_: [figures()])
    monkeypatch.setattr(validate, "_live", live)
    scenario = Scenario.from_file(ROOT / "scenarios" / "live" / "thin.toml").set("duration", "1 s")
    made = validate.compare(scenario, "some/thin.toml", seeds=2, times=TIMES)
    told = document([made])
    (one,) = told["scenarios"]
    assert (one["seeds_left_out"], one["tainted"], one["tainted_runs"]) == ([2], False, 3)
    assert "- thin.toml: left out: fewer than two live runs are untainted: seed 2\n" in page([made])
    made.left_out = []
    assert "left out" not in page([made])


@pytest.mark.parametrize("value", [None, 0.0])
def test_a_transfer_that_never_completes(value: float | None) -> None:
    wrong = found(figures(put(COMPLETION.name, "b", value)))
    assert wrong == ["made-up.toml: only some runs have completion_time_s of flow b"]


def test_a_figure_missing_in_one_live_run() -> None:
    assert found(figures(), put(GOODPUT.name, ALL, None)) != []


def test_a_missing_flow() -> None:
    def without(values: dict[str, dict[str, float | None]]) -> None:
        del values[SRTT.name]["b"]

    assert found(figures(without)) == ["made-up.toml: only some runs have mean_srtt_ms of flow b"]


def test_all_figures_are_finite() -> None:
    """A document with an infinity is not JSON."""
    from anabranch.files.output import to_json

    nothing = figures(lambda v: v.update({SRTT.name: {"a": 0.0, "b": 0.0}}))
    made = Comparison("zero.toml", 1, live_runs=2)
    set_beside(made, {1: [figures()]}, {1: [nothing, nothing]}, {1: [figures()]}, [figures()], drawn=False)
    assert made.results[SRTT.name].error == 1.0
    assert problems([made]) != []
    to_json(document([made]))


def test_distances() -> None:
    assert distance(SRTT, {"a": 11.0, "b": 20.0}, {"a": 10.0, "b": 10.0}) == pytest.approx(0.55)
    assert distance(RETRANSMITTED, {"a": 0.0}, {"a": 16.0}) == 4.0
    assert distance(RETRANSMITTED, {"a": 0.0}, {"a": 0.0}) == 0.0
    assert distance(SHARES, {"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}) == 1.0
    assert distance(SRTT, {"a": 1.0}, {"b": 1.0}) is None
    assert window_distance({"a": {0: 10.0, 1: 30.0}}, {"a": {0: 20.0, 1: 20.0}}) == 0.5
    assert window_distance({"a": {0: 10.0}}, {"a": {5: 10.0}}) is None


def test_a_seeds_runs_are_averaged_before_the_comparison() -> None:
    """Noise has both signs, the error of a wrong simulator has one."""
    made = Comparison("noise.toml", 2, live_runs=4)
    more, less = figures(put(GOODPUT.name, ALL, 22.0)), figures(put(GOODPUT.name, ALL, 18.0))
    nothing = {1: [figures()], 2: [figures()]}
    set_beside(made, {1: [more], 2: [less]}, {1: [more, less], 2: [less, more]}, nothing, [figures()], drawn=True)
    assert made.results[GOODPUT.name].error == pytest.approx(0)
    assert made.results[GOODPUT.name].floor == pytest.approx((4 / 18 + 4 / 22) / 2 / math.sqrt(2))


def test_without_random_draws_all_pairs_of_live_runs_give_the_floor() -> None:
    """Detects a floor from pairs of the same seed only, which would be 0 here."""
    made = Comparison("repeats.toml", 2, live_runs=4)
    runs = [figures(put(GOODPUT.name, ALL, value)) for value in (20.0, 20.0, 22.0, 22.0)]
    nothing = {1: [figures()], 2: [figures()]}
    set_beside(made, {1: runs[:1], 2: runs[:1]}, {1: runs[:2], 2: runs[2:]}, nothing, [figures()], drawn=False)
    # Two of six pairs have equal runs; in the others the difference is divided by the second run.
    assert made.results[GOODPUT.name].floor == pytest.approx(4 * 2 / 22 / 6 / math.sqrt(2))


def _told(microseconds: int) -> str:
    """A duration in the form of a resolved scenario."""
    return f"{microseconds} us" if microseconds else "0 s"


def test_the_simulators_answer_is_a_mean_over_host_times() -> None:
    """Detects a single answer: CUBIC and Reno share one queue either way, depending on microseconds."""
    from anabranch.validate import DRAWS, simulate

    times = TIMES
    scenario = Scenario.from_file(ROOT / "scenarios" / "live" / "two-controls.toml")
    resolved = [run.resolve()["resolved_scenario"] for run in with_host_times(scenario, DRAWS, TIMES)]
    assert len(resolved) == DRAWS

    def microseconds(text: str) -> float:
        value, unit = text.split()
        return float(value) * {"us": 1.0, "ms": 1e3, "ns": 1e-3}[unit]

    begun = {tuple(microseconds(flow["start"]) for flow in run["flow"].values()) for run in resolved}
    firsts = {min(starts) for starts in begun}
    # Beginnings in each quarter of a tick.
    assert {int(4 * (first - min(times.beginnings)) // TICK_US) for first in firsts} >= {0, 1, 2, 3}
    assert max(firsts) < TICK_US + max(times.beginnings)
    apart = {round(abs(second - first)) for first, second in begun}
    assert apart <= set(times.next)
    assert len(apart) > len(set(times.next)) // 2
    assert {second > first for first, second in begun} == {True, False}
    # A sender receives ACKs late, and a receiver sends its answers late.
    for host, role, direction in (("A-host", "sender", "reverse"), ("B-host", "receiver", "forward")):
        other = {"forward": "reverse", "reverse": "forward"}[direction]
        assert not any(run["link"][host][other]["impair"] for run in resolved)
        impairs = [run["link"][host][direction]["impair"] for run in resolved]
        for number in range(len(PAUSES_MS)):
            tables = [impair[number]["table"] for impair in impairs]
            assert len({tuple(table) for table in tables}) > DRAWS // 2
            expected = sorted(_told(more) for more in times.added(role)[number])
            assert all(sorted(table) == expected for table in tables)
    for host, what, table in (
        ("B-host", "read_delays", times.until_read("alone")),
        ("B-host", "idle_read_delays", times.until_idle_read()),
        ("A-host", "first_write_delays", times.first_data),
    ):
        drawn = {tuple(run["host"][host][what]) for run in resolved}
        assert len(drawn) > DRAWS // 2
        assert {tuple(sorted(draw)) for draw in drawn} == {tuple(sorted(map(_told, table)))}
    assert all("read_delays" not in run["host"]["A-host"] for run in resolved)
    assert all("first_write_delays" not in run["host"]["B-host"] for run in resolved)
    shares = [run.values[SHARES.name]["reno"] or 0 for run in simulate(scenario, 1, 16, TIMES)]
    assert max(shares) - min(shares) > 0.05


def test_hosts_that_also_send_read_later_and_answering_hosts_at_once() -> None:
    times = TIMES

    def reads(name: str, what: str = "read_delays") -> dict[str, list[str]]:
        run = with_host_times(Scenario.from_file(ROOT / "scenarios" / "live" / name), 1, TIMES)[0]
        hosts = run.resolve()["resolved_scenario"].get("host", {})
        return {host: sorted(table[what]) for host, table in hosts.items() if what in table}

    beside = sorted(map(_told, times.until_read("beside a sender")))
    alone = sorted(map(_told, times.until_read("alone")))
    assert reads("reverse-load.toml") == {"A-host": beside, "B-host": beside}
    assert reads("requests-beside-bulk.toml") == {"B-host": alone}
    # A host that also sends is rarely idle.
    assert reads("reverse-load.toml", "idle_read_delays") == {}
    idle = times.until_idle_read()
    assert reads("requests-beside-bulk.toml", "idle_read_delays") == {"B-host": sorted(map(_told, idle))}
    assert sum(idle) > 1.5 * sum(times.until_read("alone"))
    assert all(longer >= usual for longer, usual in zip(idle, times.until_read("alone"), strict=True))
    asks = Scenario.from_text(
        """
        duration = "1 s"
        [link.l]
        between = ["A", "B"]
        rate = "1 Mbit/s"
        delay = "1 ms"
        [flow.f]
        from = "A"
        to = "B"
        workload = { kind = "request-response", request = "1 kB", response = "1 kB", think = "1 ms" }
        """
    )
    assert "host" not in with_host_times(asks, 1, TIMES)[0].resolve()["resolved_scenario"]


def test_first_data_and_its_answer_are_late() -> None:
    """Detects a first burst that is sent with the handshake's acknowledgment, which takes time to cross a route."""
    measured = TIMES

    def resolved(name: str) -> dict[str, Any]:
        run = with_host_times(Scenario.from_file(ROOT / "scenarios" / "live" / name), 1, TIMES)[0]
        return dict(run.resolve()["resolved_scenario"])

    def writers(name: str) -> dict[str, list[str]]:
        hosts = resolved(name)["host"].items()
        return {host: sorted(of["first_write_delays"]) for host, of in hosts if "first_write_delays" in of}

    def answers(name: str) -> dict[str, tuple[list[int], list[str]]]:
        hosts = {host: link for host, link in resolved(name)["link"].items() if host.endswith("-host")}
        last = {host: link["forward"]["impair"][-1] for host, link in hosts.items() if link["forward"]["impair"]}
        return {
            host: (jitter["packets"], sorted(jitter["table"])) for host, jitter in last.items() if "packets" in jitter
        }

    times = sorted(map(_told, measured.first_data))
    assert writers("lossy-ten-reno.toml") == {"A-host": times}
    assert writers("reverse-load.toml") == {"A-host": times, "B-host": times}
    # Requests of an application have their own timing.
    assert set(writers("requests-beside-bulk.toml")) == {"A-host"}
    assert answers("two-routes.toml") == {"B-host": ([1], sorted(map(_told, measured.added_by_first_data())))}
    # No packet overtakes there; and with several connections a packet's number does not identify
    # the first packets.
    assert answers("lossy.toml") == answers("two-controls.toml") == {}


def test_the_simulator_has_the_live_send_buffer() -> None:
    """Detects buffers of 16 KiB, which have pieces of twice the length: they determine the size of bursts."""
    from anabranch.live import first_send_buffer

    scenario = Scenario.from_file(ROOT / "scenarios" / "live" / "reverse-load.toml")
    flows = with_host_times(scenario, 1, TIMES)[0].resolve()["resolved_scenario"]["flow"].values()
    held = first_send_buffer(scenario)
    # Four times the sum of a product and a queue of 100 kB each.
    assert held == 800_000
    assert {flow["transport"]["send_autotuning_start"] for flow in flows} == {"800 kB"}


def test_a_scenario_of_many_packets_is_simulated_less_often() -> None:
    from anabranch.validate import DRAWS, FEW_DRAWS, _draws

    assert _draws([]) == _draws([20_000, 10_000]) == DRAWS
    assert _draws([2_000_000, 10_000]) == 32
    assert _draws([10**9]) == FEW_DRAWS


def test_host_times_change_no_other_random_draw() -> None:
    """The seed determines the losses. Detects a jitter whose draws change them."""
    scenario = Scenario.from_file(ROOT / "scenarios" / "live" / "lossy.toml")

    def lost(run: Scenario) -> list[int]:
        table = run.run(packets=True).table("packets")
        return [place for place, fate in enumerate(table["fate"]) if fate == "lost"][:5]

    # Until the first loss is detected, only the times differ.
    assert {tuple(lost(run)[:1]) for run in with_host_times(scenario, 8, TIMES)} == {tuple(lost(scenario)[:1])}


def test_live_runs_as_different_as_controls_decide_nothing() -> None:
    made = comparison(figures(), lambda v: v.update({SRTT.name: {"a": 70.0, "b": 84.0}}))
    assert [row[-1] for row in rows([made]) if row[1] == SRTT.name] == ["cannot tell"]
    told = summary([made, comparison(figures())])[SRTT.name]
    assert (told["within"], told["telling"], told["within_telling"]) == (2, 1, 1)


def test_wrong_answers_are_shown_with_the_goodput() -> None:
    """A tolerance that a wrong simulator also meets is visible."""
    slower = figures(put(GOODPUT.name, ALL, 19.0))
    made = Comparison("made-up.toml", 1, live_runs=2)
    set_beside(made, {1: [figures()]}, {1: [figures(), figures()]}, {1: [slower]}, [slower, figures()], drawn=False)
    (line,) = [line for line in verdicts([made]) if line.startswith("goodput")]
    assert line.endswith("another control's answer 5 %, the blind formula 2.5 %")


def test_document_and_table() -> None:
    made = [comparison(figures(put(SRTT.name, "a", 70.0)))]
    told = document(made)
    metric = told["scenarios"][0]["metrics"][SRTT.name]
    assert set(metric) >= {"sim", "live", "relative_error", "live_against_live", "other_control", "blind", "within"}
    assert metric["within"] is False
    assert metric["by_flow"]["a"] == {"sim": 70.0, "live": 50.0}
    assert set(told["summary"][SRTT.name]) == {
        "median",
        "p90",
        "scenarios",
        "within",
        "telling",
        "within_telling",
        "median_other",
        "median_blind",
    }
    assert [row[-1] for row in rows(made) if row[1] == SRTT.name] == ["outside"]
    assert any("in 0 of 1 scenarios" in line for line in verdicts(made))
    assert math.isclose(summary(made)[GOODPUT.name]["median"], 0.0)


def test_the_figure(tmp_path: Path) -> None:
    from anabranch.plot.style import house_style, save
    from anabranch.plot.validate import distances

    with house_style():
        paths = save(distances([comparison(figures()), Comparison("tainted.toml", 1)]), tmp_path / "validation")
    assert all(path.stat().st_size > 1000 for path in paths)


TEXT = """
title = "two kinds of flows"
duration = "3 s"

[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }

[flow.many]
from = "A"
to = "B"
cc = "cubic"
count = 2

[flow.file]
from = "A"
to = "B"
cc = { kind = "bbr" }
workload = { kind = "file", size = "100 kB" }
"""


def test_copies_form_one_group() -> None:
    run = Scenario.from_text(TEXT).run(samples_ms=10.0)
    measured = measure(run)
    assert set(measured.values[SHARES.name]) == {"many", "file"}
    assert sum(value or 0 for value in measured.values[SHARES.name].values()) == pytest.approx(1)
    flows = run.flows
    many = [flows[name] for name in flows if name != "file"]
    assert measured.values[RETRANSMITTED.name]["many"] == sum(flow["retransmitted_packets"] or 0 for flow in many)
    assert measured.values[COMPLETION.name] == {"file": flows["file"]["flow_completion_time_s"]}
    assert set(measured.windows["many"]) >= set(range(12))


def test_every_flow_gets_another_control() -> None:
    changed = exchanged(Scenario.from_text(TEXT), {"cubic": "reno", "bbr": "cubic"}.__getitem__)
    flows: dict[str, Any] = changed.resolve()["resolved_scenario"]["flow"]
    kinds = {name: flow["cc"]["kind"] if isinstance(flow["cc"], dict) else flow["cc"] for name, flow in flows.items()}
    assert kinds == {"many": "reno", "file": "cubic"}


LIVE = sorted((ROOT / "scenarios" / "live").glob("*.toml"))


def test_half_of_the_shipped_scenarios_distinguish_the_control() -> None:
    """Judged by the simulator alone: the answer that ignores the control is compared with the simulator's own."""
    from anabranch.validate import ALIKE

    failing = 0
    for file in LIVE:
        scenario = Scenario.from_file(file)
        seed = int(scenario.resolve()["seed"])
        truth = measure(scenario.run(seed=seed, digest=False))
        blind = [measure(exchanged(scenario, lambda _, c=control: c).run(seed=seed, digest=False)) for control in ALIKE]  # type: ignore[misc]
        made = Comparison(file.name, 1)
        set_beside(made, {seed: [truth]}, {seed: [truth, truth]}, {seed: blind[:1]}, blind, drawn=False)
        failing += needs_the_control(made)
    assert failing >= len(LIVE) / 2


def test_holds_needs_a_comparison() -> None:
    made = comparison(figures(put(SRTT.name, "a", 51.0)))
    result = made.results[SRTT.name]
    assert holds(result)
    result.other = None
    assert not holds(result)


def test_a_stored_run_is_read_back(tmp_path: Path) -> None:
    from anabranch.errors import UserError

    file = keep.path(tmp_path / "runs", "thin", {"a": 1}, 1, 0)
    assert keep.read(file) is None
    run = keep.LiveRun(figures(), ["late"], {"kernel": "6.18"})
    keep.write(file, run)
    assert keep.read(file) == run
    others = [keep.path(file.parent, "thin", {"a": 2}, 1, 0), keep.path(file.parent, "thin", {"a": 1}, 2, 0)]
    assert file not in others
    file.write_text("{}")
    with pytest.raises(UserError, match="is no live run that was kept"):
        keep.read(file)


def kept_at(scenario: Scenario, limits: Limits | None = None) -> Path:
    return keep.path(Path("runs"), "a", keep.about(scenario.resolve(seed=1), limits), 1, 0)


def test_a_run_is_stored_under_all_its_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Detects a name that ignores a file's content, the limits, or another build of ours."""
    (tmp_path / "lost.txt").write_text("7\n")
    (tmp_path / "mine.bpf.c").write_text((ROOT / "bpf" / "cc" / "reno.bpf.c").read_text())
    file = tmp_path / "scenario.toml"
    file.write_text(
        'duration = "1 s"\n[link.path]\nbetween = ["A", "B"]\ndelay = "5 ms"\nrate = "10 Mbit/s"\n'
        'forward.impair = [{ kind = "loss-list", file = "lost.txt" }]\n'
        '[flow.main]\nfrom = "A"\nto = "B"\ncc = { kind = "bpf", file = "mine.bpf.c" }\n'
    )
    scenario = Scenario.from_file(file)
    before = kept_at(scenario)
    assert kept_at(scenario) == kept_at(scenario, Limits()) == before
    assert kept_at(scenario, Limits(max_lateness_ms=30.0)) != before
    for name in ("lost.txt", "mine.bpf.c"):
        text = (tmp_path / name).read_text()
        (tmp_path / name).write_text(text + "\n")
        assert kept_at(scenario) != before, name
        (tmp_path / name).write_text(text)
        assert kept_at(scenario) == before
    monkeypatch.setattr(keep, "build", lambda: ["another"])
    assert kept_at(scenario) != before


def slower(here: HostTimes, us: int) -> HostTimes:
    """All times, longer by ``us``."""

    def more(table: Sequence[int]) -> list[int]:
        return [time + us for time in table]

    return HostTimes(
        more(here.beginnings),
        more(here.next),
        more(here.first_data),
        # The time of data that makes the connection is relative to the time of other data.
        more(more(here.made_by_data)),
        {which: more(table) for which, table in here.at_once.items()},
        # The times of readers are relative to those.
        {which: more(more(table)) for which, table in here.by_reader.items()},
        more(more(here.by_idle_reader)),
        {role: list(map(more, tables)) for role, tables in here.answers.items()},
    )


def test_times_of_another_machine_are_applied() -> None:
    """Detects times that are read and not used."""
    from anabranch.validate import simulate

    scenario = Scenario.from_file(ROOT / "scenarios" / "live" / "lossy.toml")
    here = TIMES
    for role in ROLES:
        longer = [[time + 5000 for time in table] for table in here.answers[role]]
        there = dataclasses.replace(here, answers={**here.answers, role: longer})

        def round_trip_ms(times: HostTimes) -> float:
            [figures] = simulate(scenario, 1, 1, times)
            found = figures.values[SRTT.name]["main"]
            assert found is not None
            return found

        assert 3 < round_trip_ms(there) - round_trip_ms(here) < 7, role


def test_every_time_of_another_machine_is_used() -> None:
    """Detects one of the package's lists among the times of another machine."""
    here = TIMES
    there = slower(here, 777)
    scenarios = ROOT / "scenarios" / "live"

    def described(name: str, times: HostTimes) -> tuple[Any, ...]:
        run = with_host_times(Scenario.from_file(scenarios / name), 1, times)[0].resolve()["resolved_scenario"]
        starts = sorted(float(flow["start"].split()[0]) for flow in run["flow"].values())
        hosts = {host: link for host, link in run["link"].items() if host.endswith("-host")}
        return starts, hosts, run.get("host", {})

    for name in ("two-controls.toml", "two-routes.toml", "reverse-load.toml"):
        (starts, links, hosts), (later, longer, slow) = described(name, here), described(name, there)
        assert starts != later
        jitters = [
            (host, direction, number)
            for host, link in links.items()
            for direction in ("forward", "reverse")
            for number, one in enumerate(link[direction]["impair"])
            if number == 0 or "packets" in one
        ]
        assert len(jitters) == (3 if name == "two-routes.toml" else 2), name
        for host, direction, number in jitters:
            assert links[host][direction]["impair"][number] != longer[host][direction]["impair"][number]
        for host, what in hosts.items():
            for key, table in what.items():
                if key.endswith("_delays"):
                    assert table != slow[host][key], (host, key)


def test_host_times_reach_every_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Detects a comparison that simulates a scenario, or the other controls, with the package's own times."""
    there = slower(TIMES, 777)
    seen = []

    def simulate(scenario: Scenario, seed: int, draws: int, times: HostTimes) -> list[Figures]:
        seen.append(times)
        return [figures()]

    monkeypatch.setattr(validate, "simulate", simulate)
    monkeypatch.setattr(validate, "_live", lambda *_: LiveRun(figures(), [], {}))
    thin = Scenario.from_file(ROOT / "scenarios" / "live" / "thin.toml")
    made = validate.compare(thin, "thin.toml", seeds=1, times=there)
    # The scenario, other controls instead, and three with the same control for all flows.
    assert seen == [there] * 5
    # The result contains the times, in the form of a file.
    assert HostTimes.of(document([made])["host_times"]) == there


def test_host_times_of_the_command_reach_the_comparison(
    anabranch: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from anabranch import live
    from anabranch.validate import measure_hosts

    there = slower(TIMES, 777)
    file = tmp_path / "there.json"
    file.write_text(json.dumps(there.document()))
    seen = []

    def compare(*_: object, times: HostTimes, **__: object) -> Comparison:
        seen.append(times)
        return comparison(figures())

    monkeypatch.setattr(validate, "compare", compare)
    monkeypatch.setattr(live, "prepare", lambda *_: None)
    monkeypatch.setattr(live, "check", lambda *_, **__: None)
    thin = ROOT / "scenarios" / "live" / "thin.toml"
    monkeypatch.setattr(measure_hosts, "measure_hosts", lambda _: TIMES)
    for option in (("--host-times", file), ("--out", tmp_path / "out")):
        assert anabranch("validate", thin, "--seeds", 1, *option).status == 0
    assert seen == [there, TIMES]


def test_host_times_are_written_and_read_back(tmp_path: Path) -> None:
    from anabranch.errors import UserError

    here = TIMES
    assert HostTimes.of(json.loads(json.dumps(here.document()))) == here
    file = tmp_path / "times.json"
    whole = here.document()
    answers = dict(here.answers)
    for wrong, told in [
        ("[]", "expected a table"),
        (whole | {"answers": {"sender": answers["sender"]}}, 'lacks "receiver"'),
        ({name: table for name, table in whole.items() if name != "next"}, 'lacks "next"'),
        (whole | {"next": []}, "empty"),
        (whole | {"next": [1.5] * len(here.next)}, "a whole number"),
        (whole | {"next": [True] * len(here.next)}, "a whole number"),
        (whole | {"next": [-1] * len(here.next)}, "0 to 999999"),
        (whole | {"next": [1]}, "not equally long"),
        (whole | {"next": list(reversed(here.next))}, "not ascending"),
        (whole | {"answers": answers | {"sender": answers["sender"][:3]}}, "do not have 4 lists"),
        (whole | {"at_once": []}, "expected a table"),
    ]:
        file.write_text(wrong if isinstance(wrong, str) else json.dumps(wrong))
        with pytest.raises(UserError) as raised:
            HostTimes.read(file)
        assert told in str(raised.value), str(raised.value)
        assert "validate --out DIR" in str(raised.value)
    with pytest.raises(UserError, match="no such file"):
        HostTimes.read(tmp_path / "none.json")
    file.write_text("[1, 2")
    with pytest.raises(UserError, match=r"times\.json:1:6: not JSON"):
        HostTimes.read(file)


def test_a_metric_without_scenarios_keeps_labels_inside_the_figure(tmp_path: Path) -> None:
    """Detects lines without points: matplotlib then abandons the layout, and cuts the titles off."""
    import warnings

    pytest.importorskip("matplotlib")
    from anabranch.plot.style import house_style
    from anabranch.plot.validate import distances

    made = Comparison("thin.toml", 1, engine="kernel")
    made.results["goodput_mbit_s"] = validate.Result({"main": 9.4}, {"main": 9.5}, 0.01, 0.0, 0.05)
    with house_style(), warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = distances([made])
        figure.savefig(tmp_path / "distances.png")
        box = figure.axes[0].xaxis.label.get_window_extent()
        assert 0 <= box.y0 < box.y1
    assert "Simulator against kernel" in [text.get_text() for text in figure.legends[0].get_texts()]
