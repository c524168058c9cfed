"""`anabranch diagnose` of qlogs: the same limits as of the capture of the same run, and bad input."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from anabranch import Scenario, UserError, diagnose
from anabranch.diagnosis.diagnosis import Diagnosis, shares

from . import quic_log, two_points
from .command import Call

SCENARIO = """
duration = "6 s"
[link.lan]
between = ["A", "M"]
rate = "1 Gbit/s"
delay = "0.1 ms"
[link.wan]
between = ["M", "N"]
rate = "{rate}"
delay = "{delay}"
queue = {{ kind = "drop-tail", limit = "{queue}" }}
{impair}
[link.end]
between = ["N", "B"]
rate = "1 Gbit/s"
delay = "0.1 ms"
[flow.main]
from = "A"
to = "B"
{flow}
"""

RUNS = {
    "random loss": {"impair": 'forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]'},
    "queue": {},
    "bursts": {"impair": 'forward.impair = [{ kind = "gilbert-elliott", loss_rate = 0.02, mean_burst = 3 }]'},
    "reordering": {"impair": 'forward.impair = [{ kind = "jitter", mean = "1 ms", reorder = true }]'},
    "window": {"rate": "50 Mbit/s", "flow": 'transport = { receive_window = "64 KiB" }'},
    "application": {"flow": 'workload = { kind = "paced", rate = "2 Mbit/s" }'},
    "long path": {"rate": "30 Mbit/s", "delay": "60 ms", "queue": "0.5 bdp"},
}
"""Causes, and the keys of the scenario that make them."""

SAME = 0.97
"""Least share of the time for which the limits of log and capture agree: the bar of limits in simulated captures."""


class Both:
    """The diagnosis of a capture near the sender and of the log of a QUIC sender that sent the same."""

    def __init__(self, folder: Path, name: str) -> None:
        keys = {"rate": "10 Mbit/s", "delay": "20 ms", "queue": "1 bdp", "impair": "", "flow": "", **RUNS[name]}
        scenario = Scenario.from_text(SCENARIO.format(**keys), file="log.toml")
        run = scenario.run(captures=["lan", "end"], samples_ms=1)
        self.near, self.far = (two_points.packets(run.pcapng(link)) for link in ("lan", "end"))
        samples = run.table("samples")
        columns = (samples[one].to_list() for one in ("time_s", "cwnd_packets", "srtt_ms"))
        self.windows = [(at, cwnd, srtt or 0.0) for at, cwnd, srtt in zip(*columns, strict=True)]
        self.events = list(quic_log.events(self.near, self.far, windows=self.windows))
        self.capture = folder / "near.pcapng"
        self.capture.write_bytes(run.pcapng("lan"))
        self.log = folder / "near.sqlog"
        self.log.write_bytes(quic_log.sequential(self.events))

    def needed(self) -> tuple[int, int]:
        """Retransmissions, and those of which no earlier copy arrived."""
        arrived = {quic_log.key_of(one) for one in self.far}
        sender = self.near[0].source
        copies: dict[int, list[bytes]] = {}
        every = needed = 0
        for one in self.near:
            if one.source != sender or not one.payload:
                continue
            if one.seq in copies:
                every += 1
                needed += not any(key in arrived for key in copies[one.seq])
            copies.setdefault(one.seq, []).append(quic_log.key_of(one))
        return every, needed


@pytest.fixture(scope="module")
def loss(tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(tmp_path_factory.mktemp("log"), "random loss")


@pytest.mark.parametrize("name", RUNS)
def test_a_log_has_the_limits_of_the_capture_of_the_same_run(name: str, tmp_path: Path) -> None:
    both = Both(tmp_path, name)
    (capture,) = diagnose(both.capture).content["connections"]
    (log,) = diagnose(both.log).content["connections"]
    one, other = (each["directions"]["a_to_b"] for each in (capture, log))
    ours, theirs = shares(capture, one), shares(log, other)
    assert sum(min(ours[limit], theirs[limit]) for limit in ours) >= SAME, (ours, theirs)
    # Packet numbers decide need exactly; the capture's evidence may be one off.
    counts = other["retransmission_counts"]
    assert (counts["all"], counts["needed"]) == both.needed()
    assert other["bytes"] == one["bytes"]
    path, known = log["path"], capture["path"]
    assert path["rate_mbit_s"]["value"] == pytest.approx(known["rate_mbit_s"]["value"], rel=0.02)
    assert path["base_rtt_ms"]["value"] == pytest.approx(known["base_rtt_ms"]["value"], rel=0.01)
    assert log["transport"] == "quic"
    assert log["quic"] == {"vantage": "client", "version": None, "retry": False, "frames": True}


def test_all_formats_give_the_same_diagnosis(loss: Both, tmp_path: Path) -> None:
    first = diagnose(loss.log)
    urn = "urn:ietf:params:qlog:file:sequential"
    forms = {
        "a.sqlog": quic_log.sequential(loss.events, version="0.4"),
        "b.sqlog": quic_log.sequential(loss.events, version=urn),
        "c.qlog": quic_log.contained(loss.events),
        "d.qlog": quic_log.contained(loss.events, late=True),
        "e.qlog.gz": gzip.compress(quic_log.contained(loss.events)),
        "f.bin": quic_log.sequential(loss.events),
    }
    for name, content in forms.items():
        file = tmp_path / name
        file.write_bytes(content)
        again = diagnose(file)
        assert again["connections"] == first["connections"], name
        assert again["source"] == "qlog"
    # Times are rounded to microseconds.
    (tmp_path / "g.qlog").write_bytes(quic_log.columns(loss.events))
    (rows,) = diagnose(tmp_path / "g.qlog").content["connections"]
    counts = first.content["connections"][0]["directions"]["a_to_b"]["retransmission_counts"]
    assert rows["directions"]["a_to_b"]["retransmission_counts"] == counts


def test_the_receivers_log_decides_retransmissions_but_not_what_it_cannot_see(loss: Both, tmp_path: Path) -> None:
    file = tmp_path / "far.sqlog"
    events = quic_log.events(loss.near, loss.far, of_receiver=True)
    file.write_bytes(quic_log.sequential(events, vantage="server"))
    (found,) = diagnose(file).content["connections"]
    way = found["directions"]["a_to_b"]
    assert found["capture_point"] == "near-b"
    assert {one["lost"] for one in way["retransmissions"]} == {"before"}
    assert way["limits_s"]["congestion-window"] == 0
    assert way["limits_s"]["bottleneck"] == 0
    assert found["next"] == "diagnose the qlog of client"


def test_the_screen_is_in_words_of_quic(anabranch: Call, loss: Both) -> None:
    done = anabranch("diagnose", loss.log, "--connection", "1")
    assert done.status == 0, done.err
    assert "client sends" in done.out
    assert "qlog of the client, handshake seen" in done.out
    assert "packets with data" in done.out
    assert "event " in done.out
    for word in ("SYN", "segment", "capture", "frame "):
        assert word not in done.out, word
    done = anabranch("diagnose", loss.log)
    assert "packets, 1 QUIC connection" in done.out


def test_a_cut_off_log_is_diagnosed_up_to_there(anabranch: Call, loss: Both, tmp_path: Path) -> None:
    content = loss.log.read_bytes()
    file = tmp_path / "cut.sqlog"
    file.write_bytes(content[: len(content) // 2])
    done = anabranch("diagnose", file)
    assert done.status == 0, done.err
    assert "cut off within its last record" in done.out


BAD = {
    "another kind of JSON": (b'{"a": 1}', "it is JSON without a trace of qlog; expected an object with `traces`"),
    "another version": (b'{"qlog_version": "7", "traces": []}', 'its qlog version is "7"; expected one of draft-00'),
    "no packets": (b'{"qlog_version": "0.3", "traces": [{"events": []}]}', "its qlog has no packets of QUIC"),
    "the network": (
        b'{"qlog_version": "0.3", "traces": [{"vantage_point": {"type": "network"}, "events": []}]}',
        "its vantage point is the network",
    ),
    "two points": (
        b'{"qlog_version": "0.3", "traces": [{"vantage_point": {"type": "client"}, "events": []}, '
        b'{"vantage_point": {"type": "server"}, "events": []}]}',
        "its traces were recorded at different points (client and server)",
    ),
    "cut off in its header": (b'{"qlog_version": "0.3", "tra', "the header of the qlog cannot be read (line 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_one_message(name: str, anabranch: Call, tmp_path: Path) -> None:
    content, message = BAD[name]
    file = tmp_path / "bad.qlog"
    file.write_bytes(content)
    done = anabranch("diagnose", file)
    assert done.status == 2
    assert message in done.err
    assert "expected" in done.err
    assert done.out == ""


def test_our_own_qlog_of_a_run_names_its_events(anabranch: Call, tmp_path: Path) -> None:
    file = tmp_path / "run.sqlog"
    header = {
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "trace": {"vantage_point": {"type": "network"}, "event_schemas": ["urn:anabranch:qlog:events:tcp"]},
    }
    file.write_text(f"\x1e{json.dumps(header)}\n")
    done = anabranch("diagnose", file)
    assert done.status == 2
    assert "network" in done.err


def test_packet_comments_need_a_capture(anabranch: Call, loss: Both, tmp_path: Path) -> None:
    target = tmp_path / "annotated.pcapng"
    done = anabranch("diagnose", loss.log, "--annotate", target)
    assert done.status == 2
    assert "packet comments are for captures" in done.err
    assert not target.exists()


def test_the_report_and_the_fitted_scenario_are_written(anabranch: Call, loss: Both, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = anabranch("diagnose", loss.log, "--out", out, "--replay")
    assert done.status == 0, done.err
    assert "QUIC connection" in (out / "report.html").read_text()
    assert (out / "scenario.toml").exists()
    assert (out / "connections.parquet").exists()


def test_choices_by_address_do_not_fit_ends_without_one(loss: Both, anabranch: Call) -> None:
    for option, value in (("--host", "192.0.2.1"), ("--port", "443")):
        done = anabranch("diagnose", loss.log, option, value)
        assert done.status == 2
        assert "no such connection" in done.err
    assert anabranch("diagnose", loss.log, "--by", "server").status == 0


def test_figures_follow_their_definitions(loss: Both) -> None:
    (found,) = diagnose(loss.capture).content["connections"]
    way = found["directions"]["a_to_b"]
    figures = way["responsiveness"]
    idle, loaded, goodput = figures["idle_ms"], figures["loaded_ms"], way["goodput_mbit_s"]
    rate = found["path"]["rate_mbit_s"]["value"]
    assert idle is not None
    assert loaded is not None
    assert goodput is not None
    assert rate is not None
    assert idle == way["rtt_ms"]["min"]
    assert figures["idle_rpm"] == pytest.approx(60_000 / idle)
    assert figures["loaded_rpm"] == pytest.approx(60_000 / loaded)
    assert figures["loaded_samples"] > 0
    assert loaded > idle
    assert found["rate_used"] == pytest.approx(goodput / rate)


def test_jains_index_is_of_the_time_together(tmp_path: Path) -> None:
    text = SCENARIO.format(rate="10 Mbit/s", delay="20 ms", queue="1 bdp", impair="", flow="count = 3")
    run = Scenario.from_text(text, file="three.toml").run(captures=["lan"])
    (tmp_path / "three.pcapng").write_bytes(run.pcapng("lan"))
    (one,) = diagnose(tmp_path / "three.pcapng").content["fairness"]
    assert one["connections"] == [1, 2, 3]
    rates = one["goodput_mbit_s"]
    assert one["jain"] == pytest.approx(sum(rates) ** 2 / (3 * sum(rate**2 for rate in rates)))
    assert 1 / 3 <= one["jain"] <= 1
    assert sum(rates) == pytest.approx(9.5, rel=0.1)


def test_a_diagnosis_has_no_table_of_quic(loss: Both) -> None:
    found = diagnose(loss.log)
    assert isinstance(found, Diagnosis)
    assert found.table("connections")["transport"].to_list() == ["quic"]
    with pytest.raises(UserError):
        found.table("quic")
