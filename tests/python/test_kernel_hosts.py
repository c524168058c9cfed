"""Hosts inside a kernel in virtual time: the user's programs, a shell, and networks made by Linux."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest

from anabranch.kernel.program import run as run_program

from .real_kernel import IS_REQUIRED, needs_kernel

ROOT = Path(__file__).resolve().parents[2]


pytestmark = needs_kernel

PATH = """
duration = "20 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "10 ms"
[flow.main]
from = "A"
to = "B"
"""


def anabranch(*words: object, cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anabranch", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=900, cwd=cwd, **more)  # noqa: S603 - ours


def run(text: str, folder: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    (folder / "scenario.toml").write_text(text)
    return anabranch("run", "scenario.toml", "--engine", "kernel", "--json", cwd=folder, **more)


def host(name: str, script: str) -> str:
    return f"[host.{name}]\nexec = {json.dumps(['sh', '-c', script])}\n"


def missing(what: str) -> NoReturn:
    if IS_REQUIRED:
        pytest.fail(f"not built or installed: {what}")
    pytest.skip(f"not built or installed: {what}")


def test_programs_print_write_and_find_their_environment(tmp_path: Path) -> None:
    """Detects lost or emptied output, another working directory, PATH or HOME, and writes that persist."""
    probe = Path("/tmp", f"anabranch-probe-{os.getpid()}")  # noqa: S108 - what programs write to
    (tmp_path / "input").write_text("from the host\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "own-program").write_text("#!/bin/sh\necho own program\n")
    (tmp_path / "bin" / "own-program").chmod(0o755)
    script = (
        f"own-program; cat input; echo result >output; echo a >/dev/stderr; pwd; echo $HOME;"
        f" touch {probe} && ls {probe}; touch ~/.{probe.name} && echo home; touch /etc/{probe.name} || echo read-only"
    )
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "HOME": str(Path.home())}
    done = run(PATH + host("A", script), tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("touch:")]
    expected = ["own program", "from the host", "a", str(tmp_path), str(Path.home()), str(probe), "home", "read-only"]
    assert lines == expected
    assert (tmp_path / "output").read_text() == "result\n"
    assert not probe.exists()
    assert not Path.home().joinpath(f".{probe.name}").exists()
    assert json.loads(done.stdout)["live"]["programs"][0]["status"] == 0


def test_a_run_does_not_depend_on_the_temporary_folder(tmp_path: Path) -> None:
    """Detects random draws of the guest that depend on the number of the host's files."""
    text = PATH + host("A", "od -An -N 16 -t x8 /dev/urandom >&2")
    first = run(text, tmp_path)
    there = [Path("/tmp", f"anabranch-probe-{os.getpid()}-{number}") for number in range(3)]  # noqa: S108 - see above
    for path in there:
        path.touch()
    try:
        again = run(text, tmp_path)
    finally:
        for path in there:
            path.unlink()
    assert len(first.stderr.strip()) == 33, first.stderr
    assert (again.stderr, json.loads(again.stdout)["digest"]) == (first.stderr, json.loads(first.stdout)["digest"])


@pytest.mark.parametrize(
    ("program", "status", "message"),
    [
        ('["no-such-program"]', 2, "scenario.toml:11:8: there is no program `no-such-program` in PATH"),
        ('["/etc/passwd"]', 2, "scenario.toml:11:8: the program `/etc/passwd` cannot be started: it is not executable"),
        (
            '["sh", "-c", "echo why >&2; exit 3"]',
            1,
            "the live run failed: the program of `A`: `sh` ended with status 3",
        ),
        ('["sh", "-c", "kill -9 $$"]', 1, "the program of `A`: `sh` ended with a signal"),
    ],
)
def test_failing_and_missing_programs_are_reported_as_live(
    tmp_path: Path, program: str, status: int, message: str
) -> None:
    done = run(f"{PATH}[host.A]\nexec = {program}\n", tmp_path)
    assert done.returncode == status, done.stderr
    assert message in done.stderr
    assert ("why" in done.stderr) == ("why" in program)


def test_a_program_that_runs_too_long_is_stopped(tmp_path: Path) -> None:
    text = PATH.replace("20 s", "3 s") + host("A", "trap 'echo asked; exit 0' TERM; sleep 1000 & wait")
    done = run(text, tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["duration_s"] == 3
    assert summary["live"]["programs"][0]["stopped"] is True
    assert done.stderr.strip() == "asked"


def shell(folder: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    (folder / "scenario.toml").write_text(PATH)
    return anabranch("shell", "scenario.toml", "A", "--engine", "kernel", *words, cwd=folder, **more)


def test_a_command_in_a_host_has_exact_times(tmp_path: Path) -> None:
    """A ping of 84 bytes takes twice 10 ms and 67.2 µs. Detects real time."""
    if shutil.which("ping") is None:
        missing("ping; type: apt-get install iputils-ping")
    told = [shell(tmp_path, "--", "ping", "-c", "3", "B") for _ in range(2)]
    assert told[0].returncode == 0, told[0].stderr
    assert told[0].stdout == told[1].stdout
    assert "3 received, 0% packet loss, time 200" in told[0].stdout
    times = re.findall(r"time=([\d.]+) ms", told[0].stdout)
    assert times == ["20.1"] * 3


def test_a_commands_input_output_and_failure_pass_through(tmp_path: Path) -> None:
    done = shell(tmp_path, "--", "sh", "-c", "cat; echo error >&2; exit 3", input="input\n")
    assert (done.returncode, done.stdout) == (1, "input\n")
    assert done.stderr.splitlines()[-1] == "error"
    # Without a command and a terminal, the shell reads commands from its input.
    done = shell(tmp_path, input="echo $((6 * 7))\n", env={**os.environ, "SHELL": "/bin/sh"})
    assert (done.returncode, done.stdout) == (0, "42\n")


def test_a_shell_has_a_terminal(tmp_path: Path) -> None:
    """The terminal has its size, its keys, and Ctrl-C for the program in the foreground."""
    (tmp_path / "scenario.toml").write_text(PATH)
    words = [sys.executable, "-m", "anabranch", "shell", "scenario.toml", "A", "--engine", "kernel"]
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execvpe(words[0], words, {**os.environ, "SHELL": "/bin/sh", "PS1": "> "})  # noqa: S606 - ours
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    seen = read_until(terminal, "", "> ")
    seen = type_in(terminal, "stty size; ping -c 1 B\r", "1 received")
    assert "33 101" in seen
    type_in(terminal, "ping B\r", "icmp_seq=2")
    seen = type_in(terminal, "\x03", "packets transmitted")
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    type_in(terminal, "sleep 1; stty size\r", "40 120")
    os.write(terminal, b"exit 3\r")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            break
        select.select([terminal], [], [], 0.1)
        with_data, _, _ = select.select([terminal], [], [], 0)
        if with_data:
            try:
                os.read(terminal, 4096)
            except OSError:
                continue
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 1


def type_in(terminal: int, keys: str, until: str) -> str:
    """The terminal's output after these keys, up to a text."""
    os.write(terminal, keys.encode())
    return read_until(terminal, keys, until)


def read_until(terminal: int, keys: str, until: str) -> str:
    seen = ""
    deadline = time.monotonic() + 60
    while until not in seen.replace(keys, "") and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 4096).decode(errors="replace")
    assert until in seen, seen
    return seen


def test_an_engine_without_a_shell_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(PATH)
    done = anabranch("shell", "scenario.toml", "A", "--engine", "kernl", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        'error: there is no engine "kernl"',
        '  did you mean "kernel"?',
    ]


def test_a_shell_has_the_kernel_that_is_named(tmp_path: Path) -> None:
    """Detects a release that is ignored: a live shell has this machine's."""
    (tmp_path / "scenario.toml").write_text(PATH)
    done = anabranch("shell", "scenario.toml", "A", "--kernel", "6.12", "--", "uname", "-r", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0] == "error: --kernel 6.12 is of --engine kernel, and --engine live runs none"
    words = ("shell", "scenario.toml", "A", "--engine", "kernel", "--kernel", "0.1", "--", "uname", "-r")
    done = anabranch(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "0.1" in done.stderr.splitlines()[0]


def scenario_of_hosts(name: str) -> str:
    return (ROOT / "scenarios" / "hosts" / f"{name}.toml").read_text()


def twice(text: str, tmp_path: Path, **more: Any) -> tuple[dict[str, Any], str]:
    """The summary and the programs' output, which must be the same in two runs, each in an empty folder."""
    found = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = run(text, folder, **more)
        if "Unknown device type" in done.stderr:
            missing("a kernel of this configuration: anabranch kernel build")
        assert done.returncode == 0, done.stderr
        found.append((json.loads(done.stdout), done.stderr))
    (summary, told), (again, told_again) = found
    assert told_again == told
    assert again["digest"] == summary["digest"]
    for figures in ("duration_s", "flows", "links"):
        assert again[figures] == summary[figures]
    return summary, told


def sent(summary: dict[str, Any], link: str, direction: str = "reverse") -> int:
    packets: int = summary["links"][link][direction]["sent_packets"]
    return packets


def goodput(told: str, label: str) -> float:
    """A goodput from a program's output."""
    found = re.search(rf"^{label}.* ([\d.]+) Mbit/s$", told, re.MULTILINE)
    assert found is not None, told
    return float(found[1])


@pytest.mark.long
def test_mptcp_uses_both_links(tmp_path: Path) -> None:
    """20 MB in packets of 1,428 bytes over 30 Mbit/s; Wi-Fi alone would need 8 s."""
    summary, _ = twice(scenario_of_hosts("mptcp"), tmp_path)
    least = 20e6 * 8 * 1500 / 1428 / 30e6
    assert least < summary["duration_s"] < least + 1
    assert sent(summary, "lte") > 20e6 / 1428 / 4


@pytest.mark.long
def test_wireguard_costs_its_headers(tmp_path: Path) -> None:
    """60 bytes a packet over IPv4, and padding to multiples of 16. Detects a transfer outside of the tunnel."""
    if shutil.which("wg") is None:
        missing("wg; type: apt-get install wireguard-tools")
    summary, told = twice(scenario_of_hosts("wireguard"), tmp_path)
    beside, inside = goodput(told, "beside the tunnel:"), goodput(told, "inside the tunnel:")
    assert 0.98 * 20 * 1448 / 1500 < beside <= 20 * 1448 / 1500
    assert 0.98 * 20 * 1368 / 1480 < inside <= 20 * 1368 / 1480
    assert sent(summary, "line") >= 20e6 / 1448 + 20e6 / 1368


@pytest.mark.long
def test_bonding_in_turns_uses_both_lines(tmp_path: Path) -> None:
    """Packets of 1,450 bytes in frames of 1,500: the sum of both rates, and equal numbers of packets."""
    summary, told = twice(scenario_of_hosts("bonding"), tmp_path)
    most = 2 * 10 * 1398 / 1500
    assert 0.9 * most < goodput(told, "bond:") <= most
    lines = [sent(summary, name) for name in ("dsl", "cable")]
    assert abs(lines[0] - lines[1]) <= 0.02 * sum(lines)


@pytest.mark.long
def test_bonding_with_a_backup_uses_one_line(tmp_path: Path) -> None:
    text = scenario_of_hosts("bonding").replace("balance-rr", "active-backup")
    summary, told = twice(text, tmp_path)
    most = 10 * 1398 / 1500
    assert 0.9 * most < goodput(told, "bond:") <= most
    assert min(sent(summary, name) for name in ("dsl", "cable")) < 100


def gateway_folder() -> Path:
    name = "anabranch-gateway"
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [target / profile for profile in ("release", "dist", "debug") if (target / profile / name).is_file()]
    on_path = shutil.which(name)
    if not built and on_path is None:
        missing(f"{name}; type: tools/env cargo build --release -p anabranch-gatewayd")
    return built[0] if built else Path(str(on_path)).parent


@pytest.mark.long
def test_the_gateways_daemon_bonds_two_links(tmp_path: Path) -> None:
    """20 MB at more than the faster link's 10 Mbit/s, and below the sum of both."""
    environment = {**os.environ, "PATH": f"{gateway_folder()}:{os.environ['PATH']}"}
    summary, told = twice(scenario_of_hosts("tunnel"), tmp_path, env=environment)
    assert 15 < goodput(told, "tunnel:") < 18 * 1448 / 1500
    assert summary["duration_s"] < 13


@pytest.mark.long
def test_a_failing_path_of_the_gateway_is_reproducible(tmp_path: Path) -> None:
    """The figures of each kind of failure agree to the last digit."""
    found = []
    for number in range(2):
        out = tmp_path / f"{number}.json"
        command = [
            sys.executable, str(ROOT / "bench" / "gateway" / "failover.py"), "--engine", "kernel", "--phases", "1",
            "--together", "2", "--gateway", str(gateway_folder() / "anabranch-gateway"), "--json", str(out),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800, cwd=tmp_path)  # noqa: S603 - ours
        assert done.returncode == 0, done.stderr
        found.append(json.loads(out.read_text()))
    assert len(found[0]) == 8
    assert found[1] == found[0]
    # No packet of an interactive call is lost.
    assert not any(row["failure_lost"] for row in found[0] if row["class"] == "interactive")


def test_a_programs_output_and_status_reach_the_caller(capfd: pytest.CaptureFixture[str]) -> None:
    status = run_program(["sh", "-c", f"cd {shlex.quote(str(Path.cwd()))}; sleep 1000; echo out; echo err >&2; exit 3"])
    assert status == 3
    assert capfd.readouterr() == ("out\n", "err\n")


LOOPBACK = """
import socket
server = socket.create_server(("127.0.0.1", 0))
with socket.create_connection(server.getsockname(), timeout=5):
    print("connected")
"""


def test_programs_reach_the_loopback(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """In the guest itself, and in a host. Detects an interface that is down, as Linux creates it."""
    run_program([sys.executable, "-c", LOOPBACK])
    assert capfd.readouterr() == ("connected\n", "")
    done = shell(tmp_path, "--", sys.executable, "-c", LOOPBACK)
    assert done.stdout == "connected\n", done.stderr


def test_a_missing_program_has_the_status_of_a_shell(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_program(["no-such-program"]) == 127
    assert capfd.readouterr().err == "no-such-program: No such file or directory\n"
