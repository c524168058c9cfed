"""Errors of a failed guest, derived from its kernel's console, with the command that helps."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import NamedTuple

from anabranch.errors import RunFailedError
from anabranch.kernel.images import Image

MEMORY_VARIABLE = "ANABRANCH_KERNEL_MEMORY"
"""The environment variable for the guest's memory in MiB."""
_FULL_MIB = 8
_KILLED = "Out of memory: Killed process"
_REFUSED = re.compile(r"^MemoryError|memory allocation of \d+ bytes failed|Cannot allocate memory", re.MULTILINE)
_CONSOLE_LINES = 6


class _Sign(NamedTuple):
    printed: str
    """A regular expression for the line of the console."""
    told: str
    hint: str


_SIGNS = (
    _Sign(
        r"version `\S+' not found|error while loading shared libraries|cannot be preloaded",
        "was built for another C library than this machine's",
        "type: anabranch kernel build {version}",
    ),
    _Sign(
        r"(?i)ptrace.*(not permitted|errno = 1\b)|check_ptrace|PTRACE_\w+ failed",
        "may not trace its processes: this machine forbids ptrace",
        "see /proc/sys/kernel/yama/ptrace_scope, and in a container its seccomp profile",
    ),
    _Sign(
        r"clone failed, errno = 11|fork failed, errno = 11",
        "may start no further process",
        "raise the limit: ulimit -u",
    ),
    _Sign(
        r"must be not mounted noexec|PROT_EXEC mmap in .*not permitted",
        "has no place for its memory: {memory} does not let programs run from it",
        "name a folder that does: TMPDIR=FOLDER",
    ),
    _Sign(
        r"(?i)out of memory|cannot allocate memory|too few physical memory",
        "has too little memory",
        f"give it more, in MiB: {MEMORY_VARIABLE}={{more}}",
    ),
    _Sign(
        r"No working init found|Requested init .* failed",
        "finds no first process",
        "type: anabranch kernel build {version}",
    ),
    _Sign(r"Kernel panic", "panicked", ""),
)


class Guest(NamedTuple):
    """A guest that has ended.

    Attributes:
        image: Its kernel.
        console: The kernel's console output.
        returncode: The kernel's exit status, negative for a signal.
        memory_mib: The guest's memory.
        memory_folder: The folder of the host that holds this memory.
    """

    image: Image
    console: str
    returncode: int
    memory_mib: int
    memory_folder: str


def of(guest: Guest) -> RunFailedError:
    """The error of a guest that left no result."""
    told, hint = _why(guest)
    return RunFailedError(f"the kernel {guest.image.release} {told}{end_of(guest.console)}{_line(hint)}")


def of_memory(guest: Guest, told: str) -> RunFailedError | None:
    """The error of a program that ran out of memory, detected in the kernel's console or the program's own output."""
    if _KILLED not in guest.console and not _REFUSED.search(told):
        return None
    hint = f"give it more, in MiB: {MEMORY_VARIABLE}={2 * guest.memory_mib}"
    return RunFailedError(f"the guest's memory of {guest.memory_mib} MiB is too small{_line(hint)}")


def of_start(image: Image, error: OSError) -> RunFailedError:
    """The error of a kernel that the machine does not start."""
    hint = f"type: anabranch kernel build {image.version}"
    return RunFailedError(f"the kernel {image.linux} does not start: {error.strerror or error}{_line(hint)}")


def end_of(console: str) -> str:
    """The last lines of a console, each after a line break. For a panic, its first lines: a call trace follows them."""
    lines = [line.strip() for line in console.splitlines() if line.strip()]
    panic = next((at for at, line in enumerate(lines) if "Kernel panic" in line), None)
    shown = lines[-_CONSOLE_LINES:] if panic is None else lines[panic : panic + _CONSOLE_LINES]
    return "".join(f"\n  {line}" for line in shown)


def free_mib(folder: str) -> int:
    """Free space of a file system, in MiB."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize >> 20


def _why(guest: Guest) -> tuple[str, str]:
    names = {"version": guest.image.version, "memory": guest.memory_folder, "more": str(2 * guest.memory_mib)}
    if Path(guest.memory_folder).is_dir() and free_mib(guest.memory_folder) < _FULL_MIB:
        return f"ran out of memory: {guest.memory_folder} is full", "free space there, or name a folder: TMPDIR=FOLDER"
    for sign in _SIGNS:
        if re.search(sign.printed, guest.console):
            return sign.told.format(**names), sign.hint.format(**names)
    if guest.returncode == -signal.SIGKILL:
        return "was killed by another program, perhaps because memory ran out", ""
    return f"ended with status {guest.returncode}", ""


def _line(hint: str) -> str:
    return f"\n  {hint}" if hint else ""
