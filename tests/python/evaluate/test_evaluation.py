"""Evaluations of controls and queues, with and without faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anabranch.evaluate import isolated, words
from anabranch.evaluate.evaluation import document
from anabranch.evaluate.judge import BROKEN, INCONCLUSIVE, MET, NOT_EVALUATED, NOT_MET
from anabranch.evaluate.runs import Failure, Job
from anabranch.evaluate.subject import find

from .sample import bad, choose, run


def test_cubic_is_as_good_as_cubic(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, "tail-drop-utilization", "tail-drop-delay", "loss-of-several", "harm-goodput", "onset-loss")
    result = run("cubic")
    assert {check.check.id: check.verdict for check in result.checks} == dict.fromkeys(
        (check.check.id for check in result.checks), MET
    )
    assert result.counts[MET] > 5


def test_two_evaluations_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, "onset-loss", "oscillation")
    first, second = run("bbr3"), run("bbr3")
    assert first.digest is not None
    assert document(first) == document(second)


def test_the_document_is_json(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, "breaker")
    made = document(run("reno"))
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert made["subject"]["name"] == "reno"
    assert sum(made["counts"].values()) == len(made["items"])


@pytest.mark.long
def test_a_fixed_window_harms_and_loses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    choose(monkeypatch, "loss-of-several", "harm-goodput", "heavy-loss", "breaker", "tail-drop-delay", seeds=2)
    result = run(bad(tmp_path, "Fixed"))
    found = {check.check.id: check.verdict for check in result.checks}
    assert found["loss-of-several"] == NOT_MET
    assert found["heavy-loss"] == NOT_MET
    assert found["breaker"] == NOT_MET
    assert found["harm-goodput"] == NOT_MET
    items = {one.item.id: one.verdict for one in result.items}
    assert items["9743-5.1.1"] == items["9743-5.1.3"] == items["9743-5.2"] == items["9743-7.2"] == NOT_MET


@pytest.mark.parametrize(
    ("name", "told"),
    [("Raises", "KeyError: 'no state' (Raises.on_ack, bad_controls.py:38)"), ("Nan", "NaN"), ("Exits", "SIGKILL")],
)
def test_a_faulty_control_is_broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, told: str) -> None:
    choose(monkeypatch, "onset-loss", seeds=1)
    result = run(bad(tmp_path, name))
    (check,) = result.checks
    assert check.verdict == BROKEN
    assert told in check.cases[0].judgement.why
    assert "[flow.x]" in check.cases[0].text.replace("flow.x = {", "[flow.x]")
    assert {one.item.id for one in result.items if one.verdict == BROKEN} >= {"9743-7.8", "5166-2.2.1"}


def test_a_control_that_never_ends_is_broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its other runs are not made, so that no item is met."""
    choose(monkeypatch, "onset-loss", "onset-delay", "unresponsive-loss", "fairness", seeds=1)
    monkeypatch.setattr(isolated.run_isolated, "__defaults__", (0.3,))
    result = run(bad(tmp_path, "Endless"))
    found = {(case.judgement.verdict, case.judgement.why) for check in result.checks for case in check.cases}
    assert found == {
        (BROKEN, "the run did not end within 0.3 s of processor time"),
        (NOT_EVALUATED, "not made, because 2 other runs did not end"),
    }
    made = {one.item.id: one for one in result.items if one.checks}
    assert MET not in {one.verdict for one in made.values()}
    left = next(one for one in made.values() if one.verdict == NOT_EVALUATED)
    assert "not made, because 2 other runs did not end" in words.of_item(left)


SMALL = """
duration = "3 s"
link.a = { between = ["S", "R"], rate = "1 Mbit/s", delay = "10 ms" }
flow.x = { from = "S", to = "R", cc = "NAME" }
"""


def test_a_run_that_waits_for_a_processor_is_not_broken(tmp_path: Path) -> None:
    """It takes longer than the limit, but not of processor time."""
    subject = find(bad(tmp_path, "Waits"))
    job = Job(SMALL.replace("NAME", "waits"), 1, False, subject)
    ((made,),) = isolated.run_isolated(subject, [job], 1, limit_s=2.0)
    assert not isinstance(made[1], Failure)


def test_a_run_that_waits_for_nothing_is_broken(tmp_path: Path) -> None:
    subject = find(bad(tmp_path, "Sleeps"))
    job = Job(SMALL.replace("NAME", "sleeps"), 1, False, subject)
    ((made,),) = isolated.run_isolated(subject, [job], 1, limit_s=3.0)
    assert made[1] == Failure("the run did not end, and made no progress for 3 s")


def test_a_good_control_in_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    choose(monkeypatch, "onset-loss", "breaker", seeds=1)
    result = run(bad(tmp_path, "Good"))
    assert {check.verdict for check in result.checks} <= {MET, INCONCLUSIVE}


def test_a_control_as_an_ebpf_program(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, "onset-loss", seeds=2)
    program = Path(__file__).resolve().parents[3] / "bpf" / "cc" / "reno.bpf.c"
    assert run(str(program)).checks[0].verdict == MET


def test_codel_has_less_delay_than_drop_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, "q-aggressive-delay", "q-mild-delay", "q-synchronization")
    result = run("codel")
    assert {check.check.id: check.verdict for check in result.checks}["q-aggressive-delay"] == MET
    assert result.items[0].item.document == "RFC 7928"


def test_a_queue_is_no_reference_by_the_name_of_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    choose(monkeypatch, "q-aggressive-delay", seeds=1)
    table = tmp_path / "drop-tail.toml"
    table.write_text('[queue]\nkind = "codel"\n', encoding="utf-8")
    assert not run(str(table)).remarks
    assert run("drop-tail").remarks


def test_a_queue_from_a_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    choose(monkeypatch, "q-aggressive-delay")
    table = tmp_path / "deep.toml"
    table.write_text('[queue]\nkind = "drop-tail"\nlimit = "2000 packets"\n', encoding="utf-8")
    result = run(str(table))
    assert result.subject.name == "deep"
    assert not result.remarks
    assert result.checks[0].verdict == NOT_MET
