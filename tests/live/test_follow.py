"""`anabranch diagnose --follow` detects a connection between two namespaces, names its limit, and saves it."""

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

from anabranch import diagnose

from .conftest import command, missing

SERVER = (
    "import socket, time; s = socket.create_server(('10.77.0.2', 7))\n"
    "s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192); print('ready', flush=True); c = s.accept()[0]\n"
    "time.sleep(3)\nwhile c.recv(65536): pass"
)
CLIENT = "import socket; c = socket.create_connection(('10.77.0.2', 7)); c.sendall(bytes(400_000)); c.close()"


@pytest.fixture
def pair() -> Iterator[tuple[str, str]]:
    """Two namespaces, joined by a veth pair."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        missing("namespaces for --follow need the program ip (iproute2) and root")
    names = (f"anabranch-follow-{os.getpid()}-a", f"anabranch-follow-{os.getpid()}-b")

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        for name in names:
            ip("netns", "add", name)
        ip("-n", names[0], "link", "add", "ea", "type", "veth", "peer", "name", "eb", "netns", names[1])
        for name, end, address in zip(names, ("ea", "eb"), ("10.77.0.1/24", "10.77.0.2/24"), strict=True):
            ip("-n", name, "addr", "add", address, "dev", end)
            ip("-n", name, "link", "set", end, "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def inside(name: str, *words: str) -> list[str]:
    return ["ip", "netns", "exec", name, *words]


@pytest.mark.brief
def test_a_closed_window_is_reported_saved_and_summarized(pair: tuple[str, str], tmp_path: Path) -> None:
    follow = command("diagnose", "--follow", "ea", "--save-on", "zero-window", "--save-to", tmp_path)
    saved = tmp_path / "ea-zero-window-1.pcap"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen(inside(pair[0], *follow), **pipes) as follower,  # type: ignore[call-overload]
        subprocess.Popen(inside(pair[1], sys.executable, "-c", SERVER), **pipes) as server,  # type: ignore[call-overload]
    ):
        try:
            assert "following ea" in follower.stderr.readline()
            assert server.stdout.readline() == "ready\n"
            subprocess.run(inside(pair[0], sys.executable, "-c", CLIENT), check=True, timeout=60)
            until = time.monotonic() + 60
            while not saved.exists() and time.monotonic() < until:
                time.sleep(0.1)
            follower.send_signal(signal.SIGINT)
            out, err = follower.communicate(timeout=60)
        finally:
            follower.kill()
            server.kill()
    assert follower.returncode == 0, err
    assert "zero-window: 10.77.0.1:" in out
    assert f"wrote {saved}" in " ".join(out.split())
    assert "packets passed; the last" in out
    assert "Connection 1: 10.77.0.1:" in out
    assert '"zero-window"' in json.dumps(diagnose(saved)["connections"])


def follower_of(name: str, *more: object) -> subprocess.Popen[str]:
    follow = inside(name, *command("diagnose", "--follow", "ea", *more))
    follower = subprocess.Popen(follow, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert follower.stderr is not None
    assert "following ea" in follower.stderr.readline()
    return follower


@pytest.mark.parametrize("change", [("link", "del", "ea"), ("link", "set", "ea", "down")])
def test_a_removed_interface_ends_it_with_one_message(pair: tuple[str, str], change: tuple[str, ...]) -> None:
    with follower_of(pair[0]) as follower:
        subprocess.run(["ip", "-n", pair[0], *change], check=True, capture_output=True)
        out, err = follower.communicate(timeout=60)
    assert (follower.returncode, out, err) == (1, "", "error: --follow ea: the interface is gone or down\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_its_output_is_blocked(pair: tuple[str, str], number: int) -> None:
    """The pipe of its output is full: a line for each connection waits there."""
    program = (
        "import socket\nfor _ in range(3000):\n    s = socket.socket(); s.setblocking(False)\n"
        "    s.connect_ex(('10.77.0.2', 9)); s.close()"
    )
    with follower_of(pair[0]) as follower:
        for _ in range(3):
            subprocess.run(inside(pair[0], sys.executable, "-c", program), check=True, timeout=60)
            time.sleep(1)
        begin = time.monotonic()
        follower.send_signal(number)
        # Its output is not read.
        follower.wait(timeout=60)
        took = time.monotonic() - begin
        follower.communicate()
    assert follower.returncode in (0, 128 + number)
    # 0.2 s, and the lateness of a busy machine.
    assert took < 1.0
