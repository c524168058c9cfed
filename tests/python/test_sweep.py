from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import Scenario, UserError, _engine
from anabranch.sweep import estimate, flatten

GRID: dict[str, Sequence[str | int]] = {
    "flow.main.cc": ["new-reno", "cubic"],
    "link.bottleneck.forward.queue.reorder.interval": [4, 50],
}


def scenario(file: Path) -> Scenario:
    return Scenario.from_file(file).set("duration", "1.0 s")


def test_one_row_per_run_in_grid_order(scenario_file: Path) -> None:
    result = scenario(scenario_file).sweep(GRID, repeat=2)
    assert result.axes == list(GRID)
    assert result.frame.height == 8
    assert result.frame.get_column("seed").to_list() == [1, 2] * 4
    assert result.frame.get_column("flow.main.cc").to_list() == ["new-reno"] * 4 + ["cubic"] * 4
    table = result.table(["flow.main.goodput_mbit_s"])
    assert table.columns == [*GRID, *(f"flow.main.goodput_mbit_s.{k}" for k in ("mean", "lower", "upper", "n"))]
    assert table.height == 4


def test_the_scenarios_own_grid(scenario_file: Path) -> None:
    assert scenario(scenario_file).sweep({"flow.main.cc": ["cubic"]}).frame.height == 14


def test_repeats_with_one_digest_are_one_value() -> None:
    both = estimate([("d", 2.0), ("d", 2.0), ("d", 2.0)])
    assert both is not None
    assert both.deterministic
    assert (both.interval.n, both.interval.lower) == (1, None)


def test_repeats_that_differ_have_an_interval() -> None:
    value = estimate([("a", 1.0), ("b", 3.0), (None, 2.0)])
    assert value is not None
    assert not value.deterministic
    assert (value.interval.mean, value.interval.n) == (2.0, 3)
    assert value.interval.lower is not None
    without_digest = estimate([(None, 1.0), (None, 1.0)])
    assert without_digest is not None
    assert without_digest.interval.n == 2
    assert estimate([("a", None)]) is None


def test_resumed(scenario_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    original = _engine.run_many

    def counting(jobs: list[Any], **options: Any) -> Any:
        made.append(len(jobs))
        return original(jobs, **options)

    monkeypatch.setattr(_engine, "run_many", counting)
    out = tmp_path / "out"
    first = scenario(scenario_file).sweep(GRID, out=out)
    assert sum(made) == 4
    again = scenario(scenario_file).sweep(GRID, out=out)
    assert sum(made) == 4
    assert again.frame.equals(first.frame)
    scenario(scenario_file).sweep({**GRID, "flow.main.cc": ["new-reno", "cubic", "reno"]}, out=out)
    assert sum(made) == 6
    scenario(scenario_file).set("seed", 9).sweep(GRID, out=out)
    assert sum(made) == 10
    assert pl.read_parquet(out / "runs.parquet").height == 4


def test_an_interrupt_leaves_what_was_finished(
    scenario_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = _engine.run_many
    calls: list[int] = []

    def interrupted(jobs: list[Any], **options: Any) -> Any:
        calls.append(len(jobs))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(jobs, **options)

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(_engine, "run_many", interrupted)
        with pytest.raises(KeyboardInterrupt):
            scenario(scenario_file).sweep({"flow.main.cc": ["cubic"]}, repeat=3, jobs=1, out=out)
    kept = list((out / "points").glob("*.json"))
    assert len(kept) == calls[0] == 16
    assert all(json.loads(p.read_bytes())["format"] == 1 for p in kept)
    progress: list[tuple[int, int]] = []
    scenario(scenario_file).sweep(
        {"flow.main.cc": ["cubic"]}, repeat=3, jobs=1, out=out, progress=lambda a, b: progress.append((a, b))
    )
    assert progress[0] == (16, 42)
    assert progress[-1] == (42, 42)


def test_somebody_elses_directory(scenario_file: Path, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_text("x")
    with pytest.raises(UserError, match="was not written by anabranch"):
        scenario(scenario_file).sweep(GRID, out=tmp_path)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.sweep({"a": []}), "the grid gives no value for a"),
        (lambda s: s.sweep(GRID, repeat=0), "--repeat 0: at least 1 was expected"),
        (lambda s: s.sweep(GRID, jobs=0), "--jobs 0: at least 1 was expected"),
        (lambda s: s.sweep(GRID, repeat=1_000_000), "at most 1,000,000 were expected"),
    ],
)
def test_bad_options(scenario_file: Path, call: Callable[[Scenario], object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        call(scenario(scenario_file))


def test_flatten_has_figures_only() -> None:
    flat = flatten(
        {
            "flows": {"a/0": {"goodput_mbit_s": 1, "flow_completion_time_s": None,
                              "reordering": {"n_reordering": {"1": 0.1}}}},
            "links": {"l": {"forward": {"sent_packets": 3}}},
            "fairness": {"jain_index": 1.0},
        }
    )  # fmt: skip
    assert flat == {
        "flow.a/0.goodput_mbit_s": 1.0,
        "flow.a/0.flow_completion_time_s": None,
        "link.l.forward.sent_packets": 3.0,
        "fairness.jain_index": 1.0,
    }
