"""Programs of the user's: every key of their flows is obeyed or refused, and a run is theirs in time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anabranch.scenario import Scenario

from .conftest import Run, command, missing

PATH = """
duration = "20 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "10 ms"
"""

FLOW = """
[flow.main]
from = "A"
to = "B"
"""

SERVER = """
import socket, sys
listener = socket.create_server((sys.argv[1], 7), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
for _ in range(int(sys.argv[2])):
    peer = listener.accept()[0]
    print("server", peer.getsockopt(6, 13, 16).rstrip(b"\\0").decode(), peer.getpeername()[0], file=sys.stderr)
    while peer.recv(65536):
        pass
    peer.close()
"""
"""Says which congestion control its connections have (TCP_CONGESTION), and who calls."""

CLIENT = """
import socket, sys, time
for attempt in range(200):
    try:
        peer = socket.create_connection((sys.argv[1], 7), timeout=20)
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
print("client", peer.getsockopt(6, 13, 16).rstrip(b"\\0").decode(), peer.getpeername()[0], file=sys.stderr)
peer.sendall(bytes(int(sys.argv[2])))
peer.shutdown(1)
peer.recv(1)
"""


def host(name: str, *words: str) -> str:
    """A host that runs a program of Python's."""
    return f"\n[host.{name}]\nexec = {json.dumps([sys.executable, '-c', *words])}\n"


PAIR = host("A", CLIENT, "B", "1000000") + host("B", SERVER, "{B}", "1")


def told(text: str, tmp_path: Path, *options: str) -> tuple[dict[str, Any], list[str]]:
    """The summary of a run, and what its programs have said."""
    file = tmp_path / "scenario.toml"
    file.write_text(text)
    words = command("run", file, "--engine", "live", "--json", "--allow-tainted", *options)
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    return json.loads(done.stdout), [line for line in lines if line.startswith(("client", "server"))]


def controls() -> tuple[list[str], list[str]]:
    """What a namespace may have as its default, and what the kernel restricts."""
    setting = "/proc/sys/net/ipv4/tcp_{}_congestion_control"
    allowed, there = (Path(setting.format(name)).read_text().split() for name in ("allowed", "available"))
    return allowed, [name for name in there if name not in allowed]


@pytest.mark.brief
@pytest.mark.parametrize("restricted", [False, True])
def test_programs_have_the_control_of_their_flow(live_machine: None, tmp_path: Path, restricted: bool) -> None:
    """Fails for programs with the machine's default, at either end."""
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    names = [name for name in controls()[restricted] if name != default]
    if not names:
        missing(f"the kernel has no other control that is {'' if restricted else 'not '}restricted")
    summary, lines = told(PATH + FLOW + f'cc = "{names[0]}"\n' + PAIR, tmp_path)
    assert sorted(line.split()[:2] for line in lines) == [["client", names[0]], ["server", names[0]]]
    assert summary["live"]["default_controls"] == {"A": names[0], "B": names[0]}


def test_without_a_control_programs_have_the_machines(live_machine: None, tmp_path: Path) -> None:
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    summary, lines = told(PATH + FLOW + PAIR, tmp_path)
    assert {line.split()[1] for line in lines} == {default}
    assert summary["live"]["default_controls"] == {"A": default, "B": default}


@pytest.mark.brief
def test_a_run_ends_with_its_programs(live_machine: None, tmp_path: Path) -> None:
    """And its rates are those of the programs' own time. Fails for 20 s, and for 0.4 Mbit/s."""
    summary, _ = told(PATH + FLOW + PAIR, tmp_path)
    flow = summary["flows"]["main"]
    # A megabyte takes 0.84 s.
    assert 0.8 < summary["duration_s"] < 15
    octets = flow["throughput_mbit_s"] * summary["duration_s"] * 1e6 / 8
    assert octets == pytest.approx(1_000_000 * 1500 / 1448, rel=0.15)
    assert {one["host"]: one["stopped"] for one in summary["live"]["programs"]} == {"A": False, "B": False}


def test_a_server_that_goes_on_dilutes_no_rate(live_machine: None, tmp_path: Path) -> None:
    """The flow's own time ends with the client, and the run at its `duration`."""
    text = PATH.replace("20 s", "6 s") + FLOW + host("A", CLIENT, "B", "1000000") + host("B", SERVER, "{B}", "9")
    summary, _ = told(text, tmp_path)
    assert summary["duration_s"] == 6
    assert {one["host"]: one["stopped"] for one in summary["live"]["programs"]} == {"A": False, "B": True}
    # Over six seconds it is 1.4.
    assert summary["flows"]["main"]["throughput_mbit_s"] > 2


def test_what_is_still_to_come_keeps_a_run(live_machine: None, tmp_path: Path) -> None:
    """A flow of ours that begins later, and one whose file is not whole."""
    text = PATH + FLOW + host("A", "pass") + "[link.other]\nbetween = ['C', 'D']\nrate = '10 Mbit/s'\ndelay = '5 ms'\n"
    late = '[flow.late]\nfrom = "C"\nto = "D"\nstart = "1 s"\nworkload = { kind = "file", size = "500 kB" }\n'
    summary, _ = told(text + late, tmp_path)
    assert 1.4 < summary["duration_s"] < 15
    assert summary["flows"]["late"]["delivered_bytes"] == 500_000
    assert summary["flows"]["late"]["throughput_mbit_s"] == pytest.approx(9.3, abs=0.6)
    assert 0 <= summary["links"]["other"]["forward"]["utilization"] < 1


@pytest.mark.brief
def test_names_and_addresses_follow_the_family(live_machine: None, tmp_path: Path) -> None:
    """Fails where names do not resolve, or `{B}` is the address of the other version of IP."""
    for family, address in (("4", "10.113.0.2"), ("6", "fd71:616e:6162::2")):
        summary, lines = told(PATH + FLOW + f"family = {family}\n" + PAIR, tmp_path)
        assert ["client", address] in [line.split()[::2] for line in lines]
        assert all(one["names"] for one in summary["live"]["programs"])


@pytest.mark.brief
def test_a_workload_beside_a_program_is_ours(late_run: Run) -> None:
    """Several flows between hosts with programs: the program's packets take the one without a workload."""
    ours = (
        FLOW.replace("main", "ours") + 'cc = "reno"\nworkload = { kind = "file", size = "200 kB" }\nstart = "100 ms"\n'
    )
    summary = late_run(PATH + FLOW + ours + PAIR)
    assert summary["flows"]["ours"]["delivered_bytes"] == 200_000
    assert summary["live"]["controls"]["ours"]["name"] == "reno"
    assert summary["flows"]["main"]["goodput_mbit_s"] is None
    assert summary["flows"]["main"]["throughput_mbit_s"] > 1


TWO_WAYS = """
duration = "20 s"
[link.one]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "10 ms"
[link.two]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "10 ms"
[flow.first]
from = "A"
to = "B"
route = ["one"]
[flow.second]
from = "A"
to = "B"
route = ["two"]
"""

TWO_CLIENTS = """
import threading
threads = [threading.Thread(target=exec, args=(CLIENT, {})) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

TWO_SERVERS = SERVER.replace(
    "    while", "    threading.Thread(target=read, args=(peer,)).start()\nif 0:\n    while"
).replace(
    "listener =",
    "import threading\ndef read(peer):\n    while peer.recv(65536):\n        pass\n    peer.close()\nlistener =",
)


def test_connections_share_the_flows_between_two_hosts(late_run: Run) -> None:
    """Fails where a second flow between hosts with programs is refused, or gets no packets."""
    clients = f"CLIENT = {CLIENT!r}{TWO_CLIENTS}"
    summary = late_run(TWO_WAYS + host("A", clients, "B", "300000") + host("B", TWO_SERVERS, "{B}", "2"))
    for name in ("one", "two"):
        sent = summary["links"][name]["forward"]["sent_packets"]
        assert 300_000 / 1448 < sent < 1.2 * 300_000 / 1448


@pytest.mark.brief
@pytest.mark.parametrize(
    ("keys", "line", "message"),
    [
        ('stack = "rfc"', 11, 'this machine\'s kernel, not the stack "rfc"'),
        ('cc = { kind = "cubic", beta = 0.5 }', 11, "a socket can only name its congestion control"),
        ('cc = "bbr3"', 11, "does not let a socket have the congestion control `bbr3`"),
        ('transport = { min_rto = "1 s" }', 11, "`min_rto` cannot be set"),
        ('transport = { mss = "536 bytes" }', 11, "its packets are as large as the devices carry"),
        ('transport = { receive_window = "64 KiB", receive_autotuning = false }', 11, "those of a program are its own"),
        ('start = "1 s"', 11, "a program runs at an end of this flow, and begins with the run"),
        ('start_spread = "1 s"', 11, "whatever `start_spread` says"),
        ('stop = "1 s"', 11, "whatever `stop` says"),
        ('protocol = "udp"', 11, "the UDP flow `main` has no `workload`"),
        ('fec = "xor"', 11, "has no error correction"),
        ('cc = "reno"\n[flow.other]\nfrom = "A"\nto = "C"\ncc = "bbr"\n[link.o]\nbetween = ["A", "C"]\ndelay = "1 ms"',
         15, "one default congestion control, and `main` before it asks for `reno`"),
    ],
)  # fmt: skip
def test_what_a_program_does_not_obey_is_refused(
    live_machine: None, tmp_path: Path, keys: str, line: int, message: str
) -> None:
    """Fails for a key that is dropped silently, and for a message without its line."""
    file = tmp_path / "scenario.toml"
    file.write_text(PATH + FLOW + keys + "\n" + PAIR)
    done = subprocess.run(command("run", file, "--engine", "live"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith(f"error: {file}:{line}:"), done.stderr
    assert message in done.stderr.splitlines()[0]
    assert "expected" in done.stderr


def test_settings_of_the_namespace_are_obeyed(late_run: Run) -> None:
    """Fails where a program's flow loses its `transport`."""
    summary = late_run(PATH + FLOW + "transport = { sack = false, timestamps = false }\n" + PAIR)
    applied = summary["live"]["machine"]["applied_settings"]
    assert (applied["net/ipv4/tcp_sack"], applied["net/ipv4/tcp_timestamps"]) == ("0", "0")


@pytest.mark.brief
def test_a_shell_starts_the_other_hosts_programs(live_machine: None, tmp_path: Path) -> None:
    """Every host is told with its addresses, names resolve, and the shell's `cc` is the flow's."""
    file = tmp_path / "scenario.toml"
    restricted = next(iter([*controls()[1], "reno"]))
    looks = CLIENT.partition("print")[0] + "print(peer.getpeername()[0], peer.getsockopt(6, 13, 16).decode())"
    file.write_text(PATH + FLOW + f'cc = "{restricted}"\n' + PAIR)
    words = command("shell", file, "A", "--", sys.executable, "-c", looks, "B")
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.replace("\0", "").split() == ["10.113.0.2", restricted]
    lines = done.stderr.splitlines()
    assert lines[0].split()[:3] == ["A", "10.113.0.1", "fd71:616e:6162::1"]
    assert lines[0].endswith("this shell, in place of its program")
    assert lines[1].split()[:4] == ["B", "10.113.0.2", "fd71:616e:6162::2", "runs"]


def without_interpreter(folder: Path) -> Path:
    """A program of which only its start tells that it cannot be started."""
    program = folder / "program"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    return program


NO_PROGRAMS = [
    ('["/no/such"]', "the program `/no/such` cannot be started: there is no such file"),
    ('["/tmp"]', "the program `/tmp` cannot be started: it is a directory"),
    ('["/dev/null"]', "the program `/dev/null` cannot be started: it is no regular file"),
    ('["/etc/passwd"]', "the program `/etc/passwd` cannot be started: it is not executable"),
    ('["/etc/passwd/x"]', "the program `/etc/passwd/x` cannot be started: Not a directory"),
    ('["no-such-program"]', "there is no program `no-such-program` in PATH"),
    ('[""]', "the name of the program in `exec` is empty"),
    ('["echo", "a\\u0000b"]', "word 2 of `exec` has a NUL character"),
]


@pytest.mark.brief
@pytest.mark.parametrize(
    ("name", "words", "message"),
    [("run", *one) for one in NO_PROGRAMS] + [("shell", *NO_PROGRAMS[0])],
)
def test_a_program_that_cannot_be_started_is_bad_input(
    live_machine: None, tmp_path: Path, name: str, words: str, message: str
) -> None:
    """Before the run, at its place, in one message."""
    file = tmp_path / "scenario.toml"
    file.write_text(f"{PATH}{FLOW}[host.B]\nexec = {words}\n")
    line = len(file.read_text().splitlines())
    options = {"run": ["--engine", "live"], "shell": ["A", "--", "true"]}.get(name, [])
    done = subprocess.run(command(name, file, *options), capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (told,) = [one for one in done.stderr.splitlines() if one.startswith("error:")]
    assert told == f"error: {file}:{line}:8: {message}"


@pytest.mark.brief
@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("/no/such", "the program `/no/such` cannot be started: there is no such file"),
        ("no-such-program", "there is no program `no-such-program` in PATH"),
        ("", "the name of the program is empty"),
    ],
)
def test_a_shell_that_is_not_there_is_bad_input(live_machine: None, tmp_path: Path, program: str, message: str) -> None:
    """It is the one message: no network is announced."""
    file = tmp_path / "scenario.toml"
    file.write_text(PATH + FLOW)
    words = command("shell", file, "A", "--", program)
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    first, hint = done.stderr.splitlines()
    assert (done.returncode, done.stdout, first) == (2, "", f"error: {message}")
    assert hint.startswith("  expected ")


@pytest.mark.brief
def test_a_name_in_path_is_suggested(live_machine: None, tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(PATH + FLOW + '[host.B]\nexec = ["slep", "1"]\n')
    done = subprocess.run(
        command("run", file, "--engine", "live"), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert "did you mean `sleep`?" in done.stderr


def test_a_program_beside_a_shell_that_cannot_start_is_told(live_machine: None, tmp_path: Path) -> None:
    """Before the shell opens. One that fails later leaves the shell its own status."""
    file = tmp_path / "scenario.toml"
    program = without_interpreter(tmp_path)
    file.write_text(PATH + FLOW + f'[host.B]\nexec = ["{program}"]\n')
    opens = command("shell", file, "A", "--", "sh", "-c", "echo open; sleep 0.5; exit 0")
    done = subprocess.run(opens, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"the program of `B`: `{program}`: No such file or directory\n" in done.stderr
    file.write_text(PATH + FLOW + '[host.B]\nexec = ["sh", "-c", "exit 3"]\n')
    done = subprocess.run(opens, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "open\n")
    assert "the program of `B` ended with status 3 while the shell was open" in done.stderr


def test_throughput_covers_the_flows_own_time(late_run: Run) -> None:
    """A file of a second in a run of four: in both engines what the link carries."""
    text = PATH.replace("20 s", "4 s") + FLOW + 'cc = "cubic"\nworkload = { kind = "file", size = "1 MB" }\n'
    simulated: Any = Scenario.from_text(text).run().summary
    rates = [run["flows"]["main"]["throughput_mbit_s"] for run in (late_run(text), simulated)]
    assert rates == pytest.approx([9.5, 9.5], abs=0.2)
