"""The caller's working directory and environment in a guest, and the folders that programs there may write."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import stat
import time
from dataclasses import dataclass
from pathlib import Path

FILE = "surroundings"
"""File of the job."""
_BIND = 0x1000
"""``MS_BIND`` (mount(2))."""
_TEMPORARY = Path("/tmp")  # noqa: S108 - the folder itself
_OF_THE_GUEST = tuple(map(Path, ("/dev", "/proc", "/run", "/sys")))
_DEVICES = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
"""Links below ``/dev`` that an init makes, not the kernel."""
_UP_S = 2.0
"""Seconds of uptime before the user's programs start: ``ping`` takes a clock below one second for an unset one."""
_KEPT = ("TMPDIR",)
"""Variables that the guest's first process sets."""


@dataclass(frozen=True)
class Surroundings:
    """What programs see of the command that started the guest.

    Attributes:
        working_directory: Its working directory; none if that was removed.
        environment: Its environment.
        for_programs: Whether the user's programs run in the guest. They write into folders; the engine does not.
    """

    working_directory: Path | None
    environment: dict[str, str]
    for_programs: bool

    @staticmethod
    def here(*, for_programs: bool) -> Surroundings:
        """Those of this process."""
        try:
            folder: Path | None = Path.cwd()
        except OSError:
            folder = None
        return Surroundings(folder, dict(os.environ), for_programs)

    def leave(self, job: Path) -> None:
        """Write them into a job's folder."""
        (job / FILE).write_bytes(pickle.dumps(self))


def settle(job: Path) -> None:
    """In the guest: take the surroundings that the job has.

    The working directory is the host's, and can be written. ``/tmp`` and the home folder take new files, in memory.
    """
    there: Surroundings = pickle.loads((job / FILE).read_bytes())  # noqa: S301 - our own process wrote it
    os.environ.update({name: value for name, value in there.environment.items() if name not in _KEPT})
    if there.for_programs:
        _complete_devices()
        for folder in (_TEMPORARY, Path(there.environment.get("HOME", "/"))):
            if folder.is_absolute() and folder.is_dir() and _is_ours(folder):
                _take_new_files(folder)
    if there.working_directory is not None:
        folder = there.working_directory
        if there.for_programs and (_is_ours(folder) or folder not in _OF_THE_GUEST):
            # It may lie below a folder that is the guest's own, as in /run/user.
            folder.mkdir(parents=True, exist_ok=True)
            _mount("none", folder, "hostfs", data=str(folder))
        with contextlib.suppress(OSError):
            os.chdir(folder)
    if there.for_programs:
        time.sleep(max(0.0, _UP_S - time.monotonic()))


def _complete_devices() -> None:
    for name, target in _DEVICES.items():
        place = Path("/dev", name)
        if not place.exists():
            place.symlink_to(target)
    terminals = Path("/dev/pts")
    terminals.mkdir(exist_ok=True)
    _mount("devpts", terminals, "devpts", data="ptmxmode=0666")


def _is_ours(folder: Path) -> bool:
    """Whether the guest has the host's folder, and can do without its own there."""
    return folder != Path("/") and not any(folder.is_relative_to(own) for own in _OF_THE_GUEST)


def _take_new_files(folder: Path) -> None:
    """Put a file system in memory over a folder that shows all that was there.

    It is ramfs because tmpfs draws a random number for each file: the draws of a run would depend on what lies there.
    """
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    mode = stat.S_IMODE(folder.stat().st_mode)
    below = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        _mount("ramfs", folder, "ramfs")
        folder.chmod(mode)
        for name in names:
            # Of another user, or gone meanwhile.
            with contextlib.suppress(OSError):
                _show(Path(f"/proc/self/fd/{below}", name), folder / name)
    finally:
        os.close(below)


def _show(original: Path, place: Path) -> None:
    mode = original.lstat().st_mode
    if stat.S_ISLNK(mode):
        place.symlink_to(original.readlink())
        return
    if stat.S_ISDIR(mode):
        place.mkdir()
    elif stat.S_ISREG(mode):
        place.touch()
    else:
        return
    _mount(str(original), place, "none", flags=_BIND)


def _mount(source: str, place: Path, kind: str, *, flags: int = 0, data: str = "") -> None:
    system = ctypes.CDLL(None, use_errno=True)
    words = (os.fsencode(word) for word in (source, place, kind))
    if system.mount(*words, ctypes.c_ulong(flags), os.fsencode(data)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(place))
