"""Captures: their form, their options, and Wireshark's analysis of them.

A tap has less information than an endpoint, so tshark may differ, but only in these ways:

- To tshark a segment below the highest sequence number is *out of order* if it arrives soon after
  (within the first measured round-trip time), and otherwise a *retransmission*. It cannot
  distinguish them, so the tests compare all kinds together.
- To tshark a retransmission is *spurious* only if its data had been acknowledged when it passed the
  tap. Data beyond a gap that had arrived was not acknowledged, so tshark calls its retransmission
  plain; we call both spurious.
- Downstream of a loss, the tap has never seen the lost segment: its retransmission fills a gap.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from anabranch import Scenario
from anabranch.errors import UserError
from anabranch.files.capture import Place, parse_option, place
from anabranch.result.result import RunResult

TSHARK = shutil.which("tshark")
# In CI the tests must not be skipped: without tshark they fail.
needs_tshark = pytest.mark.skipif(
    TSHARK is None and not os.environ.get("CI"), reason="tshark is not installed (Debian package tshark)"
)

LOSS = """
title = "Loss behind a queue"
duration = "10 s"
[link.access]
between = ["S", "M"]
rate = "100 Mbit/s"
delay = "5 ms"
[link.bottleneck]
between = ["M", "R"]
rate = "10 Mbit/s"
delay = "15 ms"
queue = { kind = "drop-tail", limit = "60 packets" }
forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]
[link.last]
between = ["R", "D"]
[flow.main]
from = "S"
to = "D"
stack = "rfc"
cc = "reno"
workload = { kind = "file", size = "5 MB" }
"""

# Without an end: spurious retransmissions after a file's last byte are not counted.
REORDERING = LOSS.replace(
    'forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]',
    'forward.queue = { kind = "drop-tail", limit = "60 packets", reorder = { kind = "interval", interval = 8 } }',
).replace('workload = { kind = "file", size = "5 MB" }', "")

BELOW = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")


@dataclass(frozen=True)
class Frame:
    """A packet as dissected by tshark, with relative numbers; ``end`` counts SYN and FIN, ``length`` does not."""

    comment: str
    forward: bool
    seq: int
    end: int
    ack: int
    length: int
    flags: frozenset[str]


def tshark(file: Path, *arguments: str) -> str:
    assert TSHARK is not None
    options = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-o", "nameres.network_name:FALSE")
    command = [TSHARK, "-r", str(file), *options, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603


def frames(file: Path) -> list[Frame]:
    kinds = (*BELOW, "lost_segment")
    fields = ["frame.comment", "tcp.srcport", "tcp.seq", "tcp.nxtseq", "tcp.ack", "tcp.len"]
    fields += [f"tcp.analysis.{kind}" for kind in kinds]
    out = tshark(file, "-T", "fields", "-E", "separator=|", *[part for f in fields for part in ("-e", f)])
    found = []
    for line in out.splitlines():
        comment, port, seq, end, ack, length, *analysis = line.split("|")
        found.append(
            Frame(
                comment,
                port != "5001",
                int(seq),
                int(end or seq),
                int(ack or 0),
                int(length),
                frozenset(kind for kind, told in zip(kinds, analysis, strict=True) if told),
            )
        )
    return found


@dataclass(frozen=True)
class Captured:
    result: RunResult
    file: Callable[[str], Path]


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Captured]:
    """Runs of a scenario with every link captured, each executed once."""
    runs: dict[str, Captured] = {}

    def make(text: str) -> Captured:
        if text not in runs:
            folder = tmp_path_factory.mktemp("captures")
            result = Scenario.from_text(text).run(
                captures=["access", "bottleneck", "last"], snap_length=65535, packets=True
            )

            def file(name: str) -> Path:
                path = folder / f"{name}.pcapng"
                path.write_bytes(result.pcapng(name))
                return path

            runs[text] = Captured(result, file)
        return runs[text]

    return make


@needs_tshark
@pytest.mark.parametrize("text", [LOSS, REORDERING], ids=["loss", "reordering"])
@pytest.mark.parametrize("link", ["access", "bottleneck", "last"])
def test_tshark_finds_nothing_malformed(captured: Callable[[str], Captured], text: str, link: str) -> None:
    file = captured(text).file(link)
    fields = ("tcp.checksum.status", "ip.checksum.status", "_ws.malformed", "_ws.short")
    lines = tshark(file, "-T", "fields", *[part for field in fields for part in ("-e", field)]).splitlines()
    # Both checksums are right, and no packet is malformed or truncated.
    assert set(lines) == {"1\t1\t\t"}
    assert len(lines) > 1000


@needs_tshark
@pytest.mark.parametrize("text", [LOSS, REORDERING], ids=["loss", "reordering"])
def test_retransmissions_at_the_sender(captured: Callable[[str], Captured], text: str) -> None:
    run = captured(text)
    forward = [frame for frame in frames(run.file("access")) if frame.forward]
    ours = [", retransmission" in frame.comment for frame in forward]
    theirs = [bool(frame.flags.intersection(BELOW)) for frame in forward]
    assert theirs == ours
    data = [frame for frame, again in zip(forward, ours, strict=True) if again and frame.length]
    packets = run.result.table("packets")
    assert len(data) == (run.result.flows["main"]["retransmitted_packets"] or 0) > 10
    assert len(data) == packets.filter(packets["retransmission"] & (packets["payload_bytes"] > 0)).height


@needs_tshark
@pytest.mark.parametrize("text", [LOSS, REORDERING], ids=["loss", "reordering"])
def test_gaps_and_their_retransmissions_after_the_loss(captured: Callable[[str], Captured], text: str) -> None:
    forward = [frame for frame in frames(captured(text).file("last.forward")) if frame.forward]
    highest, gaps, late = 0, [], []
    for frame in forward:
        gaps.append(frame.seq > highest > 0)
        late.append(frame.end > frame.seq and frame.seq < highest)
        highest = max(highest, frame.end)
    assert ["lost_segment" in frame.flags for frame in forward] == gaps
    assert [bool(frame.flags.intersection(BELOW)) for frame in forward] == late
    assert sum(gaps) > 10


@needs_tshark
def test_spurious_retransmissions_at_the_receiver(captured: Callable[[str], Captured]) -> None:
    run = captured(REORDERING)
    arrived: set[int] = set()
    expected, needless, acknowledged = 1, 0, []
    acked = 0
    found = frames(run.file("last"))
    lengths = {frame.seq: frame.length for frame in found if frame.forward and frame.length}
    for frame in found:
        if not frame.forward:
            acked = max(acked, frame.ack)
            acknowledged.append(False)
            continue
        again = frame.length > 0 and (frame.end <= expected or frame.seq in arrived)
        needless += again
        acknowledged.append(again and frame.end <= acked)
        if frame.length:
            arrived.add(frame.seq)
        while expected in arrived:
            arrived.discard(expected)
            expected += lengths[expected]
    assert needless == (run.result.flows["main"]["spurious_retransmissions"] or 0) > 0
    assert ["spurious_retransmission" in frame.flags for frame in found] == acknowledged
    assert sum(acknowledged) > 0


@needs_tshark
def test_outcomes_of_packets_are_in_the_comments(captured: Callable[[str], Captured]) -> None:
    run = captured(LOSS)
    comments = [frame.comment for frame in frames(run.file("bottleneck.forward"))]
    figures = run.result.links["bottleneck"]["forward"]
    lost = [c for c in comments if c.endswith("lost by link.bottleneck.forward.impair.bernoulli-loss.0")]
    dropped = [c for c in comments if c.endswith("dropped by the queue")]
    assert len(lost) == figures["lost_packets"] > 10
    assert len(dropped) == figures["dropped_packets"]
    assert comments[0] == "packet 0 of main: passed"


def test_captures_change_nothing() -> None:
    scenario = Scenario.from_text(LOSS)
    assert scenario.run().digest == scenario.run(captures=["bottleneck", "last.reverse"]).digest


def test_a_link_without_a_capture_is_refused() -> None:
    result = Scenario.from_text(LOSS).set("duration", "0.1 s").run(captures=["access.forward"])
    assert result.pcapng("access.forward") == result.pcapng("access")
    for name in ("access.reverse", "last"):
        with pytest.raises(UserError, match="was not captured"):
            result.pcapng(name)


def test_places() -> None:
    links = ["a", "b.c", "d.forward"]
    assert place("a", links) == Place("a", None)
    assert place("a.reverse", links) == Place("a", "reverse")
    assert place("b.c", links) == Place("b.c", None)
    assert place("d.forward", links) == Place("d.forward", None)
    assert place("d.forward.forward", links) == Place("d.forward", "forward")
    for name, message in (("x", 'no link "x"'), ("x.forward", 'no link "x"'), ("a.forwards", "no direction")):
        with pytest.raises(UserError, match=message):
            place(name, links)


@pytest.mark.parametrize("option", ["bottleneck", "=file", "bottleneck="])
def test_bad_options(option: str) -> None:
    with pytest.raises(UserError, match="--pcap"):
        parse_option(option)


def test_an_option_with_an_equals_sign(tmp_path: Path) -> None:
    assert parse_option(f"a=b={tmp_path}/x") == ("a=b", tmp_path / "x")


@pytest.mark.parametrize("length", [0, -1, 65_536])
def test_bad_lengths(length: int) -> None:
    with pytest.raises(UserError, match="snap_length="):
        Scenario.from_text(LOSS).run(captures=["access"], snap_length=length)
