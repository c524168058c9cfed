"""The trace of the kernel's TCP against the capture of the same run, and against samples of its sockets.

Each law is a function that must reject a spoilt trace.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch.live import Limits
from anabranch.result.result import RunResult
from anabranch.scenario import Scenario
from anabranch.validate.segments import ACK, SYN, Segment, segments

from .conftest import FLOW, PATH, command, missing

LOOSE = Limits(p99_lateness_ms=1000.0, max_lateness_ms=10_000.0)
"""The laws do not depend on the lateness of packets. The limits on lost packets remain."""

MSS = 1448

LOSSY = """
title = "random loss"
duration = "5 s"
[link.path]
between = ["A", "B"]
rate = "100 Mbit/s"
delay = "15 ms"
forward.impair = [{ kind = "bernoulli-loss", rate = 0.004 }]
[flow.main]
from = "A"
to = "B"
cc = "reno"
"""

FILE = """
title = "a file that the socket takes whole"
duration = "4 s"
[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "20 ms"
[flow.main]
from = "A"
to = "B"
workload = { kind = "file", size = "1 MB" }
"""

OVERFLOW = """
title = "a queue that slow start overflows"
duration = "4 s"
[link.path]
between = ["A", "B"]
rate = "50 Mbit/s"
delay = "20 ms"
queue = { kind = "drop-tail", limit = "60 packets" }
[flow.main]
from = "A"
to = "B"
cc = "reno"
"""

OUTAGE = """
title = "a link that is down for a while"
duration = "5 s"
[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "10 ms"
[[at]]
time = "1 s"
set = { "link.path.up" = false }
[[at]]
time = "2.5 s"
set = { "link.path.up" = true }
[flow.main]
from = "A"
to = "B"
cc = "cubic"
"""


@dataclass(frozen=True)
class Seen:
    """A run: its result, the segments of its sender and receiver, and its end."""

    result: RunResult
    sent: list[Segment]
    received: list[Segment]
    duration_s: float

    @property
    def flow(self) -> dict[str, Any]:
        return dict(self.result.flows["main"])

    @property
    def trace(self) -> dict[str, Any]:
        assert self.result.live is not None
        return dict(self.result.live["trace"])

    @property
    def controls(self) -> dict[str, Any]:
        assert self.result.live is not None
        return dict(self.result.live["controls"])

    @property
    def first(self) -> int:
        """The sequence number of the first byte: the SYN's plus one."""
        return next(segment.seq for segment in self.sent if segment.flags & SYN) + 1


def traced(text: str) -> Seen:
    """Run with every acknowledgment traced."""
    scenario = Scenario.from_text(text)
    try:
        result = scenario.run_live(
            packets=True, trace="acks", samples_ms=10, captures=["path"], snap_length=120, limits=LOOSE
        )
    except Exception as error:
        if "cannot be traced" in str(error):
            missing(str(error))
        raise
    sent, received = (list(segments(result.pcapng(f"path.{way}"))) for way in ("forward", "reverse"))
    return Seen(result, sent, received, float(result.summary["duration_s"]))


@pytest.fixture(scope="module")
def lossy(live_machine: None) -> Seen:
    return traced(LOSSY)


@pytest.fixture(scope="module")
def file(live_machine: None) -> Seen:
    return traced(FILE)


def fails(check: Callable[[], None]) -> bool:
    """Whether a check rejects its input."""
    try:
        check()
    except AssertionError:
        return True
    return False


# Every acknowledgment that the capture shows at the sender appears once.


def acknowledgments(seen: Seen) -> tuple[list[int], list[int]]:
    """Acknowledged bytes in order: of ACKs that certainly arrived, and of all ACKs on the reverse path."""
    acks = [s for s in seen.received if s.flags & ACK and not s.flags & SYN]
    # The reverse path takes at most 20 ms here; a tenth of a second covers the lateness of the
    # slowest machine.
    return (
        [s.ack - seen.first for s in acks if s.time_s < seen.duration_s - 0.12],
        [s.ack - seen.first for s in acks],
    )


def check_each_once(told: Sequence[int], came: Sequence[int], entered: Sequence[int], merged: int) -> None:
    """``told`` must be ``entered`` without its end and without the ACKs that the kernel has merged with the next."""
    skipped, place = 0, 0
    for ack in told:
        while place < len(entered) and entered[place] != ack:
            skipped, place = skipped + 1, place + 1
        assert place < len(entered), f"the acknowledgment of {ack} came from nowhere, or twice"
        place += 1
    assert skipped == merged, f"{skipped} acknowledgments are missing, {merged} were merged"
    assert place >= len(came), f"the last {len(came) - place} acknowledgments are missing"


def told_of(seen: Seen) -> list[int]:
    return seen.result.table("ack_samples")["acknowledged_bytes"].to_list()


@pytest.mark.parametrize("which", ["lossy", "file"])
def test_every_acknowledgment_appears_once(which: str, request: pytest.FixtureRequest) -> None:
    """Detects a trace that omits an ACK, repeats one, or has none after the sender has closed its side."""
    seen: Seen = request.getfixturevalue(which)
    told, (came, entered) = told_of(seen), acknowledgments(seen)
    merged = seen.trace["merged_segments"]["A"]
    assert len(told) > 300
    assert seen.trace["lost_records"] == 0
    check_each_once(told, came, entered, merged)
    middle = len(told) // 2
    for spoilt in (
        told[:middle] + told[middle + 1 :],
        told[:middle] + told[middle : middle + 1] + told[middle:],
        told[: len(told) // 4],
        [ack + 1 for ack in told],
    ):
        assert fails(lambda spoilt=spoilt: check_each_once(spoilt, came, entered, merged))  # type: ignore[misc]


# Windows.


@dataclass(frozen=True)
class Row:
    """Fields of the trace that a law of windows uses."""

    state: str
    cwnd: float
    acknowledged: int


def rows_of(seen: Seen) -> list[Row]:
    table = seen.result.table("ack_samples").select("state", "cwnd_packets", "acknowledged_bytes")
    return [Row(*row) for row in table.iter_rows()]


def check_reno(rows: Sequence[Row]) -> None:
    """In congestion avoidance the window rises by at most a packet per acknowledged window (RFC 5681 §3.1)."""
    begin, looked_at = 1, 0
    for end in range(2, len(rows)):
        if rows[end].state != "open":
            begin = end + 1
            continue
        # The bytes acknowledged by the ACKs from `begin` to the one before `end`. Each row precedes
        # its own ACK.
        while begin < end and rows[end - 1].acknowledged - rows[begin - 1].acknowledged > rows[begin].cwnd * MSS:
            begin += 1
        if begin < end:
            looked_at += 1
            grown = rows[end].cwnd - rows[begin].cwnd
            assert grown <= 1, f"{grown} packets in a round trip, row {end}"
    assert looked_at > 500, f"only {looked_at} rows of congestion avoidance"


def test_reno_rises_by_a_packet_in_a_round_trip(lossy: Seen) -> None:
    """Detects slow start labelled as congestion avoidance, and a window repeated one row too often."""
    rows = rows_of(lossy)
    check_reno(rows)
    assert sum(row.state == "slow-start" for row in rows) > 50
    assert fails(lambda: check_reno([replace(row, state="open") for row in rows]))
    assert fails(lambda: check_reno([replace(row, cwnd=row.cwnd + number % 3) for number, row in enumerate(rows)]))


def check_samples(samples: pl.DataFrame, acks: pl.DataFrame, column: str, told: str) -> None:
    """In 99 of 100 samples the socket's value equals that of a neighbouring acknowledgment."""
    times, values = acks["time_s"].to_list(), acks[told].to_list()
    agreeing = total = 0
    for time_s, value in samples.select("time_s", column).iter_rows():
        after = bisect_right(times, time_s)
        # A sample is taken a little before its time, and the thread may be preempted: five rows
        # either way.
        near = values[max(0, after - 5) : after + 5]
        if 5 <= after < len(times) - 5:
            total += 1
            agreeing += value in near
    assert total > 300
    assert agreeing >= 0.99 * total, f"{column}: {agreeing} of {total}"


def test_sockets_report_the_same_values(lossy: Seen) -> None:
    """Detects a field that is read from a wrong place, and a clock that is off by 50 ms."""
    samples, acks = lossy.result.table("samples"), lossy.result.table("ack_samples")
    for column in ("cwnd_packets", "ssthresh_packets", "fast_recoveries", "retransmitted_packets"):
        check_samples(samples, acks, column, column)
    assert fails(lambda: check_samples(samples, acks, "cwnd_packets", "ssthresh_packets"))
    later = acks.with_columns(pl.col("time_s") + 0.05)
    assert fails(lambda: check_samples(samples, later, "cwnd_packets", "cwnd_packets"))


def check_reductions(events: pl.DataFrame) -> None:
    """A recovery of Reno halves the window, to at least two segments (RFC 5681 §3.1 equation 4)."""
    begun = events.filter(event="recovery-entered")
    assert begun.height > 3
    for before, ssthresh in begun.select("cwnd_before_packets", "ssthresh_packets").iter_rows():
        assert ssthresh == max(before // 2, 2)


def test_reductions(lossy: Seen) -> None:
    """Detects the window of one acknowledgment later, and CUBIC's share."""
    events = lossy.result.table("window_events")
    check_reductions(events)
    assert fails(lambda: check_reductions(events.with_columns(pl.col("cwnd_before_packets") - 2)))
    assert fails(lambda: check_reductions(events.with_columns(pl.col("ssthresh_packets") * 7 // 5)))


# Recoveries and retransmissions.


def sent_again(sent: Sequence[Segment]) -> list[tuple[Segment, bool]]:
    """Retransmitted segments, and whether each begins a recovery.

    It does if it is beyond all data sent when the last recovery began: ``recover`` of RFC 6582
    §3.2.
    """
    highest, recover, found = 0, 0, []
    for segment in sent:
        if segment.payload == 0:
            continue
        if segment.seq < highest:
            begins = segment.seq >= recover
            if begins:
                recover = highest
            found.append((segment, begins))
        highest = max(highest, segment.end)
    return found


@pytest.mark.brief
def test_two_losses_of_one_window_are_one_recovery() -> None:
    """Detects retransmissions counted as recoveries."""

    def data(number: int) -> Segment:
        return Segment(0, number * 10, 0, ACK, 10, 5000, 62, 500)

    once = [data(number) for number in range(20)]
    assert [begins for _, begins in sent_again([*once, data(3), data(7)])] == [True, False]
    later = [*once, data(3), *(data(number) for number in range(20, 30)), data(21)]
    assert [begins for _, begins in sent_again(later)] == [True, True]
    assert sent_again(once) == []


def numbers_of(seen: Seen, segments: Sequence[tuple[Segment, bool]]) -> list[int]:
    """Sequence offsets of the first bytes as in the tables, where the SYN has 0."""
    return [segment.seq - seen.first + 1 for segment, _ in segments]


def test_recoveries_match_the_capture(lossy: Seen) -> None:
    """Detects retransmissions counted as recoveries, and a missed state."""
    again = sent_again(lossy.sent)
    begun = sum(begins for _, begins in again)
    assert lossy.flow["timeouts"] == 0, "with a timeout the capture alone does not tell"
    assert lossy.flow["fast_recoveries"] == lossy.trace["flows"]["main"]["recoveries"] == begun > 3
    assert begun < len(again), "two of a window were lost: else this would not tell the two counts apart"
    entered = lossy.result.table("window_events").filter(event="recovery-entered")
    assert entered.height == begun


def test_retransmissions_match_the_capture(lossy: Seen) -> None:
    """Detects marks on other packets: the first bytes are compared, in order."""
    again = numbers_of(lossy, sent_again(lossy.sent))
    packets = lossy.result.table("packets").filter(pl.col("retransmission"))
    assert packets["sequence_bytes"].to_list() == again
    assert len(again) == lossy.flow["retransmitted_packets"] == lossy.trace["flows"]["main"]["retransmissions"]
    assert set(packets["cause"]) <= {"rack", "tlp"}
    # Only losses, and no spurious retransmission of data that has arrived.
    assert packets.filter(fate="lost").height + lossy.flow["fast_recoveries"] > 0
    why = lossy.result.why().flows[0]
    kinds = [episode.kind for episode in why.episodes]
    assert kinds.count("fast recovery") == lossy.flow["fast_recoveries"]
    assert len(why.retransmissions) == len(again)
    assert sum(item.needed is True for item in why.retransmissions) >= len(again) - 2


def test_all_packets_of_a_retransmitted_burst_are_marked(live_machine: None) -> None:
    """Detects marks on only the first packet of a TSO burst."""
    seen = traced(OVERFLOW)
    again = numbers_of(seen, sent_again(seen.sent))
    packets = seen.result.table("packets").filter(pl.col("retransmission"))
    assert len(again) > 20
    assert packets["sequence_bytes"].to_list() == again
    assert len(again) == seen.flow["retransmitted_packets"] == seen.trace["flows"]["main"]["retransmissions"]


def test_timeouts(live_machine: None) -> None:
    """Detects a trace with only the first expiry of a timer: the link is down for three of them."""
    seen = traced(OUTAGE)
    assert seen.flow["timeouts"] >= 2
    assert seen.trace["flows"]["main"]["timeouts"] == seen.flow["timeouts"]
    events = seen.result.table("window_events")
    expired = events.filter(event="rto")
    assert expired.height == seen.flow["timeouts"]
    before, after = (expired[f"cwnd_{which}_packets"].to_list() for which in ("before", "after"))
    assert max(after) <= max(before) / 2
    # Detects the first window repeated for each expiry: no packet is received in between.
    assert before[1] == after[0] == 1
    assert "timeout" in {episode.kind for episode in seen.result.why().flows[0].episodes}
    assert "rto" in set(seen.result.table("packets")["cause"].drop_nulls())


# Runs without a trace.


def run(
    tmp_path: Path, *options: str, before: Sequence[str] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text((PATH + FLOW).replace("3 s", "500 ms"))
    return subprocess.run(
        [*before, *command("run", scenario, "--engine", "live", *options)],
        capture_output=True, text=True, check=False, timeout=120, env={**os.environ, **environment},
    )  # fmt: skip


def test_without_a_compiler_the_run_continues_with_a_note(live_machine: None, tmp_path: Path) -> None:
    """Detects a run without the note, and counts of 0 that were not measured."""
    done = run(tmp_path, "--json", "--allow-tainted", PATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    trace = summary["live"]["trace"]
    assert trace["detail"] is None
    assert "clang" in trace["why_not"]
    assert summary["flows"]["main"]["fast_recoveries"] is None


@pytest.mark.parametrize("options", [["--trace", "acks"], ["--trace", "events"], ["--why"]])
def test_a_requested_trace_is_refused_with_the_missing_requirement(
    live_machine: None, tmp_path: Path, options: list[str]
) -> None:
    done = run(tmp_path, *options, PATH=str(tmp_path))
    assert done.returncode == 2
    assert "the kernel's TCP cannot be traced: cannot run the compiler `clang`" in done.stderr
    assert done.stdout == ""


@pytest.mark.brief
def test_without_the_capability_the_message_names_it(live_machine: None, tmp_path: Path) -> None:
    """In a user namespace we are root, and may make networks, but not load programs into the kernel."""
    unshare = shutil.which("unshare")
    tried = [unshare or "unshare", "--user", "--map-root-user"]
    if unshare is None or subprocess.run([*tried, "true"], check=False, capture_output=True).returncode != 0:
        missing("unshare makes no user namespace here")
    done = run(tmp_path, "--trace", "acks", before=tried)
    assert done.returncode == 2
    assert "CAP_BPF" in done.stderr
