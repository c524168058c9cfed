"""The systemd unit that installs a control again at every start of the machine."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from anabranch.files.files import read_bytes
from anabranch.files.output_file import write_whole

FOLDER = Path("/etc/systemd/system")
RUNS = Path("/run/systemd/system")
"""systemd runs if this directory is there (sd_booted(3))."""
_WANTED = "multi-user.target.wants"
_SECONDS = 30

_TEXT = """\
# Made by `anabranch cc install`; `anabranch cc remove {name}` removes it.
[Unit]
Description=Congestion control {name}
Documentation=man:anabranch(1)
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=3600
StartLimitBurst=60

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={command}
# A route or a cgroup may appear later.
Restart=on-failure
RestartSec=10
# Programs in the kernel, routes and cgroups; the command may be in the folder of another user.
CapabilityBoundingSet=CAP_BPF CAP_PERFMON CAP_NET_ADMIN CAP_SYS_ADMIN CAP_DAC_READ_SEARCH
LockPersonality=yes
NoNewPrivileges=yes
ProtectClock=yes
ProtectHostname=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
"""


def is_running() -> bool:
    """Whether systemd is the machine's first process."""
    return RUNS.is_dir()


def name(control: str) -> str:
    """The name of a control's unit."""
    return f"anabranch-cc-{_escaped(control)}.service"


def _escaped(text: str) -> str:
    """Text of a unit's name (systemd-escape(1))."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-:") else f"\\x{ord(c):02x}" for c in text)


def _quoted(word: str) -> str:
    """A word of ``ExecStart=`` (systemd.service(5))."""
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{word}"'


def text(control: str, arguments: Sequence[str]) -> str:
    """The unit's file."""
    words = [sys.executable, "-m", "anabranch", "cc", "install", *arguments]
    return _TEXT.format(name=control, command=" ".join(_quoted(word) for word in words))


def write(control: str, arguments: Sequence[str]) -> bool:
    """Write and enable the unit; returns whether it changed."""
    file, wanted = FOLDER / name(control), FOLDER / _WANTED / name(control)
    content = text(control, arguments).encode()
    if file.exists() and wanted.exists() and read_bytes(file, most=1 << 20) == content:
        return False
    write_whole(file, content)
    wanted.parent.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        wanted.symlink_to(file)
    _reload()
    return True


def remove(control: str) -> None:
    """Remove the unit, if there is one."""
    file, wanted = FOLDER / name(control), FOLDER / _WANTED / name(control)
    is_there = file.exists() or wanted.is_symlink()
    wanted.unlink(missing_ok=True)
    file.unlink(missing_ok=True)
    if is_there:
        # The folder may be ours, and is empty then.
        with contextlib.suppress(OSError):
            wanted.parent.rmdir()
        _reload()
        # A unit without a file stays listed while it is active.
        _systemctl("stop", name(control))


def file_of(control: str) -> Path | None:
    """The file of an enabled unit."""
    file = FOLDER / name(control)
    return file if file.exists() and (FOLDER / _WANTED / name(control)).exists() else None


def _reload() -> None:
    _systemctl("daemon-reload")


def _systemctl(*arguments: str) -> None:
    """Call systemctl, if systemd runs; what it says is of no use to the caller."""
    program = shutil.which("systemctl")
    if is_running() and program is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([program, *arguments], capture_output=True, check=False, timeout=_SECONDS)  # noqa: S603
