"""The typed dictionaries compared with the engine's output, key by key."""

from __future__ import annotations

import types
import typing
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from anabranch import Scenario
from anabranch.result.summary import Summary
from anabranch.scenario import Value

POISSON: dict[str, Value] = {"kind": "poisson", "rate": "5 Mbit/s", "sizes": {"kind": "fixed", "size": "20 kB"}}

VIDEO: dict[str, Value] = {
    "from": "S",
    "to": "R",
    "protocol": "udp",
    "workload": {"kind": "paced", "rate": "1 Mbit/s"},
}


def mismatches(value: Any, kind: Any, where: str) -> list[str]:
    """Differences of ``value`` from the type ``kind``: excess or missing keys, a null or number that is not allowed."""
    if kind is Any:
        return []
    if typing.is_typeddict(kind):
        hints = get_type_hints(kind)
        required = kind.__required_keys__
        if not isinstance(value, dict) or not required <= set(value) <= set(hints):
            return [f"{where}: {sorted(value) if isinstance(value, dict) else value} instead of {sorted(hints)}"]
        return [wrong for key in value for wrong in mismatches(value[key], hints[key], f"{where}.{key}")]
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        tries = [mismatches(value, one, where) for one in get_args(kind)]
        return [] if [] in tries else max(tries, key=len)
    if typing.get_origin(kind) is list:
        return [wrong for one in value for wrong in mismatches(one, get_args(kind)[0], f"{where}[]")]
    if typing.get_origin(kind) is dict:
        inner = get_args(kind)[1]
        if not isinstance(value, dict):
            return [f"{where}: {value!r} instead of a table"]
        return [wrong for key, one in value.items() for wrong in mismatches(one, inner, f"{where}.{key}")]
    allowed = (int, float) if kind is float else (kind,)
    return [] if type(value) in allowed else [f"{where}: {value!r} instead of {kind}"]


@pytest.mark.parametrize(
    "sets",
    [
        {},
        {"flow.main.workload": {"kind": "file", "size": "100 KiB"}},
        {"flow.main.workload": POISSON},
        {"flow.main.workload": {"kind": "request-response", "response": "10 kB"}},
        {"flow.main.workload": {"kind": "paced", "rate": "1 Mbit/s"}},
        {"flow.video": VIDEO},
        {"flow.main.start": "0.999 s"},
        {"link.bottleneck.forward.queue.reorder.interval": 4},
    ],
)
def test_the_summary_has_its_declared_types(scenario_file: Path, sets: dict[str, Any]) -> None:
    scenario = Scenario.from_file(scenario_file).set("duration", "1 s")
    for path, value in sets.items():
        scenario = scenario.set(path, value)
    assert mismatches(scenario.run().summary, Summary, "summary") == []


def test_optional_parts_are_both_present_and_absent(scenario_file: Path) -> None:
    """The comparison above tests an optional part only if some run has it and another does not."""
    plain = Scenario.from_file(scenario_file).set("duration", "1 s")
    late = plain.set("flow.main.start", "0.999 s").run().flows["main"]
    many = plain.set("flow.main.workload", POISSON).run().flows["main"]
    assert (late["reordering"], late["transfers"]) == (None, None)
    assert plain.run().flows["main"]["reordering"] is not None
    assert many["transfers"] is not None
    asking = plain.set("flow.main.workload", "request-response").run().flows["main"]
    assert asking["exchanges"] is not None
    video = plain.set("flow.video", VIDEO).run().flows["video"]
    assert (video["timeouts"], video["exchanges"]) == (None, None)
    assert video["mean_one_way_delay_ms"] is not None


def test_the_comparison_detects_differences() -> None:
    summary: dict[str, Any] = {"jain_index": "high"}
    assert mismatches(summary, get_type_hints(Summary)["fairness"], "f") != []
    assert mismatches({}, get_type_hints(Summary)["fairness"], "f") != []
