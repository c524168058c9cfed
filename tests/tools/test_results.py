"""The data dictionary covers every result of a run, and reports missing entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from anabranch import Scenario
from anabranch.result import summary
from anabranch.result.result import TABLES

from reference import results

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


@pytest.mark.parametrize(("forms", "told", "message"), [
    ({"a_ms": "number"}, {}, "does not say what a_ms means"),
    ({}, {"a_ms": "x"}, "has a_ms, and the results have not"),
])  # fmt: skip
def test_a_missing_meaning_stops_the_generator(forms: dict[str, str], told: dict[str, str], message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        results._rows("key", "keys.X", forms, told)


def test_a_unit_comes_from_the_name_or_the_entry() -> None:
    assert "| `a_ms` | ms | x | both |" in results._rows("key", "p", {"a_ms": "number or null"}, {"a_ms": "x"})
    told = {"a": {"meaning": "x", "unit": "J", "engine": "live"}}
    assert "| `a` | J | x | live |" in results._rows("key", "p", {"a": "number"}, told)
