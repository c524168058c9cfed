"""Swept quantities as numbers, in addition to the values in the scenario's form."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario, SweepResult
from anabranch.sweep.quantities import numbers_of

from .command import Call

BASE = (
    Scenario("Two hosts", duration="1 s")
    .link("a", between=("S", "R"), rate="10 Mbit/s", delay="20 ms")
    .flow("main", source="S", target="R")
)


@pytest.mark.parametrize(
    ("values", "column", "numbers"),
    [
        (["5 Mbit/s", "10 Mbit/s"], "x_mbit_s", [5.0, 10.0]),
        (["500 kbit/s", "1e-3 Gbit/s", "5Mbit/s"], "x_mbit_s", [0.5, 1.0, 5.0]),
        (["20 ms", "0.1 s", "250 us"], "x_ms", [20.0, 100.0, 0.25]),
        (["10 s", "2 min"], "x_s", [10.0, 120.0]),
        (["64 KiB", "1 MB"], "x_bytes", [65536.0, 1e6]),
        (["20 packets", "1 packet"], "x_packets", [20.0, 1.0]),
        (["0.5 bdp", "1 bdp"], "x_bdp", [0.5, 1.0]),
        (["500 mW", "1 W"], "x_watts", [0.5, 1.0]),
        (["5 Mbit/s", "unlimited", "5 Mbit/s"], "x_mbit_s", [5.0, None, 5.0]),
    ],
)
def test_quantities_of_one_dimension_are_numbers(values: list[Any], column: str, numbers: list[float | None]) -> None:
    found = numbers_of("x", values)
    assert found is not None
    assert (found.column, found.values) == (column, numbers)


@pytest.mark.parametrize(
    "values",
    [
        ["20 packets", "64 KiB"],
        ["reno", "cubic"],
        ["unlimited"],
        [4, 8],
        [True, False],
        ["5 Mbit/s", 5],
        ['{ kind = "red" }', "codel"],
        [],
    ],
)
def test_other_values_have_no_numeric_column(values: list[Any]) -> None:
    assert numbers_of("x", values) is None


@pytest.fixture(scope="module")
def swept() -> SweepResult:
    return BASE.sweep(
        {"link.a.rate": ["5 Mbit/s", "0.01 Gbit/s"], "flow.main.cc": ["reno", "cubic"], "flow.main.count": [1, 2]}
    )


def test_a_sweep_has_both(swept: SweepResult) -> None:
    assert swept.frame.columns[:4] == ["link.a.rate", "flow.main.cc", "flow.main.count", "link.a.rate_mbit_s"]
    for frame in (swept.frame, swept.table(["flow.main.goodput_mbit_s"])):
        assert frame["link.a.rate"].unique(maintain_order=True).to_list() == ["5 Mbit/s", "0.01 Gbit/s"]
        assert frame["link.a.rate_mbit_s"].unique(maintain_order=True).to_list() == [5.0, 10.0]
        assert frame["flow.main.count"].unique(maintain_order=True).to_list() == [1, 2]
    assert swept.axes == ["link.a.rate", "flow.main.cc", "flow.main.count"]
    assert "link.a.rate_mbit_s" not in swept.figures()


def test_numbers_are_written_and_read_back(tmp_path: Path, anabranch: Call) -> None:
    file, out = tmp_path / "s.toml", tmp_path / "out"
    file.write_text(BASE.text, encoding="utf-8")
    done = anabranch("sweep", file, "--grid", "link.a.rate=5 Mbit/s,10 Mbit/s", "--out", out, "--json")
    assert done.status == 0, done.err
    points = json.loads(done.out)["points"]
    assert [point["point"] for point in points] == [{"link.a.rate": "5 Mbit/s"}, {"link.a.rate": "10 Mbit/s"}]
    assert [point["numbers"] for point in points] == [{"link.a.rate_mbit_s": 5.0}, {"link.a.rate_mbit_s": 10.0}]
    with (out / "runs.csv").open(encoding="utf-8") as table:
        assert [row["link.a.rate_mbit_s"] for row in csv.DictReader(table)] == ["5.0", "10.0"]
    again = SweepResult.read(out)
    assert again.column("rate_mbit_s") == [5.0, 10.0]
    assert again.figures() == BASE.sweep({"link.a.rate": ["5 Mbit/s"]}).figures()
