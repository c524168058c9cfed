"""Sweeps on a Ray cluster give the tables of one machine, even if nodes fail."""

from __future__ import annotations

from pathlib import Path

from .conftest import Python

# A separate program: Ray takes over the process, and warns about its files at exit. Loopback
# addresses only.
TWO_NODES = """\
import sys
from ray.cluster_utils import Cluster
from anabranch import Scenario

head = {"num_cpus": 1, "include_dashboard": False, "node_ip_address": "127.0.0.2"}
nodes = Cluster(initialize_head=True, head_node_args=head)
second = nodes.add_node(num_cpus=1, node_ip_address="127.0.0.3")
# The driver joins the node that was added last, and must not lose it.
nodes.add_node(num_cpus=0, node_ip_address="127.0.0.4")
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


def check_same(ray: Path, here: Path) -> None:
    assert (ray / "runs.csv").read_bytes() == (here / "runs.csv").read_bytes()
    assert (ray / "sweep.json").read_bytes() == (here / "sweep.json").read_bytes()


def test_two_nodes_shards_and_one_process_give_the_same_tables(
    tmp_path: Path, scenario: Path, python: Python, anabranch: Python
) -> None:
    ray, here, merged = tmp_path / "ray", tmp_path / "here", tmp_path / "merged"
    done = python("-c", TWO_NODES, scenario, ray, 20, "no")
    assert done.returncode == 0, done.stderr[-4000:]
    assert anabranch("sweep", scenario, "--out", here).returncode == 0
    check_same(ray, here)
    parts = [tmp_path / f"part-{i}" for i in (1, 2, 3)]
    for i, part in enumerate(parts, 1):
        assert anabranch("sweep", scenario, "--shard", f"{i}/3", "--out", part).returncode == 0
    assert anabranch("sweep", "merge", *parts, "--out", merged).returncode == 0
    check_same(ray, merged)


def test_a_node_killed_during_a_run_loses_nothing(
    tmp_path: Path, scenario: Path, python: Python, anabranch: Python
) -> None:
    done = python("-c", TWO_NODES, scenario, tmp_path / "ray", 300, "kill")
    assert done.returncode == 0, done.stderr[-4000:]
    assert anabranch("sweep", scenario, "--repeat", 300, "--out", tmp_path / "here").returncode == 0
    check_same(tmp_path / "ray", tmp_path / "here")
