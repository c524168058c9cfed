"""``anabranch aqm`` at a device of a new network namespace: counted, confirmed, reverted, detached."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import command, missing

FOLDER = Path("/sys/fs/bpf/anabranch-aqm")
PACKETS = 400
SEND = (
    "import socket, time; s = socket.socket(type=socket.SOCK_DGRAM)\n"
    f"for i in range({PACKETS}): s.sendto(bytes(972), ('10.9.0.2', 9)); time.sleep(0.001)"
)
"""1,000-byte packets at 8 Mbit/s at most."""


class Host:
    """A network namespace with one device, ``out``, to a peer that discards everything."""

    def __init__(self) -> None:
        self.name = f"anabranch-aqm-{os.getpid()}"

    def inside(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program in the namespace, with this machine's files."""
        entered = ["nsenter", f"--net=/run/netns/{self.name}", *words]
        return subprocess.run(entered, capture_output=True, text=True, check=check, timeout=120)

    def aqm(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.inside(*command("aqm", *words), check=False)

    def attach(self, *words: str) -> None:
        done = self.aqm("attach", "out", "--rate", "2 Mbit/s", *words)
        assert done.returncode == 0, done.stderr

    def status(self) -> list[dict[str, Any]]:
        done = self.aqm("status", "--json")
        assert done.returncode == 0, done.stderr
        queues: list[dict[str, Any]] = json.loads(done.stdout)
        return queues

    def send(self) -> None:
        self.inside(sys.executable, "-c", SEND)

    def holders(self) -> list[int]:
        """The processes that hold a link of `out`."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = entry.read_bytes().split(b"\0")
            except OSError:
                continue
            if b"anabranch aqm: out" in words and self.path().encode() in words:
                found.append(int(entry.parent.name))
        return found

    def path(self) -> str:
        number = os.stat(f"/run/netns/{self.name}").st_ino
        found = json.loads(self.inside("ip", "-j", "link", "show", "out").stdout)
        return str(FOLDER / f"{number}-{found[0]['ifindex']}")

    def pins(self) -> list[str]:
        """The files that hold links in this namespace."""
        number = os.stat(f"/run/netns/{self.name}").st_ino
        return [path.name for path in FOLDER.glob(f"{number}-*")]

    def link(self, *words: str) -> None:
        """Change a device of the namespace."""
        subprocess.run(["ip", "-n", self.name, "link", *words], check=True, capture_output=True)


@pytest.fixture
def host(can_load: None) -> Iterator[Host]:
    if shutil.which("ip") is None or shutil.which("nsenter") is None:
        missing("network namespaces need the programs ip (iproute2) and nsenter (util-linux)")
    made = Host()

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        ip("netns", "add", made.name)
        ip("-n", made.name, "link", "add", "out", "type", "veth", "peer", "name", "in")
        for device in ("out", "in", "lo"):
            ip("-n", made.name, "link", "set", device, "up")
        ip("-n", made.name, "addr", "add", "10.9.0.1/24", "dev", "out")
        ip("-n", made.name, "neigh", "add", "10.9.0.2", "lladdr", "02:00:00:00:00:02", "dev", "out")
        yield made
    finally:
        made.aqm("detach", "out")
        subprocess.run(["ip", "netns", "del", made.name], check=False, capture_output=True)


def test_a_confirmed_queue_counts_and_drops_and_leaves_nothing(host: Host) -> None:
    assert host.status() == []
    host.attach("--confirm-within", "100")
    (queue,) = host.status()
    assert not queue["confirmed"]
    assert 0 < queue["seconds_to_confirm"] <= 100
    assert host.aqm("confirm", "out").returncode == 0
    (queue,) = host.status()
    assert queue["confirmed"]
    assert (queue["device"], queue["kind"], queue["rate_bit_s"]) == ("out", "share-red", 2_000_000)
    before = queue["packets"]
    host.send()
    (queue,) = host.status()
    assert queue["packets"] >= before + PACKETS
    # Four times the rate arrives.
    assert PACKETS / 4 < queue["dropped_packets"] < PACKETS
    assert queue["bytes"] >= PACKETS * 1000
    text = host.aqm("status", "--prometheus").stdout
    name = 'anabranch_aqm_packets_total{device="out",kind="share-red"} '
    (packets,) = [int(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name)]
    # IPv6 sends further packets.
    assert packets >= queue["packets"]
    assert "share-red at 2 Mbit/s, remains" in host.aqm("status", "out").stdout
    again = host.aqm("attach", "out", "--rate", "1 Mbit/s")
    assert again.returncode == 2
    assert "anabranch aqm detach out" in again.stderr
    assert host.aqm("detach", "out").returncode == 0
    assert host.status() == []
    assert not Path(host.path()).exists()
    wait_until(lambda: not host.holders())
    gone = host.aqm("detach", "out")
    assert gone.returncode == 2
    assert "no queue is attached to `out`" in gone.stderr


def test_a_queue_that_is_not_confirmed_is_removed(host: Host) -> None:
    host.attach("--confirm-within", "4")
    assert len(host.status()) == 1
    wait_until(lambda: not host.holders())
    assert host.status() == []
    late = host.aqm("confirm", "out")
    assert late.returncode == 2
    assert "no queue is attached" in late.stderr


def test_status_names_the_device_without_a_queue(host: Host) -> None:
    assert "no queue is attached to lo; anabranch aqm attach lo " in host.aqm("status", "lo").stderr


def test_ip_netns_exec_cannot_confirm_and_names_nsenter(host: Host) -> None:
    host.attach("--confirm-within", "30")
    words = ["ip", "netns", "exec", host.name, *command("aqm", "confirm", "out")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "nsenter --net=/run/netns/NAME anabranch aqm" in done.stderr
    assert host.aqm("confirm", "out").returncode == 0


def test_kill_9_of_the_holder_removes_the_queue(host: Host) -> None:
    host.attach("--confirm-within", "100")
    (holder,) = host.holders()
    assert len(host.status()) == 1
    os.kill(holder, signal.SIGKILL)
    wait_until(lambda: host.status() == [])


def test_after_the_deadline_a_stopped_holder_does_no_harm(host: Host) -> None:
    """The program itself passes every packet, and counts none."""
    host.attach("--confirm-within", "3")
    (holder,) = host.holders()
    os.kill(holder, signal.SIGSTOP)
    try:
        time.sleep(4)
        (queue,) = host.status()
        before = queue["packets"]
        host.send()
        assert host.status()[0]["packets"] == before
    finally:
        os.kill(holder, signal.SIGCONT)
    wait_until(lambda: host.status() == [])


def test_kill_9_of_a_confirmed_queues_processes_keeps_it(host: Host) -> None:
    host.attach("--no-confirm")
    assert host.holders() == []
    (queue,) = host.status()
    assert queue["confirmed"]


def test_a_device_with_a_dot_in_its_name_keeps_a_queue(host: Host) -> None:
    """VLAN devices have such names, which the BPF file system reserves."""
    host.link("add", "out.100", "type", "veth", "peer", "name", "in.100")
    done = host.aqm("attach", "out.100", "--rate", "2mbit", "--no-confirm")
    assert done.returncode == 0, done.stderr
    (queue,) = host.status()
    assert (queue["device"], queue["rate_bit_s"]) == ("out.100", 2_000_000)
    assert len(host.pins()) == 1
    assert host.aqm("detach", "out.100").returncode == 0
    assert host.pins() == []


def test_a_renamed_device_keeps_its_queue_beside_another_of_its_name(host: Host) -> None:
    host.attach("--no-confirm")
    for words in (("out", "down"), ("out", "name", "wan"), ("wan", "up")):
        host.link("set", *words)
    host.link("add", "out", "type", "veth", "peer", "name", "other")
    host.attach("--no-confirm")
    assert sorted(queue["device"] for queue in host.status()) == ["out", "wan"]
    assert host.aqm("detach", "out").returncode == 0
    assert [queue["device"] for queue in host.status()] == ["wan"]
    assert host.aqm("detach", "wan").returncode == 0
    assert host.pins() == []


def test_the_file_of_a_device_that_is_gone_is_removed(host: Host) -> None:
    for sweep in (("detach", "out"), ("status",)):
        host.link("add", "gone", "type", "veth", "peer", "name", "other")
        assert host.aqm("attach", "gone", "--rate", "2 Mbit/s", "--no-confirm").returncode == 0
        host.link("del", "gone")
        assert len(host.pins()) == 1
        host.aqm(*[word.replace("out", "gone") for word in sweep])
        assert host.pins() == []


def test_of_two_that_attach_at_once_one_remains(host: Host) -> None:
    words = ["nsenter", f"--net=/run/netns/{host.name}", *command("aqm", "attach", "out", "--rate", "2 Mbit/s")]
    both = [
        subprocess.Popen([*words, "--no-confirm"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    errors = [one.communicate(timeout=120)[1] for one in both]
    assert sorted(one.returncode for one in both) == [0, 2], errors
    assert "attached to `out` already" in "".join(errors)
    assert host.aqm("detach", "out").returncode == 0
    assert host.status() == []


def test_the_loopback_device_is_listed(host: Host) -> None:
    assert host.aqm("attach", "lo", "--rate", "2 Mbit/s", "--no-confirm").returncode == 0
    assert [queue["device"] for queue in host.status()] == ["lo"]
    assert host.aqm("detach", "lo").returncode == 0


def wait_until(holds: Any) -> None:
    """Wait up to half a minute."""
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.2)
