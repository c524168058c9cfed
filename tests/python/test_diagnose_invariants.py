"""Invariants of every diagnosis hold for shipped captures, unchanged and edited."""

from __future__ import annotations

import copy
import gzip
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anabranch import UserError, diagnose
from anabranch.diagnosis.diagnosis import Diagnosis
from anabranch.diagnosis.text import remarks

from .command import Call

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "validation"))

from diagnose.invariants import violations  # noqa: E402 - the folder of scripts is found first

SHIPPED = sorted(file for pattern in ("*.pcap*", "*.pcapng*") for file in (ROOT / "docs" / "captures").glob(pattern))
PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)


@pytest.mark.parametrize("file", sorted(set(SHIPPED)), ids=lambda file: file.name)
def test_shipped_captures_break_no_invariant(file: Path) -> None:
    assert list(violations(diagnose(file))) == []


@pytest.fixture(scope="module")
def found() -> Diagnosis:
    return diagnose(ROOT / "docs" / "captures" / "before.pcapng.gz")


def change(place: tuple[str | int, ...], value: Any) -> Any:
    """An edit of a document: another value at a position."""

    def edit(document: dict[str, Any]) -> None:
        part: Any = document
        for name in place[:-1]:
            part = part[name]
        part[place[-1]] = value

    return edit


WAY = ("connections", 0, "directions", "a_to_b")


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("packets",), 1, "are counted"),
        (("connections", 0, "findings", 0, "share"), 3.0, "share 3.0"),
        (("connections", 0, "findings", 0, "packets"), [10**9], "frame 1000000000"),
        (("connections", 0, "path", "base_rtt_ms", "high"), -1.0, "do not ascend"),
        (("connections", 0, "path", "loss", "rate", "high"), 1.5, "1.5"),
        ((*WAY, "rtt_ms", "min"), 0.0, "rtt_ms: min"),
        ((*WAY, "rtt_ms", "p95"), 1e-6, "do not ascend"),
        ((*WAY, "limits_s", "application"), 99.0, "limits_s"),
        ((*WAY, "retransmissions", 0, "earlier"), 10**6, "frame 1000000"),
        ((*WAY, "retransmissions", 0, "time_s"), -5.0, "outside"),
        ((*WAY, "retransmission_counts", "needed"), 10**6, "retransmission_counts"),
        ((*WAY, "goodput_mbit_s"), float("nan"), "nan"),
    ],
)
def test_an_impossible_figure_is_found(found: Diagnosis, place: tuple[str | int, ...], value: Any, words: str) -> None:
    document = copy.deepcopy(dict(found))
    change(place, value)(document)
    assert any(words in line for line in violations(document)), list(violations(document))


edits = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=30)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(file=st.sampled_from(SHIPPED), edits=edits, cut=st.integers(0, 1 << 20), moved=st.integers(0, 200))
def test_changed_captures_break_no_invariant(
    tmp_path: Path, file: Path, edits: list[tuple[int, int]], cut: int, moved: int
) -> None:
    content = bytearray(gzip.decompress(file.read_bytes()))
    for at, value in edits:
        # The beginning has the format, without which the file cannot be read.
        content[200 + at % (len(content) - 200)] = value
    # A part of the file again, at another position.
    content += content[200 : 200 + 4 * moved]
    changed = tmp_path / "changed.pcapng"
    changed.write_bytes(content[: len(content) - cut % 4096])
    try:
        document = diagnose(changed)
    except UserError:
        return
    assert list(violations(document)) == []


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("bomb") / "bomb.pcap.gz"
    file.write_bytes(gzip.compress(PCAP + bytes(40 << 20)))
    return file


def test_an_oversized_expansion_is_refused_unless_permitted(anabranch: Call, bomb: Path) -> None:
    done = anabranch("diagnose", bomb)
    assert (done.status, done.out) == (2, "")
    assert "expands to more than 256 times its compressed size" in done.err
    done = anabranch("diagnose", bomb, "--any-expansion")
    assert done.status == 0, done.err
    assert "2,621,440 frames" in done.out


def test_reading_reports_its_progress(bomb: Path) -> None:
    shares: list[float] = []
    diagnose(bomb, any_expansion=True, progress=shares.append)
    assert shares
    assert all(0 <= share <= 1 for share in shares)
    assert shares == sorted(shares)


def segments(port: int, start_s: int, count: int) -> list[tuple[int, bytes]]:
    """Records of a sender without answers: times in microseconds, and raw IP packets."""
    made = []
    for number in range(count):
        tcp = struct.pack(">HHIIBBHHH", port, 80, 1000 * number, 0, 5 << 4, 16, 1000, 0, 0)
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 1040, number, 0, 64, 6, 0, b"\xc0\0\2\1", b"\xc6\x33\x64\2")
        made.append((start_s * 10**6 + number * 1000, ip + tcp))
    return made


def written(file: Path, records: list[tuple[int, bytes]]) -> Path:
    content = bytearray(PCAP)
    for time, octets in records:
        content += struct.pack("<IIII", *divmod(time, 10**6), len(octets), 1040) + octets
    file.write_bytes(content)
    return file


def test_joined_files_are_sorted_with_a_note(tmp_path: Path) -> None:
    joined = segments(5001, 2, 900) + segments(5000, 1, 900)
    document = diagnose(written(tmp_path / "joined.pcap", joined))
    assert (document["order"], document["not_put_in_order"]) == ("sorted", 0)
    assert [one["duration_s"] for one in document["connections"]] == pytest.approx([0.899, 0.899])
    (line,) = remarks(document.content)
    assert line == (
        "900 packets out of order in the file (files, interfaces or queues that were joined): "
        "all packets were sorted by time"
    )


def test_a_clock_that_was_set_back_is_noted(tmp_path: Path) -> None:
    records = segments(5000, 100_000, 1800)
    records = records[:900] + [(time - 3600 * 10**6, octets) for time, octets in records[900:]]
    document = diagnose(written(tmp_path / "back.pcap", records))
    assert (document["order"], document["clock_set_back"]) == ("clock-set-back", 1)
    assert document["connections"][0]["duration_s"] == pytest.approx(1.8, abs=0.01)
    (line,) = remarks(document.content)
    assert "the clock was set back 1 time;" in line
