"""Runs without root.

If all users may create user namespaces, a run needs no privilege. Otherwise its message names the
missing one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import FLOW, PATH, command, missing

NOBODY = "65534"

OPENED = """
import ctypes, os, stat, subprocess, sys

MS_BIND = 4096
end = sys.argv.index("--")
paths, words = sys.argv[1:end], sys.argv[end + 1:]
held = {path: os.open(path, os.O_PATH) for path in paths}


def closed(path):
    above = [path]
    while above[-1] != "/":
        above.append(os.path.dirname(above[-1]))
    there = [one for one in reversed(above[1:]) if os.path.isdir(one)]
    return next((one for one in there if not os.stat(one).st_mode & 1), None)


for path in paths:
    while (wall := closed(path)) is not None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", wall], check=True)
    if not os.path.isdir(path) or os.stat(path).st_ino != os.fstat(held[path]).st_ino:
        os.makedirs(path, exist_ok=True)
        # By the system call: the program looks where the link leads by name, which is here.
        here = f"/proc/self/fd/{held[path]}".encode()
        if ctypes.CDLL(None, use_errno=True).mount(here, path.encode(), None, MS_BIND, None) != 0:
            raise OSError(ctypes.get_errno(), path)
tun = os.stat("/dev/net/tun")
if tun.st_mode & 0o666 != 0o666:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/dev/net"], check=True)
    os.mknod("/dev/net/tun", stat.S_IFCHR | 0o666, tun.st_rdev)
    os.chmod("/dev/net/tun", 0o666)
os.execvp(words[0], words)
"""
"""Makes unreachable folders accessible in a new mount namespace: it mounts an empty folder over
each closed parent, and binds the folders into it. /dev/net/tun is accessible to all users there,
as udev configures it. The mounts are invisible to other processes."""

NO_RIGHTS = ["--bounding-set=-all", "--inh-caps=-all"]


@pytest.fixture
def nobody(live_machine: None, tmp_path: Path) -> list[str]:
    """The prefix that runs a command as a user without privileges, who can read our checkout and the test's folder."""
    for program in ("setpriv", "unshare"):
        if shutil.which(program) is None:
            missing(f"no {program} (util-linux)")
    if os.geteuid() != 0:
        # The tests already run as an unprivileged user.
        return ["setpriv", *NO_RIGHTS[1:]]
    tmp_path.chmod(0o755)
    checkout = Path(__file__).resolve().parents[2]
    # If the environment's Python is a link, also the folder that it names.
    link = Path(sys.executable)
    named = link.readlink().parents[1] if link.is_symlink() else link.parents[1]
    paths = dict.fromkeys(map(str, (sys.base_prefix, checkout / named, sys.prefix, checkout, tmp_path)))
    user = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *NO_RIGHTS]
    return ["unshare", "--mount", sys.executable, "-c", OPENED, *paths, "--", "setpriv", *user]


def done(words: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/"}
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, env=environment)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.toml"
    path.write_text((PATH + FLOW).replace("3 s", "1 s") + 'cc = "cubic"\n')
    return path


def may_have_namespaces(nobody: list[str]) -> bool:
    return done([*nobody, "unshare", "--user", "--map-root-user", "--net", "true"]).returncode == 0


@pytest.mark.brief
def test_the_unprivileged_user_has_no_rights(nobody: list[str]) -> None:
    """Without this the other tests would show nothing."""
    seen = done([*nobody, "sh", "-c", "id -u; id -G; grep -E 'Cap(Eff|Prm|Bnd)' /proc/self/status"])
    assert seen.returncode == 0, seen.stderr
    user, groups, *capabilities = seen.stdout.splitlines()
    assert user != "0"
    assert "0" not in groups.split()
    if os.geteuid() == 0:
        assert (user, groups) == (NOBODY, NOBODY)
        assert {line.split()[1] for line in capabilities} == {"0" * 16}


@pytest.mark.brief
def test_a_run_needs_no_privilege(nobody: list[str], file: Path) -> None:
    if not may_have_namespaces(nobody):
        missing("this kernel does not let everybody have user namespaces")
    run = done([*nobody, *command("run", file, "--engine", "live", "--json", "--allow-tainted")])
    assert run.returncode == 0, run.stderr
    summary = json.loads(run.stdout)
    assert 0 < summary["flows"]["main"]["goodput_mbit_s"] < 20 * 1448 / 1500
    assert summary["live"]["trace"]["why_not"]


def test_programs_need_no_privilege(nobody: list[str], tmp_path: Path) -> None:
    """Hosts have names for them, too."""
    if not may_have_namespaces(nobody):
        missing("this kernel does not let everybody have user namespaces")
    file = tmp_path / "programs.toml"
    file.write_text(PATH + FLOW + '[host.A]\nexec = ["getent", "hosts", "B"]\n')
    run = done([*nobody, *command("run", file, "--engine", "live", "--json", "--allow-tainted")])
    assert run.returncode == 0, run.stderr
    assert [one["names"] for one in json.loads(run.stdout)["live"]["programs"]] == [True]
    assert "10.113.0.2" in run.stderr


FORBIDDEN = f"""
echo 0 > /proc/sys/user/max_user_namespaces || exit 77
exec setpriv {" ".join(NO_RIGHTS)} "$@"
"""


@pytest.mark.parametrize("words", [["run"], ["validate"]])
def test_without_user_namespaces_the_message_names_the_capability(
    nobody: list[str], file: Path, words: list[str]
) -> None:
    """The user namespace permits no further ones, like a machine without them.

    Detects a run that is refused without the name of the capability, or that fails half-way.
    """
    options = ["--engine", "live"] if words == ["run"] else []
    outside = [*nobody, "unshare", "--user", "--map-root-user", "sh", "-c", FORBIDDEN, "sh"]
    run = done([*outside, *command(*words, file, *options)])
    if run.returncode == 77 or "unshare" in run.stderr:
        missing(f"no user namespace to try it in: {run.stderr.strip()}")
    assert (run.returncode, run.stdout) == (2, ""), run.stderr
    assert "CAP_SYS_ADMIN" in run.stderr
    assert "which user.max_user_namespaces does not permit here" in run.stderr
    assert len(run.stderr.strip().splitlines()) <= 2, run.stderr
