"""The engine between two interfaces is an inline emulator: tests on veth pairs in new namespaces."""

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

import pytest

from .conftest import command, missing

SCENARIO = """
duration = "{duration}"
[link.path]
between = ["left", "right"]
rate = "20 Mbit/s"
delay = "15 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }
[host.left]
attach = "interface:el"
[host.right]
attach = "interface:er"
[flow.all]
from = "left"
to = "right"
"""

SIZE = 2_000_000

SERVER = (
    "import socket; s = socket.create_server(('10.9.0.2', 7)); print('ready', flush=True); c = s.accept()[0]\n"
    "n = 0\nwhile b := c.recv(65536): n += len(b)\nprint(n)"
)
CLIENT = (
    "import socket, time; t = time.monotonic(); c = socket.create_connection(('10.9.0.2', 7)); "
    f"print(time.monotonic() - t); c.sendall(bytes({SIZE})); c.shutdown(1); c.recv(1); print(time.monotonic() - t)"
)


@pytest.fixture
def namespaces(live_machine: None) -> Iterator[dict[str, str]]:
    """Three namespaces: left and right, and the middle one for the engine."""
    if shutil.which("ip") is None:
        missing("making veth pairs needs the program ip (iproute2)")
    names = {name: f"anabranch-test-{os.getpid()}-{name}" for name in ("left", "middle", "right")}

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        for name in names.values():
            ip("netns", "add", name)
        for side, inner, address in (("left", "el", "10.9.0.1/24"), ("right", "er", "10.9.0.2/24")):
            # Created inside, so that the device is never visible outside.
            ip("-n", names["middle"], "link", "add", inner, "type", "veth", "peer", "name", "eth", "netns", names[side])
            ip("-n", names["middle"], "link", "set", inner, "up")
            # One segment at a time, as on the wire.
            ip("-n", names[side], "link", "set", "eth", "gso_max_segs", "1", "up")
            ip("-n", names[side], "addr", "add", address, "dev", "eth")
        yield names
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


GSO_OFF = """
import ctypes, fcntl, socket, struct
value = ctypes.create_string_buffer(struct.pack("II", 0x24, 0))
request = struct.pack("16sP16x", b"el", ctypes.addressof(value))
fcntl.ioctl(socket.socket(), 0x8946, request)
"""
"""SIOCETHTOOL with ETHTOOL_SGSO (linux/ethtool.h)."""


def inside(name: str, *words: str) -> list[str]:
    return ["ip", "netns", "exec", name, *words]


def listens(middle: str, engine: subprocess.Popen[str]) -> bool:
    """Wait until the engine listens at both interfaces, which puts them into promiscuous mode."""
    until = time.monotonic() + 60
    show = ["ip", "-n", middle, "-d", "-o", "link"]
    while time.monotonic() < until and engine.poll() is None:
        state = subprocess.run(show, check=True, capture_output=True, text=True).stdout
        if state.count("promiscuity 1") == 2:
            return True
        time.sleep(0.05)
    return False


def cross(namespaces: dict[str, str], file: Path) -> tuple[subprocess.CompletedProcess[str], int, str]:
    """Make a connection through the engine; return the engine's end, the bytes received, and the client's output."""
    words = inside(namespaces["middle"], *command("run", file, "--engine", "live", "--json", "--allow-tainted"))
    engine = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    server = subprocess.Popen(
        inside(namespaces["right"], sys.executable, "-c", SERVER), stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        assert listens(namespaces["middle"], engine)
        client = subprocess.run(
            inside(namespaces["left"], sys.executable, "-c", CLIENT),
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        received, _ = server.communicate(timeout=10)
        out, told = engine.communicate(timeout=30)
    finally:
        for process in (server, engine):
            process.kill()
            process.wait()
    return subprocess.CompletedProcess(words, engine.returncode, out, told), int(received), client.stdout


def test_inline(namespaces: dict[str, str], tmp_path: Path) -> None:
    """ARP, a handshake and two megabytes pass at the link's rate and delay.

    Checksums that the kernel leaves to the hardware are completed, otherwise no packet would
    arrive.
    """
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO.replace("{duration}", "4 s"))
    subprocess.run(inside(namespaces["middle"], sys.executable, "-c", GSO_OFF), check=True)
    engine, received, client = cross(namespaces, file)
    assert engine.returncode == 0, engine.stderr
    connected, done = (float(line) for line in client.splitlines())
    assert received == SIZE
    assert connected >= 0.030
    assert done >= SIZE * 8 / 20e6
    summary = json.loads(engine.stdout)
    assert summary["links"]["path"]["forward"]["sent_packets"] >= SIZE / 1448
    assert summary["live"]["audit"]["merged_packets"] == 0
    # The offloads of these devices are reported as they are: one of them was disabled here.
    offloads = summary["live"]["machine"]["offloads"]
    assert (offloads["left"]["gso"], offloads["right"]["gso"]) == (False, True)
    packets = summary["live"]["packets"]
    assert (packets["kernel_sent"], packets["kernel_received"]) == (0, 0), "no kernel of a host counts for an interface"
    assert packets["taken"] == packets["sent_packets"] > SIZE / 1448


def test_kill_leaves_the_interfaces_unchanged(namespaces: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO.replace("{duration}", "60 s"))

    def state() -> str:
        show = ["ip", "-n", namespaces["middle"], "-d", "-o", "link"]
        return subprocess.run(show, check=True, capture_output=True, text=True).stdout

    before = state()
    engine = subprocess.Popen(
        inside(namespaces["middle"], *command("run", file, "--engine", "live")), stderr=subprocess.PIPE
    )
    until = time.monotonic() + 20
    while state() == before and time.monotonic() < until:
        time.sleep(0.05)
    assert state() != before, "it never listened: promiscuous mode would show"
    engine.send_signal(signal.SIGKILL)
    engine.communicate(timeout=10)
    assert state() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("link", "property", "add", "dev", "el", "altname", "other"), "`other` is the interface of `left` already"),
        (("link", "set", "lo", "name", "other"), "`other` is a loopback interface"),
    ],
)
def test_alternative_names_of_an_interface(
    namespaces: dict[str, str], tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    """Detects alternative names that hide that two interfaces are one, or that one is a loopback."""
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO.replace("{duration}", "1 s").replace("interface:er", "interface:other"))
    named = subprocess.run(["ip", "-n", namespaces["middle"], *words], check=False, capture_output=True, text=True)
    if named.returncode != 0:
        missing(f"this machine gives interfaces no other names: {named.stderr.strip()}")
    run = inside(namespaces["middle"], *command("run", file, "--engine", "live"))
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert message in done.stderr
    assert f"{file}:11:10: " in done.stderr
