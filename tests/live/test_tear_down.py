"""Nothing is left behind, however a run ends: no namespace, no device, no process."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from .conftest import (
    FLOW,
    PATH,
    command,
    ended,
    hindrance,
    missing,
    must_not_be_missing,
    own_controls,
)

SCENARIO = """
duration = "60 s"
[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }
[flow.main]
from = "A"
to = "B"
cc = "cubic"
[link.other]
between = ["C", "D"]
delay = "1 ms"
[flow.program]
from = "C"
to = "D"
[host.C]
exec = ["sleep", "1000"]
"""

MARK = "ANABRANCH_TEST_MARK"


def processes(mark: str) -> set[int]:
    """Those that were started with this mark in their environment."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes():
                    found.add(int(entry.name))
            except OSError:
                continue
    return found


def sleeps(mark: str) -> bool:
    """Whether the scenario's own program is there: before it a compiler may be."""
    return any(_name(process) == "sleep" for process in processes(mark))


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


SLAB = Path("/sys/kernel/slab/net_namespace")
"""Where the kernel says how many network namespaces there are, those that no process is in included; not every kernel
does, and it tells root alone."""


def namespaces() -> int:
    """Network namespaces of the kernel, and one more.

    The memory of a namespace that is gone is given back when the next one goes (Linux 6.13 and later): so one is made
    and goes, and is the one more.
    """
    subprocess.run([sys.executable, "-c", "from anabranch.live import prepare; prepare()"], check=True)
    # Without this, objects that are free but cached by a processor count too.
    (SLAB / "shrink").write_text("1")
    return int((SLAB / "objects").read_text().split()[0])


def settled() -> int:
    """The same once none goes any more: those of earlier runs may still be on their way."""
    fewest, since = namespaces(), time.monotonic()
    while time.monotonic() < since + 2:
        time.sleep(0.2)
        now = namespaces()
        if now < fewest:
            fewest, since = now, time.monotonic()
    return fewest


@pytest.fixture(name="counted")
def countable(live_machine: None) -> None:
    """Skip where nobody can say how many namespaces there are."""
    if not os.access(SLAB / "shrink", os.W_OK):
        missing(f"{SLAB} does not say how many network namespaces there are")


BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}
"""The number of bpf(2)."""

NEXT_IDS = {"programs": 11, "maps": 12, "links": 31}
"""Its commands `BPF_PROG_GET_NEXT_ID`, `BPF_MAP_GET_NEXT_ID`, `BPF_LINK_GET_NEXT_ID` (linux/bpf.h)."""


def bpf_objects() -> dict[str, int] | None:
    """Programs, maps and links of BPF in the kernel; ``None`` where it does not tell us."""
    libc, number = ctypes.CDLL(None, use_errno=True), BPF_SYSCALL.get(platform.machine())
    if number is None:
        return None
    found = dict.fromkeys(NEXT_IDS, 0)
    for name, asked in NEXT_IDS.items():
        # `start_id`, `next_id`, `open_flags`.
        attributes = (ctypes.c_uint32 * 3)()
        while libc.syscall(number, asked, attributes, ctypes.sizeof(attributes)) == 0:
            found[name] += 1
            attributes[0] = attributes[1]
        if ctypes.get_errno() != errno.ENOENT:
            return None
    return found


def devices() -> set[str]:
    return {entry.name for entry in Path("/sys/class/net").iterdir()}


def settle(is_clean: object, seconds: float = 20) -> bool:
    """Wait until it is so: the kernel takes namespaces down in its own time."""
    assert callable(is_clean)
    until = time.monotonic() + seconds
    while not is_clean():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def bpf_left(before: dict[str, int] | None) -> dict[str, int]:
    """How many more there are."""
    now = bpf_objects()
    if before is None or now is None:
        return {}
    return {name: count - before[name] for name, count in now.items() if count > before[name]}


@contextmanager
def running(file: Path, mark: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run under way, which also ends where the test fails."""
    run = subprocess.Popen(
        command("run", file, "--engine", "live"),
        env={**os.environ, MARK: mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield run
    finally:
        if run.poll() is None:
            run.kill()
            run.communicate()


def can_trace(tmp_path: Path) -> bool:
    """Whether a run here traces the kernel's TCP."""
    file = tmp_path / "short.toml"
    file.write_text((PATH + FLOW).replace("3 s", "100 ms"))
    done = subprocess.run(
        command("run", file, "--engine", "live", "--trace", "events"), capture_output=True, text=True, check=False
    )
    return "cannot be traced" not in done.stderr


def last_words(run: subprocess.Popen[bytes], which: str) -> str:
    """What a run that was told to end has said on standard error; fails with where its threads are if it goes on."""
    try:
        return run.communicate(timeout=20)[1].decode()
    except subprocess.TimeoutExpired:
        found = []
        for thread in sorted(Path(f"/proc/{run.pid}/task").glob("*")):
            # It may end meanwhile, and only root sees where one is.
            with suppress(OSError):
                found.append(f"{(thread / 'comm').read_text().strip()}: {(thread / 'stack').read_text()}")
        pytest.fail("\n".join([f"{which} has not ended after 20 s; threads:", *found]))


def cycles(tmp_path: Path, ends: list[signal.Signals]) -> None:
    """Start and end runs whose flow has a control of ours and is traced, as far as the kernel lets us."""
    file = tmp_path / "scenario.toml"
    why_not = hindrance(tmp_path)
    if why_not is not None:
        must_not_be_missing(why_not)
    loads, traces = why_not is None, can_trace(tmp_path)
    file.write_text(SCENARIO.replace("cubic", "compound") if loads else SCENARIO)
    mark = f"{os.getpid()}-{tmp_path.name}"
    before, devices_before = settled(), devices()
    bpf_before = bpf_objects()
    if bpf_before is None or not traces:
        must_not_be_missing("whether BPF objects are left cannot be told, or the kernel's TCP cannot be traced")
    for number, end in enumerate(ends):
        with running(file, mark) as run:
            # Its program runs once the packets do.
            assert settle(lambda: sleeps(mark)), run.communicate(timeout=5)
            # None of ours is where we were started, at any time: it would not go with a namespace.
            assert devices() == devices_before
            if number == 0:
                most = namespaces()
                assert most >= before + 4, "the count shows no namespace of ours: this test would not see one left"
                bpf_most = bpf_objects()
                if bpf_before is not None and bpf_most is not None:
                    more = {name: bpf_most[name] - bpf_before[name] for name in bpf_before}
                    # The trace has three of each; a control its operations in a map, and the link that registers it.
                    least = 3 * traces + loads
                    assert all(count >= least for count in more.values()), f"{more}: this test would not see one left"
            controls = own_controls(run.pid)
            assert len(controls) == loads
            # A different moment each time.
            time.sleep(0.05 * (number % 5))
            run.send_signal(end)
            told = last_words(run, f"run {number}, {end.name}")
            assert run.returncode == (130 if end == signal.SIGINT else -end), told
        assert settle(lambda: not processes(mark), 5), "a process is left"
        assert settle(lambda run=run: not own_controls(run.pid)), "a control is left in the kernel"
    assert devices() == devices_before
    assert settle(lambda: namespaces() <= before), f"{namespaces()} namespaces, {before} before"
    assert settle(lambda: not bpf_left(bpf_before)), f"BPF objects are left: {bpf_left(bpf_before)}"


@pytest.mark.brief
def test_start_and_kill(counted: None, tmp_path: Path) -> None:
    cycles(tmp_path, [signal.SIGKILL, signal.SIGINT, signal.SIGKILL])


@pytest.mark.slow
def test_a_hundred_times(counted: None, tmp_path: Path) -> None:
    cycles(tmp_path, [signal.SIGKILL, signal.SIGINT] * 50)


STRAY = "setsid sleep 1001 & exec sleep 1002"
"""A program whose child has a session of its own: no process group leads to it."""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_what_a_program_has_started_ends_too(live_machine: None, tmp_path: Path, end: signal.Signals) -> None:
    """Fails for programs that are killed by themselves, or by their group (PR_SET_PDEATHSIG alone)."""
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO.replace('["sleep", "1000"]', f'["sh", "-c", "{STRAY}"]'))
    mark = f"{os.getpid()}-{tmp_path.name}"

    def sleeping() -> set[str]:
        lines = [Path(f"/proc/{process}/cmdline") for process in processes(mark)]
        return {line.read_bytes().replace(b"\0", b" ").decode().strip() for line in lines if line.exists()}

    with running(file, mark) as run:
        assert settle(lambda: {"sleep 1001", "sleep 1002"} <= sleeping()), run.communicate(timeout=5)
        run.send_signal(end)
        run.communicate(timeout=20)
    assert settle(lambda: not processes(mark), 5), sleeping()


@pytest.mark.parametrize(
    ("program", "status", "told"),
    [("exit 7", 1, "`sh` ended with status 7"), ("kill -9 $$", 1, "`sh` ended with a signal"), ("exit 0", 0, "")],
)
def test_how_a_program_ended_is_known(live_machine: None, tmp_path: Path, program: str, status: int, told: str) -> None:
    """Its first process is not the one that we start: fails where that one's status is told."""
    file = tmp_path / "scenario.toml"
    text = SCENARIO.replace('["sleep", "1000"]', f'["sh", "-c", "{program}"]').replace("60 s", "1 s")
    file.write_text(text)
    # What is tainted has no status of its own.
    done = ended(command("run", file, "--engine", "live"))
    assert done.returncode == status, done.stderr
    assert told in done.stderr


USELESS = r"""
echo 0 > /proc/sys/user/max_net_namespaces || exit 77
exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin "$0" -c '
import os
from anabranch.errors import UserError
from anabranch.live import prepare
before = os.readlink("/proc/self/ns/user")
try:
    prepare()
except UserError as error:
    print("refused", os.readlink("/proc/self/ns/user") == before)
'
"""


@pytest.mark.brief
def test_a_refusal_leaves_the_process_where_it_was() -> None:
    """Without rights, in a user namespace that permits others but no network in them.

    Fails for an engine that moves into a user namespace of its own and finds out there that it is of no use.
    """
    outside = ["unshare", "--user", "--map-root-user", "sh", "-c", USELESS, sys.executable]
    done = subprocess.run(outside, capture_output=True, text=True, check=False)
    if done.returncode == 77 or "unshare" in done.stderr:
        missing(f"no user namespaces to try it in: {done.stderr.strip()}")
    assert done.stdout == "refused True\n", done.stderr


@pytest.mark.brief
def test_a_run_that_fails(counted: None, tmp_path: Path) -> None:
    """A program that does not exist: status 1, its name, and nothing left."""
    file = tmp_path / "scenario.toml"
    other = '[host.D]\nexec = ["sleep", "1003"]\n'
    file.write_text(SCENARIO.replace('"sleep", "1000"', '"no-such-program"').replace("60 s", "2 s") + other)
    mark = f"{os.getpid()}-{tmp_path.name}"
    before, devices_before, bpf_before = settled(), devices(), bpf_objects()
    with running(file, mark) as run:
        _, told = run.communicate(timeout=60)
    assert run.returncode == 1
    assert b"the program of `C`: `no-such-program`: No such file or directory" in told
    assert settle(lambda: not processes(mark), 5), "a process is left"
    assert devices() == devices_before
    assert settle(lambda: namespaces() <= before)
    assert settle(lambda: not bpf_left(bpf_before)), f"BPF objects are left: {bpf_left(bpf_before)}"


def test_a_shell_in_a_host(live_machine: None, tmp_path: Path) -> None:
    """It sees the host's device and its peer, and its status is told."""
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO)
    look = "import socket, sys; s = socket.create_server(('10.113.0.1', 9)); print(s.getsockname()[0])"
    done = subprocess.run(
        command("shell", file, "A", "--", sys.executable, "-c", look), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "10.113.0.1\n"), done.stderr
    done = subprocess.run(
        command("shell", file, "B", "--", "sh", "-c", "exit 3"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    done = subprocess.run(command("shell", file, "Z"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert 'has no host "Z"' in done.stderr


NO_PID_NAMESPACES = """
echo 0 > /proc/sys/user/max_pid_namespaces || exit 77
exec "$@"
"""


def test_programs_that_cannot_be_contained_are_told_of(live_machine: None, tmp_path: Path) -> None:
    """Fails for a run that says nothing, or says it of programs that were contained."""
    file = tmp_path / "scenario.toml"
    file.write_text(
        'duration = "300 ms"\n[link.path]\nbetween = ["C", "D"]\ndelay = "1 ms"\n'
        '[flow.program]\nfrom = "C"\nto = "D"\n[host.C]\nexec = ["true"]\n'
    )
    run = command("run", file, "--engine", "live", "--json")
    for outside, contained in (([], True), (["unshare", "-Ur", "sh", "-c", NO_PID_NAMESPACES, "sh"], False)):
        done = ended([*outside, *run])
        if done.returncode == 77 or "unshare" in done.stderr:
            missing(f"no user namespaces for everybody: {done.stderr.strip()}")
        assert done.returncode == 0, done.stderr
        assert [one["contained"] for one in json.loads(done.stdout)["live"]["programs"]] == [contained]
        assert done.stderr.count("gives no PID namespace to the programs of `C`") == (0 if contained else 1)
