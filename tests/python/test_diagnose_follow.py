"""`anabranch diagnose --follow`: the ring, and bad input. tests/live follows a connection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Scenario, UserError, diagnose
from anabranch.diagnosis_follow import Ring, causes, ring_seconds

from .command import Call

SECOND = 1_000_000_000


@given(
    st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(0, 160)), max_size=200),
    st.integers(1, 20),
    st.integers(200, 5_000),
)
def test_the_ring_stays_within_its_time_and_octets(steps: list[tuple[int, int]], seconds: int, most: int) -> None:
    ring = Ring(float(seconds), 101, most)
    now = 0
    for step, length in steps:
        now += step
        ring.add(now, length, bytes(length))
        assert ring.octets <= most
        content = b"".join(ring.capture())[24:]
        assert len(content) == ring.octets
        count = at = 0
        while at < len(content):
            first = int.from_bytes(content[at : at + 4], "little")
            assert now / SECOND - first <= seconds + 3
            at += 16 + int.from_bytes(content[at + 8 : at + 12], "little")
            count += 1
        assert count == ring.packets
    assert ring.seen == len(steps)


def test_what_the_ring_has_is_diagnosed(tmp_path: Path) -> None:
    text = '[link.path]\nbetween = ["A", "B"]\nrate = "5 Mbit/s"\ndelay = "5 ms"\n[flow.main]\nfrom = "A"\nto = "B"\n'
    content = Scenario.from_text(f'duration = "2 s"\n{text}', file="x.toml").run(captures=["path"]).pcapng("path")
    file = tmp_path / "x.pcapng"
    file.write_bytes(content)
    ring = Ring(60.0, 101)
    for time_ns, length, octets in packets(content):
        ring.add(time_ns, length, octets)
    found, whole = ring.diagnose("eth0"), diagnose(file)
    assert found["file"] == "eth0"
    assert found["packets"] == whole["packets"]
    ours, theirs = found["connections"][0], whole["connections"][0]
    assert ours["directions"]["a_to_b"]["bytes"] == theirs["directions"]["a_to_b"]["bytes"]


def packets(content: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Time, length and captured octets of each packet of a pcapng file of ours."""
    at = 0
    while at < len(content):
        kind, length = (int.from_bytes(content[at + k : at + k + 4], "little") for k in (0, 4))
        if kind == 6:
            high, low, captured, whole = (
                int.from_bytes(content[at + k : at + k + 4], "little") for k in (12, 16, 20, 24)
            )
            yield high << 32 | low, whole, content[at + 28 : at + 28 + captured]
        at += length


@pytest.mark.parametrize("text", ["", "2", "0 s", "-1s", "25h", "two minutes", "1e9s"])
def test_a_ring_of_no_time_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="expected a time from 1 s to 24 h"):
        ring_seconds(text)


def test_a_ring_has_units() -> None:
    assert [ring_seconds(text) for text in ("90s", "2min", "1.5 h")] == [90.0, 120.0, 5400.0]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--follow", "no-such"), "there is no such interface"),
        (("--follow", "lo", "--save-on", "zero-windows"), "there is no such cause"),
        (("--follow", "lo", "--ring", "soon"), "expected a time"),
        (("--follow", "lo", "--save-to", "/no/such"), "there is no such directory"),
        (("--follow", "lo", "--advise"), "--follow goes with"),
        (("x.pcap", "--follow", "lo"), "expected no capture beside it"),
        ((), "expected a capture, or --follow INTERFACE"),
    ],
)
def test_options_that_do_not_fit_are_refused(anabranch: Call, arguments: tuple[str, ...], told: str) -> None:
    done = anabranch("diagnose", *arguments)
    assert (done.status, done.out) == (2, "")
    assert told in done.err


def test_the_causes_are_limits_and_findings() -> None:
    assert {"zero-window", "receive-window", "reset"} <= set(causes())
