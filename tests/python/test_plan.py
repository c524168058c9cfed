"""``anabranch plan``: advice on links whose answer is known, messages, and written scenarios."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anabranch import Scenario
from anabranch.plans import traffic
from anabranch.plans.answer import Change, number

from .command import Call

PATH = """
title = "a path"
duration = "{seconds} s"
[link.path]
between = ["A", "B"]
rate = "{rate}"
delay = "{delay}"
queue = {{ kind = "drop-tail", limit = "1 bdp" }}
{impair}
[flow.main]
from = "A"
to = "B"
cc = "{control}"
"""


def capture(folder: Path, control: str, rate: str, delay: str, loss: float = 0.0, seconds: int = 40) -> Path:
    impair = f'forward.impair = [{{ kind = "bernoulli-loss", rate = {loss} }}]' if loss else ""
    text = PATH.format(seconds=seconds, rate=rate, delay=delay, impair=impair, control=control)
    file = folder / "slow.pcapng"
    run = Scenario.from_text(text, file="path.toml").run(seed=1, digest=False, captures=["path"])
    file.write_bytes(run.pcapng("path"))
    return file


def counters(folder: Path, octets_per_s: float, *, count: int = 12) -> Path:
    file = folder / "counters.csv"
    lines = [f"{n * 10},{int(n * 10 * octets_per_s)}" for n in range(count)]
    file.write_text("\n".join(["time,bytes", *lines]) + "\n")
    return file


def planned(anabranch: Call, *words: object) -> dict[str, object]:
    done = anabranch("plan", *words, "--json")
    assert done.status == 0, done.err
    found: dict[str, object] = json.loads(done.out)
    return found


def test_a_control_that_a_long_lossy_path_needs(anabranch: Call, tmp_path: Path) -> None:
    """Reno needs an hour for the window that Cubic+ regains in seconds; the path has room for another flow."""
    file = capture(tmp_path, "reno", "200 Mbit/s", "100 ms", loss=0.0003)
    found = planned(anabranch, "cc", file)
    assert found["advised"] is True
    assert found["install"] == "anabranch cc install cubic-plus --default"
    assert str(found["answer"]).startswith("Cubic+ is worth it on the path of connection 1: goodput +")
    assert any("a fifth more goodput on the kernel" in one for one in found["assumptions"])  # type: ignore[attr-defined]
    assert found["measures"]["goodput_mbit_s"]["change"]["low"] > 0.1  # type: ignore[index]


def test_a_control_that_a_clean_path_does_not_need(anabranch: Call, tmp_path: Path) -> None:
    file = capture(tmp_path, "cubic", "10 Mbit/s", "20 ms", seconds=20)
    found = planned(anabranch, "cc", file, "--control", "reno")
    assert found["advised"] is False
    assert "is not worth it" in str(found["answer"])


def test_a_control_that_takes_from_others(anabranch: Call, tmp_path: Path) -> None:
    """BBR takes the rest of a path that random loss keeps Reno from filling."""
    file = capture(tmp_path, "reno", "20 Mbit/s", "20 ms", loss=0.005, seconds=20)
    found = planned(anabranch, "cc", file, "--control", "bbr")
    assert found["advised"] is False
    assert "BBR is not advised" in str(found["answer"])
    assert found["measures"]["other_goodput_mbit_s"]["change"]["high"] < -0.05  # type: ignore[index]


def test_share_red_where_shares_differ(anabranch: Call) -> None:
    found = planned(anabranch, "aqm", "--rate", "20mbit", "--flows", "cubic=2,reno=2", "--buffer", "2 bdp")
    assert found["advised"] is True
    assert str(found["install"]).startswith("anabranch aqm attach DEV --kind share-red --rate '20 Mbit/s' --set ")
    share = found["measures"]["share/reno"]  # type: ignore[index]
    assert share["now"]["mean"] < 0.45
    assert 0.45 < share["then"]["mean"] < 0.55


def test_share_red_for_a_flow_alone(anabranch: Call) -> None:
    found = planned(anabranch, "aqm", "--rate", "10mbit", "--flows", "cubic=1")
    assert found["advised"] is False
    assert "is not worth it for fairness: Jain's index 0," in str(found["answer"])


def test_share_red_from_a_capture(anabranch: Call, tmp_path: Path) -> None:
    text = PATH.format(seconds=20, rate="20 Mbit/s", delay="20 ms", impair="", control="cubic")
    text += '[flow.second]\nfrom = "A"\nto = "B"\ncc = "reno"\n'
    run = Scenario.from_text(text, file="two.toml").run(seed=1, digest=False, captures=["path"])
    (tmp_path / "two.pcapng").write_bytes(run.pcapng("path"))
    found = planned(anabranch, "aqm", tmp_path / "two.pcapng", "--rate", "20mbit", "--seeds", "3")
    assert any("2 of 2 connections" in one for one in found["assumptions"])  # type: ignore[attr-defined]
    assert found["measures"]["goodput_mbit_s"]["now"]["mean"] > 15  # type: ignore[index]


def test_links_that_a_small_load_does_not_need(anabranch: Call, tmp_path: Path) -> None:
    file = counters(tmp_path, 2e6, count=7)
    found = planned(anabranch, "group", file, "--members", "4", "--rate", "100mbit", "--seeds", "3")
    assert found["advised"] is True
    measures = found["measures"]
    assert measures["power_w"]["change"]["high"] < -0.3  # type: ignore[index]
    assert measures["link_hours_per_day"]["now"]["mean"] == pytest.approx(96)  # type: ignore[index]


def test_links_that_a_full_load_needs(anabranch: Call, tmp_path: Path) -> None:
    file = counters(tmp_path, 47e6, count=7)
    found = planned(anabranch, "group", file, "--members", "4", "--rate", "100mbit", "--seeds", "3")
    assert found["advised"] is False
    assert "is not worth it" in str(found["answer"])


def test_a_load_from_a_capture(anabranch: Call, tmp_path: Path) -> None:
    file = capture(tmp_path, "cubic", "20 Mbit/s", "5 ms", seconds=12)
    words = ("--members", "4", "--rate", "100mbit", "--method", "peak-forecast", "--seeds", "2")
    found = planned(anabranch, "group", file, *words)
    assert any("only packets from 10.0.0.1" in one for one in found["assumptions"])  # type: ignore[attr-defined]


def test_the_written_scenarios_run(anabranch: Call, tmp_path: Path) -> None:
    out = tmp_path / "plan"
    file = counters(tmp_path, 2e6, count=7)
    done = anabranch("plan", "group", file, "--members", "2", "--rate", "100mbit", "--seeds", "2", "--out", out)
    assert done.status == 0
    assert done.out.startswith("dynamic-lacp is ")
    assert sorted(one.name for one in out.glob("*.toml")) == [
        "now-bulk.toml",
        "now.toml",
        "then-bulk.toml",
        "then.toml",
    ]
    assert json.loads((out / "plan.json").read_text())["plan"] == "group"
    assert anabranch("run", out / "then.toml", "--json").status == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("cc none.pcap", "none.pcap: "),
        (
            "cc none.pcap --control cubicplus",
            'there is no congestion control "cubicplus"\n  did you mean "cubic-plus"?',
        ),
        ("cc none.pcap --seeds 1", "--seeds 1: a whole number from 2 to 100 was expected"),
        ("aqm --rate fast", "--rate fast: a rate from 10 kbit/s to 100 Gbit/s was expected\n  --rate 100mbit"),
        ("aqm --rate 10mbit --flows cubic", "--flows cubic: NAME=N,NAME=N was expected"),
        ("aqm --rate 10mbit --flows cubic=\N{SUPERSCRIPT TWO}", "--flows cubic=\N{SUPERSCRIPT TWO}: NAME=N,NAME=N was"),
        (f"aqm --rate 10mbit --flows cubic={'9' * 5000}", "--flows cubic=9999"),
        ("aqm --rate 10mbit --rtt 1h", "--rtt 1h: a time from 0.1 ms to 10 s was expected"),
        ("aqm --rate 10mbit --buffer 3", "--buffer '3': bandwidth-delay products or packets were expected"),
        ("aqm none.pcap --rate 10mbit --rtt 40ms", "--rtt 40ms: none.pcap has the flows"),
        ("group none.csv --members 1 --rate 1gbit", "--members 1: a whole number from 2 to 64 was expected"),
        ("group none.csv --members 4 --rate 1gbit --method oracle", "--method oracle: there is no such controller"),
        ("group full.csv --members 2 --rate 1mbit", "full.csv: its mean rate, 80 Mbit/s, exceeds 2 links of 1mbit"),
        ("group full.csv --members 2 --rate 1gbit --from x", "--from x: full.csv has counters, and no senders"),
        ("group wrong.csv --members 2 --rate 1gbit", "wrong.csv:3: TIME,BYTES was expected"),
        ("group back.csv --members 2 --rate 1gbit", "back.csv:2: the time does not increase"),
        ("group inf.csv --members 2 --rate 1gbit", "inf.csv:2: TIME,BYTES was expected"),
        ("group large.csv --members 2 --rate 1gbit", "large.csv:1: TIME,BYTES was expected"),
        ("group near.csv --members 2 --rate 1gbit", "near.csv:2: the time does not increase by 1 ms or more"),
        ("group short.csv --members 2 --rate 1gbit", "short.csv: it has 4 s of load"),
        ("group still.csv --members 2 --rate 1gbit", "still.csv: the counter never increases"),
        ("group binary.csv --members 2 --rate 1gbit", "binary.csv is neither a capture nor CSV"),
    ],
)
def test_bad_input(anabranch: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    counters(tmp_path, 1e7).rename("full.csv")
    Path("wrong.csv").write_text("0,0\n1,5\nx,9\n")
    Path("back.csv").write_text("5,0\n4,5\n")
    Path("inf.csv").write_text("0,0\n10,inf\n")
    Path("large.csv").write_text("0,1e400\n10,1e401\n")
    Path("near.csv").write_text("0,0\n1e-320,10\n")
    Path("short.csv").write_text("0,0\n2,10\n4,20\n")
    Path("still.csv").write_text("0,7\n1,7\n")
    Path("binary.csv").write_bytes(b"\xff\xfe\x00\x01")
    done = anabranch("plan", *words.split())
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {message}"), done.err


def test_counters_that_decrease_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "restart.csv"
    file.write_text("2026-11-29T12:00:00Z,1000\n2026-11-29T12:00:10Z,2000\n2026-11-29T12:00:20Z,10\n"
                    "2026-11-29T12:00:30Z,1010\n")  # fmt: skip
    load = traffic.read(file, 1)
    assert load.mean_mbit_s == pytest.approx(100 * 8e-6)
    assert "1 intervals in which the counter decreased are left out" in load.told


def test_the_replayed_rate_is_that_of_the_counters(tmp_path: Path) -> None:
    load = traffic.read(counters(tmp_path, 1e6), 2)
    content = load.files["traffic-1.pcap"]
    packets = (len(content) - 24) // (16 + 28)
    assert packets * traffic.PACKET_BYTES / load.seconds == pytest.approx(1e6, rel=0.05)
    assert content != load.files["traffic-2.pcap"]


def test_two_readings_close_together_change_nothing(tmp_path: Path) -> None:
    """The rate of a moment is not simulated for a whole window, and no window becomes as short."""
    file = counters(tmp_path, 1e6)
    lines = file.read_text().splitlines()
    usual = traffic.read(file, 1)
    file.write_text("\n".join([*lines[:5], f"30.05,{30e6 + 500_000:.0f}", *lines[5:]]) + "\n")
    load = traffic.read(file, 1)
    assert load.seconds == usual.seconds == 110
    assert len(load.files["traffic-1.pcap"]) == pytest.approx(len(usual.files["traffic-1.pcap"]), rel=0.05)


def test_no_more_is_simulated_than_was_recorded(tmp_path: Path) -> None:
    file = tmp_path / "uneven.csv"
    file.write_text("0,0\n10,1000000\n16,2000000\n28,3000000\n")
    assert traffic.read(file, 1).seconds <= 28


def test_a_large_load_is_simulated_at_a_fraction_of_its_rate(tmp_path: Path) -> None:
    load = traffic.read(counters(tmp_path, 5e8), 1)
    packets = (len(load.files["traffic-1.pcap"]) - 24) // (16 + 28)
    assert load.mean_mbit_s == pytest.approx(4000, rel=0.01)
    assert packets * traffic.PACKET_BYTES * 8e-6 / load.seconds == pytest.approx(traffic.MOST_MBIT_S, rel=0.05)


def test_changes_and_numbers() -> None:
    assert Change.relative((2.0, 0.0), (3.0, 1.0)) == Change(0.5, 0.5, 0.5)
    assert not Change(0.1, -0.1, 0.3).is_certain
    assert (number(1234.5), number(0.00001), number(-0.5)) == ("1,234", "0", "-0.5")
