"""The shipped eBPF controls in the kernel: their traces obey the laws of their windows.

In the simulator ``cargo test -p anabranch-bpf --test twins`` compares them with their twins in
Rust. Here the kernel calls them. Each law must reject another control or a spoilt trace.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import floor

import polars as pl
import pytest

from anabranch.live import Limits

from .conftest import missing
from .test_trace import LOSSY, Seen, check_reductions, check_reno, fails, rows_of, traced

SHARES: dict[str, Callable[[float], float]] = {
    "cubic-plus": lambda _: 0.7,
    "compound": lambda _: 0.5,
    "vegas": lambda _: 0.5,
    "bic": lambda cwnd: 0.875 if cwnd >= 14 else 0.5,
}
"""The window after a loss: RFC 9438 §4.6; draft-sridharan-tcpm-ctcp-02 §3; Brakmo and Peterson 1995
(Reno's); Xu, Harfoush and Rhee, §III (below 14 packets Reno's)."""

DEEP = """
title = "a queue of twice what the path holds"
duration = "6 s"
[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "10 ms"
forward.queue = { kind = "drop-tail", limit = "67 packets" }
[flow.main]
from = "A"
to = "B"
cc = "reno"
"""

PIPE = 20e6 * 20e-3 / (8 * 1500)
"""Packets in flight that fill this path without its queue."""


@pytest.fixture(autouse=True)
def needed(can_load: None) -> None:
    """The kernel accepts our eBPF controls."""


@cache
def lossy(name: str) -> Seen:
    """A run with the shipped file, even if the kernel has a control of that name."""
    return loaded(LOSSY, name)


@cache
def deep(name: str) -> Seen:
    return loaded(DEEP, name)


def loaded(text: str, name: str) -> Seen:
    seen = traced(text.replace('cc = "reno"', f'cc = {{ kind = "bpf", name = "{name}" }}'))
    told = seen.controls["main"]
    assert (told["file"], told["loaded"]) == (f"{name}.bpf.c", True)
    assert set(seen.result.table("ack_samples")["congestion_control"]) == {told["name"]}
    return seen


def events(seen: Seen) -> pl.DataFrame:
    return seen.result.table("window_events")


def begun(seen_events: pl.DataFrame) -> list[tuple[int, int]]:
    """Windows before and after each reduction of a recovery."""
    entered = seen_events.filter(event="recovery-entered")
    return list(entered.select("cwnd_before_packets", "ssthresh_packets").iter_rows())


def test_reno_in_the_kernel() -> None:
    """It obeys the laws of the kernel's Reno, which the reductions of CUBIC and BIC violate."""
    seen = lossy("reno")
    check_reno(rows_of(seen))
    check_reductions(events(seen))
    for other in ("cubic-plus", "bic"):
        assert fails(lambda other=other: check_reductions(events(lossy(other))))  # type: ignore[misc]
    assert fails(lambda: check_reductions(events(seen).with_columns(pl.col("ssthresh_packets") + 1)))


def check_share(windows: list[tuple[int, int]], share: Callable[[float], float]) -> None:
    """Check reductions. The share applies to the fractional window, of which the kernel reports whole packets."""
    assert len(windows) > 3
    for before, after in windows:
        least, most = floor(share(before) * before), floor(share(before) * (before + 1))
        assert max(least, 2) <= after <= max(most, 2), f"{before} became {after}"


@pytest.mark.parametrize("name", SHARES)
def test_the_window_after_a_loss(name: str) -> None:
    """Detects Reno's half for other controls, a packet too few, and a window that is not reduced."""
    windows = begun(events(lossy(name)))
    check_share(windows, SHARES[name])
    for spoilt in (
        [(before, after - 2) for before, after in windows],
        [(before, after * 7 // 5) for before, after in windows],
        [(before, before) for before, _ in windows],
    ):
        assert fails(lambda spoilt=spoilt: check_share(spoilt, SHARES[name]))  # type: ignore[misc]
    other = "reno" if name in ("cubic-plus", "bic") else "cubic-plus"
    assert fails(lambda: check_share(begun(events(lossy(other))), SHARES[name]))


def test_compound_is_reno_below_its_low_window() -> None:
    """Below 38 packets there is no delay window (draft-sridharan-tcpm-ctcp-02 §6). BIC searches from 14 packets on."""
    rows = rows_of(lossy("compound"))
    low = [row for row in rows if row.cwnd < 38 or row.state != "open"]
    check_reno(low)
    assert fails(lambda: check_reno(rows_of(lossy("bic"))))


def check_pipe(windows: list[tuple[int, int]]) -> None:
    """Check that a reduction leaves the path's own packets without the queue (Grieco and Mascolo 2004, §2)."""
    assert windows
    for before, after in windows:
        assert before > 1.5 * PIPE, "the queue was not full"
        assert after <= 1.15 * PIPE + 2, f"{before} became {after}"
    # At the end of slow start the estimate is still low, because it is a mean of eight round trips.
    assert windows[-1][1] >= 0.5 * PIPE


def test_westwood_empties_the_queue() -> None:
    """Detects Reno, which halves the sum of path and queue."""
    check_pipe(begun(events(deep("westwood-plus"))))
    assert fails(lambda: check_pipe(begun(events(deep("reno")))))


def check_few_queued(seen: Seen) -> None:
    """Check that one to three packets are queued (Brakmo and Peterson 1995, §III-B), and the path is still full."""
    rows = seen.result.table("ack_samples").filter(pl.col("time_s") > 2)
    assert rows.height > 500
    # Lateness of the machine looks like queued packets.
    assert (rows["cwnd_packets"].quantile(0.95) or 0) <= PIPE + 8
    assert seen.result.links["path"]["forward"]["dropped_packets"] == 0
    assert seen.flow["goodput_mbit_s"] > 0.75 * 20


def test_vegas_keeps_few_packets_queued() -> None:
    """Detects Reno, which fills the queue until it drops. Vegas takes lateness of the machine for a queue."""
    seen = deep("vegas")
    assert seen.result.live is not None
    late_ms = seen.result.live["audit"]["p99_lateness_ms"] or 0.0
    if late_ms > Limits().p99_lateness_ms:
        missing(f"a machine that is less busy: one packet in a hundred left {late_ms:.1f} ms late")
    check_few_queued(seen)
    assert fails(lambda: check_few_queued(deep("reno")))
