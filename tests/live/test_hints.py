"""A refusal's advice is right on the machine that prints it, and a tainted run names a remedy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import FLOW, PATH, command, missing

SHORT = (PATH + FLOW).replace("3 s", "300 ms")


@pytest.fixture
def file(live_machine: None, tmp_path: Path) -> Path:
    path = tmp_path / "scenario.toml"
    path.write_text(SHORT)
    return path


def refused(words: list[str]) -> str:
    """The message of a refused command."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2, done.stderr
    return done.stderr


def without(*capabilities: str) -> list[str]:
    """The prefix that runs a command as root without these capabilities."""
    if shutil.which("setpriv") is None or os.geteuid() != 0:
        missing("taking capabilities away needs root, and setpriv (util-linux)")
    less = ",".join(f"-{name}" for name in capabilities)
    return ["setpriv", f"--bounding-set={less}", f"--inh-caps={less}"]


CLOSED = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'


@pytest.mark.brief
@pytest.mark.parametrize("words", [("run", "--engine", "live"), ("validate",), ("shell",)])
def test_root_in_a_container_learns_the_missing_capabilities(file: Path, words: tuple[str, ...]) -> None:
    """Root is not advised to run as root; `--engine` is named only by commands that have it."""
    name, *options = words
    line = command(name, file, *options, *(["A"] if name == "shell" else []))
    # With user namespaces it would need no capability.
    closed = ["unshare", "--user", "--map-root-user", "sh", "-c", CLOSED, "sh"]
    told = refused([*closed, *without("sys_admin", "net_admin"), *line])
    assert "this root lacks CAP_SYS_ADMIN and CAP_NET_ADMIN" in told
    assert "--cap-add=SYS_ADMIN --cap-add=NET_ADMIN --device=/dev/net/tun" in told
    assert "run as root" not in told
    assert ("--engine sim" in told) == (name == "run")


@pytest.mark.brief
def test_a_missing_tun_device_is_reported(file: Path) -> None:
    if shutil.which("unshare") is None or os.geteuid() != 0:
        missing("hiding /dev/net needs root, and unshare (util-linux)")
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /dev/net && exec "$@"', "sh"]
    told = refused([*hidden, *command("run", file, "--engine", "live")])
    assert "/dev/net/tun, which this machine does not have" in told
    assert "modprobe tun" in told
    assert "run as root" not in told


def test_a_trace_without_privilege_names_the_capabilities(file: Path) -> None:
    if shutil.which("clang") is None:
        missing("there is no trace without clang")
    words = command("run", file, "--engine", "live", "--trace", "events")
    told = refused([*without("bpf", "perfmon", "sys_admin"), "unshare", "--user", "--map-root-user", *words])
    assert "needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN outside of user namespaces" in told
    assert "run outside of a user namespace" in told
    assert "without --trace and --why" in told


@pytest.mark.brief
def test_root_outside_of_user_namespaces_is_advised_of_capabilities(file: Path) -> None:
    """It was in no user namespace at its start. Detects advice to leave one."""
    if shutil.which("clang") is None:
        missing("there is no trace without clang")
    words = command("run", file, "--engine", "live", "--trace", "acks")
    told = refused([*without("sys_admin", "net_admin"), *words])
    assert "this root lacks CAP_SYS_ADMIN and CAP_NET_ADMIN, as in a container" in told
    assert "run outside of a user namespace" not in told
    assert "without --trace and --why" in told


CLOSED_TUN = """
mount -t tmpfs tmpfs /dev/net && mknod -m 600 /dev/net/tun c 10 200 &&
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
"""


@pytest.mark.brief
@pytest.mark.parametrize(
    ("words", "otherwise"),
    [
        (("run", "--engine", "live"), "; or --engine sim"),
        (("run", "--engine", "live", "--trace", "acks"), "; or --engine sim, which has no --trace"),
        (("validate",), ""),
    ],
)
def test_a_closed_tun_device_does_not_blame_the_trace(file: Path, words: tuple[str, ...], otherwise: str) -> None:
    """Advice names only effective remedies, and only options that the command has."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        missing("another user needs root, and setpriv (util-linux)")
    name, *options = words
    # Other users may read neither the tests' folder nor, perhaps, the checkout.
    text = "import sys; from anabranch.cli import main; main()"
    unreadable = subprocess.run(
        ["setpriv", "--reuid=65534", "--clear-groups", sys.executable, "-c", "import anabranch"],
        capture_output=True,
        check=False,
    )
    if unreadable.returncode != 0:
        missing("another user may not read this checkout")
    file.chmod(0o644)
    # A worker of pytest has one folder level more.
    for folder in file.parents[:4]:
        if folder.owner() == file.owner() and folder != Path("/tmp"):  # noqa: S108 - not written to
            folder.chmod(0o755)
    line = [sys.executable, "-c", text, name, str(file), *options]
    told = refused(["unshare", "--mount", "sh", "-c", CLOSED_TUN, "sh", *line])
    assert "/dev/net/tun, which this user may not open" in told
    assert told.splitlines()[1] == (
        f"  run as root, or let everybody open it, as root: chmod 666 /dev/net/tun{otherwise}"
    )


STRICT = """
from anabranch import live
from anabranch.cli import main

audited = live.run_audited
live.run_audited = lambda scenario, **options: audited(
    scenario, **{**options, "limits": live.Limits(p99_lateness_ms=0.0, max_lateness_ms=0.0)}
)
main()
"""
"""The command with limits that every run exceeds."""


def tainted(*arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", STRICT, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.brief
def test_a_tainted_run_suggests_a_remedy(file: Path, tmp_path: Path) -> None:
    """Without `--allow-tainted` it prints no figure, and writes none."""
    out = tmp_path / "out"
    done = tainted("run", file, "--engine", "live", "--out", out)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    first, advice, otherwise = done.stderr.splitlines()
    assert first.startswith("error: the live run is tainted and has no result: one packet in a hundred left more than")
    assert "run it again when the machine is less busy" in advice or "lower rates" in advice
    assert "--allow-tainted" in otherwise
    assert not out.exists()


@pytest.mark.brief
def test_an_allowed_tainted_run_is_marked(file: Path, tmp_path: Path) -> None:
    """In the table, in JSON and in the report. Detects figures without the mark."""
    out = tmp_path / "out"
    done = tainted("run", file, "--engine", "live", "--allow-tainted", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "TAINTED" in done.stdout.splitlines()[0]
    assert "goodput" in done.stdout
    assert "its figures are no result" in done.stderr
    assert "Tainted: these figures are no result." in (out / "report.html").read_text()
    assert json.loads((out / "summary.json").read_text())["tainted"] is True
    done = tainted("run", file, "--engine", "live", "--allow-tainted", "--json")
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["tainted"], summary["live"]["audit"]["tainted"]) == (0, True, True)
    assert summary["flows"]["main"]["goodput_mbit_s"] > 0


def test_an_untainted_run_is_not_marked(late_run: object, tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(SHORT)
    loose = STRICT.replace("p99_lateness_ms=0.0, max_lateness_ms=0.0", "1e6, 1e6, 10**9")
    words = [sys.executable, "-c", loose, "run", str(file), "--engine", "live", "--allow-tainted"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    assert "tainted" not in (done.stdout + done.stderr).lower()
