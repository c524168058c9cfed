"""The summary of a live run has the form of the typed dictionaries and of the reference."""

from __future__ import annotations

import pytest
from python.test_summary import mismatches

from anabranch import NotRecordedError, RunResult, Scenario
from anabranch.result.summary import LiveRunSummary

from .conftest import FLOW, PATH


@pytest.fixture(scope="module")
def result(live_machine: None) -> RunResult:
    scenario = Scenario.from_text(PATH + FLOW).set("duration", "1 s")
    return scenario.run_live(packets=True, allow_tainted=True)


@pytest.mark.brief
def test_the_summary_has_the_typed_keys(result: RunResult) -> None:
    assert mismatches(result.summary, LiveRunSummary, "summary") == []


def test_a_table_without_records_names_the_argument(result: RunResult) -> None:
    assert not result.table("samples").is_empty()
    assert not result.table("packets").is_empty()
    with pytest.raises(NotRecordedError, match="link_samples was not recorded: pass samples_ms=10"):
        result.table("link_samples")
    with pytest.raises(NotRecordedError, match="ack_samples was not recorded: pass trace='acks'"):
        result.table("ack_samples")
