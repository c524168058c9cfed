"""`anabranch diagnose --follow`: the ring, and bad input. tests/live follows a connection."""

from __future__ import annotations

import errno
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Scenario, UserError, diagnose
from anabranch.diagnosis import follow as diagnosis_follow
from anabranch.diagnosis.diagnosis import Diagnosis
from anabranch.diagnosis.follow import (
    Follower,
    Ring,
    Summary,
    causes,
    ring_seconds,
    until_interrupted,
)
from anabranch.diagnosis.interface import Interface, PacketClock
from anabranch.errors import RunFailedError

from .command import Call

SECOND = 1_000_000_000


@given(
    st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(0, 160)), max_size=200),
    st.integers(1, 20),
    st.integers(200, 5_000),
)
def test_the_ring_stays_within_its_time_and_size(steps: list[tuple[int, int]], seconds: int, most: int) -> None:
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


def test_packets_in_the_ring_are_diagnosed(tmp_path: Path) -> None:
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
    """Time, length and captured bytes of each packet of our pcapng file."""
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
def test_a_ring_of_zero_time_is_refused(text: str) -> None:
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
def test_incompatible_options_are_refused(anabranch: Call, arguments: tuple[str, ...], told: str) -> None:
    done = anabranch("diagnose", *arguments)
    assert (done.status, done.out) == (2, "")
    assert told in done.err


def test_the_causes_are_limits_and_findings() -> None:
    assert {"zero-window", "receive-window", "reset"} <= set(causes())


@pytest.mark.parametrize("back_s", [2, 3600, 10 * 365 * 86_400])
def test_a_clock_that_is_set_back_keeps_the_ring(back_s: int) -> None:
    ring = Ring(20.0, 101)
    start = 1_800_000_000 * SECOND
    for k in range(100):
        # The clock is set back after half of the packets.
        ring.add(start + k * SECOND // 10 - (back_s * SECOND if k >= 50 else 0), 60, bytes(60))
    assert ring.packets == 100
    times = [one for one, _, _ in records(b"".join(ring.capture()))]
    assert times == sorted(times)
    assert times[-1] - times[0] < 11 * SECOND
    for k in range(400):
        ring.add(start + 10 * SECOND - back_s * SECOND + k * SECOND // 10, 60, bytes(60))
    # Packets still expire by their time.
    assert ring.packets < 230


def records(content: bytes) -> Iterator[tuple[int, int, int]]:
    """Time, captured length and full length of each record of the ring's capture."""
    at = 24
    while at < len(content):
        seconds, fraction, captured, length = (
            int.from_bytes(content[at + k : at + k + 4], "little") for k in (0, 4, 8, 12)
        )
        yield seconds * SECOND + fraction, captured, length
        at += 16 + captured


class Clocks:
    """The machine's two clocks, set by a test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.since_boot, self.wall = 500 * SECOND, 1_800_000_000 * SECOND
        monkeypatch.setattr(time, "clock_gettime_ns", lambda _: self.since_boot)
        monkeypatch.setattr(time, "time_ns", lambda: self.wall)

    def advance(self, ns: int) -> None:
        self.since_boot += ns
        self.wall += ns


@pytest.mark.parametrize("step_s", [-86_400, -3600, -1, 0, 1, 3600, 86_400])
def test_a_step_of_the_clock_moves_no_packet(monkeypatch: pytest.MonkeyPatch, step_s: int) -> None:
    clocks = Clocks(monkeypatch)
    start, clock = clocks.wall, PacketClock()
    clocks.advance(SECOND)
    before = clocks.wall
    clocks.advance(SECOND // 10)
    clocks.wall += step_s * SECOND
    after = clocks.wall
    clocks.advance(SECOND // 10)
    # Both are in the socket's buffer when it is read.
    clock.update()
    assert [clock.time(before) - start, clock.time(after) - start] == [SECOND, SECOND * 11 // 10]
    for _ in range(20):
        clocks.advance(SECOND)
        clock.update()
    assert clock.time(clocks.wall) - start == SECOND * 12 // 10 + 20 * SECOND
    assert clock.time(None) - start == SECOND * 12 // 10 + 20 * SECOND


class Wire:
    """An interface with packets made by a test: each read has one, until it fails."""

    name = "wire"

    def __init__(self, fails: OSError | RunFailedError | None = None) -> None:
        self.fails = fails
        self.reads = 0

    def read(self, ring: Ring, wait_s: float, wake: int) -> None:
        import select

        select.select([wake], [], [], min(wait_s, 0.01))
        self.reads += 1
        ring.add(self.reads * SECOND // 100, 60, bytes(60))
        if self.fails is not None and self.reads > 5:
            raise self.fails


EMPTY = Diagnosis({"connections": [], "packets": 0})


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Follower]:
    monkeypatch.setattr(diagnosis_follow, "CHECK_S", 0.05)

    def make(diagnosing: Callable[[], Any], wire: Wire | None = None, save_on: str | None = None) -> Follower:
        ring = Ring(20.0, 101)
        monkeypatch.setattr(ring, "diagnose", lambda _: diagnosing())
        interface: Any = wire or Wire()
        return Follower(interface, ring, save_on, tmp_path, lambda _: None)

    return make


def stopped_after(follower: Follower, seconds: float, number: int = signal.SIGINT) -> tuple[Summary, float]:
    """The summary after a signal, and the seconds until the command ended."""
    at = [0.0]

    def stop() -> None:
        at[0] = time.monotonic()
        os.kill(os.getpid(), number)

    timer = threading.Timer(seconds, stop)
    timer.start()
    try:
        with until_interrupted(follower):
            summary = follower.follow()
        return summary, time.monotonic() - at[0]
    finally:
        timer.cancel()
        follower.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_waits_for_no_diagnosis(followed: Callable[..., Follower], number: int) -> None:
    calls = []

    def slow_after_the_first() -> Diagnosis:
        calls.append(1)
        time.sleep(0 if len(calls) == 1 else 5)
        return EMPTY

    summary, took = stopped_after(followed(slow_after_the_first), 1.0, number)
    assert took < 0.2
    assert len(calls) == 2
    assert summary.found == EMPTY
    assert 0 < summary.behind_s < 1.2


def test_ctrl_c_includes_the_last_of_few_packets(followed: Callable[..., Follower]) -> None:
    summary, took = stopped_after(followed(lambda: EMPTY), 0.3)
    assert took < 0.2
    assert summary.behind_s == 0


def test_ctrl_c_before_the_first_diagnosis_interrupts(followed: Callable[..., Follower]) -> None:
    def slow() -> Diagnosis:
        time.sleep(5)
        return EMPTY

    follower, begin = followed(slow), time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        stopped_after(follower, 0.3)
    assert time.monotonic() - begin < 0.6


class Panic(BaseException):
    """Like the engine's panic."""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (UserError("it is no capture"), "it is no capture"),
        (ValueError("a value"), "a value"),
        (KeyError("connections"), "connections"),
        (MemoryError(), "MemoryError"),
        (Panic("a fault"), "a fault"),
    ],
)
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_failing_diagnosis_is_one_message(followed: Callable[..., Follower], error: BaseException, told: str) -> None:
    def fail() -> Diagnosis:
        raise error

    with pytest.raises(RunFailedError, match=told) as failed:
        stopped_after(followed(fail), 5.0)
    assert str(failed.value).startswith("--follow wire: ")
    assert "\n" not in str(failed.value)


def test_a_thread_that_does_not_start_is_one_message(
    followed: Callable[..., Follower], monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = followed(lambda: EMPTY)

    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RunFailedError, match="can't start new thread"):
        follower.follow()
    follower.close()


def test_a_removed_interface_is_one_message(followed: Callable[..., Follower]) -> None:
    gone = RunFailedError("--follow wire: the interface is gone or down")
    with pytest.raises(RunFailedError, match="gone or down"):
        stopped_after(followed(lambda: EMPTY, Wire(gone)), 5.0)


QUIET: dict[str, list[Any]] = {"stalls": []}
RESET = {"cause": "reset", "text": "t"}
SHOWN = Diagnosis(
    {"connections": [{"a": "A", "b": "B", "findings": [RESET], "directions": {"a_to_b": QUIET, "b_to_a": QUIET}}]}
)


def test_an_unwritable_capture_is_one_message(
    followed: Callable[..., Follower], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = followed(lambda: SHOWN, save_on="reset")

    def full() -> Iterator[bytes]:
        yield b"half"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(follower.ring, "capture", full)
    with pytest.raises(RunFailedError, match="No space left on device"):
        stopped_after(follower, 5.0)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_does_not_wait_for_a_capture(
    followed: Callable[..., Follower], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = followed(lambda: SHOWN, save_on="reset")

    def slow() -> Iterator[bytes]:
        for _ in range(500):
            time.sleep(0.01)
            yield b"part"

    monkeypatch.setattr(follower.ring, "capture", slow)
    _, took = stopped_after(follower, 1.0)
    assert took < 0.3
    assert list(tmp_path.iterdir()) == []


def test_a_saved_capture_replaces_no_file(followed: Callable[..., Follower], tmp_path: Path) -> None:
    (tmp_path / "wire-reset-1.pcap").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "wire-reset-2.pcap")
    stopped_after(followed(lambda: SHOWN, save_on="reset"), 0.5)
    assert (tmp_path / "wire-reset-3.pcap").is_file()
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("number", [errno.ENODEV, errno.EMFILE, errno.EPERM, errno.ENETDOWN])
def test_a_refused_socket_is_one_message(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(RunFailedError, match="--follow lo: ") as failed:
        Interface("lo")
    assert "\n" not in str(failed.value)
