"""Provoked failures of a Ray cluster: one message that blames it, its log, a remedy, and the stored results."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import Ended, Python

# Congestion controls run in the workers: each fault harms its worker.
CONTROL = """\
import os, sys
from anabranch import CongestionControl, Scenario

class Faulty(CongestionControl):
    name = "faulty"
    def on_ack(self, ack):
        {fault}
    def on_congestion(self, event): pass
    def on_rto(self, event): pass

if __name__ == "__main__":
    from anabranch.cli.common import exit_status
    swept = Scenario.from_file("path.toml").with_controls(Faulty)
    try:
        with exit_status():
            swept.sweep({{"flow.main.cc": ["faulty"]}}, repeat=1, ray="local", jobs=1)
    except SystemExit as ended:
        sys.exit(ended.code)
"""


def check_cluster(done: Ended, says: str) -> None:
    """Check for one error: it blames the cluster and names an existing log and one line of advice."""
    assert (done.returncode, done.stdout) == (1, ""), done.stderr[-3000:]
    errors = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert len(errors) == 1, done.stderr[-3000:]
    assert re.match(rf"error: --ray \S+: the cluster failed: {says}", errors[0]), errors[0]
    lines = done.stderr[done.stderr.index("error") :].splitlines()
    assert lines[1].startswith("  log: ")
    assert len(lines) == 3
    assert "Traceback" not in done.stderr
    assert "raylet)" not in done.stderr
    assert "\x1b" not in done.stderr


def check_log(done: Ended) -> None:
    found = re.search(r"^  log: (\S+)$", done.stderr, re.MULTILINE)
    assert found, done.stderr
    assert any(Path(found[1]).glob("raylet*")), found[1]


def control(python: Python, tmp_path: Path, fault: str, **more: str) -> Ended:
    (tmp_path / "faulty.py").write_text(CONTROL.format(fault=fault))
    return python("faulty.py", **more)


def test_a_worker_that_dies_is_an_error_of_the_cluster(scenario: Path, python: Python, tmp_path: Path) -> None:
    done = control(python, tmp_path, "os.kill(os.getpid(), 9)")
    check_cluster(done, "a task lost its node or worker 5 times: ")
    check_log(done)


def test_an_error_of_a_control_does_not_blame_the_cluster(scenario: Path, python: Python, tmp_path: Path) -> None:
    done = control(python, tmp_path, "raise ZeroDivisionError('in mid-run')")
    assert "cluster failed" not in done.stderr
    assert "ZeroDivisionError: in mid-run" in done.stderr


def test_an_error_of_the_scenario_does_not_blame_the_cluster(scenario: Path, anabranch: Python, tmp_path: Path) -> None:
    grid = ["--grid", 'link.a.rate=["10 Mbit/s", "0 Mbit/s"]']
    done, here = (
        anabranch("sweep", scenario, *grid, *place, "--json") for place in (["--ray", "local", "--jobs", 1], [])
    )
    assert (done.returncode, done.stdout) == (here.returncode, here.stdout) == (2, "")
    assert done.stderr == here.stderr


def test_a_node_without_memory(scenario: Path, anabranch: Python, tmp_path: Path) -> None:
    # Ray ends workers above this use of the machine's memory: any use at all.
    limits = {"RAY_memory_usage_threshold": "0.001", "RAY_memory_monitor_refresh_ms": "20"}
    done = anabranch("sweep", scenario, "--repeat", 2000, "--ray", "local", "--json", **limits)
    check_cluster(done, "a node ran out of memory: ")
    check_log(done)


def test_ray_that_cannot_be_loaded(scenario: Path, anabranch: Python, tmp_path: Path) -> None:
    (tmp_path / "broken" / "ray").mkdir(parents=True)
    (tmp_path / "broken" / "ray" / "__init__.py").write_text("import a_library_that_is_missing\n")
    done = anabranch("sweep", scenario, "--ray", "local", "--out", "out", PYTHONPATH=str(tmp_path / "broken"))
    check_cluster(done, "Ray cannot be loaded: No module named 'a_library_that_is_missing'")


def test_ray_that_cannot_start(scenario: Path, anabranch: Python, tmp_path: Path) -> None:
    done = anabranch("sweep", scenario, "--ray", "local", "--json", RAY_TMPDIR="/proc")
    check_cluster(done, "Ray did not start or connect: ")


def test_a_port_of_another_program(scenario: Path, anabranch: Python, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.2", 0)) as other:
        address = f"127.0.0.2:{other.getsockname()[1]}"
        done = anabranch("sweep", scenario, "--ray", address, "--json", RAY_gcs_rpc_server_connect_timeout_s="1")
    check_cluster(done, "Ray did not start or connect: ")


def test_no_cluster_runs_here(scenario: Path, anabranch: Python, tmp_path: Path) -> None:
    done = anabranch("sweep", scenario, "--ray", "auto", "--out", "out", RAY_TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: --ray auto: no cluster runs here\n  `ray start --head` starts one" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("127.0.0.1:1", "cannot be reached: "),
        ("nowhere", "HOST:PORT, auto or local was expected"),
        ("127.0.0.1:99999", "HOST:PORT, auto or local was expected"),
    ],
)
def test_an_address_without_a_cluster(
    scenario: Path, anabranch: Python, tmp_path: Path, address: str, says: str
) -> None:
    done = anabranch("sweep", scenario, "--ray", address, "--out", "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error: --ray {address}: {says}" in done.stderr
    assert not (tmp_path / "out").exists()


HEAD = """\
import sys
from ray.cluster_utils import Cluster
head = {"num_cpus": 1, "include_dashboard": False, "node_ip_address": "127.0.0.2"}
nodes = Cluster(initialize_head=True, head_node_args=head)
print(nodes.address, flush=True)
sys.stdin.readline()
getattr(nodes.head_node, sys.argv[1])(check_alive=False)
print("killed", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("part", ["kill_gcs_server", "kill_raylet"])
def test_a_head_lost_during_a_sweep(
    scenario: Path, anabranch: Python, environment: dict[str, str], tmp_path: Path, part: str
) -> None:
    """The finished runs are stored, and the same command resumes without the cluster."""
    quick = environment | {"RAY_gcs_rpc_server_reconnect_timeout_s": "5"}
    with subprocess.Popen([sys.executable, "-c", HEAD, part], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=quick, stderr=subprocess.DEVNULL) as head:  # fmt: skip
        assert head.stdin is not None
        assert head.stdout is not None
        address = head.stdout.readline().strip()
        sweep = [sys.executable, "-m", "anabranch", "sweep", str(scenario), "--repeat", "40000", "--out", "out"]
        with subprocess.Popen([*sweep, "--ray", address], cwd=tmp_path, env=quick, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # fmt: skip
            kept_after(tmp_path / "out", process)
            head.stdin.write("kill\n")
            head.stdin.flush()
            out, err = process.communicate(timeout=180)
        head.stdin.close()
    assert "finished points are in out; the same command goes on from there" in err
    rest = err.replace("finished points are in out; the same command goes on from there\n", "")
    check_cluster(Ended(process.args, process.returncode, out, rest), "")
    check_log(Ended(process.args, process.returncode, out, rest))
    assert sum(file.stat().st_size for file in (tmp_path / "out" / "points").iterdir()) > 1000


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_sweep_and_its_cluster(
    scenario: Path, environment: dict[str, str], sessions: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    sweep = [sys.executable, "-m", "anabranch", "sweep", str(scenario), "--repeat", "40000", "--out", "out"]
    with subprocess.Popen([*sweep, "--ray", "local", "--jobs", "1"], cwd=tmp_path, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed) as process:  # noqa: PLW1509  # fmt: skip
        kept_after(tmp_path / "out", process)
        process.send_signal(number)
        began = time.monotonic()
        out, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 3
    assert (process.returncode, out) == (status, "")
    assert len([line for line in err.splitlines() if line.startswith("error")]) == 1
    assert any((tmp_path / "out" / "points").iterdir())
    until = time.monotonic() + 60
    while processes_of(sessions) and time.monotonic() < until:
        time.sleep(0.5)
    assert processes_of(sessions) == []


def heed() -> None:
    """A shell's background job ignores Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def kept_after(out: Path, process: subprocess.Popen[str]) -> None:
    """Wait until runs are stored."""
    until = time.monotonic() + 120
    while not any(file.stat().st_size > 1000 for file in out.glob("points/*")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.1)


def processes_of(sessions: Path) -> list[str]:
    """Processes of the clusters with files in ``sessions``."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if f"{sessions}/" in command and "raylet" in command:
            found.append(command[:200])
    return found
