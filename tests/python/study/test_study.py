"""A whole study from directory to verdicts, robustness and report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anabranch import Study, UserError
from anabranch.plot.study import figures
from anabranch.study.results import Condition, Pool, grid

from ..sample import copied


@pytest.fixture
def jittered(tmp_path: Path) -> Path:
    """A writable copy with few points."""
    return copied(tmp_path / "sample", has_jitter=True)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """The same without jitter, which needs twenty seeds for each run."""
    return copied(tmp_path / "sample")


def test_every_claim_gets_a_verdict_and_its_control(jittered: Path) -> None:
    result = Study.load(jittered).run(quick=True)
    document = result.to_json()
    assert document["mode"] == "quick"
    assert [c["id"] for c in document["claims"]] == ["S1", "S2", "S4", "S5", "S9", "S11"]
    for claim in document["claims"]:
        assert claim["verdict"] in {"reproduced", "reproduced (fragile)", "not reproduced", "inconclusive"}
        assert ("why" in claim) == (claim["verdict"] != "reproduced")
        assert claim["jitter"] is not None
        assert claim["robustness"] is None
    assert document["claims"][0]["control"] is None
    assert all(c["control"] in {"reproduced", "not reproduced", "inconclusive"} for c in document["claims"][1:])
    json.dumps(document, allow_nan=False)


def test_a_wrong_system_reuses_the_runs_of_another_variant(jittered: Path) -> None:
    study = Study.load(jittered).definition
    pool = Pool(study)
    plain = pool.plan(Condition())
    wrong = pool.plan(Condition(wrong=study.wrongs["cubic_for_cubic_plus"]))
    assert {j.key for j in wrong} < {j.key for j in plain}
    other = pool.plan(Condition(wrong=study.wrongs["nothing_reordered"]))
    # The wrong interval is the same at every point: one run per variant, with and without samples.
    assert len({j.key for j in other} - {j.key for j in plain}) == 6
    assert {j.key for j in other if j.experiment == "plain"} <= {j.key for j in plain}


def test_changes_are_applied_in_order(jittered: Path) -> None:
    study = Study.load(jittered).definition
    pool = Pool(study)
    job = next(j for j in pool.plan(Condition(opens=(("queue", 70),), jitter=True)) if j.experiment == "reordering")
    assert job.sets == (
        'flow.main.transport.delayed_ack="off"',
        'link.bottleneck.forward.queue.limit="70 packets"',
        "flow.main.transport.initial_cwnd=10",
        'flow.main.cc="new-reno"',
        "link.bottleneck.forward.queue.reorder.interval=4",
        'flow.main.start_spread="1.2 ms"',
    )


def test_jitter_runs_twenty_seeds_and_samples_only_on_request(jittered: Path) -> None:
    study = Study.load(jittered).definition
    jobs = Pool(study).plan(Condition(jitter=True))
    assert {j.seed for j in jobs} == set(range(1, 21))
    assert {j.point for j in jobs if j.samples_ms is not None} == {(70,)}


def test_where_excludes_points(sample: Path) -> None:
    path = sample / "study.toml"
    path.write_text(
        path.read_text(encoding="utf-8").replace('axes = ["ri"]', 'axes = ["ri"]\nwhere = "ri != 15 and ri < 90"', 1),
        encoding="utf-8",
    )
    study = Study.load(sample).definition
    assert grid(study, study.experiments["reordering"], Condition()) == [(4,), (50,), (70,)]


@pytest.mark.long
def test_robustness_is_stored_and_becomes_outdated(jittered: Path) -> None:
    first = Study.load(jittered).run(quick=True, robustness=True)
    assert first.robustness is not None
    kept = json.loads((jittered / "robustness.json").read_bytes())
    assert len(kept["points"]) == 32
    assert {p["parameters"]["initial_cwnd"] for p in kept["points"]} == {1, 2, 4, 10}
    assert all(60 <= p["parameters"]["queue"] <= 100 for p in kept["points"])
    assert set(kept["claims"]) == {"S1", "S2", "S4", "S5", "S9", "S11"}

    again = Study.load(jittered).run(quick=True)
    assert again.robustness is not None
    assert not again.robustness.stale
    assert again.robustness.claims == first.robustness.claims

    path = jittered / "study.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("nearly every RI", "almost every RI"), encoding="utf-8")
    reworded = Study.load(jittered).run(quick=True).robustness
    assert reworded is not None
    assert not reworded.stale
    path.write_text(text.replace("share_below >= 0.8", "share_below >= 0.9"), encoding="utf-8")
    changed = Study.load(jittered).run(quick=True)
    assert changed.robustness is not None
    assert changed.robustness.stale
    assert changed.to_json()["claims"][0]["robustness_stale"] is True


def test_a_damaged_robustness_file_is_reported(sample: Path) -> None:
    (sample / "robustness.json").write_text("{}")
    with pytest.raises(UserError, match=r"robustness\.json: not a robustness result"):
        Study.load(sample).run(quick=True)


def test_an_unknown_figure_names_its_quantity(sample: Path) -> None:
    path = sample / "study.toml"
    text = path.read_text(encoding="utf-8").replace('"flow.main.fast_recoveries"', '"flow.main.fast_recovery"')
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        Study.load(sample).run(quick=True)
    assert str(caught.value).replace(str(sample), "s") == (
        's/study.toml: [quantity.fast_recoveries]: the summary has no figure "flow.main.fast_recovery"\n'
        '  did you mean "flow.main.fast_recoveries"?'
    )


def test_reports(sample: Path, tmp_path: Path) -> None:
    (sample / "plot.py").write_text(
        "def figures(study):\n"
        "    figure, axes = study.new_figure()\n"
        "    axes.plot(*study.line('normalised[cubic_plus]', 'ri'))\n"
        "    yield 'own', 'A figure of its own', figure\n"
    )
    result = Study.load(sample).run(quick=True)
    result.write(tmp_path / "a")
    result.write(tmp_path / "b")
    files = sorted(str(p.relative_to(tmp_path / "a")) for p in (tmp_path / "a").rglob("*") if p.is_file())
    assert files == sorted(
        ["anabranch.json", "report.html", "report.md", "runs.parquet", "samples.parquet", "study.json"]
        + [f"figures/{name}.svg" for name in ("fig3", "fig4", "fig6", "own")]
    )
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    page = (tmp_path / "a" / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml;base64,") == 4
    assert "Cubic+ replaced by CUBIC" in page
    assert 'src="http' not in page
    assert 'href="http' not in page
    report = (tmp_path / "a" / "report.md").read_text(encoding="utf-8")
    assert "| S2 | NewReno loses up to about 50 % | about 50 % | minimum over RI 4‥99 in 0.40–0.60 |" in report
    assert pl.read_parquet(tmp_path / "a" / "runs.parquet").height == 18


def test_a_figure_can_show_several_lines_of_one_variant(sample: Path) -> None:
    text = (sample / "study.toml").read_text(encoding="utf-8")
    one_line = 'y = "normalised"\nvariants = ["newreno", "cubic"]'
    assert one_line in text
    lines = 'x_scale = "log"\nlines = { "All" = "throughput", "A half" = "throughput / 2" }\nvariants = ["cubic"]'
    (sample / "study.toml").write_text(text.replace(one_line, lines, 1), encoding="utf-8")
    figure = next(f for name, _, f in figures(Study.load(sample).run(quick=True).results) if name == "fig3")
    (axes,) = figure.axes
    legend = axes.get_legend()
    assert legend is not None
    assert [t.get_text() for t in legend.get_texts()] == ["All", "A half"]
    whole, half = (np.asarray(line.get_ydata(), dtype=float) for line in axes.get_lines())
    assert whole == pytest.approx(2 * half)
    assert axes.get_xscale() == "log"
    assert len({line.get_color() for line in axes.get_lines()}) == 2


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1\n", r"plot.py: has no function figures\(study\)"),
        ("def figures(study):\n    study.line('min(', 'ri')\n    yield\n", "plot.py: min\\(: not an expression"),
        ("def figures(study):\n    yield 1 / 0\n", "plot.py: figures\\(\\) failed: ZeroDivisionError"),
    ],
)
def test_a_wrong_plot_py(sample: Path, tmp_path: Path, code: str, message: str) -> None:
    (sample / "plot.py").write_text(code)
    result = Study.load(sample).run(quick=True)
    with pytest.raises(UserError, match=message):
        result.write(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_find() -> None:
    with pytest.raises(UserError, match='there is no study "reorderin"'):
        Study.load("reorderin")
    with pytest.raises(UserError, match="is a file; a study is a directory"):
        Study.load(__file__)


def test_an_error_in_plot_py_is_reported_before_the_runs(sample: Path) -> None:
    (sample / "plot.py").write_text("def figures(study:\n")
    with pytest.raises(UserError, match=r"plot\.py:1:12: not valid Python"):
        Study.load(sample)


def test_open_parameters_of_variants_follow_the_variants_changes(sample: Path) -> None:
    path = sample / "study.toml"
    more = """
[[open]]
name = "beta"
path = "flow.main.cc.beta"
variants = ["cubic"]
value = 0.8
choices = [0.7, 0.8]
why = "a test"
"""
    path.write_text(path.read_text(encoding="utf-8") + more, encoding="utf-8")
    study = Study.load(sample)
    plain = {job.variant: list(job.sets) for job in Pool(study.definition, 1).plan(Condition())}
    assert plain["cubic"].index("flow.main.cc.beta=0.8") > plain["cubic"].index('flow.main.cc="cubic"')
    assert not [entry for variant in ("newreno", "cubic_plus") for entry in plain[variant] if "beta" in entry]
    other = {job.variant: list(job.sets) for job in Pool(study.definition, 1).plan(Condition(opens=(("beta", 0.7),)))}
    assert "flow.main.cc.beta=0.7" in other["cubic"]
    # A wrong system's replacement keeps its parameters.
    wrong = study.definition.wrongs["cubic_for_cubic_plus"]
    replaced = {job.variant: list(job.sets) for job in Pool(study.definition, 1).plan(Condition(wrong=wrong))}
    assert "flow.main.cc.beta=0.8" in replaced["cubic_plus"]
    text = path.read_text(encoding="utf-8").replace('variants = ["cubic"]\nvalue', 'variants = ["cubc"]\nvalue')
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="cubc"):
        Study.load(sample)
