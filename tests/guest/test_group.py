"""The daemon that controls a bond: members leave and return, and all are back after any end."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from .conftest import missing
from .inside import ROOT

MEMBERS = 3
NEGOTIATION_S = 4
OTHER_USER = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
FAST = ("--set", "interval=2600 ms", "--report", "2 s")
"""With these options an idle bond has one member after 4 s."""
DAEMON, GUARDIAN = "anabranch-group", "bond-guardian"
"""Names of the processes."""
_CLONE_NEWNET = 0x40000000


def binary() -> str:
    """The daemon's program."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [target / profile / "anabranch-group" for profile in ("release", "dist", "debug")]
    found = next((str(path) for path in built if path.is_file()), None) or shutil.which("anabranch-group")
    return found or missing("anabranch-group; type: tools/env cargo build --release -p anabranch-groupd")


def run(*words: str) -> str:
    """Run a command; return its output."""
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout


@contextlib.contextmanager
def inside(host: str) -> Iterator[None]:
    """Put this process into a host; its sockets remain there after the block."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/self/ns/net").open() as before, Path(f"/run/netns/{host}").open() as there:
        assert libc.setns(there.fileno(), _CLONE_NEWNET) == 0
        try:
            yield
        finally:
            libc.setns(before.fileno(), _CLONE_NEWNET)


def processes(*names: str) -> list[int]:
    """Daemons and guardians that run, or the processes of these names."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name, _, rest = (process / "stat").read_text().partition("(")[2].rpartition(")")
            if name in (names or (DAEMON, GUARDIAN)) and not rest.startswith(" Z"):
                found.append(int(process.name))
    return found


@dataclass
class Pair:
    """Two hosts with a bond between them; the first one is controlled."""

    binary: str
    state: Path

    def ours(self, *arguments: str) -> list[str]:
        """The daemon's command."""
        return ["ip", "netns", "exec", "left", self.binary, *arguments]

    def call(self, *arguments: str, prefix: Sequence[str] = ()) -> tuple[int, str, str]:
        """Run a command of the daemon; return its status and outputs."""
        words = ["ip", "netns", "exec", "left", *prefix, self.binary, *arguments]
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def control(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the daemon."""
        words = self.ours("control", "bond0", "--state", str(self.state), *FAST, *arguments)
        daemon = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        time.sleep(0.2)
        return daemon

    def up(self) -> list[str]:
        """Members that are set up."""
        told = json.loads(run("ip", "-n", "left", "-j", "link", "show", "master", "bond0"))
        return sorted(one["ifname"] for one in told if "UP" in one["flags"])

    def carrying(self, host: str = "left") -> list[str]:
        """Members over which a host sends."""
        told = json.loads(run("ip", "-n", host, "-j", "-d", "link", "show", "master", "bond0"))
        states = {one["ifname"]: one["linkinfo"]["info_slave_data"]["ad_actor_oper_port_state"] for one in told}
        return sorted(name for name, state in states.items() if state & 0x20)

    def leftovers(self) -> list[str]:
        """Everything that the daemon must remove: state, filters, the bond's option, processes."""
        found = [str(path) for path in self.state.glob("*")] if self.state.exists() else []
        for member in self.up():
            found += run("tc", "-n", "left", "filter", "show", "dev", member, "egress").splitlines()
            found += [
                line
                for line in run("tc", "-n", "left", "qdisc", "show", "dev", member).splitlines()
                if "clsact" in line
            ]
        option = re.search(r"all_slaves_active (\d)", run("ip", "-n", "left", "-d", "link", "show", "bond0"))
        assert option
        if option[1] != "0":
            found.append(option[0])
        found += [f"process {process}" for process in processes()]
        return found


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    for host in ("left", "right"):
        run("ip", "netns", "add", host)
        run(
            "ip",
            "-n",
            host,
            "link",
            "add",
            "bond0",
            "type",
            "bond",
            "mode",
            "802.3ad",
            "miimon",
            "100",
            "lacp_rate",
            "fast",
        )
    for number in range(MEMBERS):
        name = f"m{number}"
        run("ip", "link", "add", name, "netns", "left", "type", "veth", "peer", "name", name, "netns", "right")
        for host in ("left", "right"):
            run("ip", "-n", host, "link", "set", name, "master", "bond0")
            run("ip", "-n", host, "link", "set", name, "up")
    for host in ("left", "right"):
        run("ip", "-n", host, "link", "set", "bond0", "up")
    time.sleep(NEGOTIATION_S)
    made = Pair(binary(), tmp_path / "state")
    try:
        yield made
    finally:
        for process in processes():
            os.kill(process, signal.SIGKILL)
        for host in ("left", "right"):
            run("ip", "netns", "del", host)
        time.sleep(1)


def ended(daemon: subprocess.Popen[str], how: int) -> str:
    """End the daemon; return its log."""
    daemon.send_signal(how)
    return daemon.communicate(timeout=60)[1]


def guardian_of(daemon: subprocess.Popen[str]) -> int:
    """The process id of the guardian."""
    (guardian,) = processes(GUARDIAN)
    assert processes(DAEMON) == [daemon.pid]
    return guardian


def test_an_idle_bond_keeps_one_member_and_all_return(pair: Pair) -> None:
    daemon = pair.control()
    time.sleep(5)
    assert (pair.up(), pair.carrying(), pair.carrying("right")) == (["m0"], ["m0"], ["m0"])
    status, told, _ = pair.call("status", "bond0", "--state", str(pair.state), "--json")
    report = json.loads(told)
    assert (status, report["working"], report["changes"]["taken_out"], report["changes"]["unanswered"]) == (0, 1, 2, 0)
    assert report["energy_joules"] < report["energy_without_control_joules"]
    assert "link hours asleep" in ended(daemon, signal.SIGTERM)
    assert daemon.returncode == 0
    assert pair.carrying() == pair.carrying("right") == ["m0", "m1", "m2"]
    assert pair.leftovers() == []


def test_load_brings_members_back(pair: Pair) -> None:
    """Pairs of datagrams in a millisecond exceed the rate of two members."""
    run("ip", "-n", "left", "addr", "add", "10.0.0.1/24", "dev", "bond0")
    run("ip", "-n", "right", "addr", "add", "10.0.0.2/24", "dev", "bond0")
    daemon = pair.control("--rate", "5 Mbit/s")
    time.sleep(5)
    assert pair.up() == ["m0"]
    with inside("left"):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(800):
        sender.sendto(b"x" * 1000, ("10.0.0.2", 9))
        sender.sendto(b"x" * 1000, ("10.0.0.2", 9))
        time.sleep(0.01)
    sender.close()
    assert pair.carrying() == ["m0", "m1", "m2"]
    ended(daemon, signal.SIGTERM)


def test_dropped_and_waiting_bytes_have_arrived(pair: Pair) -> None:
    """A member sends no more than its rate. Detects arrivals that lack the queue's drops and its backlog."""
    run("ip", "-n", "left", "addr", "add", "10.0.0.1/24", "dev", "bond0")
    run("ip", "-n", "right", "addr", "add", "10.0.0.2/24", "dev", "bond0")
    for member in ("m0", "m1", "m2"):
        run(*f"tc -n left qdisc add dev {member} root netem rate 10mbit limit 30".split())
    daemon = pair.control("--rate", "10 Mbit/s")
    time.sleep(5)
    assert pair.up() == ["m0"]

    def report() -> dict[str, int]:
        return dict(json.loads(pair.call("status", "bond0", "--state", str(pair.state), "--json")[1]))

    before = report()["arrived_bytes"]
    with inside("left"):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(2400):
        for _ in range(3):
            sender.sendto(b"x" * 1000, ("10.0.0.2", 9))
        time.sleep(0.001)
    sender.close()
    found = report()
    # Headers have 42 octets.
    assert found["arrived_bytes"] - before == pytest.approx(7200 * 1042, rel=0.05)
    wanted = []
    for _ in range(30):
        wanted.append(report()["wanted"])
        time.sleep(0.1)
    assert max(wanted) >= 2
    ended(daemon, signal.SIGTERM)


def test_the_partner_is_notified_before_the_carrier_drops(pair: Pair) -> None:
    """The other end receives an LACPDU without aggregation, synchronization and traffic, and answers."""
    with inside("right"):
        capture = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    capture.bind(("m2", 0))
    capture.setblocking(False)
    daemon = pair.control()
    time.sleep(5)
    states = []
    with contextlib.suppress(BlockingIOError, OSError):
        while True:
            frame, address = capture.recvfrom(2048)
            if frame[12:15] == b"\x88\x09\x01":
                # Outgoing frames have packet type 4.
                states.append(("right" if address[2] == 4 else "left", frame[14 + 18]))
    capture.close()
    leave = states.index(("left", 0x03))
    answers = [state for end, state in states[leave:] if end == "right"]
    assert answers, states
    assert not answers[0] & 0x30, states
    ended(daemon, signal.SIGTERM)


@pytest.mark.parametrize("after_s", [2.75, 3.0, 5.0])
def test_a_killed_daemon_leaves_all_members(pair: Pair, after_s: float) -> None:
    """SIGKILL at the beginning, in the middle and after the change."""
    daemon = pair.control()
    time.sleep(after_s)
    ended(daemon, signal.SIGKILL)
    time.sleep(0.5)
    assert pair.up() == ["m0", "m1", "m2"]
    time.sleep(6)
    assert pair.carrying() == ["m0", "m1", "m2"]
    assert pair.leftovers() == []


def test_a_kill_of_all_processes_of_its_name_spares_the_guardian(pair: Pair) -> None:
    """As `pkill -9 anabranch-group` does."""
    daemon = pair.control()
    time.sleep(5)
    assert pair.up() == ["m0"]
    for process in processes(DAEMON):
        os.kill(process, signal.SIGKILL)
    daemon.communicate(timeout=60)
    time.sleep(6)
    assert pair.carrying() == ["m0", "m1", "m2"]
    assert pair.leftovers() == []


def test_a_stopped_daemon_leaves_all_members(pair: Pair) -> None:
    daemon = pair.control()
    time.sleep(5)
    daemon.send_signal(signal.SIGSTOP)
    time.sleep(6)
    assert pair.up() == ["m0", "m1", "m2"]
    time.sleep(6)
    assert "guardian" in ended(daemon, signal.SIGCONT)
    assert daemon.returncode == 1
    assert pair.up() == ["m0", "m1", "m2"]


def test_a_daemon_without_guardian_ends(pair: Pair) -> None:
    daemon = pair.control()
    time.sleep(5)
    os.kill(guardian_of(daemon), signal.SIGKILL)
    assert "guardian ended" in daemon.communicate(timeout=60)[1]
    assert daemon.returncode == 1
    assert pair.up() == ["m0", "m1", "m2"]


def test_release_works_after_both_were_killed(pair: Pair) -> None:
    daemon = pair.control()
    time.sleep(5)
    guardian = guardian_of(daemon)
    daemon.send_signal(signal.SIGSTOP)
    os.kill(guardian, signal.SIGKILL)
    ended(daemon, signal.SIGKILL)
    assert pair.up() == ["m0"], "one member remains"
    status, told, _ = pair.call("release", "bond0", "--state", str(pair.state))
    assert (status, "was gone" in told) == (0, True)
    assert pair.up() == ["m0", "m1", "m2"]
    assert pair.leftovers() == []
    assert pair.call("release", "bond0", "--state", str(pair.state))[0] == 2


def test_release_ends_a_running_daemon(pair: Pair) -> None:
    daemon = pair.control()
    time.sleep(5)
    assert pair.call("control", "bond0", "--state", str(pair.state))[::2] == (
        2,
        "error: bond0 is already controlled: type `anabranch-group release bond0` to end that\n",
    )
    for command in ("status", "release"):
        status, _, error = pair.call(command, "bond0", "--state", str(pair.state), prefix=OTHER_USER)
        assert (status, f"type `sudo anabranch-group {command} bond0`" in error) == (2, True), error
    assert pair.call("release", "bond0", "--state", str(pair.state))[0] == 0
    daemon.communicate(timeout=10)
    assert daemon.returncode == 0
    assert pair.carrying() == ["m0", "m1", "m2"]
    assert pair.leftovers() == []


def lines(stream: IO[str] | None) -> str:
    """The content of the pipe now; other processes may still hold it."""
    assert stream
    os.set_blocking(stream.fileno(), False)
    with contextlib.suppress(BlockingIOError):
        return os.read(stream.fileno(), 1 << 16).decode()
    return ""


def test_a_new_daemon_waits_for_the_guardian_of_a_killed_one(pair: Pair) -> None:
    """The old guardian must not delete what the new daemon has made."""
    first = pair.control()
    time.sleep(5)
    # Its guardian still holds the pipe.
    first.kill()
    first.wait()
    second = pair.control()
    time.sleep(1)
    assert "waits for the end of an earlier daemon" in lines(second.stderr)
    time.sleep(10)
    first.communicate(timeout=10)
    assert (pair.up(), len(processes())) == (["m0"], 2)
    assert pair.call("status", "bond0", "--state", str(pair.state))[0] == 0
    ended(second, signal.SIGKILL)
    time.sleep(6)
    assert pair.carrying() == ["m0", "m1", "m2"]
    assert pair.leftovers() == []


def test_a_stopped_daemon_that_continues_leaves_a_new_one_alone(pair: Pair) -> None:
    first = pair.control()
    time.sleep(5)
    first.send_signal(signal.SIGSTOP)
    time.sleep(10)
    second = pair.control()
    time.sleep(1)
    first.send_signal(signal.SIGCONT)
    first.communicate(timeout=10)
    assert first.returncode == 1
    time.sleep(10)
    assert pair.up() == ["m0"]
    assert pair.call("release", "bond0", "--state", str(pair.state))[0] == 0
    second.communicate(timeout=10)
    assert pair.carrying() == ["m0", "m1", "m2"]
    assert pair.leftovers() == []


def test_renamed_interfaces_return_after_a_kill(pair: Pair) -> None:
    daemon = pair.control()
    time.sleep(5)
    run("ip", "-n", "left", "link", "set", "m2", "name", "n2")
    ended(daemon, signal.SIGKILL)
    time.sleep(6)
    assert pair.up() == ["m0", "m1", "n2"]
    assert pair.leftovers() == []


def test_a_member_that_leaves_the_bond_is_left_alone(pair: Pair) -> None:
    """It stays as `ip link set DEV nomaster` left it, and the others are still controlled."""
    daemon = pair.control()
    time.sleep(5)
    run("ip", "-n", "left", "link", "set", "m2", "nomaster")
    time.sleep(1)
    status, told, _ = pair.call("status", "bond0", "--state", str(pair.state), "--json")
    assert (status, [one["name"] for one in json.loads(told)["members"]]) == (0, ["m0", "m1"])
    assert "m2 has left bond0" in ended(daemon, signal.SIGTERM)
    assert (daemon.returncode, pair.up()) == (0, ["m0", "m1"])
    (left,) = json.loads(run("ip", "-n", "left", "-j", "link", "show", "m2"))
    assert "UP" not in left["flags"]
    assert pair.leftovers() == []


def test_the_deletion_of_the_bond_ends_the_daemon(pair: Pair) -> None:
    daemon = pair.control()
    time.sleep(5)
    run("ip", "-n", "left", "link", "del", "bond0")
    _, log = daemon.communicate(timeout=20)
    assert (daemon.returncode, "bond" in log) == (1, True), log
    assert not list(pair.state.glob("*"))


def test_a_queue_of_filters_that_was_there_remains(pair: Pair) -> None:
    run("tc", "-n", "left", "qdisc", "add", "dev", "m2", "clsact")
    daemon = pair.control()
    time.sleep(5)
    ended(daemon, signal.SIGTERM)
    assert pair.leftovers() == [found := run("tc", "-n", "left", "qdisc", "show", "dev", "m2").splitlines()[-1]]
    assert "clsact" in found
    killed = pair.control()
    time.sleep(5)
    ended(killed, signal.SIGKILL)
    time.sleep(6)
    assert pair.leftovers() == [found]


def test_more_members_than_there_are_cannot_stay(pair: Pair) -> None:
    daemon = pair.control("--least", "9")
    time.sleep(5)
    told = pair.call("status", "bond0", "--state", str(pair.state), "--json")[1]
    assert (json.loads(told)["wanted"], pair.up()) == (3, ["m0", "m1", "m2"])
    assert "--least is 9, and 3 members are controlled" in ended(daemon, signal.SIGTERM)


def test_the_failure_of_the_last_member_brings_all_back(pair: Pair) -> None:
    daemon = pair.control()
    time.sleep(5)
    run("ip", "-n", "right", "link", "set", "m0", "down")
    time.sleep(4)
    assert pair.carrying()[0] == "m1"
    ended(daemon, signal.SIGTERM)


def test_members_that_were_down_stay_down(pair: Pair) -> None:
    run("ip", "-n", "left", "link", "set", "m2", "down")
    daemon = pair.control()
    time.sleep(5)
    assert pair.up() == ["m0"]
    ended(daemon, signal.SIGTERM)
    assert pair.up() == ["m0", "m1"]


def test_bad_input_is_refused_with_the_command_to_type(pair: Pair) -> None:
    """One line, exit status 2, nothing changed."""
    run("ip", "-n", "left", "link", "add", "bond1", "type", "bond", "mode", "active-backup")
    run("ip", "-n", "left", "link", "add", "bond2", "type", "bond", "mode", "802.3ad")
    for arguments, prefix, words in (
        (("bond7",), (), "there is no interface bond7; bonds: bond0, bond1, bond2; did you mean bond0?"),
        (("m0",), (), "m0 is not a bond; bonds: bond0, bond1, bond2"),
        (("bond1",), (), "type bond mode 802.3ad"),
        (("bond0", "--method", "always"), (), "did you mean always-on?"),
        (("bond0", "--set", "bins=1 ms"), (), "did you mean `bin`?"),
        (("bond0",), OTHER_USER, "type `sudo anabranch-group control bond0"),
    ):
        status, _, error = pair.call("control", *arguments, "--state", str(pair.state), prefix=prefix)
        assert (status, error.count("\n")) == (2, 1), error
        assert words in error, error
    status, _, error = pair.call("control", "bond2", "--state", str(pair.state))
    assert (status, "has 0 members" in error) == (1, True), "others may follow"
    for command in ("status", "release"):
        status, _, error = pair.call(command, "bond0", "--state", str(pair.state))
        assert (status, "is not controlled" in error) == (2, True), error
    assert pair.call("check", "bond1")[0] == 2
    status, told, _ = pair.call("check", "bond0")
    assert (status, told.splitlines()[0]) == (0, "bond0 can be controlled")
    assert pair.up() == ["m0", "m1", "m2"]
    assert pair.leftovers() == []
