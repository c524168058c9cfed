"""``anabranch cc install``, ``status`` and ``remove`` on the running kernel.

Each test has mount and network namespaces of its own, with empty folders for records and units: the machine's default
control does not change. The controls themselves belong to the whole machine, so each test names its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import available, missing

ROOT = Path(__file__).resolve().parents[2]

PREPARE = """
mount -t tmpfs none /var/lib
mount -t tmpfs none /etc/systemd/system
mount -t bpf none /sys/fs/bpf
ip link set lo up
ip address add 10.9.0.1/24 dev lo
ip route add 192.0.2.0/24 via 10.9.0.1 dev lo mtu 1400 congctl reno
ip route add 2001:db8::/32 dev lo
cd "$FOLDER"
"""
LEFT = "find /var/lib /etc/systemd/system /sys/fs/bpf -mindepth 1 -not -name '*.debug'"
"""Files that are left; a BPF file system has two that the kernel makes."""
DEVICE = (
    "ip link add d0 type veth peer name d1; ip link set d0 up; ip link set d1 up; ip address add 10.8.0.1/24 dev d0"
)

SOCKETS = """
import socket, subprocess, sys
def pair(address):
    with socket.create_server(address, family=socket.AF_INET6 if ":" in address[0] else socket.AF_INET) as server:
        near = socket.create_connection(server.getsockname()[:2])
        return near, server.accept()[0]
def control(one):
    return one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(bytes(1)).decode()
"""


@pytest.fixture(autouse=True)
def needed(can_load: None) -> None:
    """The kernel accepts our eBPF controls."""
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        missing("ip and unshare")


@pytest.fixture
def control(tmp_path: Path) -> str:
    """The name of a control in ``mine.bpf.c`` that no other test has."""
    name = f"ab_i{os.getpid() % 10**6}_{time.monotonic_ns() % 1000:03d}"
    text = (ROOT / "bpf" / "cc" / "vegas.bpf.c").read_text("utf-8")
    (tmp_path / "mine.bpf.c").write_text(text.replace('"ab_vegas"', f'"{name}"'), "utf-8")
    return name


def inside(folder: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """Run commands in new namespaces."""
    script = "\n".join((PREPARE, *lines)).replace("anabranch cc", f"{sys.executable} -m anabranch cc")
    environment = {**os.environ, "FOLDER": str(folder), "PYTHONPATH": str(ROOT / "python")}
    words = ["unshare", "--mount", "--net", "sh", "-ec", script]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment, timeout=300)


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A new cgroup of version 2."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    mounts = [line.split()[1] for line in lines if line.split()[2] == "cgroup2"]
    if not mounts:
        missing("cgroup2")
    place = Path(mounts[0]) / f"anabranch-test-{os.getpid()}"
    place.mkdir()
    yield place
    place.rmdir()


def test_default_and_routes(tmp_path: Path, control: str) -> None:
    """The machine and routes use it; ``remove`` restores the former controls, and open connections go on."""
    (tmp_path / "use.py").write_text(
        f"{SOCKETS}\n"
        "near, far = pair(('10.9.0.1', 0))\n"
        "print(control(near), control(far))\n"
        "near.sendall(b'x' * 100_000)\n"
        f"subprocess.run([sys.executable, '-m', 'anabranch', 'cc', 'remove', '{control}'], check=True)\n"
        "near.sendall(b'y' * 10)\n"
        "received = b''\n"
        "while not received.endswith(b'y' * 10): received = received[-10:] + far.recv(1 << 20)\n"
        "print(control(near), control(pair(('10.9.0.1', 0))[0]))\n"
    )
    done = inside(
        tmp_path,
        "cat /proc/sys/net/ipv4/tcp_congestion_control",
        "anabranch cc install mine.bpf.c --default --route 192.0.2.0/24 --route 2001:db8::/32",
        "ip route show 192.0.2.0/24; ip -6 route show 2001:db8::/32",
        f"{sys.executable} use.py",
        "ip route show 192.0.2.0/24; ip -6 route show 2001:db8::/32",
        "cat /proc/sys/net/ipv4/tcp_congestion_control",
        LEFT,
    )
    assert done.returncode == 0, done.stderr
    former, v4, v6, opened, after, v4_after, v6_after, restored, *left = done.stdout.splitlines()
    assert f"mtu 1400 congctl {control}" in v4
    assert f"congctl {control}" in v6
    assert opened == f"{control} {control}"
    assert after == f"{control} {former}", "the open connection keeps it, and a new one has the former control"
    assert "mtu 1400 congctl reno" in v4_after
    assert "congctl" not in v6_after
    assert (restored, left) == (former, [])
    assert "2 open connections keep it" in done.stderr
    assert "systemd does not run here" in done.stderr
    assert control not in available()


def test_a_cgroup(tmp_path: Path, control: str, cgroup: Path) -> None:
    """Connections of the cgroup use it at both ends, and no others."""
    (tmp_path / "use.py").write_text(f"{SOCKETS}\nprint(*map(control, pair(('127.0.0.1', 0))))\n")
    use = f"{sys.executable} use.py"
    done = inside(
        tmp_path,
        f"anabranch cc install mine.bpf.c --cgroup {cgroup.name}",
        f"sh -c 'echo $$ > {cgroup}/cgroup.procs; exec {use}'",
        use,
        "anabranch cc status --json",
        f"anabranch cc remove {control}",
        f"sh -c 'echo $$ > {cgroup}/cgroup.procs; exec {use}'",
        LEFT,
    )
    assert done.returncode == 0, done.stderr
    within, outside, *document, after = done.stdout.splitlines()
    assert within == f"{control} {control}"
    assert control not in outside
    assert control not in after
    (one,) = json.loads("\n".join(document))["controls"]
    assert one["scopes"] == [{"kind": "cgroup", "where": str(cgroup), "former": None, "in_effect": True}]


def test_a_unit_installs_it_again(tmp_path: Path, control: str) -> None:
    """With systemd a unit is enabled, whose command does the same again after a restart."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "systemctl").write_text('#!/bin/sh\necho "$@" >> "$FOLDER/called"\n')
    (tmp_path / "bin" / "systemctl").chmod(0o755)
    unit = f"anabranch-cc-{control}.service"
    done = inside(
        tmp_path,
        "mount -t tmpfs none /run; mkdir -p /run/systemd/system; PATH=$FOLDER/bin:$PATH",
        "anabranch cc install mine.bpf.c --route 192.0.2.0/24",
        "rm mine.bpf.c",
        f"test -L /etc/systemd/system/multi-user.target.wants/{unit}",
        # A restart: the control and the route's metric are gone.
        "rm -r /sys/fs/bpf/anabranch; ip route change 192.0.2.0/24 via 10.9.0.1 dev lo",
        "anabranch cc status",
        f"sed -n 's/^ExecStart=//p' /etc/systemd/system/{unit} > start; sh start",
        "ip route show 192.0.2.0/24",
        f"cat /etc/systemd/system/{unit} > unit",
        f"anabranch cc remove {control}",
        LEFT,
    )
    assert done.returncode == 0, done.stderr
    assert "NOT in effect" in done.stdout
    assert done.stdout.splitlines()[-1].rstrip().endswith(f"congctl {control}")
    assert (tmp_path / "called").read_text().splitlines() == ["daemon-reload", "daemon-reload", f"stop {unit}"]
    if shutil.which("systemd-analyze") is not None:
        (tmp_path / unit).write_text((tmp_path / "unit").read_text())
        words = ["systemd-analyze", "verify", "--man=no", str(tmp_path / unit)]
        checked = subprocess.run(words, capture_output=True, text=True, check=False)
        assert unit not in checked.stderr, checked.stderr


@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8, 2.0])
def test_a_killed_installation_is_removed(tmp_path: Path, control: str, seconds: float) -> None:
    """An installation, and then a removal, that are killed at any time leave a state that ``remove`` cleans."""
    done = inside(
        tmp_path,
        "cat /proc/sys/net/ipv4/tcp_congestion_control",
        "mount -t tmpfs none /run; mkdir -p /run/systemd/system",
        f"timeout -s KILL {seconds} anabranch cc install mine.bpf.c --default --route 192.0.2.0/24 || true",
        f"timeout -s KILL {seconds / 2} anabranch cc remove {control} || true",
        f"anabranch cc remove {control} || echo nothing was left",
        "cat /proc/sys/net/ipv4/tcp_congestion_control",
        "ip route show 192.0.2.0/24",
        LEFT,
    )
    assert done.returncode == 0, done.stderr
    former, *more = [line for line in done.stdout.splitlines() if line != "nothing was left"]
    assert more[0] == former
    assert "congctl reno" in more[1]
    assert more[2:] == [], "files are left"
    assert control not in available()


def test_two_controls_cannot_have_one_scope(tmp_path: Path, control: str) -> None:
    other = control.replace("ab_i", "ab_j")
    text = (tmp_path / "mine.bpf.c").read_text().replace(control, other)
    (tmp_path / "other.bpf.c").write_text(text + "\n")
    done = inside(
        tmp_path,
        "anabranch cc install mine.bpf.c --route 192.0.2.0/24",
        "anabranch cc install other.bpf.c --route 192.0.2.0/24 || echo refused $?",
        f"anabranch cc remove {control}",
        LEFT,
    )
    assert (done.returncode, done.stdout) == (0, "refused 2\n"), done.stderr
    assert other not in available(), "a refused control is not left in the kernel"
    assert f"--route 192.0.2.0/24: `{control}` is installed there\n  anabranch cc remove {control}" in done.stderr


def test_routes_of_one_prefix_and_metric_are_refused(tmp_path: Path, control: str) -> None:
    """The kernel would replace the first of them by each, and so delete it."""
    done = inside(
        tmp_path,
        DEVICE,
        "ip route append 192.0.2.0/24 via 10.8.0.9 dev d0",
        "ip route add 198.51.100.0/24 dev d0; ip route append blackhole 198.51.100.0/24",
        "ip -6 route append 2001:db8::/32 dev d0",
        "ip route show > before; ip -6 route show 2001:db8::/32 >> before",
        "for one in 192.0.2.0/24 198.51.100.0/24 2001:db8::/32; do",
        "  anabranch cc install mine.bpf.c --route $one || echo refused $?",
        "done",
        "ip route show > after; ip -6 route show 2001:db8::/32 >> after; cmp before after",
        LEFT,
    )
    assert (done.returncode, done.stdout) == (0, "refused 2\n" * 3), done.stderr
    assert "--route 192.0.2.0/24: several routes have metric 0, and the kernel would replace the first" in done.stderr
    assert control not in available()


def test_a_route_that_the_kernel_replaced_is_added_again(tmp_path: Path) -> None:
    """Another process may append a route between the check and the change."""
    (tmp_path / "change.py").write_text(
        "from anabranch.errors import RunFailedError\n"
        "from anabranch.installed import routes\n"
        "try:\n"
        "    routes.change(routes.find(routes.prefix('192.0.2.0/24'))[1], 'cubic')\n"
        "except RunFailedError as error:\n"
        "    print(error)\n"
    )
    done = inside(
        tmp_path,
        DEVICE,
        "ip route append 192.0.2.0/24 via 10.8.0.9 dev d0",
        f"{sys.executable} change.py",
        "ip route show 192.0.2.0/24",
    )
    assert done.returncode == 0, done.stderr
    told, *shown = done.stdout.splitlines()
    assert told.startswith("route 192.0.2.0/24: the kernel replaced another route")
    assert any("via 10.9.0.1" in one and "congctl reno" in one for one in shown)


def test_a_route_that_expires_is_refused(tmp_path: Path, control: str) -> None:
    """A changed route would stay for ever, and no router advertisement would renew it."""
    done = inside(
        tmp_path,
        DEVICE,
        "ip -6 route add 2001:db8:1::/48 dev d0 expires 600",
        "anabranch cc install mine.bpf.c --route 2001:db8:1::/48 || echo refused $?",
        "ip -6 route show 2001:db8:1::/48",
        LEFT,
    )
    assert done.returncode == 0, done.stderr
    refused, route = done.stdout.splitlines()
    assert refused == "refused 2"
    assert "expires" in route
    assert "--route 2001:db8:1::/48: the route expires in " in done.stderr
    assert control not in available()


def test_each_route_of_a_prefix_has_its_former_control_again(tmp_path: Path, control: str) -> None:
    """Also routes over several next hops and nexthop objects are restored unchanged."""
    done = inside(
        tmp_path,
        DEVICE,
        "ip nexthop add id 7 via 10.8.0.9 dev d0",
        "ip route add 192.0.2.0/24 dev d0 metric 10 congctl cubic",
        "ip route add 192.0.2.0/24 nhid 7 metric 20",
        "ip route add 192.0.2.0/24 metric 30 nexthop via 10.8.0.2 dev d0 weight 2 nexthop via 10.8.0.3 dev d0",
        "ip -6 route add 2001:db8::/32 metric 30 nexthop via fe80::2 dev d0 nexthop via fe80::3 dev d0",
        "ip route show > before; ip -6 route show 2001:db8::/32 >> before",
        "anabranch cc install mine.bpf.c --route 192.0.2.0/24 --route 2001:db8::/32",
        f"ip route show 192.0.2.0/24 | grep -c {control}",
        "anabranch cc install mine.bpf.c --route 192.0.2.0/24",
        f"anabranch cc remove {control}",
        "ip route show > after; ip -6 route show 2001:db8::/32 >> after; diff before after",
        LEFT,
    )
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr


def test_another_version_of_an_installed_file_is_refused(tmp_path: Path, control: str) -> None:
    done = inside(
        tmp_path,
        "anabranch cc install mine.bpf.c",
        "echo >> mine.bpf.c",
        "anabranch cc install mine.bpf.c || echo refused $?",
        f"anabranch cc remove {control}",
        LEFT,
    )
    assert (done.returncode, done.stdout) == (0, "refused 2\n"), done.stderr
    assert "only programs that choose it use it: --default" in done.stderr
    assert f"another version of `{control}` is installed\n  anabranch cc remove {control}" in done.stderr


def test_a_failed_installation_leaves_no_record(tmp_path: Path, control: str) -> None:
    """Neither that of a file, nor that of a control that ships: here for lack of a compiler."""
    done = inside(
        tmp_path,
        "PATH=/nowhere anabranch cc install mine.bpf.c || echo refused $?",
        "PATH=/nowhere anabranch cc install compound || echo refused $?",
        LEFT,
    )
    assert (done.returncode, done.stdout) == (0, "refused 2\nrefused 2\n"), done.stderr
    assert "clang" in done.stderr


def test_an_installation_killed_after_the_control_was_loaded_is_completed(tmp_path: Path, control: str) -> None:
    (tmp_path / "killed.py").write_text(
        "import os, signal, sys\n"
        "from anabranch.installed import controls\n"
        "load = controls._load\n"
        "controls._load = lambda *given, **more: (load(*given, **more), os.kill(os.getpid(), signal.SIGKILL))\n"
        "controls.install('mine.bpf.c', controls.Scopes(default=True), print)\n"
    )
    done = inside(
        tmp_path,
        f"{sys.executable} killed.py || true",
        "anabranch cc install mine.bpf.c --default",
        "cat /proc/sys/net/ipv4/tcp_congestion_control",
        f"anabranch cc remove {control}",
        LEFT,
    )
    assert (done.returncode, done.stdout) == (0, f"{control}\n"), done.stderr
