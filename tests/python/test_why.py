"""Causes of retransmissions, on tables by hand: needed or spurious, by episode, in words, in the report."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import Scenario, why
from anabranch.cli.why import with_why
from anabranch.errors import UserError
from anabranch.report.run_output import html_report
from anabranch.result.result import RunResult
from anabranch.result.table import Table
from anabranch.why import Episode, FlowWhy, Why, text
from anabranch.why.overview import overview

from .browser import asked, needs_chromium
from .command import Call

MSS = 1000


def packet(
    index: int,
    sequence: int,
    sent: float,
    *,
    cause: str | None = None,
    fate: str = "delivered",
    payload: int = MSS,
    flow: str = "main",
    direction: str = "forward",
) -> dict[str, Any]:
    """A row of the table of packets; a delivered packet takes 50 ms."""
    return {
        "flow": flow, "direction": direction, "packet_index": index, "sequence_bytes": sequence,
        "payload_bytes": payload, "retransmission": cause is not None, "cause": cause, "sent_s": sent,
        "received_s": sent + 0.05 if fate == "delivered" else None, "fate": fate,
        "where": "link.bottleneck.forward.queue" if fate == "dropped" else None,
    }  # fmt: skip


def event(time: float, name: str, before: float, after: float, ssthresh: float | None = None) -> dict[str, Any]:
    return {
        "flow": "main", "time_s": time, "event": name, "cwnd_before_packets": before, "cwnd_after_packets": after,
        "ssthresh_packets": ssthresh,
    }  # fmt: skip


EVENT_KINDS = {
    "flow": "text", "time_s": "f8", "event": "text", "cwnd_before_packets": "f8", "cwnd_after_packets": "f8",
    "ssthresh_packets": "f8",
}  # fmt: skip


Row = dict[str, Any]


ROW_KINDS = {
    "flow": "text", "direction": "text", "time_s": "f8", "sequence_bytes": "u8", "payload_bytes": "u8", "cause": "text",
    "needed": "?", "original_s": "f8", "original_fate": "text", "original_where": "text", "original_received_s": "f8",
    "fate": "text",
}  # fmt: skip


def inspect(packets: list[Row], events: list[Row] | None = None) -> Why:
    """The result for a table whose column ``needed`` is computed by :func:`need`."""
    told = [{**packet, "needed": word} for packet, word in zip(packets, need(packets), strict=True)]
    return why.inspect(retransmissions(told), Table.of_rows(events or [], EVENT_KINDS))


def retransmissions(packets: list[Row]) -> Table:
    """The engine's table of retransmissions, from a table of packets only; each row may use all earlier ones."""
    told: list[Row] = []
    sent: list[Row] = []
    for row in packets:
        if sent and not is_next(row, sent[-1]):
            sent = []
        if row["retransmission"]:
            whole = [o for o in sent if start(o) == start(row) and end(o) >= end(row)]
            parts = [o for o in sent if start(o) < end(row) and end(o) > start(row)]
            before: Row = (whole or parts or [{}])[-1]
            kept = ("flow", "direction", "sequence_bytes", "payload_bytes", "cause", "needed", "fate")
            originals = {
                f"original_{key}": before.get(name)
                for key, name in (("s", "sent_s"), ("fate", "fate"), ("where", "where"), ("received_s", "received_s"))
            }
            told.append({**{key: row[key] for key in kept}, "time_s": row["sent_s"], **originals})
        sent.append(row)
    return Table.of_rows(told, ROW_KINDS)


def is_next(row: Row, last: Row) -> bool:
    """Whether a packet belongs to the same connection and direction as the previous one."""
    same = (row["flow"], row["direction"]) == (last["flow"], last["direction"])
    return same and bool(row["packet_index"] > last["packet_index"])


def need(packets: list[Row]) -> list[bool | None]:
    """Whether each packet was needed, from the outcomes of the earlier packets alone.

    A packet is spurious if earlier packets that arrived cover it. It is undecided if packets still
    in flight are needed to cover it.
    """
    words: list[bool | None] = []
    sent: list[Row] = []
    for row in packets:
        if sent and not is_next(row, sent[-1]):
            sent = []
        earlier = [other for other in sent if start(other) < end(row) and end(other) > start(row)]
        sent.append(row)
        if not row["retransmission"] or row["payload_bytes"] == 0:
            words.append(None)
            continue
        arrived = [other for other in earlier if other["fate"] == "delivered"]
        under_way = [other for other in earlier if other["fate"] == "in-flight"]
        undecided = None if covered(row, [*arrived, *under_way]) else True
        words.append(False if covered(row, arrived) else undecided)
    return words


def start(row: Row) -> int:
    return int(row["sequence_bytes"])


def end(row: Row) -> int:
    return start(row) + int(row["payload_bytes"])


def covered(row: Row, by: list[Row]) -> bool:
    """Whether packets together carry all bytes of a row."""
    reached = start(row)
    for begin, stop in sorted((start(other), end(other)) for other in by):
        if begin > reached:
            return False
        reached = max(reached, stop)
    return reached >= end(row)


def only_flow(told: Why) -> FlowWhy:
    (flow,) = told.flows
    return flow


def needs(*packets: dict[str, Any]) -> list[bool | None]:
    return [again.needed for again in only_flow(inspect(list(packets))).retransmissions]


RECOVERY = [
    packet(0, 0, 0.0, fate="dropped"),
    packet(1, 1000, 0.01),
    packet(2, 2000, 0.02),
    packet(3, 0, 0.1, cause="dup-thresh"),
    packet(4, 1000, 0.11, cause="rack"),
]
EVENTS = [event(0.1, "recovery-entered", 10, 7, 7), event(0.2, "recovery-left", 7, 7, 7)]


def test_a_lost_packet_is_needed_and_a_delivered_one_is_not() -> None:
    lost, arrived = only_flow(inspect(RECOVERY)).retransmissions
    assert (lost.needed, lost.original_fate, lost.original_where) == (True, "dropped", "link.bottleneck.forward.queue")
    assert (arrived.needed, arrived.original_fate, round(arrived.original_received_s or 0, 6)) == (
        False,
        "delivered",
        0.06,
    )


def test_the_engines_verdict_is_used() -> None:
    told = [{**packet, "needed": None if packet["cause"] is None else False} for packet in RECOVERY]
    (flow,) = why.inspect(retransmissions(told), Table.of_rows([], EVENT_KINDS)).flows
    assert [again.needed for again in flow.retransmissions] == [False, False]


def by_the_last_sending(packets: list[Row]) -> list[bool | None]:
    """A wrong rule: only the outcome of the previous transmission counts."""
    fates: dict[tuple[str, int], str] = {}
    words: list[bool | None] = []
    for row in packets:
        before = fates.get((row["flow"], row["sequence_bytes"]))
        told = {"delivered": False, "in-flight": None}.get(before or "", True)
        words.append(told if row["retransmission"] else None)
        if row["payload_bytes"]:
            fates[row["flow"], row["sequence_bytes"]] = row["fate"]
    return words


def by_what_had_arrived(packets: list[Row]) -> list[bool | None]:
    """A wrong rule: a packet that arrives after the retransmission was sent does not count."""
    arrivals: dict[tuple[str, int], float] = {}
    words: list[bool | None] = []
    for row in packets:
        key = (row["flow"], row["sequence_bytes"])
        words.append(not arrivals.get(key, row["sent_s"]) < row["sent_s"] if row["retransmission"] else None)
        if row["received_s"] is not None:
            arrivals[key] = min(arrivals.get(key, row["received_s"]), row["received_s"])
    return words


SLOW_FOR_A_WHILE = """
[[at]]
time = "3 s"
set = { "link.bottleneck.rate" = "200 kbit/s" }
[[at]]
time = "6 s"
set = { "link.bottleneck.rate" = "10 Mbit/s" }
"""


def test_the_engines_verdict_follows_from_the_packets() -> None:
    """On paths with loss, reordering and a rate change, the column ``needed`` follows from the
    packets; wrong rules differ."""
    text, _ = (Path(__file__).parent / "data" / "reordering.toml").read_text(encoding="utf-8").split("[sweep]")
    scenario = Scenario.from_text(text + SLOW_FOR_A_WHILE)
    scenario = scenario.set("link.bottleneck.forward.queue.reorder.interval", 10)
    told: list[bool | None] = []
    last: list[bool | None] = []
    had: list[bool | None] = []
    # The older stack repeats segments more than once.
    for stack, loss, ack_loss in (("linux", 0.003, 0.3), ("linux-2.6.35", 0.2, 0.2), ("linux", 0.05, 0.5)):
        lossy = scenario.set("flow.main.stack", stack)
        lossy = lossy.set("link.bottleneck.forward.impair", [{"kind": "bernoulli-loss", "rate": loss}])
        lossy = lossy.set("link.bottleneck.reverse.impair", [{"kind": "bernoulli-loss", "rate": ack_loss}])
        run = lossy.run(packets=True)
        packets, again = (
            table.where(table.is_in("direction", "forward") & (table.numbers("payload_bytes") > 0)).to_dicts()
            for table in map(run.plain, ("packets", "retransmissions"))
        )
        words = [packet["needed"] for packet in packets]
        assert words == need(packets)
        assert [{name: row[name] for name in ROW_KINDS} for row in again] == retransmissions(packets).to_dicts()
        told += words
        last += by_the_last_sending(packets)
        had += by_what_had_arrived(packets)
    assert {True, False} <= set(told)
    assert told != last
    assert told != had


def test_a_late_arrival_counts() -> None:
    """The original was in flight when the retransmission was sent; its arrival makes the retransmission spurious."""
    (again,) = only_flow(inspect([packet(0, 0, 0.0), packet(1, 0, 0.04, cause="rto")])).retransmissions
    assert again.needed is False
    assert "arrived after all at 0.0500 s" in text.need(again)


def test_a_refused_original_did_not_arrive() -> None:
    """RFC 7323 §5.3 R1: a segment with an old timestamp is not acceptable and is dropped."""
    (again,) = only_flow(inspect([packet(0, 0, 0.0, fate="refused"), packet(1, 0, 0.04, cause="rto")])).retransmissions
    assert again.needed is True
    assert text.need(again).startswith("needed: sent 0.0000 s, refused by the receiver")


def test_a_second_retransmission() -> None:
    """If both earlier ones were lost, it is needed. If either arrived, it is spurious."""
    first, second = packet(0, 0, 0.0, fate="lost"), packet(1, 0, 0.1, cause="rack", fate="lost")
    assert needs(first, second, packet(2, 0, 0.2, cause="rto")) == [True, True]
    assert needs(packet(0, 0, 0.0), second, packet(2, 0, 0.2, cause="rto")) == [False, False]
    arrived = packet(1, 0, 0.1, cause="rack")
    assert needs(first, arrived, packet(2, 0, 0.2, cause="rto")) == [True, False]


def test_packets_in_flight_at_the_end_are_undecided() -> None:
    assert needs(packet(0, 0, 0.0, fate="in-flight"), packet(1, 0, 0.1, cause="tlp")) == [None]


def test_segments_with_other_boundaries() -> None:
    """A whole segment after two halves is needed if either half was lost. A half after the whole
    has the whole's verdict."""
    halves = [packet(0, 0, 0.0, payload=500), packet(1, 500, 0.01, payload=500, fate="lost")]
    assert needs(*halves, packet(2, 0, 0.1, cause="rto")) == [True]
    halves[1] = packet(1, 500, 0.01, payload=500)
    assert needs(*halves, packet(2, 0, 0.1, cause="rto")) == [False]
    assert needs(packet(0, 0, 0.0), packet(1, 500, 0.1, payload=500, cause="rto")) == [False]
    assert needs(packet(0, 0, 0.0, fate="lost"), packet(1, 500, 0.1, payload=500, cause="rto")) == [True]


def test_connections_of_one_flow_are_separate() -> None:
    """The second connection has the same sequence numbers for other bytes."""
    first = [packet(0, 0, 0.0)]
    second = [packet(0, 0, 1.0, fate="lost"), packet(1, 0, 1.1, cause="rto")]
    assert needs(*first, *second) == [True]
    told = inspect([packet(0, 0, 0.0), packet(0, 0, 0.0, direction="reverse", fate="lost"),
                    packet(1, 0, 0.1, direction="reverse", cause="rto")])  # fmt: skip
    assert [(f.flow, f.retransmissions[0].needed) for f in told.flows] == [("main (reverse)", True)]


def kinds(flow: FlowWhy) -> list[tuple[str, int, list[str]]]:
    return [(e.kind, len(e.retransmissions), [event.event for event in e.events]) for e in flow.episodes]


def test_episodes_begin_with_window_events() -> None:
    told = only_flow(inspect(RECOVERY, EVENTS))
    assert kinds(told) == [("fast recovery", 2, ["recovery-entered", "recovery-left"])]
    (episode,) = told.episodes
    assert (episode.start_s, episode.end_s, episode.needed, episode.needless) == (0.1, 0.2, 1, 1)


def test_a_timeout_ends_a_recovery_and_backs_off_in_one_episode() -> None:
    packets = [*RECOVERY, packet(5, 1000, 0.5, cause="rto", fate="lost"), packet(6, 1000, 1.1, cause="rto")]
    events = [EVENTS[0], event(0.5, "rto", 7, 1, 3.5), event(1.1, "rto", 1, 1, 3.5),
              event(1.3, "recovery-left", 4, 4, 3.5), event(1.31, "undo", 4, 10, 14)]  # fmt: skip
    assert kinds(only_flow(inspect(packets, events))) == [
        ("fast recovery", 2, ["recovery-entered"]),
        ("timeout", 2, ["rto", "rto", "recovery-left", "undo"]),
    ]


def test_probes_and_marks_are_separate_episodes() -> None:
    packets = [
        packet(0, 0, 0.0, fate="lost"),
        packet(1, 0, 0.3, cause="tlp"),
        packet(2, 1000, 0.4, fate="lost"),
        packet(3, 1000, 0.9, cause="tlp"),
    ]
    events = [event(0.1, "ecn", 10, 7, 7), event(0.35, "recovery-entered", 7, 5, 5),
              event(0.36, "recovery-left", 5, 5, 5)]  # fmt: skip
    assert kinds(only_flow(inspect(packets, events))) == [
        ("ecn", 0, ["ecn"]),
        ("outside a recovery", 1, []),
        ("fast recovery", 0, ["recovery-entered", "recovery-left"]),
        ("outside a recovery", 1, []),
    ]


def test_a_repair_by_a_probe_belongs_to_the_probe() -> None:
    packets = [packet(0, 0, 0.0, fate="lost"), packet(1, 0, 0.3, cause="tlp")]
    told = only_flow(inspect(packets, [event(0.4, "tlp", 10, 7, 7)]))
    assert kinds(told) == [("outside a recovery", 1, ["tlp"])]


def test_counts_at_the_top() -> None:
    told = only_flow(inspect(RECOVERY, EVENTS))
    assert told.by_cause() == {"dup-thresh": (1, 0), "rack": (1, 1)}
    assert text.headline(told) == (
        "2 packets retransmitted: 1 needed, 1 spurious; 1 episode. Triggered by dup-thresh 1, rack 1 (1 spurious)"
    )
    undecided = inspect([packet(0, 0, 0.0, fate="in-flight"), packet(1, 0, 0.1, cause="tlp")])
    assert "1 packet retransmitted: 0 needed, 0 spurious, 1 undecided when the run ended" in text.headline(
        only_flow(undecided)
    )


def test_lines_for_people() -> None:
    episode = only_flow(inspect(RECOVERY, EVENTS)).episodes[0]
    assert text.episode_line(1, episode) == "1. fast recovery, 0.1000–0.2000 s: 2 retransmitted, 1 needed"
    assert text.event_line(episode.events[0]) == "0.1000 s  recovery-entered: cwnd 10 → 7, ssthresh 7"
    assert text.event_line(episode.events[1]) == "0.2000 s  recovery-left: cwnd 7, ssthresh 7"
    assert [text.retransmission_line(again) for again in episode.retransmissions] == [
        "0.1000 s  byte 0  dup-thresh  needed: sent 0.0000 s, dropped at link.bottleneck.forward.queue",
        "0.1100 s  byte 1,000  rack  spurious: sent 0.0100 s, arrived at 0.0600 s",
    ]


def test_document() -> None:
    document = inspect(RECOVERY, EVENTS).document()
    main = document["main"]
    assert (main["retransmissions"], main["needed"], main["needless"]) == (2, 1, 1)
    assert main["causes"]["rack"] == {"retransmissions": 1, "needless": 1}
    (episode,) = main["episodes"]
    assert (episode["kind"], episode["start_s"], episode["end_s"]) == ("fast recovery", 0.1, 0.2)
    assert episode["window_events"][0] == {
        "time_s": 0.1, "event": "recovery-entered", "cwnd_before_packets": 10.0, "cwnd_after_packets": 7.0,
        "ssthresh_packets": 7.0,
    }  # fmt: skip
    assert episode["packets"][0]["cause"] == "dup-thresh"
    assert "flow" not in episode["packets"][0]


def test_the_engines_document_keeps_its_digits() -> None:
    told = with_why('{"format":1,"cpu":0.10,"tiny":1e-7}\n', inspect(RECOVERY, EVENTS))
    assert told.startswith('{"format":1,"cpu":0.10,"tiny":1e-7,"why":{')
    assert json.loads(told)["why"]["main"]["retransmissions"] == 2


def without(table: Table, name: str) -> Table:
    return table.select(*(column for column in table.columns if column != name))


def test_a_run_without_a_record_of_causes() -> None:
    table = retransmissions([{**packet, "needed": None} for packet in RECOVERY])
    with pytest.raises(UserError, match='no column "cause" of table "retransmissions", no table "window_events"'):
        why.inspect(without(table, "cause"), None)
    with pytest.raises(UserError, match='no column "needed" of table "retransmissions"'):
        why.inspect(without(table, "needed"), Table.of_rows([], EVENT_KINDS))
    with pytest.raises(UserError, match='no column "event" of table "window_events"'):
        why.inspect(table, without(Table.of_rows([], EVENT_KINDS), "event"))


@pytest.fixture
def run_why(anabranch: Call, scenario_file: Path) -> Call:
    return partial(anabranch, "run", scenario_file, "--why", "--set", "duration='0.5 s'")


def test_the_command(run_why: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunResult, "why", lambda self: inspect(RECOVERY, EVENTS))
    done = run_why("--why=all")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("main: 2 packets retransmitted"))
    assert max(map(len, lines)) <= 80
    first = lines.index("1. fast recovery, 0.1000–0.2000 s: 2 retransmitted, 1 needed")
    assert first > start
    assert lines[first + 1].strip().startswith("0.1000 s  recovery-entered: cwnd 10 → 7")
    assert any(line.strip().startswith("0.1100 s  byte 1,000  rack  spurious") for line in lines)
    assert lines[-1].strip().startswith("0.2000 s  recovery-left: cwnd 7")


def test_the_command_summarizes(run_why: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunResult, "why", lambda self: inspect(RECOVERY, EVENTS))
    done = run_why()
    assert (done.status, done.err) == (0, "")
    told = " ".join(done.out.partition("Why packets were retransmitted")[2].split())
    for words in (
        "retransmitted 2 packets",
        "1 needed, 1 spurious",
        "triggered by dup-thresh 1, rack 1 (1 spurious)",
        "episodes 1 fast recovery",
        "cost 1.0 kB retransmitted spuriously; cwnd reduced 1 time, by 3 packets in all",
        "longest episode main, 1. fast recovery, 0.1000–0.2000 s: 2 retransmitted, 1 needed",
        "its window cwnd 10 → 7 packets",
        "it began with 0.1000 s byte 0 dup-thresh needed",
        "--why=all lists each",
    ):
        assert words in told


def test_a_reduction_without_a_loss_is_part_of_the_cost() -> None:
    spurious = [packet(0, 0, 0.0), packet(1, 0, 0.1, cause="dup-thresh")]
    told = dict(overview(inspect(spurious, EVENTS), {}))
    assert told["cost"].endswith("; 1 of the reductions followed no loss")
    lost = [packet(0, 0, 0.0, fate="lost"), packet(1, 0, 0.1, cause="dup-thresh")]
    assert dict(overview(inspect(lost, EVENTS), {}))["cost"] == "cwnd reduced 1 time, by 3 packets in all"


def test_a_summary_names_the_flows_with_most(anabranch: Call, scenario_file: Path) -> None:
    changes = ("flow.main.count=8", "link.bottleneck.forward.queue.limit='10 packets'", "duration='3 s'")
    done = anabranch("run", "--why", scenario_file, *(w for change in changes for w in ("--set", change)))
    assert "3 more flows" in " ".join(done.out.split())
    assert len(done.out.partition("Why packets")[2].splitlines()) <= 16


def test_the_value_of_why(run_why: Call) -> None:
    done = run_why("--why=al")
    assert (done.status, done.out, done.err) == (
        2, "", 'error: --why=al: --why or --why=all was expected\n  did you mean "all"?\n',
    )  # fmt: skip


def test_the_command_in_json(run_why: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunResult, "why", lambda self: inspect(RECOVERY, EVENTS))
    done = run_why("--json")
    assert (done.status, done.err) == (0, "")
    document = json.loads(done.out)
    assert document["format"] == 1
    assert document["why"]["main"]["needless"] == 1


def test_nothing_was_retransmitted(run_why: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunResult, "why", lambda self: inspect([packet(0, 0, 0.0)]))
    assert run_why().out.endswith("nothing was retransmitted\n")


@pytest.fixture
def telling(monkeypatch: pytest.MonkeyPatch) -> RunResult:
    """A real run with its causes set by hand: every retransmission by duplicates, one recovery."""
    file = Path(__file__).parent / "data" / "reordering.toml"
    scenario = Scenario.from_file(file).set("duration", "4 s").set("flow.main.cc", "reno")
    scenario = scenario.set("link.bottleneck.forward.queue.reorder.interval", 10)
    result = scenario.run(samples_ms=10, packets=True)
    again = result.plain("retransmissions")
    assert again.height > 0
    start = float(again["time_s"][0])
    events = Table.of_rows([event(start, "recovery-entered", 100, 50, 50)], EVENT_KINDS)
    plain = RunResult.plain
    given = {"window_events": events}
    monkeypatch.setattr(RunResult, "plain", lambda self, name: given[name] if name in given else plain(self, name))
    return result


def test_the_report_explains_retransmissions(telling: RunResult, tmp_path: Path) -> None:
    telling.write(tmp_path / "out")
    html = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Why packets were retransmitted" in html
    found = re.search(r'id="why">(.*?)</script>', html, re.DOTALL)
    assert found
    data = json.loads(found[1].replace("<\\/", "</"))
    assert len(data["packets"]) == len(telling.why().flows[0].retransmissions)
    assert "dup-thresh" in data["packets"][0][2]
    assert data["episodes"][0].startswith("1. fast recovery")
    assert (tmp_path / "out" / "window_events.parquet").is_file()


def test_spurious_retransmissions_match_the_receivers_count(telling: RunResult) -> None:
    """A receiver that gets bytes twice counts a spurious retransmission. No packet is lost in this run."""
    (flow,) = telling.why().flows
    needless = sum(again.needed is False for again in flow.retransmissions)
    assert needless == (telling.flows["main"]["spurious_retransmissions"] or 0) > 0


def test_a_report_without_packets_explains_nothing(
    telling: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = telling.plain("packets").take(slice(0))
    for name in ("packet_parts", "plain_parts"):
        monkeypatch.setattr(RunResult, name, lambda self, *_: iter([none]))
    telling.write(tmp_path / "out")
    assert "retransmitted</h2>" not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@needs_chromium
def test_a_click_explains_a_retransmission(telling: RunResult, tmp_path: Path) -> None:
    script = """
      const { plot } = anabranchCharts.plots.find((one) => one.chart.name === "sequence");
      const told = document.getElementById("why-told"), before = told.textContent;
      const [x, y] = JSON.parse(document.getElementById("why").textContent).packets[0];
      const click = (dx) => {
        const box = plot.over.getBoundingClientRect();
        const at = { clientX: box.left + plot.valToPos(x, "x") + dx, clientY: box.top + plot.valToPos(y, "y") };
        for (const kind of ["mousedown", "mouseup", "click"])
          plot.over.dispatchEvent(new MouseEvent(kind, { ...at, bubbles: true }));
        return told.textContent;
      };
      return [before, click(0), click(-150)];
    """
    before, on_it, beside = asked(html_report(telling), script, tmp_path)
    assert before.startswith("Click a retransmission")
    assert "dup-thresh" in on_it
    assert "1. fast recovery" in on_it
    assert "recovery-entered: cwnd 100 → 50" in on_it
    assert beside.startswith("Click a retransmission")


def test_an_episode_of_events_alone_has_its_times() -> None:
    episode = Episode("ecn", [why.WindowEvent(1.5, "ecn", 10, 7, 7)])
    assert (episode.start_s, episode.end_s, episode.needed) == (1.5, 1.5, 0)


def test_no_sack_block_is_lost_in_a_stretched_ack() -> None:
    """The queue drops one packet of four, and an ACK for many packets has room for three blocks only.

    Detects ACKs that wait for 44 segments or a millisecond, for any number of blocks (5,165 of
    18,161 retransmissions in four seconds were needed then).
    """
    scenario = Scenario.from_text("""
duration = "1 s"

[link.bottleneck]
between = ["A", "B"]
rate = "800 Mbit/s"
delay = "9 ms"
queue = { kind = "drop-tail", limit = "300 packets" }

[flow.main]
from = "A"
to = "B"
cc = "bbr"
transport = { send_buffer = "unlimited", receive_window = "64 MiB", receive_autotuning = false }
""")
    again = scenario.run(packets=True).why().flows[0].retransmissions
    assert len(again) > 1000
    assert not [item for item in again if item.needed is False]


EARLY = """
duration = "4 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "drop-tail", limit = "40 packets" }
reverse.impair = [{ kind = "bernoulli-loss", rate = 0.6 }]
[flow.main]
from = "A"
to = "B"
"""


@pytest.mark.parametrize("change", ['warmup = "2 s"', ""])
@pytest.mark.parametrize("seed", range(1, 5))
def test_the_overview_has_the_flows_counts_and_names_the_rest(change: str, seed: int) -> None:
    file = "" if change else 'workload = { kind = "file", size = "500 kB" }\n'
    run = Scenario.from_text(f"{change}\n{EARLY}{file}").run(packets=True, seed=seed)
    again = run.frame("retransmissions").filter(pl.col("direction") == "forward")
    spurious = again.filter(~pl.col("needed")).height
    flow = run.flows["main"]
    rest = again.height - (flow["retransmitted_packets"] or 0)
    rest_spurious = spurious - (flow["spurious_retransmissions"] or 0)
    assert 0 <= rest_spurious <= rest
    told = dict(overview(run.why(), run.flows)) if again.height else {}
    assert ("not measured" in told) == (rest > 0)
    if rest:
        assert f"{rest} packet" in told["not measured"]
        assert f", {rest_spurious} spurious:" in told["not measured"]
