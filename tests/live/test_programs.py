"""Programs of the user: every key of their flows is applied or refused, and they determine the duration of a run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from guest.pairs import CLIENT, FLOW, PAIR, PATH, controls

from anabranch.cli.shell import greeting
from anabranch.scenario import Scenario

from .conftest import command


@pytest.mark.brief
def test_a_shell_starts_the_other_hosts_programs(live_machine: None, tmp_path: Path) -> None:
    """Every host is listed with its addresses, names resolve, and the shell has the flow's `cc`."""
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


@pytest.mark.brief
def test_the_shell_replaces_the_program_at_each_device(live_machine: None) -> None:
    """Another host's long script is cut, so that each host is a line of the terminal."""
    scenario = Scenario.from_file(Path(__file__).parents[2] / "scenarios/hosts/tunnel.toml")
    fibre, lte, server = greeting(scenario, "office")
    assert fibre.endswith("this shell, in place of its program")
    assert lte.endswith("this shell")
    assert "runs sh -c " in server
    assert server.endswith("…")
    assert len(server) < 150


def without_interpreter(folder: Path) -> Path:
    """A program that fails only when it is started."""
    program = folder / "program"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    return program


def test_a_program_that_cannot_start_beside_a_shell_is_reported(live_machine: None, tmp_path: Path) -> None:
    """The report comes before the shell opens. A program that fails later does not change the shell's status."""
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
