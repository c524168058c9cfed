"""Conversion of mahimahi command lines and of capacity traces: laws, notes, bad input."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import Scenario
from anabranch.convert import Converted, Options, capacity, convert_bytes
from anabranch.convert.content import Text
from anabranch.errors import UserError
from anabranch.text import toml_text

from .command import Call

law = settings(deadline=None, max_examples=50)
"""No deadline: a time limit on a busy machine is meaningless."""

PACKET = 1500

traces = st.lists(st.integers(0, 5000), min_size=1, max_size=60).map(sorted).filter(lambda times: times[-1] > 0)
rows = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 300)), min_size=2, max_size=8).filter(
    lambda pieces: sum(length * rate for length, rate in pieces) > 0
)


def convert(text: str, source: str, target: str, directory: Path | None = None) -> Converted:
    return convert_bytes("given", text.encode(), directory or Path(), Options(source=source, target=target))


def trace_of(content: bytes) -> list[int]:
    return capacity.parse(Text.decode("trace", content))


@law
@given(traces)
def test_a_trace_through_a_scenario_keeps_its_capacity_in_each_second(times: list[int]) -> None:
    text = "".join(f"{time}\n" for time in times)
    scenario = convert(text, "mahimahi-trace", "scenario")
    assert [trace_of(content) for content in scenario.files.values()] == [times]
    back = convert(text, "mahimahi-trace", "mahimahi")
    for content in back.files.values():
        assert Counter(time // 1000 for time in trace_of(content)) == Counter(time // 1000 for time in times)


@law
@given(st.integers(1_000, 10_000_000_000))
def test_a_constant_rate_keeps_its_bytes_in_each_second_within_a_packet(rate: int) -> None:
    times, is_exact = capacity.constant(rate)
    assert times == sorted(times)
    period, seconds = times[-1], 3
    expected = Fraction(rate * period, 8 * 1000 * PACKET)
    assert abs(len(times) - expected) <= (0 if is_exact else expected / 10_000)
    if is_exact and 1000 % period == 0:
        # A whole number of rounds in a second.
        rounds = seconds * 1000 // period
        assert abs(rounds * len(times) * PACKET - Fraction(rate * seconds, 8)) <= PACKET


@law
@given(rows)
def test_a_time_rate_trace_keeps_its_bytes_within_a_packet(pieces: list[tuple[int, int]]) -> None:
    lines, time = [], 0
    for length, rate in pieces:
        lines.append(f"{time / 10} {rate / 10}\n")
        time += length
    lengths = [length for length, _ in pieces[:-1]] + [pieces[-2][0]]
    expected = sum(Fraction(length, 10) * Fraction(rate, 10) for length, (_, rate) in zip(lengths, pieces, strict=True))
    expected_bytes = expected * 10**6 / 8
    try:
        converted = convert("".join(lines), "time-rate", "scenario")
    except UserError as error:
        assert "less than one packet" in error.message or expected_bytes == 0  # noqa: PT017 - the last line has no rate
        return
    (content,) = converted.files.values()
    times = trace_of(content)
    assert abs(len(times) * PACKET - expected_bytes) <= PACKET
    assert times[-1] == sum(lengths) * 100


def test_a_rate_holds_from_its_line_to_the_next() -> None:
    converted = convert("0 12\n1 0\n2 24\n", "time-rate", "scenario")
    (content,) = converted.files.values()
    per_second = Counter((time - 1) // 1000 for time in trace_of(content))
    assert (per_second[0], per_second[1], per_second[2]) == (1000, 0, 2000)


@pytest.mark.parametrize("text", ["time_s,rate_mbit_s\n0,5\n1,6\n", "0\t5\r\n1\t6\r\n", "# a\n0 5 # b\n\n1 6"])
def test_columns_may_have_any_usual_separator(text: str) -> None:
    (content,) = convert(text, "time-rate", "scenario").files.values()
    assert len(trace_of(content)) == round(11e6 / 8 / PACKET)


def mahimahi(tmp_path: Path, command: str) -> tuple[dict[str, Any], Converted]:
    for name in ("up.trace", "down.trace"):
        (tmp_path / name).write_text("1\n" if name == "up.trace" else "2\n")
    converted = convert(command, "mahimahi", "scenario", tmp_path)
    link: dict[str, Any] = toml_text.parse(converted.content.decode(), "x")["link"]["path"]
    return link, converted


def test_a_command_line_becomes_a_link(tmp_path: Path) -> None:
    link, converted = mahimahi(
        tmp_path,
        "mm-delay 20 mm-loss uplink 0.01 mm-link up.trace down.trace "
        '--uplink-queue=droptail --uplink-queue-args="packets=100" --uplink-log=x.log',
    )
    assert link["forward"] == {
        "delay": "20 ms",
        "service": {"kind": "trace", "file": "up.trace"},
        "queue": {"kind": "drop-tail", "limit": "100 packets"},
        "impair": [{"kind": "bernoulli-loss", "rate": 0.01}],
    }
    assert link["reverse"] == {"delay": "20 ms", "service": {"kind": "trace", "file": "down.trace"}}
    assert (converted.notes, set(converted.files)) == ((), {"up.trace", "down.trace"})


def test_two_traces_of_one_name_remain_separate(tmp_path: Path) -> None:
    for name, line in (("a", "1"), ("b", "2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lte").write_text(f"{line}\n")
    converted = convert("mm-link a/lte b/lte", "mahimahi", "scenario", tmp_path)
    assert converted.files == {"uplink-lte": b"1\n", "downlink-lte": b"2\n"}


delays = st.integers(0, 400)
queues = st.one_of(
    st.integers(1, 9999).map(lambda n: {"kind": "drop-tail", "limit": f"{n} packets"}),
    st.integers(1500, 10**6).map(lambda n: {"kind": "drop-tail", "limit": f"{n} bytes"}),
    st.just({"kind": "drop-tail", "limit": "unlimited"}),
    st.integers(1, 50).map(
        lambda n: {"kind": "codel", "limit": f"{n} packets", "target": f"{n} ms", "interval": "100 ms"}
    ),
    st.integers(1, 50).map(
        lambda n: {"kind": "pie", "limit": f"{n} packets", "target": f"{n} ms", "max_burst": "30 ms"}
    ),
)
directions = st.fixed_dictionaries({"queue": queues, "loss": st.integers(0, 999)})


@law
@given(delays, directions, directions)
def test_a_link_of_traces_survives_a_command_line(
    tmp_path_factory: pytest.TempPathFactory, delay: int, up: dict[str, Any], down: dict[str, Any]
) -> None:
    directory = tmp_path_factory.mktemp("link")
    (directory / "t.trace").write_text("1\n3\n")
    sides = [
        {
            "delay": f"{delay} ms",
            "service": {"kind": "trace", "file": str(directory / "t.trace")},
            "queue": side["queue"],
            "impair": [{"kind": "bernoulli-loss", "rate": side["loss"] / 1000}] if side["loss"] else [],
        }
        for side in (up, down)
    ]
    scenario = Scenario(duration="1 s").link("path", between=("A", "B"), forward=sides[0], reverse=sides[1])
    scenario = scenario.flow("main", source="A", target="B")
    command = convert(scenario.text, "scenario", "mahimahi")
    assert command.notes == ()
    for name, content in command.files.items():
        (directory / name).write_bytes(content)
    again = convert(command.content.decode(), "mahimahi", "scenario", directory)
    (directory / "again.toml").write_bytes(again.content)
    found = Scenario.from_file(directory / "again.toml").resolve()["resolved_scenario"]["link"]["path"]
    expected = scenario.resolve()["resolved_scenario"]["link"]["path"]
    for side in ("forward", "reverse"):
        del found[side]["service"], expected[side]["service"]
        assert found[side] == expected[side]


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ('delay = "1.5 ms"', "whole milliseconds"),
        ('forward.delay = "10 ms"', "differs by direction"),
        ('impair = [{ kind = "gilbert-elliott", loss_rate = 0.01, mean_burst = 3 }]', "bursts"),
        ('impair = [{ kind = "jitter", mean = "5 ms" }]', "jitter"),
        ('impair = [{ kind = "duplicate", rate = 0.1 }]', "duplicate"),
        ('queue = { kind = "fq-codel" }', "fq-codel"),
        ('queue = { kind = "codel", ecn = true }', "ecn"),
        ('rate = "1234567 bit/s"', "rounded"),
        ('forward.rate = "5 Mbit/s"', "unlimited"),
        ("up = false", "up"),
    ],
)
def test_features_that_mahimahi_lacks_are_noted(anabranch: Call, tmp_path: Path, keys: str, word: str) -> None:
    scenario, out = tmp_path / "link.toml", tmp_path / "link.mahimahi"
    usual = "" if "rate = " in keys and "loss" not in keys and "duplicate" not in keys else 'rate = "12 Mbit/s"\n'
    flow = '[flow.main]\nfrom = "A"\nto = "B"\n'
    scenario.write_text(f'duration = "2 s"\n[link.path]\nbetween = ["A", "B"]\n{usual}{keys}\n{flow}')
    done = anabranch("convert", scenario, "--out", out, "--strict")
    assert (done.status, sorted(p.name for p in tmp_path.iterdir())) == (2, ["link.toml"])
    done = anabranch("convert", scenario, "--out", out)
    assert done.status == 0
    assert word in done.err
    assert out.is_file()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("mm-delay 20 mm-lnk up.trace down.trace", "1:13: 'mm-lnk' is not a shell of mahimahi"),
        ("mm-delay fast mm-link up.trace down.trace", "1:10: 'fast' is not a delay in whole milliseconds"),
        ("mm-loss upload 0.1 mm-delay 5", "1:9: 'upload' is not a direction"),
        ("mm-loss uplink \u0660.\u0661 mm-delay 5", "is not a loss rate between 0 and 1"),
        ("mm-loss uplink 1.5 mm-delay 5", "1:16: '1.5' is not a loss rate between 0 and 1"),
        ("mm-link up.trace", "1:1: mm-link has 1 of its 2 traces"),
        ("mm-link up.trace down.trace --uplink-quue=droptail", "1:29: '--uplink-quue' is not an option of mm-link"),
        ("mm-link up.trace down.trace --uplink-queue=dropptail", "1:44: 'dropptail' is not a queue of mahimahi"),
        ("mm-link up.trace down.trace --uplink-queue=droptail", "1:44: droptail needs arguments"),
        ('mm-link up.trace down.trace --uplink-queue=droptail --uplink-queue-args="packet=3"',
         "1:73: 'packet' is not an argument of a queue"),
        ("mm-link up.trace no.trace", "path.mahimahi:1:18:"),
        ("mm-link up.trace bad.trace", "bad.trace:2:1: the trace goes back in time: 3 ms after 5 ms"),
    ],
)  # fmt: skip
def test_bad_command_lines_have_a_location(anabranch: Call, tmp_path: Path, command: str, message: str) -> None:
    (tmp_path / "up.trace").write_text("1\n")
    (tmp_path / "down.trace").write_text("1\n")
    (tmp_path / "bad.trace").write_text("5\n3\n")
    file = tmp_path / "path.mahimahi"
    file.write_text(command)
    done = anabranch("convert", file, "--from", "mahimahi", "--out", tmp_path / "out.toml")
    assert (done.status, (tmp_path / "out.toml").exists()) == (2, False)
    assert message in done.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 5\n1 x\n", "given:2:3: '1 x' is not a time and a rate"),
        ("0 5\n\u0661 6\n", "given:2:1: '\u0661 6' is not a time and a rate"),
        ("0 5\n0 6\n", "given:2:1: 0 s is not after the line before it"),
        ("0 5\n1 -6\n", "given:2:3: -6 is not a rate from 0"),
        ("0 5\n", "given:2:1: less than two lines of time and rate"),
        ("0 5 6\n1 7 8\n", "given:1:5: '0 5 6' is not a time and a rate"),
        ("0 0\n1 0\n", "given:1:1: less than one packet"),
        ("0 1e9\n9 1e9\n", "given:1:1: a trace of"),
    ],
)
def test_bad_time_rate_traces_have_a_location(text: str, message: str) -> None:
    with pytest.raises(UserError, match="given") as caught:
        convert(text, "time-rate", "scenario")
    assert str(caught.value).startswith(message)


words = st.sampled_from(
    ["mm-delay", "mm-link", "mm-loss", "mm-onoff", "uplink", "downlink", "5", "0.5", "--once", "--uplink-queue=codel",
     "--uplink-queue-args=target=5,interval=4", "--uplink-queue-args=packets=1", "/dev/null", "--", "bash", "\n"]
)  # fmt: skip


@law
@given(st.one_of(st.text(), st.lists(words, max_size=8).map(" ".join)))
def test_any_command_line_gives_a_scenario_or_an_error(text: str) -> None:
    try:
        converted = convert(text, "mahimahi", "scenario")
    except UserError as error:
        assert None not in (error.line, error.column)  # noqa: PT017 - either outcome is right
        return
    Scenario.from_text(converted.content.decode()).resolve()


@law
@given(st.text() | st.text("0123456789.e- \n\t,#"))
def test_any_text_gives_a_trace_or_a_location(text: str) -> None:
    for source in ("time-rate", "mahimahi-trace"):
        try:
            converted = convert(text, source, "scenario")
        except UserError as error:
            assert None not in (error.line, error.column)  # noqa: PT017 - either outcome is right
            continue
        assert all(trace_of(content) for content in converted.files.values())


def test_converted_scenarios_run(anabranch: Call, tmp_path: Path) -> None:
    (tmp_path / "up.trace").write_text("1\n")
    (tmp_path / "cooked").write_text("0 5\n1 6\n2 0.5\n")
    (tmp_path / "path").write_text("mm-delay 20 mm-link up.trace up.trace")
    goodput = {}
    for name in ("up.trace", "cooked", "path"):
        out = tmp_path / f"{name}.toml"
        assert anabranch("convert", tmp_path / name, "--out", out, "--force").status == 0
        done = anabranch("run", out, "--set", "duration=6 s", "--json")
        assert done.status == 0
        goodput[name] = json.loads(done.out)["flows"]["main"]["goodput_mbit_s"]
    assert goodput["path"] == pytest.approx(12 * 1448 / 1500, rel=0.2)
    assert goodput["cooked"] < 11.5 / 3
    assert goodput["up.trace"] == pytest.approx(12 * 1448 / 1500, rel=0.2)
