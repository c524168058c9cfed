"""Confirmation in a kernel: confirmed, withdrawn, or not run. ``test_kernel`` uses a real kernel."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from anabranch.errors import RunFailedError, UserError
from anabranch.kernel import images
from anabranch.stress import confirm as module
from anabranch.stress.campaign import read_control
from anabranch.stress.confirm import Confirmation, confirm
from anabranch.stress.genome import Event, Genome
from anabranch.stress.goals import Measured
from anabranch.stress.judge import Pair
from anabranch.stress.report import Told, counted
from anabranch.stress.search import Find

PAIR = Pair(read_control("vegas", "control", "linux"), read_control("reno", "against", "linux"))
TRAP = Genome(10, 20, 1, "alone", (Event(3_000, "delay", 0, 80.0, 0, "shared"),))
GOOD = Measured(share=0.9, other=0, queue_ms=1, sent=100, spurious=0, dropped=0, drops=0, timeouts=0)


@pytest.fixture(autouse=True)
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is built."""
    monkeypatch.setattr(images, "chosen", lambda _name: SimpleNamespace(release="6.12.1"))


def answers(monkeypatch: pytest.MonkeyPatch, share: float) -> list[str]:
    """Runs in which the tested control has this share; returns the control of each run, once it was made."""
    made: list[str] = []

    def run(text: str, sets: list[str], *_more: object) -> Measured:
        made.append(" ".join(sets) or text.partition("cc = ")[2].split()[0])
        return GOOD if sets else Measured(share, 0, 1, 100, 0, 0, 0, 0)

    monkeypatch.setattr(module, "_run", run)
    return made


def test_a_find_that_a_kernel_shows_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = answers(monkeypatch, 0.05)
    found = confirm("starvation", TRAP, PAIR)
    assert made == ['"vegas"', 'flow.main.cc="reno"']
    assert found.outcome == "confirmed"
    assert found.sentence.startswith(
        "Confirmed in Linux 6.12.1: if the shared delay is 80 ms from 3 s on, vegas then has 5 %"
    )


def test_a_find_that_a_kernel_does_not_show_is_withdrawn_with_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, 0.2)
    found = confirm("starvation", TRAP, PAIR)
    assert found.outcome == "withdrawn"
    assert found.sentence.startswith("Withdrawn: the threshold is not reached in Linux 6.12.1: ")
    assert "vegas then has 20 %" in found.sentence
    assert found.case is not None
    assert found.case["own"]["share"] == 0.2


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        ([], "no find"),
        ([None], "1 find"),
        (["confirmed", "not run"], "2 finds"),
        (["withdrawn"], "no find (1 withdrawn)"),
        (["withdrawn", "confirmed"], "1 find (1 withdrawn)"),
    ],
)
def test_a_withdrawn_find_is_not_counted(outcomes: list[str | None], told: str) -> None:
    find = Find("starvation", TRAP, 1.5, 32, {})
    tellings = [Told("01", find, "", Confirmation(one, "") if one else None) for one in outcomes]
    assert counted(tellings) == told


def test_a_receiver_of_our_own_is_not_run_in_a_kernel() -> None:
    ratio = Genome(10, 20, 1, "alone", (Event(3_000, "ack-ratio", 0, 8, 0, "own"),))
    assert confirm("slow", ratio, PAIR).sentence == (
        "Not run in Linux 6.12.1: the receiver's acknowledgments are the kernel's own."
    )


@pytest.mark.parametrize("error", [UserError("no such control"), RunFailedError("the kernel stopped\nsecond line")])
def test_a_run_that_fails_is_no_verdict(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def run(*_arguments: object) -> Measured:
        raise error

    monkeypatch.setattr(module, "_run", run)
    found = confirm("starvation", TRAP, PAIR)
    assert found.outcome == "not run"
    assert found.sentence == f"Not run in Linux 6.12.1: {str(error).splitlines()[0]}."
