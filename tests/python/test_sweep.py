from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from anabranch import Scenario, SweepResult, UserError, _engine
from anabranch.keys.grid import origins, short_names
from anabranch.result.flat import read_summary
from anabranch.result.summary import Summary
from anabranch.sweep.sweep import estimate, flatten, value_text

from .command import Call
from .kept import kept_points

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
    original = _engine.summarize_many

    def counting(jobs: list[Any], **options: Any) -> Any:
        made.append(len(jobs))
        return original(jobs, **options)

    monkeypatch.setattr(_engine, "summarize_many", counting)
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


def test_an_interrupt_preserves_finished_points(
    scenario_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = _engine.summarize_many
    calls: list[int] = []

    def interrupted(jobs: list[Any], **options: Any) -> Any:
        calls.append(len(jobs))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(jobs, **options)

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(_engine, "summarize_many", interrupted)
        with pytest.raises(KeyboardInterrupt):
            scenario(scenario_file).sweep({"flow.main.cc": ["cubic"]}, repeat=3, jobs=1, out=out)
    assert len(kept_points(out)) == calls[0] == 16
    progress: list[tuple[int, int]] = []
    scenario(scenario_file).sweep(
        {"flow.main.cc": ["cubic"]}, repeat=3, jobs=1, out=out, progress=lambda a, b: progress.append((a, b))
    )
    assert progress[0] == (16, 42)
    assert progress[-1] == (42, 42)


def test_a_foreign_directory(scenario_file: Path, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_text("x")
    with pytest.raises(UserError, match="was not written by anabranch"):
        scenario(scenario_file).sweep(GRID, out=tmp_path)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.sweep({"flow.main.cc": "cubic"}), "one value; a list of values was expected"),
        (lambda s: s.sweep({"flow.main.count": 3}), "one value; a list of values was expected"),
        (lambda s: s.sweep({"a": []}), "the grid gives no value for a"),
        (lambda s: s.sweep(GRID, repeat=0), "repeat=0: at least 1 was expected"),
        (lambda s: s.sweep(GRID, jobs=0), "jobs=0: at least 1 was expected"),
        (lambda s: s.sweep({"seed": [1, 2]}), "a grid does not vary seed"),
        (lambda s: s.sweep({'"seed"': [1, 2]}), "a grid does not vary seed"),
        (lambda s: s.sweep({"sweep.repeat": [1, 2]}), "a grid does not vary sweep.repeat"),
        (lambda s: s.sweep({"flow..cc": ["reno"]}), "'flow..cc' is not a dotted TOML key"),
        (lambda s: s.sweep({"flow.main.cc": ["cubic", {"kind": "cubic"}]}), "flow.main.cc the value .* twice"),
        (lambda s: s.sweep({"link.bottleneck.forward.queue.reorder.interval": [5, 5.0]}), "the value 5.0 twice"),
        (lambda s: s.set('sweep."flow.main.cc"', ["reno", "reno"]).sweep(), 'the value "reno" twice'),
        (lambda s: s.sweep(GRID, repeat=10_000_000), "at most 10,000,000 were expected"),
    ],
)
def test_bad_options(scenario_file: Path, call: Callable[[Scenario], object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        call(scenario(scenario_file))


def test_flatten_has_figures_only() -> None:
    summary = {
        "flows": {"a/0": {"goodput_mbit_s": 1, "flow_completion_time_s": None,
                          "reordering": {"n_reordering": {"1": 0.1}}}},
        "links": {"l": {"forward": {"sent_packets": 3}}},
        "fairness": {"jain_index": 1.0},
    }  # fmt: skip
    flat = flatten(cast("Summary", summary))
    assert flat == {
        "flow.a/0.goodput_mbit_s": 1.0,
        "flow.a/0.flow_completion_time_s": None,
        "link.l.forward.sent_packets": 3.0,
        "fairness.jain_index": 1.0,
    }


@pytest.mark.parametrize("name", ["main", "platform", "flows", "resolved_scenario"])
def test_figures_are_read_for_any_names_of_flows(name: str) -> None:
    scenario = Scenario('A "resolved_scenario":{} and ,"platform":"', duration="0.1 s")
    scenario = scenario.link("platform", between=("S", "R"), rate="10 Mbit/s")
    scenario = scenario.flow("first", source="S", target="R").flow(name, source="S", target="R")
    run = scenario.run()
    read = read_summary(run.summary_json)
    assert flatten(read) == flatten(run.summary)
    assert "resolved_scenario" not in read


def test_axes_of_numpy_are_axes_of_numbers(scenario_file: Path) -> None:
    path = "link.bottleneck.forward.queue.reorder.interval"
    intervals: Any = np.array([4, 50])
    result = scenario(scenario_file).sweep({"flow.main.cc": ["cubic"], path: intervals})
    assert result.frame.get_column(path).to_list() == [4, 50]


def test_two_spellings_of_a_path_are_one_axis(scenario_file: Path) -> None:
    result = scenario(scenario_file).sweep({'flow."main".cc': ["cubic"]})
    assert result.axes == ["flow.main.cc", "link.bottleneck.forward.queue.reorder.interval"]
    assert result.frame.height == 14


def test_a_mistake_is_reported_for_the_grid_and_its_point(scenario_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("the work was begun")

    monkeypatch.setattr(_engine, "summarize_many", never)
    with pytest.raises(_engine.ScenarioError) as caught:
        scenario(scenario_file).sweep({**GRID, "flow.main.cc": ["cubic", "cubik"]})
    assert caught.value.file == "grid 'flow.main.cc=\"cubik\"'"
    assert str(caught.value).startswith("grid 'flow.main.cc=\"cubik\"': unknown congestion control `cubik`")
    interval = "link.bottleneck.forward.queue.reorder.interval=4"
    assert str(caught.value).endswith(f'\n = at the grid\'s point flow.main.cc="cubik", {interval}')


def test_all_points_are_checked_before_the_first_run(scenario_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value is valid alone, and so is every point of a diagonal through the grid."""
    monkeypatch.setattr(_engine, "summarize_many", lambda *_, **__: pytest.fail("the work was begun"))
    with pytest.raises(_engine.ScenarioError, match=r'duration="2 s", warmup="3 s"$'):
        scenario(scenario_file).sweep({"duration": ["2 s", "4 s"], "warmup": ["1 s", "3 s"]})


def test_a_failing_point_preserves_the_others(
    scenario_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = _engine.summarize_many
    error = _engine.ScenarioError.__new__(_engine.ScenarioError)
    error.file, error.args = "f.toml", ("f.toml: it does not work out",)

    def failing(jobs: list[Any], **options: Any) -> Any:
        if any('flow.main.cc="cubic"' in sets and sets[-1].endswith("=4") for _, _, sets, _ in jobs):
            raise error
        return original(jobs, **options)

    monkeypatch.setattr(_engine, "summarize_many", failing)
    with pytest.raises(_engine.ScenarioError, match=r'point flow\.main\.cc="cubic", .*interval=4$'):
        scenario(scenario_file).sweep(GRID, out=tmp_path / "out")
    assert len(kept_points(tmp_path / "out")) == 3
    points = {f"points/{p.name}" for p in (tmp_path / "out" / "points").iterdir()}
    assert set(json.loads((tmp_path / "out" / "anabranch.json").read_bytes())["files"]) == points


def test_the_manifest_lists_our_files(scenario_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    scenario(scenario_file).sweep(GRID, out=out)
    (out / "notes.txt").write_text("mine")
    (out / "points" / "mine.json").write_text("{}")
    scenario(scenario_file).set("seed", 2).sweep(GRID, out=out)
    scenario(scenario_file).sweep(GRID, out=out)
    files = set(json.loads((out / "anabranch.json").read_bytes())["files"])
    assert len(files) == 6
    assert {"runs.csv", "runs.parquet", "sweep.json", "table.parquet"} < files
    assert not {"notes.txt", "points/mine.json"} & files
    assert (out / "notes.txt").read_text() == "mine"


def test_a_sweep_is_read_back_unchanged(scenario_file: Path, tmp_path: Path) -> None:
    first = scenario(scenario_file).sweep(GRID, repeat=2, out=tmp_path / "out")
    again = SweepResult.read(tmp_path / "out")
    assert again.axes == first.axes
    assert again.frame.equals(first.frame)
    assert again.scenario == first.scenario
    rows = pl.read_csv(tmp_path / "out" / "runs.csv")
    assert rows.columns == first.frame.columns
    assert rows.get_column("flow.main.goodput_mbit_s").to_list() == pytest.approx(
        first.frame.get_column("flow.main.goodput_mbit_s").to_list(), rel=1e-12
    )
    about = json.loads((tmp_path / "out" / "sweep.json").read_bytes())
    assert about["axes"] == GRID
    assert (about["seeds"], about["runs"], about["set"]) == ([1, 2], 8, ['duration="1.0 s"'])
    assert about["measures"] == first.figures()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("sweep.json", None, r"sweep\.json: no such file; the sweep is not finished"),
        ("runs.parquet", None, r"runs\.parquet: no such file; the sweep is not finished"),
        ("sweep.json", "[", r"sweep\.json:1:2: not JSON"),
        ("sweep.json", "\0\0", "not JSON"),
        ("sweep.json", '{"kind": "run"}', "does not describe a sweep"),
        ("sweep.json", '{"kind": "sweep", "format": 2}', "has format 2; format 1 was expected"),
        ("sweep.json", '{"kind": "sweep", "format": 1}', 'lacks "scenario"'),
        ("runs.parquet", "PAR1", "is not a whole Parquet table"),
    ],
)
def test_a_changed_sweep_is_not_read(varied: Path, tmp_path: Path, name: str, content: str | None, says: str) -> None:
    Scenario.from_file(varied).sweep(out=tmp_path / "out")
    if content is None:
        (tmp_path / "out" / name).unlink()
    else:
        (tmp_path / "out" / name).write_text(content)
    with pytest.raises(UserError, match=says):
        SweepResult.read(tmp_path / "out")


def test_jobs_are_limited_to_the_number_of_runs(scenario_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = _engine.summarize_many
    asked: list[int] = []

    def watching(jobs: list[Any], **options: Any) -> Any:
        asked.append(options["threads"])
        return original(jobs, **options)

    monkeypatch.setattr(_engine, "summarize_many", watching)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    scenario(scenario_file).sweep(GRID, jobs=1000)
    scenario(scenario_file).sweep(GRID, repeat=3, jobs=1000)
    assert asked == [4, 8]


VARIED = """
duration = "0.2 s"
[link.a]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "1 ms"
[flow.a]
from = "S"
to = "R"
[flow.b]
from = "S"
to = "R"
[sweep]
"link.a.rate" = ["1 Mbit/s", "2 Mbit/s"]
"""


@pytest.fixture
def varied(tmp_path: Path) -> Path:
    file = tmp_path / "varied.toml"
    file.write_text(VARIED)
    return file


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--set", "link.a.rate=5 Mbit/s"],
            "--set 'link.a.rate=5 Mbit/s' would be ignored: [sweep] varies link.a.rate",
        ),
        (
            ["--set", 'link."a".delay=5 ms', "--grid", "link.a.delay=1 ms,2 ms"],
            "--set 'link.\"a\".delay=5 ms' would be ignored: --grid varies link.a.delay",
        ),
        (
            ["--set", "flow.a.cc.kind=cubic", "--grid", "flow.a.cc=reno,cubic"],
            "--set 'flow.a.cc.kind=cubic' would be ignored: --grid varies flow.a.cc",
        ),
        (
            ["--set", "flow.a.transport={ sack = true }", "--grid", "flow.a.transport.sack=true,false"],
            "--set 'flow.a.transport={ sack = true }' would be ignored: --grid varies flow.a.transport.sack",
        ),
        (
            ["--set", "sweep.'link.a.rate'=['5 Mbit/s']", "--grid", "link.a.rate=1 Mbit/s,2 Mbit/s"],
            "beside --grid link.a.rate: the first would be ignored",
        ),
        (["--set", "sweep.repeat=2", "--repeat", "3"], "--set 'sweep.repeat=2' beside --repeat 3: it would be ignored"),
    ],
)
def test_a_change_without_effect_on_any_run_is_refused(
    anabranch: Call, varied: Path, options: list[str], message: str
) -> None:
    done = anabranch("sweep", varied, *options)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


def test_a_change_that_affects_every_run_is_accepted(anabranch: Call, varied: Path) -> None:
    changes = ["--set", "link.a.queue={ kind = 'drop-tail' }", "--set", "sweep.repeat=1", "--set", "seed=5"]
    done = anabranch("sweep", varied, *changes, "--grid", "link.a.queue.limit=10 packets,20 packets")
    assert done.status == 0, done.err


def test_columns_have_distinct_names(anabranch: Call, varied: Path) -> None:
    grid = ["--grid", "flow.a.cc=reno,cubic", "--grid", "flow.b.cc=reno"]
    done = anabranch("sweep", varied, *grid)
    assert done.status == 0, done.err
    head = next(line for line in done.out.splitlines() if line.startswith("rate"))
    assert head.split()[:3] == ["rate", "a.cc", "b.cc"]
    assert "a.cc (flow.a.cc), b.cc (flow.b.cc)" in " ".join(done.out.split())
    assert [line for line in done.out.splitlines() if len(line) > 80] == []
    assert short_names(["a.b.c", "x.b.c", "c"]) == ["a.b.c", "x.b.c", "c"]
    assert short_names(["link.a.rate", "link.a.forward.rate", "link.a.delay"]) == ["a.rate", "forward.rate", "delay"]
    assert short_names(["rate", "a.rate", 'link."a.rate"']) == ["rate", "a.rate", '"a.rate"']
    assert short_names(["link.a.rate", "flow.m.cc"]) == ["rate", "cc"]


def test_truth_values_are_shown_as_in_files(anabranch: Call, varied: Path, tmp_path: Path) -> None:
    grid = ["--grid", "flow.a.transport.sack=true,false", "--grid", "flow.b.cc=cubic,{ kind = 'reno' }"]
    done = anabranch("sweep", varied, *grid, "--out", tmp_path / "out")
    assert done.status == 0, done.err
    assert "true" in done.out
    assert "false" in done.out
    assert "True" not in done.out
    frame = Scenario.from_file(varied).sweep({"flow.a.transport.sack": [True, False]}).frame
    assert frame.get_column("flow.a.transport.sack").to_list() == [True, False] * 2
    assert value_text(True) == "true"
    assert value_text("a") == "a"


@pytest.mark.parametrize("untrusted", [False, True])
def test_an_error_in_the_files_own_grid_has_a_location(
    anabranch: Call, varied: Path, tmp_path: Path, untrusted: bool
) -> None:
    named = "nope.txt"
    if untrusted:
        (tmp_path / "secret.txt").write_text("1\n")
        varied = tmp_path / "in" / "varied.toml"
        varied.parent.mkdir()
        named = "../secret.txt"
    varied.write_text(
        VARIED
        + f"""'link.a.impair' = [
    [],
    [{{ kind = "loss-list", file = "{named}" }}],
]
"""
    )
    done = anabranch("sweep", varied, *(["--untrusted"] if untrusted else []))
    assert (done.status, done.out) == (2, "")
    line = VARIED.count("\n") + 3
    assert done.err.startswith(f"error: {varied}:{line}:5: ")
    assert f"{line} |     [{{ kind = " in done.err
    assert "--grid" not in done.err
    # A value on the command line has no location in the file.
    done = anabranch("sweep", varied, "--grid", f"link.a.impair=[[],[{{kind='loss-list',file='{named}x'}}]]")
    assert done.err.startswith("error: --grid 'link.a.impair=")


def test_a_path_that_needs_quotation_marks_is_suggested_with_them(anabranch: Call, varied: Path) -> None:
    done = anabranch("sweep", varied, "--grid", "flow.$a.cc=reno")
    assert (done.status, done.out) == (2, "")
    assert """--grid 'flow."$a".cc=A,B,C'""" in done.err


def test_a_location_is_found_in_a_nested_or_escaped_grid() -> None:
    text = '\ufeff[sweep]\n"link.\\"x y\\".rate" = ["1 Mbit/s", "\\u0041"] # why\nrepeat = 2\n'
    found = origins(text, "s.toml")
    assert [(path, place.line, place.column) for path, place in found.items()] == [
        ('link."x y".rate="1 Mbit/s"', 2, 24),
        ('link."x y".rate="A"', 2, 36),
    ]
    assert origins(text, "s.toml", ['link."x y".rate']) == {}
    assert origins("[sweep", "s.toml") == {}


COPIES = """
duration = "1 s"
[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }
[flow.main]
from = "A"
to = "B"
start_spread = "300 ms"
[flow.other]
from = "B"
to = "A"
[sweep]
"flow.main.count" = [1, 2, 6]
"""


@pytest.fixture(scope="module")
def copies() -> SweepResult:
    return Scenario.from_text(COPIES).sweep(repeat=2)


def test_a_flow_is_the_mean_of_its_copies_run_by_run(copies: SweepResult) -> None:
    for row in copies.frame.iter_rows(named=True):
        count = row["flow.main.count"]
        each = [row[f"flow.main/{i}.goodput_mbit_s"] for i in range(count)] if count > 1 else None
        if each is not None:
            assert row["flow.main.goodput_mbit_s"] == pytest.approx(sum(each) / count)
        assert row["flow.main.goodput_mbit_s"] > 0
        assert row["flow.other.goodput_mbit_s"] > 0
    assert all(one is not None and one.interval.n == 2 for _, one in copies.estimates("flow.main.mean_srtt_ms"))


def test_copies_without_a_figure_are_excluded_from_its_mean() -> None:
    flows = {
        "a/0": {"flow_completion_time_s": 2.0, "refused": {"old_ack": 3}, "transfers": None},
        "a/1": {"flow_completion_time_s": None, "refused": {}, "transfers": None},
        "b": {"flow_completion_time_s": None, "refused": {}, "transfers": None},
    }
    flat = flatten(cast("Summary", {"flows": flows}), means=True)
    assert flat["flow.a.flow_completion_time_s"] == 2.0
    # A counter that a copy does not list is 0.
    assert flat["flow.a.refused.old_ack"] == 1.5
    assert flat["flow.b.flow_completion_time_s"] is None
    assert not any("transfers" in name for name in flat)
    assert list(flat).index("flow.a.flow_completion_time_s") < list(flat).index("flow.a/0.flow_completion_time_s")


def test_the_table_of_a_count_has_the_mean_and_no_copy(tmp_path: Path, anabranch: Call) -> None:
    file = tmp_path / "copies.toml"
    file.write_text(COPIES)
    done = anabranch("sweep", str(file), "--out", str(tmp_path / "out"))
    assert "main/0" not in done.out
    assert "–" not in done.out
    assert "main: mean over the copies of the flow (count)" in done.out
    assert [line.split()[:2] for line in done.out.splitlines() if line[:1].isdigit()][:3] == [
        ["1", "1"],
        ["2", "1"],
        ["6", "1"],
    ]
    columns = pl.read_csv(tmp_path / "out" / "runs.csv").columns
    assert {"flow.main.goodput_mbit_s", "flow.main/5.goodput_mbit_s"} <= set(columns)


def test_a_chart_over_the_count_needs_no_copy(copies: SweepResult) -> None:
    axes = copies.plot("main.goodput_mbit_s")
    assert axes.get_ylabel() == "goodput (Mbit/s), flow main"
    assert "main/0" not in copies._repr_html_()


def test_seeds_until_narrow_use_the_mean_of_copies() -> None:
    swept = Scenario.from_text(COPIES).sweep(until="flow.main.goodput_mbit_s:0.1%", repeat=18)
    runs = swept.frame.get_column("flow.main.count").value_counts(sort=False)
    assert dict(runs.iter_rows())[6] == 18


@pytest.mark.parametrize("repeat", [0, -3])
@pytest.mark.parametrize("more", [{}, {"until": "flow.main.goodput_mbit_s:5%"}])
def test_a_missing_seed_is_an_error_before_any_run(
    repeat: int, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("a run")

    monkeypatch.setattr(_engine, "summarize_many", never)
    with pytest.raises(UserError, match=rf"repeat={repeat}.*at least 1 was expected"):
        Scenario.from_text(COPIES).sweep(repeat=repeat, **more)
