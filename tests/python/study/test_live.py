"""Studies in the live engine, with the simulator instead of the kernel: tainted runs, verdicts, mistakes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anabranch import Study, UserError, _engine
from anabranch.live import check
from anabranch.result.table import Table
from anabranch.study import live as module
from anabranch.study.live import Audit, LivePool, on_grid, section
from anabranch.study.results import Job
from anabranch.study.robustness import _deciding

SCENARIO = """
title = "a path"
duration = "1 s"

[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "10 ms"

[flow.main]
from = "A"
to = "B"
"""

STUDY = """
title = "Half of the rate"
source = "nobody"

[setting]
"flow.main.stack" = "rfc"

[axis.rate]
set = { "link.path.rate" = "{} Mbit/s" }
quick = [10, 20]

[variant.reno]
set = { "flow.main.cc" = "reno" }

[variant.cubic]
set = { "flow.main.cc" = "cubic" }

[experiment.runs]
scenario = "path.toml"
axes = ["rate"]

[experiment.others]
scenario = "path.toml"
axes = ["rate"]

[quantity.goodput]
path = "flow.main.goodput_mbit_s"

[wrong.one_rate]
title = "both rates are 20 Mbit/s"
set = { "link.path.rate" = "20 Mbit/s" }

[[claim]]
id = "H1"
claim = "Twice the rate, twice the goodput"
published = "2"
accept_if = "1.7 to 2.1"
measure.ratio = "goodput[reno, rate == 20] / goodput[reno, rate == 10]"
accept = "1.7 <= ratio <= 2.1"
control = "one_rate"

[[claim]]
id = "H2"
claim = "The same, of CUBIC"
published = "2"
accept_if = "1.7 to 2.1"
measure.ratio = "goodput[cubic, rate == 20] / goodput[cubic, rate == 10]"
accept = "1.7 <= ratio <= 2.1"
control = "one_rate"

[[claim]]
id = "H3"
claim = "Elsewhere"
published = "2"
accept_if = "1.7 to 2.1"
experiment = "others"
measure.ratio = "goodput[cubic, rate == 20] / goodput[cubic, rate == 10]"
accept = "1.7 <= ratio <= 2.1"
control = "one_rate"

[[table]]
id = "goodput"
title = "Goodput"
rows = "rate"
columns = "variant"
value = "goodput"

[live]
about = "As it is."
claims = ["H1", "H2"]
tables = ["goodput"]

[live.experiment.runs]
scenario = "path.toml"
axes = ["rate"]
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(old: str = "", new: str = "") -> Path:
        assert old in STUDY
        directory = tmp_path / "half"
        directory.mkdir()
        (directory / "study.toml").write_text(STUDY.replace(old, new), encoding="utf-8")
        (directory / "path.toml").write_text(SCENARIO, encoding="utf-8")
        return directory

    return write


class Simulated:
    """A run of the simulator with the summary of a live run."""

    def __init__(self, run: _engine.Run, reasons: list[str]) -> None:
        self.run = run
        summary = json.loads(run.summary_json)
        summary["digest"] = None
        summary["live"] = {
            "audit": {"reasons": reasons},
            "machine": {"kernel": "6.18", "machine": "x86_64", "processors": 2},
        }
        self.summary_json = json.dumps(summary)
        self.depends = run.depends

    def table(self, name: str) -> Any:
        return self.run.table(name)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Job, int], list[str]]], None]:
    """Replaces the kernel by the simulator; the argument returns the reasons that taint an attempt at a run."""

    def put(reasons: Callable[[Job, int], list[str]]) -> None:
        attempts: Counter[Any] = Counter()

        def run(pool: LivePool, job: Job) -> Any:
            attempts[job.key] += 1
            done = _engine.run_many([pool._task(job)])[0]
            return Simulated(done, reasons(job, attempts[job.key]))

        monkeypatch.setattr(LivePool, "_run", run)

        def without_machine(text: str, file: str, sets: list[str], seed: int | None, *, machine: bool) -> float:
            # The simulator does not depend on the machine.
            del machine
            return check(text, file, sets, seed)

        monkeypatch.setattr(module, "check", without_machine)

    return put


LATE = "a packet left 31.415 ms late; the limit is 20 ms"
Kernel = Callable[[Callable[[Job, int], list[str]]], None]


def is_cubic_at_10(job: Job) -> bool:
    return job.variant == "cubic" and job.point == (10,)


def test_both_engines_judge_the_named_claims(write: Write, kernel: Kernel) -> None:
    kernel(lambda _job, _attempt: [])
    said = []
    result = Study.load(write()).run_live(announce=lambda n, seconds: said.append((n, seconds)))
    assert said == [(4, 4.0)]
    assert [simulated.claim.id for simulated, _ in result.claims] == ["H1", "H2"]
    for simulated, live in result.claims:
        assert (simulated.verdict, live.verdict) == ("reproduced", "reproduced")
        assert live.control is not None
        assert live.control.holds is False
        # Both sides run on the same engine, and neither has the study's own setting.
        assert simulated.plain.measures == live.plain.measures
    document = result.to_json()
    json.dumps(document, allow_nan=False)
    assert document["audit"]["runs"] == 4
    page = "\n".join(section(document))
    assert "4 runs, 0 of them tainted" in page
    assert "Goodput: simulator / live" in page
    assert "| 10 |" in page


def test_a_tainted_run_is_repeated(write: Write, kernel: Kernel) -> None:
    kernel(lambda job, attempt: [LATE] if is_cubic_at_10(job) and attempt == 1 else [])
    result = Study.load(write()).run_live()
    audit = result.audit
    assert (audit.runs, audit.tainted, audit.without_result) == (5, 1, 0)
    # Reasons are counted without their figures.
    assert audit.reasons == {"a packet left late": 1}
    assert audit.failed
    assert [live.verdict for _, live in result.claims] == ["reproduced", "reproduced"]


def test_a_claim_whose_run_is_tainted_twice_is_inconclusive(write: Write, kernel: Kernel) -> None:
    """Detects a study that judges by the remaining runs."""
    kernel(lambda job, _attempt: [LATE] if is_cubic_at_10(job) else [])
    result = Study.load(write()).run_live()
    assert (result.audit.runs, result.audit.tainted, result.audit.without_result) == (5, 2, 1)
    (_, reno), (simulated, cubic) = result.claims
    assert reno.verdict == "reproduced"
    assert simulated.verdict == "reproduced"
    assert cubic.verdict == "inconclusive"
    # No run is left to divide by.
    assert cubic.plain.measures == {}
    assert "tainted each time (2)" in cubic.why
    # A table with a missing cell is left out.
    assert result.to_json()["tables"] == []


def test_a_shared_tainted_run_is_missing_for_all_claims(write: Write, kernel: Kernel) -> None:
    """The wrong system's run of Reno is the plain run of CUBIC, and is made once. Detects a lookup by one name only."""
    kernel(lambda job, _attempt: [LATE] if '"cubic"' in str(job.sets) and job.point == (10,) else [])
    old = 'set = { "link.path.rate" = "20 Mbit/s" }'
    result = Study.load(write(old, 'replace = { reno = "cubic", cubic = "reno" }')).run_live()
    assert (result.audit.runs, result.audit.without_result) == (5, 1)
    # Each claim needs it: one in its wrong system, the other directly.
    for _, live in result.claims:
        assert live.verdict == "inconclusive"
        assert "1 of its runs were tainted each time (2)" in live.why
    assert result.to_json()["tables"] == []


def test_more_attempts_can_be_requested(write: Write, kernel: Kernel) -> None:
    kernel(lambda job, attempt: [LATE] if is_cubic_at_10(job) and attempt < 4 else [])
    result = Study.load(write()).run_live(attempts=4)
    assert (result.audit.runs, result.audit.tainted, result.audit.without_result) == (7, 3, 0)
    assert result.claims[1][1].verdict == "reproduced"
    # The number of tainted runs still makes the study fail.
    assert "as a whole it has failed" in "\n".join(section(result.to_json()))


@pytest.mark.parametrize(("runs", "tainted", "failed"), [(20, 2, False), (20, 3, True), (4, 0, False)])
def test_more_than_a_tenth_of_tainted_runs_fails(runs: int, tainted: int, failed: bool) -> None:
    assert Audit(runs=runs, tainted=tainted).failed is failed


def test_impossible_live_runs_are_refused_before_any_run(write: Write, kernel: Kernel) -> None:
    kernel(lambda _job, _attempt: pytest.fail("it ran"))
    study = Study.load(write('axes = ["rate"]\n', 'axes = ["rate"]\nset = { "flow.main.stack" = "rfc" }\n'))
    with pytest.raises(_engine.ScenarioError, match="not the stack"):
        study.run_live()


def test_missing_features_of_the_machine_are_reported_before_any_run(
    write: Write, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Detects a plan that does not query the kernel's features, and one that queries them at every point."""
    kernel(lambda _job, _attempt: pytest.fail("it ran"))
    asked = []

    def has(text: str, file: str, sets: list[str], seed: int | None, *, machine: bool) -> float:
        if machine:
            asked.append([word for word in sets if ".cc" in word])
            if "cubic" in str(sets):
                raise UserError("the kernel has no cubic")
        return 1.0

    monkeypatch.setattr(module, "check", has)
    with pytest.raises(UserError, match="has no cubic"):
        module.plan(Study.load(write()))
    assert asked == [['flow.main.cc="reno"'], ['flow.main.cc="cubic"']]


def test_without_live_the_reason_is_reported(write: Write) -> None:
    study = Study.load(write(STUDY[STUDY.index("[live]") :], ""))
    with pytest.raises(UserError, match=r'no \[live\] section.*not the stack "rfc"'):
        study.run_live()


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ('claims = ["H1", "H2"]', 'claims = ["H1", "H3"]', "claims", "experiment others, which is not run live"),
        ('claims = ["H1", "H2"]', 'claims = ["H1", "H4"]', "claims", '"H4" is no claim'),
        ('claims = ["H1", "H2"]', "", "[live]", '"claims" is missing'),
        ('about = "As it is."', "", "[live]", '"about" is missing'),
        ('tables = ["goodput"]', 'tables = ["goodputs"]', "tables", 'did you mean "goodput"?'),
        ('tables = ["goodput"]', "figures = []", "figures", 'unknown key "figures"'),
        ("[live.experiment.runs]", "[live.experiment.run]", "[live.experiment.run]", 'did you mean "runs"?'),
        ('tables = ["goodput"]', "axis.rat = { values = [1] }", "axis.rat", 'did you mean "rate"?'),
        ('tables = ["goodput"]', 'wrong.one = { set = { a = 1 } }', "wrong.one", 'did you mean "one_rate"?'),
        ('[live.experiment.runs]\n', '[live.experiment.runs]\nvariants = ["reno"]\n', "claims", "variant cubic"),
        ('title = "both rates are 20 Mbit/s"', 'title = "x"\nvariants = ["ren"]', "variants", 'did you mean "reno"?'),
    ],
)  # fmt: skip
def test_mistakes_have_a_location(write: Write, old: str, new: str, line: str, told: str) -> None:
    directory = write(old, new)
    with pytest.raises(UserError) as raised:
        Study.load(directory)
    assert told in str(raised.value)
    text = (directory / "study.toml").read_text(encoding="utf-8").splitlines()
    assert raised.value.line is not None
    assert line in text[raised.value.line - 1]


def test_a_wrong_system_can_be_limited_to_some_variants(write: Write) -> None:
    study = Study.load(write('title = "both rates', 'variants = ["reno"]\ntitle = "both rates'))
    assert study.definition.live is not None
    pool = LivePool(study.definition.live)
    plans = Study(study.definition.live).plans(pool, quick=False)
    assert {job.variant for job in plans["wrong one_rate"]} == {"reno"}
    assert {job.variant for job in plans["plain"]} == {"reno", "cubic"}


def test_the_live_section_affects_no_simulated_verdict(write: Write) -> None:
    """Detects a live section that makes the robustness outdated."""
    directory = write()
    path = directory / "study.toml"
    study, live = path.read_text(encoding="utf-8").split("[live]")
    path.write_text(f"{study}[live]{live.replace('path.toml', 'live.toml')}", encoding="utf-8")
    (directory / "live.toml").write_text(SCENARIO, encoding="utf-8")
    definition = Study.load(directory).definition
    without = {key: value for key, value in definition.values.items() if key != "live"}
    assert _deciding(definition.values) == _deciding(without)
    assert set(map(str, definition.texts)) == {"path.toml"}
    assert definition.live is not None
    assert "live.toml" in set(map(str, definition.live.texts))


def test_socket_samples_are_aligned_with_link_samples() -> None:
    """Detects unaligned times, which no table of links has, and samples that are too late for their time."""
    taken = [0.01007, 0.02007, 0.02007, 0.03006, 0.0460, 0.0501, 0.06008, 0.1401]
    table = Table.of(
        {"time_s": taken, "flow": ["a", "a", "b", "a", "a", "a", "a", "a"], "cwnd_packets": range(8)},
    )
    placed = on_grid(table, 20.0)
    # 10 ms is not a time of the grid; the only sample for 40 ms was 6 ms late.
    assert placed.rows() == [(0.02, "a", 1), (0.02, "b", 2), (0.06, "a", 6), (0.14, "a", 7)]
    exact = Table.of({"time_s": [k * 20 / 1000 for k in range(100)], "flow": ["a"] * 100})
    assert on_grid(exact, 20.0)["time_s"] == [round(k * 0.02, 9) for k in range(100)]
    assert on_grid(table, 10.0)["time_s"] == [0.01, 0.02, 0.02, 0.03, 0.05, 0.06, 0.14]


KERNEL_PART = """
[live.kernel]
about = "Without CUBIC, over three rates."
claims = ["H1"]

[live.kernel.axis.rate]
quick = [5, 10, 20]

[live.kernel.experiment.runs]
scenario = "path.toml"
axes = ["rate"]
variants = ["reno"]
"""
OTHERS = """
[live.kernel.experiment.others]
scenario = "path.toml"
axes = ["rate"]
variants = ["cubic"]
"""


def test_kernels_in_virtual_time_may_have_their_own_grid_and_claims(write: Write) -> None:
    live = Study.load(write("[live.experiment.runs]", f"{KERNEL_PART}\n[live.experiment.runs]")).definition.live
    assert live is not None
    assert live.kernel is not None
    assert (live.axes["rate"].quick, live.kernel.axes["rate"].quick) == ((10, 20), (5, 10, 20))
    assert [claim.id for claim in live.claims] == ["H1", "H2"]
    assert [claim.id for claim in live.kernel.claims] == ["H1"]
    assert live.kernel.experiments["runs"].variants == ("reno",)
    assert live.kernel.about == "Without CUBIC, over three rates."


def test_kernels_in_virtual_time_may_judge_claims_that_the_live_engine_cannot(write: Write) -> None:
    """Detects a part for kernels that is limited to the claims and experiments of the part for live runs."""
    others = KERNEL_PART.replace('claims = ["H1"]', 'claims = ["H3"]') + OTHERS
    live = Study.load(write("[live.experiment.runs]", f"{others}\n[live.experiment.runs]")).definition.live
    assert live is not None
    assert "others" not in live.experiments
    assert live.kernel is not None
    assert [claim.id for claim in live.kernel.claims] == ["H3"]
    assert list(live.kernel.experiments) == ["runs", "others"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('about = "Without CUBIC, over three rates."\n', "", '"about" is missing'),
        ('claims = ["H1"]', 'claims = ["H2"]', "it asks for the variant cubic of runs, which is not run live"),
        ("quick = [5, 10, 20]", "quik = [5]", 'unknown key "quik"'),
        ("[live.kernel.axis.rate]", "[live.kernel.axes.rate]", 'unknown key "axes"'),
    ],
)
def test_mistakes_in_the_part_for_kernels_have_a_location(write: Write, old: str, new: str, told: str) -> None:
    assert old in KERNEL_PART
    part = KERNEL_PART.replace(old, new)
    with pytest.raises(UserError, match=r"study\.toml:\d+:\d+") as caught:
        Study.load(write("[live.experiment.runs]", f"{part}\n[live.experiment.runs]"))
    assert told in str(caught.value)
