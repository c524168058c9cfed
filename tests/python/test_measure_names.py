"""Short names of measures: their meanings, refusals, and uses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario, Study, SweepResult
from anabranch.compare import compare
from anabranch.compare.inputs import read_inputs
from anabranch.errors import UserError
from anabranch.result.measure_names import catalogue, figures_named, meant, one_figure, one_name, quantity, whole_path

from .command import Call

FIGURES = [
    *(f"flow.{flow}.{name}" for flow in ("main", "other") for name in catalogue()["flow"]),
    *(f"link.a.{direction}.{name}" for direction in ("forward", "reverse") for name in catalogue()["link"]),
    "fairness.jain_index",
]
NAMES = [name for section in ("flow", "link", "fairness") for name in catalogue()[section]]


def test_every_measure_is_known_by_its_name() -> None:
    for name in NAMES:
        assert meant(name, NAMES) == [name]


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("goodput", ["goodput_mbit_s"]),
        ("Goodput", ["goodput_mbit_s"]),
        ("queue-delay", ["p95_queue_delay_ms"]),
        ("queue_delay", ["p95_queue_delay_ms"]),
        ("p99_queue_delay", ["p99_queue_delay_ms"]),
        ("rtt", ["mean_srtt_ms"]),
        ("srtt", ["mean_srtt_ms"]),
        ("min_rtt", ["min_rtt_ms"]),
        ("cwnd", ["mean_cwnd_packets"]),
        ("queue", ["mean_queue_packets"]),
        ("drops", ["dropped_packets"]),
        ("lost", ["lost_packets"]),
        ("loss", ["dropped_packets", "lost_packets"]),
        ("one_way_delay", ["mean_one_way_delay_ms"]),
        ("completion_time", ["flow_completion_time_s", "transfers.mean_completion_time_s"]),
        ("response_time", ["exchanges.mean_response_time_ms"]),
        ("goodputt", []),
    ],
)
def test_a_short_name_means_one_quantity(written: str, names: list[str]) -> None:
    assert meant(written, NAMES) == names


def test_a_quantity_has_neither_unit_nor_statistic() -> None:
    assert [quantity(name) for name in ("p95_queue_delay_ms", "transfers.mean_completion_time_s", "utilization")] == [
        "queue_delay", "completion_time", "utilization",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "figure"),
    [
        ("main.goodput", "flow.main.goodput_mbit_s"),
        ("flow.other.rtt", "flow.other.mean_srtt_ms"),
        ("forward.queue_delay", "link.a.forward.p95_queue_delay_ms"),
        ("link.a.reverse.drops", "link.a.reverse.dropped_packets"),
        ("fairness", "fairness.jain_index"),
    ],
)
def test_a_flow_or_link_may_precede_a_short_name(written: str, figure: str) -> None:
    assert one_figure(written, FIGURES, "there is no") == figure


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("goodput", "ambiguous\n  give one of flow.main.goodput_mbit_s, flow.other.goodput_mbit_s"),
        ("forward.loss", "ambiguous\n  give one of dropped_packets, lost_packets"),
        ("godput", 'there is no "godput"\n  did you mean "goodput_mbit_s"'),
        ("flow.mian.goodput", 'did you mean "flow.main.goodput_mbit_s"'),
        ("main.gudput", 'did you mean "main.goodput_mbit_s"'),
    ],
)
def test_ambiguous_and_unknown_figures_are_refused_with_candidates(written: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        one_figure(written, FIGURES, "there is no")
    assert message in str(refused.value)


def test_a_measure_of_several_flows_names_all_of_them() -> None:
    assert figures_named("goodput", FIGURES, "") == ["flow.main.goodput_mbit_s", "flow.other.goodput_mbit_s"]


def test_a_column_has_a_short_name() -> None:
    columns = ["time_s", "cwnd_packets", "queue_packets", "queue_bytes"]
    assert one_name("cwnd", columns, "") == "cwnd_packets"
    with pytest.raises(UserError, match="give one of queue_packets, queue_bytes"):
        one_name("queue", columns, "")


def test_a_path_of_a_study_may_end_in_a_short_name() -> None:
    assert whole_path("flow.*.goodput") == "flow.*.goodput_mbit_s"
    assert whole_path("link.a.forward.queue_delay") == "link.a.forward.p95_queue_delay_ms"
    assert whole_path("flow.main.fec.recovered") == "flow.main.fec.recovered_packets"
    assert whole_path("flow.main.goodput_mbit_s") == "flow.main.goodput_mbit_s"
    assert whole_path("flow.main.nothing") == "flow.main.nothing"


BASE = (
    Scenario("Two hosts", duration="1 s")
    .link("a", between=("S", "R"), rate="10 Mbit/s", delay="20 ms")
    .flow("main", source="S", target="R")
)


@pytest.fixture(scope="module")
def swept() -> SweepResult:
    return BASE.sweep({"link.a.rate": ["5 Mbit/s", "10 Mbit/s"]})


@pytest.mark.parametrize(
    "asked",
    [
        lambda swept, name: swept.column(name),
        lambda swept, name: swept[name],
        lambda swept, name: [one.interval.mean for _, one in swept.estimates(name) if one],
        lambda swept, name: swept.table([name])["flow.main.goodput_mbit_s.mean"].to_list(),
    ],
)
def test_a_sweep_accepts_short_names(swept: SweepResult, asked: Callable[[SweepResult, str], Any]) -> None:
    assert asked(swept, "goodput") == asked(swept, "flow.main.goodput_mbit_s") == asked(swept, "main.goodput")
    with pytest.raises(UserError, match='the sweep has no figure "goodputt"\n  did you mean "goodput_mbit_s"'):
        asked(swept, "goodputt")
    with pytest.raises(UserError, match="give one of dropped_packets, lost_packets"):
        asked(swept, "loss")


def test_a_wrong_column_suggests_the_nearest_axis(swept: SweepResult) -> None:
    with pytest.raises(UserError, match='did you mean "link\\.a\\.rate"'):
        swept.column("rat")


def test_rules_of_a_sweep_accept_short_names() -> None:
    ranges, whole = {"link.a.rate": "1 Mbit/s..10 Mbit/s"}, "flow.main.goodput_mbit_s"
    short, long = (BASE.sweep(ranges=ranges, points=3, refine=f"{name}:1") for name in ("goodput", whole))
    assert short.column("rate") == long.column("rate")
    noisy = BASE.set("link.a.impair", [{"kind": "bernoulli-loss", "rate": 0.01}])
    counts = [noisy.sweep(until=f"{name}:20%", repeat=20).frame.height for name in ("goodput", whole)]
    assert counts[0] == counts[1]


def test_compare_accepts_short_names(anabranch: Call, tmp_path: Path) -> None:
    files = [tmp_path / "a.toml", tmp_path / "b.toml"]
    for file, rate in zip(files, ("5 Mbit/s", "10 Mbit/s"), strict=True):
        file.write_text(BASE.set("link.a.rate", rate).text.replace('"10 Mbit/s"', f'"{rate}"'), encoding="utf-8")
    found = compare(read_inputs(files), ["goodput", "queue_delay"])
    assert [block.measure.name for block in found.blocks] == ["goodput_mbit_s", "p95_queue_delay_ms"]
    short, whole = (anabranch("compare", *files, "--measure", name, "--json") for name in ("rtt", "mean_srtt_ms"))
    assert short.status == 0
    assert json.loads(short.out)["measures"] == json.loads(whole.out)["measures"]
    refused = anabranch("compare", *files, "--measure", "loss")
    assert refused.status == 2
    assert refused.err == 'error: "loss" is ambiguous\n  give one of dropped_packets, lost_packets\n'


STUDY = """title = "S"
source = "s"
about = "a"

[experiment.e]
scenario = "s.toml"
samples = true

[quantity.goodput]
path = "flow.main.{name}"

[quantity.window]
table = "samples"
column = "{column}"
flow = "main"

[[claim]]
id = "C1"
claim = "c"
published = "p"
accept_if = "more than nothing"
accept = ["goodput > 0", "window > 0"]
invariant = "bytes arrive"
measure = { goodput = "mean(goodput)", window = "max(window)" }
"""


@pytest.fixture
def study(tmp_path: Path) -> Callable[[str, str], Study]:
    def made(name: str, column: str) -> Study:
        (tmp_path / "s.toml").write_text(BASE.text, encoding="utf-8")
        text = STUDY.replace("{name}", name).replace("{column}", column)
        (tmp_path / "study.toml").write_text(text, "utf-8")
        return Study.load(tmp_path)

    return made


def test_a_study_accepts_short_names(study: Callable[[str, str], Study]) -> None:
    short, whole = (study(*names).run(jobs=1) for names in (("goodput", "cwnd"), ("goodput_mbit_s", "cwnd_packets")))
    assert short.claims[0].plain == whole.claims[0].plain
    assert short.claims[0].plain.holds


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("queue", "cwnd"), r'the summary has no figure "flow.main.queue"'),
        (("goodputt", "cwnd"), r'no figure "flow.main.goodputt"\n  did you mean "flow.main.goodput_mbit_s"'),
        (("goodput", "cwdn"), r'the table samples has no column "cwdn"\n  did you mean "cwnd_packets"'),
        (("completion_time", "cwnd"), r"study.toml:10:8: .* is ambiguous"),
    ],
)
def test_a_study_refuses_a_wrong_name(study: Callable[[str, str], Study], names: tuple[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        study(*names).run(jobs=1)


def test_a_figure_precedes_a_figure_of_a_part() -> None:
    names = ["retransmitted_packets", "fec.releases.retransmitted", "fec.recovered_packets"]
    assert meant("retransmitted", names) == ["retransmitted_packets"]
    assert meant("recovered", names) == ["fec.recovered_packets"]
    figures = [f"flow.main.{name}" for name in names]
    assert one_figure("retransmitted", figures, "") == "flow.main.retransmitted_packets"
    assert one_figure("releases.retransmitted", figures, "") == "flow.main.fec.releases.retransmitted"
