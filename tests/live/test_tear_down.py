"""A run leaves no namespace, device or process, however it ends."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
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
    """The processes that were started with this mark in their environment."""
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
    """Whether the scenario's program is running; a compiler may run before it."""
    return any(_name(process) == "sleep" for process in processes(mark))


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


DEVICE = "path"
"""Name prefix of the engine's devices, which are all in separate namespaces."""

MOST = 12
"""Network namespaces that the test's user namespace permits during a count; a run has four."""

COUNT = """
import ctypes, os

NEWNET = 0x40000000
libc, held = ctypes.CDLL(None, use_errno=True), []


def permit(most):
    with open("/proc/sys/user/max_net_namespaces", "w") as setting:
        setting.write(str(most))


permit(MOST)
while libc.unshare(NEWNET) == 0:
    held.append(os.open("/proc/self/ns/net", os.O_RDONLY))
permit(1000)
print(len(held))
""".replace("MOST", str(MOST))
"""Prints the number of further namespaces: it creates them until the kernel permits no other. A
later run must find room beside namespaces that are still being removed."""


class Confined:
    """A user namespace in which few network namespaces may exist, including those without a process.

    The kernel counts them for this user namespace alone, so that other programs of the machine have
    no effect.
    """

    def __init__(self) -> None:
        limit = "echo 1000 > /proc/sys/user/max_net_namespaces && echo ready && exec sleep 1000"
        self._holder = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "sh", "-c", limit], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self._holder.stdout is not None
        self.is_there = self._holder.stdout.readline() == b"ready\n"

    def words(self, *words: str) -> list[str]:
        """A command line that runs there."""
        return ["nsenter", "--user", "--preserve-credentials", "--target", str(self._holder.pid), *words]

    def free(self) -> int:
        """Number of further namespaces that may exist. The kernel removes the namespaces of this count later."""
        done = subprocess.run(self.words(sys.executable, "-c", COUNT), capture_output=True, text=True, check=True)
        return int(done.stdout)

    def close(self) -> None:
        self._holder.kill()
        self._holder.communicate()


@pytest.fixture
def confined(live_machine: None) -> Iterator[Confined]:
    """Skip if there is no user namespace to count in."""
    for program in ("unshare", "nsenter"):
        if shutil.which(program) is None:
            missing(f"no {program} (util-linux)")
    confined = Confined()
    try:
        if not confined.is_there:
            missing("no user namespace that limits its network namespaces")
        yield confined
    finally:
        confined.close()


BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}
"""The number of bpf(2)."""

BY_ID = {"prog_id": 13, "map_id": 14, "link_id": 30}
"""Its commands `BPF_PROG_GET_FD_BY_ID`, `BPF_MAP_GET_FD_BY_ID`, `BPF_LINK_GET_FD_BY_ID`
(linux/bpf.h), by the names of ids in ``/proc/PID/fdinfo`` (proc(5))."""


def bpf_objects(process: int) -> set[tuple[str, int]]:
    """BPF programs, maps and links that a process holds."""
    found = set()
    for info in Path(f"/proc/{process}/fdinfo").iterdir():
        try:
            lines = info.read_text().splitlines()
        except OSError:
            continue
        pairs = (line.partition(":") for line in lines)
        found |= {(name, int(number)) for name, _, number in pairs if name in BY_ID}
    return found


def bpf_left(objects: set[tuple[str, int]]) -> set[tuple[str, int]]:
    """The objects that are still in the kernel, which does not reuse a number soon."""
    libc, number = ctypes.CDLL(None, use_errno=True), BPF_SYSCALL.get(platform.machine())
    left = set()
    for name, identity in objects if number is not None else ():
        # `prog_id`, `next_id`, `open_flags`.
        attributes = (ctypes.c_uint32 * 3)(identity)
        descriptor = libc.syscall(number, BY_ID[name], attributes, ctypes.sizeof(attributes))
        if descriptor >= 0:
            os.close(descriptor)
            left.add((name, identity))
    return left


def devices() -> set[str]:
    """Devices in the test's own namespace with a name like the engine's."""
    return {entry.name for entry in Path("/sys/class/net").iterdir() if entry.name.startswith(DEVICE)}


def settle(is_clean: object, seconds: float = 20) -> bool:
    """Wait until the condition holds: the kernel removes namespaces asynchronously."""
    assert callable(is_clean)
    until = time.monotonic() + seconds
    while not is_clean():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


@contextmanager
def running(file: Path, mark: str, confined: Confined | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A running run, which ends even if the test fails."""
    words = command("run", file, "--engine", "live")
    run = subprocess.Popen(
        words if confined is None else confined.words(*words),
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
    """Whether a run on this machine traces the kernel's TCP."""
    file = tmp_path / "short.toml"
    file.write_text((PATH + FLOW).replace("3 s", "100 ms"))
    done = subprocess.run(
        command("run", file, "--engine", "live", "--trace", "events"), capture_output=True, text=True, check=False
    )
    return "cannot be traced" not in done.stderr


def last_words(run: subprocess.Popen[bytes], which: str) -> str:
    """The standard error of a run that was ended; if it continues, fail with the positions of its threads."""
    try:
        return run.communicate(timeout=20)[1].decode()
    except subprocess.TimeoutExpired:
        found = []
        for thread in sorted(Path(f"/proc/{run.pid}/task").glob("*")):
            # It may end in the meantime, and only root can read a thread's position.
            with suppress(OSError):
                found.append(f"{(thread / 'comm').read_text().strip()}: {(thread / 'stack').read_text()}")
        pytest.fail("\n".join([f"{which} has not ended after 20 s; threads:", *found]))


INTERRUPTED = (128 + signal.SIGINT,)
"""Statuses of a run that Ctrl-C ends."""


def end(run: subprocess.Popen[bytes], which: signal.Signals, number: int) -> None:
    """End a run by a signal, at a different moment each time."""
    time.sleep(0.05 * (number % 5))
    run.send_signal(which)
    told = last_words(run, f"run {number}, {which.name}")
    assert run.returncode in (INTERRUPTED if which == signal.SIGINT else (128 + which, -which)), told


def cycles(tmp_path: Path, ends: list[signal.Signals]) -> None:
    """Start and end runs whose flow has our control and a trace, if the kernel permits them."""
    file = tmp_path / "scenario.toml"
    why_not = hindrance(tmp_path)
    if why_not is not None:
        must_not_be_missing(why_not)
    loads, traces = why_not is None, can_trace(tmp_path)
    if not traces:
        must_not_be_missing("the kernel's TCP cannot be traced")
    file.write_text(SCENARIO.replace("cubic", "compound") if loads else SCENARIO)
    mark = f"{os.getpid()}-{tmp_path.name}"
    devices_before = devices()
    for number, which in enumerate(ends):
        with running(file, mark) as run:
            # Its program starts with the packets.
            assert settle(lambda: sleeps(mark)), run.communicate(timeout=5)
            # The engine never has a device in the test's namespace: it would remain after the run.
            assert devices() == devices_before
            objects = bpf_objects(run.pid)
            # A trace has three programs and maps; a control has a map with its operations, and the
            # link that registers it.
            least = {"prog_id": 3 * traces, "map_id": 3 * traces + loads, "link_id": 2 * traces + loads}
            for name, count in least.items():
                held = sum(one == name for one, _ in objects)
                assert held >= count, f"{objects}: this test would not see one left"
            controls = own_controls(run.pid)
            assert len(controls) == loads
            end(run, which, number)
        assert settle(lambda: not processes(mark), 5), "a process is left"
        assert settle(lambda run=run: not own_controls(run.pid)), "a control is left in the kernel"
        assert settle(lambda objects=objects: not bpf_left(objects)), f"BPF objects are left: {bpf_left(objects)}"
    assert devices() == devices_before


def confined_cycles(confined: Confined, tmp_path: Path, ends: list[signal.Signals]) -> None:
    """Start and end runs in a namespace that permits few network namespaces."""
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO)
    mark = f"{os.getpid()}-{tmp_path.name}"
    assert settle(lambda: confined.free() == MOST), "none of them can be made"
    for number, which in enumerate(ends):
        with running(file, mark, confined) as run:
            assert settle(lambda: sleeps(mark)), run.communicate(timeout=5)
            if number == 0:
                assert confined.free() <= MOST - 4, "the count shows no namespace of ours: it would not see one left"
            end(run, which, number)
        assert settle(lambda: not processes(mark), 5), "a process is left"
        assert settle(lambda: confined.free() == MOST), f"of {MOST} namespaces {confined.free()} are free"


@pytest.mark.brief
def test_start_and_kill(live_machine: None, tmp_path: Path) -> None:
    cycles(tmp_path, [signal.SIGKILL, signal.SIGINT, signal.SIGKILL])


@pytest.mark.brief
def test_no_namespace_remains(confined: Confined, tmp_path: Path) -> None:
    confined_cycles(confined, tmp_path, [signal.SIGKILL, signal.SIGINT])


@pytest.mark.slow
def test_a_hundred_times(live_machine: None, tmp_path: Path) -> None:
    cycles(tmp_path, [signal.SIGKILL, signal.SIGINT] * 50)


@pytest.mark.slow
def test_no_namespace_remains_after_fifty_runs(confined: Confined, tmp_path: Path) -> None:
    confined_cycles(confined, tmp_path, [signal.SIGKILL, signal.SIGINT] * 25)


STRAY = "setsid sleep 1001 & exec sleep 1002"
"""A program whose child has called setsid: it is in no process group of its parent."""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_descendants_of_a_program_end_too(live_machine: None, tmp_path: Path, end: signal.Signals) -> None:
    """Detects programs that are killed alone, or by their group (PR_SET_PDEATHSIG alone)."""
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
def test_the_exit_status_of_a_program_is_reported(
    live_machine: None, tmp_path: Path, program: str, status: int, told: str
) -> None:
    """The engine starts another process first. Detects the report of that one's status."""
    file = tmp_path / "scenario.toml"
    text = SCENARIO.replace('["sleep", "1000"]', f'["sh", "-c", "{program}"]').replace("60 s", "1 s")
    file.write_text(text)
    done = subprocess.run(
        command("run", file, "--engine", "live", "--allow-tainted"), capture_output=True, text=True, check=False
    )
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
def test_a_refusal_does_not_move_the_process() -> None:
    """Without privileges, in a user namespace that permits others but no network in them.

    Detects an engine that moves into a new user namespace before it finds that this is useless.
    """
    outside = ["unshare", "--user", "--map-root-user", "sh", "-c", USELESS, sys.executable]
    done = subprocess.run(outside, capture_output=True, text=True, check=False)
    if done.returncode == 77 or "unshare" in done.stderr:
        missing(f"no user namespaces to try it in: {done.stderr.strip()}")
    assert done.stdout == "refused True\n", done.stderr


@pytest.mark.brief
def test_a_failing_run(confined: Confined, tmp_path: Path) -> None:
    """A program whose interpreter does not exist: status 1, its name, and no leftovers."""
    program = tmp_path / "program"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    file = tmp_path / "scenario.toml"
    other = '[host.D]\nexec = ["sleep", "1003"]\n'
    file.write_text(SCENARIO.replace('"sleep", "1000"', f'"{program}"').replace("60 s", "2 s") + other)
    mark = f"{os.getpid()}-{tmp_path.name}"
    devices_before = devices()
    with running(file, mark, confined) as run:
        _, told = run.communicate(timeout=60)
    assert run.returncode == 1
    assert f"the program of `C`: `{program}`: No such file or directory\n".encode() in told
    assert settle(lambda: not processes(mark), 5), "a process is left"
    assert devices() == devices_before
    assert settle(lambda: confined.free() == MOST)


def test_a_shell_in_a_host(live_machine: None, tmp_path: Path) -> None:
    """It has access to the host's device and its peer, and its status is passed on."""
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


def test_uncontained_programs_are_reported(live_machine: None, tmp_path: Path) -> None:
    """Detects a run without the warning, and a warning about programs that were contained."""
    file = tmp_path / "scenario.toml"
    file.write_text(
        'duration = "300 ms"\n[link.path]\nbetween = ["C", "D"]\ndelay = "1 ms"\n'
        '[flow.program]\nfrom = "C"\nto = "D"\n[host.C]\nexec = ["true"]\n'
    )
    run = command("run", file, "--engine", "live", "--json", "--allow-tainted")
    for outside, contained in (([], True), (["unshare", "-Ur", "sh", "-c", NO_PID_NAMESPACES, "sh"], False)):
        done = subprocess.run([*outside, *run], capture_output=True, text=True, check=False)
        if done.returncode == 77 or "unshare" in done.stderr:
            missing(f"no user namespaces for everybody: {done.stderr.strip()}")
        assert done.returncode == 0, done.stderr
        assert [one["contained"] for one in json.loads(done.stdout)["live"]["programs"]] == [contained]
        assert done.stderr.count("gives no PID namespace to the programs of `C`") == (0 if contained else 1)
