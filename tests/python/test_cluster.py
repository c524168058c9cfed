"""Sweeps on a Ray cluster, without Ray: repeats, errors, stored results. See also tests/cluster."""

from __future__ import annotations

import importlib.util
import json
import os
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest

from anabranch.errors import UserError
from anabranch.sweep import cluster
from anabranch.sweep.cluster_driver import Answer, Done, Failure, Ready, work
from anabranch.sweep.maker import FailedRunError, Jobs, Order
from anabranch.sweep.points import Job

from .command import Call

TEXT = """\
duration = "1 s"
[link.a]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "20 ms"
forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]
[flow.main]
from = "S"
to = "R"
[sweep]
repeat = 20
"flow.main.cc" = ["reno", { kind = "cubic", beta = 0.8 }]
"""


def test_without_ray_the_option_names_the_missing_package(
    anabranch: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "path.toml").write_text(TEXT)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    done = anabranch("sweep", tmp_path / "path.toml", "--ray", "local")
    assert (done.status, done.out) == (2, "")
    assert "--ray local: Ray is not installed" in done.err


class Immediate:
    """A driver that executes tasks when they are submitted; some fail first, and answers can be changed."""

    def __init__(self, *failures: Failure) -> None:
        self.failures = deque(failures)
        self.build: str | None = None
        self.submitted: list[int] = []
        self.cancelled = 0
        self._done: deque[Done] = deque()

    def submit(self, number: int, jobs: list[Job], order: Order) -> None:
        from pickle import dumps

        self.submitted.append(len(jobs))
        answer: Answer | Failure
        if self.failures:
            answer = self.failures.popleft()
        else:
            made = work(jobs, order.digest, order.untrusted, dumps(order.controls))
            answer = made if self.build is None else replace(made, build=self.build)
        self._done.append(Done(number, answer, 2))

    def next(self) -> Done | Failure:
        return self._done.pop()

    def cancel(self) -> None:
        self.cancelled += 1


def immediate(*failures: Failure) -> tuple[cluster.Ray, Immediate]:
    ray, inside = object.__new__(cluster.Ray), Immediate(*failures)
    ray._driver, ray._told, ray._number, ray._ready = inside, "ray=local", 0, Ready("/ray/logs", 2)  # type: ignore[assignment]
    return ray, inside


def swept(ray: cluster.Ray, count: int) -> list[int]:
    made = ray.make(jobs(["1 s"] * count), range(count), Order(True, False, []), lambda _: None)
    return sorted(run for runs, _ in made for run in runs)


def test_a_lost_task_is_repeated() -> None:
    ray, inside = immediate(*[Failure("lost", "a node died")] * (cluster.ATTEMPTS - 1))
    assert swept(ray, 8) == list(range(8))
    assert inside.submitted == [8] * cluster.ATTEMPTS


@pytest.mark.parametrize(
    ("kind", "attempts", "says"),
    [
        ("lost", cluster.ATTEMPTS, "a task lost its node or worker 5 times"),
        ("memory", 1, "a node ran out of memory"),
        ("store", 1, "a node's object store or disk is full"),
        ("version", 1, "a node cannot load this version of Anabranch"),
        ("task", 1, "a task raised an error"),
    ],
)
def test_a_failure_of_the_cluster_names_log_and_remedy(kind: str, attempts: int, says: str) -> None:
    ray, inside = immediate(*[Failure(kind, "Ray's words")] * attempts)
    with pytest.raises(cluster.ClusterError) as failed:
        swept(ray, 8)
    first, log, remedy = str(failed.value).splitlines()
    assert first == f"ray=local: the cluster failed: {says}: Ray's words"
    assert log == "  log: /ray/logs"
    assert remedy.strip() == failed.value.hint
    assert len(inside.submitted) == attempts


def jobs(durations: list[str]) -> Jobs:
    from anabranch.sweep.design import Point

    points = [Point((value,), 1) for value in durations]
    return Jobs(TEXT, "path.toml", [], ["duration"], points)


def test_a_node_of_another_build_is_refused() -> None:
    ray, inside = immediate()
    inside.build = "0.0.1+other"
    with pytest.raises(UserError, match=r"a node has build 0\.0\.1\+other"):
        list(ray.make(jobs(["1 s"] * 100), range(100), Order(True, False, []), lambda _: None))
    assert inside.cancelled > 0


def test_a_refused_run_keeps_the_other_runs_of_its_task() -> None:
    ray, _ = immediate()
    durations = ["1 s", "2 s", "1 Mbit/s", "3 s", "4 s"]
    found: list[int] = []

    def collect() -> None:
        for runs, made in ray.make(jobs(durations), range(5), Order(True, False, []), lambda _: None):
            found.extend(runs)
            assert all(json.loads(summary)["digest"] for summary, _ in made)

    with pytest.raises(FailedRunError) as failed:
        collect()
    assert found == [0, 1, 3, 4]
    assert failed.value.run == 2
    assert "duration" in str(failed.value.error)
    assert os.path.basename(failed.value.error.file)
