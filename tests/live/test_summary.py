"""The summary of a live run has the form of the typed dictionaries and of the reference."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

import pytest

from anabranch import NotRecordedError, RunResult, Scenario
from anabranch.result.summary import LiveRunSummary

from .conftest import FLOW, PATH


@pytest.fixture(scope="module")
def result(live_machine: None) -> RunResult:
    scenario = Scenario.from_text(PATH + FLOW).set("duration", "1 s")
    return scenario.run_live(packets=True, allow_tainted=True)


def differing(value: Any, hint: Any, place: str) -> Iterator[str]:
    """Every table whose keys differ from its typed dictionary."""
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint)
        # The key exists only if it is true.
        if others := (set(value) ^ set(hints)) - {"tainted"}:
            yield f"{place}: {sorted(others)}"
        for key in set(value) & set(hints):
            yield from differing(value[key], hints[key], f"{place}.{key}")
    elif isinstance(value, dict) and typing.get_origin(hint) is dict:
        for key, inner in value.items():
            yield from differing(inner, typing.get_args(hint)[1], f"{place}.{key}")
    elif isinstance(value, dict):
        for one in filter(typing.is_typeddict, typing.get_args(hint)):
            yield from differing(value, one, place)


@pytest.mark.brief
def test_the_summary_has_the_typed_keys(result: RunResult) -> None:
    assert [*differing(result.summary, LiveRunSummary, "summary")] == []


def test_a_table_without_records_names_the_argument(result: RunResult) -> None:
    assert not result.table("samples").is_empty()
    assert not result.table("packets").is_empty()
    with pytest.raises(NotRecordedError, match="link_samples was not recorded: pass samples_ms=10"):
        result.table("link_samples")
    with pytest.raises(NotRecordedError, match="ack_samples was not recorded: pass trace='acks'"):
        result.table("ack_samples")
