"""Queues compared with the kernel's: recorded decisions, models of both sides, and wrong systems."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import pytest
from anabranch.kernel.images import images

from comparison.pages import shown
from kernel import cake_law, netem_rows, queues, share_rows
from kernel.arrivals import SLOW, Arrival, arrivals
from kernel.codel_law import Codel, FqCodel, Settings, constant, run
from kernel.converted import simulate
from kernel.queue_rows import BITS_PER_NS, CHANCE, ROWS, Row
from kernel.queues import Decisions, ranges, record, windows
from kernel.red_law import Red

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
    """A signal each interval matches neither the kernel nor ours."""
    row = next(row for row in ROWS if row.queue["kind"] == "codel" and row.shape == "overload")
    assert isinstance(row.law, Settings)
    packets = arrivals(row.shape)
    wrong = Codel(replace(row.law, root=constant), packets)
    decided = record(row, Decisions(run(wrong, packets, BITS_PER_NS, in_vain=False), frozenset(wrong.marked)))
    assert decided != recorded()[row.name, "linux"]
    assert decided != recorded()[row.name, "anabranch"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_no_decision_depends_on_a_microsecond(row: Row) -> None:
    """Arrivals and departures in the guest are up to 1.5 µs off."""
    if row.law is None or isinstance(row.law, Red):
        pytest.skip("its decisions follow from the backlog, and arrivals are off the grid of departures")
    model = row.model(arrivals(row.shape), linux=True)
    rate = row.law.rate if isinstance(row.law, cake_law.Settings) else BITS_PER_NS
    run(model, arrivals(row.shape), rate, in_vain=False)
    assert model.margin > 3_000


def cake(words: str, shape: str) -> Row:
    return next(row for row in ROWS if words in row.qdisc and row.qdisc.startswith("cake") and row.shape == shape)


def decided(row: Row, model: FqCodel | cake_law.Cake) -> Record:
    assert isinstance(row.law, cake_law.Settings)
    left = run(model, arrivals(row.shape), row.law.rate, in_vain=False)
    return record(row, Decisions(left, frozenset(model.marked)))


def test_detects_a_cake_with_the_codel_of_rfc_8289() -> None:
    """Such a CAKE waits for an interval before the first drop, and resets the count."""
    for row in (cake("12mbit", "overload"), cake("6mbit", "slow-ecn")):
        assert isinstance(row.law, cake_law.Settings)
        settings = Settings(round(row.law.interval), round(row.law.target), 10_240, ecn=True)
        wrong = FqCodel(settings, arrivals(row.shape), row.law.quantum)
        assert decided(row, wrong) not in (recorded()[row.name, "linux"], recorded()[row.name, "anabranch"])


class CatchesUpWithMarks(cake_law.Cobalt):
    """A COBALT whose marks leave signals to catch up with, as its drops do."""

    def marked(self, now: float) -> None:
        """Keep the signals to catch up with."""


def test_detects_a_cake_that_drops_the_last_packet_or_catches_up_with_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    row = cake("6mbit", "crowd")
    assert isinstance(row.law, cake_law.Settings)
    law = replace(row.law, root=cake_law.tabled)
    assert decided(row, cake_law.Cake(law, arrivals(row.shape))) == recorded()[row.name, "linux"]
    drops_last = cake_law.Cake(replace(law, spares_last=False), arrivals(row.shape))
    assert decided(row, drops_last) != recorded()[row.name, "linux"]
    monkeypatch.setattr(cake_law, "Cobalt", CatchesUpWithMarks)
    assert decided(row, cake_law.Cake(law, arrivals(row.shape))) != recorded()[row.name, "linux"]


def kernel_shares(row: Row) -> list[float]:
    return [float(share) for share in recorded()[row.name, "linux"]["shares"].split()]


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_flows_share_as_in_the_kernel() -> None:
    """Flows, hosts and tins. The shares with isolation of flows and of sources differ by more than the tolerance."""
    rows = share_rows.ROWS
    for row, decisions in zip(rows, queues.of_ours(rows), strict=True):
        assert share_rows.shares(row, decisions) == pytest.approx(kernel_shares(row), abs=share_rows.WITHIN), row.name
    by_mode = {row.queue["isolation"]: kernel_shares(row) for row in rows if row.shape == "six"}
    assert by_mode["flows"] != pytest.approx(by_mode["dual-srchost"], abs=share_rows.WITHIN)


def kernel_windows(row: Row) -> list[tuple[float, ...]]:
    return [tuple(map(float, of.split(","))) for of in recorded()[row.name, "linux"]["seconds"].split()]


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_pie_drops_as_the_kernel_does() -> None:
    """Shares and delays are within the range of twenty seeds widened by a tenth, before Linux lets the delay stay low.

    Detects unspaced drops, and updates every 15 ms.
    """
    row = next(row for row in CHANCE if row.qdisc == "pie")
    linux = kernel_windows(row)
    unspaced = replace(row, queue={**row.queue, "derandomize": False})
    fast = replace(row, queue={**row.queue, "update_interval": "15 ms"})

    def agrees(candidate: Row) -> bool:
        runs = [windows(candidate, of) for of in queues.of_ours([candidate] * 20, range(1, 21))]

        def within(second: int, figure: int) -> bool:
            ours = [run[second][figure] for run in runs]
            return 0.9 * min(ours) <= linux[second][figure] <= 1.1 * max(ours)

        return all(within(second, 0) for second in range(len(linux))) and within(0, 1) and within(1, 1)

    assert agrees(row)
    assert not agrees(unspaced)
    assert not agrees(fast)


@pytest.mark.parametrize("line", netem_rows.EXACT, ids=lambda line: line.name)
def test_converted_netem_delivers_the_kernels_packets(line: netem_rows.Line) -> None:
    if line.above:
        pytest.skip("a packet of HTB is handed over a transmission earlier")
    assert arrived(simulate(line.tc, arrivals(line.shape)).arrived) == recorded()[line.name, "linux"]["arrived"]


def test_detects_a_netem_whose_limit_does_not_count_delayed_packets() -> None:
    """If only the queue's packets counted, nothing would be dropped before a link without a rate."""
    line = next(line for line in netem_rows.EXACT if "limit 20" in line.words)
    unlimited = line.tc[0].replace("limit 20", "limit 100000")
    assert arrived(simulate([unlimited], arrivals(line.shape)).arrived) != recorded()[line.name, "linux"]["arrived"]


def arrived(times: Sequence[int | None]) -> str:
    return ranges(number for number, at in enumerate(times) if at is not None)


def test_arrivals_avoid_the_grid_of_departures() -> None:
    """An arrival on the grid would come before or after a departure by chance."""
    for shape in {row.shape.rpartition(SLOW)[2] for row in ROWS}:
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
        assert f"| {row.cell} | {row.shape} | {len(arrivals(row.shape))} |" in page
    shares = "\n".join(shown("docs/validation/kernel-queues.md", "shares"))
    for row in share_rows.ROWS:
        assert f"| `{row.qdisc}` | {row.shape} |" in shares
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
