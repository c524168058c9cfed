"""The layer check finds planted violations, and no others."""

from pathlib import Path
from typing import Any

import pytest

import check_layers


def package(name: str, *dependencies: str, kind: str | None = None) -> dict[str, Any]:
    return {"name": name, "dependencies": [{"name": d, "kind": kind} for d in dependencies]}


def test_edges_downwards_are_allowed() -> None:
    metadata = {
        "packages": [
            package("anabranch-core", "serde"),
            package("anabranch-congestion", "anabranch-core"),
            package("anabranch-scenario", "anabranch-core", "anabranch-path"),
        ]
    }
    assert check_layers.check_edges(metadata) == []


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("anabranch-core", "anabranch-congestion"),
        ("anabranch-path", "anabranch-scenario"),
        ("anabranch-path", "anabranch-tcp"),
        ("anabranch-path", "anabranch-fec"),
        ("anabranch-engine", "anabranch-live"),
        ("anabranch-scenario", "anabranch-engine"),
        ("anabranch-live", "anabranch-gateway"),
        ("anabranch", "anabranch-py"),
    ],
)
@pytest.mark.parametrize("kind", [None, "dev", "build"])
def test_edges_upwards_and_sideways_are_found(name: str, target: str, kind: str | None) -> None:
    metadata = {"packages": [package(name, target, kind=kind), package(target)]}
    findings = check_layers.check_edges(metadata)
    assert [str(finding) for finding in findings] == [f"{name}: must not know {target} ({kind or 'normal'} dependency)"]


def test_tcp_in_a_middlebox_is_found_through_other_crates() -> None:
    metadata = {
        "packages": [
            package("anabranch-gatewayd", "anabranch-files", "clap"),
            package("anabranch-files", "anabranch-tcp", kind="build"),
            package("anabranch-path", "anabranch-tcp", kind="dev"),
            package("anabranch-tcp"),
        ]
    }
    findings = check_layers.check_reach(metadata)
    way = "anabranch-gatewayd → anabranch-files → anabranch-tcp"
    assert [str(finding) for finding in findings] == [f"anabranch-gatewayd: must not link anabranch-tcp ({way})"]


def test_a_crate_without_a_layer_is_found() -> None:
    findings = check_layers.check_edges({"packages": [package("anabranch-extra")]})
    assert "stands in no layer" in str(findings[0])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("use std::time::Instant;", "std::time::Instant"),
        ("use std::{cmp, time::{Duration, Instant}};", "std::time::Instant"),
        ("use std::fs as files;", "std::fs"),
        ("use ::std::net::UdpSocket;", "std::net::UdpSocket"),
        ("let now = std::time::Instant::now();", "std::time::Instant"),
        ("let text = std::fs::read_to_string(path);", "std::fs"),
        ("let mut seen = HashMap::new();", "HashMap"),
        ("std::thread::spawn(work);", "std::thread"),
        ("let x = w.powi(3);", "powi()"),
        ("let x = f64::cbrt(w);", "cbrt()"),
        ("unsafe { work() }", "unsafe"),
        ("let home = std::env::var(name);", "std::env"),
    ],
)
def test_banned_names_are_found(line: str, said: str) -> None:
    findings = check_layers.check_source(f"//! A module.\n\n{line}\n", "crates/core/src/planted.rs")
    assert findings, line
    assert str(findings[0]).startswith("crates/core/src/planted.rs:3: ")
    assert said in str(findings[0])


@pytest.mark.parametrize(
    "line",
    [
        "use std::time::Duration;",
        "use crate::units::Instant;",
        "use anabranch_core::{math, units::{Instant, Rate}};",
        "let x = math::powi(w, 3);",
        "let x = w.sqrt();",
        "// std::fs would be I/O, HashMap has no order, unsafe",
        "/* outer /* std::fs */ HashMap */ let x = 1;",
        'let text = "std::fs \\" HashMap";',
        'let text = r#"unsafe "HashMap" "#;',
        "let quote = '\"'; let other = 1;",
        "fn f<'a>(x: &'a str) -> &'a str { x }",
        "#![forbid(unsafe_code)]",
        "let logarithm = log(3);",
    ],
)
def test_innocent_lines_pass(line: str) -> None:
    assert check_layers.check_source(line, "x.rs") == []


def test_code_after_a_literal_is_still_checked() -> None:
    source = "let quote = '\"';\nlet bad = HashMap::new();\nlet end = '\"';\n"
    assert [finding.where for finding in check_layers.check_source(source, "x.rs")] == ["x.rs:2"]


def test_a_planted_file_in_a_workspace_is_found(tmp_path: Path) -> None:
    for crate in check_layers.ENGINE:
        source = tmp_path / "crates" / crate / "src"
        source.mkdir(parents=True)
        (source / "lib.rs").write_text("//! Clean.\n", "utf-8")
    assert check_layers.check_sources(tmp_path) == (len(check_layers.ENGINE), [])
    deep = tmp_path / "crates" / "tcp" / "src" / "recovery"
    deep.mkdir()
    (deep / "planted.rs").write_text("use std::time::SystemTime;\n", "utf-8")
    count, findings = check_layers.check_sources(tmp_path)
    assert count == len(check_layers.ENGINE) + 1
    assert "crates/tcp/src/recovery/planted.rs:1" in {finding.where for finding in findings}


def test_a_crate_that_does_not_forbid_unsafe_is_found(tmp_path: Path) -> None:
    lib = tmp_path / "lib.rs"
    target = {"kind": ["lib"], "src_path": str(lib)}
    lib.write_text("//! No attribute.\n", "utf-8")
    metadata = {"packages": [{"name": "anabranch-core", "targets": [target]}]}
    assert len(check_layers.check_forbid(metadata, tmp_path)) == 1
    lib.write_text("//! One.\n#![forbid(unsafe_code)]\n", "utf-8")
    assert check_layers.check_forbid(metadata, tmp_path) == []


def python_package(root: Path, **files: str) -> Path:
    """A package `anabranch` with these files; two underscores in a name are a slash."""
    for name, text in {"__init__": "", **files}.items():
        path = root / "anabranch" / f"{name if name == '__init__' else name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "anabranch"


def rooms_broken(package: Path, later: frozenset[tuple[str, str]] = frozenset()) -> list[str]:
    return [str(finding) for finding in check_layers.check_rooms(package, later)[1]]


def test_a_room_imports_from_below(tmp_path: Path) -> None:
    upwards = "from anabranch.plot.style import COLOURS\n"
    typed = f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {upwards}"
    called = f"def f():\n    {upwards}"
    down = python_package(tmp_path / "a", plot__style="from anabranch.text import shown", text__shown="")
    assert rooms_broken(down) == []
    up = python_package(tmp_path / "b", text__shown=upwards)
    assert rooms_broken(up) == [
        "anabranch/text/shown.py: must not import anabranch.plot.style.COLOURS: plot is not below text"
    ]
    assert rooms_broken(python_package(tmp_path / "c", text__shown=typed)) == []
    later = python_package(tmp_path / "d", text__shown=called)
    assert len(rooms_broken(later)) == 1
    assert rooms_broken(later, frozenset({("text", "plot")})) == []


def test_rooms_beside_each_other_do_not_know_each_other(tmp_path: Path) -> None:
    both = python_package(tmp_path, keys__a="from anabranch.files import b", files__b="from anabranch.keys import a")
    assert len(rooms_broken(both)) == 2


def test_an_exception_that_nobody_needs_is_found(tmp_path: Path) -> None:
    assert rooms_broken(python_package(tmp_path), frozenset({("text", "plot")})) == [
        "LATER: text imports nothing of plot any more"
    ]


def test_a_module_outside_the_rooms_is_found(tmp_path: Path) -> None:
    assert rooms_broken(python_package(tmp_path, helpers="")) == [
        "anabranch/helpers.py: stands on no floor: add its room to tools/check_layers.py"
    ]
    many = {name: "" for floor in check_layers.FLOORS for name in floor}
    assert "more than 12" in " ".join(rooms_broken(python_package(tmp_path / "many", **many)))
