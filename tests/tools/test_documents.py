"""The page of JSON documents has the programs' names, and no others."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anabranch
import pytest

from reference import document_types, documents
from reference.structs import DIAGNOSIS, STATUS, Declared, Document, Field, declared

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guides" / "gateway-operations.md").read_text("utf-8")
OF_OPTIONS = {"replay", "flow", "live", "kernel", "rate_trace"}
"""Keys that need an option, a run, or a path with several rates."""


def known(document: Document) -> dict[str, set[str]]:
    """The names of every part of a document, by the path to it."""
    found = declared(ROOT, document)
    return {
        path: {field.name for field in found.unfolded(name)}
        for name, paths in found.paths(document.root).items()
        for path in paths
    }


def compare(value: Any, path: str, parts: dict[str, set[str]], seen: set[str]) -> None:
    """Check that every name of a document is on the page, and that the page's names exist unless they are optional."""
    if isinstance(value, list):
        for one in value:
            compare(one, f"{path}[]", parts, seen)
    elif isinstance(value, dict) and path in parts:
        assert set(value) <= parts[path], path
        assert parts[path] - set(value) <= OF_OPTIONS or not value, path
        seen.add(path)
        for name, inner in value.items():
            compare(inner, f"{path}.{name}".removeprefix("."), parts, seen)


@pytest.mark.parametrize("capture", ["pauses", "reset", "reordering"])
def test_the_page_has_the_names_of_a_diagnosis(capture: str) -> None:
    parts, seen = known(DIAGNOSIS), set[str]()
    found = anabranch.diagnose(ROOT / "docs" / "captures" / f"{capture}.pcapng.gz")
    compare(json.loads(json.dumps(found)), "", parts, seen)
    assert {"", "connections[]", "connections[].directions.a_to_b", "omitted"} <= seen


def test_the_page_has_the_names_of_optional_outputs(tmp_path: Path) -> None:
    capture = ROOT / "docs" / "captures" / "slower.pcapng.gz"
    words = [sys.executable, "-m", "anabranch", "diagnose", str(capture), "--replay", "--advise", "--json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    parts, seen = known(DIAGNOSIS), set[str]()
    compare(json.loads(done.stdout), "", parts, seen)
    assert {"connections[].replay.rtt_p95_ms", "connections[].advice[].gain"} <= seen


def test_the_guide_has_the_names_of_a_status() -> None:
    table = GUIDE.partition("prints all of it as one object")[2].partition("\n\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`[^|]*`) \|", table, re.MULTILINE)
    told = {name.rsplit(".")[-1] for row in rows for name in re.findall(r"`(?:… )?([\w.]+)`", row)}
    tables = {"peers", "paths", "classes", "caps", "bypass", "rejected", "dropped"}
    assert told - {"PATH"} == set[str]().union(*known(STATUS).values()) - tables


def test_options_and_lists_have_units() -> None:
    kinds = {"a_ms": "Option<f64>", "b": "Vec<u64>", "c": "BTreeMap<String, u64>", "d": "Order"}
    found = Declared({}, {"Order": ("file",)}, {}, frozenset(), {})
    units = [documents.unit(Field(name, kind, ""), found) for name, kind in kinds.items()]
    assert units == ["ms or null", "list", "table", "text"]


def status_of(tmp_path: Path, field: str) -> str:
    """The generated module of a status with one field."""
    file = tmp_path / STATUS.places[0]
    file.parent.mkdir(parents=True)
    file.write_text(f"/// A status.\npub struct Report {{\n{field}\n}}\n", "utf-8")
    module = document_types.MODULES["python/anabranch/gateway/status.py"]
    return "\n".join(document_types.lines(tmp_path, module))


@pytest.mark.parametrize("kind", ["u8", "u64", "usize", "i64"])
def test_an_integer_of_rust_is_an_int(tmp_path: Path, kind: str) -> None:
    assert "    sent: int" in status_of(tmp_path, f"    /// Sent.\n    pub sent: {kind},")


@pytest.mark.parametrize(("field", "message"), [
    ("    pub at: Duration,", "at: Duration has no type in Python: expected one of bool, .* of crates/gatewayd"),
    ("    pub at: Vec<Duration>,", "at: Duration has no type in Python"),
    ('    #[serde(rename = "b")]\n    pub a: u64,', r"Report\.a: serde\(rename\) changes the document"),
    ("    #[serde(default, skip)]\n    pub a: u64,", r"Report\.a: serde\(skip\) changes the document"),
    ('    #[serde(serialize_with = "own")]\n    pub a: u64,', r"Report\.a: serde\(serialize_with\)"),
])  # fmt: skip
def test_the_generator_stops_at_a_field_that_it_cannot_read(tmp_path: Path, field: str, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        status_of(tmp_path, field)
