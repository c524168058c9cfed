"""The path of a capture as a scenario, its replay and advice. Accuracy is measured in validation/diagnose/fit.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario, UserError, diagnose
from anabranch.diagnosis.document import Connection
from anabranch.diagnosis.simulated import Advice
from anabranch.fitted import words
from anabranch.fitted.advice import advised, verdict
from anabranch.fitted.remedies import case, relevant
from anabranch.fitted.replay import replayed
from anabranch.fitted.scenario import fitted
from anabranch.text.shown import html

from .command import Call

PATH = """
duration = "{duration}"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = {{ kind = "drop-tail", limit = "60 packets" }}
{link}
[link.rest]
between = ["B", "C"]
delay = "3 ms"
[flow.main]
from = "A"
to = "C"
{flow}
"""
BASE_MS = 46.0
ESTIMATES = ("base_rtt_ms", "rate_mbit_s", "buffer_bytes", "buffer_ms", "jitter_ms")


def captured(folder: Path, *, flow: str = "", link: str = "", at: str = "path", duration: str = "12 s") -> Path:
    """A capture of a simulated run."""
    file = folder / "made.pcapng"
    result = Scenario.from_text(PATH.format(flow=flow, link=link, duration=duration), file="made.toml").run(
        captures=[at]
    )
    file.write_bytes(result.pcapng(at))
    return file


def connection(file: Path) -> Connection:
    return diagnose(file).content["connections"][0]


@pytest.mark.parametrize("at", ["path", "rest"])
def test_rate_round_trip_and_buffer_are_found_on_both_sides(tmp_path: Path, at: str) -> None:
    path: Any = connection(captured(tmp_path, at=at))["path"]
    assert path["rate_mbit_s"]["value"] == pytest.approx(10, rel=0.02)
    assert path["base_rtt_ms"]["value"] == pytest.approx(BASE_MS, rel=0.01)
    assert path["buffer_bytes"]["value"] == pytest.approx(60 * 1500, rel=0.1)
    assert path["loss"]["kind"] == "none"
    for name in ESTIMATES:
        value = path[name]
        assert value["seen"] in ("measured", "at-least", "at-most", "not-seen")
        if value["seen"] == "measured":
            assert value["low"] <= value["value"] <= value["high"]


def test_limits_not_reached_are_bounds(tmp_path: Path) -> None:
    file = captured(tmp_path, flow='transport = { receive_window = "20 kB" }')
    path = connection(file)["path"]
    assert path["buffer_bytes"]["seen"] in ("at-least", "not-seen")
    made = fitted(connection(file), str(file))
    assert any(one.startswith("the buffer was never full") for one in made.assumptions)
    assert "# Assumed: the buffer was never full" in made.text


def test_random_loss_is_distinguished_from_a_full_buffer(tmp_path: Path) -> None:
    link = 'forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]'
    loss: Any = connection(captured(tmp_path, link=link, duration="30 s"))["path"]["loss"]
    assert loss["kind"] == "bernoulli"
    assert loss["rate"]["low"] <= 0.01 <= loss["rate"]["high"]


def test_a_changing_rate_becomes_changes_during_the_run(tmp_path: Path) -> None:
    at = '[[at]]\ntime = "8 s"\nset = { "link.path.rate" = "4 Mbit/s" }'
    file = tmp_path / "made.pcapng"
    text = PATH.format(flow="", link="", duration="16 s") + at
    file.write_bytes(Scenario.from_text(text, file="made.toml").run(captures=["path"]).pcapng("path"))
    rates = [rate for _, rate in connection(file)["path"]["rate_trace"]]
    assert rates[0] == pytest.approx(10, rel=0.05)
    assert rates[-1] == pytest.approx(4, rel=0.05)
    changes = fitted(connection(file), str(file)).document["at"]
    assert changes[-1]["set"]["link.path.rate"].endswith(" Mbit/s")


@pytest.mark.parametrize(
    ("flow", "at"),
    [
        ("", "path"),
        ("", "rest"),
        ('cc = "reno"\nworkload = { kind = "file", size = "3 MB" }', "path"),
        ('workload = { kind = "paced", rate = "1 Mbit/s" }', "path"),
        (
            'workload = { kind = "request-response", request = "300 bytes", response = "40 kB", think = "20 ms" }',
            "path",
        ),
        ("transport = { timestamps = false, sack = false }", "path"),
    ],
    ids=["bulk", "receiver", "file", "paced", "requests", "bare"],
)
def test_a_replay_resembles_the_capture(tmp_path: Path, flow: str, at: str) -> None:
    found = connection(captured(tmp_path, flow=flow, at=at))
    run = replayed(found, fitted(found, "made.pcapng"))
    replay = run.rows
    assert replay["goodput_mbit_s"]["simulation"] == pytest.approx(replay["goodput_mbit_s"]["capture"], rel=0.1)
    assert replay["rtt_min_ms"]["simulation"] == pytest.approx(replay["rtt_min_ms"]["capture"], rel=0.05)
    assert len(run.capture) > 1000
    assert sum(run.goodput["mbit_s"]) > 0


def test_options_of_the_handshake_are_preserved(tmp_path: Path) -> None:
    file = captured(tmp_path, flow='transport = { timestamps = false, sack = false, mss = "1200 bytes" }')
    transport = fitted(connection(file), str(file)).document["flow"]["main"]["transport"]
    assert (transport["timestamps"], transport["sack"], transport["mss"]) == (False, False, "1200 bytes")


def test_a_larger_window_remedies_a_small_one(tmp_path: Path) -> None:
    found = connection(captured(tmp_path, flow='transport = { receive_window = "20 kB" }'))
    rows = advised(found, fitted(found, "made.pcapng"))
    assert (rows[0]["remedy"], rows[0]["helps"]) == ("receive-window", True)
    assert rows[0]["gain"]["mean"] > 1
    assert rows[0]["effort"] == "receiver"


def test_a_slow_application_has_no_remedy(tmp_path: Path) -> None:
    found = connection(captured(tmp_path, flow='workload = { kind = "paced", rate = "1 Mbit/s" }'))
    rows = advised(found, fitted(found, "made.pcapng"))
    assert [row["remedy"] for row in rows] == ["nothing"]
    assert verdict(found, rows) == "Nothing helps: the application was the limit, not the path or TCP."


NONE: Any = {"path": {"rate_mbit_s": {"seen": "measured"}}}
"""A connection that filled its path."""


def remedied(**changes: tuple[float, float, float]) -> Advice:
    """A remedy that helps; each change is its mean and the ends of its interval."""
    values = {"gain": (0.53, 0.4, 0.6), "rtt_change": (0.0, -0.1, 0.1), "cost_to_others": (0.0, -0.1, 0.1), **changes}
    made: Any = {
        "title": "BBR",
        "effort": "sender",
        "helps": True,
        "goodput_mbit_s": {"mean": 7.0},
        "rtt_ms": {"mean": 60.0},
        **{name: dict(zip(("mean", "low", "high"), value, strict=True)) for name, value in values.items()},
    }
    remedy: Advice = made
    return remedy


@pytest.mark.parametrize(
    ("cost", "told"),
    [
        ((0.44, 0.4, 0.5), "takes 44 % from the others"),
        ((-0.12, -0.2, -0.1), "gives the others 12 % more"),
        ((0.3, -0.1, 0.7), "may take 30 % from the others"),
        ((0.01, -0.1, 0.1), "takes nothing measurable from the others"),
        ((0.001, 0.0005, 0.002), "takes nothing measurable from the others"),
    ],
)
def test_the_headline_of_advice_includes_the_cost_to_others(cost: tuple[float, float, float], told: str) -> None:
    headline = verdict(NONE, [remedied(cost_to_others=cost)])
    assert headline == f"BBR: +53 % goodput, and {told} (to be changed at the sender)."


def test_the_headline_of_advice_includes_a_longer_round_trip() -> None:
    headline = verdict(NONE, [remedied(rtt_change=(0.26, 0.2, 0.3))])
    assert headline.startswith("BBR: +53 % goodput, round trip +26 %, and takes nothing")


def test_the_headline_names_an_assumed_rate_of_the_path() -> None:
    unseen: Any = {"path": {"rate_mbit_s": {"seen": "at-least"}}}
    told = "so that the path's rate is an assumption: it bounds the gain."
    assert verdict(unseen, [remedied()]).endswith(told)
    assert told not in verdict(NONE, [remedied()])


def test_a_policer_is_modelled_as_one(tmp_path: Path) -> None:
    file = captured(tmp_path, link='forward.impair = [{ kind = "policer", rate = "4 Mbit/s", burst = "60 kB" }]')
    (policer,) = fitted(connection(file), str(file)).document["link"]["path"]["forward"]["impair"]
    assert policer["kind"] == "policer"
    assert float(policer["rate"].split()[0]) == pytest.approx(4, rel=0.05)
    assert int(policer["burst"].split()[0]) == pytest.approx(60_000, rel=0.2)


def test_a_change_of_the_route_changes_the_delay(tmp_path: Path) -> None:
    made = '[[at]]\ntime = "5 s"\nset = { "link.path.delay" = "40 ms" }'
    file = captured(tmp_path, flow='transport = { receive_window = "20 kB" }\n' + made)
    document = fitted(connection(file), str(file)).document
    assert [float(change["time"].split()[0]) for change in document["at"]] == pytest.approx([5, 5], abs=0.5)
    before, after = document["link"]["path"]["delay"], document["at"][-1]["set"]["link.path.delay"]
    assert float(after.split()[0]) - float(before.split()[0]) == pytest.approx(20, abs=1)


def test_a_fast_exchange_of_messages_does_not_wait_for_a_slow_path(tmp_path: Path) -> None:
    flow = 'workload = { kind = "request-response", request = "100 bytes", response = "3 kB" }'
    run = replayed(found := connection(captured(tmp_path, flow=flow)), fitted(found, "made.pcapng"))
    goodput = run.rows["goodput_mbit_s"]
    assert goodput["simulation"] == pytest.approx(goodput["capture"], rel=0.04)


def test_advice_keeps_to_80_columns() -> None:
    row = remedied(gain=(40.82, 10.16, 98.6), cost_to_others=(-12.3, -20.0, -1.0))
    row["title"], row["effort"] = "a buffer of one bandwidth-delay product", "both ends and a second line"
    rows = [row, remedied(gain=(0.041, 0.0409, 0.0411))]
    lines = list(words.advice(rows, verdict(NONE, rows)))
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "    at the sender"


ESTIMATE = {"seen": "measured", "value": 20.0, "low": 19.9996, "high": 20.0001}
PATH_MODEL: Any = {
    "bottleneck": "not seen",
    "base_rtt_ms": {"seen": "measured", "value": 42.0, "low": 41.9, "high": 42.1},
    "rate_mbit_s": ESTIMATE,
    "rate_trace": [[0.0, 20.0], [1.0, 20.001]],
    "buffer_bytes": {"seen": "not-seen"},
    "buffer_ms": {"seen": "not-seen"},
    "loss": {"kind": "none", "rate": {"high": 0.0135}},
    "policer": None,
    "reordering": {"ratio": {"value": None}},
    "jitter_ms": {"seen": "at-most", "value": 0.001},
    "flow": {
        "control": {"name": None},
        "congestion_control": "cubic",
        "congestion_control_evidence": "assumed " * 12,
    },
}


def test_a_path_in_words_has_ranges_with_different_ends() -> None:
    lines = list(words.path(PATH_MODEL, ["nothing"]))
    assert "  base round trip 42 ms (41.9 to 42.1)" in lines
    assert "  rate 20 Mbit/s" in lines
    assert "  buffer not seen" in lines
    assert "  random loss not seen, below 1.35 %" in lines
    assert lines[-1] == "  assumed: nothing"
    assert max(map(len, lines)) <= 80


def test_remedies_follow_the_causes(tmp_path: Path) -> None:
    found = connection(captured(tmp_path))
    names = {remedy.name for remedy in relevant(case(found, fitted(found, "made.pcapng")))}
    assert {"nothing", "bbr", "reno", "fq-codel"} <= names
    assert not {"receive-window", "send-buffer", "fec", "cubic"} & names


def test_the_command_writes_a_scenario_that_runs(anabranch: Call, tmp_path: Path) -> None:
    file = captured(tmp_path)
    out = tmp_path / "fitted"
    done = anabranch("diagnose", file, "--replay", "--advise", "--json", "--out", out)
    assert done.status == 0, done.err
    (found,) = json.loads(done.out)["connections"]
    assert found["advice"]
    assert found["replay"]["seeds"] == 5
    names = {one.name for one in out.iterdir()}
    assert names >= {"anabranch.json", "connection.json", "replay.pcapng", "replay.svg", "report.html", "scenario.toml"}
    report = (out / "report.html").read_text(encoding="utf-8")
    assert f"<p><strong>{html(verdict(found, found['advice']))}</strong></p>" in report
    done = anabranch("run", out / "scenario.toml", "--json")
    assert done.status == 0, done.err
    goodput = json.loads(done.out)["flows"]["main"]["goodput_mbit_s"]
    assert goodput == pytest.approx(found["directions"]["a_to_b"]["goodput_mbit_s"], rel=0.05)


def test_a_foreign_directory_is_unchanged(anabranch: Call, tmp_path: Path) -> None:
    file = captured(tmp_path, duration="1 s")
    done = anabranch("diagnose", file, "--out", tmp_path)
    assert (done.status, done.out) == (2, "")
    assert "was not written by anabranch" in done.err
    assert list(tmp_path.iterdir()) == [file]


def test_too_little_data_is_refused(tmp_path: Path) -> None:
    file = captured(tmp_path, flow='workload = { kind = "file", size = "2 kB" }', duration="1 s")
    assert connection(file)["path"] == {}
    with pytest.raises(UserError, match="too little data for a model of its path"):
        fitted(connection(file), str(file))
