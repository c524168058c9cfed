"""An installation without polars and matplotlib, in a process that can import neither."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from anabranch import SweepResult
from anabranch.compare import compare
from anabranch.compare.inputs import read_inputs

SCENARIO = Path(__file__).parent / "data" / "reordering.toml"
# None in sys.modules looks to `import` and to `find_spec` like a package that is not installed.
BLOCKED = """
import sys
sys.modules["polars"] = sys.modules["matplotlib"] = None
"""
COMMAND = f"{BLOCKED}\nfrom anabranch.entry import main\nmain()\n"

Bare = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Bare:
    """Call the command without both packages, in one directory."""
    place = tmp_path_factory.mktemp("bare")
    (place / "path.toml").write_text(SCENARIO.read_text("utf-8").partition("[sweep]")[0], "utf-8")

    def call(*words: object, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-c", COMMAND, *map(str, words)], cwd=place, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stderr
        return done

    call.place = place  # type: ignore[attr-defined]
    short = ("--set", "duration=3 s")
    call("run", SCENARIO, *short, "--out", "reno", "--set", "flow.main.cc=reno", "--pcap", "bottleneck=c.pcapng")
    call("run", SCENARIO, *short, "--out", "cubic")
    return call


def directory(bare: Bare) -> Path:
    place: Path = bare.place  # type: ignore[attr-defined]
    return place


def test_a_run_writes_its_report_and_csv(bare: Bare) -> None:
    out = directory(bare) / "cubic"
    listed = json.loads((out / "anabranch.json").read_bytes())["files"]
    assert {"report.html", "summary.json", "samples.csv", "packets.csv", "flows.csv"} <= set(listed)
    assert not [name for name in listed if name.endswith(".parquet")]
    page = (out / "report.html").read_text("utf-8")
    assert "Congestion window" in page
    assert "packets.parquet" not in page
    assert "samples.parquet" not in page


def test_a_run_names_the_missing_packages_once(bare: Bare) -> None:
    done = bare("run", SCENARIO, "--set", "duration=1 s", "--out", "short")
    assert done.stderr.splitlines()[-1] == ("without polars tables are CSV: pip install 'anabranch[tables]'")


def test_figures_are_refused_before_the_run(bare: Bare) -> None:
    done = bare("run", SCENARIO, "--out", "drawn", "--figures", status=2)
    assert done.stderr.splitlines() == [
        "error: --figures needs matplotlib, which is not installed",
        "  pip install 'anabranch[figures]'",
    ]
    assert not (directory(bare) / "drawn").exists()


def test_runs_are_compared_over_time(bare: Bare) -> None:
    """The samples of a run are read from CSV, in this process with polars and there without."""
    bare("compare", "reno", "cubic", "--out", "beside")
    assert "Congestion window" in (directory(bare) / "beside/report.html").read_text("utf-8")
    inputs = read_inputs([directory(bare) / "reno", directory(bare) / "cubic"])
    samples = [one.run.samples for one in inputs if one.run is not None]
    assert all(table is not None and table.height == 301 for table in samples)


def test_a_sweep_is_read_with_and_without_polars(bare: Bare) -> None:
    grid = (
        "--grid",
        "flow.main.cc=reno,cubic",
        "--grid",
        "flow.main.transport.sack=true,false",
        "--set",
        "duration=1 s",
    )
    bare("sweep", "path.toml", *grid, "--out", "swept", "--report", "swept.html")
    out = directory(bare) / "swept"
    assert sorted(p.name for p in out.iterdir()) == [
        "anabranch.json", "points", "report.html", "runs.csv", "sweep.json", "table.csv",
    ]  # fmt: skip
    result = SweepResult.read(out)
    assert result.plain["flow.main.cc"] == ["reno", "reno", "cubic", "cubic"]
    assert result.plain["flow.main.transport.sack"] == [True, False, True, False]
    assert result.frame.get_column("seed").to_list() == [1] * 4
    bare("sweep", "path.toml", *grid[:-1], "duration=2 s", "--out", "longer")
    told = bare("compare", "swept", "longer", "--json").stdout
    both = compare(read_inputs([out, directory(bare) / "longer"]), everything=True).to_json()
    for one in both["inputs"]:
        one["path"] = Path(str(one["path"])).name
    assert json.loads(told) == both


def test_a_sweep_is_rewritten_by_the_other_installation(bare: Bare, tmp_path: Path) -> None:
    """Tables of the other kind are removed: a reader would take them for the tables of the last sweep."""
    grid: list[str | Path] = [
        sys.executable,
        "-m",
        "anabranch",
        "sweep",
        directory(bare) / "path.toml",
        "--set",
        "duration=1 s",
        "--out",
        tmp_path,
    ]
    subprocess.run(grid, check=True, capture_output=True)  # noqa: S603 - our own command
    assert (tmp_path / "runs.parquet").exists()
    bare("sweep", "path.toml", "--set", "duration=1 s", "--out", tmp_path)
    assert sorted(p.name for p in tmp_path.glob("*.*")) == [
        "anabranch.json", "report.html", "runs.csv", "sweep.json", "table.csv",
    ]  # fmt: skip
    subprocess.run(grid, check=True, capture_output=True)  # noqa: S603 - our own command
    assert sorted(p.name for p in tmp_path.glob("*.*")) == [
        "anabranch.json", "report.html", "runs.csv", "runs.parquet", "sweep.json", "table.parquet",
    ]  # fmt: skip


def test_a_capture_is_diagnosed(bare: Bare) -> None:
    done = bare("diagnose", "c.pcapng", "--replay", "--out", "found")
    assert done.stderr.splitlines()[-1].endswith("pip install 'anabranch[tables,figures]'")
    names = {path.name for path in (directory(bare) / "found").iterdir()}
    assert {"report.html", "retransmissions.csv", "connections.csv", "scenario.toml", "replay.pcapng"} <= names


def test_results_convert(bare: Bare) -> None:
    bare("convert", "cubic", "--to", "csv", "--out", "cubic.csv")
    head = (directory(bare) / "cubic.csv").read_text("utf-8").splitlines()[0]
    assert head.startswith("time_s,flow,cwnd_packets")


@pytest.mark.long
def test_the_demo_has_no_figure(bare: Bare) -> None:
    done = bare("demo", "--out", "shown")
    assert "pip install 'anabranch[tables,figures]'" in done.stderr
    page = (directory(bare) / "shown/index.html").read_text("utf-8")
    assert "Figures are left out: matplotlib is not installed" in page
    assert "<figure>" not in page


def test_a_table_is_plain_python() -> None:
    code = f"""{BLOCKED}
from anabranch import Scenario
from anabranch.errors import UserError
result = Scenario.from_file({str(SCENARIO)!r}).set("duration", "1 s").run(samples_ms=100)
table = result.table("samples")
print(type(table).__name__, table.columns[:2], table.height, table.to_dicts()[0]["flow"], result.diagnose.__name__)
try:
    result.plot("cwnd")
except UserError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our own command
    assert done.stdout.splitlines() == [
        "Table ['time_s', 'flow'] 11 main diagnose",
        "plot() needs matplotlib, which is not installed",
        "  pip install 'anabranch[figures]'",
    ]
