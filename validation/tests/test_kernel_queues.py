"""Queues beside the kernel's: recorded decisions, models of both sides, and wrong systems."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import pytest
from anabranch.kernel.images import images

from comparison.pages import shown
from kernel import netem_rows, queues
from kernel.arrivals import Arrival, arrivals
from kernel.codel_law import Codel, Settings, constant, run
from kernel.converted import simulate
from kernel.queue_rows import BITS_PER_NS, ROWS, Row
from kernel.queues import Decisions, ranges, record

Record = Mapping[str, str]


@cache
def recorded() -> Mapping[tuple[str, str], Record]:
    return queues.recorded()


def modelled(row: Row, *, linux: bool) -> Record | None:
    model = row.modelled(arrivals(row.shape), linux=linux)
    if model is None:
        return None
    left = dict(sorted(model[0].items(), key=lambda of: of[1]))
    return record(row, Decisions(left, frozenset(model[1])))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_models_decide_as_recorded(row: Row) -> None:
    """Linux's arithmetic explains the kernel, and the RFC's explains ours, packet by packet."""
    for side, linux in (("linux", True), ("anabranch", False)):
        model = modelled(row, linux=linux)
        assert model is None or model == recorded()[row.name, side]


def test_drop_tail_decides_as_the_kernel_does() -> None:
    fifos = [row for row in ROWS if row.queue["kind"] == "drop-tail"]
    assert fifos
    for row in fifos:
        assert recorded()[row.name, "anabranch"] == recorded()[row.name, "linux"]


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_our_queues_decide_as_recorded() -> None:
    for row, decisions in zip(ROWS, queues.of_ours(ROWS), strict=True):
        assert record(row, decisions) == recorded()[row.name, "anabranch"], row.name


def test_detects_a_codel_without_the_square_root() -> None:
    """One signal each interval: neither the kernel nor ours."""
    row = next(row for row in ROWS if row.queue["kind"] == "codel" and row.shape == "overload")
    assert isinstance(row.law, Settings)
    packets = arrivals(row.shape)
    wrong = Codel(replace(row.law, root=constant), packets)
    decided = record(row, Decisions(run(wrong, packets, BITS_PER_NS), frozenset(wrong.marked)))
    assert decided != recorded()[row.name, "linux"]
    assert decided != recorded()[row.name, "anabranch"]


UNLIKE = ("reorder", "slot")
"""Words of lines whose packets arrive at other times here."""


@pytest.mark.parametrize("line", netem_rows.EXACT, ids=lambda line: line.name)
def test_converted_netem_delivers_the_kernels_packets(line: netem_rows.Line) -> None:
    if line.above:
        pytest.skip("a packet of HTB is handed over a transmission earlier")
    assert arrived(simulate(line.tc, arrivals(line.shape)).arrived) == recorded()[line.name, "linux"]["arrived"]


def test_detects_a_netem_whose_limit_does_not_count_delayed_packets() -> None:
    """With a limit of the queue alone, nothing is dropped before a link without a rate."""
    line = next(line for line in netem_rows.EXACT if "limit 20" in line.words)
    unlimited = line.tc[0].replace("limit 20", "limit 100000")
    assert arrived(simulate([unlimited], arrivals(line.shape)).arrived) != recorded()[line.name, "linux"]["arrived"]


def arrived(times: Sequence[int | None]) -> str:
    return ranges(number for number, at in enumerate(times) if at is not None)


def test_arrivals_keep_off_the_grid_of_departures() -> None:
    """An arrival on the grid would be before or after a departure by chance."""
    for shape in {row.shape for row in ROWS}:
        packets = arrivals(shape)
        assert packets == sorted(packets)
        near = [packet for packet in packets if not 5_000 < packet.at_ns * 3 % 200_000 / 3 < 62_000]
        starts = [
            packet
            for before, packet in zip([Arrival(-(10**9), 0, 0, 0), *packets], packets, strict=False)
            if packet.at_ns - before.at_ns > 4_900_000
        ]
        assert set(near) <= set(starts)


def test_the_page_has_each_row() -> None:
    page = "\n".join(shown("docs/validation/kernel-queues.md", "rows"))
    for row in ROWS:
        assert f"| `{row.qdisc}` | {row.shape} | {len(arrivals(row.shape))} |" in page
    netem = "\n".join(shown("docs/validation/kernel-queues.md", "netem"))
    for line in netem_rows.LINES:
        assert f"{line.words}` | {line.shape} |" in netem


AGAIN = ("pfifo limit 50 | small", "codel interval 99.53ms | two-flows", "fq_codel interval 99.53ms | ecn")


@pytest.mark.skipif(not images(), reason="no kernel is built; type: make kernel")
def test_the_kernel_decides_as_recorded() -> None:
    rows = [row for row in ROWS if row.name in AGAIN]
    assert len(rows) == len(AGAIN)
    for row, decisions in zip(rows, queues.of_linux(rows), strict=True):
        assert record(row, decisions) == recorded()[row.name, "linux"], row.name
