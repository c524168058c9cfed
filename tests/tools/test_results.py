"""Summary, typed dictionaries and reference of results agree, and each key is declared once."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from anabranch import Scenario, _engine
from anabranch.gateway.document import PlanFigure
from anabranch.result import summary
from anabranch.result.summary import TABLES

from reference import declared, summary_types
from reference import results as page

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "results.md").read_text("utf-8")


def section(title: str) -> str:
    start = PAGE.index(f"### {title}\n")
    return PAGE[start : PAGE.find("\n##", start + 1)]


def keys(value: Any, title: str) -> None:
    """Check that every key of a part of a summary is in its section."""
    for key, inner in value.items():
        assert f"| `{key}` |" in section(title), f"{key} in {title}"
        path = key if title == "Summary" else f"{title}.{key}"
        if f"### {path}\n" in PAGE and isinstance(inner, dict):
            keys(inner, path)
        for names in (".NAME", ".NAME.DIRECTION"):
            if f"### {path}{names}\n" in PAGE:
                for one in inner.values():
                    for part in one.values() if names.endswith("DIRECTION") else [one]:
                        keys(part, path + names)


def test_every_column_and_key_of_a_run_is_in_the_page() -> None:
    scenario = Scenario.from_file(ROOT / "scenarios" / "multipath.toml").set("duration", "1 s")
    result = scenario.set("flow.main.fec", "xor").run(samples_ms=100, packets=True)
    for table in TABLES:
        for column in result.frame(table).columns:
            assert f"| `{column}` |" in section(f"Table {table}"), f"{column} in {table}"
    keys(result.summary, "Summary")


def test_every_typed_key_is_in_the_page() -> None:
    for name, kind in vars(summary).items():
        if isinstance(kind, type) and hasattr(kind, "__total__") and name != "Resolved":
            for key in kind.__annotations__:
                assert f"| `{key}` |" in PAGE, f"{key} of {name}"


def test_the_page_has_the_typed_keys() -> None:
    for part in declared.summary():
        name = CLASSES.get(part.title)
        if name is not None:
            assert set(typing.get_type_hints(getattr(summary, name))) == set(part.keys), part.title


CLASSES = {
    "Summary": "LiveRunSummary",
    "flows.NAME": "AnyFlowSummary",
    "links.NAME.DIRECTION": "LinkSummary",
    "gateways.NAME.DIRECTION": "GatewaySummary",
    "live.audit": "LiveAudit",
}


def named_outside(structs: Iterable[str], sources: Iterable[str]) -> set[str]:
    """The keys that a source names in a string, and so declares a second time."""
    keys = {key for struct in structs for key in declared.definitions()[struct]["properties"] if "_" in key}
    return {key for text in sources for key in keys if f'"{key}"' in text.partition("#[cfg(test)]")[0]}


STRUCTS = ("FlowSummary", "LinkSummary", "GroupSummary", "GatewaySummary", "LiveSummary", "LiveAudit", "LiveEnd")


def test_no_engine_names_a_key_outside_its_struct() -> None:
    folders = [ROOT / "crates" / crate / "src" for crate in ("engine", "live", "py")]
    sources = [file.read_text("utf-8") for folder in folders for file in folder.rglob("*.rs")]
    assert len(sources) > 100
    assert named_outside(STRUCTS, sources) == set()


def test_the_check_detects_a_key_that_is_written_by_name() -> None:
    text = 'summary.insert("goodput_mbit_s".into(), goodput.into());'
    assert named_outside(STRUCTS, [text]) == {"goodput_mbit_s"}


def test_a_new_field_reaches_types_names_and_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file but that of the struct has to name it."""
    results = json.loads(_engine.results())
    field = {"type": ["number", "null"], "description": "Mean of a new thing."}
    results["definitions"]["FlowSummary"]["properties"]["mean_new_ms"] = field
    results["definitions"]["FlowSummary"]["required"].append("mean_new_ms")
    monkeypatch.setattr(declared, "engine", SimpleNamespace(results=lambda: json.dumps(results)))
    declared.definitions.cache_clear()
    try:
        assert "    mean_new_ms: float | None\n" in summary_types.file()
        flows = next(part for part in json.loads(declared.file())["summary"] if part["title"] == "flows.NAME")
        assert flows["keys"]["mean_new_ms"]["unit"] == "ms"
        assert "| `mean_new_ms` | ms | Mean of a new thing | both |" in page.page()
    finally:
        declared.definitions.cache_clear()


def test_an_engine_without_the_live_engine_stops_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    results = json.loads(_engine.results())
    del results["definitions"]["LiveSummary"]
    monkeypatch.setattr(declared, "engine", SimpleNamespace(results=lambda: json.dumps(results)))
    declared.definitions.cache_clear()
    try:
        with pytest.raises(SystemExit, match="this engine has no live engine"):
            summary_types.file()
    finally:
        declared.definitions.cache_clear()


@pytest.mark.parametrize(("told", "message"), [
    ({}, "does not say what median, min, max means"),
    ({"median": "x", "min": "x", "max": "x", "a_ms": "x"}, "has a_ms, and the plan has not"),
])  # fmt: skip
def test_a_missing_meaning_stops_the_generator(told: dict[str, str], message: str) -> None:
    names = sorted(["median", "min", "max"])
    with pytest.raises(SystemExit, match=message.replace("median, min, max", ", ".join(names))):
        declared.plan_part("plan", PlanFigure, told)


def test_a_unit_comes_from_the_name_or_the_declaration() -> None:
    assert declared.key_of("a_ms", "number", "x.", None, None) == ("number", "ms", "x", "both")
    assert declared.key_of("a_ms", "text", "x", None, None) == ("text", "text", "x", "both")
    assert declared.key_of("a", "number", "x", "J", "live") == ("number", "J", "x", "live")


FIELDS = {"a": {"type": "integer"}, "b": {"type": ["number", "null"]}, "c": {"type": ["number", "null"]}}


def test_a_struct_becomes_typed_dictionaries() -> None:
    schema: dict[str, Any] = {"description": "A thing.", "properties": FIELDS, "required": ["a", "b", "c"]}
    (one,) = summary_types.classes("Thing", schema)
    assert (
        one == 'class Thing(TypedDict):\n    """A thing."""\n\n    a: int\n    b: float | None\n    c: float | None\n'
    )
    base, absent = summary_types.classes("Thing", {**schema, "required": ["a"]})
    assert base.startswith("class _ThingFigures(TypedDict):\n")
    assert base.endswith('"""\n\n    a: int\n')
    assert absent.startswith("class Thing(_ThingFigures, total=False):\n")
    assert absent.endswith('"""\n\n    b: float\n    c: float\n')
    fields = {**FIELDS, "b": {"type": ["number", "null"], "never_null": "simulator"}}
    _, simulator, stored = summary_types.classes("Thing", {**schema, "properties": fields})
    assert simulator.endswith("    b: float\n")
    assert stored.startswith("class AnyThing(_ThingFigures):\n")
    assert stored.endswith("    b: float | None\n")
