"""Temporary files and directories whose names say which process they belong to.

A process that is killed leaves them behind; the next command removes them. The name has the process's number and start
time, because numbers are used again, and where these hold: the running kernel (its boot) and its PID namespace. The
compiler of eBPF controls writes names of the same form into the system's directory for temporary files.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import stat
import time
from functools import cache
from pathlib import Path

PREFIX = "anabranch-"
"""Begins the name of everything temporary, after a dot where it lies beside results."""

FOREIGN_S = 7 * 24 * 3600.0
"""Of another boot, container or machine nobody can say here whether it lives: its files are left for a week."""

_NAME = re.compile(rf"\.?{PREFIX}(\d+)-(\d+)-([0-9a-f]+)-.+")
_START = 19
"""Start time among the fields of ``/proc/PID/stat`` after the name (proc(5), field 22)."""
_numbers = itertools.count()
_mine: set[Path] = set()


def beside(target: Path) -> Path:
    """A hidden path in the directory of ``target`` that only this process uses."""
    path = target.parent / f".{PREFIX}{_mark(os.getpid())}-{next(_numbers)}.part"
    _mine.add(path)
    return path


def is_temporary(name: str) -> bool:
    """Whether a file's name is one of those that :func:`beside` makes, here or in another process."""
    return _NAME.fullmatch(name) is not None


def forget(path: Path) -> None:
    """``path`` is gone or has got its own name."""
    _mine.discard(path)


def abandon() -> None:
    """Remove what this process has made and not finished, before it ends at once."""
    for path in list(_mine):
        _remove(path)


@cache
def remove_dead(directory: Path) -> None:
    """Remove what dead processes of ours have left in ``directory``; once for each directory.

    Only what has our form of name and belongs to this user is touched, and nothing of a process that lives.
    """
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        found = [Path(entry.path) for entry in entries if _NAME.fullmatch(entry.name)]
        for path in found:
            with contextlib.suppress(OSError):
                if _is_dead(path):
                    _remove(path)


def _is_dead(path: Path) -> bool:
    parts = _NAME.fullmatch(path.name)
    status = path.lstat()
    if parts is None or status.st_uid != os.geteuid() or stat.S_ISLNK(status.st_mode):
        return False
    process, start, place = parts.groups()
    if place != _place():
        return time.time() - status.st_mtime > FOREIGN_S
    return _start(int(process)) != start


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


@cache
def _mark(process: int) -> str:
    return f"{process}-{_start(process) or 0}-{_place()}"


def _start(process: int) -> str | None:
    """When a process started, in the kernel's ticks; ``None`` for one that there is not."""
    try:
        # The name, in parentheses, may hold anything.
        fields = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return fields[_START]
    except (OSError, IndexError):
        return None


@cache
def _place() -> str:
    """Where numbers of processes hold: this boot's kernel, and the PID namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
        space = "".join(c for c in os.readlink("/proc/self/ns/pid") if c in "0123456789")
    except OSError:
        return "0"
    return boot + space
