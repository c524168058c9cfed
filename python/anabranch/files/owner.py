"""Temporary files and directories whose names identify their process.

A killed process leaves them, and the next command removes them. The name has the process's number
and its start time, because numbers are reused, and their scope: the running kernel (its boot) and
its PID namespace. The compiler of eBPF controls writes names of the same form into the system's
directory for temporary files.
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
"""Prefix of all temporary names, after a dot if they are beside results."""

FOREIGN_S = 7 * 24 * 3600.0
"""Seconds after which files of another boot, container or machine are removed: their process cannot be checked."""

_NAME = re.compile(rf"\.?{PREFIX}(\d+)-(\d+)-([0-9a-f]+)-.+")
_START = 19
"""Index of the start time among the fields of ``/proc/PID/stat`` after the name (proc(5), field 22)."""
_numbers = itertools.count()
_mine: set[Path] = set()


def beside(target: Path) -> Path:
    """A hidden path in the directory of ``target`` that only this process uses."""
    path = target.parent / f".{PREFIX}{_mark(os.getpid())}-{next(_numbers)}.part"
    _mine.add(path)
    return path


def is_temporary(name: str) -> bool:
    """Whether a name has the form of :func:`beside`, from this process or another."""
    return _NAME.fullmatch(name) is not None


def forget(path: Path) -> None:
    """Stop tracking ``path``, which was removed or renamed."""
    _mine.discard(path)


def abandon() -> None:
    """Remove unfinished files of this process before it ends at once."""
    for path in list(_mine):
        _remove(path)


@cache
def remove_dead(directory: Path) -> None:
    """Remove files of dead processes from ``directory``, once for each directory.

    Only this user's files with a name of this form are removed, and none of a live process.
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
    if place != _place() or place == "0":
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
    """Start time of a process, in the kernel's ticks; ``None`` if there is none."""
    try:
        # The name in parentheses may contain any character.
        fields = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return fields[_START]
    except (OSError, IndexError):
        return None


@cache
def _place() -> str:
    """Scope of process numbers: this boot's kernel, and the PID namespace; "0" if unknown, as on macOS."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
        space = "".join(c for c in os.readlink("/proc/self/ns/pid") if c in "0123456789")
    except OSError:
        return "0"
    return boot + space
