"""Many runs at once: each equals the run alone, and the file is resolved once for each point."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario, _engine
from anabranch.sweep.points import Job

TEXT = """
duration = "1 s"
[link.a]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "5 ms"
impair = [{ kind = "loss-list", file = "loss.txt" }]
[flow.main]
from = "S"
to = "R"
count = 2
start_spread = "100 ms"
"""
POINTS: list[tuple[list[str], int | None]] = [
    ([], None),
    (["link.a.delay=7 ms"], 3),
    (["link.a.delay=7 ms", "flow.main.cc=reno"], 4),
    (["flow.main.count=5", 'link.a.forward.queue.limit="20 packets"'], 3),
    (['flow.more={ from = "R", to = "S" }', "flow.more.cc=bbr"], 3),
    ([], None),
]


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "loss.txt").write_text("30\n500\n")
    return str(tmp_path / "f.toml")


def measured(summary: str) -> dict[str, Any]:
    """A summary without the cost of its run."""
    read: dict[str, Any] = json.loads(summary)
    del read["engine_stats"]
    return read


def test_each_run_equals_the_run_alone(file: str) -> None:
    many = _engine.summarize_many([(TEXT, file, sets, seed) for sets, seed in POINTS], threads=2)
    for (sets, seed), (summary, depends) in zip(POINTS, many, strict=True):
        # A separate text is parsed separately.
        alone = _engine.run(TEXT + "\n", file, sets, seed=seed)
        assert measured(summary) == measured(alone.summary_json)
        assert depends == alone.depends
        assert [name for name, _ in depends] == [str(Path(file).parent / "loss.txt")]


def test_texts_of_several_files_are_kept_apart(file: str) -> None:
    other = TEXT.replace("10 Mbit/s", "20 Mbit/s")
    jobs: list[Job] = [(TEXT, file, [], 1), (other, file, [], 1), (TEXT, f"{file}.toml", [], 1), (TEXT, file, [], 1)]
    found = [json.loads(summary) for summary, _ in _engine.summarize_many(jobs)]
    assert [one["scenario"] for one in found] == [file, file, f"{file}.toml", file]
    assert found[0]["digest"] == found[3]["digest"] != found[1]["digest"]


def test_the_first_error_is_that_of_the_job_alone(file: str) -> None:
    wrong = [["link.a.delay=5 ms"], ["flow.main.cc=cubik"], ["link.a.rate=1 Mbits"], ["flow.main.cc=reno"]]
    found = _engine.check_many([(TEXT, file, sets, 1) for sets in wrong], threads=2)
    assert found is not None
    with pytest.raises(_engine.ScenarioError) as alone:
        _engine.resolve(TEXT, file, wrong[1], 1)
    assert found[0] == 1
    assert str(found[1]) == str(alone.value)
    assert (found[1].file, found[1].line, found[1].more) == (alone.value.file, alone.value.line, alone.value.more)
    assert _engine.check_many([(TEXT, file, sets, 1) for sets in (wrong[0], wrong[3])]) is None


def test_an_error_of_the_file_is_that_of_each_job(file: str) -> None:
    jobs = [("duration = ", file, ["flow.main.cc=reno"], 1)] * 3
    found = _engine.check_many(jobs, threads=1)
    assert found is not None
    assert (found[0], found[1].line) == (0, 1)
    with pytest.raises(_engine.ScenarioError, match="there is no value after"):
        _engine.summarize_many(jobs)


def test_a_sweep_resolves_alone_only_its_base(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call checks all points and one makes them, whatever their number."""
    calls: list[tuple[str, int]] = []

    def counted(name: str) -> None:
        original = getattr(_engine, name)

        def call(jobs: Any, *more: Any, **options: Any) -> Any:
            calls.append((name, len(jobs) if isinstance(jobs, list) else 1))
            return original(jobs, *more, **options)

        monkeypatch.setattr(_engine, name, call)

    for name in ("resolve", "check_many", "summarize_many", "run", "run_many"):
        counted(name)
    Scenario.from_text(TEXT, file=file).sweep({"link.a.delay": [f"{n} ms" for n in range(1, 9)]}, repeat=2, jobs=1)
    assert calls == [("resolve", 1), ("check_many", 8), ("summarize_many", 16)]


def test_jobs_of_one_text_parse_it_once(file: str) -> None:
    """A ratio within one run: separate texts are parsed separately, which takes longer than to resolve them."""
    long = TEXT + "# comment\n" * 20_000
    sets = [[f"link.a.delay={n} ms"] for n in range(1, 33)]

    def cost(texts: list[str]) -> float:
        before = time.process_time()
        jobs: list[Job] = [(text, file, own, 1) for text, own in zip(texts, sets, strict=True)]
        assert _engine.check_many(jobs, threads=1) is None
        return time.process_time() - before

    # A new object each.
    separate = cost([f"{long}#{n}" for n in range(32)])
    assert cost([long] * 32) < separate / 3
