"""A search on a Ray cluster makes the finds of one machine."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import Python

# A separate program, as for sweeps.
TWO_NODES = """\
import subprocess, sys
from ray.cluster_utils import Cluster

head = {"num_cpus": 1, "include_dashboard": False, "node_ip_address": "127.0.0.2"}
nodes = Cluster(initialize_head=True, head_node_args=head)
nodes.add_node(num_cpus=1, node_ip_address="127.0.0.3")
nodes.wait_for_nodes()
command = [sys.executable, "-m", "anabranch", *sys.argv[1:], "--ray", nodes.address]
sys.exit(subprocess.run(command, check=False).returncode)
"""


def test_a_cluster_and_threads_make_the_same_finds(tmp_path: Path, python: Python, anabranch: Python) -> None:
    search = ("stress", "vegas", "--goal", "starvation", "--runs", 600)
    done = python("-c", TWO_NODES, *search, "--out", tmp_path / "ray")
    assert done.returncode in (0, 1), done.stderr[-4000:]
    assert anabranch(*search, "--out", tmp_path / "here").returncode == done.returncode
    ray, here = (json.loads((tmp_path / name / "finds.json").read_text()) for name in ("ray", "here"))
    assert ray["finds"] == here["finds"]
    assert ray["finds"]
