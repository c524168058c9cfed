"""Sweeps on a Ray cluster: the same tables as here, whatever happens to its nodes."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch import cluster
from anabranch.errors import UserError
from anabranch.maker import FailedRunError, Jobs, Order

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
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")

# A program of its own: Ray takes the process over, and warns of its own files when it leaves.
TWO_NODES = """\
import os, sys, threading, time
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
from ray.cluster_utils import Cluster
from anabranch import Scenario

nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
second = nodes.add_node(num_cpus=1)
nodes.wait_for_nodes()
file, out, repeat, kill = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "kill"
killed = []

def progress(done, total):
    if kill and not killed and 0 < done < total:
        killed.append(done)
        nodes.remove_node(second, allow_graceful=False)

Scenario.from_file(file).sweep(repeat=repeat, out=out, ray=nodes.address, progress=progress)
if kill and not killed:
    sys.exit("no node was killed")
"""


def swept(tmp_path: Path, repeat: int, kill: str) -> Path:
    """Sweep on two nodes, of which one may be killed; the directory of the tables."""
    (tmp_path / "path.toml").write_text(TEXT)
    command = [sys.executable, "-c", TWO_NODES, str(tmp_path / "path.toml"), str(tmp_path / "ray"), str(repeat), kill]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)  # noqa: S603 - our own
    assert done.returncode == 0, done.stderr[-4000:]
    return tmp_path / "ray"


def check_same(ray: Path, here: Path) -> None:
    assert (ray / "runs.csv").read_bytes() == (here / "runs.csv").read_bytes()
    assert (ray / "sweep.json").read_bytes() == (here / "sweep.json").read_bytes()


@needs_ray
def test_two_nodes_shards_and_one_process_give_the_same_tables(tmp_path: Path, anabranch: Call) -> None:
    ray = swept(tmp_path, 20, "no")
    assert anabranch("sweep", tmp_path / "path.toml", "--out", tmp_path / "here").status == 0
    check_same(ray, tmp_path / "here")
    parts = [tmp_path / f"part-{i}" for i in (1, 2, 3)]
    for i, part in enumerate(parts, 1):
        assert anabranch("sweep", tmp_path / "path.toml", "--shard", f"{i}/3", "--out", part).status == 0
    assert anabranch("sweep", "merge", *parts, "--out", tmp_path / "merged").status == 0
    check_same(ray, tmp_path / "merged")


@needs_ray
def test_a_node_that_is_killed_in_mid_run_loses_nothing(tmp_path: Path, anabranch: Call) -> None:
    ray = swept(tmp_path, 2000, "kill")
    assert anabranch("sweep", tmp_path / "path.toml", "--repeat", 2000, "--out", tmp_path / "here").status == 0
    check_same(ray, tmp_path / "here")


@needs_ray
@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("127.0.0.1:1", "cannot be reached: "),
        ("nowhere", "HOST:PORT, auto or local was expected"),
        ("127.0.0.1:99999", "HOST:PORT, auto or local was expected"),
    ],
)
def test_a_cluster_that_cannot_be_reached(anabranch: Call, tmp_path: Path, address: str, says: str) -> None:
    (tmp_path / "path.toml").write_text(TEXT)
    done = anabranch("sweep", tmp_path / "path.toml", "--ray", address, "--out", tmp_path / "out")
    assert (done.status, done.out) == (2, "")
    assert f"--ray {address}: {says}" in done.err
    assert len([line for line in done.err.splitlines() if line.startswith("error")]) == 1
    assert not (tmp_path / "out").exists()


def test_without_ray_the_option_says_what_is_missing(
    anabranch: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "path.toml").write_text(TEXT)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    done = anabranch("sweep", tmp_path / "path.toml", "--ray", "local")
    assert (done.status, done.out) == (2, "")
    assert "--ray local: Ray is not installed" in done.err


class Immediate:
    """Stands for Ray: tasks are made when they are asked for, and answers can be changed."""

    class exceptions:  # noqa: N801 - as Ray calls it
        RayError = RuntimeError

    def __init__(self) -> None:
        self.build: str | None = None
        self.cancelled = 0

    def remote(self, **_: object) -> object:
        return lambda function: type("Task", (), {"remote": staticmethod(lambda *given: _Ref(function(*given)))})

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def wait(self, refs: list[object], num_returns: int) -> tuple[list[object], list[object]]:
        return refs[-1:], refs[:-1]

    def get(self, ref: object) -> cluster.Answer:
        assert isinstance(ref, _Ref)
        answer = ref.answer
        return answer if self.build is None else cluster.Answer(self.build, answer.seconds, answer.made)

    def cancel(self, _: object, force: bool) -> None:
        self.cancelled += 1


class _Ref:
    def __init__(self, answer: cluster.Answer) -> None:
        self.answer = answer


def immediate() -> tuple[cluster.Ray, Immediate]:
    ray, inside = object.__new__(cluster.Ray), Immediate()
    ray._ray, ray._told = inside, "ray=local"
    return ray, inside


def jobs(durations: list[str]) -> Jobs:
    from anabranch.design import Point

    points = [Point((value,), 1) for value in durations]
    return Jobs(TEXT, "path.toml", [], ["duration"], points)


def test_a_node_of_another_build_is_refused() -> None:
    ray, inside = immediate()
    inside.build = "0.0.1+other"
    with pytest.raises(UserError, match=r"a node has build 0\.0\.1\+other"):
        list(ray.make(jobs(["1 s"] * 100), range(100), Order(True, False, []), lambda _: None))
    assert inside.cancelled > 0


def test_a_run_that_is_refused_keeps_those_of_its_task() -> None:
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
