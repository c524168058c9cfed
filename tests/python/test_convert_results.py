"""Conversion of other programs' results to tables and summaries, and of runs to flent's files and CSV."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.convert import Options, convert_bytes
from anabranch.convert.formats import readable, writable
from anabranch.convert.summary_json import FLOW_KEYS
from anabranch.errors import UserError

from .command import Call

law = settings(deadline=None, max_examples=50)
"""No deadline: a time limit on a busy machine is meaningless."""


def stream(socket: int, second: int, **more: Any) -> dict[str, Any]:
    return {
        "socket": socket, "start": second, "end": second + 1, "seconds": 1, "bytes": 1_250_000,
        "bits_per_second": 10_000_000, "retransmits": 2, "snd_cwnd": 14480, "rtt": 20000, "omitted": False,
        "sender": True, **more,
    }  # fmt: skip


def iperf3(sockets: tuple[int, ...] = (5,), seconds: int = 3, **more: Any) -> dict[str, Any]:
    ends = [
        {
            "sender": {"socket": s, "bytes": 1_300_000 * seconds, "bits_per_second": 10.4e6, "retransmits": 2 * seconds,
                       "mean_rtt": 21000, "min_rtt": 19000},
            "receiver": {"socket": s, "bytes": 1_250_000 * seconds, "bits_per_second": 10e6},
        }
        for s in sockets
    ]  # fmt: skip
    return {
        "start": {"tcp_mss": 1448, "test_start": {"protocol": "TCP"}, "cookie": "x"},
        "intervals": [{"streams": [stream(s, second) for s in sockets]} for second in range(seconds)],
        "end": {"streams": ends},
        **more,
    }


def table(text: str, source: str | None, name: str = "given") -> pl.DataFrame:
    converted = convert_bytes(name, text.encode(), Path(), Options(source=source, target="csv"))
    return pl.read_csv(io.BytesIO(converted.content))


def summary(text: str, source: str | None, name: str = "given") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        convert_bytes(name, text.encode(), Path(), Options(source=source, target="summary")).content
    )
    return found


def test_iperf3_becomes_samples_with_our_names() -> None:
    frame = table(json.dumps(iperf3()), None)
    assert frame["time_s"].to_list() == [1, 2, 3]
    assert frame["delivered_bytes"].to_list() == [1_250_000, 2_500_000, 3_750_000]
    assert frame["retransmitted_packets"].to_list() == [2, 4, 6]
    assert set(frame["cwnd_packets"]) == {10.0}
    assert set(frame["srtt_ms"]) == {20.0}


def test_iperf3_has_a_summary_with_our_names() -> None:
    found = summary(json.dumps(iperf3()), None)
    (flow,) = found["flows"].values()
    assert set(FLOW_KEYS) == set(flow)
    assert (flow["goodput_mbit_s"], flow["mean_srtt_ms"], flow["min_rtt_ms"], flow["timeouts"]) == (10, 21, 19, None)
    assert flow["mean_cwnd_packets"] == 10


def test_streams_of_iperf3_are_named_as_copies_of_a_flow() -> None:
    found = summary(json.dumps(iperf3((5, 7))), None)
    assert list(found["flows"]) == ["main/0", "main/1"]
    assert found["fairness"]["jain_index"] == 1


def test_intervals_that_iperf3_omitted_are_noted(anabranch: Call, tmp_path: Path) -> None:
    document = iperf3()
    document["intervals"].insert(0, {"streams": [stream(5, 0, omitted=True)]})
    (tmp_path / "x.json").write_text(json.dumps(document))
    assert anabranch("convert", tmp_path / "x.json", "--to", "csv", "--strict").status == 2
    done = anabranch("convert", tmp_path / "x.json", "--to", "csv")
    assert (done.status, "omitted" in done.err) == (0, True)


FLOW_MONITOR = """<?xml version="1.0" ?>
<FlowMonitor>
  <FlowStats>
    <Flow flowId="1" timeFirstTxPacket="+1.0e+09ns" timeFirstRxPacket="+1.02e+09ns" timeLastTxPacket="+1.0e+10ns"
          timeLastRxPacket="+1.1e+10ns" delaySum="+2e+09ns" jitterSum="+9.9e+07ns" lastDelay="+2e+07ns"
          txBytes="130000" rxBytes="125000" txPackets="104" rxPackets="100" lostPackets="4" timesForwarded="0"/>
  </FlowStats>
  <Ipv4FlowClassifier>
    <Flow flowId="1" sourceAddress="10.0.0.1" destinationAddress="10.0.0.2" protocol="6" sourcePort="49153"
          destinationPort="80"/>
  </Ipv4FlowClassifier>
</FlowMonitor>
"""


def test_flow_monitor_becomes_a_row_per_flow() -> None:
    (row,) = table(FLOW_MONITOR, None).to_dicts()
    assert (row["source"], row["destination"], row["protocol"]) == ("10.0.0.1:49153", "10.0.0.2:80", "tcp")
    assert row["throughput_mbit_s"] == pytest.approx(0.1)
    assert (row["mean_one_way_delay_ms"], row["mean_jitter_ms"]) == (pytest.approx(20), pytest.approx(1))
    assert (row["sent_packets"], row["lost_packets"]) == (104, 4)
    (flow,) = summary(FLOW_MONITOR, None)["flows"].values()
    assert (flow["sent_packets"], flow["goodput_mbit_s"]) == (104, None)


def flent(**more: Any) -> dict[str, Any]:
    return {
        "metadata": {"TITLE": "a test", "NAME": "tcp_nup"},
        "version": 4,
        "x_values": [0.2, 0.4, 0.6],
        "results": {
            "TCP upload::1": [1.0, 2.0, None],
            "TCP upload::1::tcp_rtt": [10.0, 20.0, 30.0],
            "TCP upload::1::tcp_cwnd": [10, 20, 30],
            "TCP upload sum": [1.0, 2.0, None],
            "Ping (ms) ICMP": [9.0, 11.0, 12.0],
        },
        "raw_values": {},
        **more,
    }


def test_flent_becomes_samples_with_our_names() -> None:
    frame = table(json.dumps(flent()), None)
    upload = frame.filter(pl.col("flow") == "TCP upload::1")
    assert upload["goodput_mbit_s"].to_list() == [1.0, 2.0, None]
    assert upload["srtt_ms"].to_list() == [10, 20, 30]
    assert frame.filter(pl.col("flow") == "Ping (ms) ICMP")["rtt_ms"].to_list() == [9, 11, 12]
    (flow,) = summary(json.dumps(flent()), None)["flows"].values()
    assert (flow["goodput_mbit_s"], flow["min_rtt_ms"]) == (1.5, 10)


def test_an_unknown_series_of_flent_is_noted() -> None:
    document = flent()
    document["results"]["cpu_stats::load"] = [1, 2, 3]
    converted = convert_bytes("x.flent", json.dumps(document).encode(), Path(), Options(target="csv"))
    assert converted.notes == ("the series 'cpu_stats::load'",)


SCENARIO = """duration = "4 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "20 packets" }
[flow.main]
from = "A"
to = "B"
[flow.other]
from = "A"
to = "B"
start = "1 s"
"""


def test_a_run_through_flent_keeps_its_bytes(anabranch: Call, tmp_path: Path) -> None:
    scenario, out = tmp_path / "s.toml", tmp_path / "s.flent.gz"
    scenario.write_text(SCENARIO)
    done = anabranch("run", scenario, "--json")
    flows = json.loads(done.out)["flows"]
    assert anabranch("convert", scenario, "--out", out, "--strict").status == 0
    document = json.loads(gzip.decompress(out.read_bytes()))
    assert document["version"] == 3
    for number, name in enumerate(("main", "other"), 1):
        rates = [rate or 0 for rate in document["results"][f"TCP upload::{number}"]]
        assert sum(rates) * 0.2e6 / 8 == pytest.approx(flows[name]["delivered_bytes"], rel=0.01)
    back = anabranch("convert", out, "--to", "summary")
    assert back.status == 0
    goodput = json.loads(back.out)["flows"]["TCP upload::1"]["goodput_mbit_s"]
    assert goodput == pytest.approx(flows["main"]["goodput_mbit_s"], rel=0.02)


def test_the_directory_of_a_run_converts_like_its_scenario(anabranch: Call, tmp_path: Path) -> None:
    scenario, results = tmp_path / "s.toml", tmp_path / "results"
    scenario.write_text(SCENARIO)
    assert anabranch("run", scenario, "--out", results).status == 0
    for target in ("flent", "csv", "netem"):
        assert anabranch("convert", results, "--to", target).out == anabranch("convert", scenario, "--to", target).out
    (tmp_path / "run.json").write_text(anabranch("run", scenario, "--json").out)
    assert (
        anabranch("convert", tmp_path / "run.json", "--to", "netem").out
        == anabranch("convert", scenario, "--to", "netem").out
    )
    done = anabranch("convert", tmp_path / "run.json", "--to", "csv")
    assert (done.status, "summary without a table of samples" in done.err) == (2, True)
    one = anabranch("convert", results, "--to", "csv", "--flow", "other")
    assert set(pl.read_csv(io.StringIO(one.out))["flow"]) == {"other"}


@pytest.mark.parametrize(
    ("source", "text", "message"),
    [
        ("iperf3", '{"start": {}', "given:1:13: not valid JSON: expecting ',' delimiter"),
        ("iperf3", '{"error": "unable to connect"}', "given:1:11: error: iperf3 failed: unable to connect"),
        ("iperf3", '{"start": {},\n "interval": []}', 'given:1:1: "intervals" was expected and is missing'),
        ("iperf3", '{"start": {},\n "intervals": [{"streams": [{"socket": "x"}]}]}',
         "given:2:40: intervals[0].streams[0].socket: a number was expected"),
        ("flowmonitor", "<FlowMonitor>\n<FlowStats></Flow>", "given:2:14: not valid XML: mismatched tag"),
        ("flowmonitor", "<a/>", "given:1:1: the root is <a>; <FlowMonitor> was expected"),
        ("flowmonitor", '<!DOCTYPE x [<!ENTITY a "b">]><FlowMonitor/>', "given:1:"),
        ("flowmonitor", "<FlowMonitor>\n <FlowStats>\n  <Flow flowId='1'/></FlowStats></FlowMonitor>",
         'given:3:3: a flow without "timeFirstTxPacket"'),
        ("flent", '{"x_values": [1], "results": {"TCP upload": [1, 2]}}',
         "given:1:45: results.TCP upload: 2 values; as many as x_values, 1, were expected"),
        ("flent", '{"x_values": [1], "results": {"TCP upload": ["a"]}}',
         "given:1:46: results.TCP upload[0]: a number was expected"),
        ("flent", '{"version": 9}', "given:1:13: version: version 9 of flent's files; at most 4 was expected"),
    ],
)  # fmt: skip
def test_bad_results_have_a_location(source: str, text: str, message: str) -> None:
    with pytest.raises(UserError, match="given") as caught:
        table(text, source)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{json}", "--to", "netem"], "describes no path, which netem needs"),
        (["{json}", "--to", "flent"], "has no packets of a run of ours, which flent needs"),
        (["{json}", "--to", "cvs"], '--to cvs: convert writes no format "cvs"\n  did you mean "csv"?'),
        (["{json}", "--from", "iperf"], '--from iperf: convert reads no format "iperf"\n  did you mean "iperf3"?'),
        (["{scenario}"], "has the format `scenario`, and nothing names the format of the output\n  --to FORMAT: netem"),
        (["{scenario}", "--to", "scenario"], "is a scenario already"),
        (["{scenario}", "--to", "netem", "--link", "pth"], 'the scenario has no link "pth"\n  did you mean "path"?'),
        (["{scenario}", "--to", "csv", "--flow", "man"], 'the run has no flow "man"\n  did you mean "main"?'),
        (["{scenario}", "--to", "mahimahi"], "mahimahi needs 2 more files beside it"),
        (["{unknown}"], "its format is not recognised"),
        (["{directory}", "--to", "csv"], "holds no results of a run"),
        (["{directory}"], "holds no results of a run"),
        (["{missing}"], "no such file"),
    ],
)
def test_an_impossible_conversion_is_an_error(
    anabranch: Call, tmp_path: Path, arguments: list[str], message: str
) -> None:
    files = {"json": json.dumps(iperf3()), "scenario": SCENARIO, "unknown": "hello"}
    for name, text in files.items():
        (tmp_path / (f"{name}.toml" if name == "scenario" else name)).write_text(text)
    (tmp_path / "directory").mkdir()
    places = {
        name: tmp_path / (f"{name}.toml" if name == "scenario" else name) for name in (*files, "directory", "missing")
    }
    done = anabranch("convert", *(argument.format(**places) for argument in arguments))
    assert (done.status, done.out) == (2, "")
    assert message in done.err


def test_a_run_becomes_its_scenario(anabranch: Call, tmp_path: Path) -> None:
    scenario, run, again = (tmp_path / name for name in ("s.toml", "run.json", "again.toml"))
    scenario.write_text(SCENARIO)
    first = anabranch("run", scenario, "--set", "flow.main.cc=reno", "--json").out
    run.write_text(first)
    assert anabranch("convert", run, "--out", again, "--strict").status == 0
    second = anabranch("run", again, "--json").out
    assert json.loads(first)["digest"] == json.loads(second)["digest"]


def test_help_names_every_format(anabranch: Call) -> None:
    words = " ".join(anabranch("convert", "--help").out.split())
    assert f"Read: {', '.join(f.name for f in readable())}." in words
    assert f"Written: {', '.join(f.name for f in writable())}." in words


def test_a_file_with_other_content_is_unchanged(anabranch: Call, tmp_path: Path) -> None:
    scenario, out = tmp_path / "s.toml", tmp_path / "s.sh"
    scenario.write_text(SCENARIO)
    out.write_text("mine")
    assert anabranch("convert", scenario, "--out", out).status == 2
    assert out.read_text() == "mine"
    assert anabranch("convert", scenario, "--out", out, "--force").status == 0
    assert anabranch("convert", scenario, "--out", out).status == 0
    assert anabranch("convert", scenario, "--to", "csv", "--out", scenario, "--force").status == 2


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["start", "end", "intervals", "streams", "socket", "sender", "bytes", "x_values", "results",
                         "version", "TCP upload", "error"]), inner, max_size=5),
    max_leaves=15,
)  # fmt: skip


@law
@given(st.sampled_from(["iperf3", "flent", "flowmonitor"]), st.text() | json_values.map(json.dumps))
def test_any_text_gives_a_table_or_a_location(source: str, text: str) -> None:
    try:
        table(text, source)
    except UserError as error:
        assert None not in (error.line, error.column)  # noqa: PT017 - either outcome is right


@law
@given(st.binary(max_size=80))
def test_any_bytes_after_gzip_magic_give_a_location(content: bytes) -> None:
    with pytest.raises(UserError, match=r"x\.flent:1:1"):
        convert_bytes("x.flent", b"\x1f\x8b" + content, Path(), Options(target="csv"))


attributes = st.dictionaries(
    st.sampled_from(["flowId", "timeFirstTxPacket", "timeLastRxPacket", "delaySum", "jitterSum", "txBytes", "rxBytes",
                     "txPackets", "rxPackets", "lostPackets"]),
    st.sampled_from(["1", "+1.0ns", "+0.0ns", "x", "1e999ns", "-5ns", "99999999999"]),
)  # fmt: skip


@law
@given(st.lists(attributes, max_size=3))
def test_any_flow_monitor_gives_a_table_or_a_location(flows: list[dict[str, str]]) -> None:
    written = [" ".join(f'{name}="{value}"' for name, value in flow.items()) for flow in flows]
    elements = "".join(f"<Flow {words}/>\n" for words in written)
    try:
        table(f"<FlowMonitor><FlowStats>{elements}</FlowStats></FlowMonitor>", "flowmonitor")
    except UserError as error:
        assert None not in (error.line, error.column)  # noqa: PT017 - either outcome is right


def records(content: str) -> list[dict[str, Any]]:
    # JSON text sequences (RFC 7464): a record separator, a document, a line end.
    *lines, rest = content.split("\n")
    assert not rest
    assert all(line.startswith("\x1e") for line in lines)
    return [json.loads(line[1:]) for line in lines]


def test_qlog_has_each_packet_and_its_events_in_order(anabranch: Call, tmp_path: Path) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(SCENARIO)
    flows = json.loads(anabranch("run", scenario, "--json").out)["flows"]
    done = anabranch("convert", scenario, "--to", "qlog", "--strict")
    assert done.status == 0
    header, *events = records(done.out)
    assert header["file_schema"] == "urn:ietf:params:qlog:file:sequential"
    assert header["serialization_format"] == "application/qlog+json-seq"
    times = [event["time"] for event in events]
    assert times == sorted(times)
    for flow, told in flows.items():
        of_flow = [event for event in events if event["group_id"] == flow]
        sent = [event["data"] for event in of_flow if event["name"] == "tcp:packet_sent"]
        assert len(sent) == told["sent_packets"]
        assert sum(data.get("is_retransmission", False) for data in sent) == told["retransmitted_packets"]
        received = [event["data"] for event in of_flow if event["name"] == "tcp:packet_received"]
        assert len(received) <= len(sent)
        states = [event["data"]["new"] for event in of_flow if event["name"] == "tcp:congestion_state_updated"]
        assert states.count("recovery") >= told["fast_recoveries"]


def test_qlog_repeats_no_unchanged_metric(anabranch: Call, tmp_path: Path) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(SCENARIO.split("[flow.other]", maxsplit=1)[0])
    _, *events = records(anabranch("convert", scenario, "--to", "qlog").out)
    metrics = [event["data"] for event in events if event["name"] == "tcp:recovery_metrics_updated"]
    assert metrics
    known: dict[str, Any] = {}
    for data in metrics:
        assert data
        assert all(known.get(name) != value for name, value in data.items())
        known |= data
    assert {"smoothed_rtt", "congestion_window", "bytes_in_flight"} <= set(known)
