"""Text in 80 columns: wrapping, ranges, and each shipped capture."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from anabranch import diagnose
from anabranch.diagnosis.document import Connection
from anabranch.diagnosis.text import detail, overview
from anabranch.text.lines import WIDTH, percent, span, wrapped

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs/captures", "crates/capture/tests/data", "studies", "../shared/cases", "../shared/data")
CAPTURES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.pcap*"))
MOST_DETAILS = 3


def is_within(line: str) -> bool:
    """At most 80 columns, or one unbreakable word."""
    return len(line) <= WIDTH or " " not in line.strip()


@pytest.mark.parametrize("file", CAPTURES, ids=lambda file: file.name)
def test_a_diagnosis_keeps_to_80_columns(file: Path) -> None:
    found = diagnose(file)
    lines = list(overview(found))
    for connection in found["connections"][:MOST_DETAILS]:
        lines += detail(connection)
    assert [line for line in lines if not is_within(line)] == []


def test_captures_are_shipped() -> None:
    assert len(CAPTURES) >= 10


def test_lines_break_at_words() -> None:
    text = "word " * 40
    lines = wrapped(text, "    ")
    assert all(len(line) <= WIDTH for line in lines)
    assert all(line.startswith("    ") for line in lines[1:])
    assert " ".join(lines).split() == text.split()


def test_a_path_and_a_command_are_not_broken() -> None:
    path, command = "/captures of the week/slow one.pcapng", "tcpdump -s 96 -B 65536"
    for before in range(80):
        lines = wrapped(f"{'x' * before} {path}: capture again ({command})", "  ", whole=(path, command))
        assert any(path in line for line in lines), before
        assert any(command in line for line in lines), before


def test_a_next_step_keeps_its_command_on_one_line() -> None:
    """The commands are those of the engine's texts: a next step has no list of them in Python."""
    found = dict(diagnose(CAPTURES[0])["connections"][0])
    command = "tcpdump -s 96 -B 65536"
    for before in range(80):
        found["next"] = f"{'x' * before} capture again ({command})"
        assert any(command in line for line in detail(cast("Connection", found))), before


def test_a_long_word_is_not_broken() -> None:
    path = "/" + "a" * 100
    assert wrapped(f"wrote {path}: 3 packets", "  ") == ["wrote", f"  {path}:", "  3 packets"]


def test_a_number_keeps_its_unit() -> None:
    for before in range(60, 80):
        lines = wrapped(f"{'x' * before} 20 Mbit/s, bottleneck 12 %", "  ")
        assert any("20 Mbit/s," in line for line in lines), before
        assert any("bottleneck 12 %" in line for line in lines), before


@pytest.mark.parametrize(
    ("share", "signed", "shown"),
    [
        (0.436, False, "44 %"),
        (0.436, True, "+44 %"),
        (-0.08, True, "-8 %"),
        (-0.001, True, "0 %"),
        (0.0, True, "0 %"),
    ],
)
def test_a_share_that_rounds_to_zero_has_no_sign(share: float, signed: bool, shown: str) -> None:
    assert percent(share, signed=signed) == shown


def test_a_range_with_equal_ends_is_one_value() -> None:
    assert span("20", "20", "ms") == ""
    assert span("20", "22", "ms") == "20 to 22 ms"
