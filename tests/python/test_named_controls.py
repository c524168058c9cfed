"""The congestion control that a diagnosis names."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from anabranch.diagnosis.controls import control_of, control_text, evidence_text
from anabranch.diagnosis.diagnosis import Diagnosis, diagnose
from anabranch.diagnosis.document import Connection, Control
from anabranch.diagnosis.text import detail, overview
from anabranch.fitted.scenario import fitted

CAPTURES = Path(__file__).parents[2] / "docs" / "captures"


@pytest.fixture(scope="module")
def cubic() -> Diagnosis:
    return diagnose(CAPTURES / "reordering.pcapng.gz")


def test_a_named_control_is_in_the_summary_and_in_the_scenario(cubic: Diagnosis) -> None:
    (connection,) = cubic.content["connections"]
    control = control_of(connection)
    assert control is not None
    assert (control["verdict"], control["name"], control["candidates"]) == ("named", "cubic", [])
    assert "  congestion control: CUBIC" in list(overview(cubic))
    assert fitted(connection, "reordering.pcapng.gz").document["flow"]["main"]["cc"] == "cubic"


def test_the_detail_has_the_evidence(cubic: Diagnosis) -> None:
    (connection,) = cubic.content["connections"]
    lines = " ".join(" ".join(detail(connection)).split())
    assert "Congestion control: CUBIC" in lines
    assert "CUBIC deviates by" in lines


def test_an_undecided_control_is_not_in_the_summary() -> None:
    found = diagnose(CAPTURES / "zero-window.pcapng.gz")
    (connection,) = found.content["connections"]
    control = control_of(connection)
    assert control is not None
    assert control["verdict"] == "undecided"
    assert control_text(connection) is None
    assert not any("congestion control" in line for line in overview(found))
    assert any("Congestion control: undecided" in line for line in detail(connection))


def test_candidates_and_other_controls_in_words() -> None:
    alike = "These controls behave alike on this path."
    control: Control = {"verdict": "undecided", "name": None, "candidates": ["reno", "yeah"], "evidence": [alike]}
    assert evidence_text(control) == f"Reno or YeAH. {alike}"


def test_another_control_is_none_of_the_known_ones(cubic: Diagnosis) -> None:
    found = _with(cubic, {"verdict": "none-of-these", "name": None, "candidates": [], "evidence": []}, "cubic")
    assert control_text(found) == "none of 11 known ones"


def _with(diagnosis: Diagnosis, control: Control, simulated: str) -> Connection:
    """The connection with another verdict."""
    connection = copy.deepcopy(diagnosis.content["connections"][0])
    flow = connection["path"]["flow"]
    flow["control"], flow["congestion_control"] = control, simulated
    flow["congestion_control_evidence"] = "assumed: the capture does not show it"
    return connection


def test_a_control_that_the_simulator_lacks_is_an_assumption(cubic: Diagnosis) -> None:
    control: Control = {"verdict": "named", "name": "illinois", "candidates": [], "evidence": []}
    found = fitted(_with(cubic, control, "reno"), "capture.pcap")
    assert "the congestion control is reno, in place of Illinois, which the simulator lacks" in found.assumptions
