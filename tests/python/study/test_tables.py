"""Sections and tables of a study, and the runs that a verdict needs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from anabranch import Study, UserError
from anabranch.study import needs, tables
from anabranch.study.expression import compile_expression
from anabranch.study.needs import Need
from anabranch.study.results import Condition, Pool, Results

from ..sample import copied
from .mistakes import change, refused

TABLE = """
[section.beyond]
title = "Beyond the paper"

[[table]]
id = "sides"
section = "beyond"
title = "Side by side"
note = "A note."
[[table.column]]
name = "lowest"
value = "min(normalised, over=ri)"
at = "argmin(normalised, over=ri)"
at_form = "RI {}"
digits = 3
[[table.column]]
name = "good"
value = "min(normalised, over=ri) > 0.99"
[[table.column]]
name = "loss"
value = "1 - mean(normalised, over=ri)"
percent = true
digits = 1
without = ["cubic"]
[[table.column]]
name = "whole"
value = "mean(normalised[cubic])"
full_only = true

[[table]]
id = "by-interval"
title = "By interval"
rows = "ri"
[[table.column]]
name = "cubic"
value = "normalised[cubic]"
[[table.column]]
name = "best"
value = "max(normalised, over=variant)"
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    target = copied(tmp_path / "sample")
    path = target / "study.toml"
    path.write_text(path.read_text(encoding="utf-8") + TABLE, encoding="utf-8")
    return target


def results(directory: Path) -> Results:
    pool = Pool(Study.load(directory).definition)
    jobs = pool.plan(Condition())
    pool.make(jobs)
    return pool.results(jobs)


def test_a_row_for_each_variant_and_its_position(sample: Path) -> None:
    runs = results(sample)
    sides, by_interval = tables.make(runs, full=False)
    series = runs.quantity("normalised", "reordering").collapsed()
    values = {(str(point["variant"]), point["ri"]): float(value or 0) for point, value in series}
    assert sides.head() == ["", "lowest", "good", "loss"]
    for record, cells in zip(sides.records, sides.rows(), strict=True):
        own = {ri: value for (variant, ri), value in values.items() if variant == record["variant"]}
        assert record["lowest"] == min(own.values())
        assert own[record["lowest_at"]] == record["lowest"]
        assert cells[1] == f"{min(own.values()):.3f} (RI {record['lowest_at']})"
        assert cells[2] == ("yes" if min(own.values()) > 0.99 else "no")
        mean = 100 * (1 - sum(own.values()) / len(own))
        assert cells[3] == ("–" if record["variant"] == "cubic" else f"{mean:.1f} %")
    assert by_interval.head()[0] == "Reorder interval (packets)"
    assert [record["ri"] for record in by_interval.records] == [4, 15, 50, 70, 95]
    for record in by_interval.records:
        assert record["cubic"] == values["cubic", record["ri"]]
        assert record["best"] == max(v for (_, ri), v in values.items() if ri == record["ri"])


def test_written_results_have_the_tables(sample: Path, tmp_path: Path) -> None:
    result = Study.load(sample).run(quick=True)
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert [table["id"] for table in document["tables"]] == ["sides", "by-interval"]
    sides = document["tables"][0]
    assert sides["columns"] == {"lowest": "lowest", "good": "good", "loss": "loss"}
    assert [row["label"] for row in sides["rows"]] == ["NewReno", "CUBIC", "Cubic+"]
    assert sides["rows"][1]["loss"] is None
    result.write(tmp_path / "out")
    with (tmp_path / "out" / "tables" / "sides.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["lowest"]) for row in rows] == [row["lowest"] for row in sides["rows"]]
    for name in ("report.md", "report.html"):
        report = (tmp_path / "out" / name).read_text(encoding="utf-8")
        assert "Side by side" in report
        assert "A note." in report


def test_claims_of_a_section_are_counted_separately(sample: Path) -> None:
    from anabranch.cli.study import _counted

    path = sample / "study.toml"
    text = path.read_text(encoding="utf-8").replace('id = "S1"\n', 'id = "S1"\nsection = "beyond"\n', 1)
    path.write_text(text, encoding="utf-8")
    result = Study.load(sample).run(quick=True)
    (own_title, own), (title, beyond) = result.by_section
    assert (own_title, title) == ("", "Beyond the paper")
    assert [one.claim.id for one in beyond] == ["S1"]
    assert len(own) == len(result.claims) - 1
    assert _counted(title, beyond).startswith("Beyond the paper: ")
    assert f" of {len(own)} reproduced" in _counted(own_title, own)
    sections = {claim["id"]: claim.get("section") for claim in result.to_json()["claims"]}
    assert sections.pop("S1") == "Beyond the paper"
    assert set(sections.values()) == {None}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('rows = "ri"', 'rows = "delay"', '"delay" is no axis of the experiment reordering'),
        ('section = "beyond"', 'section = "beyon"', '"beyon" is no section'),
        ('id = "by-interval"', 'id = "sides"', 'a second table "sides"'),
        ('id = "by-interval"', 'id = "a/b"', '"a/b" cannot be the name of a file'),
        ('name = "good"', 'name = "lowest_at"', 'a second column "lowest_at"'),
        ('name = "good"', 'name = "label"', '"label" is what a row is called'),
        ('at_form = "RI {}"', 'at_form = "RI"', "at_form needs one {} for the value"),
        ("digits = 3", "digits = 1.5", "digits must be a whole number"),
        ('without = ["cubic"]', 'without = ["cubik"]', '"cubik" is no variant'),
        ('name = "best"', 'name = "best"\nwithout = ["cubic"]', "the rows are values of ri, not variants"),
        ('title = "Beyond the paper"', 'name = "Beyond the paper"', 'unknown key "name"'),
    ],
)
def test_mistakes_are_reported_with_their_location(sample: Path, old: str, new: str, says: str) -> None:
    change(sample, old, new)
    refused(sample, says)


def test_a_cell_with_several_values_is_reported(sample: Path) -> None:
    path = sample / "study.toml"
    text = path.read_text(encoding="utf-8").replace('value = "normalised[cubic]"', 'value = "normalised"')
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r'by-interval, column "cubic": normalised: .* variant is left'):
        tables.make(results(sample), full=False)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("min(throughput[newreno, 4 <= ri <= 99])", {Need("reordering", "newreno")}),
        ("normalised[cubic]", {Need("reordering", "cubic"), Need("plain", "cubic")}),
        ("max(normalised, over=variant)", {Need("reordering"), Need("plain")}),
        ("max(throughput, over=variant)[cubic]", None),
        ("throughput[cubic] / throughput[plain, newreno]", {Need("reordering", "cubic"), Need("plain", "newreno")}),
        ("spearman(throughput[cubic], ri)", {Need("reordering", "cubic"), Need("reordering", "newreno")}),
        ("throughput[cubic, ri <= 50 and ri > 4]", {Need("reordering", "cubic")}),
    ],
)
def test_the_runs_that_an_expression_needs(sample: Path, expression: str, expected: set[Need] | None) -> None:
    study = Study.load(sample).definition
    if expected is None:
        with pytest.raises(ValueError, match="only a quantity"):
            compile_expression(expression, study.claims[0].accept[0].names)
        return
    compiled = compile_expression(expression, study.claims[0].accept[0].names)
    assert set(needs._Walker(study, set()).of(compiled, "reordering")) == expected


def test_fewer_runs_give_the_same_verdicts(sample: Path) -> None:
    """The selected runs suffice: every claim has the same result as with all runs. Detects a missing run."""
    from anabranch.study.verdict import judge

    study = Study.load(sample).definition
    pool = Pool(study)
    jobs = pool.plan(Condition())
    pool.make(jobs)
    for claim in study.claims:
        few = needs.only(jobs, needs.of_claims(study, [claim]))
        assert judge(claim, pool.results(few)) == judge(claim, pool.results(jobs)), claim.id
    (s2,) = [claim for claim in study.claims if claim.id == "S2"]
    assert len(needs.only(jobs, needs.of_claims(study, [s2]))) < len(jobs)
