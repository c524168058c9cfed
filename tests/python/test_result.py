"""Results of runs and sweeps: display, charts, pickling, and errors about missing records."""

from __future__ import annotations

import importlib
import multiprocessing
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from operator import methodcaller
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from matplotlib import pyplot

import anabranch
from anabranch import NotRecordedError, RunResult, Scenario, SweepResult, UserError
from anabranch.result.summary import TABLES

from .test_names import TITLES, read

T = TypeVar("T")


def scenario() -> Scenario:
    return (
        Scenario("Two hosts", duration="1 s")
        .link("a", between=("S", "R"), rate="5 Mbit/s", delay="10 ms",
              queue={"kind": "drop-tail", "limit": "10 packets"})
        .flow("one", source="S", target="R", stack="rfc")
        .flow("two", source="S", target="R", stack="rfc", cc="reno")
    )  # fmt: skip


@pytest.fixture(scope="module")
def bare() -> RunResult:
    return scenario().run()


@pytest.fixture(scope="module")
def full() -> RunResult:
    return scenario().run(samples_ms=10, packets=True, captures=["a.forward"])


@pytest.fixture(scope="module")
def swept() -> SweepResult:
    lossy = scenario().set("link.a.impair", [{"kind": "bernoulli-loss", "rate": 0.01}])
    return lossy.sweep({"link.a.delay": ["5 ms", "10 ms"], "flow.one.cc": ["reno", "cubic"]}, repeat=2)


def again(thing: T) -> T:
    restored: T = pickle.loads(pickle.dumps(thing))  # noqa: S301 - our own
    return restored


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("samples", "samples_ms=10"),
        ("link_samples", "samples_ms=10"),
        ("group_samples", "samples_ms=10"),
        ("packets", "packets=True"),
        ("window_events", "packets=True"),
    ],
)
def test_a_missing_record_names_its_argument(bare: RunResult, name: str, argument: str) -> None:
    with pytest.raises(NotRecordedError, match=f"^{name} was not recorded: pass {argument}$"):
        bare.table(name)
    assert not bare.recorded(name)
    assert bare.frame(name).is_empty()


def test_methods_name_the_record_they_need(bare: RunResult) -> None:
    with pytest.raises(NotRecordedError, match="pass packets=True"):
        bare.why()
    with pytest.raises(NotRecordedError, match=r"pass captures=\['a'\]"):
        bare.pcapng("a")
    with pytest.raises(NotRecordedError, match="pass samples_ms=10"):
        bare.plot("cwnd")
    with pytest.raises(NotRecordedError, match="pass samples_ms=10"):
        bare.plot(y="srtt_ms")
    with pytest.raises(NotRecordedError, match="live runs record it"):
        bare.table("ack_samples")


def test_a_record_may_be_empty(full: RunResult) -> None:
    assert full.recorded("group_samples")
    assert full.table("group_samples").is_empty()
    assert not full.table("packets").is_empty()


def test_a_result_survives_pickling(full: RunResult, bare: RunResult) -> None:
    for result in (full, again(full)):
        restored = again(result)
        assert restored.summary == full.summary
        assert restored.summary_json == full.summary_json
        for name in filter(full.recorded, TABLES):
            assert restored.table(name).equals(full.table(name))
        assert restored.pcapng("a.forward") == full.pcapng("a.forward")
        assert restored.why() == full.why()
        assert repr(restored) == repr(full)
        with pytest.raises(NotRecordedError):
            restored.pcapng("a.reverse")
    with pytest.raises(NotRecordedError):
        again(bare).table("samples")


def test_a_restored_result_writes_the_same_files(full: RunResult, tmp_path: Path) -> None:
    full.write(tmp_path / "a")
    again(full).write(tmp_path / "b")
    for file in (p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*.parquet")):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert (tmp_path / "a" / "report.html").read_bytes() == (tmp_path / "b" / "report.html").read_bytes()


def test_a_sweep_survives_pickling(swept: SweepResult) -> None:
    restored = again(swept)
    assert restored.axes == swept.axes
    assert restored.frame.equals(swept.frame)
    assert repr(restored) == repr(swept)


@pytest.mark.parametrize(
    "call",
    [
        lambda: scenario().set("flow.one.cc", "cubik"),
        lambda: scenario().run().table("samples"),
        lambda: Scenario.from_text("titel = 1").run(),
        lambda: scenario().with_sets("flow.one.cc=cubik").run(),
        lambda: Scenario.from_file("absent.toml"),
    ],
)
def test_an_error_survives_pickling(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        call()
    restored = again(caught.value)
    assert type(restored) is type(caught.value)
    assert str(restored) == str(caught.value)
    assert vars(restored) == vars(caught.value)


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_other_processes_run_scenarios(method: str) -> None:
    scenarios = [scenario().set("seed", seed) for seed in (1, 2)]
    with warnings.catch_warnings():
        # Python 3.12 warns about a fork of a process with threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context(method).Pool(1) as pool:
            results = pool.map(methodcaller("run", samples_ms=100), scenarios)
    assert [r.digest for r in results] == [s.run().digest for s in scenarios]
    assert not results[0].table("samples").is_empty()


def test_joblib_runs_scenarios() -> None:
    joblib: Any = pytest.importorskip("joblib", reason="joblib is not installed")
    (result,) = joblib.Parallel(n_jobs=2)([joblib.delayed(Scenario.run)(scenario())])
    assert result.digest == scenario().run().digest


def test_dask_runs_scenarios() -> None:
    dask: Any = pytest.importorskip("dask", reason="dask is not installed")
    (result,) = dask.compute(dask.delayed(Scenario.run)(scenario()), scheduler="processes")
    assert result.digest == scenario().run().digest


def test_a_run_shows_its_figures(full: RunResult, bare: RunResult) -> None:
    assert repr(full).startswith("<RunResult of 'Two hosts', seed 1, 1 s simulated; recorded: samples, link_samples")
    assert "recorded: no tables" in repr(bare)
    assert "  one: " in repr(full)
    assert {"one", "two", "a", "forward"} <= set(read(full._repr_html_()).cells)


def test_a_sweep_shows_its_axes(swept: SweepResult) -> None:
    assert repr(swept).splitlines() == [
        f"<SweepResult of 8 runs, {len(swept.figures())} figures each",
        "  link.a.delay: 2 values",
        "  flow.one.cc: 2 values>",
    ]
    assert {"5 ms", "10 ms", "cubic"} <= set(read(swept._repr_html_()).cells)


@pytest.mark.parametrize("title", TITLES)
def test_a_displayed_title_is_escaped(title: str) -> None:
    result = Scenario.from_dict({**_document(), "title": title}).run()
    assert "<script" not in result._repr_html_()
    assert all(character.isprintable() or character == "\n" for character in repr(result))


def _document() -> dict[str, Any]:
    from anabranch.text import toml_text

    return toml_text.parse(scenario().text, "s")


@pytest.fixture
def no_figures_left() -> Any:
    yield
    pyplot.close("all")


@pytest.mark.usefixtures("no_figures_left")
class TestPlot:
    @pytest.mark.parametrize("name", ["cwnd", "srtt", "queue", "sequence"])
    def test_charts(self, full: RunResult, name: str) -> None:
        axes = full.plot(name)
        assert axes.lines
        assert axes.get_ylabel()
        axes.figure.canvas.draw()

    def test_columns_have_a_line_for_each_flow(self, full: RunResult) -> None:
        axes = full.plot(x="time_s", y="srtt_ms")
        assert len(axes.lines) == 2
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("time (s)", "srtt (ms)")
        legend = axes.get_legend()
        assert legend is not None
        assert [text.get_text() for text in legend.get_texts()] == ["one", "two"]
        assert len(full.plot(y="queue_packets").lines) == 2
        assert len(full.plot(x="sent_s", y="queue_delay_ms", hue="fate").lines) >= 1
        assert full.plot(y="srtt").get_ylabel() == "srtt (ms)"

    def test_given_axes_are_used(self, full: RunResult) -> None:
        figure, axes = pyplot.subplots()
        assert full.plot("cwnd", ax=axes) is axes
        assert full.plot(y="cwnd_packets", ax=axes) is axes
        assert figure.axes == [axes]

    def test_a_sweep(self, swept: SweepResult) -> None:
        axes = swept.plot("flow.one.goodput_mbit_s", x="delay", hue="cc")
        legend = axes.get_legend()
        assert legend is not None
        assert [text.get_text() for text in legend.get_texts()] == ["reno", "cubic"]
        assert np.asarray(axes.lines[0].get_xdata()).tolist() == [5.0, 10.0]
        assert swept.plot("jain_index").get_xlabel() == "link.a.delay (ms)"

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda run, _: run.plot("cwmd"), 'no chart "cwmd"\n  did you mean "cwnd"'),
            (lambda run, _: run.plot(), "give a chart or y"),
            (lambda run, _: run.plot(y="queue"), "give one of queue_packets, queue_bytes"),
            (lambda run, _: run.plot(y="cwnd_packet"), 'did you mean "cwnd_packets"'),
            (lambda run, _: run.plot(y="srtt_ms", x="sent_s"), "no table has sent_s, srtt_ms together"),
            (lambda run, _: run.plot(y="srtt_ms", table="packets"), 'the table has no column "time_s"'),
            (lambda run, _: run.plot(y="srtt_ms", table="sample"), 'did you mean "samples"'),
            (
                lambda _, sweep: sweep.plot("goodput_mbit_s"),
                "is ambiguous\n  give one of flow.one.goodput_mbit_s, flow.two",
            ),
            (lambda _, sweep: sweep.plot("jain_index", x="rate"), 'no axis "rate"'),
            (lambda _, sweep: sweep.plot("jian_index"), 'no figure "jian_index"\n'),
        ],
    )
    def test_a_wrong_name_suggests_the_nearest(
        self, full: RunResult, swept: SweepResult, call: Callable[[RunResult, SweepResult], Any], message: str
    ) -> None:
        with pytest.raises(UserError, match=message):
            call(full, swept)
        assert not pyplot.get_fignums()

    def test_a_chart_without_events_is_refused(self, full: RunResult) -> None:
        with pytest.raises(UserError, match='nothing happened that the chart "reordering" shows'):
            full.plot("reordering")


def printed(code: str) -> set[str]:
    """The words that a new Python process prints."""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return set(told.stdout.split())


@pytest.mark.parametrize("module", ["anabranch", "anabranch.builders"])
def test_dir_lists_every_public_name_before_its_import(module: str) -> None:
    names = importlib.import_module(module).__all__
    code = f"import {module} as m; print(*dir(m))"
    assert set(names) <= printed(code)
    for name in names:
        assert getattr(importlib.import_module(module), name) is not None


def test_importing_the_package_imports_no_slow_modules() -> None:
    code = "import sys, anabranch; print(*sys.modules)"
    heavy = {"polars", "matplotlib", "numpy", "rich", "click", "json", "typing", "anabranch._engine"}
    assert not heavy & (printed(code) - printed("import sys; print(*sys.modules)"))


def test_public_names_are_documented() -> None:
    for name in anabranch.__all__:
        thing = getattr(anabranch, name)
        assert name in ("Value", "__version__") or thing.__doc__


def test_samples_have_the_pacing_rate_and_bandwidth_estimate_of_bbr() -> None:
    paced = (
        scenario().set("flow.one.stack", "linux").set("flow.one.cc", "bbr").set("duration", "3 s").run(samples_ms=10)
    )
    samples = paced.table("samples")
    one = samples.filter(samples["flow"] == "one")
    assert 1 < one["bandwidth_estimate_mbit_s"][-1] < 5.5
    assert 1 < one["pacing_rate_mbit_s"][-1] < 8
    two = samples.filter(samples["flow"] == "two")
    assert two["bandwidth_estimate_mbit_s"].null_count() == two["pacing_rate_mbit_s"].null_count() == two.height
