"""A real kernel in virtual time: effects of its seed, and messages when its guest fails."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anabranch.errors import RunFailedError
from anabranch.kernel.machine import Job

from .real_kernel import kernel, needs_kernel

pytestmark = needs_kernel

DRAWS = """
import ctypes, os, socket, subprocess, time
for command in (
    "netns add a", "netns add b", "link add va netns a type veth peer name vb netns b",
    "-n a addr add 10.0.0.1/24 dev va",
    "-n b addr add 10.0.0.2/24 dev vb", "-n a link set va up", "-n b link set vb up",
):
    subprocess.run(["ip", *command.split()], check=True)
c = ctypes.CDLL(None)
def enter(name):
    with open(f"/run/netns/{name}") as file:
        assert c.setns(file.fileno(), 0x40000000) == 0
print("urandom", open("/dev/urandom", "rb").read(64).hex())
print("hash", hash("x"))
enter("b")
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.bind(("vb", 3))
wire.setblocking(False)
server = socket.create_server(("10.0.0.2", 80))
enter("a")
held = []
for number in range(4):
    client = socket.socket()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"bbr")
    client.connect(("10.0.0.2", 80))
    client.send(bytes(5000))
    held += [client, server.accept()[0]]
    # Linux gathers what it draws from after a second.
    time.sleep(0.7)
print("clock", time.time_ns())
while True:
    try:
        print("packet", wire.recv(65536)[:66].hex())
    except BlockingIOError:
        break
"""


def draws(seed: int) -> str:
    with Job() as job:
        (job.folder / "draws.py").write_text(DRAWS)
        ended = job.run(kernel(), ["/usr/bin/python3", str(Job.INSIDE / "draws.py")], seed=seed)
    assert ended.status == 0, ended.err
    return ended.out


@contextlib.contextmanager
def busy(programs: int) -> Iterator[None]:
    """Run this number of programs that never sleep."""
    started = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(programs)]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


def test_the_same_seed_gives_the_same_packets_on_a_busy_machine() -> None:
    """Detects an unseeded source of random numbers, and times that depend on the host's load."""
    first = draws(1)
    assert first.count("packet") > 20
    with busy(4 * len(os.sched_getaffinity(0))):
        again = draws(1)
    assert again.splitlines() == first.splitlines()


def test_another_seed_gives_other_packets() -> None:
    one, other = (draws(seed).splitlines() for seed in (1, 2))
    same = [line for line in one if line in other]
    assert not [line for line in same if line.startswith(("urandom", "hash"))]
    # Sequence numbers, timestamps and hardware addresses.
    assert not [line for line in same if line.startswith("packet")]


@pytest.mark.parametrize(
    ("program", "limits", "message"),
    [
        (
            "while :; do :; done",
            {"silence_s": 3},
            "virtual time has stood still at 0 s for 3 s: a program in the guest",
        ),
        ("sleep infinity", {"limit_s": 50}, "the program has not ended after [5-9][0-9] s of virtual time"),
        ("python3 -c 'bytearray(200 << 20)'", {}, "memory of 64 MiB is too small\n  .* ANABRANCH_KERNEL_MEMORY=128"),
    ],
)
def test_a_failing_guest_is_one_message(program: str, limits: dict[str, Any], message: str) -> None:
    with Job() as job, pytest.raises(RunFailedError, match=message):
        job.run(kernel(), ["sh", "-c", program], memory_mib=64, **limits)


def test_too_little_memory_to_start_is_reported() -> None:
    with Job() as job, pytest.raises(RunFailedError, match="has too little memory") as failed:
        job.run(kernel(), ["true"], memory_mib=16)
    assert str(failed.value).endswith("give it more, in MiB: ANABRANCH_KERNEL_MEMORY=32")


def test_a_program_that_polls_the_clock_ends() -> None:
    """Detects a watchdog that mistakes slowness for a standstill: each clock reading costs 0.25 µs."""
    poll = "import time\nend = time.time() + 0.005\nwhile time.time() < end: pass"
    with Job() as job:
        assert job.run(kernel(), ["python3", "-c", poll], silence_s=60).status == 0


def test_a_guest_ends_when_its_program_is_killed(tmp_path: Path) -> None:
    """Detects a guest that outlives the command that started it."""
    code = (
        "from anabranch.kernel.images import chosen\nfrom anabranch.kernel.machine import Job\n"
        "with Job() as job:\n    print(job.folder, flush=True)\n"
        "    job.run(chosen(), ['sh', '-c', 'while :; do :; done'])\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)  # noqa: S603 - ours
    assert process.stdout is not None
    folder = process.stdout.readline().strip()
    pid_file = Path(folder, "guest", "pid")
    deadline = time.monotonic() + 30
    while not pid_file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    guest = int(pid_file.read_text())
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and members(guest):
        time.sleep(0.05)
    assert not members(guest)


def members(group: int) -> list[int]:
    """Running processes of a group."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] not in "ZX":
                found.append(int(status.parent.name))
    return found
