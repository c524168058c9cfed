"""Missing keys of results suggest the nearest one, and the types declare the optional figures."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from anabranch import RunResult, Scenario, SweepResult, UserError

BASE = (
    Scenario("Two hosts", duration="1 s")
    .link("a", between=("S", "R"), rate="10 Mbit/s", delay="20 ms")
    .flow("main", source="S", target="R")
)


@pytest.fixture(scope="module")
def run() -> RunResult:
    return BASE.run(samples_ms=10)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda run: run.flows["mian"], 'the run has no flow "mian"\n  did you mean "main"?'),
        (lambda run: run.flows["main"]["goodput"], 'a flow has no figure "goodput"\n  did you mean "goodput_mbit_s"?'),
        (lambda run: run.links["b"], 'the run has no link "b"\n  valid: a'),
        (lambda run: run.links["a"]["fwd"], 'a link has no direction "fwd"\n  did you mean "forward"?'),
        (lambda run: run.links["a"]["forward"]["drops"], 'no figure "drops"\n  did you mean "dropped_packets"?'),
        (lambda run: run.groups["g"], 'the run has no link group "g"\n  there are none'),
        (lambda run: run.gateways["g"], 'the run has no gateway "g"\n  there are none'),
        (lambda run: run.summary["flow"], 'a summary has no key "flow"\n  did you mean "flows"?'),
        (lambda run: run["goodputt"], 'the run has no figure "goodputt"\n  did you mean "goodput_mbit_s"?'),
        (lambda run: run.table("samples")["cwnd"], 'no column "cwnd"\n  did you mean "cwnd_packets"?'),
        (lambda run: run.table("samples").get_column("srt_ms"), 'did you mean "srtt_ms"?'),
        (lambda run: run.table("flows").select("flow", "goodput"), 'did you mean "goodput_mbit_s"?'),
    ],
)
def test_a_missing_name_suggests_the_nearest(run: RunResult, asked: Callable[[RunResult], Any], message: str) -> None:
    with pytest.raises(UserError) as refused:
        asked(run)
    assert message in str(refused.value)


def test_a_missing_name_raises_the_usual_errors_of_python_and_polars(run: RunResult) -> None:
    with pytest.raises(KeyError):
        run.flows["mian"]
    assert run.flows.get("mian") is None
    assert "mian" not in run.flows
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        run.table("samples")["cwnd"]
    assert run.table("samples").select(pl.col("cwnd_packets").max()).height == 1
    assert run.table("samples").select("*").width == run.table("samples").width
    again = pickle.loads(pickle.dumps(run))  # noqa: S301 - our own
    assert again.summary == run.summary == json.loads(run.summary_json)
    assert again.table("samples").equals(run.table("samples"))


def test_columns_of_a_sweep_suggest_likewise() -> None:
    swept = BASE.sweep({"link.a.rate": ["5 Mbit/s", "10 Mbit/s"]})
    assert isinstance(swept, SweepResult)
    with pytest.raises(UserError, match=r'did you mean "link\.a\.rate"'):
        swept.frame["rate"]
    with pytest.raises(UserError, match=r'did you mean "flow\.main\.goodput_mbit_s\.mean"'):
        swept.table(["goodput"])["goodput_mbit_s.mean"]


def test_a_figure_of_a_run_has_a_short_name(run: RunResult) -> None:
    assert run["goodput"] == run["main.goodput"] == run.flows["main"]["goodput_mbit_s"] > 0
    assert run["forward.queue_delay"] == run.links["a"]["forward"]["p95_queue_delay_ms"]
    with pytest.raises(UserError, match="give one of dropped_packets, lost_packets"):
        run["loss"]
    with pytest.raises(UserError, match="flow_completion_time_s does not apply"):
        run["flow_completion_time"]


def test_a_flow_too_short_to_measure_is_reported() -> None:
    file = {"kind": "file", "size": "1 kB"}
    early = BASE.set("warmup", "0.9 s").set("flow.main.workload", file).run()
    with pytest.raises(UserError, match="flow main has no goodput_mbit_s: it was over before the warm-up was"):
        early.flows["main"]["goodput_mbit_s"]
    assert early.flows["main"].get("goodput_mbit_s") is None
    assert early.flows["main"]["delivered_bytes"] == 0
    assert json.loads(early.summary_json)["flows"]["main"]["goodput_mbit_s"] is None
    assert "–" in repr(early)
