"""Comparison of runs and sweeps: laws of differences, refusals, written files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anabranch import Scenario, UserError, _engine
from anabranch.compare import compare
from anabranch.compare.difference import Sample, difference
from anabranch.compare.inputs import Input, read_inputs, read_summary
from anabranch.compare.settings import differing
from anabranch.plot.compare import scale_of
from anabranch.result.measures import columns_of
from anabranch.statistics.statistics import paired_test, welch_test

from .command import Call

LOSSY = """
title = "A lossy path"
duration = "2 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }
forward.impair = [{ kind = "bernoulli-loss", rate = 0.002 }]
[flow.main]
from = "A"
to = "B"
"""
RATE = "link.path.forward.impair.0.rate"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directories of runs and sweeps of two controls, and their scenario files."""
    place = tmp_path_factory.mktemp("made")
    for control in ("reno", "cubic"):
        (place / f"{control}.toml").write_text(f'{LOSSY}cc = "{control}"\n')
        scenario = Scenario.from_file(place / f"{control}.toml")
        run = scenario.run(samples_ms=10)
        run.write(place / f"run-{control}")
        (place / f"json-{control}.json").write_text(run.summary_json)
        scenario.sweep({RATE: [0.001, 0.01]}, repeat=3, out=place / f"grid-{control}")
        scenario.sweep(repeat=4, out=place / f"repeat-{control}")
        scenario.copy().set("seed", 11).sweep(repeat=4, out=place / f"other-seeds-{control}")
    return place


@pytest.fixture
def inside(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Changes to the directory of `made`."""
    monkeypatch.chdir(made)
    return made


FLOATS = st.floats(-1e6, 1e6)
VALUES = st.lists(FLOATS, min_size=2, max_size=8)


def test_p_values_are_students() -> None:
    welch = welch_test([1, 2, 3, 4, 5], [2, 3, 4, 5, 6])
    assert welch.p == pytest.approx(0.34659, abs=1e-5)
    assert (welch.lower + welch.upper) / 2 == pytest.approx(1)
    paired = paired_test([1, 2, 3], [2, 4, 3.5])
    # With two degrees of freedom the distribution has a closed form.
    assert paired.p == pytest.approx(1 - (7**0.5) / 3)
    assert not paired.is_significant
    assert paired_test([1, 2, 3], [3, 4, 5]).p == 0
    assert welch_test([1, 1], [1, 1]).p == 1


@given(VALUES, VALUES)
def test_a_test_does_not_depend_on_the_order_of_its_sides(a: list[float], b: list[float]) -> None:
    n = min(len(a), len(b))
    for one, other in ((welch_test(a, b), welch_test(b, a)), (paired_test(a[:n], b[:n]), paired_test(b[:n], a[:n]))):
        assert one.p == pytest.approx(other.p, abs=1e-9)
        assert 0 <= one.p <= 1
        assert one.lower == pytest.approx(-other.upper, abs=1e-6)
        # The interval and the test agree, apart from rounding at the very edge.
        if abs(one.p - 0.05) > 1e-6 and one.lower != one.upper:
            assert one.is_significant == (one.lower > 0 or one.upper < 0)


@given(st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=6))
def test_a_difference_is_the_difference_of_the_means(pairs: list[tuple[float, float]]) -> None:
    first = Sample(tuple((seed, str(seed), a) for seed, (a, _) in enumerate(pairs)))
    other = Sample(tuple((seed, str(seed), b) for seed, (_, b) in enumerate(pairs)))
    found, back = difference(first, other), difference(other, first)
    assert found is not None
    assert back is not None
    assert found.absolute == -back.absolute
    assert (found.test is None) == (len(pairs) == 1)
    if first.estimate is not None and first.estimate.interval.mean != 0:
        assert found.percent is not None
        assert found.percent * found.absolute >= 0


def test_seeds_choose_the_test() -> None:
    first = Sample(((1, "a", 1.0), (2, "b", 2.0), (3, "c", 4.0)))
    same = Sample(((3, "d", 5.0), (1, "e", 2.0), (2, "f", 3.0)))
    others = Sample(((4, "d", 5.0), (5, "e", 2.0), (6, "f", 3.0)))
    one = Sample(((4, "d", 5.0),))
    repeats = Sample(((1, "x", 5.0), (2, "x", 5.0), (3, "x", 5.0)))
    assert _test_of(first, same) == ("paired t", 0.0)
    assert _test_of(first, others)[0] == "Welch t"
    assert _test_of(first, one) == (None, None)
    assert _test_of(repeats, repeats) == (None, None)
    assert _test_of(first, repeats)[0] == "paired t"
    assert difference(first, Sample()) is None


def _test_of(first: Sample, other: Sample) -> tuple[str | None, float | None]:
    found = difference(first, other)
    assert found is not None
    return (found.test.name, found.test.p) if found.test else (None, None)


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=1, max_size=8)


@given(NAMES, NAMES)
def test_the_name_of_a_figure_is_parsed(flow: str, link: str) -> None:
    columns = columns_of(
        [f"flow.{flow}.goodput_mbit_s", f"flow.{flow}.fec.releases.timeout", f"link.{link}.forward.utilization",
         f"group.{link}.port_seconds.up", f"gateway.{link}.reverse.routes.a.sent_bytes", "fairness.jain_index", "seed"]
    )  # fmt: skip
    assert [(c.element, c.measure.section, c.measure.name) for c in columns] == [
        (flow, "flow", "goodput_mbit_s"),
        (flow, "flow", "fec.releases.timeout"),
        (f"{link} forward", "link", "utilization"),
        (link, "group", "port_seconds.up"),
        (f"{link} reverse", "gateway", "routes.a.sent_bytes"),
        ("", "fairness", "jain_index"),
    ]


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=6, unique=True), st.sampled_from(["", "ms", "Mbit/s"]))
def test_an_axis_of_quantities_is_ordered(values: list[int], unit: str) -> None:
    scale = scale_of([f"{value} {unit}" for value in values])
    assert scale.is_numeric
    assert scale.unit == unit
    assert list(scale.places.values()) == values


def test_an_axis_with_several_units_is_ordered() -> None:
    scale = scale_of(["500 kbit/s", "2 Mbit/s", "0.01 Gbit/s"])
    assert (list(scale.places.values()), scale.unit) == ([0.5, 2.0, 10.0], "Mbit/s")


@pytest.mark.parametrize("values", [["reno", "cubic"], ["1 ms", "1 bdp"], [True, False], ["1 ms", 2]])
def test_any_other_axis_is_numbered(values: list[Any]) -> None:
    scale = scale_of(values)
    assert not scale.is_numeric
    assert list(scale.places.values()) == [0, 1]


def test_settings_are_named_once() -> None:
    def link(delay: str, queue: str) -> dict[str, Any]:
        both = {"rate": "1 Mbit/s", "delay": delay}
        forward = {**both, "queue": {"kind": queue, queue: 1}}
        return {"link": {"a": {**forward, "between": ["A", "B"], "forward": forward, "reverse": both}}}

    assert differing([link("1 ms", "red"), link("2 ms", "pie")]) == [
        ("link.a.delay", ("1 ms", "2 ms")),
        ("link.a.forward.queue.kind", ("red", "pie")),
    ]
    assert differing([link("1 ms", "red"), link("2 ms", "red")], without=["link.a.delay"]) == []
    assert differing([link("1 ms", "red"), {}]) == []


def test_swapping_two_runs_negates_every_difference(made: Path) -> None:
    forth, back = (
        compare(read_inputs([made / a, made / b]), everything=True)
        for a, b in (("run-reno", "run-cubic"), ("run-cubic", "run-reno"))
    )
    assert len(forth.blocks) > 20
    for one, other in zip(forth.blocks, back.blocks, strict=True):
        for row, swapped in zip(one.rows, other.rows, strict=True):
            assert row.cells == swapped.cells[::-1]
            ahead, behind = row.differences[1], swapped.differences[1]
            assert (ahead is None) == (behind is None)
            if ahead is not None and behind is not None:
                assert ahead.absolute == -behind.absolute


def test_a_directory_its_summary_and_its_scenario_are_the_same_run(made: Path, tmp_path: Path) -> None:
    forms = [made / "run-reno", made / "json-reno.json", made / "reno.toml"]
    for other in forms[1:]:
        comparison = compare(read_inputs([forms[0], other]), everything=True)
        assert not comparison.settings
        assert not comparison.remarks
        assert all(d is None or d.absolute == 0 for b in comparison.blocks for r in b.rows for d in r.differences)
    shutil.copytree(made / "run-reno", tmp_path / "copy")
    inputs = read_inputs([made / "run-reno" / "summary.json", tmp_path / "copy"])
    assert [one.name for one in inputs] == ["run-reno", "copy"]
    assert all(one.run is not None and one.run.samples is not None for one in inputs)


def test_scenarios_are_run_with_one_seed(inside: Path) -> None:
    (inside / "seven.toml").write_text("seed = 7\n" + (inside / "reno.toml").read_text())
    assert [i.seeds for i in read_inputs(["seven.toml", "cubic.toml"])] == [[7], [7]]
    assert [i.seeds for i in read_inputs(["run-cubic", "seven.toml"])] == [[1], [1]]
    assert [i.seeds for i in read_inputs(["run-cubic", "seven.toml"], seed=5)] == [[1], [5]]


def test_repeated_scenarios_are_a_sweep_of_the_seed(inside: Path) -> None:
    inputs = read_inputs(["repeat-reno", "reno.toml", "cubic.toml"], repeat=4)
    assert [one.seeds for one in inputs] == [[1, 2, 3, 4]] * 3
    first, same, other = compare(inputs, ["goodput_mbit_s"]).blocks[0].rows[0].differences
    assert first is None
    assert same is not None
    assert (same.absolute, same.test and same.test.p) == (0, 1)
    assert other is not None
    assert other.test is not None
    assert other.test.name == "paired t"
    assert [one.seeds for one in read_inputs(["reno.toml", "cubic.toml"], seed=7, repeat=2)] == [[7, 8]] * 2


def test_sweeps_are_compared_point_by_point(made: Path) -> None:
    comparison = compare(read_inputs([made / "grid-reno", made / "grid-cubic"]), ["goodput_mbit_s"])
    (block,) = comparison.blocks
    assert [row.point for row in block.rows] == [(0.001,), (0.01,)]
    for row in block.rows:
        assert all(cell is not None and cell.interval.n == 3 for cell in row.cells)
        assert row.differences[1] is not None
        assert row.differences[1].test is not None
        assert row.differences[1].test.name == "paired t"
    assert comparison.settings[0] == ("flow.main.cc.kind", ("reno", "cubic"))


def test_other_seeds_are_compared_by_welchs_test(inside: Path, anabranch: Call) -> None:
    done = anabranch("compare", "repeat-reno", "other-seeds-reno", "--measure", "goodput_mbit_s")
    assert done.status == 0, done.err
    assert "the seeds differ: repeat-reno 1‥4, other-seeds-reno 11‥14" in done.out
    document = json.loads(anabranch("compare", "repeat-reno", "other-seeds-reno", "--json").out)
    rows = [row for measure in document["measures"] for row in measure["rows"]]
    assert {d["test"] for row in rows for d in row["differences"][1:] if d} <= {"Welch t", None}


def test_points_of_only_one_sweep_are_left_out(made: Path, tmp_path: Path) -> None:
    scenario = Scenario.from_file(made / "cubic.toml")
    scenario.sweep({RATE: [0.01, 0.02]}, repeat=2, out=tmp_path / "more")
    comparison = compare(read_inputs([made / "grid-reno", tmp_path / "more"]), ["timeouts"])
    assert [row.point for row in comparison.blocks[0].rows] == [(0.01,)]
    assert "2 points of the grid are not in all inputs and are left out" in comparison.remarks
    scenario.sweep({RATE: [0.5]}, out=tmp_path / "none")
    with pytest.raises(UserError, match="have no point of the grid in common"):
        compare(read_inputs([made / "grid-reno", tmp_path / "none"]))


def test_every_figure_is_in_the_json(inside: Path, anabranch: Call) -> None:
    document = json.loads(anabranch("compare", "run-reno", "json-cubic.json", "cubic.toml", "--json").out)
    assert (document["kind"], document["of"], document["format"]) == ("comparison", "run", 1)
    assert [one["name"] for one in document["inputs"]] == ["run-reno", "json-cubic", "cubic"]
    goodput = next(m for m in document["measures"] if m["name"] == "goodput_mbit_s")
    summary = json.loads((inside / "json-cubic.json").read_bytes())
    assert goodput["rows"][0]["values"][1]["mean"] == summary["flows"]["main"]["goodput_mbit_s"]
    assert goodput["rows"][0]["differences"][0] is None
    figures = {(m["section"], m["name"]) for m in document["measures"]}
    assert {("flow", name) for name, value in summary["flows"]["main"].items() if isinstance(value, float)} <= figures


def test_of_many_copies_the_mean_is_shown(tmp_path: Path, anabranch: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for control in ("reno", "cubic"):
        Path(f"{control}.toml").write_text(f'{LOSSY}cc = "{control}"\ncount = 5\n')
    document = json.loads(anabranch("compare", "reno.toml", "cubic.toml", "--json").out)
    goodput = next(m for m in document["measures"] if m["name"] == "goodput_mbit_s")
    mean, *each = goodput["rows"]
    assert [row["of"] for row in goodput["rows"]] == ["main", *(f"main/{i}" for i in range(5))]
    for i in range(2):
        assert mean["values"][i]["mean"] == pytest.approx(sum(row["values"][i]["mean"] for row in each) / 5)
    done = anabranch("compare", "reno.toml", "cubic.toml", "--measure", "goodput_mbit_s")
    assert [line.split()[0] for line in done.out.splitlines() if line.startswith("main ")] == ["main"]
    assert "main: mean over the copies of the flow (count)" in done.out
    done = anabranch("compare", "reno.toml", "cubic.toml", "--measure", "flow.main/3.goodput_mbit_s")
    assert [line.split()[0] for line in done.out.splitlines() if line.startswith("main")] == ["main/3"]


def test_sweeps_over_the_count_compare_means(tmp_path: Path, anabranch: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for control in ("reno", "cubic"):
        Path(f"{control}.toml").write_text(f'{LOSSY}cc = "{control}"\n')
        anabranch("sweep", f"{control}.toml", "--grid", "flow.main.count=1,3", "--out", control)
    done = anabranch("compare", "reno", "cubic", "--measure", "goodput_mbit_s")
    assert "main/" not in done.out
    rows = [line.split() for line in done.out.splitlines() if line[:2] in ("1 ", "3 ")]
    assert [row[0] for row in rows] == ["1", "3"]
    assert not any("–" in row for row in rows)


def test_one_flow_is_compared_with_the_mean_of_several(tmp_path: Path, anabranch: Call) -> None:
    for count in (1, 3):
        (tmp_path / f"{count}.toml").write_text(f"{LOSSY}count = {count}\n")
    paths = [str(tmp_path / f"{count}.toml") for count in (1, 3)]
    document = json.loads(anabranch("compare", *paths, "--json").out)
    assert document["remarks"] == []
    goodput = next(m for m in document["measures"] if m["name"] == "goodput_mbit_s")
    assert goodput["rows"][0]["of"] == "main"
    assert all(goodput["rows"][0]["values"])


@pytest.mark.parametrize(
    "inputs",
    [
        ["run-reno", "run-cubic"],
        ["run-reno", "run-cubic", "json-reno.json", "json-cubic.json", "reno.toml", "cubic.toml"],
        ["grid-reno", "grid-cubic"],
        ["repeat-reno", "repeat-cubic", "other-seeds-reno", "other-seeds-cubic"],
        ["a-run-with-a-name-that-has-room-in-no-table-of-80-columns", "run-cubic", "run-reno"],
    ],
)
def test_tables_fit_80_columns(inside: Path, anabranch: Call, inputs: list[str]) -> None:
    if inputs[0].startswith("a-run") and not Path(inputs[0]).exists():
        shutil.copytree("run-reno", inputs[0])
    done = anabranch("compare", *inputs)
    assert done.status == 0, done.err
    tables = done.out.partition("goodput (Mbit/s)")[2].partition("change: in per cent")[0]
    assert max(map(len, tables.splitlines())) <= 80
    assert tables.count("±") > 4 or not inputs[0].startswith(("grid", "repeat"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run-reno"], "error: one input has nothing to be compared with\n"),
        (["run-reno", "run-reno/"], "error: run-reno and run-reno are the same\n"),
        (["run-reno", "run-reno/summary.json"], "error: run-reno and run-reno/summary.json are the same\n"),
        (["run-reno", "grid-reno"], "error: grid-reno is a sweep and run-reno is a run; runs are compared with runs, "),
        (["grid-reno", "reno.toml"], "error: grid-reno is a sweep and reno.toml is a scenario, which is one run; "),
        (["grid-reno", "repeat-reno"], f"vary different things: grid-reno {RATE}, repeat-reno only the seed\n"),
        (["run-reno", "run-cubik"], "error: run-cubik: no such file or directory; a directory of `run --out` or "),
        (["run-reno", "run-cubik"], '  did you mean "run-cubic"?\n'),
        (["run-reno", "run-cubic", "--measure", "godput"], 'error: no input has a measure "godput"\n'
                                                          '  did you mean "goodput_mbit_s"?\n'),
        (["run-reno", "run-cubic", "--measure", "flow.man.timeouts"], '  did you mean "flow.main.timeouts"?\n'),
        (["run-reno", "run-cubic", "--seed", "3"], "error: --seed 3 is for scenarios, and none is given\n"),
        (["run-reno", "reno.toml", "--seed", "-1"], "error: --seed -1: a whole number from 0 "),
        (["run-reno", "run-cubic", "--repeat", "3"], "error: --repeat 3 is for scenarios, and none is given\n"),
        (["run-reno", "reno.toml", "--repeat", "3"], "--repeat 3 makes a sweep of reno.toml, and run-reno is a run"),
        (["cubic.toml", "reno.toml", "--repeat", "0"], "error: --repeat 0: a whole number from 1 to 10,000,000 was "),
        (["run-reno", "."], "error: . is a directory that anabranch did not write; "),
        (["run-reno", "run-cubic/report.html"], "error: run-cubic/report.html is an HTML page; "),
        (["run-reno", "run-cubic/samples.parquet"], "error: run-cubic/samples.parquet is a Parquet table; "),
        (["run-reno", "run-cubic/anabranch.json"], "is JSON, but has no table \"flows\"; "),
    ],
)  # fmt: skip
def test_incomparable_inputs_are_refused(inside: Path, anabranch: Call, arguments: list[str], says: str) -> None:
    done = anabranch("compare", *arguments)
    assert (done.status, done.out) == (2, "")
    assert says in done.err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "x.json:1:1: not JSON"),
        ('{"flows": ', "x.json:1:11: not JSON"),
        ("[]", "is JSON, but not a table"),
        ('{"format": 1, "axes": [], "points": []}', "is the JSON of a sweep, which has means only"),
        ('{"study": "fec", "claims": []}', "is the JSON of a study"),
        ('{"format": 2, "flows": {}}', "has format 2, and this version reads format 1"),
        ('{"format": 1, "flows": {"a": 1}, "links": {}}', 'has no table "flows"'),
        ('{"format": 1, "flows": {}, "links": {}, "seed": true}', 'has no "seed" from 0'),
        ('{"format": 1, "flows": {}, "links": {}, "seed": 1, "digest": 1}', '"digest" is no text'),
        ('{"format": 1, "flows": {"\\ud800": {}}, "links": {}, "seed": 1}', "half a character"),
    ],
)
def test_foreign_json_is_named(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UserError) as caught:
        read_summary(tmp_path / "x.json")
    assert says in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(st.data(), JSON)
def test_a_summary_with_any_change_is_refused_or_compared(
    made: Path, tmp_path: Path, data: st.DataObject, value: object
) -> None:
    summary = json.loads((made / "json-reno.json").read_bytes())
    inner = summary
    while True:
        key = data.draw(st.sampled_from(sorted(inner)))
        if not isinstance(inner[key], dict) or not inner[key] or data.draw(st.booleans()):
            break
        inner = inner[key]
    inner[key] = value
    (tmp_path / "changed.json").write_text(json.dumps(summary))
    try:
        inputs = read_inputs([made / "run-reno", tmp_path / "changed.json"])
    except UserError:
        return
    json.dumps(compare(inputs, everything=True).to_json(), allow_nan=False)


def test_out_has_overlaid_figures_and_a_page(inside: Path, anabranch: Call, tmp_path: Path) -> None:
    for name in ("a", "b"):
        done = anabranch("compare", "run-reno", "cubic.toml", "json-cubic.json", "--out", tmp_path / name)
        assert done.status == 0, done.err
    files = sorted(str(p.relative_to(tmp_path / "a")) for p in (tmp_path / "a").rglob("*") if p.is_file())
    assert files == sorted(
        ["anabranch.json", "comparison.json", "report.html"]
        + [f"figures/{name}.svg" for name in ("cwnd", "goodput", "srtt")]
    )
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file
    page = (tmp_path / "a" / "report.html").read_text(encoding="utf-8")
    assert "Without samples, so that no chart over time has them: json-cubic." in page
    assert "Goodput counts data in order." in page
    charts = json.loads(page.partition('id="charts">')[2].partition("</script>")[0])
    assert {c["name"]: [s["label"] for s in c["series"]] for c in charts} == {
        name: ["run-reno", "cubic"] for name in ("cwnd", "goodput", "srtt")
    }
    assert anabranch("compare", "run-reno", tmp_path / "a").err.startswith(
        f"error: {tmp_path / 'a'} has the results of `anabranch compare`; "
    )


@pytest.mark.parametrize("kind", ["grid", "repeat"])
def test_out_of_sweeps_has_a_figure_for_each_measure(inside: Path, anabranch: Call, tmp_path: Path, kind: str) -> None:
    measures = ["--measure", "goodput_mbit_s", "--measure", "link.path.forward.utilization"]
    done = anabranch("compare", f"{kind}-reno", f"{kind}-cubic", *measures, "--out", tmp_path / "out")
    assert done.status == 0, done.err
    names = {p.stem for p in (tmp_path / "out" / "figures").iterdir()}
    assert names == {"goodput_mbit_s-main", "utilization-path-forward"}
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count("<figure>") == 2
    assert "p = " in page


def test_goodput_over_time_sums_up_to_the_delivered_bytes(made: Path) -> None:
    from anabranch.report.compare_columns import charts

    inputs = read_inputs([made / "run-reno", made / "run-cubic"])
    goodput = next(c for c in charts(compare(inputs)) if c.name == "goodput")
    for one, line in zip(inputs, goodput.series, strict=True):
        assert one.run is not None
        assert one.run.samples is not None
        delivered = one.run.samples["delivered_bytes"]
        times = one.run.samples["time_s"]
        span = times[-1] - times[0]
        assert line.y.mean() * span / 8 * 1e6 == pytest.approx(delivered[-1] - delivered[0], rel=1e-6)


def test_names_distinguish_inputs(tmp_path: Path, made: Path) -> None:
    for name in ("a/x", "b/x"):
        shutil.copytree(made / "run-reno", tmp_path / name)
    assert [i.name for i in read_inputs([tmp_path / "a/x", tmp_path / "b/x"])] == ["a/x", "b/x"]


def test_a_hostile_name_is_escaped(inside: Path, anabranch: Call, tmp_path: Path) -> None:
    summary = json.loads((inside / "json-reno.json").read_bytes())
    summary["flows"] = {"\x1b[31m<b>[red]\n": summary["flows"]["main"]}
    summary["scenario"] = "\x1b]0;title\x07"
    (tmp_path / "hostile.json").write_text(json.dumps(summary))
    done = anabranch("compare", tmp_path / "hostile.json", "json-reno.json", "--out", tmp_path / "out")
    assert done.status == 0, done.err
    assert "\x1b" not in done.out
    assert "<b>" not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8").replace("<b></b>", "")
    assert "no flow has the same name in all inputs" in done.out


def test_an_interrupt_leaves_nothing(
    inside: Path, anabranch: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_engine, "run", stop)
    done = anabranch("compare", "run-reno", "cubic.toml", "--out", tmp_path / "out")
    assert (done.status, done.out, done.err) == (130, "", "error: interrupted\n")
    assert not (tmp_path / "out").exists()


def test_an_unfinished_sweep_names_the_command_that_finishes_it(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "grid-reno", tmp_path / "half")
    (tmp_path / "half" / "sweep.json").unlink()
    with pytest.raises(UserError, match="the sweep is not finished\n  call the same `anabranch sweep … --out` again"):
        read_inputs([made / "grid-cubic", tmp_path / "half"])


def test_inputs_are_part_of_the_api(made: Path) -> None:
    assert isinstance(read_inputs([made / "run-reno", made / "run-cubic"])[0], Input)
