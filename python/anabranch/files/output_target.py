"""Targets of paths, with symbolic links resolved, and the way each is written."""

from __future__ import annotations

import enum
import errno
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import UserError

_MOST_LINKS = 40
"""Links that the kernel follows in one path (path_resolution(7))."""
_DESCRIPTORS = re.compile(r"/proc/(?P<process>\d+)(?:/task/\d+)?/fd")


class Kind(enum.Enum):
    """How a target is written."""

    ABSENT = "absent"
    REGULAR = "a file"
    STREAM = "a pipe or a device"
    DESCRIPTOR = "a descriptor"


@dataclass(frozen=True)
class Target:
    """The end of a path's symbolic links.

    Attributes:
        place: The path without links; it need not exist.
        kind: How it is written.
        identity: Device, inode and type of a stream, which must be unchanged when it is opened.
        descriptor: The number, if it is a descriptor of this process.
    """

    place: Path
    kind: Kind
    identity: tuple[int, int, int] | None = None
    descriptor: int | None = None


def find(path: Path) -> Target:
    """The target of a path, with symbolic links resolved, and its kind.

    Raises:
        OSError: The links form a loop, or cannot be examined.
        UserError: Another user left the link in a shared directory, or the descriptor is not open for writing.
    """
    place = path
    for _ in range(_MOST_LINKS):
        place = Path(os.path.realpath(place.parent)) / place.name
        found = _DESCRIPTORS.fullmatch(str(place.parent))
        if found and place.name.isascii() and place.name.isdigit():
            if int(found["process"]) == os.getpid():
                return _descriptor(place, int(place.name))
            status = os.stat(place)
            if not stat.S_ISREG(status.st_mode):
                return Target(place, Kind.STREAM, identity_of(status))
        try:
            status = os.lstat(place)
        except FileNotFoundError:
            return Target(place, Kind.ABSENT)
        if stat.S_ISREG(status.st_mode):
            return Target(place, Kind.REGULAR)
        if not stat.S_ISLNK(status.st_mode):
            return Target(place, Kind.STREAM, identity_of(status))
        _check_link(place, status)
        place = place.parent / os.readlink(place)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _descriptor(place: Path, number: int) -> Target:
    import fcntl

    try:
        flags = fcntl.fcntl(number, fcntl.F_GETFL)
    except OSError:
        raise UserError(f"{place}: this process has no descriptor {number}") from None
    if flags & os.O_ACCMODE == os.O_RDONLY:
        raise UserError(f"{place}: descriptor {number} is not open for writing")
    return Target(place, Kind.DESCRIPTOR, descriptor=number)


def _check_link(link: Path, status: os.stat_result) -> None:
    """Refuse another user's link in a directory like /tmp, as the kernel does (proc(5), protected_symlinks).

    Otherwise that user would choose the file that is replaced.
    """
    folder = os.stat(link.parent)
    shared = stat.S_ISVTX | stat.S_IWOTH
    if folder.st_mode & shared == shared and status.st_uid not in (os.geteuid(), folder.st_uid):
        raise PermissionError(errno.EACCES, "a symbolic link of another user in a shared directory")


def identity_of(status: os.stat_result) -> tuple[int, int, int]:
    """Device, inode and type of a file."""
    return status.st_dev, status.st_ino, stat.S_IFMT(status.st_mode)
