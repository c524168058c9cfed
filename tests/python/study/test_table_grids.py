"""Tables with a row per experiment, a column per variant and an interval in each cell; shares as quantities."""

from __future__ import annotations

import csv
import json
import math
import statistics
from pathlib import Path

import numpy as np
import pytest

from anabranch import Study, UserError
from anabranch.study import tables
from anabranch.study.results import Condition, Pool, Results

from .mistakes import change, refused

SCENARIO = """
title = "Two flows and one that does not slow down"
duration = "3 s"

[link.bottleneck]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "5 ms"
queue = { kind = "drop-tail", limit = "50 packets" }

[flow.main]
from = "A"
to = "B"
start_spread = "50 ms"

[flow.other]
from = "A"
to = "B"
start_spread = "50 ms"

[flow.udp]
from = "A"
to = "B"
start_spread = "50 ms"
protocol = "udp"
workload = { kind = "paced", rate = "2 Mbit/s" }
"""

STUDY = """
title = "Rows that are experiments"
source = "For tests"

[variant.tail_drop]
label = "Tail drop"
[variant.fair]
label = "DRR"
set = { "link.bottleneck.forward.queue" = { kind = "drr", limit = "50 packets" } }

[axis.delay]
set = { "link.bottleneck.delay" = "{} ms" }
values = [5, 20]

[experiment.short]
scenario = "two.toml"
repeat = 3
[experiment.long]
label = "A long path"
scenario = "two.toml"
variants = ["fair"]
repeat = 1
set."link.bottleneck.delay" = "40 ms"
[experiment.several]
scenario = "two.toml"
axes = ["delay"]
repeat = 3

[quantity.main]
path = "flow.main.goodput_mbit_s"
[quantity.other]
path = "flow.other.goodput_mbit_s"
[quantity.udp]
path = "flow.udp.goodput_mbit_s"
[quantity.worst]
path = "flow.*.goodput_mbit_s"
combine = "worst-share"
capacity = 10
[quantity.index]
path = "flow.*.goodput_mbit_s"
combine = "jain"
capacity = 10

[[claim]]
id = "S1"
claim = "Something arrives"
published = "nowhere"
accept_if = "more than nothing"
measure = { least = "min(main)" }
accept = "least > 0"
invariant = "for tests"

[[figure]]
id = "over-delay"
title = "Over the delay"
experiment = "several"
x = "delay"
x_scale = "log"
y = "main"
y_scale = "log"

[[table]]
id = "by-path"
title = "By path"
rows = "experiment"
experiments = ["long", "short"]
columns = "variant"
value = "main"
interval = true
digits = 3

[[table]]
id = "by-delay"
title = "By delay"
experiment = "several"
rows = "delay"
columns = "variant"
variants = ["fair"]
value = "main"
percent = true

[[table]]
id = "both"
title = "Of each experiment"
rows = "experiment"
experiments = ["short", "long"]
[[table.column]]
name = "fair"
value = "main[fair]"
interval = true
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "grids"
    path.mkdir()
    (path / "two.toml").write_text(SCENARIO, encoding="utf-8")
    (path / "study.toml").write_text(STUDY, encoding="utf-8")
    return path


def results(directory: Path) -> Results:
    pool = Pool(Study.load(directory).definition)
    jobs = pool.plan(Condition())
    pool.make(jobs)
    return pool.results(jobs)


def of(runs: Results, quantity: str, experiment: str, variant: str) -> list[float]:
    return [float(v or 0) for p, v in runs.quantity(quantity, experiment) if p["variant"] == variant]


def test_rows_are_experiments_and_columns_variants(directory: Path) -> None:
    runs = results(directory)
    by_path, by_delay, both = tables.make(runs, full=False)
    assert by_path.head() == ["", "Tail drop", "DRR"]
    assert [record["label"] for record in by_path.records] == ["A long path", "short"]
    long, short = by_path.records
    # An experiment without the variant has an empty cell, and one without repeats has no interval.
    assert (long["tail_drop"], long["tail_drop_ci95"], long["fair_ci95"]) == (None, None, None)
    assert long["fair"] == of(runs, "main", "long", "fair")[0]
    assert by_path.rows()[0][1:] == ["–", f"{long['fair']:.3f}"]
    for variant in ("tail_drop", "fair"):
        values = of(runs, "main", "short", variant)
        assert short[variant] == pytest.approx(statistics.mean(values))
        # Student's t for two degrees of freedom.
        half = 4.302653 * statistics.stdev(values) / math.sqrt(3)
        assert short[f"{variant}_ci95"] == pytest.approx(half, rel=1e-5)
    assert by_path.rows()[1][2] == f"{short['fair']:.3f} ± {short['fair_ci95']:.3f}"
    assert by_delay.head() == ["delay", "DRR"]
    assert [record["delay"] for record in by_delay.records] == [5, 20]
    assert by_delay.rows()[0][1].endswith(" %")
    assert [record["fair"] for record in both.records] == [short["fair"], long["fair"]]


def test_written_tables_have_intervals(directory: Path, tmp_path: Path) -> None:
    result = Study.load(directory).run(quick=True)
    by_path = result.to_json()["tables"][0]
    json.dumps(by_path, allow_nan=False)
    assert by_path["columns"] == {"tail_drop": "Tail drop", "fair": "DRR"}
    result.write(tmp_path / "out")
    with (tmp_path / "out" / "tables" / "by-path.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["experiment", "label", "tail_drop", "tail_drop_ci95", "fair", "fair_ci95"]
    assert [row["experiment"] for row in rows] == ["long", "short"]
    assert float(rows[1]["fair_ci95"]) == by_path["rows"][1]["fair_ci95"]


def test_shares_are_relative_to_the_demand_of_flows(directory: Path) -> None:
    runs = results(directory)
    for variant in ("tail_drop", "fair"):
        got = zip(
            of(runs, "main", "short", variant),
            of(runs, "other", "short", variant),
            of(runs, "udp", "short", variant),
            strict=True,
        )
        shares = [(main / 4, other / 4, udp / 2) for main, other, udp in got]
        assert of(runs, "worst", "short", variant) == pytest.approx([min(three) for three in shares])
        index = [sum(three) ** 2 / (3 * sum(x * x for x in three)) for three in shares]
        assert of(runs, "index", "short", variant) == pytest.approx(index)


def test_logarithmic_axes_have_ticks_at_measured_values(directory: Path) -> None:
    from anabranch.plot.study import _apart, figures

    ((_, _, figure),) = figures(results(directory))
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["5", "20"]
    assert _apart([2, 100, 128, 200]) == ["2", "100", "", "200"]


def test_a_logarithmic_axis_separates_0(directory: Path) -> None:
    from anabranch.plot.study import figures

    change(directory, "values = [5, 20]", "values = [0, 5, 20]")
    ((_, _, figure),) = figures(results(directory))
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "5", "20"]
    zero = axes.get_xticks()[0]
    assert 0 < zero < 5
    alone, joined, *_ = (np.asarray(line.get_xdata()).tolist() for line in axes.get_lines())
    assert (alone, joined) == ([zero], [5, 20])


def test_the_digest_of_inputs_ignores_labels(directory: Path) -> None:
    from anabranch.study.robustness import inputs_digest

    before = results(directory)
    text = (directory / "study.toml").read_text(encoding="utf-8")
    (directory / "study.toml").write_text(text.replace('"A long path"', '"Far"'), encoding="utf-8")
    after = Study.load(directory).definition
    assert inputs_digest(after, before) == inputs_digest(before.definition, before)
    (directory / "study.toml").write_text(text.replace("capacity = 10", "capacity = 20", 1), encoding="utf-8")
    assert inputs_digest(Study.load(directory).definition, before) != inputs_digest(before.definition, before)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('experiments = ["long", "short"]', 'experiments = ["lang"]', '"lang" is no experiment'),
        ('rows = "experiment"\nexperiments = ["long", "short"]', 'rows = "variant"', "cannot both be variants"),
        ('rows = "delay"', 'rows = "delay"\nexperiments = ["long"]', "experiments are the rows of a table with"),
        ('rows = "experiment"', 'rows = "experiment"\nexperiment = "long"', "each row is a separate experiment"),
        ('columns = "variant"', 'columns = "delay"', 'columns = "delay" has no meaning'),
        ('columns = "variant"\nvalue = "main"', 'columns = "variant"', '"value" is missing'),
        ('columns = "variant"\n', "", "value belongs to a column"),
        ("digits = 3", "digits = 13", "digits must be a whole number"),
        ("digits = 3", 'digits = 3\n[[table.column]]\nname = "x"\nvalue = "main"', "the columns are the variants"),
        ("capacity = 10", "", "worst-share needs capacity"),
        ("capacity = 10", "capacity = 0", "capacity must be above 0 Mbit/s"),
        ('"worst-share"', '"worst_share"', "valid: sum, mean, min, max, worst-share, jain"),
        ('"worst-share"', '"sum"', "capacity belongs to a path with combine"),
        ('path = "flow.*.goodput_mbit_s"', 'path = "flow.*.timeouts"', "worst-share is of flows"),
        ('x_scale = "log"', 'x_scale = "logarithmic"', 'there is no scale "logarithmic"'),
        ('y_scale = "log"', 'y_scale = "ln"', 'there is no scale "ln"'),
        ("values = [5, 20]", "values = [-5, 20]", '"delay" has values below 0'),
        ("variant.fair]", "variant.label]", '"label" is what a row is called'),
    ],
)
def test_mistakes_are_reported_with_their_location(directory: Path, old: str, new: str, says: str) -> None:
    change(directory, old, new)
    if "variant.label" in new:
        change(directory, '["fair"]', '["label"]')
        change(directory, "main[fair]", "main[label]")
    refused(directory, says)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('experiments = ["long", "short"]', 'experiments = ["several"]', "a value was expected; delay is left"),
        ('value = "main"\ninterval = true', 'value = "seed_mean(main)"\ninterval = true', "a value for each seed"),
        ('value = "main[fair]"', 'value = "3"', "a value for each seed"),
        ('value = "main[fair]"', 'value = "main"', "variant is left"),
    ],
)
def test_an_invalid_cell_is_reported(directory: Path, old: str, new: str, says: str) -> None:
    change(directory, old, new)
    with pytest.raises(UserError, match=r"\[\[table\]\] (by-path|both), column") as caught:
        tables.make(results(directory), full=False)
    assert says in str(caught.value)
