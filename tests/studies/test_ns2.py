"""The runs of ns-2 that two studies keep beside their own."""

from __future__ import annotations

import dataclasses
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

needs_ns2 = pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed")


def load(file: Path) -> ModuleType:
    name = f"{file.parent.name}-{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def links(checkout: Path) -> ModuleType:
    return load(checkout / "studies" / "link-aggregation" / "ns2.py")


@pytest.fixture(scope="module")
def fec(checkout: Path) -> ModuleType:
    return load(checkout / "studies" / "fec" / "ns2.py")


@pytest.mark.parametrize("study", ["link-aggregation", "fec"])
@pytest.mark.parametrize("option", ["--check", "--write"])
def test_without_ns2_it_names_the_package(checkout: Path, study: str, option: str, tmp_path: Path) -> None:
    directory = checkout / "studies" / study
    script = shutil.copy(directory / "ns2.py", tmp_path)
    if option == "--check":
        shutil.copy(directory / "ns2.csv", tmp_path)
    environment = {"PATH": str(tmp_path), "PYTHONPATH": str(checkout / "python")}
    command = [sys.executable, script, option]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert "Debian's package ns2" in line
    assert (tmp_path / "ns2.csv").exists() == (option == "--check")


@pytest.mark.parametrize("study", ["links", "fec"])
def test_reads_what_it_writes(study: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    module = request.getfixturevalue(study)
    module.write(module.read(), tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == module.STORED.read_bytes()


def test_checks_detect_a_changed_row(links: ModuleType) -> None:
    stored = links.read()
    point = links.Point("vegas", links.ALL_ON)
    changed = dataclasses.replace(stored[point], throughput_mbit_s=stored[point].throughput_mbit_s + 0.1)
    assert links.differences(stored, {point: stored[point]}) == []
    assert len(links.differences(stored, {point: changed})) == 1


@needs_ns2
def test_vegas_is_as_stored(links: ModuleType) -> None:
    point = links.Point("vegas", links.ALL_ON)
    assert links.run([point]) == {point: links.read()[point]}


@needs_ns2
def test_a_run_of_sack_is_as_stored(fec: ModuleType) -> None:
    key = (fec.Setting(0.01), 1)
    assert fec.run([key]) == {key: fec.read()[key]}


def test_the_schedule_is_the_simulators(links: ModuleType) -> None:
    changes = list(links.schedule(links.Point("newreno", links.SCHEDULE)))
    assert changes[0] == (0.0, 8)
    # The first decision leaves one link.
    assert changes[1][0] == pytest.approx(0.5, abs=0.002)
    assert changes[1][1] == 1


class TestSearch:
    """CUBIC's runs are made where its cell is enclosed."""

    def points(self, links: ModuleType, mbit_s: dict[int, float], step: int) -> list[int]:
        runs = {
            links.Point("cubic", links.Control("peaks", 1, 1000, percentile, links.UP_MS)): links.Result(value, 0, 4.0)
            for percentile, value in mbit_s.items()
        }
        found = links.wanted(links.Witness(runs), step)
        return [p.control.percentile for p in found if (p.control.section_ms, p.control.interval_ms) == (1, 1000)]

    def test_begins_with_the_whole_range(self, links: ModuleType) -> None:
        assert self.points(links, {}, 10) == list(range(30, 101, 10))

    def test_goes_on_between_values_that_enclose_the_cell(self, links: ModuleType) -> None:
        assert self.points(links, {30: 100.0, 40: 400.0, 50: 791.0, 60: 791.0}, 2) == [42, 44, 46, 48]

    def test_is_done_if_none_encloses_it(self, links: ModuleType) -> None:
        assert self.points(links, {30: 100.0, 40: 400.0}, 2) == []
